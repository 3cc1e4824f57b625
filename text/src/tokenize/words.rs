//! Words of a cleaned text, and their n-grams.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokenize::{ascii, unspaced};

/// Visits every run of `n` successive words, joined by single spaces. A text of fewer words, but at least one, is one run.
pub(super) fn word_ngrams(text: &str, n: usize, segmented: bool, visit: impl FnMut(&str)) {
    Words::default().visit_ngrams(text, n, segmented, visit);
}

/// The words of a text, each followed by a space. They are used for one text after the other.
#[derive(Default)]
pub(crate) struct Words {
    /// Every n-gram is a slice of this text.
    pub(super) joined: String,
    /// Where each word starts in `joined`, and where the last one ends.
    pub(super) bounds: Vec<usize>,
}

impl Words {
    /// Visits every run of `n` successive words: see [`word_ngrams`].
    pub(super) fn visit_ngrams(
        &mut self,
        text: &str,
        n: usize,
        segmented: bool,
        mut visit: impl FnMut(&str),
    ) {
        self.clear(text.len());
        visit_words(text, segmented, |text, start, end| self.push(&text[start..end]));
        self.finish();
        visit_runs(&self.joined, &self.bounds, n, 1, &mut visit);
    }

    /// Makes room for the words of a text of this many bytes.
    pub(super) fn clear(&mut self, bytes: usize) {
        self.joined.clear();
        self.bounds.clear();
        self.joined.reserve(bytes + 1);
        self.bounds.reserve(bytes / 6);
    }

    #[inline]
    pub(super) fn push(&mut self, word: &str) {
        self.bounds.push(self.joined.len());
        self.joined.push_str(word);
        self.joined.push(' ');
    }

    /// Ends the last word.
    pub(super) fn finish(&mut self) {
        self.bounds.push(self.joined.len());
    }
}

/// The role of a character in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// A letter of ASCII, Latin-1, Latin Extended-A and -B, or Cyrillic.
    Letter,
    Digit,
    Underscore,
    /// `.`, `'`, `:`, `,`, `;` and `"` join some words.
    Joiner,
    /// White space or a sign that is in no word: words end before it.
    Other,
    /// A Han character, which is a word of its own.
    Han,
    /// Needs the full rules of UAX #29.
    Unknown,
    /// The end of the text.
    End,
}

/// Classes by the first byte of a character. Some bytes begin characters of several classes: see [`class`].
static CLASSES: [Class; 256] = {
    let mut classes = [Class::Unknown; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b'_' => Class::Underscore,
            b'.' | b'\'' | b':' | b',' | b';' | b'"' => Class::Joiner,
            0..0x80 => Class::Other,
            // U+00C0 to U+027F, and U+0400 to U+047F.
            0xc3..=0xc9 | 0xd0 | 0xd1 => Class::Letter,
            // U+4000 to U+9FFF.
            0xe4..=0xe9 => Class::Han,
            // U+2000 to U+2FFF, and U+3000 to U+3FFF: some are signs.
            0xe2 | 0xe3 => Class::Other,
            _ => Class::Unknown,
        };
        byte += 1;
    }
    classes
};

/// Returns the class and the length in bytes of the character at a position.
#[inline]
fn class(bytes: &[u8], at: usize) -> (Class, usize) {
    let Some(&first) = bytes.get(at) else { return (Class::End, 0) };
    let class = CLASSES[usize::from(first)];
    if first < 0x80 {
        return (class, 1);
    }
    let is_of_class = match (first, bytes[at + 1], bytes.get(at + 2)) {
        // The signs of multiplication and division.
        (0xc3, 0x97 | 0xb7, _) => false,
        // U+4000 to U+4DFF are another block.
        (0xe4, second, _) => second >= 0xb8,
        // Dashes and quotation marks.
        (0xe2, second, Some(third)) => second == 0x80 && matches!(third, 0x93..=0x95 | 0x9c..=0x9f | 0xa2),
        // The comma and full stop of Chinese, and its brackets.
        (0xe3, second, Some(third)) => {
            second == 0x80 && matches!(third, 0x81 | 0x82 | 0x88..=0x91 | 0x94..=0x9b)
        }
        _ => true,
    };
    let length = if first < 0xe0 { 2 } else { 3 };
    (if is_of_class { class } else { Class::Unknown }, length)
}

