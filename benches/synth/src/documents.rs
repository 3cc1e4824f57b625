//! Random documents. Some are edited copies of others, with a known similarity.

use rayon::prelude::*;
use serde::Serialize;
use simstore::{Error, Result};

use crate::random::random;

/// Number of documents in a batch. All threads generate a batch together.
const BATCH_DOCUMENTS: u64 = 1 << 13;
/// Length of a shingle, in words.
const SHINGLE_WORDS: usize = 3;
/// Width in bits of the numbers that identify words. Every number of this width except the largest identifies a word.
const WORD_BITS: u32 = 16;
/// Maximum number of successive rejected edits of a copy. After so many, words are appended instead. An edit is rejected if
/// the similarity of copy and original would not change, or would be less than the target.
const MAX_REJECTED_EDITS: u32 = 24;

/// Random documents of made-up words, which are identified by numbers. As in natural text, word frequencies follow
/// Zipf's law approximately. The words with the numbers from `2^i - 1` to `2^(i + 1) - 2` form octave `i`. All octaves are
/// equally frequent, and all words of an octave are equally frequent. The most frequent word is about 6% of all words.
///
/// The seed and the number of a document determine its words. So an original is generated again for each copy, and no
/// document is kept in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RandomDocuments {
    /// Number of documents.
    pub(crate) count: u64,
    /// Seed of the random numbers.
    pub(crate) seed: u64,
    /// Mean number of words in an original, from 8 to 1,000,000. The number of words is uniformly distributed from half the
    /// mean to one and a half times the mean.
    pub(crate) words: u32,
    /// Share of copies among all documents, from 0 to below 1. The original is a random earlier document that is not a copy.
    pub(crate) copies: f64,
    /// Smallest and largest target for the similarity of a copy to its original, from 0 to 1. The targets are uniformly
    /// distributed between these limits.
    pub(crate) similarity: (f64, f64),
}

/// A random document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct RandomDocument {
    /// Position of the document in the output, from 0.
    pub(crate) id: u64,
    /// Sentences of words in ASCII letters.
    pub(crate) text: String,
    /// Original and similarity; `None` if the document is not a copy.
    #[serde(flatten)]
    pub(crate) copy: Option<CopySource>,
}

/// The original of a copy, and the similarity to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct CopySource {
    /// Id of the original.
    #[serde(rename = "of")]
    pub(crate) original: u64,
    /// Exact Jaccard similarity of the word 3-grams of the copy and of the original.
    pub(crate) similarity: f64,
}

