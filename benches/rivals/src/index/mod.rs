//! The compared indexes, all behind the trait [`HammingIndex`].

mod bk_tree;
mod block_maps;
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

/// Number of queries in a chunk. Each thread answers one chunk at a time.
const QUERY_CHUNK_LEN: usize = 64;

/// Index that finds the fingerprints within a distance of a query. The distance is fixed when the index is built.
pub(crate) trait HammingIndex: Sync {
    /// Creates a searcher with its own buffers. Each thread needs one.
    fn searcher(&self) -> Box<dyn Searcher + '_>;

    /// Returns the text of the column "ids counted?": whether the index stores an id for each fingerprint, and the
    /// type of the ids.
    fn id_kind(&self) -> &'static str;

    /// Returns the name of the plan that simstore chose, if the [`IndexSpec`] leaves the choice to it with the plan `auto`.
    /// Otherwise returns `None`.
    fn chosen_plan(&self) -> Option<String> {
        None
    }

    /// Returns the size of the index on disk in bytes; `None` if the index cannot be stored on disk.
    fn disk_bytes(&self) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Returns the memory in bytes that an index with memory-mapped files takes if all its files are in the page cache.
    /// Returns `None` if the index maps no files; the caller then measures the anonymous memory of the process.
    fn resident_bytes(&self) -> Option<u64> {
        None
    }

    /// Loads the files of the index into memory.
    fn warm_up(&self) -> Result<()> {
        Ok(())
    }

    /// Runs all queries on all cores, and returns the number of matches. By default, each query runs alone; an
    /// index with batch queries overrides this.
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

/// Runs queries of an index one by one.
pub(crate) trait Searcher {
    /// Returns the number of fingerprints that match the query. Uses the fastest method of the index, because this call
    /// is timed.
    fn count(&mut self, query: u64) -> usize;

    /// Returns the fingerprints that match the query, in any order. The recall is computed from them.
    fn matches(&mut self, query: u64) -> Vec<u64>;
}

/// Builds the index `spec` from the first `count` fingerprints of the source, for queries within `distance` bits.
pub(crate) fn build(
    spec: &IndexSpec,
    source: &FingerprintSource,
    count: usize,
    distance: u32,
) -> Result<Box<dyn HammingIndex>> {
    let fingerprints = source.iter(count)?;
    Ok(match spec {
        IndexSpec::Mih { blocks } => Box::new(mih::Mih::build(fingerprints, *blocks, distance)?),
        IndexSpec::Gaoya { blocks } => Box::new(gaoya::Gaoya::build(source, count, *blocks, distance)?),
        IndexSpec::BlockMaps { blocks } => {
            Box::new(block_maps::BlockMaps::build(fingerprints, *blocks, distance)?)
        }
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
            Box::new(simstore::SimstoreIndex::build(fingerprints, options)?)
        }
    })
}

/// Estimates the memory of a build in bytes, so that builds that do not fit in memory are skipped. Returns 0 for a
/// store, whose build has a fixed memory limit.
pub(crate) fn estimate_bytes(spec: &IndexSpec, count: usize, distance: u32) -> f64 {
    let count = count as f64;
    match spec {
        IndexSpec::Mih { blocks } => mih::estimate_bytes(*blocks, count),
        IndexSpec::Gaoya { blocks } => gaoya::estimate_bytes(*blocks, count, distance),
        IndexSpec::BlockMaps { blocks } => block_maps::estimate_bytes(*blocks, count),
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

    /// Every index finds the same matches as brute force.
    #[test]
    fn nothing_is_missed() {
        let count = 2000;
        for distance in [3, 6] {
            let queries = QuerySets::generate(&FingerprintSource::Random, count, distance, 200).unwrap();
            let truth =
                measure::brute_force(&FingerprintSource::Random, count, distance, &queries.whole).unwrap();
            assert!(truth.iter().map(|expected| expected.matches.len()).sum::<usize>() >= 100);
            for spec in IndexSpec::defaults(distance) {
                // Too large for a test: mih-rs with two blocks takes 4 GiB for any set, gaoya has hundreds of maps.
                let is_large = distance > 3 && matches!(spec, IndexSpec::Gaoya { .. });
                if is_large || spec == (IndexSpec::Mih { blocks: 2 }) {
                    continue;
                }
                let index = build(&spec, &FingerprintSource::Random, count, distance).unwrap();
                let recall = measure::recall(&*index, &truth).unwrap();
                assert_eq!((recall, &spec), (1.0, &spec));
                let all: usize = truth.iter().map(|expected| expected.matches.len()).sum();
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
