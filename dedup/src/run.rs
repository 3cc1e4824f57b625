//! One run, from reading the inputs to writing the outputs and adding to a store, for fingerprints of one width.

use std::path::Path;

use simstore::error::{did_you_mean, excerpt};
use simstore::{Error, Fingerprint, Result, Store};
use simstore_text::{Profile, SimilarSettings, StoredTexts};

use super::against::{self, Against};
use super::comparing::Comparing;
use super::documents::{Corpus, Keep, Listing, check_unchanged};
use super::files::Files;
use super::into_similar::{IntoSimilar, TextsInOrder};
use super::kept::Keeping;
use super::last_run::run_of;
use super::model::SketchRow;
use super::options::Options;
use super::outcome::Outcome;
use super::outputs::Outputs;
use super::prepared::Prepared;
use super::profiles::Profiles;
use super::question::Question;
use super::room::Room;
use super::stages::sketch::Reading;
use super::tables::Results;
use super::written::Documents;
use simstore_corpus::Step;
use simstore_corpus::spill::{Rows, RowsWriter};
use simstore_corpus::{Counts, InputKind, Inputs, Notice, Watch};
use simstore_io::formats::listed;
use simstore_io::numbers::count_of;
use simstore_io::output::{Complete, SetAside};

/// Results of a run that are not written or added yet.
pub(super) struct Job<F: Fingerprint> {
    /// The documents, to be read again.
    pub(super) inputs: Option<Inputs>,
    /// State of the input files when the run began, if they are read again.
    listing: Option<Listing>,
    pub(super) kind: InputKind,
    /// The name of the profile, where that is known.
    profile: String,
    pub(super) question: Question,
    pub(super) corpus: Corpus<F>,
    pub(super) counts: Counts,
    pub(super) outcome: Outcome<F>,
    is_dropped: bool,
    pub(super) room: Room,
    /// The sketches of all documents, if what is kept goes into a store of similar ones.
    sketches: Option<Rows<SketchRow>>,
    /// Reference stores, in the order of the option.
    pub(super) against: Vec<Against<F>>,
    /// Whether kept documents are added to the first of them.
    pub(super) add: bool,
    /// The store of similar documents that is added to, if it is one.
    into_similar: Option<ToSimilar>,
    /// Tells the run from others, where it adds.
    run: String,
    /// The open files, until they are written.
    outputs: Option<Outputs>,
    /// The files when they are written.
    complete: Option<Vec<Complete>>,
}

/// Of a run that was finished before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedBefore {
    /// Counts of the documents that this run has read.
    pub counts: Counts,
    /// Number of documents that the earlier run has added.
    pub added: u64,
}

/// How what is kept goes into a store of similar documents.
struct ToSimilar {
    settings: SimilarSettings,
    profile: Profile,
}

/// Reads all inputs and finds duplicates. Neither outputs nor stores change yet.
pub(super) fn find<F: Fingerprint>(
    inputs: &Inputs,
    options: &Options,
    files: Files,
    watch: &dyn Watch,
) -> Result<std::result::Result<Job<F>, AddedBefore>> {
    let prepared = Prepared::<F>::new(inputs, options, files, watch)?;
    let (mut corpus, counts) = read(&prepared, watch)?;
    if counts.read == 0 && !prepared.outputs.files().allow_empty && !inputs.are_given() {
        return Err(nothing_read(&counts));
    }
    let sketches = corpus.take_sketches()?;
    let Prepared { kind, options, question, stores, into_similar, room, outputs, .. } = prepared;
    let (options, Profiles { profile, of_texts, .. }) = (&options, prepared.profiles);
    let run = run_of(options, &corpus, question, &profile)?;
    if let Some(added) = prepared.last.has_added(&run, options, outputs.files())? {
        return Ok(Err(AddedBefore { counts, added }));
    }
    let inputs = (kind == InputKind::Documents).then_some(prepared.inputs);
    let listing = prepared.listing.filter(|_| prepared.twice);
    let stored_texts = match &of_texts {
        Some(profile) => against::texts_of(&stores, &prepared.settings, profile)?,
        None => Vec::new(),
    };
    let comparing = Comparing {
        options,
        question,
        pairs: options.pairs || outputs.files().write_pairs(),
        corpus: &corpus,
        sketches: sketches.as_ref(),
        inputs: inputs.as_ref(),
        listing: listing.as_ref(),
        profile_of_texts: of_texts.as_ref(),
        stores: &stores,
        texts: stored_texts,
        keeping: options.resume.as_ref().map(|resume| Keeping {
            folder: &resume.folder,
            unfinished: &outputs.files().unfinished,
            watch,
        }),
        room: &room,
        watch,
    };
    let outcome = comparing.run()?;
    Ok(Ok(Job {
        inputs,
        listing,
        kind,
        // Of fingerprints only the user can know how they were made.
        profile: if kind == InputKind::Documents { profile.to_string() } else { String::new() },
        question,
        corpus,
        counts,
        outcome,
        is_dropped: options.keep == Keep::None,
        sketches: sketches.filter(|_| into_similar.is_some()),
        against: stores,
        add: options.add.is_some(),
        into_similar: match (into_similar, of_texts) {
            (Some(settings), Some(profile)) => Some(ToSimilar { settings, profile }),
            _ => None,
        },
        room,
        run,
        outputs: Some(outputs),
        complete: None,
    }))
}

