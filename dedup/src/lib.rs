//! Deduplication of a corpus: finds clusters of near-duplicates, and the documents to keep. Stores are optional: documents can be
//! compared with stores, and added to one.
//!
//! [`run`] reads [files, documents or fingerprints](simstore_corpus::Inputs), compares all with all as a [`DedupConfig`] says, writes the
//! requested [`Outputs`], and returns a [`Report`]. Until its last step, a run has no visible effect. An [`RunObserver`] receives its
//! progress and can stop it.
//!
//! The result depends only on the input and the configuration, not on the number of threads. By [similarity](ComparisonConfig::Similar), a
//! document takes about 140 bytes of memory. By [distance](ComparisonConfig::Distance), a 64-bit fingerprint takes 28 bytes, and a 128-bit
//! fingerprint 52 bytes. Ids that are not positions, near-duplicates and pairs take more. Data that exceeds [`DedupConfig::memory`] goes to
//! disk.
//!
//! [`make_shard`] does a share of the work on one of several machines. [`estimate()`] estimates the work of a run.
//! [`sample_pairs`] shows pairs above and below a threshold. `examples/dedup.rs` is a complete program.
//!
//! ```
//! use simstore_corpus::Inputs;
//! use simstore_dedup::{DedupConfig, Outputs, run};
//! use simstore_io::{Document, DocumentId};
//!
//! let documents = [("a", "To be, or not to be, that is the question"), ("b", "something else altogether")];
//! let twice = documents.into_iter().chain([documents[0]]);
//! let inputs = twice.map(|(id, text)| Ok(Document::new(DocumentId::Name(id.to_owned()), text.to_owned())));
//! let report = run(&DedupConfig::default(), &Inputs::of_documents(inputs), Outputs::default(), &())?;
//! assert_eq!((report.summary().documents, report.summary().kept), (3, 2));
//! for cluster in report.clusters() {
//!     for duplicate in cluster?.members.iter().filter(|member| !member.is_kept) {
//!         assert_eq!((duplicate.document, duplicate.similarity), (2, Some(1.0)));
//!     }
//! }
//! # Ok::<(), simstore::Error>(())
//! ```

#![forbid(unsafe_code)]

mod adding;
mod checkpoint;
mod config;
mod corpus;
mod distributed;
mod estimate;
mod pair_sample;
mod pipeline;
mod reference;
mod report;
mod rows;
mod run;
mod workspace;

pub use crate::checkpoint::parts::shard::{Shard, Tally};
pub use crate::config::criterion::{
    ComparisonConfig, ComparisonOptions, Criterion, DistanceConfig, SimilarityConfig, VerifyConfig,
};
pub use crate::config::resolve::profile_with;
pub use crate::config::{Add, ClusterBy, DedupConfig, Resume};
pub use crate::corpus::keep_rule::Keep;
pub use crate::corpus::keep_value::{moment_key, number_key};
pub use crate::distributed::shard::make_shard;
pub use crate::distributed::similar_search::{Assignment, ComponentStars, SimilarSearch, UniqueDocument};
pub use crate::distributed::similar_stores::SimilarStores;
pub use crate::estimate::search::Search;
pub use crate::estimate::{Estimate, FilesOfFormat, estimate};
pub use crate::pair_sample::{PairSample, SampledPair, SimilarityBin, sample_pairs};
pub use crate::pipeline::boilerplate::Boilerplate;
pub use crate::report::outputs::Outputs;
pub use crate::report::summary::{Largest, Spilled, Summary};
pub use crate::report::{Cluster, Member, NearPair, Removed, Report};
pub use crate::run::{RunObserver, run};

/// The examples of a page for users, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Library;
