//! The report of a run, independent of the width of the fingerprints.

pub(crate) mod display;
pub(crate) mod documents;
pub(crate) mod near_pair;
pub(crate) mod open_outputs;
pub(crate) mod outputs;
pub(crate) mod run_results;
pub(crate) mod summary;
pub(crate) mod tables;

use std::collections::VecDeque;
use std::fmt;
use std::path::Path;

use simstore::{Error, Result};

use crate::config::criterion::Criterion;
use crate::corpus::Told;
use crate::report::near_pair::{How, Pair};
use crate::report::open_outputs::OpenOutputs;
use crate::report::run_results::Job;
use crate::report::summary::Summary;
use crate::report::tables::documents_of;
use crate::rows;
use simstore_corpus::spill::{RowCursor, RowsIter};
use simstore_corpus::{InputCounts, Observer};
use simstore_io::output::CompleteOutput;
use simstore_io::{DocumentId, IdRef};

/// Result of a [`run`](crate::run): clusters, near pairs, kept and removed documents, and a summary.
pub struct Report {
    /// The results, or the number of documents that an identical run has already added.
    job: Result<Box<Job>, u64>,
    /// The open files, until they are written.
    outputs: Option<OpenOutputs>,
    /// The written files, until they have their names.
    complete: Vec<CompleteOutput>,
    counts: InputCounts,
    summary: Box<Summary>,
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Report").field(&self.summary).finish()
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
    /// except with [`Keep::None`](crate::corpus::keep_rule::Keep::None).
    pub members: Vec<Member>,
}

/// A document of a cluster, or a kept document.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Index in the input, from 0, not counting malformed documents.
    pub document: usize,
    /// Document id.
    pub id: DocumentId,
    /// `FILE:LINE` of the document, if ids repeat in the input.
    pub place: Option<String>,
    /// Fingerprint in hexadecimal; `None` for a document without text.
    pub fingerprint: Option<String>,
    /// Distance to the representative, in bits; `None` if texts are compared by similarity, and for a document of
    /// [`Report::kept`].
    pub distance: Option<u32>,
    /// Similarity of its text to the text of the representative, from 0 to 1; `None` if texts are not compared, and for a document of
    /// [`Report::kept`].
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
    /// only by chains, this is the representative of its cluster. With [`Keep::None`](crate::corpus::keep_rule::Keep::None), this is the most similar
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

impl Report {
    pub(crate) fn new(job: Job, counts: InputCounts, outputs: OpenOutputs) -> Result<Report> {
        let summary = Box::new(Summary::new(&job, &counts)?);
        let (job, outputs) = (Ok(Box::new(job)), Some(outputs));
        Ok(Report { job, outputs, complete: Vec::new(), counts, summary })
    }

    pub(crate) fn of_added_before(criterion: Criterion, counts: InputCounts, added: u64) -> Report {
        let summary = Box::new(Summary::of_added_before(&counts, criterion));
        Report { job: Err(added), outputs: None, complete: Vec::new(), counts, summary }
    }

    /// The results; `None` if an identical run has already added the documents.
    pub(crate) fn job(&self) -> Option<&Job> {
        self.job.as_deref().ok()
    }

    /// The numbers of the run.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Counts of read documents, malformed documents and skipped files.
    pub fn counts(&self) -> InputCounts {
        self.counts
    }

    /// Number of documents that an identical run has already added to the store, if this run therefore had nothing to do. Outputs and
    /// store are unchanged, and the report has no documents.
    pub fn added_before(&self) -> Option<u64> {
        self.job.as_ref().err().copied()
    }

    /// Clusters in input order of their first documents. A cluster has at least two documents, or one and a stored document.
    ///
    /// # Errors
    /// An item is an error if the store cannot name a stored document. It is also an error if documents were moved to disk for
    /// lack of memory, and cannot be read back.
    pub fn clusters(&self) -> Box<dyn Iterator<Item = Result<Cluster<'_>>> + '_> {
        self.items(clusters_of)
    }

