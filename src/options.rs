//! Settings of a bulk build and of a live store.

use std::sync::Arc;
use std::time::Duration;

use crate::codec::Codec;
use crate::error::{Error, Result, find_by_name};
use crate::fs::{Disk, Fs};
use crate::plan::PlanChoice;
use crate::progress::ProgressCallback;

/// Settings of a bulk build, see [`Builder`](crate::Builder).
///
/// ```
/// use simstore::{BuildOptions, Codec};
///
/// let options = BuildOptions { distance: 6, codec: Codec::Gap, ..BuildOptions::default() };
/// ```
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// Largest distance of queries, in bits; 3 by default.
    pub distance: u32,
    /// Codec of the tables; `first-difference` by default.
    pub codec: Codec,
    /// Objective by which the build chooses a codec once all fingerprints are known. It overrides `codec`.
    /// `None` by default.
    pub codec_objective: Option<CodecObjective>,
    /// Plan of the tables: how many tables there are, and which fingerprint bits are the prefix that a query looks up in
    /// each table. By default, the number of fingerprints determines the plan.
    pub plan: PlanChoice,
    /// Block size in bytes, a power of two from 256 to 65536; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Number of fingerprints from one restart point to the next, 1 to 256. A restart point is a place in a block where
    /// a Huffman codec can start decoding.
    ///
    /// A smaller span makes look-ups shorter and tables larger. `None` means 32 for `all-differences`. For the
    /// other codecs, it means 64, or 28 in segments of about a million fingerprints or more.
    pub span: Option<u16>,
    /// Memory for sorting, in bytes, at least 16 MiB. If the fingerprints need more, sorted runs go to
    /// temporary files in the store's folder. `None` is a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// Whether ids are stored; true by default. Without ids, the store has fingerprints only.
    pub ids: bool,
    /// Whether to replace an existing store; false by default. The old store stays unchanged until the new
    /// one is complete.
    pub replace: bool,
    /// Description of how texts become fingerprints. The store keeps this string; the engine does not
    /// interpret it.
    pub profile: String,
    /// Callback for the progress of the build. It can cancel the build.
    pub progress: Option<ProgressCallback>,
    /// File system of the store: the real disk by default.
    pub fs: Arc<dyn Fs>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            distance: 3,
            codec: Codec::default(),
            codec_objective: None,
            plan: PlanChoice::Auto,
            block_size: None,
            span: None,
            memory: None,
            ids: true,
            replace: false,
            profile: String::new(),
            progress: None,
            fs: Arc::new(Disk::default()),
        }
    }
}

/// Objective by which a build chooses the codec, see [`BuildOptions::codec_objective`].
///
/// ```
/// use simstore::CodecObjective;
///
/// assert_eq!("size".parse::<CodecObjective>()?, CodecObjective::Size);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CodecObjective {
    /// Chooses the codec with the smallest tables. The sizes are measured on a sample of up to 131,072
    /// fingerprints, taken in groups of consecutive fingerprints.
    Size,
    /// Chooses the codec with the smallest tables among those whose estimated query time is at most 1.5 times
    /// that of the fastest codec.
    Speed,
}

