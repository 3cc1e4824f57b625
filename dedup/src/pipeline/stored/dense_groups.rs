//! Comparing documents that have many candidates in stores, such as pages of a template that a store has thousands of pages of.
//!
//! Their pairs are too many to be listed. Instead, some documents are compared with all their candidates together: a stored document is
//! read, and its text unpacked, once for all of them. Sketches tell the documents that it is a candidate of, and bitmaps reject most pairs
//! that are not similar, so that few features are compared.

use rayon::prelude::*;
use simstore::Result;
use simstore::processor::{Work, dispatch};
use simstore_text::{
    Estimate, EstimateLimit, SKETCHES, SketchSearch, Sketched, StoredDocument, jaccard_from,
};

use crate::pipeline::candidate_rule::Rule;
use crate::pipeline::feature_bitmaps::Bitmap;
use crate::pipeline::stored::look_up::{Likely, SimilarStore};
use crate::pipeline::stored::pairs::{Match, READ};
use crate::rows::SketchRow;
use simstore_corpus::Step;

/// Bytes of memory for a document, besides its features and their bitmap, and for a stored one.
const BYTES_OF_A_TEXT: u64 = 256;
const BYTES_OF_A_CANDIDATE: u64 = 16;

/// Documents that are compared together.
pub(crate) struct DenseComparison<'a> {
    stores: &'a [SimilarStore<'a>],
    least: f64,
    /// Whether to find all similar stored documents of a document, and not only the most similar one.
    with_all: bool,
    texts: Vec<Text>,
    words: Vec<[u64; SKETCHES]>,
    /// Stored documents that are candidates of any document, ascending.
    candidates: Vec<(u32, u64)>,
    bytes: u64,
}

/// A document.
struct Text {
    document: u32,
    sketched: Sketched,
    features: Vec<u64>,
    bitmap: Bitmap,
    /// Candidates that are near the threshold by an estimate, and the limit that follows.
    near: u64,
    limit: EstimateLimit,
    most_similar: Option<Match>,
}

