//! Results of a run, independent of the width of the fingerprints.

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

use simstore::any::AnyWidth;
use simstore::{Fingerprint, Result, each_width};

use super::documents::Told;
use super::model;
use super::question::Question;
use super::run::{AddedBefore, Job};
use super::told::{How, Near, Other, Reason};
use super::totals::Totals;
use simstore_corpus::spill::{Cursor, RowsIter};
use simstore_corpus::{Counts, InputKind, Watch};
use simstore_io::{DocumentId, IdRef};

/// Result of [`find`](super::find).
#[derive(Debug)]
pub enum Answer {
    /// Near-duplicates; nothing is written yet.
    Found(Found),
    /// An identical run has already added its documents to the store and written its files. Nothing is left to do.
    AddedBefore(AddedBefore),
}

/// Clusters, near pairs, kept and removed documents. [`Found::finish`] publishes the files and changes the store. If `Found` is
/// dropped before, no trace remains.
pub struct Found {
    pub(super) job: AnyJob,
    pub(super) totals: Box<Totals>,
}

pub(super) type AnyJob = AnyWidth<Box<Job<u64>>, Box<Job<u128>>>;

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Found").field(&self.totals).finish()
    }
}

/// A cluster of near-duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster<'a> {
    /// Cluster number, from 1. Clusters are in input order of their first documents.
    pub number: usize,
    /// Id of the representative.
    pub representative: DocumentId,
    /// Index of the representative in the input, from 0; `None` if it is a stored document.
    pub document: Option<usize>,
    /// `FILE:LINE` of the representative, if ids repeat in the input and it is not a stored document.
    pub place: Option<String>,
    /// Whether the representative was in a store before. If so, no member is kept.
    pub is_stored: bool,
    /// Store of the representative, if there are several stores.
    pub store: Option<&'a Path>,
    /// Documents of the cluster in input order. Unless the representative is a stored document, it is one of them, and is kept,
    /// except with [`Keep::None`](super::Keep::None).
    pub members: Vec<Member>,
}

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Index in the input, from 0, not counting malformed documents.
    pub document: usize,
    /// Document id.
    pub id: DocumentId,
    /// `FILE:LINE` of the document, if ids repeat in the input.
    pub place: Option<String>,
    /// Fingerprint in hexadecimal.
    pub fingerprint: String,
    /// Distance to the representative, in bits; `None` if texts are compared by similarity.
    pub distance: Option<u32>,
    /// Similarity of its text to the text of the representative, from 0 to 1; `None` if texts are not compared.
    pub similarity: Option<f64>,
    /// Whether the document is kept. A kept member is the representative of its cluster.
    pub is_kept: bool,
}

/// Two near documents, the second from the input or from a store.
#[derive(Clone, Debug, PartialEq)]
pub struct NearPair<'a> {
    /// Index of the first document in the input, from 0.
    pub document: usize,
    /// Id of the first document.
    pub id: IdRef<'a>,
    /// Index of the second document, which comes later in the input; `None` for a stored document.
    pub other: Option<usize>,
    /// Id of the second document.
    pub other_id: IdRef<'a>,
    /// Store of the second document, if there are several stores.
    pub store: Option<&'a Path>,
    /// Distance of the fingerprints, in bits; `None` if texts are compared by similarity.
    pub distance: Option<u32>,
    /// Similarity of the texts, from 0 to 1; `None` if texts are not compared.
    pub similarity: Option<f64>,
}

/// A kept document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Index in the input, from 0, not counting malformed documents.
    pub document: usize,
    /// Document id.
    pub id: DocumentId,
    /// `FILE:LINE` of the document.
    pub place: String,
    /// Fingerprint in hexadecimal; `None` for a document without text.
    pub fingerprint: Option<String>,
}

/// A removed document, and the document that it duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed<'a> {
    /// Index in the input, from 0, not counting malformed documents.
    pub document: usize,
    /// Document id.
    pub id: IdRef<'a>,
    /// `FILE:LINE` of the document, if ids repeat in the input.
    pub place: Option<String>,
    /// Index of the document that it duplicates; `None` for a stored document.
    ///
    /// This is the most similar kept document that passes the threshold. If the removed document is connected with kept documents
    /// only by chains, this is the representative of its cluster. With [`Keep::None`](super::Keep::None), this is the most similar
    /// of all other documents.
    pub duplicate_of: Option<usize>,
    /// Id of the document that it duplicates.
    pub duplicate_of_id: DocumentId,
    /// `FILE:LINE` of that document, under the same condition as [`place`](Removed::place).
    pub duplicate_of_place: Option<String>,
    /// Store of that document, if there are several stores.
    pub store: Option<&'a Path>,
    /// Distance of the two fingerprints, in bits; `None` if texts are compared by similarity.
    pub distance: Option<u32>,
    /// Similarity of the two texts, from 0 to 1; `None` if texts are not compared.
    pub similarity: Option<f64>,
}

