//! How a store is built.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fs::{Disk, Fs};

/// Which plan a segment gets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum PlanChoice {
    /// The one that [`crate::plan::choose`] takes for the segment's size.
    #[default]
    Auto,
    /// One of [`crate::plan::names`].
    Named(String),
}

impl fmt::Display for PlanChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PlanChoice::Auto => "auto",
            PlanChoice::Named(name) => name,
        })
    }
}

impl FromStr for PlanChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<PlanChoice> {
        Ok(if name == "auto" { PlanChoice::Auto } else { PlanChoice::Named(name.to_string()) })
    }
}

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