impl CodecObjective {
    const ALL: [(CodecObjective, &'static str); 2] =
        [(CodecObjective::Size, "size"), (CodecObjective::Speed, "speed")];
}

impl std::str::FromStr for CodecObjective {
    type Err = Error;

    fn from_str(name: &str) -> Result<CodecObjective> {
        find_by_name("purpose", &CodecObjective::ALL, name)
    }
}

impl std::fmt::Display for CodecObjective {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(
            CodecObjective::ALL.iter().find(|(objective, _)| objective == self).map_or("", |(_, name)| name),
        )
    }
}

/// Settings for opening or creating a live [`Store`](crate::Store).
///
/// If a setting is `None`, an existing store keeps its value, and a new store gets the default. If a setting
/// differs from an existing store's, opening fails with [`Error::Setting`].
///
/// ```
/// use simstore::{Codec, StoreOptions};
///
/// let options =
///     StoreOptions { distance: Some(3), codec: Some(Codec::EliasFano), memtable: 256 << 20, ..StoreOptions::default() };
/// ```
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Whether to create the store if it does not exist; true by default.
    pub create: bool,
    /// Largest distance of queries, in bits. By default, a new store gets 3.
    pub distance: Option<u32>,
    /// Codec of the tables. By default, a new store gets `first-difference`.
    pub codec: Option<Codec>,
    /// Plan of each segment's tables, see [`BuildOptions::plan`]. For a new store, `None` means that the number
    /// of fingerprints in the segment determines the plan.
    pub plan: Option<PlanChoice>,
    /// Whether ids are stored; by default, a new store stores them. Without ids, every id counts as 0, so a fingerprint is
    /// stored at most once.
    pub ids: Option<bool>,
    /// Block size in bytes, see [`BuildOptions::block_size`].
    pub block_size: Option<u32>,
    /// Number of fingerprints from one restart point of a block to the next, see [`BuildOptions::span`].
    pub span: Option<u16>,
    /// Description of how texts become fingerprints. The store keeps this string; the engine does not
    /// interpret it.
    pub profile: Option<String>,
    /// Durability of [`Store::insert`](crate::Store::insert) and the other methods of `Store` that write but have no
    /// `durability` argument: [`Durability::Os`] by default.
    pub durability: Durability,
    /// Size of a memtable in bytes, 64 MiB by default.
    ///
    /// A memtable of this size is frozen and flushed to a segment, while writes continue in a new memtable. A
    /// store has at most three memtables.
    pub memtable: u64,
    /// Memory for sorting when segments are written, see
    /// [`BuildOptions::memory`](field@BuildOptions::memory).
    pub memory: Option<u64>,
    /// Whether segments are merged in the background; true by default.
    pub compaction: bool,
    /// Number of segments of similar size that are merged into one; 4 by default, at least 2.
    ///
    /// A larger fanout writes less and slows queries down. With fanout T, if n fingerprints are flushed m at a time,
    /// each fingerprint is written at most `1 + log_T(n / m)` times. If most operations are queries, 2 is better: the
    /// store has two thirds as many segments as with 4, and merges write up to twice as much.
    pub fanout: usize,
    /// Maximum rate at which background merges write, in bytes per second; `None`, the default, is no limit.
    pub compaction_rate: Option<u64>,
    /// File system of the store: the real disk by default.
    pub fs: Arc<dyn Fs>,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            create: true,
            distance: None,
            codec: None,
            plan: None,
            ids: None,
            block_size: None,
            span: None,
            profile: None,
            durability: Durability::Os,
            memtable: 64 << 20,
            memory: None,
            compaction: true,
            fanout: 4,
            compaction_rate: None,
            fs: Arc::new(Disk::default()),
        }
    }
}

/// The state that a write must have reached before it is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The operating system has the write. It survives the end of this process, but perhaps not a power
    /// failure. If a power failure loses a write, it also loses all later writes.
    #[default]
    Os,
    /// The write is on the disk. Concurrent writers share one sync.
    Sync,
    /// The write is on the disk. Before the sync, the writer waits at most this long for other writers, which
    /// then share the sync.
    ///
    /// The wait ends early when the number of waiting writers reaches the number that shared the last sync plus the
    /// number that arrived while that sync ran. So a single writer does not wait.
    Group(Duration),
}

/// Minimum memory for sorting, in bytes. The buffers for a merge of sorted runs alone need about this much.
pub(crate) const MIN_SORT_MEMORY: u64 = 16 << 20;
/// Memory for sorting if the machine's memory is unknown, in bytes.
const DEFAULT_SORT_MEMORY: u64 = 1 << 30;

impl BuildOptions {
    /// Returns the memory for sorting, in bytes: `self.memory` or its default, but at least [`MIN_SORT_MEMORY`].
    pub(crate) fn memory(&self) -> u64 {
        self.memory
            .unwrap_or_else(|| machine_memory().map_or(DEFAULT_SORT_MEMORY, |all| all / 4))
            .max(MIN_SORT_MEMORY)
    }
}

/// Fails if the memory for sorting is less than [`MIN_SORT_MEMORY`].
pub(crate) fn check_memory(memory: Option<u64>) -> Result<()> {
    let Some(bytes) = memory.filter(|&bytes| bytes < MIN_SORT_MEMORY) else { return Ok(()) };
    Err(Error::BadArgument(format!(
        "option `memory` is {bytes} bytes: expected {MIN_SORT_MEMORY} (16 MiB) or more. For {bytes} MiB give {bytes}M, or {}",
        u128::from(bytes) << 20
    )))
}

/// Memory of the machine in bytes; `None` if `/proc/meminfo` does not exist (not Linux) or cannot be parsed.
fn machine_memory() -> Option<u64> {
    let text = crate::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
