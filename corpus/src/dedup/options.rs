//! What is asked for.

use std::collections::BTreeSet;
use std::path::PathBuf;

use simstore::{Error, Result};
use simstore_text::Resources;

use super::documents::Keep;
use super::question::{Compare, Question};
use crate::output::place_of;
use crate::spill::check_memory;

/// How documents come together in clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// What a chain of near ones connects: each is near another, not necessarily all.
    #[default]
    Components,
    /// Each is near the one that stands for the cluster.
    Stars,
}

/// What is near what, what is kept, and what is done with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What is near what.
    pub compare: Compare,
    /// The files that the names of profiles refer to.
    pub resources: Resources,
    /// How documents come together in clusters; stars by default where texts are compared by similarity and one is kept, else
    /// components.
    pub cluster_by: Option<ClusterBy>,
    /// Which document of a cluster is kept.
    pub keep: Keep,
    /// Stores, of one width, kind and profile: what is near something in one of them is not kept. Those of [similar
    /// documents](simstore_text::open_similar) are asked for their similarity, or a greater one; it is estimated by sketches there, or exact if they keep texts.
    pub against: Vec<PathBuf>,
    /// Whether, and how, what is kept is added to the first of them, which is made if there is none. Store and output files change
    /// together.
    pub add: Option<Add>,
    /// Where the work on finished files is kept: a run that was cut off carries on.
    pub resume: Option<Resume>,
    /// Whether all pairs are to be [visited](super::Found::visit_pairs): they take memory.
    pub pairs: bool,
    /// Memory limit in bytes, at least 64 KiB; by default the memory that the machine, or the group of processes, has. A quarter of it,
    /// up to 128 MiB, is left to the program and for reading. Documents that need more are compared on disk.
    pub memory: Option<u64>,
    /// The folder for temporary files; that of the system by default. What processes that were killed have left there of such files
    /// is removed.
    pub temporary: Option<PathBuf>,
}

/// How what is kept is added to a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Add {
    /// Whether a store of similar documents that is made for that keeps the texts, so that these decide from then on.
    pub with_texts: bool,
    /// Whether it is added even if the same run has added its documents before.
    pub again: bool,
}

impl Add {
    /// What options ask for, by one each.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if one needs another.
    pub fn of_options(add: bool, with_texts: bool, again: bool) -> Result<Option<Add>> {
        match (add, again, with_texts) {
            (true, ..) => Ok(Some(Add { with_texts, again })),
            (false, true, _) => bad("option `again` needs option `add`"),
            (false, _, true) => {
                bad("option `with_texts` is for a store of similar documents that option `add` makes")
            }
            (false, false, false) => Ok(None),
        }
    }
}

/// Where work is kept, to be carried on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resume {
    /// A folder for the fingerprints of finished files, and for what is found; those that are there are taken.
    pub folder: PathBuf,
    /// A larger file is several parts, of about so many bytes of it on disk, if it can be read from the middle; 256 MiB by
    /// default.
    pub section: Option<u64>,
}

impl From<PathBuf> for Resume {
    fn from(folder: PathBuf) -> Resume {
        Resume { folder, section: None }
    }
}

/// What is found of texts of just the similarity that is asked for, where nothing says how much.
const RECALL: f64 = 0.95;

impl Options {
    pub(super) fn recall(&self) -> f64 {
        self.compare.of_similar().and_then(|similar| similar.recall).unwrap_or(RECALL)
    }

    /// How clusters are made, of what is near by a question.
    pub(super) fn cluster_by(&self, question: Question) -> ClusterBy {
        self.cluster_by.unwrap_or(match question {
            Question::Similarity(_) if self.keep != Keep::None => ClusterBy::Stars,
            _ => ClusterBy::Components,
        })
    }

    /// Whether texts are compared, and so read a second time.
    pub(super) fn compares_texts(&self, question: Question) -> bool {
        self.compare.verify().is_some() || matches!(question, Question::Similarity(_))
    }

    /// The bytes of a part of a large file, if work is kept.
    pub(super) fn section(&self) -> Option<u64> {
        self.resume.as_ref()?.section
    }

    /// Refuses what makes no sense whatever is read.
    pub(super) fn check(&self) -> Result<()> {
        if !self.against.is_empty() && self.compare.verify().is_some() {
            return bad(
                "option `verify_text` cannot be used with option `against`: a store holds fingerprints and no texts. Remove \
                 duplicates among the documents first, with option `verify_text` and option `output`, then compare that \
                 output with the store",
            );
        }
        self.compare.check()?;
        check_memory(self.memory)?;
        if self.keep == Keep::None && self.cluster_by == Some(ClusterBy::Stars) {
            return bad(
                "option `keep` none removes every document that has a near-duplicate, but stars separate some of these: leave \
                 out option `cluster_by`",
            );
        }
        if let Some(store) = self.named_twice() {
            return bad(format!("{}: named for two stores", store.display()));
        }
        if self.add.is_some() && self.against.is_empty() {
            return bad("option `add` needs option `against`");
        }
        Ok(())
    }

    /// A store that another path has named before.
    fn named_twice(&self) -> Option<&PathBuf> {
        let place = |store: &PathBuf| store.canonicalize().unwrap_or_else(|_| place_of(store));
        let mut seen = BTreeSet::new();
        self.against.iter().find(|store| !seen.insert(place(store)))
    }
}

fn bad<T>(reason: impl Into<String>) -> Result<T> {
    Err(Error::BadArgument(reason.into()))
}
