//! Documents: their ids and texts, and the options for reading them.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::encoding::Encoding;
use crate::document::id::DocumentId;

pub mod escape;
pub(crate) mod id;
pub(crate) mod options;

pub use self::escape::{escape_text, name_to_path, names_from_bytes, path_to_name, unescape};
pub use self::id::format_position;

/// Name that replaces a file name in messages about documents from an iterator.
pub const STREAM_NAME: &str = "documents";

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Id of the document: the value of its id field or, without such a field, `PATH:LINE`. The id of a text file is
    /// its path.
    pub id: DocumentId,
    /// Text of the document, decoded and otherwise unchanged.
    pub text: String,
    /// Path of the document's file; `-` for standard input.
    pub path: Arc<Path>,
    /// Position of the document in its file: see [`Record::line`](crate::Record::line).
    pub line: u64,
    /// Number of malformed byte sequences that were replaced by U+FFFD.
    pub replacements: u64,
    /// Value of the [extra field](crate::DocumentOptions::extra_field): a string as it is, any other value of a JSON
    /// object as JSON, any other value of a Parquet column as text. `None` if the field is missing or null.
    pub extra: Option<String>,
    /// Whether the id is `PATH:LINE`, because the document has no id field.
    pub has_position_id: bool,
    /// Encoding that was guessed, because the text is not UTF-8 and declares no encoding; `None` for other texts.
    pub detected_encoding: Option<Encoding>,
}

impl Document {
    /// Creates a document that is not read from a file.
    pub fn new(id: DocumentId, text: String) -> Document {
        let path = Path::new(STREAM_NAME).into();
        Document {
            id,
            text,
            path,
            line: 0,
            replacements: 0,
            extra: None,
            has_position_id: false,
            detected_encoding: None,
        }
    }
}
