//! Deduplication of documents: finds clusters of near-duplicates, and keeps one document of each.
//!
//! Two documents are near-duplicates if their texts are similar ([Jaccard
//! similarity](ComparisonConfig::Similarity) of shingles), or if their simhash fingerprints differ in few
//! bits ([Hamming distance](ComparisonConfig::Distance)). All documents are compared with all others. MinHash
//! signatures or sorted fingerprints select the candidates, so that only few pairs are compared.
//!
//! # Deduplicate documents
//!
//! [`run`] takes a [`DedupConfig`], the [`Inputs`](simstore_corpus::Inputs) and the requested [`Outputs`]. It
//! returns a [`Report`].
//!
//! ```
//! use simstore_corpus::Inputs;
//! use simstore_dedup::{DedupConfig, Outputs, run};
//! use simstore_io::{Document, DocumentId};
//!
//! let documents = [("a", "To be, or not to be, that is the question"), ("b", "something else altogether")];
//! let twice = documents.into_iter().chain([documents[0]]);
//! let inputs = twice.map(|(id, text)| Ok(Document::new(DocumentId::Name(id.to_owned()), text.to_owned())));
//! let report = run(&DedupConfig::default(), &Inputs::from_documents(inputs), Outputs::default(), &())?;
//! assert_eq!((report.summary().documents, report.summary().kept), (3, 2));
//! for cluster in report.clusters() {
//!     for duplicate in cluster?.members.iter().filter(|member| !member.is_kept) {
//!         assert_eq!((duplicate.document, duplicate.similarity), (2, Some(1.0)));
//!     }
//! }
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! Inputs are files of documents, files of fingerprints, or data in memory. [`Outputs`] are files: the kept
//! documents in the format of the input, all documents annotated with cluster numbers, tables of clusters and
//! pairs, or lists of ids. All of them appear together at the end of a run. If a run fails or is killed
//! before, it has no visible effect.
//!
//! # Choose what counts as a duplicate
//!
//! The default compares texts with a similarity of at least 0.8. [`DedupConfig::comparison`] sets another
//! threshold or compares fingerprints. [`DedupConfig::keep`] sets the [rule](KeepRule) that chooses the kept
//! document, and [`cluster_by`](field@DedupConfig::cluster_by) how near-duplicates form [clusters](ClusterBy).
//!
//! ```
//! use simstore_dedup::{ComparisonConfig, DedupConfig, KeepRule};
//!
//! let config = DedupConfig {
//!     comparison: ComparisonConfig::by_similarity(0.7),
//!     keep: KeepRule::Newest("date".to_owned()),
//!     ..DedupConfig::default()
//! };
//! # assert!(!config.pairs);
//! ```
//!
//! To choose a threshold, call [`sample_pairs`]. It returns a histogram of similarities, and sample pairs above
//! and below the threshold, which you can read and judge.
//!
//! # Compare with a store, and add to it
//!
//! [`DedupConfig::against`] names reference stores. Documents that are near a stored document are removed.
//! [`DedupConfig::add`] adds the kept documents to the first store, so that later documents are compared with
//! them. The store and the output files change in one atomic step.
//!
//! ```
//! use simstore_corpus::Inputs;
//! use simstore_dedup::{AddConfig, DedupConfig, Outputs, run};
//! use simstore_io::{Document, DocumentId};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let store = folder.path().join("pages");
//! let config =
//!     DedupConfig { against: vec![store], add: Some(AddConfig::default()), ..DedupConfig::default() };
//! let pages = |id: u64| {
//!     let text = "To be, or not to be, that is the question".to_owned();
//!     Inputs::from_documents([Ok(Document::new(DocumentId::Number(id), text))])
//! };
//! let first = run(&config, &pages(1), Outputs::default(), &())?;
//! let second = run(&config, &pages(2), Outputs::default(), &())?;
//! assert_eq!((first.summary().kept, second.summary().kept), (1, 0));
//! # Ok::<(), simstore::Error>(())
//! ```
//!
//! # Memory, progress and interruptions
//!
//! If texts are compared by similarity, a document takes about 140 bytes of memory. If fingerprints are compared,
//! a 64-bit fingerprint takes 28 bytes, and a 128-bit fingerprint 52 bytes. Ids that differ from the input
//! position, near-duplicates and pairs take additional memory. Data beyond [`DedupConfig::memory`] goes to
//! temporary files. [`estimate()`] estimates the number of documents, the memory, the disk space and the time of a
//! run in advance.
//!
//! A [`RunObserver`] receives the progress and can cancel a run. With [`DedupConfig::resume`], a run writes
//! checkpoints, and an interrupted run continues from them.
//!
//! The result depends only on the inputs and the configuration, not on the number of threads.
//!
//! # Several machines
//!
//! [`make_shard`] reads and fingerprints one machine's share of the documents; a later [`run`] combines the
//! shards. Programs that move data between machines themselves, such as Spark jobs, build a deduplication
//! from the functions of [`SimilarSearch`], [`ComponentStars`] and [`SimilarStores`].
//!
//! `examples/dedup.rs` is a complete command-line program.

#![forbid(unsafe_code)]

mod checkpoint;
mod config;
mod distributed;
mod documents;
mod estimate;
mod pair_sample;
mod pipeline;
mod reference_stores;
mod report;
mod rows;
mod run;
mod store_writer;
mod workspace;

pub use crate::checkpoint::parts::work_shard::{PartCounts, WorkShard};
pub use crate::config::criterion::{
    ComparisonConfig, ComparisonOptions, Criterion, DistanceConfig, SimilarityConfig, VerifyConfig,
};
pub use crate::config::resolve::resolve_profile;
pub use crate::config::{AddConfig, ClusterBy, DedupConfig, ResumeConfig};
pub use crate::distributed::shard::make_shard;
pub use crate::distributed::similar_search::{Assignment, ComponentStars, SimilarSearch, UniqueDocument};
pub use crate::distributed::similar_stores::SimilarStores;
pub use crate::documents::field_keys::{moment_key, number_key};
pub use crate::documents::keep_rule::KeepRule;
pub use crate::estimate::search_estimate::SearchEstimate;
pub use crate::estimate::{Estimate, FormatTotals, estimate};
pub use crate::pair_sample::{PairSample, SampledPair, SimilarityBin, sample_pairs};
pub use crate::pipeline::boilerplate::Boilerplate;
pub use crate::report::clusters::{Cluster, Member};
pub use crate::report::outputs::Outputs;
pub use crate::report::summary::{ClusterSummary, SpillSummary, Summary};
pub use crate::report::{NearPair, RemovedDocument, Report};
pub use crate::run::{RunObserver, run};

/// Runs the examples in `docs/library.md` as documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/library.md")]
struct Library;
