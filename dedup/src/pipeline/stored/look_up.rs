//! Looking up sketches in stores of similar documents, some documents at a time, so that the matches stay within the memory.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use simstore::batch::BatchMethod;
use simstore::{Error, Result, Snapshot};
use simstore_text::StoredTexts;

use crate::rows::SketchRow;
use simstore_corpus::Step;

/// Documents that are looked up together: first few, then more while they have few matches.
const FIRST: usize = 64;
const MOST: usize = 1 << 12;
/// Bytes of memory for a match: itself, as the store finds it, and sorted.
const BYTES_OF_A_MATCH: u64 = 64;
const LEAST_MATCHES: usize = 1 << 12;

/// A store of similar documents, and the comparison with its texts.
pub(crate) type SimilarStore<'a> = (&'a Snapshot<u64>, &'a StoredTexts);

/// A document, a store, and the id there of a document that may be similar.
pub(crate) type Likely = (u32, (u32, u64));

/// Look-up of documents in stores.
pub(crate) struct LookUp<'a> {
    stores: &'a [SimilarStore<'a>],
    /// Matches of several documents that are in memory, at most.
    limit: usize,
    step: &'a Step<'a>,
}

impl<'a> LookUp<'a> {
    /// Look-up whose matches take about this much memory, unless a single document has more.
    pub(crate) fn new(stores: &'a [SimilarStore<'a>], memory: u64, step: &'a Step<'a>) -> Self {
        let limit = usize::try_from(memory / BYTES_OF_A_MATCH).unwrap_or(usize::MAX).max(LEAST_MATCHES);
        LookUp { stores, limit, step }
    }

    /// Visits the rows of some documents at a time, and their candidates: in order, each once.
    pub(crate) fn visit(
        &self,
        rows: impl Iterator<Item = Result<SketchRow>>,
        mut visitor: impl FnMut(&[SketchRow], &[Likely]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = rows.filter(|row| row.as_ref().map_or(true, |row| row.features > 0)).peekable();
        let (mut count, mut some) = (FIRST, Vec::new());
        loop {
            while some.len() < count
                && let Some(row) = rows.next()
            {
                some.push(row?);
            }
            if some.is_empty() {
                return Ok(());
            }
            count = count.min(some.len());
            match self.candidates(&some[..count])? {
                Some(likely) => {
                    visitor(&some[..count], &likely)?;
                    some.drain(..count);
                    // Few matches, so that twice as many documents have hardly too many.
                    count = if likely.len() < self.limit / 8 { MOST.min(2 * count.max(1)) } else { count };
                }
                // They are taken again, fewer at a time.
                None => count = (count / 2).max(1),
            }
        }
    }

    /// The candidates of some documents; `None` for too many.
    fn candidates(&self, rows: &[SketchRow]) -> Result<Option<Vec<Likely>>> {
        let limit = if rows.len() == 1 { usize::MAX } else { self.limit };
        let likely = Mutex::new(Vec::new());
        for (store, (snapshot, texts)) in (0..).zip(self.stores) {
            for sketch in 0..texts.settings().sketches() {
                self.step.add(0)?;
                let queries: Vec<u64> = rows.iter().map(|row| row.words[sketch]).collect();
                let distance = texts.settings().distance();
                let visited = snapshot.batch_visit(&queries, distance, BatchMethod::Auto, |matches| {
                    let found = matches
                        .iter()
                        .filter_map(|found| Some((rows[found.query].number, (store, found.found.id?))));
                    let mut likely = likely.lock().unwrap_or_else(PoisonError::into_inner);
                    likely.extend(found);
                    match likely.len() > limit {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                });
                match visited {
                    Err(Error::Cancelled) => return Ok(None),
                    visited => visited?,
                }
                self.step.add(queries.len() as u64)?;
            }
        }
        let mut likely = likely.into_inner().unwrap_or_else(PoisonError::into_inner);
        likely.sort_unstable();
        likely.dedup();
        Ok(Some(likely))
    }
}

#[cfg(test)]
mod tests {
    use simstore::{Durability, StoreOptions};
    use simstore_text::{Profile, SimilarDocuments, SimilarSettings, Sketched};

    use super::*;

    /// 300 documents with 200 candidates each.
    #[test]
    fn matches_are_no_more_than_the_memory_holds() {
        let folder = tempfile::tempdir().unwrap();
        let settings = SimilarSettings::new(0.8, 0.95).unwrap();
        let options = StoreOptions { durability: Durability::Os, ..StoreOptions::default() };
        let path = folder.path().join("store");
        let store = SimilarDocuments::open(&path, options, Profile::shingles(), settings).unwrap();
        let text = store.prepare("one two three four five").unwrap().unwrap();
        for id in 0..200 {
            store.insert(&text, id, None).unwrap();
        }
        let snapshot = store.store().snapshot();
        let texts = StoredTexts::new(&snapshot, settings, Profile::shingles()).unwrap();
        let sketched = Sketched::new(&Profile::shingles().feature_set("one two three four five"));
        let rows: Vec<SketchRow> =
            (0..300).map(|at| SketchRow::new(at, sketched.as_ref()).unwrap()).collect();
        let (stores, step) = ([(&snapshot, &texts)], Step::new(&(), "bands looked up"));
        let mut pairs = Vec::new();
        let mut most = 0;
        let visited = LookUp::new(&stores, 0, &step).visit(rows.iter().copied().map(Ok), |rows, likely| {
            assert!(likely.iter().all(|(document, _)| rows.iter().any(|row| row.number == *document)));
            most = most.max(likely.len());
            pairs.extend_from_slice(likely);
            Ok(())
        });
        visited.unwrap();
        assert!(most <= LEAST_MATCHES, "{most} at a time");
        let expected = (0..300).flat_map(|document| (0..200).map(move |id| (document, (0, id))));
        assert!(pairs.into_iter().eq(expected));
    }
}
