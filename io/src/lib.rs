//! Documents in files and back: opening, decompression, encodings, formats, archives, and writing documents unchanged.
//!
//! [`documents`] reads the [`Document`]s of files as [`DocumentOptions`] say, and [`records`] reads them unparsed.
//! [`DocumentWriter`] writes records unchanged, [`output`] creates files that appear only when they are complete, and [`rows`]
//! writes tables of results.
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
//! use simstore_io::{DocumentOptions, documents};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n").unwrap();
//! for document in documents(&[path], &DocumentOptions::default()) {
//!     let document = document?;
//!     println!("{}: {}", document.id, document.text);
//! }
//! # Ok::<(), simstore::Error>(())
//! ```
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod bytes;
#[doc(hidden)]
pub mod document;
#[doc(hidden)]
pub mod formats;
pub mod numbers;
pub mod output;
mod progress;
#[doc(hidden)]
pub mod reading;
pub mod rows;
mod writing;

pub use crate::bytes::compression::Compression;
pub use crate::bytes::compressor::Compressor;
pub use crate::bytes::encoding::Encoding;
pub use crate::document::Document;
pub use crate::document::escape;
pub use crate::document::id::{DocumentId, IdRef, MAX_NAME_BYTES};
pub use crate::document::options::{DocumentFormat, DocumentOptions};
pub use crate::formats::Format;
pub use crate::progress::{ReadNote, ReadProgress};
pub use crate::reading::files::{InputFile, InputFiles, input_files, matching_paths};
pub use crate::reading::record::Record;
pub use crate::reading::records::{Records, documents, records};
pub use crate::writing::{Annotation, DocumentWriter};
