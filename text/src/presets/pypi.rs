//! The package `simhash` 2.1.2 on PyPI: windows of 4 characters, MD5.

use std::cell::RefCell;

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::hash::FeatureHash;
use crate::simhash::{Simhash, Sums};
use simstore::Fingerprint;

/// Characters of a feature.
const WINDOW: usize = 4;

/// The fingerprint; there is one of every text.
pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Option<Simhash<F>> {
    let mut sums = Sums::new();
    SEEN.with_borrow_mut(|seen| {
        visit_features(text, |feature| sums.add(F::from_u64(seen.md5(feature)), 1));
    });
    sums.finish()
}

thread_local! {
    static SEEN: RefCell<Seen> = RefCell::new(Seen { slots: vec![(0, 0); Seen::SLOTS] });
}

/// Windows seen before, with their hashes. Most windows of a text are among them; the MD5 of each
/// would take twice as long as all else (20 s of processor time for 48,000 pages in English, beside 10).
struct Seen {
    slots: Vec<(u128, u64)>,
}

impl Seen {
    /// 1 MiB.
    const SLOTS: usize = 1 << 15;

    /// The low 64 bits of the MD5 of a window.
    fn md5(&mut self, window: &str) -> u64 {
        // Four characters are 16 bytes at most, and 0xff is in no text: no two windows are one key, and none is 0.
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

/// Visits every run of 4 successive characters of the lower-case text, joined over what
/// `[\w\u4e00-\u9fcc]` does not match; a text of fewer characters, even of none, is one run.
pub(super) fn visit_features(text: &str, mut visit: impl FnMut(&str)) {
    let text: String = text.to_lowercase().chars().filter(|&c| is_word_character(c)).collect();
    let bounds: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    for window in bounds.windows(WINDOW.min(bounds.len() - 1) + 1) {
        visit(&text[window[0]..window[window.len() - 1]]);
    }
}

/// What Python's `\w` matches: letters, numbers of all kinds, and the underscore. Han characters
/// are letters.
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
        let mut seen = Seen { slots: vec![(0, 0); Seen::SLOTS] };
        let windows: Vec<String> = (0..100_000).map(|i| format!("{:x}", i % 70_000)).collect();
        for window in windows.iter().map(String::as_str).chain(["", "\0", "\0\0", "中文字符", "😀😀😀😀"])
        {
            let expected: u64 = FeatureHash::Md5.hash(window);
            assert_eq!(seen.md5(window), expected, "{window:?}");
        }
    }
}
