//! The indexes, behind one trait.

mod bk_tree;
mod gaoya;
mod mih;
mod scan;
mod simstore;

use std::sync::Arc;

use ::simstore::fs::Disk;
use anyhow::Result;
use rayon::prelude::*;

use crate::data::Source;
use crate::spec::Spec;

/// How many queries a core takes at a time.
const BATCH: usize = 64;

/// An index of fingerprints, built for one distance.
pub(crate) trait Index: Sync {
    /// What asks the index; each thread has its own, with its buffers.
    fn searcher(&self) -> Box<dyn Searcher + '_>;

    /// Whether an answer names documents, and how.
    fn ids(&self) -> &'static str;

    /// What the index chose where its settings left it a choice.
    fn choice(&self) -> Option<String> {
        None
    }

    /// Bytes on disk; `None` if it cannot be kept there.
    fn disk_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Bytes that have to be in memory for full speed; `None` if they are the process's own memory.
    fn resident_bytes(&self) -> Option<u64> {
        None
    }

    /// Brings everything into memory.
    fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Asks all queries on all cores, and returns the number of matches. An index with a better way to be
    /// asked many queries at once than one by one has its own.
    fn batch(&self, queries: &[u64]) -> usize {
        let chunks = queries.par_chunks(BATCH);
        chunks
            .map_init(
                || self.searcher(),
                |searcher, queries| queries.iter().map(|&query| searcher.count(query)).sum::<usize>(),
            )
            .sum()
    }
}

/// Asks an index, one query after the other.
pub(crate) trait Searcher {
    /// The number of matches, found in the way that the index offers for speed: this is what is timed.
    fn count(&mut self, query: u64) -> usize;

    /// The fingerprints that match, in any order, for the comparison with the plain loop.
    fn matches(&mut self, query: u64) -> Vec<u64>;
}

/// Builds an index.
pub(crate) fn build(spec: &Spec, source: &Source, count: usize, distance: u32) -> Result<Box<dyn Index>> {
    let fingerprints = source.iter(count)?;
    Ok(match spec {
        Spec::Mih { blocks } => Box::new(mih::Mih::build(fingerprints, *blocks, distance)?),
        Spec::Gaoya { blocks } => Box::new(gaoya::Gaoya::build(source, count, *blocks, distance)?),
        Spec::BkTree => Box::new(bk_tree::BkTree::build(fingerprints, distance)),
        Spec::Scan => Box::new(scan::Scan::build(fingerprints, distance)),
        Spec::Simstore { plan, codec, block_size, ids, resident, span } => {
            let options = ::simstore::BuildOptions {
                distance,
                codec: *codec,
                plan: plan.parse()?,
                block_size: *block_size,
                span: *span,
                ids: *ids,
                fs: Arc::new(if *resident { Disk::resident() } else { Disk::default() }),
                ..::simstore::BuildOptions::default()
            };
            Box::new(simstore::Simstore::build(fingerprints, options)?)
        }
    })
}

/// About how many bytes of memory building takes, so that what cannot be built is not tried. Zero where it is
/// bounded.
pub(crate) fn bytes_needed(spec: &Spec, count: usize, distance: u32) -> f64 {
    let count = count as f64;
    match spec {
        Spec::Mih { blocks } => mih::bytes_needed(*blocks, count),
        Spec::Gaoya { blocks } => gaoya::bytes_needed(*blocks, count, distance),
        Spec::BkTree => bk_tree::bytes_needed(count),
        Spec::Scan => 8.0 * count,
        Spec::Simstore { .. } => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Queries;
    use crate::measure;

    /// Every index finds what the plain loop finds.
    #[test]
    fn nothing_is_missed() {
        let count = 2000;
        for distance in [3, 6] {
            let queries = Queries::generate(&Source::Random, count, distance, 200).unwrap();
            let truth = measure::plain_loop(&Source::Random, count, distance, &queries.whole).unwrap();
            assert!(truth.iter().map(|answer| answer.matches.len()).sum::<usize>() >= 100);
            for spec in Spec::defaults(distance) {
                // Too large for a test: two blocks take 4 GiB for any set, gaoya has hundreds of maps.
                let large = distance > 3 && matches!(spec, Spec::Gaoya { .. });
                if large || spec == (Spec::Mih { blocks: 2 }) {
                    continue;
                }
                let index = build(&spec, &Source::Random, count, distance).unwrap();
                let recall = measure::recall(&*index, &truth).unwrap();
                assert_eq!((recall, &spec), (1.0, &spec));
                let all: usize = truth.iter().map(|answer| answer.matches.len()).sum();
                assert_eq!((index.batch(&queries.whole), &spec), (all, &spec));
            }
        }
    }

    #[test]
    fn estimates_grow_with_the_set() {
        for spec in Spec::defaults(3).iter().filter(|spec| !matches!(spec, Spec::Simstore { .. })) {
            let needed = [1_000_000, 100_000_000].map(|count| bytes_needed(spec, count, 3));
            assert!(needed[0] >= 8e6 && needed[1] >= 8e8 && needed[1] > needed[0], "{spec}: {needed:?}");
        }
    }
}
