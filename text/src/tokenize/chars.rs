//! Features that are n-grams of successive characters.

use unicode_normalization::char::is_combining_mark;

use crate::tokenize::words::visit_unit_ngrams;

/// Visits every n-gram of `n` successive characters, after each run of white space, punctuation and symbols between two words was
/// replaced with one space. At both ends of the text, such runs are removed. A text with fewer than `n` characters, but at least
/// one, is one n-gram.
pub(super) fn char_ngrams(text: &str, n: usize, mut visit: impl FnMut(&str)) {
    let mut joined = String::with_capacity(text.len() + 1);
    let mut bounds = Vec::with_capacity(text.len());
    let mut gap = false;
    for c in text.chars() {
        if c.is_alphanumeric() || is_combining_mark(c) {
            if gap && !joined.is_empty() {
                bounds.push(joined.len());
                joined.push(' ');
            }
            gap = false;
            bounds.push(joined.len());
            joined.push(c);
        } else {
            gap = true;
        }
    }
    bounds.push(joined.len());
    visit_unit_ngrams(&joined, &bounds, n, 0, &mut visit);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chars(text: &str, n: usize) -> Vec<String> {
        let mut ngrams = Vec::new();
        char_ngrams(text, n, |ngram| ngrams.push(ngram.to_owned()));
        ngrams
    }

    #[test]
    fn character_runs() {
        assert_eq!(chars("..ab, c!", 2), ["ab", "b ", " c"]);
        assert_eq!(chars("ab", 3), ["ab"]);
        assert_eq!(chars("中文", 1), ["中", "文"]);
        assert_eq!(chars("हिन्दी", 8), ["हिन्दी"]);
        assert!(chars("?!", 1).is_empty());
    }
}
