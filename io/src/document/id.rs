//! Ids of documents.

use std::borrow::Cow;
use std::fmt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::document::escape::{escape_name, path_to_name};

/// Maximum length in bytes of an id that is a name.
pub const MAX_NAME_BYTES: usize = 65_536;

/// Id of a document, by which results refer to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(untagged)]
pub enum DocumentId {
    /// A number.
    Number(u64),
    /// A name of at most [`MAX_NAME_BYTES`] bytes.
    Name(String),
}

impl DocumentId {
    /// Returns the id as text: a number in decimal, a name without escapes.
    pub fn text(&self) -> Cow<'_, str> {
        IdRef::from(self).text()
    }

    /// Creates an id from a name. Returns the reason if the name is longer than [`MAX_NAME_BYTES`].
    pub(crate) fn from_name(name: String) -> Result<DocumentId, String> {
        if name.len() > MAX_NAME_BYTES {
            return Err(format!("an id of {} bytes: at most {MAX_NAME_BYTES} are allowed", name.len()));
        }
        Ok(DocumentId::Name(name))
    }

    /// Creates the id `PATH:LINE` for a document that has no id field.
    pub fn from_position(path: &Path, line: u64) -> DocumentId {
        DocumentId::Name(format_position(path, line))
    }

    /// Parses an id. A decimal `u64` without sign and leading zeros is a number, any other text is a name.
    ///
    /// # Errors
    /// The reason, if the name is longer than [`MAX_NAME_BYTES`].
    pub fn from_text(text: &str) -> Result<DocumentId, String> {
        match text.parse::<u64>() {
            Ok(number) if number.to_string() == text => Ok(DocumentId::Number(number)),
            _ => DocumentId::from_name(text.to_owned()),
        }
    }
}

/// Formats the position of a document as `PATH:LINE`, for messages and ids.
pub fn format_position(path: &Path, line: u64) -> String {
    format!("{}:{line}", path_to_name(path))
}

/// A borrowed [`DocumentId`]. Numbers sort before names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(untagged)]
pub enum IdRef<'a> {
    /// A number.
    Number(u64),
    /// A name.
    Name(&'a str),
}

impl<'a> IdRef<'a> {
    /// Returns the id as text: a number in decimal, a name without escapes.
    pub fn text(self) -> Cow<'a, str> {
        match self {
            IdRef::Number(number) => number.to_string().into(),
            IdRef::Name(name) => name.into(),
        }
    }

    /// Returns the id as a column of a tab-separated line: a number in decimal, a name escaped by [`escape_name`].
    pub fn escaped_text(self) -> Cow<'a, str> {
        match self {
            IdRef::Number(_) => self.text(),
            IdRef::Name(name) => escape_name(name),
        }
    }
}

impl From<IdRef<'_>> for DocumentId {
    fn from(id: IdRef<'_>) -> Self {
        match id {
            IdRef::Number(number) => DocumentId::Number(number),
            IdRef::Name(name) => DocumentId::Name(name.to_owned()),
        }
    }
}

impl<'a> From<&'a DocumentId> for IdRef<'a> {
    fn from(id: &'a DocumentId) -> Self {
        match id {
            DocumentId::Number(number) => IdRef::Number(*number),
            DocumentId::Name(name) => IdRef::Name(name),
        }
    }
}

impl fmt::Display for DocumentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DocumentId::Number(number) => write!(f, "{number}"),
            DocumentId::Name(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_decimals_are_numbers() {
        for number in ["0", "7", "18446744073709551615"] {
            let id = DocumentId::from_text(number).unwrap();
            assert!(matches!(id, DocumentId::Number(_)), "{number}");
            assert_eq!(id.to_string(), number);
        }
        for name in ["007", "+7", "-7", "7 ", "18446744073709551616", "a", "一"] {
            assert_eq!(DocumentId::from_text(name), Ok(DocumentId::Name(name.to_owned())));
        }
    }

    #[test]
    fn names_have_a_limit() {
        assert!(DocumentId::from_name("x".repeat(MAX_NAME_BYTES)).is_ok());
        assert!(DocumentId::from_name("x".repeat(MAX_NAME_BYTES + 1)).is_err());
    }
}
