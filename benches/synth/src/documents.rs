//! Random documents, some of them edited copies of others, whose similarity is known.

use rayon::prelude::*;
use serde::Serialize;
use simstore::{Error, Result};

use crate::random::random;

/// Documents that are made at once, by all threads.
const BATCH: u64 = 1 << 13;
/// Words of a shingle.
const SHINGLE: usize = 3;
/// Words have numbers of so many bits; there is one for each but the last.
const WORD_BITS: u32 = 16;
/// After so many edits in a row that would make a copy less similar than is wanted, or as similar as it is, the rest is done at its
/// end.
const VAIN_EDITS: u32 = 24;

/// Random documents of made-up words, the most frequent word some 6% of all, the others ever rarer, as in natural text
/// (Zipf's law, by octaves). Every document follows from the seed and its number alone: none has to be kept to be copied.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomDocuments {
    /// How many.
    pub(crate) count: u64,
    /// Which random numbers.
    pub(crate) seed: u64,
    /// The words of a document: from half as many to half as many again, each number as likely; from 8 to 1,000,000.
    pub(crate) words: u32,
    /// The share of copies, each of any earlier document that is none: from 0 to below 1.
    pub(crate) copies: f64,
    /// The least and the largest similarity that a copy is wanted to have, each between them as likely; from 0 to 1.
    pub(crate) similarity: (f64, f64),
}

/// A random document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RandomDocument {
    /// Its number, from 0.
    pub(crate) id: u64,
    /// Sentences of words with the letters a to z.
    pub(crate) text: String,
    /// What it is a copy of.
    #[serde(flatten)]
    pub(crate) copy: Option<CopyOf>,
}

/// Of what a document is a copy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CopyOf {
    /// The number of the original.
    pub(crate) of: u64,
    /// The Jaccard similarity of both documents' sets of word 3-grams, exactly.
    pub(crate) similarity: f64,
}

impl RandomDocuments {
    /// Calls `visitor` with one after another.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for numbers out of their ranges, and those of the visitor.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&RandomDocument) -> Result<()>) -> Result<()> {
        self.check()?;
        let make = |first: u64| -> Vec<RandomDocument> {
            (first..first.saturating_add(BATCH).min(self.count))
                .into_par_iter()
                .map(|id| self.document(id))
                .collect()
        };
        let mut made = make(0);
        let mut first = 0;
        while first < self.count {
            first = first.saturating_add(BATCH);
            let mut next = Vec::new();
            rayon::in_place_scope(|scope| {
                scope.spawn(|_| next = make(first));
                made.iter().try_for_each(&mut *visitor)
            })?;
            made = next;
        }
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let RandomDocuments { words, copies, similarity: (least, most), .. } = *self;
        let bad = |message: String| Err(Error::BadArgument(message));
        if !(8..=1_000_000).contains(&words) {
            return bad(format!("documents of {words} words: give --words from 8 to 1000000"));
        }
        if !(0.0..1.0).contains(&copies) {
            return bad(format!("a share of {copies} copies: give --copies from 0 to below 1"));
        }
        if !(0.0 <= least && least <= most && most <= 1.0) {
            return bad(format!(
                "a similarity from {least} to {most}: give --similarity from 0 to 1, the lower one first"
            ));
        }
        Ok(())
    }

    fn document(&self, id: u64) -> RandomDocument {
        let Some(mut state) = self.copied(id) else {
            return RandomDocument { id, text: text(&self.original(id)), copy: None };
        };
        let of = loop {
            let earlier = below(id, &mut state);
            if self.copied(earlier).is_none() {
                break earlier;
            }
        };
        let (least, most) = self.similarity;
        let wanted = least + (most - least) * fraction(&mut state);
        let (words, similarity) = edited(&self.original(of), wanted, &mut state);
        RandomDocument { id, text: text(&words), copy: Some(CopyOf { of, similarity }) }
    }

    /// The random numbers of a document, if it is a copy. The first is none.
    fn copied(&self, id: u64) -> Option<u64> {
        let mut state = self.state(id);
        (fraction(&mut state) < self.copies && id > 0).then_some(state)
    }

    /// The words of a document that is no copy.
    fn original(&self, id: u64) -> Vec<u32> {
        let mut state = !self.state(id);
        let words = u64::from(self.words);
        let count = words / 2 + below(words + 1, &mut state);
        (0..count).map(|_| word(&mut state)).collect()
    }

    fn state(&self, id: u64) -> u64 {
        let mut state = self.seed ^ id.wrapping_mul(0xd134_2543_de82_ef95);
        random(&mut state)
    }
}