/// Reads all.
fn read<F: Fingerprint>(prepared: &Prepared<F>, watch: &dyn Watch) -> Result<(Corpus<F>, Counts)> {
    let Prepared { kind, inputs, options, profiles, room, outputs, .. } = prepared;
    let Profiles { sketcher, profile, .. } = profiles;
    // As long as documents are in memory, so are their sketches.
    let sketches = sketcher.as_ref().map(|_| RowsWriter::new(room.temporary.clone(), u64::MAX));
    let with_checksums = *kind == InputKind::Documents && (options.add.is_some() || prepared.twice);
    let corpus = Corpus::new(&options.keep, with_checksums, sketches);
    let unfinished = &outputs.files().unfinished;
    let reading = Reading { options, profile, sketcher: sketcher.as_ref(), unfinished, room, watch };
    let read = reading.read(inputs, corpus).map_err(|error| room.temporary.explain(error))?;
    if let Some(field) = options.keep.field() {
        check_field(field, options.keep.takes_numbers(), &read.0, inputs, watch)?;
    }
    Ok(read)
}

impl<F: Fingerprint> Job<F> {
    pub(super) fn results(&self) -> Results<'_, F> {
        Results {
            corpus: &self.corpus,
            outcome: &self.outcome,
            question: self.question,
            is_dropped: self.is_dropped,
            stores: &self.against,
            makes_estimates: self.into_similar.as_ref().is_some_and(|similar| !similar.settings.has_texts()),
            room: &self.room,
        }
    }

    /// Path of a reference store; `None` with a single one.
    pub(super) fn store(&self, store: usize) -> Option<&Path> {
        if self.against.len() > 1 { Some(self.against.get(store)?.path()) } else { None }
    }

    /// Packer for the texts of the store. If the store has no dictionary, one is trained on the first texts.
    fn stored_texts(&self, similar: &ToSimilar, store: &Store<F>) -> Result<StoredTexts> {
        let stored = StoredTexts::new(&store.snapshot(), similar.settings, similar.profile.clone())?;
        if similar.settings.has_texts() && !stored.learn(store)? {
            let mut texts = Vec::new();
            if let Some(inputs) = &self.inputs {
                let documents = inputs.records().map(|record| record?.document(inputs.options()));
                // Malformed documents were reported before.
                let found = documents.filter_map(|document| Some(StoredTexts::sample(document.ok()?.text)));
                texts.extend(found.take(StoredTexts::LEARNT_FROM));
            }
            stored.learn_from(store, &texts)?;
        }
        Ok(stored)
    }

    /// Adder of documents to a store of similar documents.
    fn taker<'a>(&'a self, similar: &'a ToSimilar, stored: &'a StoredTexts) -> Result<IntoSimilar<'a, F>> {
        let inputs = self.inputs.as_ref().filter(|_| similar.settings.has_texts());
        let texts =
            inputs.map_or(TextsInOrder::None, |inputs| TextsInOrder::of(&self.corpus, inputs, &self.room));
        let sketches = self.sketches.as_ref();
        let sketches =
            sketches.ok_or_else(|| Error::Bug("documents without sketches are added".to_owned()))?;
        IntoSimilar::new(sketches, texts, stored, &self.room.temporary)
    }

    /// The store that is added to, if that was asked for.
    fn added_to(&self) -> Option<&Against<F>> {
        self.against.first().filter(|_| self.add)
    }

    /// Writes all files, once. They have not got their names then.
    pub(super) fn write(&mut self, watch: &dyn Watch) -> Result<()> {
        if self.complete.is_some() {
            return Ok(());
        }
        let mut outputs = self
            .outputs
            .take()
            .ok_or_else(|| Error::Refused("the files could not be written before".to_owned()))?;
        let documents = self.inputs.as_ref().map(|inputs| Documents { inputs, room: &self.room, watch });
        let complete = outputs.write(&self.results(), documents.as_ref(), watch)?;
        check_unchanged(self.listing.as_ref(), self.inputs.as_ref())?;
        if let Some(against) = self.added_to() {
            let clustered = self.results().clustered()?;
            against.check_names(&self.corpus, clustered, self.into_similar.is_some(), watch)?;
        }
        self.complete = Some(complete);
        Ok(())
    }

    /// Gives the files their names, and adds what is kept to the store, as one step.
    pub(super) fn finish(mut self, watch: &dyn Watch) -> Result<()> {
        self.write(watch)?;
        let mut complete = self.complete.take().unwrap_or_default();
        Step::new(watch, "files").add(0)?;
        let Some(against) = self.added_to() else {
            return complete.into_iter().try_for_each(Complete::publish);
        };
        let added = self.results().to_add();
        let distance = match self.question {
            Question::Distance(distance) => Some(distance),
            Question::Similarity(_) => None,
        };
        let settings = self.into_similar.as_ref().map(|similar| similar.settings);
        let made = against.open_store(distance, settings, &self.profile, self.room.budget)?;
        let stored = match (&self.into_similar, against.to_add_to(made.as_ref())) {
            (Some(similar), Some(store)) => Some(self.stored_texts(similar, store)?),
            _ => None,
        };
        let similar = match (&self.into_similar, &stored) {
            (Some(similar), Some(stored)) => Some(self.taker(similar, stored)?),
            _ => None,
        };
        let load = against.load(made.as_ref(), &self.corpus, self.results().clustered()?, similar)?;
        let suffix = against::suffix(&self.run);
        let aside: Vec<Option<SetAside>> =
            complete.iter_mut().map(|output| output.set_aside(&suffix)).collect::<Result<_>>()?;
        let aside: Vec<SetAside> = aside.into_iter().flatten().collect();
        // From here on the store alone decides whether the files get their names.
        complete.iter_mut().for_each(Complete::keep);
        if let Some(load) = load {
            against::commit(load, &self.run, added, &aside)?;
        }
        let store = against.path().display();
        for (at, file) in aside.iter().enumerate() {
            file.publish().map_err(|error| {
                Error::Refused(format!(
                    "{error}; {} added to {store} nevertheless, but {} still a hidden name: run this command again to complete the \
                     outputs",
                    were(added, "document"),
                    has(aside.len() - at)
                ))
            })?;
        }
        against.settle(made.as_ref()).map_err(|error| match error {
            Error::Cancelled => Error::Cancelled,
            error => Error::Refused(format!(
                "{error}; {} added to {store} nevertheless, and all output files are complete; only the merge of segments is left to the \
                 next write to the store",
                were(added, "document")
            )),
        })
    }
}

