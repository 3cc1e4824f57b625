//! A pipeline for Chinese, described in a practice report: drops all but Han characters, extracts the 50 heaviest keywords with
//! jieba 0.42.1, and hashes them with a variant of Python 2's string hash.

use std::collections::HashMap;
use std::sync::LazyLock;

use jieba_rs::Jieba;

use crate::feature_hash::FeatureHash;
use crate::presets::jieba_idf;
use crate::presets::weighted_fingerprint::{Keyword, weighted_fingerprint};
use crate::simhash::Simhash;
use simstore::Fingerprint;

/// Maximum number of keywords that are extracted from a text.
const KEYWORDS: usize = 50;
/// Median of jieba's IDF table, used as the IDF of words missing from the table.
const MEDIAN_IDF: f64 = 11.9547675029;

static JIEBA: LazyLock<Jieba> = LazyLock::new(Jieba::new);

pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let text = only_han(text);
    // The report uses the low 64 bits of the 128-bit hash. They equal the 64-bit hash.
    let hashes = keywords(&text).into_iter().map(|k| (FeatureHash::StringHash.hash(k.word), k.weight));
    weighted_fingerprint(hashes, |sum| sum > 0.0)
}

/// Returns the characters from U+4E00 to U+9FCC, and drops all others.
pub(super) fn only_han(text: &str) -> String {
    text.chars().filter(|c| ('\u{4e00}'..='\u{9fcc}').contains(c)).collect()
}

/// Returns the (up to 50) words of greatest TF-IDF weight in a text of Han characters, heaviest first. Words of equal weight are in
/// code point order.
///
/// As in `jieba.analyse.extract_tags`, words of one character are ignored: they are never keywords, and do not count as words of
/// the text when weights are computed.
pub(super) fn keywords(han: &str) -> Vec<Keyword<'_>> {
    let mut counts: HashMap<&str, u32> = HashMap::new();
    for token in JIEBA.cut(han, true) {
        if token.word.chars().nth(1).is_some() {
            *counts.entry(token.word).or_default() += 1;
        }
    }
    let total = f64::from(counts.values().sum::<u32>());
    let weight = |word, count| f64::from(count) * (jieba_idf::idf(word).unwrap_or(MEDIAN_IDF) / total);
    let mut keywords: Vec<_> =
        counts.into_iter().map(|(word, count)| Keyword { word, weight: weight(word, count) }).collect();
    keywords.sort_unstable_by(|a, b| b.weight.total_cmp(&a.weight).then_with(|| a.word.cmp(b.word)));
    keywords.truncate(KEYWORDS);
    keywords
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values are from `jieba.analyse.extract_tags` of jieba 0.42.1.
    #[test]
    fn weights_of_jieba() {
        let found = keywords("北京大学生化学");
        let found: Vec<_> = found.iter().map(|k| (k.word, k.weight)).collect();
        let expected =
            [("大学生", 2.49903448468), ("化学", 2.0439072024800002), ("北京", 1.5558007695733334)];
        assert_eq!(found, expected);
    }

    #[test]
    fn only_han_counts() {
        assert_eq!(only_han("A中 文\u{9fcc}，\u{9fcd}\u{3400}\u{20000}"), "中文\u{9fcc}");
        assert_eq!(fingerprint::<u64>("数据 库").fingerprint, fingerprint::<u64>("数据库").fingerprint);
        assert_eq!(fingerprint::<u64>("no Han").fingerprint, 0);
    }
}
