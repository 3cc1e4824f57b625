//! Quoting input in messages.

use std::borrow::Cow;

/// The longest excerpt, in characters.
const MOST_CHARACTERS: usize = 200;

/// The beginning of a text of an input or an option, for a message: at most 200 characters, with `...` in place of the rest.
///
/// ```
/// use simstore::error::excerpt;
///
/// assert_eq!(excerpt("a name"), "a name");
/// assert_eq!(excerpt(&"x".repeat(1_000_000)).len(), 203);
/// ```
pub fn excerpt(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}...", &text[..end]).into(),
        None => text.into(),
    }
}
