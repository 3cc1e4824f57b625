//! Cells and columns of rows.

use std::borrow::Cow;

use serde::Serialize;

use crate::IdRef;
use crate::document::escape::escaped;

/// The kind of values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Ids of documents: numbers if all of them are, else text.
    Ids {
        /// Whether all of them are.
        are_numbers: bool,
    },
    /// Text.
    Text,
    /// A number.
    Count,
    /// A number from 0 to 1.
    Share,
    /// True or false.
    Flag,
}

/// The name of a column and its kind.
pub type Column = (&'static str, Kind);

/// A value of a row.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub enum Cell<'a> {
    /// The id of a document.
    Id(IdRef<'a>),
    /// Text.
    Text(&'a str),
    /// A number.
    Count(u64),
    /// A number from 0 to 1.
    Share(f64),
    /// True or false.
    Flag(bool),
}

impl Cell<'_> {
    /// The value as a column of a line: escaped.
    pub(super) fn column(&self) -> Cow<'_, str> {
        match self {
            Cell::Id(id) => id.column(),
            Cell::Text(text) => escaped(text),
            Cell::Count(_) | Cell::Share(_) | Cell::Flag(_) => self.text(),
        }
    }

    /// The value as text.
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