/// From 0 to below 1.
fn fraction(state: &mut u64) -> f64 {
    (random(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// From 0 to below a number, which is not 0.
fn below(end: u64, state: &mut u64) -> u64 {
    ((u128::from(random(state)) * u128::from(end)) >> 64) as u64
}

/// A number of 0 bits as likely as one of 1, of 2 and so on to 15, counted from 1.
fn word(state: &mut u64) -> u32 {
    let drawn = random(state);
    let octave = 1 << ((drawn >> 32) % u64::from(WORD_BITS));
    (octave + drawn % octave) as u32 - 1
}

/// Words edited at random places as long as they stay at least as similar as is wanted, then with others at their end until they
/// are as near to it as can be; and how similar they are then.
fn edited(original: &[u32], wanted: f64, state: &mut u64) -> (Vec<u32>, f64) {
    let shingles_of_original = shingles(original);
    let similarity_of = |words: &[u32]| jaccard(&shingles_of_original, &shingles(words));
    let mut words = original.to_vec();
    let (mut similarity, mut vain) = (1.0, 0);
    while vain < VAIN_EDITS && similarity > wanted {
        let mut other = words.clone();
        edit(&mut other, state);
        let then = similarity_of(&other);
        vain += 1;
        if (wanted..similarity).contains(&then) {
            (words, similarity, vain) = (other, then, 0);
        }
    }
    // So many at most, as it may be 0 that is wanted.
    for _ in original {
        words.push(word(state));
        let then = similarity_of(&words);
        if wanted - then >= similarity - wanted {
            words.pop();
            break;
        }
        similarity = then;
    }
    (words, similarity)
}

/// Replaces, inserts or removes a word somewhere, or the last one, which changes the least.
fn edit(words: &mut Vec<u32>, state: &mut u64) {
    let place = below(words.len() as u64, state) as usize;
    match below(6, state) {
        0 | 1 => words[place] = word(state),
        2 => words.insert(place, word(state)),
        4 => words.push(word(state)),
        // Shorter, it would have no shingle.
        _ if words.len() == SHINGLE => {}
        3 => drop(words.remove(place)),
        _ => drop(words.pop()),
    }
}

/// The different shingles of at least three words, ascending.
fn shingles(words: &[u32]) -> Vec<u64> {
    let shingle =
        |words: &[u32]| words.iter().fold(0, |shingle, &word| shingle << WORD_BITS | u64::from(word));
    let mut shingles: Vec<u64> = words.windows(SHINGLE).map(shingle).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// The Jaccard similarity of two sets, ascending, of which one has an element.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut at, mut shared) = (0, 0);
    for element in a {
        at += b[at..].partition_point(|other| other < element);
        shared += usize::from(b.get(at) == Some(element));
    }
    shared as f64 / (a.len() + b.len() - shared) as f64
}

/// Sentences of words, by their numbers.
fn text(words: &[u32]) -> String {
    let mut text = String::with_capacity(words.len() * 6);
    let mut starts = true;
    for (&word, number) in words.iter().zip(1_u64..) {
        let ends = number == words.len() as u64 || number.is_multiple_of(12);
        spell(word, starts, &mut text);
        text.push_str(if ends { "." } else { "" });
        text.push_str(if number == words.len() as u64 { "" } else { " " });
        starts = ends;
    }
    text
}

/// Spells a word, the shorter the more frequent it is; each differs from all others.
fn spell(word: u32, capital: bool, text: &mut String) {
    const CONSONANTS: &[u8; 16] = b"tnsrhldcmfpgwybk";
    const VOWELS: &[u8; 5] = b"eaoiu";
    const SYLLABLES: u32 = 80;
    // Of one syllable, of two, of three: the first of each length comes after all shorter ones.
    let (mut rest, mut count) = (word, 1);
    while rest >= SYLLABLES.pow(count) {
        rest -= SYLLABLES.pow(count);
        count += 1;
    }
    for i in 0..count {
        let syllable = rest % SYLLABLES;
        rest /= SYLLABLES;
        let consonant = char::from(CONSONANTS[(syllable / 5) as usize]);
        text.push(if capital && i == 0 { consonant.to_ascii_uppercase() } else { consonant });
        text.push(char::from(VOWELS[(syllable % 5) as usize]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::ops::Range;

    #[test]
    fn words_differ_and_frequent_ones_are_short() {
        let spelled = |word| {
            let mut text = String::new();
            spell(word, false, &mut text);
            text
        };
        let all: HashSet<String> = (0..1 << WORD_BITS).map(spelled).collect();
        assert_eq!(all.len(), 1 << WORD_BITS);
        assert_eq!(
            (spelled(0).len(), spelled(79).len(), spelled(80).len(), spelled(65_534).len()),
            (2, 2, 4, 6)
        );
    }

    #[test]
    fn words_are_drawn_by_octaves() {
        let mut state = 1;
        let drawn: Vec<u32> = (0..100_000).map(|_| word(&mut state)).collect();
        let share = |range: Range<u32>| drawn.iter().filter(|word| range.contains(word)).count() as f64 / 1e5;
        for octave in [0..1, 1..3, 127..255, 32_767..65_535] {
            assert!((share(octave.clone()) - 1.0 / 16.0).abs() < 0.005, "{octave:?}");
        }
        assert_eq!(share(0..65_535), 1.0);
    }
}
