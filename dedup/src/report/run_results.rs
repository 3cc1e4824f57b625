//! The results of a run, and their publication.

use std::path::Path;

use simstore::{Error, Fingerprint, Result, Store, each_width};
use simstore_corpus::spill::Rows;
use simstore_corpus::{Observer, Stage};
use simstore_io::numbers::format_count_of;
use simstore_io::output::{CompleteOutput, StagedOutput};
use simstore_text::{DocumentComparer, Profile, SimilarSettings};

use crate::adding::similar_writer::IntoSimilar;
use crate::adding::{commit, suffix};
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::reread::Reread;
use crate::pipeline::clusters::ClusterCursor;
use crate::pipeline::stages::PipelineResult;
use crate::reference::ReferenceStore;
use crate::rows::SignatureRow;
use crate::workspace::Workspace;

/// Results of a run.
pub(crate) struct Job {
    pub(crate) resolved: Resolved,
    pub(crate) corpus: Corpus,
    pub(crate) outcome: PipelineResult,
    pub(crate) workspace: Workspace,
    /// The addition to the first reference store, if documents are added.
    pub(crate) added_to: Option<AddedTo>,
}

/// The addition of kept documents to a store.
pub(crate) struct AddedTo {
    /// Distinguishes the run from other runs.
    run: String,
    /// Settings and profile of the store, if it is a store of similar documents.
    similar: Option<(SimilarSettings, Profile)>,
    /// Sketches of all documents, for a store of similar documents.
    sketches: Option<Rows<SignatureRow>>,
}

impl AddedTo {
    pub(crate) fn new(resolved: &Resolved, run: String, sketches: Option<Rows<SignatureRow>>) -> AddedTo {
        let similar = resolved.added_to_similar.zip(resolved.default_text_profile.clone());
        AddedTo { run, sketches: sketches.filter(|_| similar.is_some()), similar }
    }

    pub(crate) fn settings(&self) -> Option<SimilarSettings> {
        self.similar.as_ref().map(|&(settings, _)| settings)
    }
}

impl Job {
    /// The stores that were compared with.
    pub(crate) fn stores(&self) -> &[ReferenceStore] {
        &self.resolved.references.stores
    }

    /// Whether the representatives of clusters are removed, too.
    pub(crate) fn keeps_none(&self) -> bool {
        self.resolved.keeps_none()
    }

    /// Whether stores were named, also if the first one is missing and is made by this run: its tables have the columns of later runs.
    pub(crate) fn has_stores(&self) -> bool {
        !self.stores().is_empty()
    }

    /// The path of a store, if several were named.
    pub(crate) fn store(&self, store: usize) -> Option<&Path> {
        if self.stores().len() > 1 { Some(self.stores().get(store)?.path()) } else { None }
    }

    /// How many of the documents that are kept have a fingerprint.
    pub(crate) fn to_add(&self) -> u64 {
        // A removed document is near another one, so it has a fingerprint.
        (self.corpus.len() - self.corpus.empty - self.outcome.clusters.removed(self.keeps_none())) as u64
    }

