//! Word-by-word comparison of two texts, for the page.

use simstore_text::{DiffSegment, Profile, WordDiff, jaccard};

use crate::messages::{PassageMessage, TextComparison};

/// Length of the start of a text that is compared word by word, in bytes. It bounds the time of a comparison.
const MAX_TEXT_BYTES: usize = 32 << 10;
/// Number of equal words shown on each side of a difference.
const CONTEXT_WORDS: usize = 25;

/// Compares two texts: their similarity under a profile, and their words.
pub(crate) fn compare_texts(profile: &Profile, a: &str, b: &str) -> TextComparison {
    let similarity = jaccard(&profile.feature_set(a), &profile.feature_set(b));
    let (a_start, b_start) = (start(a), start(b));
    let segments = WordDiff::new(a_start, b_start).segments(CONTEXT_WORDS);
    TextComparison {
        similarity,
        segments: segments.into_iter().map(passage).collect(),
        cut: a_start.len() < a.len() || b_start.len() < b.len(),
    }
}

/// Returns the start of a text, whole characters alone.
fn start(text: &str) -> &str {
    let end = (0..=text.len().min(MAX_TEXT_BYTES)).rev().find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or_default()]
}

fn passage(segment: DiffSegment<'_>) -> PassageMessage {
    match segment {
        DiffSegment::Equal(text) => PassageMessage::Equal(text.to_owned()),
        DiffSegment::Changed { a, b } => PassageMessage::Changed([a.to_owned(), b.to_owned()]),
        DiffSegment::Skipped(words) => PassageMessage::Skipped(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_of_a_long_text_is_compared() {
        let profile = Profile::default();
        let long = "好 ".repeat(MAX_TEXT_BYTES);
        let comparison = compare_texts(&profile, &long, "好 坏");
        let length = |passage: &PassageMessage| match passage {
            PassageMessage::Equal(text) => text.len(),
            PassageMessage::Changed(texts) => texts.iter().map(String::len).sum(),
            PassageMessage::Skipped(_) => 0,
        };
        let shown: usize = comparison.segments.iter().map(length).sum();
        assert!(comparison.cut && shown <= MAX_TEXT_BYTES + 10 && shown > MAX_TEXT_BYTES / 2, "{shown}");
        assert!(!compare_texts(&profile, "a", "b").cut);
    }
}
