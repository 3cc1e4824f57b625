//! The class `simhash` that many tutorials for Python and Java contain: its features are the tokens between white space, hashed
//! with a variant of Python 2's string hash.

use crate::feature_hash::FeatureHash;
use crate::presets::weighted_fingerprint::weighted_fingerprint;
use crate::simhash::Simhash;
use simstore::Fingerprint;

/// Returns the fingerprint of a text. A bit is 1 if at least half of the tokens' hashes have this bit set. So for a text without
/// tokens, all bits are 1.
pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let hashes = tokens(text).map(|token| (FeatureHash::StringHash.hash(token), 1.0));
    weighted_fingerprint(hashes, |sum| sum >= 0.0)
}

/// Iterates over the tokens that Python's `str.split()` returns. Python's white space includes four control characters, U+001C to
/// U+001F, that are not white space in Unicode.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let is_space = |c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c);
    text.split(is_space).filter(|token| !token.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_python() {
        let text = " a\tb\u{1f}c\u{85}d\u{3000}e\u{200b}f\n";
        assert_eq!(tokens(text).collect::<Vec<_>>(), ["a", "b", "c", "d", "e\u{200b}f"]);
    }

    #[test]
    fn ties_are_ones() {
        assert_eq!(fingerprint::<u64>("").fingerprint, u64::MAX);
        assert_eq!(fingerprint::<u128>("a").fingerprint, FeatureHash::StringHash.hash::<u128>("a"));
    }
}
