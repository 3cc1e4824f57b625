//! Labelled and random pairs of texts, compared by their fingerprints and by their texts.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;
use xxhash_rust::xxh3::xxh3_128;

use crate::diagnostic::Diagnostic;
use crate::evaluate::curve::ProfileDistances;
use crate::evaluate::labelled_pairs::LabelledPair;
use crate::evaluate::random_pairs::{GroupedText, RANDOM_PAIRS_MAX, RandomPairs};
use crate::evaluate::shingle_sets::ShingleSets;
use crate::observer::{Observer, Stage};

/// A batch of texts is fingerprinted when the texts have this many bytes in total.
const BATCH_BYTES: usize = 8 << 20;
/// If more random pairs (of unrelated texts) than this have the same distance, the texts of only about this many of them
/// are compared. The share of [alike](crate::evaluate) pairs in such a sample has an error of about two percentage points.
const VERIFIED_PAIRS_PER_DISTANCE: u64 = 4096;

/// Indices of the two texts of a labelled pair, and whether the texts are near-duplicates.
#[derive(Debug)]
struct LabelledTexts {
    texts: [usize; 2],
    is_positive: bool,
}

/// Labelled pairs, and the fingerprints and shingles of their distinct texts.
#[derive(Debug)]
pub(crate) struct EvaluationData<F> {
    pairs: Vec<LabelledTexts>,
    /// For each profile, the fingerprint of each distinct text; `None` for a text without features.
    fingerprints: Vec<Vec<Option<F>>>,
    sets: ShingleSets,
    groups: TextGroups,
    /// Number of skipped malformed pairs.
    pub(crate) malformed: u64,
}

impl<F: Fingerprint> EvaluationData<F> {
    /// Reads all labelled pairs. For each distinct text, makes the shingles, and a fingerprint by each profile.
    pub(crate) fn read(
        pairs: &mut dyn Iterator<Item = Result<LabelledPair>>,
        profiles: &[Profile],
        skip_malformed: bool,
        observer: &dyn Observer,
    ) -> Result<EvaluationData<F>> {
        let fingerprints = profiles.iter().map(|_| Vec::new()).collect();
        let sets = ShingleSets::new()?;
        let mut read = EvaluationData {
            pairs: Vec::new(),
            fingerprints,
            sets,
            groups: TextGroups::default(),
            malformed: 0,
        };
        let mut pending = PendingTexts::default();
        let stage = Stage::new(observer, "pairs");
        for pair in pairs {
            match pair {
                Ok(pair) => read.push(pair, &mut pending),
                Err(error @ Error::BadInput { .. }) if skip_malformed => {
                    observer.diagnostic(&Diagnostic::Malformed(&error));
                    read.malformed += 1;
                }
                Err(error) => return Err(error),
            }
            if pending.bytes >= BATCH_BYTES {
                read.fingerprint(&mut pending, profiles, &stage)?;
            }
            stage.add(1)?;
        }
        read.fingerprint(&mut pending, profiles, &stage)?;
        if read.malformed > 0 {
            observer.diagnostic(&Diagnostic::SkippedLines(read.malformed));
        }
        Ok(read)
    }

    fn push(&mut self, pair: LabelledPair, pending: &mut PendingTexts) {
        let texts = pair.texts.map(|text| self.groups.insert(text, pending));
        self.groups.union(texts[0], texts[1]);
        if let Some(path) = pair.path {
            let first = *self.groups.by_path.entry(path).or_insert(texts[0]);
            self.groups.union(first, texts[0]);
        }
        self.pairs.push(LabelledTexts { texts, is_positive: pair.is_positive });
    }

