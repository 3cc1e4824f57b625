//! Words of a cleaned text, and their n-grams.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokenize::unspaced;

/// Visits every run of `n` successive words, joined by single spaces; a text of fewer words,
/// but at least one, is one run.
///
/// Words are those of Unicode's word segmentation (UAX #29) that hold a letter or a digit,
/// without the underscores around them. A Han character is a word of its own; so is one of Thai, Lao, Khmer and Burmese, unless
/// the text is to be `segmented`: then they are cut into words.
pub(super) fn word_ngrams(text: &str, n: usize, segmented: bool, mut visit: impl FnMut(&str)) {
    let words = Words::cut(text, segmented);
    visit_runs(&words.joined, &words.bounds, n, 1, &mut visit);
}

/// The words of a text, each followed by a space.
pub(super) struct Words {
    /// Every n-gram is a slice of this: none is put together on its own.
    pub(super) joined: String,
    /// Where each word starts in `joined`, and where the last one ends.
    pub(super) bounds: Vec<usize>,
}

/// What an ASCII character is in a word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Underscore,
    Space,
    Other,
    NotAscii,
}

static CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Underscore,
            b' ' | b'\t' | b'\n' | b'\x0c' | b'\r' => Class::Space,
            0x80.. => Class::NotAscii,
            _ => Class::Other,
        };
        byte += 1;
    }
    classes
};

fn class(bytes: &[u8], at: usize) -> Class {
    bytes.get(at).map_or(Class::Other, |&byte| CLASSES[usize::from(byte)])
}

impl Words {
    /// Cuts ASCII words by the rules that UAX #29 has for them. A word never spans white space:
    /// where a run between white space is not all ASCII, that run is cut by the full rules.
    fn cut(text: &str, segmented: bool) -> Words {
        let mut words = Words::with_capacity(text.len());
        let bytes = text.as_bytes();
        // Where the current run starts in the text, in `bounds` and in `joined`.
        let mut run = (0, 0, 0);
        let mut at = 0;
        while at < bytes.len() {
            match class(bytes, at) {
                Class::Space => {
                    at += 1;
                    run = (at, words.bounds.len(), words.joined.len());
                }
                Class::Other => at += 1,
                Class::NotAscii => {
                    words.bounds.truncate(run.1);
                    words.joined.truncate(run.2);
                    let rest = &text[run.0..];
                    let length = rest.find(|c: char| c.is_ascii_whitespace()).unwrap_or(rest.len());
                    let push = |word: &str| words.push(word.trim_matches('_'));
                    match segmented {
                        true => unspaced::visit_words(&rest[..length], push),
                        false => rest[..length].unicode_words().for_each(push),
                    }
                    at = run.0 + length;
                }
                Class::Letter | Class::Digit | Class::Underscore => {
                    let end = word_end(bytes, at);
                    let word = text[at..end].trim_matches('_');
                    if !word.is_empty() {
                        words.push(word);
                    }
                    at = end;
                }
            }
        }
        words.finish()
    }

    /// Of a text of so many bytes.
    pub(super) fn with_capacity(bytes: usize) -> Words {
        Words { joined: String::with_capacity(bytes + 1), bounds: Vec::with_capacity(bytes / 6) }
    }

    /// The words, when the last one is pushed.
    pub(super) fn finish(mut self) -> Words {
        self.bounds.push(self.joined.len());
        self
    }

    pub(super) fn push(&mut self, word: &str) {
        self.bounds.push(self.joined.len());
        self.joined.push_str(word);
        self.joined.push(' ');
    }
}

/// Where the ASCII word ends that starts at `at`.
fn word_end(bytes: &[u8], mut at: usize) -> usize {
    loop {
        while matches!(class(bytes, at), Class::Letter | Class::Digit | Class::Underscore) {
            at += 1;
        }
        // A full stop or an apostrophe joins two letters or two digits; a colon, letters; a comma or
        // semicolon, digits.
        let joins = match bytes.get(at) {
            Some(b'.' | b'\'') => [Class::Letter, Class::Digit].as_slice(),
            Some(b':') => &[Class::Letter],
            Some(b',' | b';') => &[Class::Digit],
            _ => return at,
        };
        let before = class(bytes, at - 1);
        if !joins.contains(&before) || class(bytes, at + 1) != before {
            return at;
        }
        at += 2;
    }
}

/// Visits the runs of `n` units. A unit reaches from its bound to the next, less `separator` bytes.
pub(super) fn visit_runs(
    joined: &str,
    bounds: &[usize],
    n: usize,
    separator: usize,
    visit: &mut impl FnMut(&str),
) {
    let n = n.min(bounds.len() - 1);
    if n == 0 {
        return;
    }
    for run in bounds.windows(n + 1) {
        visit(&joined[run[0]..run[n] - separator]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str, n: usize) -> Vec<String> {
        let mut ngrams = Vec::new();
        word_ngrams(text, n, false, |ngram| ngrams.push(ngram.to_owned()));
        ngrams
    }

    #[test]
    fn word_runs() {
        assert_eq!(words("a rose, is a rose", 2), ["a rose", "rose is", "is a", "a rose"]);
        assert_eq!(words("two words", 3), ["two words"]);
        assert_eq!(
            words("don't pay 3.14 _for_ snake_case", 1),
            ["don't", "pay", "3.14", "for", "snake_case"]
        );
        assert_eq!(words("中文 text", 2), ["中 文", "文 text"]);
        assert!(words("", 2).is_empty());
        assert!(words(" -- ... \u{1f600}", 2).is_empty());
    }

    #[test]
    fn white_space_ends_words_as_in_a_whole() {
        let text = "can\u{2019}t stop,\tl\u{2019}été 3\u{2009}000 नमस्ते ไทย かな カナ \u{200d} a\u{301}";
        let whole: Vec<_> = text.unicode_words().collect();
        assert_eq!(words(text, 1), whole);
    }

    #[test]
    fn scripts_without_spaces_are_segmented_if_that_is_asked_for() {
        let text = "C++ คือภาษา, ภาษา_c";
        let mut runs = Vec::new();
        word_ngrams(text, 3, true, |run| runs.push(run.to_owned()));
        assert_eq!(runs, ["c คือ ภาษา", "คือ ภาษา ภาษา", "ภาษา ภาษา c"].map(|run| run.replace("c คือ", "C คือ")));
        assert_eq!(words("คือ", 1), ["ค\u{e37}", "อ"]);
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_full_rules(text in "([a-c]{1,2}|[0-9]{1,2}|[_.,:;'\"-]|[ \t\r\n\x0b]|[é中’ \u{301}]|[ -~]){0,30}") {
            let whole: Vec<_> = text.unicode_words().map(|word| word.trim_matches('_')).collect();
            prop_assert_eq!(words(&text, 1), whole);
        }
    }
}
