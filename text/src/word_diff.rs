//! Word-by-word comparison of two texts, for people who read it.

use std::ops::Range;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};
use unicode_segmentation::UnicodeSegmentation;

/// Differences between two texts `a` and `b`, word by word. White space separates words, and differences in white space are
/// ignored. A word with non-ASCII characters is split further, at the word boundaries of Unicode (UAX #29).
///
/// The edits are a shortest edit script (E. W. Myers, Algorithmica 1, 1986).
/// The time grows with the number of words times the number of differences, so a caller limits the length of texts that may have
/// nothing in common.
///
/// ```
/// use simstore_text::{DiffSegment, WordDiff};
///
/// let diff = WordDiff::new("To be or not to be", "To be  and not to be");
/// let segments = [
///     DiffSegment::Equal("To be"),
///     DiffSegment::Changed { a: " or", b: "  and" },
///     DiffSegment::Equal(" not to be"),
/// ];
/// assert_eq!(diff.segments(10), segments);
/// ```
#[derive(Clone, Debug)]
pub struct WordDiff<'a> {
    texts: [&'a str; 2],
    words: [Vec<DiffWord<'a>>; 2],
    edits: Vec<WordEdit>,
}

/// Word of a text in a [`WordDiff`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffWord<'a> {
    /// The word.
    pub text: &'a str,
    /// Byte offset of the word in its text.
    pub start: usize,
    /// Line on which the word begins, counted from 1.
    pub line: usize,
    /// Whether white space precedes the word.
    pub is_spaced: bool,
}

/// Edit of a [`WordDiff`]: a range of words of the first text, and the range of words in its place in the second text. One of
/// the two may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordEdit {
    /// Whether the words of both ranges are equal.
    pub is_equal: bool,
    /// The range of words in each of the two texts.
    pub words: [Range<usize>; 2],
}

/// Passage of two compared texts. It begins with the white space that precedes its first word, unless it begins the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffSegment<'a> {
    /// Words that both texts have, as written in the first text.
    Equal(&'a str),
    /// Words that only the first text has, and the words in their place in the second text. One of the two may be empty.
    Changed {
        /// Passage of the first text.
        a: &'a str,
        /// Passage of the second text.
        b: &'a str,
    },
    /// Number of equal words that are left out.
    Skipped(usize),
}

impl<'a> WordDiff<'a> {
    /// Compares two texts.
    pub fn new(a: &'a str, b: &'a str) -> WordDiff<'a> {
        let words = [words(a), words(b)];
        let texts = words.each_ref().map(|words| words.iter().map(|word| word.text).collect::<Vec<_>>());
        let operations = capture_diff_slices(Algorithm::Myers, &texts[0], &texts[1]);
        WordDiff { texts: [a, b], words, edits: operations.iter().map(WordEdit::from_operation).collect() }
    }

    /// Returns the words of both texts.
    pub fn words(&self) -> [&[DiffWord<'a>]; 2] {
        self.words.each_ref().map(Vec::as_slice)
    }

    /// Returns the edits that turn the first text into the second, in order. They cover all words of both texts.
    pub fn edits(&self) -> &[WordEdit] {
        &self.edits
    }

    /// Returns the edits in groups, each with at most `context` equal words before and after each change. Equal words between the
    /// groups are left out.
    pub fn groups(&self, context: usize) -> Vec<Vec<WordEdit>> {
        let operations = self.edits.iter().map(WordEdit::to_operation).collect();
        let groups = group_diff_ops(operations, context);
        groups.iter().map(|group| group.iter().map(WordEdit::from_operation).collect()).collect()
    }

    /// Returns the passage of each text that an edit covers. It is empty if the text has no words there.
    pub fn passages(&self, edit: &WordEdit) -> [&'a str; 2] {
        [0, 1].map(|side| self.passage(side, edit.words[side].clone()))
    }

    /// Returns both texts as segments, in order. Of more than `2 * context` equal words, only `context` words at the start and at
    /// the end of the passage are returned.
    pub fn segments(&self, context: usize) -> Vec<DiffSegment<'a>> {
        let mut segments = Vec::new();
        for edit in &self.edits {
            let Range { start, end } = edit.words[0];
            if !edit.is_equal {
                let [a, b] = [0, 1].map(|side| self.spaced_passage(side, edit.words[side].clone()));
                segments.push(DiffSegment::Changed { a, b });
            } else if end - start > 2 * context {
                segments.push(DiffSegment::Equal(self.spaced_passage(0, start..start + context)));
                segments.push(DiffSegment::Skipped(end - start - 2 * context));
                segments.push(DiffSegment::Equal(self.spaced_passage(0, end - context..end)));
            } else {
                segments.push(DiffSegment::Equal(self.spaced_passage(0, start..end)));
            }
        }
        segments.retain(|segment| *segment != DiffSegment::Equal(""));
        segments
    }

    /// Returns a range of words with the white space before it.
    fn spaced_passage(&self, side: usize, range: Range<usize>) -> &'a str {
        let words = &self.words[side];
        let start =
            match (words.get(range.start), range.start.checked_sub(1).and_then(|before| words.get(before))) {
                (Some(_), Some(before)) => before.end(),
                (first, _) => first.map_or(0, |first| first.start),
            };
        words[range].last().map_or("", |last| &self.texts[side][start..last.end()])
    }

    fn passage(&self, side: usize, range: Range<usize>) -> &'a str {
        let words = &self.words[side];
        match (words.get(range.start), words[range].last()) {
            (Some(first), Some(last)) => &self.texts[side][first.start..last.end()],
            _ => "",
        }
    }
}

