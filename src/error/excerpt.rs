//! Excerpts of long texts, for error messages.

use std::borrow::Cow;

/// Number of characters that an excerpt keeps of a longer text.
const MAX_CHARACTERS: usize = 200;

/// Shortens a text for an error message: keeps the first 200 characters. If the text is longer, `...` replaces the
/// rest.
///
/// ```
/// use simstore::error::excerpt;
///
/// assert_eq!(excerpt("a name"), "a name");
/// assert_eq!(excerpt(&"x".repeat(1_000_000)).len(), 203);
/// ```
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}
