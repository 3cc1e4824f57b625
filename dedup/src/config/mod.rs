//! Configuration of a deduplication.

pub(crate) mod band_search_plan;
pub(crate) mod criterion;
pub(crate) mod resolve;

use std::path::PathBuf;

use simstore::Result;
use simstore_text::Resources;

use crate::config::criterion::{ComparisonConfig, bad_argument};
use crate::documents::keep_rule::KeepRule;

/// How near-duplicates form clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// Connected components: each member of a cluster is near at least one other member, but not necessarily
    /// near all.
    #[default]
    Components,
    /// Stars: each member of a cluster is near its representative.
    Stars,
}

/// Configuration of a run: which documents are near-duplicates, which of them are kept, and whether the kept
/// documents are added to a store.
#[derive(Clone, Debug, Default)]
pub struct DedupConfig {
    /// Whether texts or fingerprints are compared, and the threshold for near-duplicates.
    pub comparison: ComparisonConfig,
    /// Files that profiles refer to, such as a dictionary.
    pub resources: Resources,
    /// How near-duplicates form clusters. The default is stars if texts are compared by similarity and one
    /// document of each cluster is kept; otherwise connected components.
    pub cluster_by: Option<ClusterBy>,
    /// Rule that chooses the kept document of a cluster.
    pub keep: KeepRule,
    /// Paths of the reference stores, all of one width, kind and profile. An input document that is near a
    /// stored document is removed. A store of [similar documents](simstore_text::open_similar_store) has a minimum
    /// similarity of its own, and a run with this store cannot use a smaller one. Similarities to stored documents
    /// are exact if the store keeps texts; otherwise they are estimated from MinHash signatures.
    pub against: Vec<PathBuf>,
    /// If set, kept documents are added to the first store of [`against`](Self::against). This store is created if it
    /// does not exist. The store and the output files change together, in one atomic step.
    pub add: Option<AddConfig>,
    /// If set, the run writes checkpoints to a folder, so that it can be resumed after an interruption.
    pub resume: Option<ResumeConfig>,
    /// Whether all near pairs are recorded, so that [`visit_pairs`](crate::Report::visit_pairs) can visit them.
    /// The recorded pairs take memory.
    pub pairs: bool,
    /// Whether [`Report::page`](crate::Report::page) will be called. The similarities of all compared pairs are then counted, also of
    /// pairs below the threshold. [`Outputs::report`](crate::Outputs::report) implies it.
    pub report: bool,
    /// Memory limit in bytes, at least 64 KiB. The default is the available memory of the machine or of the
    /// control group. A quarter of the limit, up to 128 MiB, is reserved for the program and for reading. If
    /// documents need more memory than the rest, they are compared on disk.
    pub memory: Option<u64>,
    /// Folder for temporary files; the system's temporary folder by default. A run also removes temporary files
    /// that killed runs left in this folder.
    pub temporary_folder: Option<PathBuf>,
}

/// Settings for adding kept documents to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddConfig {
    /// Whether a new store of similar documents keeps the texts, so that later comparisons with it are exact.
    pub with_texts: bool,
    /// Whether to add the documents even if an identical run has already added them.
    pub again: bool,
}

impl AddConfig {
    /// Creates the settings from three options of a user. Returns `None` if `add` is not set.
    ///
    /// # Errors
    /// [`BadArgument`](simstore::Error::BadArgument) if `with_texts` or `again` is set without `add`.
    pub fn from_options(add: bool, with_texts: bool, again: bool) -> Result<Option<AddConfig>> {
        match (add, again, with_texts) {
            (true, ..) => Ok(Some(AddConfig { with_texts, again })),
            (false, true, _) => bad_argument("option `again` needs option `add`"),
            (false, _, true) => bad_argument(
                "option `with_texts` needs a new store of similar documents, created by option `add`",
            ),
            (false, false, false) => Ok(None),
        }
    }
}

/// Settings for checkpoints, from which an interrupted run can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResumeConfig {
    /// Folder of the checkpoints: part files with the fingerprints of input files, and stage files with the
    /// results of stages. Existing files in it are reused.
    pub folder: PathBuf,
    /// Size of a section of an input file, in bytes on disk; 256 MiB by default. A larger file is divided into
    /// sections of about this size, each with its own part file, if its format can be read from the middle.
    pub section_bytes: Option<u64>,
}

impl From<PathBuf> for ResumeConfig {
    fn from(folder: PathBuf) -> ResumeConfig {
        ResumeConfig { folder, section_bytes: None }
    }
}

impl DedupConfig {
    /// Returns the requested size of a section in bytes, if any.
    pub(crate) fn section_bytes(&self) -> Option<u64> {
        self.resume.as_ref()?.section_bytes
    }
}
