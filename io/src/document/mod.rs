//! Documents: their ids, texts, and options for reading them.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::encoding::Encoding;
use crate::document::id::DocumentId;

pub mod escape;
pub(crate) mod id;
pub(crate) mod options;

pub use self::escape::{escaped, listed_names_of_bytes, path_of_text, path_text, unescaped};
pub use self::id::place;

/// The name of given documents in messages, in place of a file.
pub const GIVEN: &str = "documents";

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// Its id.
    pub id: DocumentId,
    /// Its text, decoded and otherwise unchanged.
    pub text: String,
    /// The file it came from; `-` for standard input.
    pub path: Arc<Path>,
    /// Where it starts there: see [`Record::line`](crate::Record::line).
    pub line: u64,
    /// How many malformed sequences of bytes became U+FFFD.
    pub replaced: u64,
    /// The value of the [extra field](crate::DocumentOptions::extra_field), if that is there: a string as it is, anything
    /// else as JSON writes it.
    pub extra: Option<String>,
    /// Whether the id is made of where it stands, as it has none itself.
    pub is_placed: bool,
    /// The detected encoding of a text that is not UTF-8 and declares no encoding.
    pub guessed: Option<Encoding>,
}

impl Document {
    /// A document in memory, which is in no file.
    pub fn new(id: DocumentId, text: String) -> Document {
        let path = Path::new(GIVEN).into();
        Document { id, text, path, line: 0, replaced: 0, extra: None, is_placed: false, guessed: None }
    }
}
