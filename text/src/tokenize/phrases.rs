//! Features that are phrases or sentences of a text.

use std::cmp::Reverse;

use unicode_segmentation::UnicodeSegmentation;

/// Visits the phrases of a text. A phrase ends at a punctuation mark, a symbol or an empty line. White space in a phrase
/// becomes a single space.
pub(super) fn phrases(text: &str, visit: impl FnMut(&str)) {
    visit_pieces(text, |_| true, visit);
}

/// Visits the `count` longest distinct sentences of a text, longest first. The length is the number of characters without
/// spaces. Sentences of equal length are in code point order.
///
/// A sentence ends with a full stop, exclamation mark, question mark or ellipsis outside of words, or with an empty line. White
/// space and punctuation between the words of a sentence become single spaces.
pub(super) fn longest_sentences(text: &str, count: usize, mut visit: impl FnMut(&str)) {
    let mut sentences = Vec::new();
    visit_pieces(text, ends_sentence, |sentence| {
        let length = sentence.chars().filter(|&c| c != ' ').count();
        sentences.push((Reverse(length), sentence.to_owned()));
    });
    sentences.sort_unstable();
    sentences.dedup();
    sentences.iter().take(count).for_each(|(_, sentence)| visit(sentence));
}

fn ends_sentence(mark: char) -> bool {
    matches!(mark, '.' | '!' | '?' | '。' | '｡' | '．' | '！' | '？' | '…' | '؟' | '۔' | '।')
}

/// Splits a text at empty lines and at punctuation marks and symbols that satisfy `ends`. Visits the pieces that contain words,
/// with single spaces instead of other characters between the words.
fn visit_pieces(text: &str, ends: impl Fn(char) -> bool, mut visit: impl FnMut(&str)) {
    let mut piece = String::new();
    let (mut gap, mut line_breaks) = (false, 0);
    for segment in text.split_word_bounds() {
        if segment.contains(char::is_alphanumeric) {
            if gap && !piece.is_empty() {
                piece.push(' ');
            }
            piece.push_str(segment.trim_matches('_'));
            (gap, line_breaks) = (false, 0);
            continue;
        }
        gap = true;
        line_breaks += usize::from(segment.ends_with('\n'));
        let is_space = segment.chars().all(char::is_whitespace);
        if line_breaks == 2 || !is_space && segment.chars().any(&ends) {
            if !piece.is_empty() {
                visit(&piece);
            }
            piece.clear();
        }
    }
    if !piece.is_empty() {
        visit(&piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all_phrases(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        phrases(text, |phrase| found.push(phrase.to_owned()));
        found
    }

    fn longest(text: &str, count: usize) -> Vec<String> {
        let mut found = Vec::new();
        longest_sentences(text, count, |sentence| found.push(sentence.to_owned()));
        found
    }

    #[test]
    fn phrases_end_at_signs_and_empty_lines() {
        assert_eq!(
            all_phrases("don't stop, now\nor  never (3.14 _per_ cent)"),
            ["don't stop", "now or never", "3.14 per cent"]
        );
        assert_eq!(all_phrases("数据库引擎，处理 数据。保护"), ["数据库引擎", "处理 数据", "保护"]);
        assert_eq!(all_phrases("title\n \r\ntext\rgoes on"), ["title", "text goes on"]);
        assert!(all_phrases(" ,\n\n--").is_empty());
    }

    #[test]
    fn the_longest_sentences() {
        let text =
            "Short one. A long, long sentence it is! Of 3.5 words? A long, long sentence it is.\n\nThe title";
        assert_eq!(longest(text, 1), ["A long long sentence it is"]);
        assert_eq!(longest(text, 3), ["A long long sentence it is", "Of 3.5 words", "Short one"]);
        assert_eq!(longest(text, 4)[3], "The title");
        assert_eq!(longest("很短。这是一个很长的句子，它很长！", 1), ["这是一个很长的句子 它很长"]);
        assert_eq!(longest("b a. a b", 2), ["a b", "b a"]);
        assert!(longest("...", 3).is_empty());
    }

    proptest! {
        #[test]
        fn phrases_and_sentences_hold_all_words(text in "([a-z]{1,3}|[ ,.!]|\n|[一-三]|\\PC){0,40}") {
            // A word may start with a space that carries a combining mark.
            let words: String = text.unicode_words().map(|word| word.trim_matches('_')).collect();
            let words = words.replace(' ', "");
            prop_assert_eq!(all_phrases(&text).concat().replace(' ', ""), &words[..]);
            let mut sentences = Vec::new();
            visit_pieces(&text, ends_sentence, |sentence| sentences.push(sentence.to_owned()));
            prop_assert_eq!(sentences.concat().replace(' ', ""), &words[..]);
            let all = longest(&text, usize::MAX);
            prop_assert!(all.is_sorted_by_key(|s| (Reverse(s.replace(' ', "").chars().count()), s.clone())));
            for count in 0..3 {
                prop_assert_eq!(&longest(&text, count)[..], &all[..count.min(all.len())]);
            }
        }
    }
}
