//! yanyiwu/simhash 1.3.0, for Chinese: its features are the 5 heaviest keywords that cppjieba 5.4.0 finds with its bundled
//! dictionaries, hashed with lookup3.
//!
//! A text is segmented by jieba-rs: first by the dictionary; then characters that belong to no dictionary word are joined to
//! words by the hidden Markov model. One difference to cppjieba remains. If punctuation follows a run of such characters,
//! cppjieba always joins the last two characters of the run, even if the model separates them.
//! `benches/history/choosing-a-profile.md` reports how rarely that changes a fingerprint.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use jieba_rs::Jieba;

use crate::feature_hash::FeatureHash;
use crate::presets::jieba_idf;
use crate::presets::partial_sort::select_heaviest;
use crate::presets::weighted_fingerprint::{Keyword, weighted_fingerprint};
use crate::simhash::Simhash;
use simstore::Fingerprint;

/// Number of keywords that are extracted from a text, as in the examples of yanyiwu/simhash.
const KEYWORDS: usize = 5;
/// Mean IDF of cppjieba's IDF table, used for words missing from the table. cppjieba's table is jieba's without words of one
/// character.
const MEAN_IDF: f64 = 11.739204307083542;
/// Characters at which cppjieba splits the text before it segments the pieces.
const SEPARATORS: [char; 5] = [' ', '\t', '\n', '，', '。'];
/// Words in jieba-rs's dictionary but not in cppjieba's.
const MISSING_WORDS: &str = "1号店 4S店 4s店 AA制 AB型 A型 A座 A股 A轮 BB机 BP机 B型 B座 B股 B轮 CALL机 CD机 CD盒 C座 C盘 \
    C语言 D座 D版 D盘 E化 E座 E盘 E通 F座 F盘 G盘 H盘 H股 IC卡 IP卡 IP地址 IP电话 I盘 K党 K歌之王 N年 O型 PC机 PH值 \
    QQ号 Q版 RSS订阅 SIM卡 T台 T型台 T恤衫 T盘 U盘 VISA卡 X光 X光线 X射线 Z盘 γ射线 吉林 大S 小S 江南Style 江南style 阿Q";
/// Words in cppjieba's dictionary but not in jieba-rs's, with their frequencies. The last four are from cppjieba's user dictionary.
const ADDED_WORDS: [(&str, usize); 6] =
    [("张力", 160), ("张华", 140), ("云计算", 3), ("韩玉鉴赏", 3), ("蓝翔", 3), ("区块链", 10)];

static JIEBA: LazyLock<Jieba> = LazyLock::new(|| {
    let mut jieba = Jieba::new();
    for word in MISSING_WORDS.split(' ') {
        jieba.add_word(word, Some(0), None);
        // Adds an alternative path from the first character, as frequent as cppjieba's rarest words.
        let first: String = word.chars().take(1).collect();
        if !jieba.has_word(&first) {
            jieba.add_word(&first, Some(2), None);
        }
    }
    for (word, frequency) in ADDED_WORDS {
        jieba.add_word(word, Some(frequency), None);
    }
    jieba
});

static STOP_WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("cppjieba_stop_words.txt").lines().filter(|line| !line.starts_with('#'));
    lines.flat_map(|line| line.split(' ')).collect()
});

pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let hashes = keywords(text).into_iter().map(|k| (FeatureHash::Lookup3.hash(k.word), k.weight));
    weighted_fingerprint(hashes, |sum| sum > 0.0)
}

/// Returns the 5 keywords with the greatest weights, heaviest first. The weight of a word is its count in the text times its IDF.
pub(super) fn keywords(text: &str) -> Vec<Keyword<'_>> {
    let mut counts = BTreeMap::<&str, u32>::new();
    visit_words(text, |word| {
        if !STOP_WORDS.contains(word) {
            *counts.entry(word).or_default() += 1;
        }
    });
    let weight = |word, count| f64::from(count) * jieba_idf::idf(word).unwrap_or(MEAN_IDF);
    let keywords = counts.into_iter().map(|(word, count)| Keyword { word, weight: weight(word, count) });
    select_heaviest(keywords.collect(), KEYWORDS)
}

/// Visits the words with at least two characters that cppjieba's `MixSegment` finds.
///
/// The dictionary is applied first, also across punctuation. Consecutive characters that belong to no dictionary word form a run,
/// which [`visit_run`] segments.
fn visit_words<'a>(text: &'a str, mut visit: impl FnMut(&'a str)) {
    for range in text.split(SEPARATORS) {
        let mut run = 0..0;
        for token in JIEBA.cut(range, false) {
            // Without the model, jieba-rs joins only letters and digits.
            let is_single =
                token.end - token.start == 1 || token.word.bytes().all(|b| b.is_ascii_alphanumeric());
            if is_single {
                run.end = token.byte_end;
            } else {
                visit_run(&range[run], &mut visit);
                visit(token.word);
                run = token.byte_end..token.byte_end;
            }
        }
        visit_run(&range[run], &mut visit);
    }
}

/// Visits the words with at least two characters in a run. A run consists of characters that belong to no dictionary word.
///
/// A word is an ASCII letter with the letters and digits after it, a digit with the digits and points after it, or a word that
/// the hidden Markov model finds in the characters outside ASCII.
fn visit_run<'a>(run: &'a str, visit: &mut impl FnMut(&'a str)) {
    let mut rest = run;
    while let Some(first) = rest.bytes().next() {
        let length = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let end = match first {
            b'a'..=b'z' | b'A'..=b'Z' => length(|c| c.is_ascii_alphanumeric()),
            b'0'..=b'9' => length(|c| c.is_ascii_digit() || c == '.'),
            0..0x80 => 1,
            _ => {
                let end = length(|c| !c.is_ascii());
                visit_model_words(&rest[..end], visit);
                rest = &rest[end..];
                continue;
            }
        };
        if end > 1 {
            visit(&rest[..end]);
        }
        rest = &rest[end..];
    }
}

/// Visits the words with at least two characters that the hidden Markov model finds in a text without ASCII characters. The model
/// covers only Han characters: the text is read only up to its first character that is not Han.
fn visit_model_words<'a>(text: &'a str, visit: &mut impl FnMut(&'a str)) {
    let han_end = text.find(|c| !('\u{4e00}'..='\u{9fff}').contains(&c)).unwrap_or(text.len());
    for token in JIEBA.cut(&text[..han_end], true) {
        if token.end - token.start > 1 {
            visit(token.word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<&str> {
        let mut words = Vec::new();
        visit_words(text, |word| words.push(word));
        words
    }

    #[test]
    fn letters_and_digits() {
        assert_eq!(words("SQL2019 v1.5 3.5.7% 2a IP地址"), ["SQL2019", "v1", "3.5.7", "IP", "地址"]);
    }

    /// The keywords and weights of a text equal those in the README of yanyiwu/simhash.
    #[test]
    fn the_project_s_example() {
        let text = "我是蓝翔技工拖拉机学院手扶拖拉机专业的。不用多久，我就会升职加薪，当上总经理，出任CEO，走上人生巅峰。";
        let found: Vec<_> = keywords(text).iter().map(|k| format!("{}:{:.4}", k.word, k.weight)).collect();
        assert_eq!(
            found,
            ["蓝翔:11.7392", "CEO:11.7392", "升职:10.8562", "加薪:10.6426", "手扶拖拉机:10.0089"]
        );
        assert_eq!(fingerprint::<u64>(text).fingerprint, 17_831_459_094_038_722_629);
    }
}
