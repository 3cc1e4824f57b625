//! Looks up the bands of input documents in stores of similar documents. The number of documents in one look-up is
//! adapted, so that the matches of the look-up fit in memory.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use simstore::batch::BatchMethod;
use simstore::{Error, Result, Snapshot};
use simstore_text::DocumentComparer;

use crate::rows::SignatureRow;
use simstore_corpus::Stage;

/// Number of documents in the first look-up. The number doubles from look-up to look-up as long as there are few
/// matches.
const FIRST_BATCH: usize = 64;
/// Maximum number of documents in one look-up.
const MAX_BATCH: usize = 1 << 12;
/// Memory per match (a stored band near a band of an input document), in bytes. It covers the match that the store
/// returns, and the candidate made from this match.
const MATCH_BYTES: u64 = 64;
/// Least value of [`CandidateLookup::max_matches`], even if so many matches take more memory than the look-up may use.
const MIN_MATCHES: usize = 1 << 12;

/// Store of similar documents, and the comparer that computes similarities to its documents.
pub(crate) type SimilarStoreRef<'a> = (&'a Snapshot<u64>, &'a DocumentComparer);

/// Input document and a stored document that may be similar: (document, (store, id)).
pub(crate) type StoredCandidate = (u32, (u32, u64));

/// Search for the candidates of input documents in stores. A candidate of an input document is a stored document with a
/// band near one of the input document's bands.
pub(crate) struct CandidateLookup<'a> {
    stores: &'a [SimilarStoreRef<'a>],
    /// Maximum number of matches of a look-up. A look-up with more matches is repeated with fewer documents. A
    /// look-up of a single document may have any number of matches.
    max_matches: usize,
    stage: &'a Stage<'a>,
}

impl<'a> CandidateLookup<'a> {
    /// Creates the search. Its look-ups are so small that their matches take about `memory` bytes or less, but the
    /// matches of a single document may take more.
    pub(crate) fn new(stores: &'a [SimilarStoreRef<'a>], memory: u64, stage: &'a Stage<'a>) -> Self {
        let max_matches = usize::try_from(memory / MATCH_BYTES).unwrap_or(usize::MAX).max(MIN_MATCHES);
        CandidateLookup { stores, max_matches, stage }
    }

    /// Looks up the documents in `rows`, in batches. `visitor` gets the documents of each batch, and all their
    /// candidates, sorted and without repetitions. Documents without features are skipped.
    pub(crate) fn visit(
        &self,
        rows: impl Iterator<Item = Result<SignatureRow>>,
        mut visitor: impl FnMut(&[SignatureRow], &[StoredCandidate]) -> Result<()>,
    ) -> Result<()> {
        let mut rows = rows.filter(|row| row.as_ref().map_or(true, |row| row.features > 0)).peekable();
        let (mut count, mut batch) = (FIRST_BATCH, Vec::new());
        loop {
            while batch.len() < count
                && let Some(row) = rows.next()
            {
                batch.push(row?);
            }
            if batch.is_empty() {
                return Ok(());
            }
            count = count.min(batch.len());
            match self.look_up(&batch[..count])? {
                Some(candidates) => {
                    visitor(&batch[..count], &candidates)?;
                    batch.drain(..count);
                    // If there are few matches, twice the number of documents hardly has too many.
                    count = if candidates.len() < self.max_matches / 8 {
                        MAX_BATCH.min(2 * count.max(1))
                    } else {
                        count
                    };
                }
                // Too many matches: repeat with half of the documents.
                None => count = (count / 2).max(1),
            }
        }
    }

    /// Returns the candidates of the documents in `rows`. Returns `None` if there are more than
    /// [`max_matches`](Self::max_matches) matches, unless `rows` is a single document.
    fn look_up(&self, rows: &[SignatureRow]) -> Result<Option<Vec<StoredCandidate>>> {
        let limit = if rows.len() == 1 { usize::MAX } else { self.max_matches };
        let candidates = Mutex::new(Vec::new());
        for (store, (snapshot, texts)) in (0..).zip(self.stores) {
            for band in 0..texts.settings().bands() {
                self.stage.add(0)?;
                let queries: Vec<u64> = rows.iter().map(|row| row.bands[band]).collect();
                let distance = texts.settings().band_distance();
                let visited = snapshot.batch_visit(&queries, distance, BatchMethod::Auto, |matches| {
                    let found = matches
                        .iter()
                        .filter_map(|found| Some((rows[found.query].document, (store, found.found.id?))));
                    let mut candidates = candidates.lock().unwrap_or_else(PoisonError::into_inner);
                    candidates.extend(found);
                    match candidates.len() > limit {
                        true => ControlFlow::Break(()),
                        false => ControlFlow::Continue(()),
                    }
                });
                match visited {
                    Err(Error::Cancelled) => return Ok(None),
                    visited => visited?,
                }
                self.stage.add(queries.len() as u64)?;
            }
        }
        let mut candidates = candidates.into_inner().unwrap_or_else(PoisonError::into_inner);
        candidates.sort_unstable();
        candidates.dedup();
        Ok(Some(candidates))
    }
}

#[cfg(test)]
mod tests {
    use simstore::{Durability, StoreOptions};
    use simstore_text::{Profile, Signature, SimilarDocuments, SimilarSettings};

    use super::*;

    /// Each of 300 documents has 200 candidates. All candidates are visited, and no call of the visitor gets more
    /// than the memory allows.
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
        let texts = DocumentComparer::new(&snapshot, settings, Profile::shingles()).unwrap();
        let signature = Signature::new(&Profile::shingles().feature_set("one two three four five"));
        let rows: Vec<SignatureRow> =
            (0..300).map(|at| SignatureRow::new(at, signature.as_ref()).unwrap()).collect();
        let (stores, stage) = ([(&snapshot, &texts)], Stage::new(&(), "bands looked up"));
        let mut pairs = Vec::new();
        let mut max_matches = 0;
        let visited = CandidateLookup::new(&stores, 0, &stage).visit(
            rows.iter().copied().map(Ok),
            |rows, candidates| {
                assert!(
                    candidates.iter().all(|(document, _)| rows.iter().any(|row| row.document == *document))
                );
                max_matches = max_matches.max(candidates.len());
                pairs.extend_from_slice(candidates);
                Ok(())
            },
        );
        visited.unwrap();
        assert!(max_matches <= MIN_MATCHES, "{max_matches} at a time");
        let expected = (0..300).flat_map(|document| (0..200).map(move |id| (document, (0, id))));
        assert!(pairs.into_iter().eq(expected));
    }
}
