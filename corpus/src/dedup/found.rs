//! What was found, whatever the width of the fingerprints.

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
use crate::spill::{Cursor, RowsIter};
use crate::{Counts, DocumentId, IdRef, InputKind, Watch};

/// What [`find`](super::find) has come to.
#[derive(Debug)]
pub enum Answer {
    /// What is near what.
    Found(Found),
    /// The same run has added its documents to the store before, and has written its files: nothing is to be done.
    AddedBefore(AddedBefore),
}

/// What was found: clusters, pairs, what is kept. Files appear, and a store changes, with [`Found::finish`]; if this is dropped,
/// nothing is left of it.
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

/// Documents that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster<'a> {
    /// From 1, in order of the first documents.
    pub number: usize,
    /// What stands for it is called.
    pub representative: DocumentId,
    /// Which document that is, from 0; `None` for something stored.
    pub document: Option<usize>,
    /// Where that stands, if there are ids that repeat, and it is a document.
    pub place: Option<String>,
    /// Whether it was in a store before: no member is kept then.
    pub is_stored: bool,
    /// The store that had it, where there are several.
    pub store: Option<&'a Path>,
    /// In order of input; one of them stands for the others, unless something stored does. It is the one that is kept, but for
    /// [`Keep::None`](super::Keep::None).
    pub members: Vec<Member>,
}

/// A document of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Which document, from 0: malformed ones do not count.
    pub document: usize,
    /// What it is called.
    pub id: DocumentId,
    /// Where it stands, `FILE:LINE`, if there are ids that repeat.
    pub place: Option<String>,
    /// Its fingerprint, hexadecimal.
    pub fingerprint: String,
    /// From what stands for the cluster, in bits; `None` where texts are compared by similarity.
    pub distance: Option<u32>,
    /// Of its text to that of what stands for the cluster, from 0 to 1, where texts are compared.
    pub similarity: Option<f64>,
    /// Whether it is kept: it stands for the cluster then. The others are duplicates of what does.
    pub is_kept: bool,
}

/// Two that are near.
#[derive(Clone, Debug, PartialEq)]
pub struct NearPair<'a> {
    /// Which document, from 0.
    pub document: usize,
    /// What it is called.
    pub id: IdRef<'a>,
    /// A later document; `None` for something stored.
    pub other: Option<usize>,
    /// What that is called.
    pub other_id: IdRef<'a>,
    /// The store that has it, where there are several.
    pub store: Option<&'a Path>,
    /// Of their fingerprints, in bits; `None` where texts are compared by similarity.
    pub distance: Option<u32>,
    /// Of their texts, from 0 to 1, where these are compared.
    pub similarity: Option<f64>,
}

/// A document of the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which document, from 0: malformed ones do not count.
    pub document: usize,
    /// What it is called.
    pub id: DocumentId,
    /// Where it stands: `FILE:LINE`.
    pub place: String,
    /// Its fingerprint, hexadecimal; `None` without text.
    pub fingerprint: Option<String>,
}

/// A document that is not kept, and what it is a duplicate of.
#[derive(Clone, Debug, PartialEq)]
pub struct Removed<'a> {
    /// Which document, from 0: malformed ones do not count.
    pub document: usize,
    /// What it is called.
    pub id: IdRef<'a>,
    /// Where it stands, `FILE:LINE`, if there are ids that repeat.
    pub place: Option<String>,
    /// The document that it is a duplicate of: the kept one that is most similar to it, of those that are as similar as was asked
    /// for; the one that stands for its cluster, if chains alone connect it with what is kept; the most similar of all others, if
    /// none is kept. `None` for something stored.
    pub duplicate_of: Option<usize>,
    /// What that is called.
    pub duplicate_of_id: DocumentId,
    /// Where that stands, as [`place`](Removed::place).
    pub duplicate_of_place: Option<String>,
    /// The store that has it, where there are several.
    pub store: Option<&'a Path>,
    /// From it, in bits; `None` where texts are compared by similarity.
    pub distance: Option<u32>,
    /// Of the two texts, from 0 to 1, where texts are compared.
    pub similarity: Option<f64>,
}