    /// Clusters of documents, asked for in order.
    pub(crate) fn clustered(&self) -> Result<ClusterCursor<'_>> {
        ClusterCursor::new(&self.outcome.clusters, self.keeps_none())
    }

    /// Checks that the inputs have not changed, and that the store can take the names of the kept documents.
    pub(crate) fn check_written(&self, observer: &dyn Observer) -> Result<()> {
        self.resolved.check_unchanged()?;
        match self.resolved.references.stores.first().zip(self.added_to.as_ref()) {
            Some((store, added_to)) => {
                store.check_names(&self.corpus, self.clustered()?, added_to.similar.is_some(), observer)
            }
            None => Ok(()),
        }
    }

    /// Gives the written files their names, and adds the kept documents to the store, in one step.
    pub(crate) fn publish(
        &mut self,
        mut complete: Vec<CompleteOutput>,
        observer: &dyn Observer,
    ) -> Result<()> {
        Stage::new(observer, "files").add(0)?;
        match self.resolved.references.stores.first().zip(self.added_to.as_ref()) {
            None => complete.into_iter().try_for_each(CompleteOutput::publish)?,
            Some((reference, added_to)) => self.add(reference, added_to, &mut complete)?,
        }
        // Other processes may write to the store from here on.
        self.resolved.references.stores.iter_mut().for_each(|reference| reference.store = None);
        Ok(())
    }

    fn add(
        &self,
        reference: &ReferenceStore,
        added_to: &AddedTo,
        complete: &mut [CompleteOutput],
    ) -> Result<()> {
        let added = self.to_add();
        let distance = match self.resolved.criterion {
            Criterion::Distance(distance) => Some(distance),
            Criterion::Similarity(_) => None,
        };
        let (width, budget) = (self.corpus.width(), self.workspace.budget);
        // Only the user can know the profile of fingerprints.
        let profile =
            self.resolved.documents().map(|_| self.resolved.profile.to_string()).unwrap_or_default();
        let made = reference.open_store(distance, added_to.settings(), &profile, width, budget)?;
        let store = reference.to_add_to(made.as_ref());
        let store = store.ok_or_else(|| Error::Bug("no store to add to".to_owned()))?;
        let aside = each_width!(store, store => self.add_to(store, reference, added_to, added, complete))?;
        let path = reference.path().display();
        for (at, file) in aside.iter().enumerate() {
            file.publish().map_err(|error| {
                Error::Refused(format!(
                    "{error}; {} added to {path} nevertheless, but {} still a hidden name: run this command again to complete the \
                     outputs",
                    were(added, "document"),
                    has(aside.len() - at)
                ))
            })?;
        }
        // Without waiting for due merges, many short runs would never merge.
        store.wait_for_background().map_err(|error| match error {
            Error::Cancelled => Error::Cancelled,
            error => Error::Refused(format!(
                "{error}; {} added to {path} nevertheless, and all output files are complete; only the merge of segments is left to the \
                 next write to the store",
                were(added, "document")
            )),
        })
    }

    /// Sets the files aside and commits the kept documents. Returns the files.
    fn add_to<F: Fingerprint>(
        &self,
        store: &Store<F>,
        reference: &ReferenceStore,
        added_to: &AddedTo,
        added: u64,
        complete: &mut [CompleteOutput],
    ) -> Result<Vec<StagedOutput>> {
        let stored = match &added_to.similar {
            Some((settings, profile)) => Some(self.stored_texts(*settings, profile, store)?),
            None => None,
        };
        let similar = match &stored {
            Some(stored) => Some(self.similar_writer(added_to, stored)?),
            None => None,
        };
        let load = reference.load(store, &self.corpus, self.clustered()?, similar)?;
        let suffix = suffix(&added_to.run);
        let aside: Vec<Option<StagedOutput>> =
            complete.iter_mut().map(|output| output.stage(&suffix)).collect::<Result<_>>()?;
        let aside: Vec<StagedOutput> = aside.into_iter().flatten().collect();
        // From here on the store alone decides whether the files get their names.
        complete.iter_mut().for_each(CompleteOutput::keep);
        commit(load, &added_to.run, added, &aside)?;
        Ok(aside)
    }

    /// Packer for the texts of the store. If the store has no dictionary, one is trained on the first texts.
    fn stored_texts<F: Fingerprint>(
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
                // Malformed documents were reported before.
                let found = documents
                    .filter_map(|document| Some(DocumentComparer::truncate_sample(document.ok()?.text)));
                texts.extend(found.take(DocumentComparer::DICTIONARY_SAMPLES));
            }
            stored.build_dictionary_from(store, &texts)?;
        }
        Ok(stored)
    }

    /// Writer of documents to a store of similar documents.
    fn similar_writer<'a>(
        &'a self,
        added_to: &'a AddedTo,
        stored: &'a DocumentComparer,
    ) -> Result<IntoSimilar<'a>> {
        let has_texts = added_to.settings().is_some_and(|settings| settings.has_texts());
        let inputs = self.resolved.documents().filter(|_| has_texts);
        let texts =
            inputs.map(|inputs| (Reread::new(&self.corpus, inputs, &self.workspace), inputs.options()));
        let sketches = added_to.sketches.as_ref();
        let sketches =
            sketches.ok_or_else(|| Error::Bug("documents without sketches are added".to_owned()))?;
        IntoSimilar::new(sketches, texts, stored, &self.workspace)
    }
}

/// `1 document was`, `2 documents were`.
fn were(count: u64, what: &str) -> String {
    format!("{} {}", format_count_of(count, what), if count == 1 { "was" } else { "were" })
}

/// `1 output file has`, `2 output files have`.
fn has(files: usize) -> String {
    format!("{} {}", format_count_of(files as u64, "output file"), if files == 1 { "has" } else { "have" })
}
