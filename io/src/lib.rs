//! Reads documents from files in many formats, and writes them back unchanged.
//!
//! A corpus is rarely one clean file. It may be a folder of compressed JSON lines, a few CSV exports, a Parquet
//! table, a crawl in WARC files, or a zip archive of HTML pages in an unknown encoding. This crate turns all of them
//! into one stream of [`Document`]s: an id, a text, and a position in the input. It detects formats, compression, and
//! encodings, and it streams large files instead of loading them.
//!
//! # Reading documents
//!
//! [`documents`] takes a list of paths and returns an iterator:
//!
//! ```
//! use simstore_io::{DocumentOptions, documents};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n")?;
//! for document in documents(&[path], &DocumentOptions::default()) {
//!     let document = document?;
//!     println!("{}: {}", document.id, document.text);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! By default, the id is the field `id` and the text is the field `text`. A document without an id is named by its path
//! and line. [`DocumentOptions`] selects other fields. The values of several text fields are joined by newlines:
//!
//! ```
//! use simstore_io::{DocumentOptions, documents};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("plays.csv");
//! std::fs::write(&path, "url,title,body\nhttp://a/,Hamlet,To be\n")?;
//! let options = DocumentOptions {
//!     id_field: Some("url".into()),
//!     text_fields: vec!["title".into(), "body".into()],
//!     ..DocumentOptions::default()
//! };
//! let document = documents(&[path], &options).next().unwrap()?;
//! assert_eq!(document.id.to_string(), "http://a/");
//! assert_eq!(document.text, "Hamlet\nTo be");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Errors
//!
//! One bad document does not end the iteration. A malformed document is an [`Error::BadInput`](simstore::Error::BadInput)
//! with its path, its line, and a reason; then the iteration continues with the next document. A file that cannot be
//! read to its end, and the rest of a damaged row group of Parquet, are one such error, too. Any other error is the last
//! item.
//!
//! ```
//! use simstore::Error;
//! use simstore_io::{DocumentOptions, documents};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"text\": \"one\"}\n{\"text\":\n{\"text\": \"three\"}\n")?;
//! let (mut texts, mut bad_lines) = (Vec::new(), Vec::new());
//! for document in documents(&[path], &DocumentOptions::default()) {
//!     match document {
//!         Ok(document) => texts.push(document.text),
//!         Err(Error::BadInput { line, .. }) => bad_lines.push(line),
//!         Err(error) => return Err(error.into()),
//!     }
//! }
//! assert_eq!(texts, ["one", "three"]);
//! assert_eq!(bad_lines, [2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Input files
//!
//! A path is a file, a folder, or a glob such as `corpus/**/*.csv`. Globs match as in a shell, and must match something.
//! `-` is standard input. [`input_files`] lists the files that a list of paths leads to.
//!
//! | extension | content |
//! |---|---|
//! | `.jsonl`, `.ndjson`, `.json` | documents: one JSON object per line, or one array of objects |
//! | `.csv`, `.tsv` | documents: a table whose first row names the columns; a quoted field may contain newlines |
//! | `.parquet` | documents: a table (feature `parquet`) |
//! | `.warc`, `.wet` | documents: a web archive; its documents are successful HTTP responses with a text, and `conversion` and `resource` records with a text |
//! | `.txt`, `.text`, `.md`, `.markdown`, `.htm`, `.html` | one document: its text is the whole file, its id the path |
//! | `.zip`, `.tar`, `.tgz`, `.tbz2`, `.tbz`, `.txz`, `.tzst` | an archive: its members are read like the files of a folder |
//! | `.hex`, `.tsv` | fingerprints: lines of `HEX` or `HEX<TAB>ID`, with an [escaped](escape) id; a `.tsv` file contains fingerprints if its first line is one |
//! | `.u64`, `.u128` | fingerprints: raw, little-endian |
//!
//! In a folder, all files of documents with one of these extensions are read, in the order of their names. Links are
//! followed. Hidden files and folders, whose names begin with a dot, are skipped. So are JSON files without a text field,
//! since they belong to other programs. [`ReadProgress`] counts the skipped files by reason.
//!
//! A file is read once, even if several paths or links lead to it. It is read under its first path that contains no link,
//! or else under its first path. The module [`escape`] defines how a path becomes an id, and an id a column of a line.
//!
//! All files except Parquet and raw fingerprints may be compressed with gzip, zstd, bzip2, or xz, with any number of
//! members. The compression is detected by `.gz`, `.zst`, `.bz2`, or `.xz` after the extension, or by the first bytes.
//!
//! A member of an archive has the path of the archive followed by its own: `pages.zip/a/b.txt`. Members are read in the
//! order of the archive, and never written to disk. Hidden members and members with unknown extensions are skipped.
//!
//! # Detecting the format
//!
//! The format of standard input, and of files and pipes with other extensions, is detected by the first bytes:
//!
//! - 16 or 32 hexadecimal digits on the first line: fingerprints.
//! - `{`, or `[` before an object or `]`: JSON.
//! - A row with the name of a text field: a table.
//! - The magic bytes of Parquet or WARC: that format.
//! - Anything else: JSON lines from standard input or a pipe, a text from a file.
//!
//! Binary content takes precedence over the extension. An archive or a Parquet file is read as such under any name. Other
//! binary files are refused with an error that names the likely format. [`DocumentOptions::format`] takes precedence over
//! all this. A pipe is opened once: bytes that were read to detect its format are kept for its reader.
//!
//! All inputs are streamed; only a text file is in memory as a whole. Blank lines and a byte order mark at the start
//! are ignored. Malformed characters are replaced by U+FFFD and counted. [`Encoding`] explains how other encodings than
//! UTF-8 are recognized.
//!
//! # Writing documents unchanged
//!
//! [`records`] reads documents without parsing them, and a [`DocumentWriter`] writes them byte for byte. So a filter
//! keeps the fields, the order, and the spelling of its input:
//!
//! ```
//! use simstore_io::{DocumentOptions, DocumentWriter, records};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"text\":  \"To be, or not to be\"}\n{\"text\": \"short\"}\n")?;
//! let options = DocumentOptions::default();
//! let mut writer = DocumentWriter::new(Vec::new());
//! for record in records(&[path], &options) {
//!     let record = record?;
//!     if record.parse(&options)?.text.len() > 10 {
//!         writer.write(&record, None)?;
//!     }
//! }
//! assert_eq!(writer.finish()?, b"{\"text\":  \"To be, or not to be\"}\n");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Output files
//!
//! A file written through the module [`output`] appears only when it is complete. Until then it has a hidden temporary
//! name, and it is removed if the output is dropped:
//!
//! ```
//! use simstore_io::output::{Output, UnfinishedOutputs};
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("kept.txt");
//! let mut output = Output::create(&path, &UnfinishedOutputs::default())?;
//! output.write_line("To be, or not to be")?;
//! assert!(!path.exists());
//! output.finish()?;
//! assert!(path.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Compressor`] compresses an output, and [`result_table`] writes tables of results as JSON lines, CSV, TSV, or Parquet.
//!
//! # Features
//!
//! - `parquet`: reads and writes Parquet files.
#![forbid(unsafe_code)]

#[doc(hidden)]
pub mod bytes;
#[doc(hidden)]
pub mod document;
#[doc(hidden)]
pub mod formats;
pub mod numbers;
pub mod output;
mod read_progress;
#[doc(hidden)]
pub mod reading;
pub mod result_table;
mod writing;

pub use crate::bytes::compression::Compression;
pub use crate::bytes::compressor::Compressor;
pub use crate::bytes::encoding::Encoding;
pub use crate::document::Document;
pub use crate::document::escape;
pub use crate::document::id::{DocumentId, IdRef, MAX_NAME_BYTES};
pub use crate::document::options::{DocumentFormat, DocumentOptions};
pub use crate::formats::Format;
pub use crate::read_progress::{ReadDiagnostic, ReadProgress};
pub use crate::reading::input_files::{InputFile, InputFiles, expand_globs, input_files};
pub use crate::reading::record::Record;
pub use crate::reading::records::{Records, documents, records};
pub use crate::writing::{ClusterAnnotation, DocumentWriter};
