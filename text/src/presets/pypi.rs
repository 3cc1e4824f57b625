//! The package `simhash` 2.1.2 on PyPI: its features are windows of 4 characters, hashed with MD5.

use std::cell::RefCell;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::feature_hash::FeatureHash;
use crate::simhash::{Simhash, WeightedSums};
use simstore::Fingerprint;

/// Number of characters per feature.
const WINDOW: usize = 4;

/// Returns the fingerprint of a text. It is never `None`, since every text has a feature.
pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Option<Simhash<F>> {
    let mut sums = WeightedSums::new();
    MD5_CACHE.with_borrow_mut(|cache| {
        visit_features(text, |feature| sums.add(F::from_u64(cache.md5(feature)), 1));
    });
    sums.finish()
}

thread_local! {
    static MD5_CACHE: RefCell<Md5Cache> = RefCell::new(Md5Cache { slots: vec![(0, 0); Md5Cache::SLOTS] });
}

/// Cache of the MD5 hashes of windows (four successive characters of a text). Most windows of a text are in the cache. For 48,000
/// English pages without the cache, MD5 takes 20 s of processor time, and everything else 10 s.
struct Md5Cache {
    /// Each slot holds the bytes of a window as an integer, and the hash of this window. A new window replaces the old one in its
    /// slot.
    slots: Vec<(u128, u64)>,
}

impl Md5Cache {
    /// Number of slots. They take 1 MiB in total.
    const SLOTS: usize = 1 << 15;

    /// Returns the low 64 bits of the MD5 of a window of up to four characters, which has at most 16 bytes.
    fn md5(&mut self, window: &str) -> u64 {
        // Four characters have at most 16 bytes, and UTF-8 never contains 0xff. So different windows have different keys, and no
        // key is 0.
        let mut key = [0xff; 16];
        key[..window.len()].copy_from_slice(window.as_bytes());
        let key = u128::from_le_bytes(key);
        let mixed = (key as u64 ^ (key >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let slot = &mut self.slots[(mixed >> 49) as usize];
        if slot.0 != key {
            *slot = (key, FeatureHash::Md5.hash(window));
        }
        slot.1
    }
}

/// Converts the text to lower case, and drops all characters that the regular expression `[\w\u4e00-\u9fcc]` does not match. Then
/// visits every window of 4 successive characters. If fewer characters are left, even none, all of them are one window.
pub(super) fn visit_features(text: &str, mut visit: impl FnMut(&str)) {
    let text: String = text.to_lowercase().chars().filter(|&c| is_word_character(c)).collect();
    let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    for window in bounds.windows(WINDOW.min(bounds.len() - 1) + 1) {
        visit(&text[window[0]..window[window.len() - 1]]);
    }
}

/// Whether Python's `\w` matches a character: letters (including Han characters), numbers of all kinds, and the underscore.
fn is_word_character(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_alphanumeric() || c == '_';
    }
    matches!(c.general_category_group(), GeneralCategoryGroup::Letter | GeneralCategoryGroup::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(text: &str) -> Vec<String> {
        let mut features = Vec::new();
        visit_features(text, |feature| features.push(feature.to_owned()));
        features
    }

    #[test]
    fn windows() {
        assert_eq!(features("Ab, c_d!"), ["abc_", "bc_d"]);
        assert_eq!(features("abc"), ["abc"]);
        assert_eq!(features("?!"), [""]);
        assert_eq!(features("ΟΔΟΣ"), ["οδος"]);
        assert_eq!(features("e\u{301}中文 ½"), ["e中文½"]);
    }

    #[test]
    fn windows_seen_before_keep_their_hashes() {
        let mut cache = Md5Cache { slots: vec![(0, 0); Md5Cache::SLOTS] };
        let windows: Vec<String> = (0..100_000).map(|i| format!("{:x}", i % 70_000)).collect();
        for window in windows.iter().map(String::as_str).chain(["", "\0", "\0\0", "中文字符", "😀😀😀😀"])
        {
            let expected: u64 = FeatureHash::Md5.hash(window);
            assert_eq!(cache.md5(window), expected, "{window:?}");
        }
    }
}
