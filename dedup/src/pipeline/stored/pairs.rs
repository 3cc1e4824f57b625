//! Comparing documents with stored ones: a stored document is read, and its text unpacked, once for all pairs that are compared together.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{Estimate, EstimateLimit, Sketched, StoredDocument, jaccard_from};

use crate::pipeline::stored::look_up::{Likely, SimilarStore};
use simstore_corpus::Step;

/// Stored documents that are read together.
pub(crate) const READ: usize = 64;

/// Documents that are compared, by their numbers.
pub(crate) struct Asked<'a> {
    pub(crate) sketched: &'a dyn Fn(u32) -> Result<Sketched>,
    /// Features, ascending; asked for where stored texts decide.
    pub(crate) features: &'a dyn Fn(u32) -> Result<Vec<u64>>,
}

/// A document and a similar stored one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Match {
    pub(crate) document: u32,
    /// The number of the store among those that are compared with.
    pub(crate) store: u32,
    pub(crate) id: u64,
    pub(crate) estimate: Estimate,
}

/// A similar pair, and the bits in which its sketches differ.
type Similar = (Match, u32);

/// The similar pairs among some candidates, in order of documents: for each the most similar stored document first; of equally
/// similar ones, the one of the first store, and with the smallest id. `likely` has all candidates of its documents, in order.
///
/// Without texts, estimates count within the [limit](EstimateLimit) for all candidates of the document. Features of documents take about
/// this much memory.
pub(crate) fn compare(
    stores: &[SimilarStore<'_>],
    likely: &[Likely],
    asked: &Asked<'_>,
    least: f64,
    memory: u64,
    step: &Step<'_>,
) -> Result<Vec<Match>> {
    let has_texts = |store: u32| stores[store as usize].1.settings().has_texts();
    let mut matches = Vec::new();
    let mut documents = likely.chunk_by(|a, b| a.0 == b.0).peekable();
    while documents.peek().is_some() {
        let (mut texts, mut pairs, mut bytes) = (HashMap::new(), Vec::new(), 0);
        while bytes < memory
            && let Some(of_document) = documents.next()
        {
            let (document, _) = of_document[0];
            let features = match of_document.iter().any(|&(_, (store, _))| has_texts(store)) {
                true => (asked.features)(document)?,
                false => Vec::new(),
            };
            bytes += 8 * features.len() as u64;
            texts.insert(document, Text { sketched: (asked.sketched)(document)?, features });
            pairs.extend(of_document.iter().map(|&(document, stored)| (stored, document)));
        }
        step.add(texts.len() as u64)?;
        pairs.sort_unstable();
        let mut some = Comparing { stores, texts: &texts, least, similar: Vec::new(), near: HashMap::new() };
        for of_store in pairs.chunk_by(|((a, _), _), ((b, _), _)| a == b) {
            some.compare(of_store, step)?;
        }
        matches.extend(some.matches());
    }
    Ok(matches)
}

/// A document that is compared.
struct Text {
    sketched: Sketched,
    features: Vec<u64>,
}

/// Pairs that are compared together.
struct Comparing<'a> {
    stores: &'a [SimilarStore<'a>],
    texts: &'a HashMap<u32, Text>,
    least: f64,
    similar: Vec<Similar>,
    /// Number of candidates of each document that are near the threshold by an estimate.
    near: HashMap<u32, u64>,
}

impl Comparing<'_> {
    /// Compares the pairs of one store, in order of the stored documents.
    fn compare(&mut self, pairs: &[((u32, u64), u32)], step: &Step<'_>) -> Result<()> {
        let of_stored: Vec<&[((u32, u64), u32)]> = pairs.chunk_by(|a, b| a.0 == b.0).collect();
        for some in of_stored.chunks(READ) {
            step.add(0)?;
            let store = some[0][0].0.0;
            let ids: Vec<u64> = some.iter().map(|pairs| pairs[0].0.1).collect();
            let (snapshot, texts) = self.stores[store as usize];
            // Deleted documents are missing.
            let stored = texts.documents(snapshot, &ids)?;
            let compared = stored.par_iter().map(|stored| {
                let at = some.partition_point(|pairs| pairs[0].0.1 < stored.id);
                self.compare_one(store, stored, some[at])
            });
            for (similar, near) in compared.collect::<Result<Vec<_>>>()? {
                self.similar.extend(similar);
                near.into_iter().for_each(|document| *self.near.entry(document).or_default() += 1);
            }
        }
        Ok(())
    }

    /// Compares a stored document: its similar pairs, and documents that are near the threshold by an estimate.
    fn compare_one(
        &self,
        store: u32,
        stored: &StoredDocument,
        pairs: &[((u32, u64), u32)],
    ) -> Result<(Vec<Similar>, Vec<u32>)> {
        let (snapshot, texts) = self.stores[store as usize];
        let (mut similar, mut near, mut of_stored) = (Vec::new(), Vec::new(), None::<Vec<u64>>);
        for &(_, document) in pairs {
            let Text { sketched, features } = &self.texts[&document];
            let estimate = match texts.by_sketches(stored, sketched) {
                Some(estimate) => Some(estimate),
                None if !texts.compares(stored, sketched) => None,
                None => {
                    let of_stored = match &mut of_stored {
                        Some(of_stored) => of_stored,
                        none => none.insert(texts.features(snapshot, stored)?),
                    };
                    jaccard_from(of_stored, features, self.least).map(Estimate::exact)
                }
            };
            if !texts.settings().has_texts() && stored.sketched.is_near(sketched, self.least) {
                near.push(document);
            }
            if let Some(estimate) = estimate.filter(|estimate| estimate.similarity >= self.least) {
                let found = Match { document, store, id: stored.id, estimate };
                similar.push((found, stored.sketched.distance(sketched)));
            }
        }
        Ok((similar, near))
    }

    /// The matches that count.
    fn matches(self) -> impl Iterator<Item = Match> {
        let Comparing { least, mut similar, near, .. } = self;
        similar.sort_by(|(a, _), (b, _)| {
            let by_similarity = b.estimate.similarity.total_cmp(&a.estimate.similarity);
            a.document.cmp(&b.document).then(by_similarity).then((a.store, a.id).cmp(&(b.store, b.id)))
        });
        let mut limit: Option<(u32, EstimateLimit)> = None;
        similar.into_iter().filter_map(move |(found, bits)| {
            let (document, estimate) = (found.document, found.estimate);
            let (_, limit) = match &limit {
                Some(known) if known.0 == document => *known,
                _ => {
                    let candidates = near.get(&document).copied().unwrap_or_default();
                    *limit.insert((document, EstimateLimit::new(least, candidates)))
                }
            };
            limit.counts(estimate, bits).then_some(found)
        })
    }
}
