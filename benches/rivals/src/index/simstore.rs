//! simstore itself.

use anyhow::{Result, ensure};
use simstore::{BuildOptions, Builder, Match, PlanChoice, Snapshot};
use tempfile::TempDir;

use super::{HammingIndex, Searcher};
use crate::data::SourceIter;

pub(super) struct Simstore {
    store: Snapshot<u64>,
    ids: bool,
    auto: bool,
    // Removed with the index.
    _folder: TempDir,
}

impl Simstore {
    pub(super) fn build(fingerprints: SourceIter, options: BuildOptions) -> Result<Simstore> {
        let folder = tempfile::tempdir()?;
        let (ids, auto) = (options.ids, options.plan == PlanChoice::Auto);
        let mut builder = Builder::create(&folder.path().join("store"), options)?;
        for (id, fingerprint) in (0..).zip(fingerprints) {
            builder.insert(fingerprint, id)?;
        }
        Ok(Simstore { store: builder.finish()?, ids, auto, _folder: folder })
    }
}

impl HammingIndex for Simstore {
    fn searcher(&self) -> Box<dyn Searcher + '_> {
        Box::new(StoreSearcher { store: &self.store, matches: Vec::new() })
    }

    fn id_kind(&self) -> &'static str {
        if self.ids { "yes (u64)" } else { "no" }
    }

    fn chosen_plan(&self) -> Option<String> {
        let plan = || self.store.segments().first().map(|segment| segment.plan().name().to_string());
        self.auto.then(plan).flatten()
    }

    fn disk_bytes(&self) -> Result<Option<u64>> {
        Ok(Some(self.store.stats().bytes))
    }

    fn resident_bytes(&self) -> Option<u64> {
        // All files, in the page cache, and what is beside them.
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
    fn ask(&mut self, query: u64) {
        let answer = self.store.query_into(query, self.store.distance(), &mut self.matches);
        answer.expect("a store that was built and verified by this process");
    }
}

impl Searcher for StoreSearcher<'_> {
    fn count(&mut self, query: u64) -> usize {
        self.ask(query);
        self.matches.len()
    }

    fn matches(&mut self, query: u64) -> Vec<u64> {
        self.ask(query);
        self.matches.iter().map(|found| found.fingerprint).collect()
    }
}
