//! Options of a run.

use std::collections::BTreeSet;
use std::path::PathBuf;

use simstore::{Error, Result};
use simstore_text::Resources;

use super::documents::Keep;
use super::question::{Compare, Question};
use simstore_corpus::spill::check_memory;
use simstore_io::output::place_of;

/// How near documents form clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// A cluster is connected by chains of near documents: each is near another member, not necessarily all members.
    #[default]
    Components,
    /// Each member of a cluster is near the representative.
    Stars,
}

/// Options for finding near-duplicates, for choosing the documents to keep, and for adding these to a store.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which documents are near.
    pub compare: Compare,
    /// Files that profiles refer to, such as a dictionary.
    pub resources: Resources,
    /// How near documents form clusters. The default is stars if texts are compared by similarity and one document is kept,
    /// components otherwise.
    pub cluster_by: Option<ClusterBy>,
    /// Which document of a cluster is kept.
    pub keep: Keep,
    /// Stores of one width, kind and profile. A document that is near a stored document is not kept. Stores of [similar
    /// documents](simstore_text::open_similar) find documents of their own least similarity or a greater one. The similarity is
    /// exact if the store keeps texts; otherwise sketches estimate it.
    pub against: Vec<PathBuf>,
    /// If set, kept documents are added to the first store, which is made if it is missing. Store and output files change
    /// together.
    pub add: Option<Add>,
    /// Where finished work is kept, so that an interrupted run can be resumed.
    pub resume: Option<Resume>,
    /// Whether all pairs are kept for [`visit_pairs`](super::Found::visit_pairs). They take memory.
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
    /// [`Error::BadArgument`] if `with_texts` or `again` is set without `add`.
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

/// Default recall: the least probability of finding a pair of exactly the requested similarity.
const RECALL: f64 = 0.95;

impl Options {
    pub(super) fn recall(&self) -> f64 {
        self.compare.of_similar().and_then(|similar| similar.recall).unwrap_or(RECALL)
    }

    /// How clusters are formed for a question: as the option says, or the default.
    pub(super) fn cluster_by(&self, question: Question) -> ClusterBy {
        self.cluster_by.unwrap_or(match question {
            Question::Similarity(_) if self.keep != Keep::None => ClusterBy::Stars,
            _ => ClusterBy::Components,
        })
    }

    /// Whether texts are compared. If so, they are read a second time.
    pub(super) fn compares_texts(&self, question: Question) -> bool {
        self.compare.verify().is_some() || matches!(question, Question::Similarity(_))
    }

    /// Size of a section of a large file in bytes, if given.
    pub(super) fn section(&self) -> Option<u64> {
        self.resume.as_ref()?.section
    }

    /// Refuses options that are invalid for every input.
    pub(super) fn check(&self) -> Result<()> {
        if !self.against.is_empty() && self.compare.verify().is_some() {
            return bad(
                "option `verify_text` does not work with option `against`, because a store of fingerprints has no texts: run with option \
                 `verify_text` and option `output` first, then compare this output with the store",
            );
        }
        self.compare.check()?;
        check_memory(self.memory)?;
        if self.keep == Keep::None && self.cluster_by == Some(ClusterBy::Stars) {
            return bad("option `keep` none needs clusters by components: leave out option `cluster_by`");
        }
        if let Some(store) = self.named_twice() {
            return bad(format!("{}: given as two stores", store.display()));
        }
        if self.add.is_some() && self.against.is_empty() {
            return bad("option `add` needs option `against`");
        }
        Ok(())
    }

    /// Returns a store that an earlier path already names.
    fn named_twice(&self) -> Option<&PathBuf> {
        let place = |store: &PathBuf| store.canonicalize().unwrap_or_else(|_| place_of(store));
        let mut seen = BTreeSet::new();
        self.against.iter().find(|store| !seen.insert(place(store)))
    }
}

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}
