//! Words of a text, and n-grams of words.

use unicode_segmentation::UnicodeSegmentation;

use crate::tokenize::{ascii_words, unspaced_scripts};

/// Visits every n-gram of `n` successive words of a text, joined by single spaces. If the text has fewer than `n` words, but at
/// least one, all words are one n-gram. For the definition of words and the parameter `segmented`, see [`visit_words`].
pub(super) fn word_ngrams(text: &str, n: usize, segmented: bool, visit: impl FnMut(&str)) {
    WordBuffer::default().visit_ngrams(text, n, segmented, visit);
}

/// A reusable buffer for the words of a text, each followed by a space.
#[derive(Default)]
pub(crate) struct WordBuffer {
    /// The words, each followed by a space. Every n-gram is a slice of this string.
    pub(super) joined: String,
    /// Offset of the start of each word in `joined`. After [`WordBuffer::finish`], the last entry is the length of `joined`.
    pub(super) bounds: Vec<usize>,
}

impl WordBuffer {
    /// Replaces the words in the buffer with the words of `text`, and visits the n-grams of `n` words: see [`word_ngrams`].
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
        visit_unit_ngrams(&self.joined, &self.bounds, n, 1, &mut visit);
    }

    /// Removes all words, and reserves memory for the words of a text of `bytes` bytes.
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

    /// Appends the end of the last word to [`WordBuffer::bounds`]. The caller must have added all words.
    pub(super) fn finish(&mut self) {
        self.bounds.push(self.joined.len());
    }
}

/// The class of a character in the fast word segmentation, which applies UAX #29 to the most frequent characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CharClass {
    /// A letter of ASCII, Latin-1, Latin Extended-A and -B, or Cyrillic.
    Letter,
    Digit,
    Underscore,
    /// One of `.`, `'`, `:`, `,`, `;` and `"`, which may join letters or digits to one word.
    Joiner,
    /// White space, or punctuation that is never part of a word: words end before it.
    Other,
    /// A Han character, which is a word of its own.
    Han,
    /// Any other character. The words around it are found by the full rules of UAX #29.
    Unknown,
    /// The end of the text.
    End,
}

/// Class of a character by its first byte in UTF-8. If characters of several classes begin with this byte, [`class_at`] corrects
/// the class.
static CLASSES: [CharClass; 256] = {
    let mut classes = [CharClass::Unknown; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b'a'..=b'z' | b'A'..=b'Z' => CharClass::Letter,
            b'0'..=b'9' => CharClass::Digit,
            b'_' => CharClass::Underscore,
            b'.' | b'\'' | b':' | b',' | b';' | b'"' => CharClass::Joiner,
            0..0x80 => CharClass::Other,
            // U+00C0 to U+027F, and U+0400 to U+047F.
            0xc3..=0xc9 | 0xd0 | 0xd1 => CharClass::Letter,
            // U+4000 to U+9FFF.
            0xe4..=0xe9 => CharClass::Han,
            // U+2000 to U+2FFF, and U+3000 to U+3FFF: some are punctuation.
            0xe2 | 0xe3 => CharClass::Other,
            _ => CharClass::Unknown,
        };
        byte += 1;
    }
    classes
};

/// Returns the class and the length in bytes of the character at offset `at`. The length of a character of class `Unknown` may be
/// wrong.
#[inline]
fn class_at(bytes: &[u8], at: usize) -> (CharClass, usize) {
    let Some(&first) = bytes.get(at) else { return (CharClass::End, 0) };
    let class = CLASSES[usize::from(first)];
    if first < 0x80 {
        return (class, 1);
    }
    let is_of_class = match (first, bytes[at + 1], bytes.get(at + 2)) {
        // The multiplication and division signs are no letters.
        (0xc3, 0x97 | 0xb7, _) => false,
        // Han characters start at U+4E00.
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
    (if is_of_class { class } else { CharClass::Unknown }, length)
}

/// Visits the words of a text. `visit` receives a string that contains the word, and the start and end of the word in this string.
///
/// Words follow Unicode's word segmentation (UAX #29). A word contains a letter or a digit. Underscores at both ends are removed.
/// A Han character is a word of its own. Without `segmented`, a character of Thai, Lao, Khmer and Burmese is also a word of its
/// own. With `segmented`, dictionaries segment these scripts into words.
#[inline(always)]
pub(super) fn visit_words(text: &str, segmented: bool, mut visit: impl FnMut(&str, usize, usize)) {
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        while let Some(block) = bytes[at..].first_chunk::<{ ascii_words::BLOCK_BYTES }>()
            && block[0] < 0x80
        {
            let done = ascii_words::visit_words(block, |start, end| visit(text, at + start, at + end));
            at += done;
            if done == 0 {
                break;
            }
        }
        // Han characters from U+5000 on that are followed by another one.
        while let Some([0xe5..=0xe9, _, _, 0xe5..=0xe9]) = bytes[at..].first_chunk::<4>() {
            visit(text, at, at + 3);
            at += 3;
        }
        let (class, length) = class_at(bytes, at);
        let end = match class {
            CharClass::End => return,
            CharClass::Joiner | CharClass::Other => {
                at += length;
                continue;
            }
            // A combining mark may follow a Han character.
            CharClass::Han if class_at(bytes, at + length).0 == CharClass::Unknown => None,
            CharClass::Han => Some(at + length),
            CharClass::Letter | CharClass::Digit | CharClass::Underscore => word_end(bytes, at),
            CharClass::Unknown => None,
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
            let end = full_rules_end(bytes, at);
            visit_by_full_rules(&text[at..end], segmented, &mut visit);
            at = end;
        }
    }
}

