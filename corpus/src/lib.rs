//! Reads documents and fingerprints of whole corpora from files, and runs jobs on them.
//!
//! Start with [`Inputs`], the inputs of a job; then [`Document`] and [`Item`], their records, and [`DocumentOptions`],
//! which say how to read them. [`DocumentWriter`] writes documents unchanged; [`output`] and [`rows`] write results. A
//! job is a function with plain options and a plain result. A [`Watch`] receives its progress and can stop it:
//!
//! - [`dedup`](mod@dedup) finds the near-duplicates of a corpus, and writes the corpus without them.
//! - [`evaluate`](mod@evaluate) measures how well each distance finds the near-duplicates of labelled pairs, and how
//!   many false pairs it finds.
//! - [`add`](mod@add) adds documents to a store, [`build`](mod@build) builds a new store.
//! - [`idf`] counts the documents that have each feature.
//! - [`delete`] deletes documents from a store by their ids or names.
//! - [`describe`] describes the contents of a store as plain data.
//! - [`shards`] handles the list of a set in several stores.
//! - [`ratio`] measures the size of fingerprints, compressed by each codec and by other methods.
//!
//! # Inputs
//!
//! Inputs are lists of paths: files, folders, and patterns such as `corpus/**/*.csv`. Patterns match as in a shell and
//! must match something. `-` is standard input.
//!
//! | extension | holds |
//! |---|---|
//! | `.jsonl`, `.ndjson`, `.json` | documents: one JSON object a line, or one array of objects |
//! | `.csv`, `.tsv` | documents: a table, whose first row names the columns; a quoted field may hold newlines |
//! | `.parquet` | documents: a table (feature `parquet`) |
//! | `.warc`, `.wet` | documents: the pages of a web archive, successful HTTP responses with a text in them, and its `conversion` and `resource` records that are texts |
//! | `.txt`, `.text`, `.md`, `.markdown`, `.htm`, `.html` | one document: its text is the whole file, its id the path |
//! | `.zip`, `.tar`, `.tgz`, `.tbz2`, `.tbz`, `.txz`, `.tzst` | an archive: its members are read like the files of a folder |
//! | `.hex`, `.tsv` | fingerprints: lines of `HEX` or `HEX<TAB>ID`, with the id [escaped](escape); a `.tsv` file holds fingerprints if its first line is one |
//! | `.u64`, `.u128` | fingerprints: raw, little-endian |
//!
//! A folder is read as all document files below it with one of these extensions, sorted by name. JSON files without a text field
//! are skipped, since they belong to other programs. Links are followed. Files and folders whose names begin with a dot
//! are skipped.
//!
//! A file is read once, even if several names or links lead to it: under its first name that is not a link, or else
//! under the first link. The module [`escape`] says how a path becomes an id, and an id a column of a line.
//!
//! All files but Parquet and raw fingerprints may be compressed with gzip, zstd, bzip2 or xz, with any number of
//! members. Compression is detected by `.gz`, `.zst`, `.bz2` or `.xz` after the extension, or by the first bytes.
//!
//! The format of standard input, and of files and pipes with other extensions, is detected by the first bytes:
//!
//! - 16 or 32 hexadecimal digits on the first line: fingerprints.
//! - `{`, or `[` before an object or `]`: JSON.
//! - A row with the name of a text field: a table.
//! - The magic bytes of Parquet or WARC: that format.
//! - Anything else: JSON lines from standard input or a pipe, a text from a file.
//!
//! Binary content takes precedence over names: an archive or Parquet is read as such under any name, and other binary
//! files are refused with an error that names the likely format. [`DocumentOptions::format`] takes precedence over all
//! this. A pipe is opened once: bytes read to detect its format are kept for its reader.
//!
//! A member of an archive is named by the path of the archive and its own, `pages.zip/a/b.txt`. It is never written to
//! disk. Members come in the order of the archive. Hidden members and members with unknown extensions are skipped.
//!
//! All inputs are streamed; only a text file is held in memory as a whole. Blank lines and a byte order mark at the
//! start are ignored. Malformed characters are replaced and counted. A malformed document is one
//! [`Error::BadInput`](simstore::Error::BadInput), and reading continues after it. The same holds for the rest of a
//! damaged row group of Parquet, and for a file that cannot be read, or not to its end. Any other error is the last
//! item.
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

pub mod add;
pub mod build;
mod bytes;
pub mod dedup;
pub mod delete;
pub mod describe;
mod document;
pub mod evaluate;
mod formats;
pub mod idf;
mod inputs;
mod notice;
pub mod numbers;
pub mod output;
mod progress;
mod random;
pub mod ratio;
mod reading;
pub mod rows;
pub mod shards;
mod spill;
mod watch;
mod writing;

pub use crate::bytes::compression::Compression;
pub use crate::bytes::compressor::Compressor;
pub use crate::bytes::encoding::Encoding;
pub use crate::document::Document;
pub use crate::document::escape;
pub use crate::document::id::{DocumentId, IdRef, MAX_NAME_BYTES};
pub use crate::document::naming::Naming;
pub use crate::document::options::{DocumentFormat, DocumentOptions};
pub use crate::inputs::batch::{FingerprintedDocument, FingerprintedDocuments, fingerprint_documents};
pub use crate::inputs::code::profile_of_texts;
pub use crate::inputs::fingerprints::{FingerprintRecord, Fingerprints, fingerprints};
pub use crate::inputs::item::{Counts, Item};
pub use crate::inputs::visit::{Block, Piece};
pub use crate::inputs::{InputKind, Inputs};
pub use crate::notice::{Notice, ReadNotes};
pub use crate::progress::{ReadNote, ReadProgress};
pub use crate::reading::files::{InputFile, InputFiles, input_files, matching_paths};
pub use crate::reading::record::Record;
pub use crate::reading::records::{Records, documents, records};
pub use crate::watch::{Progress, Watch};
pub use crate::writing::{Annotation, DocumentWriter};

/// The examples of a page for users, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Library;
