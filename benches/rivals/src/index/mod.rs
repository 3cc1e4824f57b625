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

use crate::data::FingerprintSource;
use crate::index_spec::IndexSpec;

/// How many queries a core takes at a time.
const QUERY_CHUNK_LEN: usize = 64;

/// An index of fingerprints, built for one distance.
pub(crate) trait HammingIndex: Sync {
    /// What asks the index; each thread has its own, with its buffers.
    fn searcher(&self) -> Box<dyn Searcher + '_>;

    /// Whether an answer names documents, and how.
    fn id_kind(&self) -> &'static str;

    /// What the index chose where its settings left it a choice.
    fn chosen_plan(&self) -> Option<String> {
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
    fn count_all(&self, queries: &[u64]) -> usize {
        let chunks = queries.par_chunks(QUERY_CHUNK_LEN);
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
pub(crate) fn build(spec: &IndexSpec, source: &FingerprintSource, count: usize, distance: u32) -> Result<Box<dyn HammingIndex>> {
    let fingerprints = source.iter(count)?;
    Ok(match spec {
        IndexSpec::Mih { blocks } => Box::new(mih::Mih::build(fingerprints, *blocks, distance)?),
        IndexSpec::Gaoya { blocks } => Box::new(gaoya::Gaoya::build(source, count, *blocks, distance)?),
        IndexSpec::BkTree => Box::new(bk_tree::BkTree::build(fingerprints, distance)),
        IndexSpec::Scan => Box::new(scan::Scan::build(fingerprints, distance)),
        IndexSpec::Simstore { plan, codec, block_size, ids, resident, span } => {
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
pub(crate) fn estimate_bytes(spec: &IndexSpec, count: usize, distance: u32) -> f64 {
    let count = count as f64;
    match spec {
        IndexSpec::Mih { blocks } => mih::bytes_needed(*blocks, count),
        IndexSpec::Gaoya { blocks } => gaoya::bytes_needed(*blocks, count, distance),
        IndexSpec::BkTree => bk_tree::estimate_bytes(count),
        IndexSpec::Scan => 8.0 * count,
        IndexSpec::Simstore { .. } => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::QuerySets;
    use crate::measure;

    /// Every index finds what the plain loop finds.
    #[test]
    fn nothing_is_missed() {
        let count = 2000;
        for distance in [3, 6] {
            let queries = QuerySets::generate(&FingerprintSource::Random, count, distance, 200).unwrap();
            let truth = measure::brute_force(&FingerprintSource::Random, count, distance, &queries.whole).unwrap();
            assert!(truth.iter().map(|answer| answer.matches.len()).sum::<usize>() >= 100);
            for spec in IndexSpec::defaults(distance) {
                // Too large for a test: two blocks take 4 GiB for any set, gaoya has hundreds of maps.
                let large = distance > 3 && matches!(spec, IndexSpec::Gaoya { .. });
                if large || spec == (IndexSpec::Mih { blocks: 2 }) {
                    continue;
                }
                let index = build(&spec, &FingerprintSource::Random, count, distance).unwrap();
                let recall = measure::recall(&*index, &truth).unwrap();
                assert_eq!((recall, &spec), (1.0, &spec));
                let all: usize = truth.iter().map(|answer| answer.matches.len()).sum();
                assert_eq!((index.count_all(&queries.whole), &spec), (all, &spec));
            }
        }
    }

    #[test]
    fn estimates_grow_with_the_set() {
        for spec in IndexSpec::defaults(3).iter().filter(|spec| !matches!(spec, IndexSpec::Simstore { .. })) {
            let needed = [1_000_000, 100_000_000].map(|count| estimate_bytes(spec, count, 3));
            assert!(needed[0] >= 8e6 && needed[1] >= 8e8 && needed[1] > needed[0], "{spec}: {needed:?}");
        }
    }
}