    fn fingerprint(
        &mut self,
        pending: &mut PendingTexts,
        profiles: &[Profile],
        stage: &Stage<'_>,
    ) -> Result<()> {
        for (profile, fingerprints) in profiles.iter().zip(&mut self.fingerprints) {
            let fingerprint_text = |text: &String| {
                stage.add(0)?;
                Ok(profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint))
            };
            fingerprints.extend(pending.texts.par_iter().map(fingerprint_text).collect::<Result<Vec<_>>>()?);
        }
        let shingles = |text: &String| {
            stage.add(0)?;
            Ok(self.sets.profile.feature_set(text))
        };
        let sets = pending.texts.par_iter().map(shingles).collect::<Result<Vec<_>>>()?;
        self.sets.append(&sets)?;
        *pending = PendingTexts::default();
        Ok(())
    }

    /// Number of labelled pairs, and number of positive pairs among them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let positives = self.pairs.iter().filter(|pair| pair.is_positive).count();
        (self.pairs.len() as u64, positives as u64)
    }

    /// Computes the distances of all labelled pairs and of random pairs, by the fingerprints of the profile with index
    /// `profile`. Also compares the texts of random pairs within [`MAX_K`](crate::evaluate::MAX_K): a pair is alike if the
    /// Jaccard similarity of its texts is at least `alike_from`.
    pub(crate) fn compare(
        &mut self,
        profile: usize,
        alike_from: f64,
        observer: &dyn Observer,
    ) -> Result<ProfileDistances> {
        let mut compared = ProfileDistances::default();
        let fingerprints = &self.fingerprints[profile];
        for pair in &self.pairs {
            let [Some(a), Some(b)] = pair.texts.map(|text| fingerprints[text]) else {
                compared.excluded += 1;
                continue;
            };
            let counts = if pair.is_positive { &mut compared.positives } else { &mut compared.negatives };
            counts.add(a.distance(b));
        }
        let mut texts: Vec<GroupedText<F>> = Vec::with_capacity(fingerprints.len());
        for (number, fingerprint) in fingerprints.iter().enumerate() {
            match *fingerprint {
                Some(fingerprint) => {
                    texts.push(GroupedText { fingerprint, number, group: self.groups.root(number) });
                }
                None => compared.empty += 1,
            }
        }
        let pairs = RandomPairs { texts: &texts, max_pairs: RANDOM_PAIRS_MAX };
        let stage = Stage::new(observer, "random pairs");
        compared.random = pairs.distances(&stage)?;
        let near = pairs.sample_near(&compared.random, VERIFIED_PAIRS_PER_DISTANCE, &stage)?;
        let stage = Stage::new(observer, "texts compared");
        stage.add(0)?;
        for pair in near {
            let [a, b] = pair.texts;
            compared.verified.add(pair.distance);
            if self.sets.similarity(a, b)?.is_some_and(|similarity| similarity >= alike_from) {
                compared.alike.add(pair.distance);
            }
            stage.add(1)?;
        }
        Ok(compared)
    }

    /// Returns the Jaccard similarity of each labelled pair, and whether the pair is positive. Leaves out the pairs in which a
    /// text has no shingles, and returns the number of these pairs as the second value.
    pub(crate) fn similarities(&mut self, observer: &dyn Observer) -> Result<(Vec<(f64, bool)>, u64)> {
        let stage = Stage::new(observer, "texts compared");
        let (mut similarities, mut excluded) = (Vec::with_capacity(self.pairs.len()), 0);
        for pair in &self.pairs {
            match self.sets.similarity(pair.texts[0], pair.texts[1])? {
                Some(similarity) => similarities.push((similarity, pair.is_positive)),
                None => excluded += 1,
            }
            stage.add(1)?;
        }
        Ok((similarities, excluded))
    }
}

/// Texts that are not fingerprinted yet.
#[derive(Debug, Default)]
struct PendingTexts {
    texts: Vec<String>,
    bytes: usize,
}

/// Groups of related texts, as disjoint sets (union-find). Two texts are in one group if they are in the same labelled pair,
/// if their pairs have the same path, or through a chain of such relations. The two texts of a random pair are in different
/// groups.
#[derive(Debug, Default)]
struct TextGroups {
    /// Index of each text in the union-find structure, keyed by the text's 128-bit hash. Hash collisions are negligible.
    by_hash: HashMap<u128, usize>,
    by_path: HashMap<String, usize>,
    /// For each text, its parent in the tree of its group; the root of the tree is its own parent.
    parents: Vec<usize>,
}

impl TextGroups {
    /// Returns the index of a text. Adds a new text to `pending` and to a group of its own.
    fn insert(&mut self, text: String, pending: &mut PendingTexts) -> usize {
        let number = self.parents.len();
        let found = *self.by_hash.entry(xxh3_128(text.as_bytes())).or_insert(number);
        if found == number {
            self.parents.push(number);
            pending.bytes += text.len();
            pending.texts.push(text);
        }
        found
    }

    /// Returns the index of the text that is the root of a text's group.
    fn root(&mut self, mut text: usize) -> usize {
        while self.parents[text] != text {
            self.parents[text] = self.parents[self.parents[text]];
            text = self.parents[text];
        }
        text
    }

    fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_connected_components() {
        let (mut groups, mut pending) = (TextGroups::default(), PendingTexts::default());
        let numbers: Vec<usize> =
            ["a", "b", "c", "a", "d", "b"].map(|text| groups.insert(text.to_owned(), &mut pending)).to_vec();
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!((pending.texts.len(), pending.bytes), (4, 4));
        for (a, b) in [(3, 2), (1, 3)] {
            groups.union(a, b);
        }
        assert_eq!((0..4).map(|text| groups.root(text)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    }
}
