//! Reading documents and fingerprints from files.
//!
//! Inputs are lists of paths; `-` is standard input. Files whose names end in `.gz` or `.zst`
//! are decompressed (several members in a row too), and so is standard input.
//!
//! | extension | holds |
//! |---|---|
//! | `.jsonl`, `.ndjson`, `.json` | documents: one JSON object a line |
//! | `.txt`, `.text`, `.md`, `.markdown`, `.htm`, `.html` | one document, its text as it stands; the id is the path |
//! | a folder | the documents of all files below it with one of these extensions, by name; links are not followed |
//! | `.hex`, `.tsv` | fingerprints: a line `HEX` or `HEX<TAB>ID` each |
//! | `.u64`, `.u128` | fingerprints: raw, little-endian |
//!
//! Standard input, and files and pipes with other extensions, are judged by their first bytes:
//! 16 or 32 hexadecimal digits on the first line are fingerprints, `{` is JSON lines; else
//! standard input and a pipe are read as JSON lines and a file as a text. What has been looked at
//! of a pipe is kept for the reader to come: it is opened once.
//!
//! Everything streams: no input is held in memory as a whole, except for a text file. Blank
//! lines, a byte order mark at the start and `\r` at the end of lines are ignored. A malformed
//! line is one [`Error::BadInput`] and reading can go on after it; any other error
//! is the last item.
//!
//! [`Error::BadInput`]: crate::Error::BadInput
//!
//! ```
//! use simstore::corpus::{DocumentOptions, fingerprint_documents};
//! use simstore::text::Profile;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n").unwrap();
//! let options = DocumentOptions::default();
//! for document in fingerprint_documents::<u64>(&[path], &options, &Profile::default()) {
//!     let document = document?;
//!     println!("{}: {:?}", document.id, document.simhash);
//! }
//! # Ok::<(), simstore::Error>(())
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::corpus::input::Format;
use crate::error::Result;

mod batch;
mod fingerprints;
mod id;
mod input;
mod json;
mod once;
mod records;

pub use crate::corpus::batch::{FingerprintedDocument, FingerprintedDocuments, fingerprint_documents};
pub use crate::corpus::fingerprints::{FingerprintRecord, Fingerprints, fingerprints};
pub use crate::corpus::id::{DocumentId, MAX_NAME_BYTES};
pub use crate::corpus::records::{Record, Records, records};

/// What an input holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Documents: read them with [`documents`] or [`fingerprint_documents`].
    Documents,
    /// Fingerprints: read them with [`fingerprints`](fn@fingerprints).
    Fingerprints,
}

impl InputKind {
    /// What a path holds, by its extension or, where that does not tell, its first bytes. What
    /// neither tells holds documents.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the path does not exist or cannot be read.
    pub fn detect(path: &Path) -> Result<InputKind> {
        if !once::is_stdin(path) && input::is_folder(path)? {
            return Ok(InputKind::Documents);
        }
        Ok(match input::detect_format(path)? {
            Some(Format::HexLines | Format::Raw { .. }) => InputKind::Fingerprints,
            Some(Format::Jsonl | Format::Text) | None => InputKind::Documents,
        })
    }
}

/// How documents are read.
///
/// ```
/// use simstore::corpus::DocumentOptions;
///
/// let options = DocumentOptions { id_field: Some("url".into()), ..DocumentOptions::default() };
/// assert_eq!(options.text_fields, ["text"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentOptions {
    /// The field of a JSON object that holds its id, a string or an integer of 64 bits. Objects
    /// must have it if it is named here. `None`: the field `id`; objects without it are called
    /// `file:line`.
    pub id_field: Option<String>,
    /// The fields that hold the text; several are joined by newlines. One may be missing or
    /// null, but not all. Default: `text`.
    pub text_fields: Vec<String>,
    /// The longest line or text file that is read, in bytes. Default: 1 GiB.
    pub max_bytes: usize,
}

impl Default for DocumentOptions {
    fn default() -> Self {
        DocumentOptions { id_field: None, text_fields: vec!["text".to_owned()], max_bytes: 1 << 30 }
    }
}

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is called.
    pub id: DocumentId,
    /// Its text, as it stands in the file.
    pub text: String,
    /// The file it came from; `-` for standard input.
    pub path: Arc<Path>,
    /// The line it stands on, from 1; 1 for a text file.
    pub line: u64,
}

/// The documents of files and folders, in order.
///
/// # Errors
/// Items are [`Error::BadInput`](crate::Error::BadInput) for a malformed document, after which
/// the next one follows. [`Error::Io`](crate::Error::Io) for a file that cannot be read or
/// decompressed, and [`Error::BadArgument`](crate::Error::BadArgument) for one that holds
/// fingerprints, end the iteration.
pub fn documents(
    paths: &[PathBuf],
    options: &DocumentOptions,
) -> impl Iterator<Item = Result<Document>> + use<> {
    let options = options.clone();
    records(paths, &options).map(move |record| record?.document(&options))
}
