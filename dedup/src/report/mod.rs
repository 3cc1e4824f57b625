//! The report of a run: clusters, near pairs, kept and removed documents, and the summary.

pub(crate) mod clusters;
pub(crate) mod display;
pub(crate) mod document_outputs;
pub(crate) mod open_outputs;
pub(crate) mod outputs;
pub(crate) mod page;
pub(crate) mod reported_pair;
pub(crate) mod run_results;
pub(crate) mod summary;
pub(crate) mod tables;

use std::fmt;
use std::path::Path;

use simstore::{Error, Result};

use crate::config::criterion::Criterion;
use crate::report::clusters::{Cluster, Member, cluster_iter};
use crate::report::open_outputs::OpenOutputs;
use crate::report::page::warning_recorder::WarningRecorder;
use crate::report::reported_pair::ReportedPair;
use crate::report::run_results::RunResults;
use crate::report::summary::Summary;
use simstore_corpus::{InputCounts, Observer};
use simstore_io::output::CompleteOutput;
use simstore_io::{DocumentId, IdRef};

/// Results of a [`run`](crate::run): clusters, near pairs, kept and removed documents, and a summary.
pub struct Report {
    /// Results of this run; or as `Err` the number of documents that an identical earlier run has already added to
    /// the store, so that this run did nothing.
    results: Result<Box<RunResults>, u64>,
    /// Output files that are open and not written yet. `None` after they were written.
    outputs: Option<OpenOutputs>,
    /// Output files that are complete but not renamed to their final names yet. Empty after they were renamed.
    complete: Vec<CompleteOutput>,
    counts: InputCounts,
    summary: Box<Summary>,
    /// Warnings of the run.
    warnings: Vec<String>,
}

impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Report").field(&self.summary).finish()
    }
}

/// Pair of near-duplicates. The second document is from the input or from a store.
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
    /// Path of the store of the second document. `None` if that is an input document, or if the run has only one
    /// store.
    pub store: Option<&'a Path>,
    /// Distance of the fingerprints, in bits; `None` if texts are compared by similarity.
    pub distance: Option<u32>,
    /// Similarity of the texts, from 0 to 1; `None` if texts are not compared.
    pub similarity: Option<f64>,
}

/// Removed document, and the document that it duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct RemovedDocument<'a> {
    /// Index of the document in the input, from 0. Malformed documents are not counted.
    pub document: usize,
    /// Document id.
    pub id: IdRef<'a>,
    /// `FILE:LINE` of the document, if ids repeat in the input.
    pub location: Option<String>,
    /// Index of the document that the removed document duplicates; `None` if that is a stored document.
    ///
    /// The removed document duplicates the most similar kept document. If no kept document passes the
    /// threshold, because only a chain of similar documents connects it with the removed document, the removed
    /// document duplicates the representative of its cluster. With [`KeepRule::None`](crate::KeepRule::None), it
    /// duplicates the most similar of all other documents.
    pub duplicate_of: Option<usize>,
    /// Id of the document that the removed document duplicates.
    pub duplicate_of_id: DocumentId,
    /// `FILE:LINE` of the document that the removed document duplicates. `None` if ids do not repeat in the input,
    /// or if that document is a stored document.
    pub duplicate_of_location: Option<String>,
    /// Path of the store that has the duplicated document. `None` if that is an input document, or if the run has
    /// only one store.
    pub store: Option<&'a Path>,
    /// Distance of the two fingerprints, in bits; `None` if texts are compared by similarity.
    pub distance: Option<u32>,
    /// Similarity of the two texts, from 0 to 1; `None` if texts are not compared.
    pub similarity: Option<f64>,
}

impl Report {
    pub(crate) fn new(
        results: RunResults,
        counts: InputCounts,
        outputs: OpenOutputs,
        recorder: WarningRecorder<'_>,
    ) -> Result<Report> {
        let repeated_ids = results.corpus.repeated_ids;
        let is_by_distance = matches!(results.resolved.criterion, Criterion::Distance(_));
        let warnings = recorder.into_warnings(&counts, results.resolved.kind, is_by_distance, repeated_ids);
        let summary = Box::new(Summary::new(&results, &counts)?);
        let (results, outputs) = (Ok(Box::new(results)), Some(outputs));
        Ok(Report { results, outputs, complete: Vec::new(), counts, summary, warnings })
    }

    pub(crate) fn for_repeated_run(criterion: Criterion, counts: InputCounts, added: u64) -> Report {
        let summary = Box::new(Summary::for_repeated_run(&counts, criterion));
        Report {
            results: Err(added),
            outputs: None,
            complete: Vec::new(),
            counts,
            summary,
            warnings: Vec::new(),
        }
    }

    /// Returns the results; `None` if an identical run has already added the documents.
    pub(crate) fn results(&self) -> Option<&RunResults> {
        self.results.as_deref().ok()
    }

    /// Counts and sizes of the run.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Counts of read documents, malformed documents and skipped files.
    pub fn counts(&self) -> InputCounts {
        self.counts
    }

    /// Number of documents that an identical earlier run has added to the store; `None` without such a run. If
    /// it is `Some`, this run did nothing: outputs and store are unchanged, and the report has no documents.
    pub fn added_before(&self) -> Option<u64> {
        self.results.as_ref().err().copied()
    }

    /// Returns the clusters in input order of their first documents. A cluster has at least two documents, or
    /// one document and a stored document.
    ///
    /// # Errors
    /// An item is an error if the name of a stored document cannot be read, or if documents in temporary files
    /// cannot be read.
    pub fn clusters(&self) -> Box<dyn Iterator<Item = Result<Cluster<'_>>> + '_> {
        self.items(cluster_iter)
    }

