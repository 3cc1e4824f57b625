//! Keywords of Chinese text: jieba's words, weighted by TF-IDF.

use std::sync::LazyLock;

use jieba_rs::{Jieba, KeywordExtract, TfIdf};

/// Keyword weights are counted in units of 2^-24: the largest, an IDF of 14, fits a `u32`.
const WEIGHT_UNIT: f64 = (1 << 24) as f64;

/// The default dictionary and IDF table of jieba-rs, loaded once, when the first text needs them.
static JIEBA: LazyLock<(Jieba, TfIdf)> = LazyLock::new(|| (Jieba::new(), TfIdf::default()));

/// Visits the `count` keywords of greatest weight; among equal weights, the first words in
/// code point order. A text without words of two characters and more has none.
///
/// The weight of a word is its share of the text's words times its inverse document frequency.
pub(crate) fn keywords(text: &str, count: usize, mut visit: impl FnMut(&str, u32)) {
    let (jieba, tf_idf) = &*JIEBA;
    // jieba-rs breaks ties by the word, so its choice does not depend on the order of a hash map.
    for keyword in tf_idf.extract_keywords(jieba, text, count, Vec::new()) {
        visit(&keyword.keyword, (keyword.weight * WEIGHT_UNIT).round() as u32);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, count: usize) -> Vec<(String, u32)> {
        let mut found = Vec::new();
        keywords(text, count, |word, weight| found.push((word.to_owned(), weight)));
        found
    }

    #[test]
    fn heaviest_first_and_ties_by_word() {
        let text = "数据库引擎 alpha beta gamma delta 数据库";
        let all = found(text, 50);
        assert!(all.is_sorted_by_key(|(word, weight)| (std::cmp::Reverse(*weight), word.clone())), "{all:?}");
        for count in 0..=all.len() {
            assert_eq!(found(text, count), all[..count]);
        }
    }

    #[test]
    fn the_share_of_the_words_times_the_idf() {
        // 生化学 has the IDF 13.900677652 in jieba's table.
        assert_eq!(found("生化学", 5), [("生化学".to_owned(), (13.900677652 * WEIGHT_UNIT).round() as u32)]);
        assert!(found("的 了 the of", 5).is_empty());
    }
}
