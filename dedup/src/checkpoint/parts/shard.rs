//! The share of one of several machines.

use std::str::FromStr;

use simstore::{Error, Result};

/// One of several machines, or runs, that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1.
    pub number: usize,
    /// How many there are.
    pub of: usize,
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let shard = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        });
        shard.ok_or_else(|| Error::BadArgument("expected I/N, such as 1/4".to_owned()))
    }
}

/// How many parts were there, were made, and are left to others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Parts that were there.
    pub found: u64,
    /// Parts that were made.
    pub made: u64,
    /// Parts that are left to other shards.
    pub left: u64,
}
