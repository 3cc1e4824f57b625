//! Features of source code: n-grams of successive identifiers, numbers and punctuation characters.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokenize::words::{WordBuffer, visit_unit_ngrams};

/// Visits every n-gram of `n` successive words of source code, joined by single spaces. A text with fewer words, but at least
/// one, is one n-gram.
///
/// A word is an identifier, a number or a punctuation character. Identifiers and numbers are runs of letters, digits and
/// underscores. A number may also have points between its digits. Any other character except white space is a punctuation
/// character. If a run contains a character outside ASCII, as in comments, the rules of UAX #29 split the run into words.
pub(super) fn code_ngrams(text: &str, n: usize, mut visit: impl FnMut(&str)) {
    let mut words = WordBuffer::default();
    words.clear(text.len());
    visit_words(text, |word| words.push(word));
    words.finish();
    visit_unit_ngrams(&words.joined, &words.bounds, n, 1, &mut visit);
}

/// Visits the words of source code, as [`code_ngrams`] defines them.
pub(super) fn visit_words(text: &str, mut visit: impl FnMut(&str)) {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(first) = rest.chars().next() {
        let length = if is_run_character(first) { run_length(rest) } else { first.len_utf8() };
        let (word, after) = rest.split_at(length);
        if !first.is_whitespace() {
            visit_run(word, &mut visit);
        }
        rest = after;
    }
}

fn is_run_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || (!c.is_ascii() && !c.is_whitespace())
}

/// Returns the length in bytes of the identifier or number at the beginning of a text.
fn run_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let is_number = bytes[0].is_ascii_digit();
    let mut end = 0;
    loop {
        end += text[end..].find(|c| !is_run_character(c)).unwrap_or(text.len() - end);
        let is_point = bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit);
        if !(is_number && is_point) {
            return end;
        }
        end += 1;
    }
}

fn visit_run(run: &str, visit: &mut impl FnMut(&str)) {
    if run.is_ascii() {
        return visit(run);
    }
    for part in run.split_word_bounds() {
        if part.contains(char::is_alphanumeric) {
            visit(part);
        } else {
            let mut buffer = [0; 4];
            part.chars().for_each(|c| visit(c.encode_utf8(&mut buffer)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        code_ngrams(text, 1, |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn identifiers_numbers_and_signs_are_words() {
        for (code, expected) in [
            ("let x_1=-5;", "let x_1 = - 5 ;"),
            ("C++ C#", "C + + C #"),
            ("a.b.c(&mut Self::D)", "a . b . c ( & mut Self : : D )"),
            ("0x1F 1.5f 1_000.25 0..10 x.0 1.e", "0x1F 1.5f 1_000.25 0 . . 10 x . 0 1 . e"),
            ("\u{feff}// don't\r\n\t#  héllo→Wörld’s 中文", "/ / don ' t # héllo → Wörld’s 中 文"),
            ("_ __init__ 'a'", "_ __init__ ' a '"),
            ("\u{a0}\u{2003}", ""),
        ] {
            assert_eq!(words(code).join(" "), expected, "{code}");
        }
        let mut runs = Vec::new();
        code_ngrams("f(x);", 3, |run| runs.push(run.to_owned()));
        assert_eq!(runs, ["f ( x", "( x )", "x ) ;"]);
    }

    proptest! {
        /// Concatenated, the words of a text contain all of its characters except white space.
        #[test]
        fn words_hold_all_that_is_no_white_space(text in "([a-z_.0-9+# \t\n-]|[é中’→\u{301}]|\\PC){0,40}") {
            let solid = |text: &str| -> String { text.chars().filter(|c| !c.is_whitespace()).collect() };
            let text = text.trim_start_matches('\u{feff}');
            prop_assert_eq!(solid(&words(text).concat()), solid(text));
        }
    }
}
