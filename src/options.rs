//! How a store is built.

use std::sync::Arc;
use std::time::Duration;

use crate::codec::Codec;
use crate::error::{Error, Result, excerpt};
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
    /// How tables are coded; `first-difference` by default.
    pub codec: Codec,
    /// Chooses the codec when all fingerprints are known, in the place of `codec`: none by default.
    pub codec_for: Option<Purpose>,
    /// Which tables are kept.
    pub plan: PlanChoice,
    /// Block size in bytes, a power of two from 256 to 65536; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next in the Huffman codecs, 1 to 256. Fewer make look-ups
    /// shorter and tables larger: `None` is what suits the codec, and 32 for `all-differences`; 64 for the others, and 28 from
    /// about a million fingerprints of a segment on.
    pub span: Option<u16>,
    /// Memory for sorting, in bytes, at least 16 MiB; beyond it, sorted runs go to temporary files in the store's folder.
    /// `None` is a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// Whether ids are stored; a store without them takes no bytes for them.
    pub ids: bool,
    /// Replace a store that exists. It stays as it is until the new one is complete.
    pub replace: bool,
    /// How the documents' texts became fingerprints: kept with the store, and handed back.
    pub profile: String,
    /// Is told how far the build is, and says whether it goes on.
    pub progress: Option<ProgressCallback>,
    /// Where the store is written: the real disk by default.
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

/// What a codec is chosen for: see [`BuildOptions::codec_for`].
///
/// ```
/// use simstore::Purpose;
///
/// assert_eq!("size".parse::<Purpose>()?, Purpose::Size);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// The smallest tables, by tables of a sample of up to 131,072 fingerprints in runs of neighbours.
    Size,
    /// The smallest of those with which a query takes at most 1.5 times what it takes with the fastest, by the cost model.
    Speed,
}

impl std::str::FromStr for Purpose {
    type Err = Error;

    fn from_str(name: &str) -> Result<Purpose> {
        match name {
            "size" => Ok(Purpose::Size),
            "speed" => Ok(Purpose::Speed),
            _ => Err(Error::BadArgument(format!(
                "there is no purpose `{}`; expected size or speed",
                excerpt(name)
            ))),
        }
    }
}

impl std::fmt::Display for Purpose {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Purpose::Size => "size",
            Purpose::Speed => "speed",
        })
    }
}

/// How a store is opened to be written to, and the settings of one that is made.
///
/// Settings of the store that are `None` are those that it has, or the defaults for a new one; one that is asked for and is
/// not the store's is an error.
///
/// ```
/// use simstore::{Codec, StoreOptions};
///
/// let options =
///     StoreOptions { distance: Some(3), codec: Some(Codec::EliasFano), memtable: 256 << 20, ..StoreOptions::default() };
/// ```
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Whether a store is made where there is none; it is by default.
    pub create: bool,
    /// The largest distance that queries will ask for, in bits; 3 for a new store.
    pub distance: Option<u32>,
    /// How tables are coded; `first-difference` for a new store.
    pub codec: Option<Codec>,
    /// Which tables each segment gets; for a new store what suits the segment's size.
    pub plan: Option<PlanChoice>,
    /// Whether ids are kept; they are in a new store. Where they are not, all ids count as one.
    pub ids: Option<bool>,
    /// Bytes of a block, see [`BuildOptions::block_size`].
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next, see [`BuildOptions::span`].
    pub span: Option<u16>,
    /// How texts become fingerprints: kept with the store.
    pub profile: Option<String>,
    /// When [`Store::insert`](crate::Store::insert) and the other single writes are acknowledged:
    /// [`Durability::Os`] by default. A [`Transaction`](crate::Transaction) says so for itself.
    pub durability: Durability,
    /// Memory for what is not in segments yet, in bytes, 64 MiB by default: at this size it becomes a segment, while
    /// writing goes on into another one; there are three at most.
    pub memtable: u64,
    /// Memory for sorting when segments are written, see [`BuildOptions::memory`](field@BuildOptions::memory).
    pub memory: Option<u64>,
    /// Whether segments are merged in the background; they are by default.
    pub compaction: bool,
    /// How many segments of about one size are merged into one, T, 4 by default and 2 at least: more of them write less
    /// and slow queries down. Of n pairs, flushed m at a time, each is written at most 1 + log_T(n / m) times. With 2, where
    /// queries are the load, there are two thirds as many segments as with 4, and up to twice as much is merged.
    pub fanout: usize,
    /// How much compaction in the background may write, in bytes a second; `None`, the default, is no limit.
    pub compaction_rate: Option<u64>,
    /// Where the store is: on the real disk by default.
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
    /// When the operating system has it: it survives the end of this process, not a loss of power. What has been
    /// acknowledged like this and is lost was written last: there are no holes.
    #[default]
    Os,
    /// When it is on the disk. Writers that wait at the same time share one sync.
    Sync,
    /// When it is on the disk, after waiting at most so long for other writers to share the sync: for as many as shared the
    /// last one or came while it ran. Who writes alone does not wait for others.
    Group(Duration),
}

/// Least memory for sorting, in bytes: less would all go to the buffers of the files that are merged.
pub(crate) const LEAST_MEMORY: u64 = 16 << 20;
/// What is taken where the machine does not say how much memory it has.
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
        "option `memory` is {bytes} bytes: expected {LEAST_MEMORY} (16 MiB) or more, which the buffers of a sort need. For \
         {bytes} MiB give {bytes}M, or {}",
        u128::from(bytes) << 20
    )))
}

/// The machine's memory in bytes, where Linux tells it.
fn machine_memory() -> Option<u64> {
    let text = crate::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
