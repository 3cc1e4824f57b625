//! A simstore store as one of the compared indexes.

use anyhow::{Result, ensure};
use simstore::{BuildOptions, Builder, Match, PlanChoice, Snapshot};
use tempfile::TempDir;

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;

pub(super) struct SimstoreIndex {
    store: Snapshot<u64>,
    ids: bool,
    is_auto: bool,
    // The folder is removed when the index is dropped.
    _folder: TempDir,
}

impl SimstoreIndex {
    pub(super) fn build(fingerprints: SourceIter, options: BuildOptions) -> Result<SimstoreIndex> {
        let folder = tempfile::tempdir()?;
        let (ids, is_auto) = (options.ids, options.plan == PlanChoice::Auto);
        let mut builder = Builder::create(&folder.path().join("store"), options)?;
        for (id, fingerprint) in (0..).zip(fingerprints) {
            builder.insert(fingerprint, id)?;
        }
        Ok(SimstoreIndex { store: builder.finish()?, ids, is_auto, _folder: folder })
    }
}

impl HammingIndex for SimstoreIndex {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(StoreSearcher { store: &self.store, matches: Vec::new() })
    }

    fn id_kind(&self) -> &'static str {
        if self.ids { "yes (u64)" } else { "no" }
    }

    fn chosen_plan(&self) -> Option<String> {
        let plan = || self.store.segments().first().map(|segment| segment.plan().name().to_string());
        self.is_auto.then(plan).flatten()
    }

    fn disk_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.store.stats().bytes))
    }

    fn resident_bytes(&self) -> Option<u64> {
        // All files in the page cache, and the store's anonymous memory.
        let stats = self.store.stats();
        Some(stats.bytes + stats.memory)
    }

    fn warm_up(&self) -> Result<()> {
        let problems = self.store.verify(|error| eprintln!("{error}"));
        ensure!(problems == 0, "the store is damaged");
        Ok(())
    }

    fn count_all(&self, queries: &[u64]) -> usize {
        let matches = self.store.batch_query(queries, self.store.distance());
        matches.expect("a store that was built and verified by this process").len()
    }
}

struct StoreSearcher<'a> {
    store: &'a Snapshot<u64>,
    matches: Vec<Match<u64>>,
}

impl StoreSearcher<'_> {
    fn run_query(&mut self, query: u64) {
        let result = self.store.query_into(query, self.store.distance(), &mut self.matches);
        result.expect("a store that was built and verified by this process");
    }
}

impl Searcher for StoreSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.run_query(query);
        self.matches.len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        self.run_query(query);
        self.matches.iter().map(|item| item.fingerprint).collect()
    }
}