impl<'a> DenseComparison<'a> {
    pub(crate) fn new(stores: &'a [SimilarStore<'a>], least: f64, with_all: bool) -> Self {
        let (texts, words, candidates) = (Vec::new(), Vec::new(), Vec::new());
        DenseComparison { stores, least, with_all, texts, words, candidates, bytes: 0 }
    }

    /// Adds documents, and all their candidates. `features` has the features of a document, ascending.
    pub(crate) fn add(
        &mut self,
        rows: &[SketchRow],
        likely: &[Likely],
        features: impl Fn(u32) -> Result<Vec<u64>>,
    ) -> Result<()> {
        let are_compared = self.stores.iter().any(|(_, texts)| texts.settings().has_texts());
        for row in rows {
            let features = if are_compared { features(row.number)? } else { Vec::new() };
            self.bytes += BYTES_OF_A_TEXT + Bitmap::BYTES + 8 * features.len() as u64;
            self.words.push(row.words);
            self.texts.push(Text {
                document: row.number,
                sketched: row.sketched(),
                bitmap: Bitmap::new(&features),
                features,
                near: 0,
                limit: EstimateLimit::new(self.least, 0),
                most_similar: None,
            });
        }
        let before = self.candidates.len();
        self.candidates.extend(likely.iter().map(|&(_, stored)| stored));
        // A stable sort merges the candidates that were sorted before.
        self.candidates.sort();
        self.candidates.dedup();
        self.bytes += BYTES_OF_A_CANDIDATE * (self.candidates.len() - before) as u64;
        Ok(())
    }

    /// Bytes of memory that the documents take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Visits the similar pairs of the documents, each once, or the most similar stored document of each; and forgets the documents.
    ///
    /// Without texts, estimates count within the [limit](EstimateLimit) for all candidates of the document.
    pub(crate) fn compare(
        &mut self,
        step: &Step<'_>,
        mut visitor: impl FnMut(Match) -> Result<()>,
    ) -> Result<()> {
        step.add(self.texts.len() as u64)?;
        let candidates = std::mem::take(&mut self.candidates);
        let of_stores = || candidates.chunk_by(|(a, _), (b, _)| a == b);
        let stores = self.stores;
        let lacks_texts = |some: &&[(u32, u64)]| !stores[some[0].0 as usize].1.settings().has_texts();
        for some in of_stores().filter(lacks_texts).flat_map(|some| some.chunks(READ)) {
            step.add(0)?;
            let near = |stored: &StoredDocument| self.near(some[0].0, stored);
            for near in self.read(some)?.par_iter().map(near).collect::<Vec<_>>() {
                near.into_iter().for_each(|at| self.texts[at].near += 1);
            }
        }
        for text in &mut self.texts {
            text.limit = EstimateLimit::new(self.least, text.near);
        }
        for some in of_stores().flat_map(|some| some.chunks(READ)) {
            step.add(0)?;
            let similar = |stored: &StoredDocument| self.similar(some[0].0, stored);
            let similar: Vec<Vec<(usize, Match)>> =
                self.read(some)?.par_iter().map(similar).collect::<Result<_>>()?;
            for (at, found) in similar.into_iter().flatten() {
                if self.with_all {
                    visitor(found)?;
                    continue;
                }
                // Of equally similar ones, the first.
                let most_similar = &mut self.texts[at].most_similar;
                if most_similar.is_none_or(|most| found.estimate.similarity > most.estimate.similarity) {
                    *most_similar = Some(found);
                }
            }
        }
        self.texts.drain(..).filter_map(|text| text.most_similar).try_for_each(visitor)?;
        self.words.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Reads stored documents of one store, without deleted ones.
    fn read(&self, some: &[(u32, u64)]) -> Result<Vec<StoredDocument>> {
        let ids: Vec<u64> = some.iter().map(|&(_, id)| id).collect();
        let (snapshot, texts) = self.stores[some[0].0 as usize];
        texts.documents(snapshot, &ids)
    }

    /// Places of the documents that a stored one is a candidate of. Where texts decide, these are near enough by all sketches too.
    fn places(&self, store: u32, stored: &StoredDocument) -> impl Iterator<Item = usize> {
        let settings = self.stores[store as usize].1.settings();
        let total = if settings.has_texts() { settings.total() } else { u32::MAX };
        let search = SketchSearch { joined: settings.sketches(), distance: settings.distance(), total };
        let rule = Rule { search, least: self.least };
        let one = stored.sketched.sketches;
        self.words.chunks(64).zip((0..).step_by(64)).flat_map(move |(others, first)| {
            let mut bits = dispatch(BroughtTogether { rule, one: &one, others });
            std::iter::from_fn(move || {
                let at = (bits != 0).then(|| first + bits.trailing_zeros() as usize);
                bits &= bits.wrapping_sub(1);
                at
            })
        })
    }

    /// Places of the documents that a stored one is near by an estimate.
    fn near(&self, store: u32, stored: &StoredDocument) -> Vec<usize> {
        let is_near = |&at: &usize| stored.sketched.is_near(&self.texts[at].sketched, self.least);
        self.places(store, stored).filter(is_near).collect()
    }

    /// The documents that a stored one is similar to, with their places.
    fn similar(&self, store: u32, stored: &StoredDocument) -> Result<Vec<(usize, Match)>> {
        let (snapshot, comparer) = self.stores[store as usize];
        let (mut similar, mut of_stored) = (Vec::new(), None);
        for at in self.places(store, stored) {
            let Text { document, sketched, features, bitmap, limit, .. } = &self.texts[at];
            let estimate = match comparer.by_sketches(stored, sketched) {
                Some(estimate) => Some(estimate)
                    .filter(|&estimate| limit.counts(estimate, stored.sketched.distance(sketched))),
                None => {
                    let (of_stored, of_bits) = match &mut of_stored {
                        Some(known) => known,
                        none => {
                            let features = comparer.features(snapshot, stored)?;
                            let bits = Bitmap::new(&features);
                            none.insert((features, bits))
                        }
                    };
                    match of_bits.may_be_similar(bitmap, self.least) {
                        true => jaccard_from(of_stored, features, self.least).map(Estimate::exact),
                        false => None,
                    }
                }
            };
            let found = |estimate| (at, Match { document: *document, store, id: stored.id, estimate });
            similar.extend(estimate.map(found));
        }
        Ok(similar)
    }
}

/// Which of at most 64 sketches some sketches are brought together with, one bit each.
struct BroughtTogether<'a> {
    rule: Rule,
    one: &'a [u64; SKETCHES],
    others: &'a [[u64; SKETCHES]],
}

impl Work for BroughtTogether<'_> {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let BroughtTogether { rule, one, others } = self;
        let bit = |(at, other)| u64::from(rule.holds(one, other)) << at;
        (0..64_u64).zip(others).map(bit).fold(0, |bits, bit| bits | bit)
    }
}
