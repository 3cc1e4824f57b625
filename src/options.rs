//! Settings of a build, and of a store that is opened for writing.

use std::sync::Arc;
use std::time::Duration;

use crate::codec::Codec;
use crate::error::{Error, Result, one_of};
use crate::fs::{Disk, Fs};
use crate::plan::PlanChoice;
use crate::progress::ProgressCallback;

/// The settings of a build.
///
/// ```
/// use simstore::{BuildOptions, Codec};
///
/// let options = BuildOptions { distance: 6, codec: Codec::Gap, ..BuildOptions::default() };
/// ```
#[derive(Clone, Debug)]
pub struct BuildOptions {
    /// The largest distance that queries will ask for, in bits; 3 by default.
    pub distance: u32,
    /// Codec of the tables; `first-difference` by default.
    pub codec: Codec,
    /// Chooses the codec once all fingerprints are known, instead of `codec`; `None` by default.
    pub codec_for: Option<Purpose>,
    /// The tables to keep.
    pub plan: PlanChoice,
    /// Block size in bytes, a power of two from 256 to 65536; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next in the Huffman codecs, 1 to 256.
    ///
    /// A smaller span makes look-ups shorter and tables larger. `None` chooses by the codec: 32 for
    /// `all-differences`; for the others 64, and 28 from about a million fingerprints of a segment on.
    pub span: Option<u16>,
    /// Memory for sorting, in bytes, at least 16 MiB. Beyond it, sorted runs go to temporary files in the store's
    /// folder. `None` is a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// Whether ids are stored; without them, a store takes no bytes for ids.
    pub ids: bool,
    /// Replace an existing store. It stays unchanged until the new one is complete.
    pub replace: bool,
    /// Describes how the documents' texts became fingerprints. The store keeps this string and returns it.
    pub profile: String,
    /// Called with the progress of the build; says whether to continue.
    pub progress: Option<ProgressCallback>,
    /// The file system for the store: the real disk by default.
    pub fs: Arc<dyn Fs>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            distance: 3,
            codec: Codec::default(),
            codec_for: None,
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

/// The purpose that a codec is chosen for, see [`BuildOptions::codec_for`].
///
/// ```
/// use simstore::Purpose;
///
/// assert_eq!("size".parse::<Purpose>()?, Purpose::Size);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The smallest tables, estimated from a sample of up to 131,072 fingerprints in runs of neighbours.
    Size,
    /// The smallest tables with a query time of at most 1.5 times the fastest codec's, by the cost model.
    Speed,
}

impl Purpose {
    const ALL: [(Purpose, &'static str); 2] = [(Purpose::Size, "size"), (Purpose::Speed, "speed")];
}

impl std::str::FromStr for Purpose {
    type Err = Error;

    fn from_str(name: &str) -> Result<Purpose> {
        one_of("purpose", &Purpose::ALL, name)
    }
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(Purpose::ALL.iter().find(|(purpose, _)| purpose == self).map_or("", |(_, name)| name))
    }
}

/// Settings for opening a store for writing, and for a new store.
///
/// A setting that is `None` keeps the store's value; a new store gets the default. It is an error to ask for another
/// value than the store's.
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
    /// The largest distance that queries will ask for, in bits; 3 for a new store.
    pub distance: Option<u32>,
    /// Codec of the tables; `first-difference` for a new store.
    pub codec: Option<Codec>,
    /// The tables of each segment; by default, a new store chooses them by the segment's size.
    pub plan: Option<PlanChoice>,
    /// Whether ids are kept; true for a new store. Without ids, all ids count as the same one.
    pub ids: Option<bool>,
    /// Block size in bytes, see [`BuildOptions::block_size`].
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next, see [`BuildOptions::span`].
    pub span: Option<u16>,
    /// Describes how texts become fingerprints. The store keeps this string.
    pub profile: Option<String>,
    /// Durability of [`Store::insert`](crate::Store::insert) and the other single writes: [`Durability::Os`] by
    /// default. A [`Transaction`](crate::Transaction) has its own.
    pub durability: Durability,
    /// Size of a memtable in bytes, 64 MiB by default.
    ///
    /// A memtable holds new pairs in memory. At this size it becomes a segment, while writing continues in another
    /// memtable; there are at most three.
    pub memtable: u64,
    /// Memory for sorting when segments are written, see [`BuildOptions::memory`](field@BuildOptions::memory).
    pub memory: Option<u64>,
    /// Whether segments are merged in the background; they are by default.
    pub compaction: bool,
    /// Number of segments of similar size that are merged into one, T; 4 by default, at least 2.
    ///
    /// A larger number writes less and slows queries down. Of n pairs, flushed m at a time, each is written at most
    /// 1 + log_T(n / m) times. For a load of mostly queries, 2 is better: it makes two thirds as many segments as 4,
    /// and merges up to twice as much.
    pub fanout: usize,
    /// Limit for compaction in the background, in bytes written per second; `None`, the default, is no limit.
    pub compaction_rate: Option<u64>,
    /// The file system of the store: the real disk by default.
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

/// When a write is acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// Acknowledged when the operating system has the write: it survives the end of this process, but not a loss of
    /// power. Such a loss takes only the newest writes: there are no holes.
    #[default]
    Os,
    /// Acknowledged when the write is on the disk. Writers that wait at the same time share one sync.
    Sync,
    /// Acknowledged when the write is on the disk, after waiting for other writers to share the sync.
    ///
    /// The wait is at most this long, and is for as many writers as shared the last sync or came while it ran. A
    /// single writer does not wait.
    Group(Duration),
}

/// Least memory for sorting, in bytes. The buffers of a merge would take up any smaller amount.
pub(crate) const LEAST_MEMORY: u64 = 16 << 20;
/// Memory in bytes if the machine's memory is unknown.
const DEFAULT_MEMORY: u64 = 1 << 30;

impl BuildOptions {
    /// Memory for sorting, in bytes.
    pub(crate) fn memory(&self) -> u64 {
        self.memory
            .unwrap_or_else(|| machine_memory().map_or(DEFAULT_MEMORY, |all| all / 4))
            .max(LEAST_MEMORY)
    }
}

/// Refuses less memory for sorting than [`LEAST_MEMORY`].
pub(crate) fn check_memory(memory: Option<u64>) -> Result<()> {
    let Some(bytes) = memory.filter(|&bytes| bytes < LEAST_MEMORY) else { return Ok(()) };
    Err(Error::BadArgument(format!(
        "option `memory` is {bytes} bytes: expected {LEAST_MEMORY} (16 MiB) or more. For {bytes} MiB give {bytes}M, or {}",
        u128::from(bytes) << 20
    )))
}

/// The machine's memory in bytes, if Linux reports it.
fn machine_memory() -> Option<u64> {
    let text = crate::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