impl Found {
    /// Width of the fingerprints, in bits.
    pub fn bits(&self) -> u32 {
        self.job.bits()
    }

    /// The question that the run answered.
    pub fn question(&self) -> Question {
        each_width!(&self.job, job => job.question)
    }

    /// Kind of the input: documents or fingerprints.
    pub fn kind(&self) -> InputKind {
        each_width!(&self.job, job => job.kind)
    }

    /// Counts of read documents, malformed documents and skipped files.
    pub fn counts(&self) -> Counts {
        each_width!(&self.job, job => job.counts)
    }

    /// Totals of the run.
    pub fn totals(&self) -> Totals {
        (*self.totals).clone()
    }

    /// Number of pairs of texts compared, and number of these that were not similar enough; `None` if texts are not compared.
    pub fn compared(&self) -> (Option<u64>, Option<u64>) {
        (self.totals.compared, self.totals.unlike)
    }

    /// Clusters in input order of their first documents. A cluster has at least two documents, or one and a stored document.
    ///
    /// # Errors
    /// An item is an error if the store cannot name a stored document. It is also an error if documents were moved to disk for
    /// lack of memory, and cannot be read back.
    pub fn clusters(&self) -> Box<dyn Iterator<Item = Result<Cluster<'_>>> + '_> {
        each_width!(&self.job, job => Box::new(Clusters::new(job)))
    }

    /// Kept documents, in input order.
    ///
    /// # Errors
    /// An item is an error if documents were moved to disk for lack of memory, and cannot be read back.
    pub fn kept(&self) -> Box<dyn Iterator<Item = Result<Kept>> + '_> {
        each_width!(&self.job, job => match kept_of(job) {
            Ok(kept) => Box::new(kept),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }

    /// Visits the removed documents in input order, each with the document that it duplicates.
    ///
    /// # Errors
    /// Errors of the visitor, and the errors of [`Found::clusters`].
    pub fn visit_removed(&self, visitor: &mut dyn FnMut(&Removed<'_>) -> Result<()>) -> Result<()> {
        each_width!(&self.job, job => {
            let results = job.results();
            results.visit_removed(&(), "documents", |told, Reason { document, of, how }| {
                visitor(&Removed {
                    document,
                    id: told.id(document),
                    place: results.place(told, document),
                    duplicate_of: of.document,
                    duplicate_of_id: of.id,
                    duplicate_of_place: of.place,
                    store: of.store.and_then(|store| results.store(store)),
                    distance: how.distance,
                    similarity: how.similarity,
                })
            })
        })
    }

    /// Number of stores compared with, including a store that this run makes.
    pub fn stores(&self) -> usize {
        each_width!(&self.job, job => job.against.len())
    }

    /// Whether the ids of all input documents are numbers; and whether the ids of all input documents and stored documents are.
    pub fn are_numbers(&self) -> (bool, bool) {
        each_width!(&self.job, job => (job.corpus.are_numbers(), job.results().mixed_are_numbers()))
    }

    /// Visits the pairs of near documents in input order, then the pairs of a document and a stored document. If texts are
    /// compared, only pairs of similar texts are visited. Without [`Options::pairs`](super::Options::pairs), only pairs of equal
    /// fingerprints are known.
    ///
    /// # Errors
    /// Errors of the visitor, [`Error::Cancelled`](simstore::Error::Cancelled) if the watch says so, and an error if the store
    /// cannot name a stored document.
    pub fn visit_pairs(
        &self,
        watch: &dyn Watch,
        visitor: &mut dyn FnMut(&NearPair<'_>) -> Result<()>,
    ) -> Result<()> {
        each_width!(&self.job, job => {
            let results = job.results();
            results.visit_pairs(watch, |told, Near { document, other, how }| {
                let (other, other_id, store) = match other {
                    Other::Document(other) => (Some(other), told.id(other), None),
                    Other::Stored(id, store) => (None, id, results.store(store)),
                };
                let How { distance, similarity, .. } = how;
                visitor(&NearPair { document, id: told.id(document), other, other_id, store, distance, similarity })
            })
        })
    }

    /// Writes all requested files. They get their names only in [`Found::finish`]. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if a file cannot be written, [`Error::Refused`](simstore::Error::Refused) if the inputs
    /// have changed or cannot be written as requested, [`Error::Cancelled`](simstore::Error::Cancelled) if the watch says so. If
    /// `Found` is dropped without [`Found::finish`], the written files are deleted.
    pub fn write(&mut self, watch: &dyn Watch) -> Result<()> {
        each_width!(&mut self.job, job => job.write(watch))
    }

    /// Writes the files, if [`Found::write`] has not, and gives them their names. If requested, adds the kept documents to the
    /// store. Files and store change in one step, which the watch cannot stop.
    ///
    /// # Errors
    /// The errors of [`Found::write`] and of the store. If the process is killed during the step, an identical run completes it.
    pub fn finish(self, watch: &dyn Watch) -> Result<()> {
        each_width!(self.job, job => job.finish(watch))
    }
}

fn kept_of<F: Fingerprint>(job: &Job<F>) -> Result<impl Iterator<Item = Result<Kept>> + '_> {
    let mut clustered = job.results().clustered()?;
    Ok(job.corpus.filter_map(move |document| {
        Ok(clustered.of(document.number)?.is_kept.then(|| Kept {
            document: document.number,
            id: document.id().into(),
            place: document.place(),
            fingerprint: document.fingerprint().map(Fingerprint::to_hex),
        }))
    }))
}

/// Iterator over clusters.
struct Clusters<'a, F: Fingerprint> {
    job: &'a Job<F>,
    /// `None` before the first call of `next`.
    members: Option<Cursor<RowsIter<'a, model::Member>, model::Member>>,
    /// The next clusters, already read.
    read: VecDeque<Cluster<'a>>,
}

impl<'a, F: Fingerprint> Clusters<'a, F> {
    fn new(job: &'a Job<F>) -> Self {
        Clusters { job, members: None, read: VecDeque::new() }
    }

