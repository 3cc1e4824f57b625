//! How a store is built.

use std::fmt;
use std::sync::Arc;

use crate::codec::Codec;
use crate::fs::{Disk, Fs};
use crate::plan::PlanChoice;

/// Which bits of the fingerprints the prefixes of a plan's tables get.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BitAssignment {
    /// Those that suit a sample of the fingerprints, where prefixes of contiguous bits would be shared by many more
    /// than others.
    #[default]
    Sampled,
    /// Blocks of contiguous bits, as [`crate::plan::Plan::named`] has them.
    Contiguous,
}

/// How far a build has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BuildProgress {
    /// Fingerprints written so far, over all tables.
    pub done: u64,
    /// Fingerprints to be written, over all tables.
    pub total: u64,
}

/// Called from the threads that write tables, every few million fingerprints.
pub type ProgressCallback = Arc<dyn Fn(BuildProgress) + Send + Sync>;

/// The settings of a build.
///
/// ```
/// use simstore::{BuildOptions, Codec};
///
/// let options = BuildOptions { distance: 6, codec: Codec::Gap, ..BuildOptions::default() };
/// ```
#[derive(Clone)]
pub struct BuildOptions {
    /// The largest distance that queries will ask for, in bits; 3 by default.
    pub distance: u32,
    /// How tables are coded; `first-difference` by default.
    pub codec: Codec,
    /// Which tables are kept.
    pub plan: PlanChoice,
    /// Which bits their prefixes get.
    pub bits: BitAssignment,
    /// Block size in bytes, a power of two from 256 to 65536; `None` is the codec's default.
    pub block_size: Option<u32>,
    /// Fingerprints from one restart point to the next in the Huffman codecs, 1 to 256; `None` is 64. Fewer make
    /// look-ups shorter and tables larger: 16 take about a third off the time and add some 2%.
    pub span: Option<u16>,
    /// Memory for sorting, in bytes; beyond it, sorted runs go to temporary files in the store's folder.
    /// `None` is a quarter of the machine's memory.
    pub memory: Option<u64>,
    /// Whether ids are stored; a store without them takes no bytes for them.
    pub ids: bool,
    /// Replace a store that exists. It stays as it is until the new one is complete.
    pub replace: bool,
    /// How the documents' texts became fingerprints: kept with the store, and handed back.
    pub profile: String,
    /// Told how far the build is.
    pub progress: Option<ProgressCallback>,
    /// Where the store is written: the real disk by default.
    pub fs: Arc<dyn Fs>,
}

impl Default for BuildOptions {
    fn default() -> Self {
        BuildOptions {
            distance: 3,
            codec: Codec::default(),
            plan: PlanChoice::Auto,
            bits: BitAssignment::default(),
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

impl fmt::Debug for BuildOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuildOptions")
            .field("distance", &self.distance)
            .field("codec", &self.codec)
            .field("plan", &self.plan)
            .field("bits", &self.bits)
            .field("block_size", &self.block_size)
            .field("span", &self.span)
            .field("memory", &self.memory)
            .field("ids", &self.ids)
            .field("replace", &self.replace)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// How a store is opened to be written to, and the settings of one that is made.
///
/// Settings of the store that are not asked for are those that it has, or the defaults for a new one; one that is asked
/// for and is not the store's is an error.
///
/// ```
/// use simstore::{Codec, Options};
///
/// let options = Options::default().distance(3).codec(Codec::EliasFano).memtable(256 << 20);
/// ```
#[derive(Clone)]
pub struct Options {
    pub(crate) create: bool,
    pub(crate) distance: Option<u32>,
    pub(crate) codec: Option<Codec>,
    pub(crate) plan: Option<PlanChoice>,
    pub(crate) ids: Option<bool>,
    pub(crate) block_size: Option<u32>,
    pub(crate) span: Option<u16>,
    pub(crate) profile: Option<String>,
    pub(crate) memtable: u64,
    pub(crate) memory: Option<u64>,
    pub(crate) compaction: bool,
    pub(crate) fanout: usize,
    pub(crate) compaction_rate: Option<u64>,
    pub(crate) fs: Arc<dyn Fs>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            create: true,
            distance: None,
            codec: None,
            plan: None,
            ids: None,
            block_size: None,
            span: None,
            profile: None,
            memtable: 64 << 20,
            memory: None,
            compaction: true,
            fanout: 4,
            compaction_rate: None,
            fs: Arc::new(Disk::default()),
        }
    }
}

impl Options {
    /// Whether a store is made where there is none; it is by default.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// The largest distance that queries will ask for, in bits; 3 for a new store.
    pub fn distance(mut self, distance: u32) -> Self {
        self.distance = Some(distance);
        self
    }

    /// How tables are coded; `first-difference` for a new store.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = Some(codec);
        self
    }

    /// Which tables each segment gets; for a new store what suits the segment's size.
    pub fn plan(mut self, plan: PlanChoice) -> Self {
        self.plan = Some(plan);
        self
    }

    /// Whether ids are kept; they are in a new store. Where they are not, all ids count as one.
    pub fn ids(mut self, ids: bool) -> Self {
        self.ids = Some(ids);
        self
    }

    /// Bytes of a block, see [`BuildOptions::block_size`].
    pub fn block_size(mut self, bytes: u32) -> Self {
        self.block_size = Some(bytes);
        self
    }

    /// Fingerprints from one restart point to the next, see [`BuildOptions::span`].
    pub fn span(mut self, span: u16) -> Self {
        self.span = Some(span);
        self
    }

    /// How texts become fingerprints: kept with the store.
    pub fn profile(mut self, profile: &str) -> Self {
        self.profile = Some(profile.to_string());
        self
    }

    /// Memory for what is not in segments yet, in bytes, 64 MiB by default: at this size it becomes a segment, while
    /// writing goes on into another one; there are three at most.
    pub fn memtable(mut self, bytes: u64) -> Self {
        self.memtable = bytes;
        self
    }

    /// Memory for sorting when segments are written, see [`BuildOptions::memory`](field@BuildOptions::memory).
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Whether segments are merged in the background; they are by default.
    pub fn compaction(mut self, automatic: bool) -> Self {
        self.compaction = automatic;
        self
    }

    /// How many segments of about one size are merged into one, 4 by default and 2 at least: more of them write less
    /// and slow queries down.
    pub fn fanout(mut self, segments: usize) -> Self {
        self.fanout = segments.max(2);
        self
    }

    /// How much compaction in the background may write, in bytes a second; not limited by default.
    pub fn compaction_rate(mut self, bytes_per_second: u64) -> Self {
        self.compaction_rate = Some(bytes_per_second.max(1));
        self
    }

    /// Where the store is: on the real disk by default.
    pub fn fs(mut self, fs: Arc<dyn Fs>) -> Self {
        self.fs = fs;
        self
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("create", &self.create)
            .field("distance", &self.distance)
            .field("codec", &self.codec)
            .field("plan", &self.plan)
            .field("ids", &self.ids)
            .field("profile", &self.profile)
            .field("memtable", &self.memtable)
            .field("compaction", &self.compaction)
            .field("fanout", &self.fanout)
            .finish_non_exhaustive()
    }
}

/// Less memory than this would make more runs than files can be open.
const LEAST_MEMORY: u64 = 16 << 20;
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

/// The machine's memory in bytes, where Linux tells it.
fn machine_memory() -> Option<u64> {
    let text = crate::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}
