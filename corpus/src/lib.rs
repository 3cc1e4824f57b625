//! What is done with whole corpora: reading documents and fingerprints from files, and the jobs on them.
//!
//! In the order to read: [`Inputs`] is what a job reads, [`Document`] and [`Item`] what it holds, [`DocumentOptions`] how it
//! is read. [`DocumentWriter`] writes documents again as they stand; [`output`] and [`rows`] write results. A job is a
//! function with plain options and a plain result, and a [`Watch`] that is told how far it has come and can stop it:
//!
//! - [`dedup`](mod@dedup): the near-duplicates of a corpus, and the corpus without them;
//! - [`evaluate`](mod@evaluate): which distance finds the near-duplicates of labelled pairs, and what else it finds;
//! - [`add`](mod@add): documents into a store that may hold some already, [`build`](mod@build): into a new one;
//! - [`idf`]: in how many documents each feature comes;
//! - [`delete`]: documents out of a store, by what they are called;
//! - [`describe`]: what is in a store, as plain data;
//! - [`ratio`]: how small fingerprints become, by each codec and by other methods;
//! - [`synth`]: random fingerprints and documents, to measure with.
//!
//! # Inputs
//!
//! Inputs are lists of paths: files, folders, and patterns such as `corpus/**/*.csv`, which match as in a shell and
//! must match something. `-` is standard input.
//!
//! | extension | holds |
//! |---|---|
//! | `.jsonl`, `.ndjson`, `.json` | documents: one JSON object a line, or one array of objects |
//! | `.csv`, `.tsv` | documents: a table, whose first row names the columns; what is quoted may hold newlines |
//! | `.parquet` | documents: a table (feature `parquet`) |
//! | `.warc`, `.wet` | documents: the pages of a web archive, successful HTTP responses with a text in them, and its `conversion` and `resource` records that are texts |
//! | `.txt`, `.text`, `.md`, `.markdown`, `.htm`, `.html` | one document, its text as it stands; the id is the path |
//! | `.zip`, `.tar`, `.tgz`, `.tbz2`, `.txz`, `.tzst` | an archive: its members are read as the files of a folder are |
//! | `.hex`, `.tsv` | fingerprints: a line `HEX` or `HEX<TAB>ID` each; a `.tsv` file is one of these if its first line is one |
//! | `.u64`, `.u128` | fingerprints: raw, little-endian |
//!
//! Of a folder, the documents of all files below it with one of these extensions are read, by name; but not JSON without a text
//! field, which is that of some program. Links are followed; files and folders whose names begin with a dot are left out.
//!
//! A file is read once, whatever names and links lead to it: under the first one, or the first that is no link. A byte of a name
//! that is no UTF-8 stands as `\xHH` in ids and places, and a backslash as two where there is such a byte or sequence.
//!
//! All but Parquet and raw fingerprints may be compressed, with gzip, zstd, bzip2 or xz, in several members too:
//! by `.gz`, `.zst`, `.bz2` or `.xz` after the extension, or by their first bytes. Standard input, and files and pipes
//! with other extensions, are judged by their first bytes: 16 or 32 hexadecimal digits on the first line are
//! fingerprints, `{` is JSON lines, a row with the name of a text field is a table, and Parquet and WARC say what they
//! are; else standard input and a pipe are read as JSON lines and a file as a text. Content comes before names where it
//! is no text: an archive or Parquet is read as that whatever it is called, and what else is binary is refused by saying
//! what it looks like. [`DocumentOptions::format`] comes before all this. What has been looked at of a pipe is kept for the
//! reader to come: it is opened once.
//!
//! A member of an archive is called by the path of the archive and its own, `pages.zip/a/b.txt`, and is never written to
//! disk. Members come in the order of the archive, hidden ones and those with unknown extensions left out.
//!
//! Everything streams: no input is held in memory as a whole, except for a text file. Blank lines and a byte order mark
//! at the start are ignored. Malformed characters are replaced and counted. A malformed document, the
//! rest of a damaged row group of Parquet, or a file that cannot be read or read on, is one
//! [`Error::BadInput`](simstore::Error::BadInput), and the reading goes on after it; any other error is the last item.
//!
//! ```
//! use simstore_corpus::{DocumentOptions, fingerprint_documents};
//! use simstore_text::Profile;
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
#![forbid(unsafe_code)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use simstore::Result;

