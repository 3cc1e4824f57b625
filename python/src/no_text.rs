//! Why something is no text.

use std::fmt;

/// A text, nothing, or why it is neither.
pub(crate) type MaybeText<T> = Result<Option<T>, NoText>;

/// Why something is no text.
#[derive(Clone, Debug)]
pub(crate) enum NoText {
    Type(String),
    Encoding(String),
}

impl fmt::Display for NoText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoText::Type(found) => write!(f, "is {found}, not a text"),
            NoText::Encoding(reason) => f.write_str(reason),
        }
    }
}