    /// Returns the kept documents in input order. Each of them has a [`location`](Member::location), even if no id
    /// repeats in the input.
    ///
    /// # Errors
    /// An item is an error if documents in temporary files cannot be read.
    pub fn kept(&self) -> Box<dyn Iterator<Item = Result<Member>> + '_> {
        self.items(kept_iter)
    }

    fn items<'a, T: 'a, I: Iterator<Item = Result<T>> + 'a>(
        &'a self,
        open: impl FnOnce(&'a RunResults) -> Result<I>,
    ) -> Box<dyn Iterator<Item = Result<T>> + 'a> {
        match self.results().map(open).transpose() {
            Ok(items) => Box::new(items.into_iter().flatten()),
            Err(error) => Box::new(std::iter::once(Err(error))),
        }
    }

    /// Visits the removed documents in input order, each with the document that it duplicates.
    ///
    /// # Errors
    /// Errors of the visitor, and the errors of [`Report::clusters`].
    pub fn visit_removed(&self, visitor: &mut dyn FnMut(&RemovedDocument<'_>) -> Result<()>) -> Result<()> {
        let Some(results) = self.results() else { return Ok(()) };
        results.visit_removed(&(), "documents", |lookup, ReportedPair { document, other, proximity }| {
            visitor(&RemovedDocument {
                document,
                id: lookup.id(document),
                location: results.location(lookup, document),
                duplicate_of: other.document(),
                duplicate_of_location: results.other_location(lookup, &other),
                store: other.store().and_then(|store| results.store_path(store)),
                duplicate_of_id: other.into_id(lookup),
                distance: proximity.distance,
                similarity: proximity.similarity,
            })
        })
    }

    /// Number of reference stores, including a store that this run creates.
    pub fn stores(&self) -> usize {
        self.results().map_or(0, |results| results.resolved.references.stores.len())
    }

    /// Returns two flags: whether the ids of all input documents are numbers, and whether also the ids of all
    /// stored documents are numbers.
    pub fn ids_are_numbers(&self) -> (bool, bool) {
        let Some(results) = self.results() else { return (true, true) };
        (results.corpus.ids_are_numbers, results.all_ids_are_numbers())
    }

    /// Visits the near pairs of input documents in input order, then the near pairs of an input document and a
    /// stored document. If texts are compared, only pairs of similar texts are visited. All near pairs are visited
    /// if [`DedupConfig::pairs`](crate::config::DedupConfig::pairs) is set. Otherwise, only pairs with equal
    /// fingerprints or texts are certain to be visited.
    ///
    /// # Errors
    /// Errors of the visitor, [`Error::Cancelled`] if the observer cancels, and
    /// errors of reading the name of a stored document.
    pub fn visit_pairs(
        &self,
        observer: &dyn Observer,
        visitor: &mut dyn FnMut(&NearPair<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(results) = self.results() else { return Ok(()) };
        results.visit_pairs(observer, |lookup, ReportedPair { document, other, proximity }| {
            visitor(&NearPair {
                document,
                id: lookup.id(document),
                other: other.document(),
                other_id: other.id(lookup),
                store: other.store().and_then(|store| results.store_path(store)),
                distance: proximity.distance,
                similarity: proximity.similarity,
            })
        })
    }

    /// Returns the report page as HTML: counts, a histogram of similarities, clusters, and removed documents beside the kept ones,
    /// word by word. [`DedupConfig::report`](crate::config::DedupConfig::report) must be set. Returns `None` if an identical earlier
    /// run has already added the documents. For the texts, the inputs are read again.
    ///
    /// # Errors
    /// [`Error::BadArgument`] without that option; errors of reading the inputs; [`Error::Refused`] if an input has changed.
    pub fn page(&self, observer: &dyn Observer) -> Result<Option<String>> {
        let Some(results) = self.results() else { return Ok(None) };
        if !results.resolved.has_report {
            return Err(Error::BadArgument("the run was made without option `report`".to_owned()));
        }
        page::report_page(results, &self.summary, &self.warnings, observer).map(Some)
    }

    /// Writes all output files. [`publish`](Self::publish) renames them to their final names.
    pub(crate) fn write(&mut self, observer: &dyn Observer) -> Result<()> {
        let Ok(results) = &self.results else { return Ok(()) };
        let outputs =
            self.outputs.take().ok_or_else(|| Error::Bug("outputs were written twice".to_owned()))?;
        let make_page = || page::report_page(results, &self.summary, &self.warnings, observer);
        self.complete = outputs.write(results, make_page, observer)?;
        results.check_before_publishing(observer)
    }

    pub(crate) fn set_seconds(&mut self, seconds: f64) {
        self.summary.set_seconds(seconds);
    }

    /// Adds the kept documents to the store, if the run has to, and renames the output files to their final names.
    pub(crate) fn publish(&mut self, observer: &dyn Observer) -> Result<()> {
        match &mut self.results {
            Ok(results) => results.publish(std::mem::take(&mut self.complete), observer),
            Err(_) => Ok(()),
        }
    }
}

fn kept_iter(results: &RunResults) -> Result<impl Iterator<Item = Result<Member>> + '_> {
    let mut cluster_cursor = results.cluster_cursor()?;
    Ok(results.corpus.filter_map(move |document| {
        Ok(cluster_cursor.status(document.number)?.is_kept.then(|| Member {
            document: document.number,
            id: document.id().into(),
            location: Some(document.location()),
            fingerprint: document.hex(),
            distance: None,
            similarity: None,
            is_kept: true,
        }))
    }))
}