impl RandomDocuments {
    /// Visits all documents in order.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if a setting is out of range, and errors of the visitor.
    pub(crate) fn visit(&self, visitor: &mut dyn FnMut(&RandomDocument) -> Result<()>) -> Result<()> {
        self.check()?;
        let make = |first: u64| -> Vec<RandomDocument> {
            (first..first.saturating_add(BATCH_DOCUMENTS).min(self.count))
                .into_par_iter()
                .map(|id| self.document(id))
                .collect()
        };
        let mut made = make(0);
        let mut first = 0;
        while first < self.count {
            first = first.saturating_add(BATCH_DOCUMENTS);
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
        let Some(mut state) = self.copy_state(id) else {
            return RandomDocument { id, text: format_text(&self.original_words(id)), copy: None };
        };
        let original = loop {
            let earlier = below(id, &mut state);
            if self.copy_state(earlier).is_none() {
                break earlier;
            }
        };
        let (least, most) = self.similarity;
        let target = least + (most - least) * fraction(&mut state);
        let (words, similarity) = edit_to_similarity(&self.original_words(original), target, &mut state);
        RandomDocument { id, text: format_text(&words), copy: Some(CopySource { original, similarity }) }
    }

    /// Decides whether the document `id` is a copy. Returns the state of the random numbers for its edits, or `None` if it
    /// is not a copy. The first document is never a copy.
    fn copy_state(&self, id: u64) -> Option<u64> {
        let mut state = self.state(id);
        (fraction(&mut state) < self.copies && id > 0).then_some(state)
    }

    /// Generates the words of a document that is not a copy.
    fn original_words(&self, id: u64) -> Vec<u32> {
        let mut state = !self.state(id);
        let words = u64::from(self.words);
        let count = words / 2 + below(words + 1, &mut state);
        (0..count).map(|_| random_word(&mut state)).collect()
    }

    fn state(&self, id: u64) -> u64 {
        let mut state = self.seed ^ id.wrapping_mul(0xd134_2543_de82_ef95);
        random(&mut state)
    }
}

/// Draws a number from 0 to below 1.
fn fraction(state: &mut u64) -> f64 {
    (random(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Draws an integer from 0 to below `end`, which is not 0.
fn below(end: u64, state: &mut u64) -> u64 {
    ((u128::from(random(state)) * u128::from(end)) >> 64) as u64
}

/// Draws a random word and returns the number that identifies the word. First draws one of the 16 octaves, all equally
/// likely. Octave `i` has the words with the numbers from `2^i - 1` to `2^(i + 1) - 2`.
fn random_word(state: &mut u64) -> u32 {
    let drawn = random(state);
    let octave = 1 << ((drawn >> 32) % u64::from(WORD_BITS));
    (octave + drawn % octave) as u32 - 1
}

/// Edits a copy of `original` until the similarity of the two is as near to `target` as possible. Returns the words of the
/// copy, and the similarity.
///
/// First makes random edits that keep the similarity at or above the target. When no such edit is found, appends words.
fn edit_to_similarity(original: &[u32], target: f64, state: &mut u64) -> (Vec<u32>, f64) {
    let shingles_of_original = shingles(original);
    let similarity_of = |words: &[u32]| jaccard(&shingles_of_original, &shingles(words));
    let mut words = original.to_vec();
    let (mut similarity, mut rejected) = (1.0, 0);
    while rejected < MAX_REJECTED_EDITS && similarity > target {
        let mut other = words.clone();
        edit_once(&mut other, state);
        let then = similarity_of(&other);
        rejected += 1;
        if (target..similarity).contains(&then) {
            (words, similarity, rejected) = (other, then, 0);
        }
    }
    // The loop is bounded, because a target of 0 may never be reached.
    for _ in original {
        words.push(random_word(state));
        let then = similarity_of(&words);
        if target - then >= similarity - target {
            words.pop();
            break;
        }
        similarity = then;
    }
    (words, similarity)
}

/// Makes one random edit: replaces, inserts or removes a word at a random place, appends a word, or removes the last word.
/// The last two kinds of edits change the fewest shingles.
fn edit_once(words: &mut Vec<u32>, state: &mut u64) {
    let place = below(words.len() as u64, state) as usize;
    match below(6, state) {
        0 | 1 => words[place] = random_word(state),
        2 => words.insert(place, random_word(state)),
        4 => words.push(random_word(state)),
        // A shorter document would have no shingle.
        _ if words.len() == SHINGLE_WORDS => {}
        3 => drop(words.remove(place)),
        _ => drop(words.pop()),
    }
}

/// Returns the distinct word 3-grams (shingles) in ascending order. There must be at least three words.
fn shingles(words: &[u32]) -> Vec<u64> {
    let shingle =
        |words: &[u32]| words.iter().fold(0, |shingle, &word| shingle << WORD_BITS | u64::from(word));
    let mut shingles: Vec<u64> = words.windows(SHINGLE_WORDS).map(shingle).collect();
    shingles.sort_unstable();
    shingles.dedup();
    shingles
}

/// Returns the Jaccard similarity of two ascending sets, at least one of which is not empty.
fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut at, mut shared) = (0, 0);
    for element in a {
        at += b[at..].partition_point(|other| other < element);
        shared += usize::from(b.get(at) == Some(element));
    }
    shared as f64 / (a.len() + b.len() - shared) as f64
}

/// Writes words, given by their numbers, as sentences of 12 words.
fn format_text(words: &[u32]) -> String {
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

/// Appends the spelling of a word. Frequent words are shorter; all spellings differ.
fn spell(word: u32, capital: bool, text: &mut String) {
    const CONSONANTS: &[u8; 16] = b"tnsrhldcmfpgwybk";
    const VOWELS: &[u8; 5] = b"eaoiu";
    const SYLLABLES: u32 = 80;
    // Words of one syllable have the smallest numbers, then come words of two, then of three.
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
        let drawn: Vec<u32> = (0..100_000).map(|_| random_word(&mut state)).collect();
        let share = |range: Range<u32>| drawn.iter().filter(|word| range.contains(word)).count() as f64 / 1e5;
        for octave in [0..1, 1..3, 127..255, 32_767..65_535] {
            assert!((share(octave.clone()) - 1.0 / 16.0).abs() < 0.005, "{octave:?}");
        }
        assert_eq!(share(0..65_535), 1.0);
    }
}
