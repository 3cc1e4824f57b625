//! Labelled pairs and random ones, compared by their fingerprints, and by their texts.

use std::collections::HashMap;

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;
use xxhash_rust::xxh3::xxh3_128;

use crate::evaluate::curve::Compared;
use crate::evaluate::pairs::LabelledPair;
use crate::evaluate::random::{MAX_PAIRS, RandomPairs, Text};
use crate::evaluate::shingles::ShingleSets;
use crate::notice::Notice;
use crate::watch::{Step, Watch};

/// Texts are fingerprinted when so many bytes of them have been read.
const BATCH_BYTES: usize = 8 << 20;
/// Of the random pairs at each distance, about so many have their texts compared: a share among them is good to two points.
const MAX_LOOKED_AT: u64 = 4096;

/// Two texts and their label.
#[derive(Debug)]
struct Pair {
    texts: [usize; 2],
    is_positive: bool,
}

/// The labelled pairs, and the fingerprints of their texts by each profile.
#[derive(Debug)]
pub(crate) struct Pairs<F> {
    pairs: Vec<Pair>,
    /// For each profile, the fingerprint of each distinct text; `None` for a text without features.
    fingerprints: Vec<Vec<Option<F>>>,
    sets: ShingleSets,
    groups: Groups,
    /// Malformed ones skipped.
    pub(crate) bad: u64,
}

impl<F: Fingerprint> Pairs<F> {
    /// Takes all pairs, and of each text once the fingerprint by each profile, and the shingles.
    pub(crate) fn read(
        pairs: &mut dyn Iterator<Item = Result<LabelledPair>>,
        profiles: &[Profile],
        skip_bad: bool,
        watch: &dyn Watch,
    ) -> Result<Pairs<F>> {
        let fingerprints = profiles.iter().map(|_| Vec::new()).collect();
        let sets = ShingleSets::new()?;
        let mut read = Pairs { pairs: Vec::new(), fingerprints, sets, groups: Groups::default(), bad: 0 };
        let mut unread = Texts::default();
        let step = Step::new(watch, "pairs");
        for pair in pairs {
            match pair {
                Ok(pair) => read.push(pair, &mut unread),
                Err(error @ Error::BadInput { .. }) if skip_bad => {
                    watch.notice(&Notice::Malformed(&error));
                    read.bad += 1;
                }
                Err(error) => return Err(error),
            }
            if unread.bytes >= BATCH_BYTES {
                read.fingerprint(&mut unread, profiles, &step)?;
            }
            step.add(1)?;
        }
        read.fingerprint(&mut unread, profiles, &step)?;
        if read.bad > 0 {
            watch.notice(&Notice::Skipped(read.bad));
        }
        Ok(read)
    }

    fn push(&mut self, pair: LabelledPair, unread: &mut Texts) {
        let texts = pair.texts.map(|text| self.groups.text(text, unread));
        self.groups.join(texts[0], texts[1]);
        if let Some(path) = pair.path {
            let first = *self.groups.by_path.entry(path).or_insert(texts[0]);
            self.groups.join(first, texts[0]);
        }
        self.pairs.push(Pair { texts, is_positive: pair.is_positive });
    }

