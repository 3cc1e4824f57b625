//! Segmentation of ASCII text into words, 64 bytes at a time.

use crate::bits;

/// Number of bytes in a block, which is the number of bits in a mask.
pub(super) const BLOCK_BYTES: usize = 64;

/// Visits the words of a block from its beginning, each by its start and end in the block. Returns the number of bytes up to which
/// the words were visited.
///
/// The function finds only words that are runs of ASCII letters and digits. It stops before a word that may not be such a run, and
/// therefore needs the full rules of UAX #29:
/// - a word with an underscore or a joiner (`.`, `'`, `:`, `,` or `;` between two letters or digits);
/// - a word next to a character outside ASCII;
/// - a word that may continue after the block.
///
/// A result of 0 means that already the first word needs the full rules.
#[inline(always)]
pub(super) fn visit_words(block: &[u8; BLOCK_BYTES], mut visit: impl FnMut(usize, usize)) -> usize {
    let ByteClassMasks { words, joiners, underscores, others } = ByteClassMasks::new(block);
    let joined = joiners & (words << 1) & (words >> 1);
    let first_other = others.trailing_zeros();
    // A visited word ends before this bit, so that the two characters after the word are in the block.
    let limit =
        (joined | underscores | 1 << (BLOCK_BYTES - 1)).trailing_zeros().min(first_other.saturating_sub(1));
    let mut rest = words & u64::MAX.checked_shl(first_other).map_or(u64::MAX, |beyond| !beyond);
    while rest != 0 {
        let start = rest.trailing_zeros();
        let end = start + (!(rest >> start)).trailing_zeros();
        if end >= limit {
            return start as usize;
        }
        visit(start as usize, end as usize);
        rest &= u64::MAX << end;
    }
    first_other as usize
}

/// One mask for each class of bytes in a block. Bit i of the mask says whether byte i of the block is in the class.
struct ByteClassMasks {
    /// ASCII letters, digits and underscores.
    words: u64,
    joiners: u64,
    underscores: u64,
    /// Bytes outside ASCII.
    others: u64,
}

impl ByteClassMasks {
    #[inline(always)]
    fn new(block: &[u8; BLOCK_BYTES]) -> ByteClassMasks {
        let is_word =
            |b: u8| ((b | 0x20).wrapping_sub(b'a') < 26) | (b.wrapping_sub(b'0') < 10) | (b == b'_');
        let is_joiner = |b: u8| (b == b'.') | (b == b'\'') | (b == b',') | (b.wrapping_sub(b':') < 2);
        ByteClassMasks {
            words: class_mask(block, is_word),
            joiners: class_mask(block, is_joiner),
            underscores: class_mask(block, |b| b == b'_'),
            others: class_mask(block, |b| b >= 0x80),
        }
    }
}

/// Returns the mask of the bytes that are in a class: bit i is `is_in_class(block[i])`.
#[inline(always)]
fn class_mask(block: &[u8; BLOCK_BYTES], is_in_class: impl Fn(u8) -> bool) -> u64 {
    bits::mask_from_flags(&block.map(|byte| u8::from(is_in_class(byte))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_of_every_byte() {
        for byte in 0..=255 {
            for at in [0, 7, 8, 63] {
                let mut block = [b' '; BLOCK_BYTES];
                block[at] = byte;
                let ByteClassMasks { words, joiners, underscores, others } = ByteClassMasks::new(&block);
                let bit = |is_set: bool| u64::from(is_set) << at;
                assert_eq!(words, bit(byte.is_ascii_alphanumeric() || byte == b'_'));
                assert_eq!(joiners, bit(b".':,;".contains(&byte)));
                assert_eq!((underscores, others), (bit(byte == b'_'), bit(byte >= 0x80)));
            }
        }
    }

    fn words(text: &str) -> (Vec<&str>, usize) {
        let mut block = [b' '; BLOCK_BYTES];
        block[..text.len()].copy_from_slice(text.as_bytes());
        let mut found = Vec::new();
        let done = visit_words(&block, |start, end| found.push(&text[start..end]));
        (found, done)
    }

    #[test]
    fn words_that_need_the_full_rules_stop_the_visit() {
        assert_eq!(words("A rose, (a) 1-2!"), (vec!["A", "rose", "a", "1", "2"], BLOCK_BYTES));
        assert_eq!(words("it is don't go"), (vec!["it", "is"], 6));
        assert_eq!(words("a b_c d"), (vec!["a"], 2));
        assert_eq!(words("ab c\u{e9} d"), (vec!["ab"], 3));
        assert_eq!(words("ab c.\u{e9} d"), (vec!["ab"], 3));
        assert_eq!(words("ab c. \u{e9} d"), (vec!["ab", "c"], 6));
        assert_eq!(words("\u{e9}"), (vec![], 0));
        let long = "a".repeat(BLOCK_BYTES);
        assert_eq!(words(&long), (vec![], 0));
        let ends_late = format!("{}bc", " ".repeat(BLOCK_BYTES - 3));
        assert_eq!(words(&ends_late), (vec![], BLOCK_BYTES - 3));
    }
}
