//! Results of a run, and their publication, which adds documents to a store and renames the output files to their
//! final names.

use std::path::Path;

use simstore::{Error, Fingerprint, Result, Store, each_width};
use simstore_corpus::spill::Rows;
use simstore_corpus::{Observer, Stage};
use simstore_io::numbers::format_count_of;
use simstore_io::output::{CompleteOutput, StagedOutput};
use simstore_text::{DocumentComparer, Profile, SimilarSettings};

use crate::config::criterion::Criterion;
use crate::config::resolve::ResolvedConfig;
use crate::documents::Corpus;
use crate::documents::rereader::DocumentRereader;
use crate::documents::text_starts::TextStarts;
use crate::pipeline::clusters::ClusterCursor;
use crate::pipeline::stages::PipelineResult;
use crate::reference_stores::ReferenceStore;
use crate::rows::SignatureRow;
use crate::store_writer::similar_writer::SimilarStoreWriter;
use crate::store_writer::{commit, staged_suffix};
use crate::workspace::Workspace;

/// Results of a run, and the resolved configuration that led to them.
pub(crate) struct RunResults {
    pub(crate) resolved: ResolvedConfig,
    pub(crate) corpus: Corpus,
    pub(crate) outcome: PipelineResult,
    /// Starts of the texts that were compared, if a report page may be made.
    pub(crate) texts: Option<TextStarts>,
    pub(crate) workspace: Workspace,
    /// Data for adding the kept documents to the first reference store, if documents are added.
    pub(crate) addition: Option<StoreAddition>,
}

/// Data for adding the kept documents to a store.
pub(crate) struct StoreAddition {
    /// Hash of inputs and options, which identifies the run.
    run_hash: String,
    /// Settings and profile of the store, if it is a store of similar documents.
    similar: Option<(SimilarSettings, Profile)>,
    /// MinHash signatures of all documents, for a store of similar documents.
    signatures: Option<Rows<SignatureRow>>,
}

impl StoreAddition {
    pub(crate) fn new(
        resolved: &ResolvedConfig,
        run: String,
        signatures: Option<Rows<SignatureRow>>,
    ) -> StoreAddition {
        let similar = resolved.addition_settings.zip(resolved.text_profile.clone());
        StoreAddition { run_hash: run, signatures: signatures.filter(|_| similar.is_some()), similar }
    }

    pub(crate) fn settings(&self) -> Option<SimilarSettings> {
        self.similar.as_ref().map(|&(settings, _)| settings)
    }
}

impl RunResults {
    /// Reference stores of the run.
    pub(crate) fn stores(&self) -> &[ReferenceStore] {
        &self.resolved.references.stores
    }

    /// Whether no document of a cluster is kept, not even the representative.
    pub(crate) fn keeps_none(&self) -> bool {
        self.resolved.keeps_none()
    }

    /// Whether the run has reference stores. A store that this run creates counts, so that the tables of this run
    /// have the same columns as the tables of later runs.
    pub(crate) fn has_stores(&self) -> bool {
        !self.stores().is_empty()
    }

    /// Returns the path of a store; `None` unless the run has several stores.
    pub(crate) fn store_path(&self, store: usize) -> Option<&Path> {
        if self.stores().len() > 1 { Some(self.stores().get(store)?.path()) } else { None }
    }

    /// Number of kept documents that have a fingerprint. Only these documents are added to the store.
    pub(crate) fn added_count(&self) -> u64 {
        // All documents without fingerprint are kept: a removed document is near another one, so it has a
        // fingerprint.
        (self.corpus.len() - self.corpus.empty - self.outcome.clusters.removed(self.keeps_none())) as u64
    }