    fn fingerprint(&mut self, unread: &mut Texts, profiles: &[Profile], step: &Step<'_>) -> Result<()> {
        for (profile, fingerprints) in profiles.iter().zip(&mut self.fingerprints) {
            let of_text = |text: &String| {
                step.add(0)?;
                Ok(profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint))
            };
            fingerprints.extend(unread.texts.par_iter().map(of_text).collect::<Result<Vec<_>>>()?);
        }
        let shingles = |text: &String| {
            step.add(0)?;
            Ok(self.sets.profile.feature_set(text))
        };
        let sets = unread.texts.par_iter().map(shingles).collect::<Result<Vec<_>>>()?;
        self.sets.append(&sets)?;
        *unread = Texts::default();
        Ok(())
    }

    /// Number of labelled pairs, and of positive ones.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let positives = self.pairs.iter().filter(|pair| pair.is_positive).count();
        (self.pairs.len() as u64, positives as u64)
    }

    /// Compares all labelled pairs, and random ones, by the profile of this number; of random pairs that are near, the texts
    /// too, which are alike from a similarity of `alike_from` on.
    pub(crate) fn compare(&mut self, profile: usize, alike_from: f64, watch: &dyn Watch) -> Result<Compared> {
        let mut compared = Compared::default();
        let fingerprints = &self.fingerprints[profile];
        for pair in &self.pairs {
            let [Some(a), Some(b)] = pair.texts.map(|text| fingerprints[text]) else {
                compared.excluded += 1;
                continue;
            };
            let counts = if pair.is_positive { &mut compared.positives } else { &mut compared.negatives };
            counts.add(a.distance(b));
        }
        let mut texts: Vec<Text<F>> = Vec::with_capacity(fingerprints.len());
        for (number, fingerprint) in fingerprints.iter().enumerate() {
            match *fingerprint {
                Some(fingerprint) => texts.push(Text { fingerprint, number, group: self.groups.of(number) }),
                None => compared.empty += 1,
            }
        }
        let pairs = RandomPairs { texts: &texts, max_pairs: MAX_PAIRS };
        let step = Step::new(watch, "random pairs");
        compared.random = pairs.distances(&step)?;
        let near = pairs.near(&compared.random, MAX_LOOKED_AT, &step)?;
        let step = Step::new(watch, "texts compared");
        step.add(0)?;
        for pair in near {
            let [a, b] = pair.texts;
            compared.looked_at.add(pair.distance);
            if self.sets.similarity(a, b)?.is_some_and(|similarity| similarity >= alike_from) {
                compared.alike.add(pair.distance);
            }
            step.add(1)?;
        }
        Ok(compared)
    }

    /// How similar the texts of each labelled pair are that has shingles in both, and whether it is positive; and how many
    /// have none.
    pub(crate) fn similarities(&mut self, watch: &dyn Watch) -> Result<(Vec<(f64, bool)>, u64)> {
        let step = Step::new(watch, "texts compared");
        let (mut similarities, mut excluded) = (Vec::with_capacity(self.pairs.len()), 0);
        for pair in &self.pairs {
            match self.sets.similarity(pair.texts[0], pair.texts[1])? {
                Some(similarity) => similarities.push((similarity, pair.is_positive)),
                None => excluded += 1,
            }
            step.add(1)?;
        }
        Ok((similarities, excluded))
    }
}

/// Texts that have no fingerprint yet.
#[derive(Debug, Default)]
struct Texts {
    texts: Vec<String>,
    bytes: usize,
}

/// The distinct texts, in groups of those that pairs or paths connect: what is drawn from different groups is not known
/// to have anything in common.
#[derive(Debug, Default)]
struct Groups {
    /// By a hash of 128 bits, which no two texts share.
    by_hash: HashMap<u128, usize>,
    by_path: HashMap<String, usize>,
    /// Another text of the same group, or the text itself if it stands for the group.
    parents: Vec<usize>,
}

impl Groups {
    /// The number of a text; a new one is put where it will be fingerprinted.
    fn text(&mut self, text: String, unread: &mut Texts) -> usize {
        let number = self.parents.len();
        let found = *self.by_hash.entry(xxh3_128(text.as_bytes())).or_insert(number);
        if found == number {
            self.parents.push(number);
            unread.bytes += text.len();
            unread.texts.push(text);
        }
        found
    }

    /// The text that stands for the group of a text.
    fn of(&mut self, mut text: usize) -> usize {
        while self.parents[text] != text {
            self.parents[text] = self.parents[self.parents[text]];
            text = self.parents[text];
        }
        text
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_what_is_connected() {
        let (mut groups, mut unread) = (Groups::default(), Texts::default());
        let numbers: Vec<usize> =
            ["a", "b", "c", "a", "d", "b"].map(|text| groups.text(text.to_owned(), &mut unread)).to_vec();
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!((unread.texts.len(), unread.bytes), (4, 4));
        for (a, b) in [(3, 2), (1, 3)] {
            groups.join(a, b);
        }
        assert_eq!((0..4).map(|text| groups.of(text)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    }
}