impl DiffWord<'_> {
    /// Returns the byte offset of the end of the word in its text.
    fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

impl WordEdit {
    fn from_operation(operation: &DiffOp) -> WordEdit {
        let words = [operation.old_range(), operation.new_range()];
        WordEdit { is_equal: operation.tag() == DiffTag::Equal, words }
    }

    fn to_operation(&self) -> DiffOp {
        let [a, b] = &self.words;
        let (old_index, new_index, old_len, new_len) = (a.start, b.start, a.len(), b.len());
        match (self.is_equal, old_len, new_len) {
            (true, ..) => DiffOp::Equal { old_index, new_index, len: old_len },
            (false, 0, _) => DiffOp::Insert { old_index, new_index, new_len },
            (false, _, 0) => DiffOp::Delete { old_index, old_len, new_index },
            (false, ..) => DiffOp::Replace { old_index, old_len, new_index, new_len },
        }
    }
}

fn words(text: &str) -> Vec<DiffWord<'_>> {
    let (mut words, mut line, mut counted) = (Vec::new(), 1, 0);
    for piece in text.split_whitespace() {
        // `piece` is a slice of `text`, so the difference of the addresses is its byte offset.
        let offset = piece.as_ptr() as usize - text.as_ptr() as usize;
        line += text[counted..offset].matches('\n').count();
        counted = offset;
        let mut word = |start, text| {
            words.push(DiffWord { text, start: offset + start, line, is_spaced: start == 0 });
        };
        if piece.is_ascii() {
            word(0, piece);
        } else {
            piece.split_word_bound_indices().for_each(|(start, text)| word(start, text));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_equal_passages_are_shortened() {
        let text = "a b c d e f g h";
        let longer = format!("{text} i");
        let diff = WordDiff::new(text, &longer);
        let whole = [DiffSegment::Equal(text), DiffSegment::Changed { a: "", b: " i" }];
        assert_eq!(diff.segments(4), whole);
        let (start, end) = (DiffSegment::Equal("a b c"), DiffSegment::Equal(" f g h"));
        assert_eq!(diff.segments(3), [start, DiffSegment::Skipped(2), end, whole[1]]);
        assert_eq!(diff.segments(0), [DiffSegment::Skipped(8), whole[1]]);
    }

    #[test]
    fn chinese_is_divided_into_words() {
        let diff = WordDiff::new("今天天气好", "今天天气坏");
        assert!(matches!(diff.segments(9).last(), Some(DiffSegment::Changed { a: "好", b: "坏" })));
    }

    #[test]
    fn lines_count_from_1() {
        let diff = WordDiff::new("a\n\nb c", "");
        assert_eq!(diff.words()[0].iter().map(|word| word.line).collect::<Vec<_>>(), [1, 3, 3]);
    }

    proptest! {
        /// The edits cover all words of both texts in order, equal edits have equal words, and the segments have every word.
        #[test]
        fn edits_cover_both_texts(a in "[abc é好\n]{0,40}", b in "[abc é好\n]{0,40}", context in 0..4_usize) {
            let diff = WordDiff::new(&a, &b);
            for side in [0, 1] {
                let mut next = 0;
                for edit in diff.edits() {
                    prop_assert_eq!(edit.words[side].start, next);
                    next = edit.words[side].end;
                }
                prop_assert_eq!(next, diff.words()[side].len());
            }
            for edit in diff.edits().iter().filter(|edit| edit.is_equal) {
                let [one, other] = [0, 1].map(|side| {
                    diff.words()[side][edit.words[side].clone()].iter().map(|word| word.text).collect::<Vec<_>>()
                });
                prop_assert_eq!(one, other);
            }
            // With enough context, the segments are the whole first text.
            let whole: String = diff.segments(40).iter().map(|segment| match segment {
                DiffSegment::Equal(a) | DiffSegment::Changed { a, .. } => *a,
                DiffSegment::Skipped(_) => "(skipped)",
            }).collect();
            prop_assert_eq!(whole, a.trim());
            let mut segment_words = [0, 0];
            for segment in diff.segments(context) {
                let count = |text: &str| words(text).len();
                let counts = match segment {
                    DiffSegment::Equal(a) => [count(a); 2],
                    DiffSegment::Changed { a, b } => [count(a), count(b)],
                    DiffSegment::Skipped(skipped) => [skipped; 2],
                };
                (0..2).for_each(|side| segment_words[side] += counts[side]);
            }
            prop_assert_eq!(diff.words().map(<[_]>::len), segment_words);
            prop_assert_eq!(diff.groups(context).is_empty(), diff.edits().iter().all(|edit| edit.is_equal));
        }
    }
}
