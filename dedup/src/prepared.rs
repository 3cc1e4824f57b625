//! Preparation of a run before any document is read: the question, the stores, the files.

use std::path::PathBuf;

use simstore::{Error, Fingerprint, Result};
use simstore_text::SimilarSettings;

use super::against::{self, Against};
use super::documents::Listing;
use super::files::Files;
use super::last_run::LastRun;
use super::options::Options;
use super::outputs::Outputs;
use super::profiles::Profiles;
use super::question::Question;
use super::room::Room;
use simstore_corpus::spill::{Budget, Temporary};
use simstore_corpus::{InputKind, Inputs, Watch};

/// A prepared run.
pub(super) struct Prepared<F: Fingerprint> {
    pub(super) kind: InputKind,
    /// Inputs, including the field that the `keep` rule compares.
    pub(super) inputs: Inputs,
    /// Options, including the profile that fits the input files.
    pub(super) options: Options,
    pub(super) question: Question,
    /// Stores to compare with, and the settings of the stores of similar documents among them.
    pub(super) stores: Vec<Against<F>>,
    pub(super) settings: Vec<SimilarSettings>,
    /// The last run that added to the first store.
    pub(super) last: LastRun,
    /// State of the input files at the start; `None` for fingerprints.
    pub(super) listing: Option<Listing>,
    /// Whether documents are read twice.
    pub(super) twice: bool,
    /// Settings of the store of similar documents that documents are added to, if any.
    pub(super) into_similar: Option<SimilarSettings>,
    pub(super) profiles: Profiles,
    pub(super) room: Room,
    /// The open output files.
    pub(super) outputs: Outputs,
}

impl<F: Fingerprint> Prepared<F> {
    /// Checks the options, then opens stores and outputs.
    pub(super) fn new(inputs: &Inputs, options: &Options, files: Files, watch: &dyn Watch) -> Result<Self> {
        files.check()?;
        options.check()?;
        let kind = inputs.kind()?;
        options.check_with(kind)?;
        let budget = Budget::new(options.memory);
        let inputs = inputs.with_extra_field(options.keep.field()).within(budget.of_reading());
        if inputs.are_given() {
            check_given(kind, options, &files)?;
        }
        let adds = options.add.is_some();
        let stores = against::open_all(&options.against, adds, budget, watch)?;
        let stored = against::profile_of(&stores)?;
        let settings = against::settings_of(&stores)?;
        let named = options.compare.of_distance().and_then(|distance| distance.profile.as_ref());
        if named.is_some() && settings.is_empty() && kind == InputKind::Documents {
            // The profile must be the profile of the store, for every question.
            options.profile_with(stored)?;
        }
        let last = LastRun::finished(stores.first().filter(|_| adds), watch)?;
        let question = options.ask(kind, &stores, &settings)?.told(watch);
        let listing = match kind {
            InputKind::Documents => Some(Listing::read(&inputs)?),
            InputKind::Fingerprints => None,
        };
        let options = match listing.as_ref().filter(|_| settings.is_empty()) {
            Some(listing) => options.of_files(listing.paths(), question, watch),
            None => options.clone(),
        };
        check_files(&inputs, listing.as_ref(), &files, adds, watch)?;
        let into_similar = options.added_to_similar(question, &stores, &settings)?;
        // Documents are also read again to store their texts; `compares_texts` is true in that case.
        let twice = options.compares_texts(question) || files.write_documents();
        let temporary = Temporary::new(options.temporary.as_deref(), &files.unfinished, watch)?;
        // Outputs are opened before the work starts, so that a missing folder is reported at once.
        let outputs = Outputs::create(files)?;
        if twice && kind == InputKind::Documents {
            // Pipes and iterators can be read only once, so their content is put aside for the second reading.
            inputs.put_aside_in(temporary.parent()).map_err(|error| temporary.explain(error))?;
        }
        let profiles = Profiles::new(&options, kind, question, stored, !settings.is_empty())?;
        let parts = options.resume.as_ref().map(|resume| resume.folder.clone());
        let room = Room { budget, temporary, parts };
        Ok(Prepared {
            kind,
            inputs,
            options,
            question,
            stores,
            settings,
            last,
            listing,
            twice,
            into_similar,
            profiles,
            room,
            outputs,
        })
    }
}

/// Refuses options that need input files, for inputs that the caller hands over.
pub(super) fn check_given(kind: InputKind, options: &Options, files: &Files) -> Result<()> {
    let writes_documents = kind == InputKind::Documents && files.write_documents();
    let of_files = [(options.resume.is_some(), "resume"), (writes_documents, "output")];
    match of_files.iter().find(|(is_set, _)| *is_set) {
        Some((_, option)) => Err(Error::BadArgument(format!("option `{option}` needs files as inputs"))),
        None => Ok(()),
    }
}

/// Refuses outputs that conflict with the inputs.
fn check_files(
    inputs: &Inputs,
    listing: Option<&Listing>,
    files: &Files,
    add: bool,
    watch: &dyn Watch,
) -> Result<()> {
    if inputs.are_given() {
        return files.check_with_inputs(std::iter::empty(), None, add);
    }
    match listing {
        Some(listing) => {
            files.warn_of_folders(inputs.paths(), watch);
            files.check_with_inputs(listing.paths(), Some(listing), add)
        }
        None => {
            let paths = inputs.files_of_fingerprints()?;
            files.check_with_inputs(paths.iter().map(PathBuf::as_path), None, add)
        }
    }
}
