//! The configuration of a run.

pub(crate) mod band_choice;
pub(crate) mod criterion;
pub(crate) mod resolve;

use std::path::PathBuf;

use simstore::Result;
use simstore_text::Resources;

use crate::config::criterion::{ComparisonConfig, bad};
use crate::corpus::keep_rule::Keep;

/// How near documents form clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// A cluster is connected by chains of near documents: each is near another member, not necessarily all members.
    #[default]
    Components,
    /// Each member of a cluster is near the representative.
    Stars,
}

/// Which documents are near-duplicates, which of them are kept, and whether the kept documents are added to a store.
#[derive(Clone, Debug, Default)]
pub struct DedupConfig {
    /// Which documents are near.
    pub compare: ComparisonConfig,
    /// Files that profiles refer to, such as a dictionary.
    pub resources: Resources,
    /// How near documents form clusters. The default is stars if texts are compared by similarity and one document is kept,
    /// components otherwise.
    pub cluster_by: Option<ClusterBy>,
    /// Which document of a cluster is kept.
    pub keep: Keep,
    /// Stores of one width, kind and profile. A document that is near a stored document is not kept. Stores of [similar
    /// documents](simstore_text::open_similar_store) find documents of their own least similarity or a greater one. The similarity is
    /// exact if the store keeps texts; otherwise sketches estimate it.
    pub against: Vec<PathBuf>,
    /// If set, kept documents are added to the first store, which is made if it is missing. Store and output files change
    /// together.
    pub add: Option<Add>,
    /// Where finished work is kept, so that an interrupted run can be resumed.
    pub resume: Option<Resume>,
    /// Whether all pairs are kept for [`visit_pairs`](crate::Report::visit_pairs). They take memory.
    pub pairs: bool,
    /// Memory limit in bytes, at least 64 KiB. The default is the available memory of the machine or of the control group. A
    /// quarter of the limit, up to 128 MiB, is left to the program and for reading. Documents that need more are compared on disk.
    pub memory: Option<u64>,
    /// Folder for temporary files; the system's folder by default. Temporary files that killed runs have left there are removed.
    pub temporary: Option<PathBuf>,
}

/// How kept documents are added to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// Whether a new store of similar documents keeps the texts, so that later comparisons with it are exact.
    pub with_texts: bool,
    /// Whether to add the documents even if an identical run has already added them.
    pub again: bool,
}

impl Add {
    /// Combines three separate options; `None` if nothing is added.
    ///
    /// # Errors
    /// [`BadArgument`](simstore::Error::BadArgument) if `with_texts` or `again` is set without `add`.
    pub fn of_options(add: bool, with_texts: bool, again: bool) -> Result<Option<Add>> {
        match (add, again, with_texts) {
            (true, ..) => Ok(Some(Add { with_texts, again })),
            (false, true, _) => bad("option `again` needs option `add`"),
            (false, _, true) => {
                bad("option `with_texts` needs a new store of similar documents, created by option `add`")
            }
            (false, false, false) => Ok(None),
        }
    }
}

/// Where finished work is kept, so that a run can be resumed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// Folder for the fingerprints of finished files and for the results of stages. Results that are already there are used.
    pub folder: PathBuf,
    /// Size of a section in bytes on disk; 256 MiB by default. A larger file becomes several parts of about this size, if it can
    /// be read from the middle.
    pub section: Option<u64>,
}

impl From<PathBuf> for Resume {
    fn from(folder: PathBuf) -> Resume {
        Resume { folder, section: None }
    }
}

impl DedupConfig {
    /// Size of a section of a large file in bytes, if given.
    pub(crate) fn section(&self) -> Option<u64> {
        self.resume.as_ref()?.section
    }
}
