//! Documents of files with their fingerprints, and jobs over stores of them.
//!
//! Start with [`Inputs`], the inputs of a job: files of documents or of fingerprints, or data in memory. [`Item`]s are their
//! records. A job is a function with plain options and a plain result. A [`Watch`] receives its progress and can stop it:
//!
//! - [`build`](mod@build) builds a new store, [`add`](mod@add) adds documents to a store.
//! - [`delete`] deletes documents from a store by their ids or names.
//! - [`describe`] describes the contents of a store as plain data.
//! - [`evaluate`] measures how well each distance finds the near-duplicates of labelled pairs, and how
//!   many false pairs it finds.
//! - [`idf`] counts the documents that have each feature.
//! - [`ratio`] measures the size of fingerprints, compressed by each codec and by other methods.
//! - [`shards`] handles the list of a set in several stores.
//!
//! The crate `simstore_io` reads the files, and says which formats there are.
//!
//! ```
//! use simstore_corpus::fingerprint_documents;
//! use simstore_io::DocumentOptions;
//! use simstore_text::Profile;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n").unwrap();
//! let options = DocumentOptions::default();
//! for document in fingerprint_documents::<u64>(&[path], &options, &Profile::default()) {
//!     let document = document?;
//!     println!("{}: {:?}", document.id, document.fingerprint);
//! }
//! # Ok::<(), simstore::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod add;
pub mod build;
pub mod delete;
pub mod describe;
pub mod evaluate;
pub mod idf;
mod inputs;
mod naming;
mod notice;
#[doc(hidden)]
pub mod random;
pub mod ratio;
pub mod shards;
#[doc(hidden)]
pub mod spill;
mod watch;

#[doc(hidden)]
pub use crate::describe::torn_ends;
pub use crate::inputs::Inputs;
pub use crate::inputs::batch::{FingerprintedDocuments, fingerprint_documents};
#[doc(hidden)]
pub use crate::inputs::code::profile_of_files;
pub use crate::inputs::code::profile_of_texts;
pub use crate::inputs::fingerprints::{Fingerprints, fingerprints};
pub use crate::inputs::item::{Counts, InputKind, Item};
#[doc(hidden)]
pub use crate::inputs::visit::tell_notes;
pub use crate::inputs::visit::{Block, Piece};
pub use crate::naming::Naming;
pub use crate::notice::{Notice, ReadNotes};
pub use crate::watch::{Progress, Watch};
#[doc(hidden)]
pub use crate::watch::{Step, each};
