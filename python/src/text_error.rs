//! The reason why a Python or Arrow value is no text.

use std::fmt;

/// A text, `None` for a missing value, or the reason why the value is malformed.
pub(crate) type MaybeText<T> = Result<Option<T>, TextError>;

/// Reason why a value is no text. `Display` writes it as the end of a sentence, for example "is int, not a text" after
/// "text 3".
#[derive(Clone, Debug)]
pub(crate) enum TextError {
    /// The value has another type, with this name.
    Type(String),
    /// The value is not valid Unicode, for this reason.
    Encoding(String),
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TextError::Type(found) => write!(f, "is {found}, not a text"),
            TextError::Encoding(reason) => f.write_str(reason),
        }
    }
}