/// The error of a run that has read no document.
fn nothing_read(counts: &Counts) -> Error {
    let skipped = [
        (counts.bad, "invalid document or unreadable file", "invalid documents or unreadable files"),
        (counts.passed_over, "file of another kind", "files of other kinds"),
    ];
    let skipped: String = skipped
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, more)| format!(", {count} {} skipped", if *count == 1 { one } else { more }))
        .collect();
    Error::Refused(format!(
        "no documents were read{skipped}; outputs and stores are unchanged (option `allow_empty` writes empty outputs)"
    ))
}

/// `1 document was`, `2 documents were`.
fn were(count: u64, what: &str) -> String {
    format!("{} {}", count_of(count, what), if count == 1 { "was" } else { "were" })
}

/// `1 output file has`, `2 output files have`.
fn has(files: usize) -> String {
    format!("{} {}", count_of(files as u64, "output file"), if files == 1 { "has" } else { "have" })
}

/// Reports documents that have no value of the field of `keep`; fails if none has one.
fn check_field<F: Fingerprint>(
    field: &str,
    takes_numbers: bool,
    corpus: &Corpus<F>,
    inputs: &Inputs,
    watch: &dyn Watch,
) -> Result<()> {
    let missing = corpus.missing();
    if missing == 0 {
        return Ok(());
    }
    if missing < corpus.len() {
        watch.notice(&Notice::Warning(&format!(
            "{} without {}`{}`: such a document is kept only if all documents of its cluster lack it",
            count_of(missing as u64, "document"),
            if takes_numbers { "a number in " } else { "" },
            excerpt(field)
        )));
        return Ok(());
    }
    // A pipe cannot be read twice.
    let first = match inputs.pipes().next() {
        Some(_) => None,
        None => inputs.records().find_map(Result::ok),
    };
    let there = match first.map(|record| record.field_names()) {
        Some(names) if !names.is_empty() => {
            format!("{}; the first has {}", did_you_mean(field, &names), listed(&names))
        }
        _ => String::new(),
    };
    let wanted = if takes_numbers { "number in a " } else { "" };
    Err(Error::Refused(format!("option `keep`: no document has a {wanted}field `{}`{there}", excerpt(field))))
}
