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
//! - [`shards`]: the list of a set in several stores;
//! - [`ratio`]: how small fingerprints become, by each codec and by other methods.
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
//! | `.hex`, `.tsv` | fingerprints: a line `HEX` or `HEX<TAB>ID` each, the id [escaped](escape); a `.tsv` file is one of these if its first line is one |
//! | `.u64`, `.u128` | fingerprints: raw, little-endian |
//!
//! Of a folder, the documents of all files below it with one of these extensions are read, by name; but not JSON without a text
//! field, which is that of some program. Links are followed; files and folders whose names begin with a dot are left out.
//!
//! A file is read once, whatever names and links lead to it: under the first one, or the first that is no link. The module
//! [`escape`] says how a path becomes an id, and an id a column of a line.
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

/// The examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