    /// Kept documents, in input order. Each has a place, whether ids repeat or not.
    ///
    /// # Errors
    /// An item is an error if documents were moved to disk for lack of memory, and cannot be read back.
    pub fn kept(&self) -> Box<dyn Iterator<Item = Result<Member>> + '_> {
        self.items(kept_of)
    }

    fn items<'a, T: 'a, I: Iterator<Item = Result<T>> + 'a>(
        &'a self,
        open: impl FnOnce(&'a Job) -> Result<I>,
    ) -> Box<dyn Iterator<Item = Result<T>> + 'a> {
        match self.job().map(open).transpose() {
            Ok(items) => Box::new(items.into_iter().flatten()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// Visits the removed documents in input order, each with the document that it duplicates.
    ///
    /// # Errors
    /// Errors of the visitor, and the errors of [`Report::clusters`].
    pub fn visit_removed(&self, visitor: &mut dyn FnMut(&Removed<'_>) -> Result<()>) -> Result<()> {
        let Some(job) = self.job() else { return Ok(()) };
        job.visit_removed(&(), "documents", |told, Pair { document, other, how }| {
            visitor(&Removed {
                document,
                id: told.id(document),
                place: job.place(told, document),
                duplicate_of: other.document(),
                duplicate_of_place: job.place_of(told, &other),
                store: other.store().and_then(|store| job.store(store)),
                duplicate_of_id: other.into_id(told),
                distance: how.distance,
                similarity: how.similarity,
            })
        })
    }

    /// Number of stores compared with, including a store that this run makes.
    pub fn stores(&self) -> usize {
        self.job().map_or(0, |job| job.resolved.references.stores.len())
    }

    /// Whether the ids of all input documents are numbers; and whether the ids of all input documents and stored documents are.
    pub fn are_numbers(&self) -> (bool, bool) {
        let Some(job) = self.job() else { return (true, true) };
        (job.corpus.are_numbers, job.mixed_are_numbers())
    }

    /// Visits the pairs of near documents in input order, then the pairs of a document and a stored document. If texts are
    /// compared, only pairs of similar texts are visited. Without [`DedupConfig::pairs`](crate::config::DedupConfig::pairs), only pairs of equal
    /// fingerprints are known.
    ///
    /// # Errors
    /// Errors of the visitor, [`Error::Cancelled`](simstore::Error::Cancelled) if the observer says so, and an error if the store
    /// cannot name a stored document.
    pub fn visit_pairs(
        &self,
        observer: &dyn Observer,
        visitor: &mut dyn FnMut(&NearPair<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(job) = self.job() else { return Ok(()) };
        job.visit_pairs(observer, |told, Pair { document, other, how }| {
            visitor(&NearPair {
                document,
                id: told.id(document),
                other: other.document(),
                other_id: other.id(told),
                store: other.store().and_then(|store| job.store(store)),
                distance: how.distance,
                similarity: how.similarity,
            })
        })
    }

    /// Writes all outputs. They have no names yet.
    pub(crate) fn write(&mut self, observer: &dyn Observer) -> Result<()> {
        let Ok(job) = &self.job else { return Ok(()) };
        let outputs =
            self.outputs.take().ok_or_else(|| Error::Bug("outputs were written twice".to_owned()))?;
        self.complete = outputs.write(job, observer)?;
        job.check_written(observer)
    }

    pub(crate) fn set_seconds(&mut self, seconds: f64) {
        self.summary.set_seconds(seconds);
    }

    /// Gives the outputs their names, and adds the kept documents to the store, if any.
    pub(crate) fn publish(&mut self, observer: &dyn Observer) -> Result<()> {
        match &mut self.job {
            Ok(job) => job.publish(std::mem::take(&mut self.complete), observer),
            Err(_) => Ok(()),
        }
    }
}

fn kept_of(job: &Job) -> Result<impl Iterator<Item = Result<Member>> + '_> {
    let mut clustered = job.clustered()?;
    Ok(job.corpus.filter_map(move |document| {
        Ok(clustered.status(document.number)?.is_kept.then(|| Member {
            document: document.number,
            id: document.id().into(),
            place: Some(document.place()),
            fingerprint: document.hex(),
            distance: None,
            similarity: None,
            is_kept: true,
        }))
    }))
}

fn clusters_of(job: &Job) -> Result<impl Iterator<Item = Result<Cluster<'_>>>> {
    let mut members = job.outcome.clusters.by_cluster.cursor()?;
    let mut read = VecDeque::new();
    let mut next = move || {
        if read.is_empty() {
            read_clusters(job, &mut members, &mut read)?;
        }
        Ok(read.pop_front())
    };
    Ok(std::iter::from_fn(move || next().transpose()))
}

/// Reads the next cluster; if documents are on disk, as many clusters as fit in memory.
fn read_clusters<'a>(
    job: &'a Job,
    members: &mut RowCursor<RowsIter<'_, rows::MemberRow>, rows::MemberRow>,
    read: &mut VecDeque<Cluster<'a>>,
) -> Result<()> {
    let most = if job.corpus.spilled().is_some() { job.corpus.most_told() / 2 } else { 1 };
    let mut all: Vec<rows::MemberRow> = Vec::new();
    let is_last = |all: &[rows::MemberRow], cluster| all.last().is_some_and(|last| last.cluster == cluster);
    while let Some(member) = members.next_if(|next| all.len() < most || is_last(&all, next.cluster))? {
        all.push(member);
    }
    let told = job.told_of(&all, documents_of, &())?;
    for members in all.chunk_by(|a, b| a.cluster == b.cluster) {
        read.push_back(cluster_of(job, members, &told)?);
    }
    Ok(())
}

fn cluster_of<'a>(job: &'a Job, members: &[rows::MemberRow], told: &Told<'_>) -> Result<Cluster<'a>> {
    let (first, representative) = (members[0], job.other(members[0].representative)?);
    let member = |member: &rows::MemberRow| {
        let document = member.document as usize;
        let How { distance, similarity, .. } =
            job.how_near(told, document, member.representative, member.measure)?;
        Ok(Member {
            document,
            id: told.id(document).into(),
            place: job.place(told, document),
            fingerprint: told.hex(document),
            distance,
            similarity,
            is_kept: member.is_representative() && !job.keeps_none(),
        })
    };
    Ok(Cluster {
        number: first.cluster as usize,
        document: representative.document(),
        place: job.place_of(told, &representative),
        is_stored: first.is_stored(),
        store: representative.store().and_then(|store| job.store(store)),
        representative: representative.into_id(told),
        members: members.iter().map(member).collect::<Result<_>>()?,
    })
}