    fn next_cluster(&mut self) -> Result<Option<Cluster<'a>>> {
        if self.read.is_empty() {
            self.read_some()?;
        }
        Ok(self.read.pop_front())
    }

    /// Reads the next cluster; if documents are on disk, as many clusters as fit in memory.
    fn read_some(&mut self) -> Result<()> {
        if self.members.is_none() {
            self.members = Some(self.job.outcome.clusters.by_cluster.cursor()?);
        }
        let Some(members) = &mut self.members else { return Ok(()) };
        let most = if self.job.corpus.spilled().is_some() { self.job.corpus.most_told() / 2 } else { 1 };
        let mut all: Vec<model::Member> = Vec::new();
        while let Some(first) = members.take_if(|_| all.len() < most)? {
            all.push(first);
            while let Some(member) = members.take_if(|member| member.cluster == first.cluster)? {
                all.push(member);
            }
        }
        let mut documents: Vec<usize> = all
            .iter()
            .flat_map(|member| [Some(member.document as usize), member.by.get().ok()])
            .flatten()
            .collect();
        documents.sort_unstable();
        documents.dedup();
        let told = self.job.corpus.told(documents, &())?;
        for members in all.chunk_by(|a, b| a.cluster == b.cluster) {
            self.read.push_back(cluster_of(self.job, members, &told)?);
        }
        Ok(())
    }
}

fn cluster_of<'a, F: Fingerprint>(
    job: &'a Job<F>,
    members: &[model::Member],
    told: &Told<'_, F>,
) -> Result<Cluster<'a>> {
    let (results, first) = (job.results(), members[0]);
    let representative = results.named(told, first.by)?;
    let member = |member: &model::Member| {
        let document = member.document as usize;
        let How { distance, similarity, .. } = results.how_near(told, member)?;
        Ok(Member {
            document,
            id: told.id(document).into(),
            place: results.place(told, document),
            fingerprint: told.fingerprint(document).to_hex(),
            distance,
            similarity,
            is_kept: member.is_representative() && !results.is_dropped,
        })
    };
    Ok(Cluster {
        number: first.cluster as usize,
        representative: representative.id,
        document: representative.document,
        place: representative.place,
        is_stored: first.is_stored(),
        store: representative.store.and_then(|store| job.store(store)),
        members: members.iter().map(member).collect::<Result<_>>()?,
    })
}

impl<'a, F: Fingerprint> Iterator for Clusters<'a, F> {
    type Item = Result<Cluster<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_cluster().transpose()
    }
}
