//! Why something is no text.

use std::fmt;

/// A text, nothing, or why it is neither.
pub(crate) type MaybeText<T> = Result<Option<T>, TextError>;

/// Why something is no text.
#[derive(Clone, Debug)]
pub(crate) enum TextError {
    Type(String),
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