    /// Returns a cursor that reads the cluster number of each document, in ascending order of documents.
    pub(crate) fn cluster_cursor(&self) -> Result<ClusterCursor<'_>> {
        ClusterCursor::new(&self.outcome.clusters, self.keeps_none())
    }

    /// Fails if inputs have changed during the run, or if the kept documents cannot be added to the store because of
    /// their ids.
    pub(crate) fn check_before_publishing(&self, observer: &dyn Observer) -> Result<()> {
        self.resolved.check_unchanged()?;
        match self.resolved.references.stores.first().zip(self.addition.as_ref()) {
            Some((store, addition)) => store.check_added_ids(
                &self.corpus,
                self.cluster_cursor()?,
                addition.similar.is_some(),
                observer,
            ),
            None => Ok(()),
        }
    }

    /// Adds the kept documents to the store, if the run has to, and renames the complete output files to their final
    /// names. If the run is killed between the two, the next run that adds to the store renames the files.
    pub(crate) fn publish(
        &mut self,
        mut complete: Vec<CompleteOutput>,
        observer: &dyn Observer,
    ) -> Result<()> {
        Stage::new(observer, "files").add(0)?;
        match self.resolved.references.stores.first().zip(self.addition.as_ref()) {
            None => complete.into_iter().try_for_each(CompleteOutput::publish)?,
            Some((reference, addition)) => self.publish_with_addition(reference, addition, &mut complete)?,
        }
        // Closes the stores, so that other processes can write to them.
        self.resolved.references.stores.iter_mut().for_each(|reference| reference.store = None);
        Ok(())
    }

    fn publish_with_addition(
        &self,
        reference: &ReferenceStore,
        addition: &StoreAddition,
        complete: &mut [CompleteOutput],
    ) -> Result<()> {
        let added = self.added_count();
        let distance = match self.resolved.criterion {
            Criterion::Distance(distance) => Some(distance),
            Criterion::Similarity(_) => None,
        };
        let (width, budget) = (self.corpus.width(), self.workspace.budget);
        // The profile of fingerprints in the input is unknown.
        let profile =
            self.resolved.documents().map(|_| self.resolved.profile.to_string()).unwrap_or_default();
        let made = reference.create_missing(distance, addition.settings(), &profile, width, budget)?;
        let store = reference.writable_store(made.as_ref());
        let store = store.ok_or_else(|| Error::Bug("no store to add to".to_owned()))?;
        let staged =
            each_width!(store, store => self.stage_and_commit(store, reference, addition, added, complete))?;
        let path = reference.path().display();
        for (at, file) in staged.iter().enumerate() {
            file.publish().map_err(|error| {
                Error::Refused(format!(
                    "{error}; {} added to {path} nevertheless, but {} still a hidden name: run this command again to complete the \
                     outputs",
                    count_was(added, "document"),
                    count_has(staged.len() - at)
                ))
            })?;
        }
        // Without waiting for due merges, many short runs would never merge.
        store.wait_for_background().map_err(|error| match error {
            Error::Cancelled => Error::Cancelled,
            error => Error::Refused(format!(
                "{error}; {} added to {path} nevertheless, and all output files are complete; only the merge of segments is left to the \
                 next write to the store",
                count_was(added, "document")
            )),
        })
    }

    /// Moves the complete output files to hidden names in their folders, and commits the kept documents to the
    /// store. Returns the files with hidden names.
    fn stage_and_commit<F: Fingerprint>(
        &self,
        store: &Store<F>,
        reference: &ReferenceStore,
        addition: &StoreAddition,
        added: u64,
        complete: &mut [CompleteOutput],
    ) -> Result<Vec<StagedOutput>> {
        let stored = match &addition.similar {
            Some((settings, profile)) => Some(self.stored_comparer(*settings, profile, store)?),
            None => None,
        };
        let similar = match &stored {
            Some(stored) => Some(self.similar_writer(addition, stored)?),
            None => None,
        };
        let load = reference.load_kept(store, &self.corpus, self.cluster_cursor()?, similar)?;
        let suffix = staged_suffix(&addition.run_hash);
        let staged: Vec<Option<StagedOutput>> =
            complete.iter_mut().map(|output| output.stage(&suffix)).collect::<Result<_>>()?;
        let staged: Vec<StagedOutput> = staged.into_iter().flatten().collect();
        // From here on, the files get their names exactly if the commit to the store succeeds.
        complete.iter_mut().for_each(CompleteOutput::keep);
        commit(load, &addition.run_hash, added, &staged)?;
        Ok(staged)
    }

    /// Returns the comparer that encodes documents to be added to `store`. If the store keeps texts and has no
    /// dictionary for compressing them, trains a dictionary on the stored texts, or if these are too few, on the
    /// first input texts.
    fn stored_comparer<F: Fingerprint>(
        &self,
        settings: SimilarSettings,
        profile: &Profile,
        store: &Store<F>,
    ) -> Result<DocumentComparer> {
        let stored = DocumentComparer::new(&store.snapshot(), settings, profile.clone())?;
        if settings.has_texts() && !stored.build_dictionary(store)? {
            let mut texts = Vec::new();
            if let Some(inputs) = self.resolved.documents() {
                let documents = inputs.records().map(|record| record?.into_document(inputs.options()));
                // Malformed documents were reported at the first reading.
                let found = documents
                    .filter_map(|document| Some(DocumentComparer::truncate_sample(document.ok()?.text)));
                texts.extend(found.take(DocumentComparer::DICTIONARY_SAMPLES));
            }
            stored.build_dictionary_from(store, &texts)?;
        }
        Ok(stored)
    }

    /// Returns the writer that adds documents to a store of similar documents.
    fn similar_writer<'a>(
        &'a self,
        addition: &'a StoreAddition,
        stored: &'a DocumentComparer,
    ) -> Result<SimilarStoreWriter<'a>> {
        let has_texts = addition.settings().is_some_and(|settings| settings.has_texts());
        let inputs = self.resolved.documents().filter(|_| has_texts);
        let texts = inputs
            .map(|inputs| (DocumentRereader::new(&self.corpus, inputs, &self.workspace), inputs.options()));
        let signatures = addition.signatures.as_ref();
        let signatures =
            signatures.ok_or_else(|| Error::Bug("documents without signatures are added".to_owned()))?;
        SimilarStoreWriter::new(signatures, texts, stored, &self.workspace)
    }
}

/// Formats a count as in "1 document was" or "2 documents were".
fn count_was(count: u64, what: &str) -> String {
    format!("{} {}", format_count_of(count, what), if count == 1 { "was" } else { "were" })
}

/// Formats a count as in "1 output file has" or "2 output files have".
fn count_has(files: usize) -> String {
    format!("{} {}", format_count_of(files as u64, "output file"), if files == 1 { "has" } else { "have" })
}