/// Visits the words of a text, each as a text with the start and the end of the word in it.
///
/// Words follow Unicode's word segmentation (UAX #29). They hold a letter or a digit, and lose the underscores around them. A Han
/// character is a word of its own. So is a character of Thai, Lao, Khmer and Burmese, unless the text is `segmented`: then
/// dictionaries cut these scripts into words.
#[inline(always)]
pub(super) fn visit_words(text: &str, segmented: bool, mut visit: impl FnMut(&str, usize, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while let Some(block) = bytes[at..].first_chunk::<{ ascii::BLOCK }>()
            && block[0] < 0x80
        {
            let done = ascii::visit_words(block, |start, end| visit(text, at + start, at + end));
            at += done;
            if done == 0 {
                break;
            }
        }
        // A Han character before another one, from U+5000.
        while let Some([0xe5..=0xe9, _, _, 0xe5..=0xe9]) = bytes[at..].first_chunk::<4>() {
            visit(text, at, at + 3);
            at += 3;
        }
        let (class_here, length) = class(bytes, at);
        let end = match class_here {
            Class::End => return,
            Class::Joiner | Class::Other => {
                at += length;
                continue;
            }
            // A combining mark may follow a Han character.
            Class::Han if class(bytes, at + length).0 == Class::Unknown => None,
            Class::Han => Some(at + length),
            Class::Letter | Class::Digit | Class::Underscore => word_end(bytes, at),
            Class::Unknown => None,
        };
        if let Some(mut end) = end {
            let next = end;
            while at < end && bytes[at] == b'_' {
                at += 1;
            }
            while at < end && bytes[end - 1] == b'_' {
                end -= 1;
            }
            if at < end {
                visit(text, at, end);
            }
            at = next;
        } else {
            let end = stretch_end(bytes, at);
            visit_stretch(&text[at..end], segmented, &mut visit);
            at = end;
        }
    }
}

/// Visits the words of a stretch by the full rules.
#[inline(never)]
fn visit_stretch(stretch: &str, segmented: bool, visit: &mut impl FnMut(&str, usize, usize)) {
    let each = |word: &str| {
        let word = trimmed(word);
        visit(word, 0, word.len());
    };
    match segmented {
        true => unspaced::visit_words(stretch, each),
        false => stretch.unicode_words().for_each(each),
    }
}

/// Returns a word of the full rules without the underscores around it, and without a sign before a combining letter.
fn trimmed(word: &str) -> &str {
    word.trim_start_matches(|c: char| !c.is_alphanumeric()).trim_end_matches('_')
}

/// Returns where the word ends that starts at a position, or `None` if that takes the full rules.
#[inline]
fn word_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut before = Class::Underscore;
    loop {
        let (class_here, length) = class(bytes, at);
        match class_here {
            Class::Letter | Class::Digit | Class::Underscore => {
                before = class_here;
                at += length;
            }
            Class::Joiner => {
                let (after, length) = class(bytes, at + 1);
                // A full stop or an apostrophe joins two letters or two digits; a colon, letters; a comma or semicolon, digits.
                let joins = match bytes[at] {
                    b'.' | b'\'' => matches!(before, Class::Letter | Class::Digit),
                    b':' => before == Class::Letter,
                    b',' | b';' => before == Class::Digit,
                    _ => false,
                };
                match after {
                    Class::Unknown => return None,
                    _ if !joins || after != before => return Some(at),
                    _ => at += 1 + length,
                }
            }
            Class::Unknown => return None,
            Class::Other | Class::Han | Class::End => return Some(at),
        }
    }
}

/// Returns where the stretch ends that takes the full rules: before the next character that no word goes over.
fn stretch_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let (class_here, length) = class(bytes, at);
        let is_end = match class_here {
            Class::End | Class::Other => true,
            Class::Han => class(bytes, at + length).0 != Class::Unknown,
            _ => false,
        };
        if is_end && at > start || class_here == Class::End {
            return at;
        }
        // A character of an unknown class has another length than its first byte tells.
        at += 1;
        while bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
            at += 1;
        }
    }
}

/// Visits the runs of `n` units. A unit reaches from its bound to the next, without `separator` bytes at its end.
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

    /// Characters of the fast classes, in all surroundings, are cut as by the full rules.
    #[test]
    fn every_character_of_the_fast_classes() {
        let fast = ('\0'..='\u{27f}').chain('\u{400}'..='\u{47f}').chain('\u{2000}'..='\u{206f}');
        let fast =
            fast.chain('\u{3000}'..='\u{30ff}').chain('\u{4d00}'..='\u{4eff}').chain('\u{9ff0}'..='\u{a0ff}');
        for c in fast {
            for text in [
                format!("{c}"),
                format!("a{c}b"),
                format!("1{c}2 {c}{c}"),
                format!("é{c}\u{301}д{c}.{c}"),
                format!("中{c}文,{c}\u{200d}{c}'{c}"),
                format!("א{c}\"{c}א 한{c}:カ{c}"),
            ] {
                let whole: Vec<_> = text.unicode_words().map(trimmed).collect();
                assert_eq!(words(&text, 1), whole, "{text:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn words_are_those_of_the_full_rules(text in "([a-c]{1,2}|[0-9]{1,2}|[_.,:;'\"-]|[ \t\r\n\x0b]|[éД中文，。“—’×٣אカ한 \u{301}\u{200d}\u{ad}]|[ -~]|\\PC|[a-z .]{20}){0,40}") {
            let whole: Vec<_> = text.unicode_words().map(trimmed).collect();
            prop_assert_eq!(words(&text, 1), whole);
        }
    }
}