/// Visits the words of a text by the full rules of UAX #29. For the parameters, see [`visit_words`].
#[inline(never)]
fn visit_by_full_rules(text: &str, segmented: bool, visit: &mut impl FnMut(&str, usize, usize)) {
    let each = |word: &str| {
        let word = trimmed(word);
        visit(word, 0, word.len());
    };
    match segmented {
        true => unspaced_scripts::visit_words(text, each),
        false => text.unicode_words().for_each(each),
    }
}

/// Returns a word without the characters before its first letter or digit, and without underscores at its end.
fn trimmed(word: &str) -> &str {
    word.trim_start_matches(|c: char| !c.is_alphanumeric()).trim_end_matches('_')
}

/// Returns the end of the word that starts at offset `at`, or `None` if only the full rules of UAX #29 can find the end.
#[inline]
fn word_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut before = CharClass::Underscore;
    loop {
        let (class, length) = class_at(bytes, at);
        match class {
            CharClass::Letter | CharClass::Digit | CharClass::Underscore => {
                before = class;
                at += length;
            }
            CharClass::Joiner => {
                let (after, length) = class_at(bytes, at + 1);
                // A full stop or apostrophe joins two letters or two digits. A colon joins letters; a comma or semicolon joins
                // digits.
                let joins = match bytes[at] {
                    b'.' | b'\'' => matches!(before, CharClass::Letter | CharClass::Digit),
                    b':' => before == CharClass::Letter,
                    b',' | b';' => before == CharClass::Digit,
                    _ => false,
                };
                match after {
                    CharClass::Unknown => return None,
                    _ if !joins || after != before => return Some(at),
                    _ => at += 1 + length,
                }
            }
            CharClass::Unknown => return None,
            CharClass::Other | CharClass::Han | CharClass::End => return Some(at),
        }
    }
}

/// Returns the offset at which the fast segmentation continues after a part that needs the full rules of UAX #29. The part starts
/// at offset `start`, and ends before the next character that certainly does not continue a word, or at the end of the text.
fn full_rules_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    loop {
        let (class, length) = class_at(bytes, at);
        let is_end = match class {
            CharClass::End | CharClass::Other => true,
            CharClass::Han => class_at(bytes, at + length).0 != CharClass::Unknown,
            _ => false,
        };
        if is_end && at > start || class == CharClass::End {
            return at;
        }
        // `length` is wrong for a character of class `Unknown`, so the end of the character is searched.
        at += 1;
        while bytes.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
            at += 1;
        }
    }
}

/// Visits the n-grams of `n` units (words or characters) as slices of `joined`. Unit i is the slice from `bounds[i]` to
/// `bounds[i + 1]`, and ends with a separator of `separator` bytes. An n-gram does not include its last separator.
pub(super) fn visit_unit_ngrams(
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
    fn scripts_without_spaces_are_segmented_on_request() {
        let text = "C++ คือภาษา, ภาษา_c";
        let mut runs = Vec::new();
        word_ngrams(text, 3, true, |run| runs.push(run.to_owned()));
        assert_eq!(runs, ["c คือ ภาษา", "คือ ภาษา ภาษา", "ภาษา ภาษา c"].map(|run| run.replace("c คือ", "C คือ")));
        assert_eq!(words("คือ", 1), ["ค\u{e37}", "อ"]);
    }

    /// Splits short texts around each character to which [`class_at`] gives a class other than `Unknown`; of the Han characters,
    /// only around some. The words are the same as by the full rules of UAX #29.
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
