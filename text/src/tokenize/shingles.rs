//! Hashes of shingles, computed from the hashes of their words.

use crate::splitmix::{GOLDEN_GAMMA, mix};

/// Appends the hash of every shingle of `n` successive words to `shingles`. `words` contains the hashes of the words. If there are
/// fewer than `n` words, but at least one, all words are one shingle.
///
/// `format-spec/signature.md` defines the hash. A shingle of one word has the hash of the word.
pub(crate) fn push_shingles(words: &[u64], n: usize, shingles: &mut Vec<u64>) {
    match n.min(words.len()) {
        0 => {}
        1 => shingles.extend_from_slice(words),
        2 => shingles.extend(words.windows(2).map(|pair| mix(join(pair[0], pair[1])))),
        3 => shingles.extend(words.windows(3).map(|three| mix(join(join(three[0], three[1]), three[2])))),
        n => shingles.extend(words.windows(n).map(shingle)),
    }
}

#[inline]
fn join(before: u64, word: u64) -> u64 {
    before.wrapping_mul(GOLDEN_GAMMA).wrapping_add(word)
}

/// Returns the hash of a shingle of two words or more. `words` contains the hashes of the words.
fn shingle(words: &[u64]) -> u64 {
    mix(words[1..].iter().fold(words[0], |before, &word| join(before, word)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn windows_of_every_length(words in prop::collection::vec(any::<u64>(), 0..20), n in 1_usize..9) {
            let mut shingles = vec![7];
            push_shingles(&words, n, &mut shingles);
            let n = n.min(words.len());
            let expected: Vec<u64> = match n {
                0 => Vec::new(),
                1 => words.clone(),
                _ => words.windows(n).map(shingle).collect(),
            };
            prop_assert_eq!(&shingles[1..], expected);
        }
    }

    #[test]
    fn order_and_number_of_words_matter() {
        let words = [1, 2, 3, 2, 1, 1, 1, 1];
        for n in 2..5 {
            let mut shingles = Vec::new();
            push_shingles(&words, n, &mut shingles);
            shingles.sort_unstable();
            let all = shingles.len();
            shingles.dedup();
            // Only the shingles of the word 1 alone are equal.
            assert_eq!(all - shingles.len(), 4_usize.saturating_sub(n), "{n}");
        }
    }
}
