//! Columns and cells of a result table.

use std::borrow::Cow;

use serde::Serialize;

use crate::IdRef;
use crate::document::escape::escape_text;

/// Type of the values in a column of a result table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// Ids of documents. In Parquet, the column is numeric if all ids are numbers, otherwise text.
    Ids {
        /// Whether all ids are numbers.
        are_numbers: bool,
    },
    /// Text.
    Text,
    /// An unsigned integer.
    Count,
    /// A number from 0 to 1, such as a similarity.
    Share,
    /// True or false.
    Flag,
}

/// Name and type of a column of a result table.
pub type Column = (&'static str, ColumnKind);

/// A value in a row of a result table.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// The id of a document.
    Id(IdRef<'a>),
    /// Text.
    Text(&'a str),
    /// An unsigned integer.
    Count(u64),
    /// A number from 0 to 1, such as a similarity.
    Share(f64),
    /// True or false.
    Flag(bool),
}

impl Cell<'_> {
    /// Returns the value as text that is escaped for a column of a tab-separated line.
    pub(super) fn escaped_text(&self) -> Cow<'_, str> {
        match self {
            Cell::Id(id) => id.escaped_text(),
            Cell::Text(text) => escape_text(text),
            Cell::Count(_) | Cell::Share(_) | Cell::Flag(_) => self.text(),
        }
    }

    /// Returns the value as text, without escapes.
    pub(super) fn text(&self) -> Cow<'_, str> {
        match self {
            Cell::Id(id) => id.text(),
            Cell::Text(text) => (*text).into(),
            Cell::Count(number) => number.to_string().into(),
            Cell::Share(share) => share.to_string().into(),
            Cell::Flag(flag) => flag.to_string().into(),
        }
    }
}
