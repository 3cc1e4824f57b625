//! Reads documents, computes their fingerprints, and runs jobs over stores of fingerprints, such as building a store.
//!
//! This crate connects files to stores. It reads documents (crate `simstore_io`), fingerprints their texts (crate `simstore_text`), and
//! builds, extends, describes or evaluates stores (crate `simstore`). The crate `simstore_dedup` and all interfaces are built on it.
//!
//! # Inputs
//!
//! [`Inputs`] names everything that a job reads: files of documents, files of fingerprints, or data in memory. Its iterators and
//! [`Inputs::visit`] yield an [`Item`] for each record, with its id, its fingerprint, and its location in the file. Parsing and
//! fingerprinting run on all cores.
//!
//! ```
//! use simstore_corpus::Inputs;
//! use simstore_io::DocumentOptions;
//! use simstore_text::Profile;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path().join("pages.jsonl");
//! std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\n").unwrap();
//! let inputs = Inputs::new(&[path], DocumentOptions::default())?;
//! for document in inputs.fingerprint_documents::<u64>(&Profile::default()) {
//!     let document = document?;
//!     println!("{}: {:?}", document.id, document.fingerprint);
//! }
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! The functions [`fingerprint_documents`] and [`fingerprints`] do the same for a list of paths.
//!
//! # Jobs
//!
//! A job is a function. Its options and its result are plain data, and it reads [`Inputs`] or a store:
//!
//! - [`build`](mod@build) builds a new store.
//! - [`add`] adds new documents to a store. If it is called again for the same files, it continues where the last call ended.
//! - [`delete`] deletes documents by id, by name, or as they are in the inputs.
//! - [`describe`] describes the contents of a store.
//! - [`evaluate`] measures recall and precision of each distance on labelled pairs.
//! - [`idf`] counts the documents that have each feature.
//! - [`ratio`] measures the compressed size of fingerprints, by each codec and by other methods.
//! - [`shards`] reads and writes the list of shards of a set of fingerprints that is too large for one machine.
//!
//! This example builds a store, and queries it for documents near the first one:
//!
//! ```
//! use simstore::BuildOptions;
//! use simstore_corpus::{Inputs, build::build};
//! use simstore_io::DocumentOptions;
//! use simstore_text::Profile;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (pages, path) = (folder.path().join("pages.jsonl"), folder.path().join("pages.simstore"));
//! let lines = "{\"id\": 7, \"text\": \"To be, or not to be\"}\n{\"id\": 8, \"text\": \"To be or not to be!\"}\n";
//! std::fs::write(&pages, lines).unwrap();
//! let (profile, inputs) = (Profile::default(), Inputs::new(&[pages], DocumentOptions::default())?);
//! let (store, counts) = build::<u64>(&path, BuildOptions::default(), &inputs, &profile, false, &())?;
//! assert_eq!(counts.read, 2);
//! let query = profile.fingerprint::<u64>("To be, or not to be").unwrap();
//! let mut ids: Vec<_> = store.query(query.fingerprint, 3)?.into_iter().filter_map(|found| found.id).collect();
//! ids.sort_unstable();
//! assert_eq!(ids, [7, 8]);
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! # Progress, messages and cancellation
//!
//! Every long job takes an [`Observer`]. It receives the [progress](StageProgress) of each stage, and a [`Diagnostic`] for everything that
//! is not an error, such as skipped files. It can also cancel the job, which then returns [`simstore::Error::Cancelled`]. The observer `()`
//! ignores everything.
//!
//! ```
//! use std::ops::ControlFlow;
//! use simstore_corpus::{Diagnostic, Observer, StageProgress};
//!
//! struct Printer;
//!
//! impl Observer for Printer {
//!     fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
//!         eprintln!("{} {}", progress.count, progress.stage);
//!         ControlFlow::Continue(())
//!     }
//!
//!     fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
//!         eprintln!("{diagnostic}");
//!     }
//! }
//! ```
#![forbid(unsafe_code)]

pub mod add;
pub mod build;
pub mod delete;
pub mod describe;
mod diagnostic;
pub mod evaluate;
mod id_scheme;
pub mod idf;
mod inputs;
mod observer;
#[doc(hidden)]
pub mod random;
pub mod ratio;
pub mod shards;
#[doc(hidden)]
pub mod spill;

#[doc(hidden)]
pub use crate::describe::torn_log_tails;
pub use crate::diagnostic::{Diagnostic, ReadDiagnosticCounts};
pub use crate::id_scheme::IdScheme;
pub use crate::inputs::Inputs;
pub use crate::inputs::default_profile::default_text_profile;
#[doc(hidden)]
pub use crate::inputs::default_profile::default_text_profile_for_files;
pub use crate::inputs::fingerprint_iter::{FingerprintIter, fingerprints};
pub use crate::inputs::fingerprinted_documents::{FingerprintedDocuments, fingerprint_documents};
pub use crate::inputs::item::{InputCounts, InputKind, Item};
#[doc(hidden)]
pub use crate::inputs::visit::report_read_diagnostics;
pub use crate::inputs::visit::{FingerprintBlock, ItemOrBlock};
pub use crate::observer::{Observer, StageProgress};
#[doc(hidden)]
pub use crate::observer::{Stage, visit_in_stage};
