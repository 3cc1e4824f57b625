//! Shards: the share of one machine in the work of a run.

use std::str::FromStr;

use simstore::{Error, Result};

/// Share of the work of a run for one of several machines. Parsed from a text `I/N`: shard `I` of `N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkShard {
    /// Sequence number of the shard, from 1 to `count`.
    pub number: usize,
    /// Number of shards.
    pub count: usize,
}

impl FromStr for WorkShard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let shard = text.split_once('/').and_then(|(number, of)| {
            let shard = WorkShard { number: number.parse().ok()?, count: of.parse().ok()? };
            (1..=shard.count).contains(&shard.number).then_some(shard)
        });
        shard.ok_or_else(|| Error::BadArgument("expected I/N, such as 1/4".to_owned()))
    }
}

/// Counts of the part files of a run: reused, made, and left to other shards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PartCounts {
    /// Number of part files that existed already.
    pub reused: u64,
    /// Number of part files that this run made.
    pub made: u64,
    /// Number of missing part files that belong to other shards.
    pub left_to_others: u64,
}
