//! Columns and cells of rows.

use std::borrow::Cow;

use serde::Serialize;

use crate::IdRef;
use crate::output::column;

/// Kind of values of a column.
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

/// Name of a column, and its kind.
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
    /// The value as text. `escaped` is for lines of columns: characters that would break them are escaped.
    pub(super) fn text(&self, escaped: bool) -> Cow<'_, str> {
        match self {
            Cell::Id(IdRef::Name(text)) | Cell::Text(text) if escaped => column(text),
            Cell::Id(IdRef::Name(text)) | Cell::Text(text) => (*text).into(),
            Cell::Id(IdRef::Number(number)) | Cell::Count(number) => number.to_string().into(),
            Cell::Share(share) => share.to_string().into(),
            Cell::Flag(flag) => flag.to_string().into(),
        }
    }
}