pub mod add;
mod archive;
mod batch;
mod binary;
pub mod build;
mod code;
mod compression;
mod compressor;
mod csv;
pub mod dedup;
pub mod delete;
pub mod describe;
mod encoding;
pub mod evaluate;
mod field_names;
mod fields;
mod file;
mod files;
mod fingerprints;
mod format;
mod given;
mod http;
mod id;
pub mod idf;
mod input;
mod inputs;
mod item;
mod json;
mod limit;
mod naming;
mod notice;
pub mod numbers;
mod objects;
mod options;
pub mod output;
#[cfg(feature = "parquet")]
mod parquet;
#[cfg(feature = "parquet")]
mod parquet_writer;
mod pipes;
mod progress;
mod random;
pub mod ratio;
mod records;
pub mod rows;
mod section;
mod sections;
mod spill;
pub mod synth;
mod transcode;
mod visit;
mod warc;
mod watch;
mod writer;

pub use crate::batch::{FingerprintedDocument, FingerprintedDocuments, fingerprint_documents};
pub use crate::code::profile_of_texts;
pub use crate::compression::Compression;
pub use crate::compressor::Compressor;
pub use crate::encoding::Encoding;
pub use crate::files::{InputFile, InputFiles, input_files, matching_paths};
pub use crate::fingerprints::{FingerprintRecord, Fingerprints, fingerprints};
pub use crate::id::{DocumentId, IdRef, MAX_NAME_BYTES};
pub use crate::inputs::{InputKind, Inputs};
pub use crate::item::{Counts, Item};
pub use crate::naming::Naming;
pub use crate::notice::{Notice, ReadNotes};
pub use crate::options::{DocumentFormat, DocumentOptions};
pub use crate::progress::{ReadNote, ReadProgress};
pub use crate::records::{Record, Records, records};
pub use crate::visit::{Block, Piece};
pub use crate::watch::{Progress, Watch};
pub use crate::writer::{Annotation, DocumentWriter};

/// A document of a corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// What it is called.
    pub id: DocumentId,
    /// Its text, as it stands in the file, decoded.
    pub text: String,
    /// The file it came from; `-` for standard input.
    pub path: Arc<Path>,
    /// Where it starts there: see [`Record::line`].
    pub line: u64,
    /// How many malformed sequences of bytes became U+FFFD.
    pub replaced: u64,
    /// The value of the [extra field](DocumentOptions::extra_field), if that is there: a string as it is, anything
    /// else as JSON writes it.
    pub extra: Option<String>,
    /// Whether the id is made of where it stands, as it has none itself.
    pub is_placed: bool,
    /// The encoding of a text that is not UTF-8 and does not say what it is: a guess by its bytes.
    pub guessed: Option<Encoding>,
}

impl Document {
    /// A document that is in no file, to be [given](Inputs::of_documents).
    pub fn new(id: DocumentId, text: String) -> Document {
        let path = Path::new(given::DOCUMENTS).into();
        Document { id, text, path, line: 0, replaced: 0, extra: None, is_placed: false, guessed: None }
    }
}

/// The documents of files and folders, in order.
///
/// # Errors
/// Items are [`Error::BadInput`](simstore::Error::BadInput) for a malformed document, after which the next one follows, and for a file that
/// cannot be opened, decompressed or read on, or that lacks the columns asked for, after which the next file
/// follows. [`Error::Io`](simstore::Error::Io) for a file that is not there, and [`Error::BadArgument`](simstore::Error::BadArgument) for one that holds fingerprints
/// and for a pattern that matches nothing end the iteration.
pub fn documents(
    paths: &[PathBuf],
    options: &DocumentOptions,
) -> impl Iterator<Item = Result<Document>> + use<> {
    let options = options.clone();
    records(paths, &options).projected(true).map(move |record| record?.document(&options))
}

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