impl Found {
    /// Width of the fingerprints, in bits.
    pub fn bits(&self) -> u32 {
        self.job.bits()
    }

    /// What was asked.
    pub fn question(&self) -> Question {
        each_width!(&self.job, job => job.question)
    }

    /// Whether documents were read, or fingerprints.
    pub fn kind(&self) -> InputKind {
        each_width!(&self.job, job => job.kind)
    }

    /// How much of which kind was read.
    pub fn counts(&self) -> Counts {
        each_width!(&self.job, job => job.counts)
    }

    /// The numbers of the whole.
    pub fn totals(&self) -> Totals {
        (*self.totals).clone()
    }

    /// How many pairs of texts have been compared, and how many of them were not alike; `None` if texts are not compared.
    pub fn compared(&self) -> (Option<u64>, Option<u64>) {
        (self.totals.compared, self.totals.unlike)
    }

    /// The clusters of two documents and more, or of something stored, in order of their first documents.
    ///
    /// # Errors
    /// Items are errors where the store does not tell what something in it is called, and where documents are on disk, for they were
    /// too much for the memory, and cannot be read.
    pub fn clusters(&self) -> Box<dyn Iterator<Item = Result<Cluster<'_>>> + '_> {
        each_width!(&self.job, job => Box::new(Clusters::new(job)))
    }

    /// What is kept, in order of input.
    ///
    /// # Errors
    /// Items are errors where documents are on disk, for they were too much for the memory, and cannot be read.
    pub fn kept(&self) -> Box<dyn Iterator<Item = Result<Kept>> + '_> {
        each_width!(&self.job, job => match kept_of(job) {
            Ok(kept) => Box::new(kept),
            Err(error) => Box::new(std::iter::once(Err(error))),
        })
    }

    /// What is not kept, in order of input, and why.
    ///
    /// # Errors
    /// As [`Found::clusters`].
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

    /// How many stores were compared with, one that is only made included.
    pub fn stores(&self) -> usize {
        each_width!(&self.job, job => job.against.len())
    }

    /// Whether the ids of all documents are numbers; and whether all that is stored is called by a number too.
    pub fn are_numbers(&self) -> (bool, bool) {
        each_width!(&self.job, job => (job.corpus.are_numbers(), job.results().mixed_are_numbers()))
    }

    /// Visits the pairs of near documents by input order, then those of documents with something stored; where texts are
    /// compared, only those of similar texts. Needs [`Options::pairs`](super::Options::pairs): else there are only those of
    /// equal fingerprints.
    ///
    /// # Errors
    /// That of the visitor, [`Error::Cancelled`](simstore::Error::Cancelled) if the watch says so, and where the store does not
    /// tell what something in it is called.
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

    /// Writes all files that were asked for, once. They have not got their names then.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if one cannot be written, [`Error::Refused`](simstore::Error::Refused) if the inputs
    /// have changed or cannot be written as was asked for, [`Error::Cancelled`](simstore::Error::Cancelled) if the watch says
    /// so. Nothing is left of the files when this is dropped.
    pub fn write(&mut self, watch: &dyn Watch) -> Result<()> {
        each_width!(&mut self.job, job => job.write(watch))
    }

    /// Gives the files their names, written before or now, and adds what is kept to the store, if that was asked for: as one
    /// step, which the watch cannot stop.
    ///
    /// # Errors
    /// As [`Found::write`], and those of the store. If the process is killed meanwhile, the same run finishes what it has left.
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

/// Clusters one after the other.
struct Clusters<'a, F: Fingerprint> {
    job: &'a Job<F>,
    /// `None` before the first is asked for.
    members: Option<Cursor<RowsIter<'a, model::Member>, model::Member>>,
    /// Some that follow one another.
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

    /// Reads a cluster; if documents are on disk, as many as there is memory for.
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
