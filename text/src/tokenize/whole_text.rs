//! The whole text as one feature.

use unicode_normalization::{UnicodeNormalization, is_nfc};
use xxhash_rust::xxh3::xxh3_128;

/// Calls `visit` with the whole text in normalisation form NFC, unless the text is empty.
pub(super) fn visit_whole(text: &str, mut visit: impl FnMut(&str)) {
    match text {
        "" => {}
        _ if text.is_ascii() || is_nfc(text) => visit(text),
        _ => visit(&text.nfc().collect::<String>()),
    }
}

/// Returns the low and high half of the 128-bit xxh3 of a text. With the tokenizer `exact`, the feature set of a text consists of
/// both halves.
pub(super) fn hash_halves(text: &str) -> [u64; 2] {
    let hash = xxh3_128(text.as_bytes());
    [hash as u64, (hash >> 64) as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonically_equal_texts_are_equal() {
        let whole = |text: &str| {
            let mut found = Vec::new();
            visit_whole(text, |whole| found.push(whole.to_owned()));
            found
        };
        assert_eq!(whole("cafe\u{301}"), ["café"]);
        assert_eq!(whole(" A b\n"), [" A b\n"]);
        assert_eq!(whole("\u{fb01}"), ["\u{fb01}"]);
        assert!(whole("").is_empty());
        assert_ne!(hash_halves("a"), hash_halves("b"));
    }
}
