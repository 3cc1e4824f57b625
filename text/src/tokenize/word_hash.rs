//! Hash function for words.

use xxhash_rust::xxh3::xxh3_64;

use crate::splitmix::{GOLDEN_GAMMA, mix};

/// Maximum length in bytes of a word that is hashed as two 64-bit numbers. Longer words are hashed with xxh3.
const SHORT_WORD_BYTES_MAX: usize = 16;

/// `MASKS[n]` selects the `n` lowest bytes of a number.
const MASKS: [u64; 9] = {
    let mut masks = [u64::MAX; 9];
    let mut bytes = 0;
    while bytes < 8 {
        masks[bytes] = (1 << (8 * bytes)) - 1;
        bytes += 1;
    }
    masks
};

/// Returns the hash of the word `text[start..end]`, as `format-spec/signature.md` defines it.
///
/// All words of up to 16 bytes take the same few instructions, without branches on the length. The function may read bytes of
/// `text` after the word, which do not affect the hash.
#[inline]
pub(super) fn word_hash(text: &[u8], start: usize, end: usize) -> u64 {
    let length = end - start;
    if length > SHORT_WORD_BYTES_MAX {
        return xxh3_64(&text[start..end]);
    }
    match text[start..].first_chunk::<SHORT_WORD_BYTES_MAX>() {
        Some(bytes) => short_word_hash(bytes, length),
        None => {
            let mut bytes = [0; SHORT_WORD_BYTES_MAX];
            bytes[..length].copy_from_slice(&text[start..end]);
            short_word_hash(&bytes, length)
        }
    }
}

#[inline(always)]
fn short_word_hash(bytes: &[u8; SHORT_WORD_BYTES_MAX], length: usize) -> u64 {
    let [low, high] = [0, 8].map(|at| u64::from_le_bytes(*bytes[at..].first_chunk().expect("16 bytes")));
    let low = low & MASKS[length.min(8)];
    let high = high & MASKS[length.saturating_sub(8)];
    mix(low ^ mix(high.wrapping_add(GOLDEN_GAMMA.wrapping_mul(length as u64))))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    /// Computes the result of [`word_hash`] by its definition, from the bytes of the word alone.
    fn plain(word: &[u8]) -> u64 {
        if word.len() > 16 {
            return xxh3_64(word);
        }
        let number =
            |bytes: &[u8]| bytes.iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
        let (low, high) = word.split_at(word.len().min(8));
        mix(number(low) ^ mix(number(high).wrapping_add(GOLDEN_GAMMA.wrapping_mul(word.len() as u64))))
    }

    proptest! {
        #[test]
        fn the_bytes_around_do_not_matter(before in "\\PC{0,9}", word in "\\PC{0,9}", after in "\\PC{0,9}") {
            let text = format!("{before}{word}{after}");
            let (start, end) = (before.len(), before.len() + word.len());
            prop_assert_eq!(word_hash(text.as_bytes(), start, end), plain(word.as_bytes()));
        }
    }

    #[test]
    fn short_words_have_different_hashes() {
        let mut hashes = HashSet::new();
        let letters: Vec<u8> = (b'a'..=b'z').collect();
        for &a in &letters {
            for &b in &letters {
                for &c in &letters {
                    for word in [vec![a, b, c], vec![a, b, c, a, b, c, a, b, c], vec![a, 0, b, c]] {
                        assert!(hashes.insert(word_hash(&word, 0, word.len())), "{word:?}");
                    }
                }
            }
        }
    }
}
