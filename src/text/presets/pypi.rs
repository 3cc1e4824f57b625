//! The package `simhash` 2.1.2 on PyPI: windows of 4 characters, MD5.

use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory};

use crate::fingerprint::Fingerprint;
use crate::text::hash::FeatureHash;
use crate::text::presets::fingerprint_of;
use crate::text::simhash::Simhash;

/// Characters of a feature.
const WINDOW: usize = 4;

pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let mut hashes = Vec::new();
    visit_features(text, |feature| hashes.push((FeatureHash::Md5.hash(feature), 1.0)));
    fingerprint_of(hashes, |sum| sum > 0.0)
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
}
