//! The class `simhash` of tutorials in Python and Java: tokens between white space, the
//! multiply-xor string hash.

use crate::hash::FeatureHash;
use crate::presets::weighted::fingerprint_of;
use crate::simhash::Simhash;
use simstore::Fingerprint;

/// The fingerprint: a bit is one also where its sum is 0, and so all are of a text without tokens.
pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let hashes = tokens(text).map(|token| (FeatureHash::StringHash.hash(token), 1.0));
    fingerprint_of(hashes, |sum| sum >= 0.0)
}

/// What Python's `str.split()` gives: its white space has four control characters more than Unicode's.
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
