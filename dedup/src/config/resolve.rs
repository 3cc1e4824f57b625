//! Resolution of a configuration: all decisions of a run, and all refusals of options that contradict each other, the inputs or the
//! stores.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use simstore::any::Width;
use simstore::error::excerpt;
use simstore::store::{is_store, stored_bits};
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_corpus::spill::{MemoryBudget, check_memory};
use simstore_corpus::{Diagnostic, InputKind, Inputs, Observer, default_text_profile_for_files};
use simstore_io::output::resolve_path;
use simstore_text::{MinHasher, Profile, Resources, SimilarSettings};

use crate::adding::last_run::LastRun;
use crate::config::band_choice;
use crate::config::criterion::{
    ComparisonConfig, Criterion, DistanceConfig, SimilarityConfig, VerifyConfig, bad, given_resources,
};
use crate::config::{ClusterBy, DedupConfig};
use crate::corpus::file_list::FileList;
use crate::corpus::keep_rule::Keep;
use crate::reference::References;
use crate::report::outputs::Outputs;

/// Default least similarity.
pub(crate) const SIMILARITY: f64 = 0.8;
/// Default greatest distance, in bits.
const DISTANCE: u32 = 3;
/// Default recall: the least probability of finding a pair of exactly the requested similarity.
const RECALL: f64 = 0.95;

/// A configuration without defaults, for certain inputs, with the opened stores and the list of input files.
pub(crate) struct Resolved {
    pub(crate) kind: InputKind,
    /// Width of the fingerprints.
    pub(crate) width: Width,
    /// The inputs, with the field that the `keep` rule compares, within the memory for reading.
    pub(crate) inputs: Inputs,
    /// State of the input files; `None` for fingerprints.
    pub(crate) file_list: Option<FileList>,
    /// The stores to compare with.
    pub(crate) references: References,
    /// The last run that added to the first store.
    pub(crate) last_run: LastRun,
    pub(crate) criterion: Criterion,
    /// Least similarity of the texts of near fingerprints, if these are verified.
    pub(crate) verify: Option<f64>,
    pub(crate) recall: f64,
    pub(crate) cluster_by: ClusterBy,
    pub(crate) keep: Keep,
    /// Profile of fingerprints or sketches.
    pub(crate) profile: Profile,
    /// Makes the sketches of texts, if these are compared by similarity.
    pub(crate) sketcher: Option<MinHasher>,
    /// Profile for comparing texts; `None` if only fingerprints are compared.
    pub(crate) default_text_profile: Option<Profile>,
    /// Settings of the store of similar documents that documents are added to, if any.
    pub(crate) added_to_similar: Option<SimilarSettings>,
    /// Whether only equal texts are duplicates.
    pub(crate) is_exact: bool,
    /// Whether the inputs are read a second time, to compare texts or to write documents.
    pub(crate) reads_twice: bool,
}

impl Resolved {
    /// The inputs, if they are documents.
    pub(crate) fn documents(&self) -> Option<&Inputs> {
        (self.kind == InputKind::Documents).then_some(&self.inputs)
    }

    /// Checks that input files that are read twice have not changed since the run began.
    ///
    /// # Errors
    /// [`Error::Refused`] if one has changed.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        match &self.file_list {
            Some(file_list) if self.reads_twice => file_list.check_unchanged(&self.inputs),
            _ => Ok(()),
        }
    }

    pub(crate) fn keeps_none(&self) -> bool {
        self.keep == Keep::None
    }
}

impl DedupConfig {
    /// Decides what a run on these inputs does. Stores are opened, the first of them for writing if a run with `outputs` adds
    /// documents; then the files of an interrupted run get their names. Without `outputs`, nothing is written, as in an estimate.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if options contradict each other or the inputs, [`Error::Refused`] if they contradict the stores.
    pub(crate) fn resolve(
        &self,
        inputs: &Inputs,
        outputs: Option<&Outputs>,
        observer: &dyn Observer,
    ) -> Result<Resolved> {
        let width = self.width()?;
        outputs.map_or(Ok(()), Outputs::check)?;
        self.check()?;
        let kind = inputs.kind()?;
        self.check_kind(kind)?;
        let budget = MemoryBudget::new(self.memory);
        let inputs = inputs.with_extra_field(self.keep.field()).with_memory_limit(budget.reading_limit());
        if inputs.is_in_memory() {
            self.check_in_memory(kind, outputs)?;
        }
        let adds = self.add.is_some() && outputs.is_some();
        let references = References::open(&self.against, width, adds, budget, observer)?;
        self.check_profile(kind, &references)?;
        // Before the inputs are listed: the files of an interrupted run may be among them.
        let last_run = LastRun::finished(references.stores.first().filter(|_| adds), observer)?;
        let criterion = self.criterion(kind, width, &references, observer)?;
        let file_list = match kind {
            InputKind::Documents => Some(FileList::read(&inputs)?),
            InputKind::Fingerprints => None,
        };
        outputs
            .map_or(Ok(()), |outputs| check_outputs(outputs, &inputs, file_list.as_ref(), adds, observer))?;
        let added_to_similar = self.added_to_similar(criterion, &references)?;
        let default_text_profile =
            self.default_text_profile(criterion, &references, file_list.as_ref(), observer)?;
        let sketcher = match criterion {
            Criterion::Similarity(_) => default_text_profile.clone().map(MinHasher::new),
            Criterion::Distance(_) => None,
        };
        let profile = match (kind, &sketcher) {
            (_, Some(sketcher)) => sketcher.profile().clone(),
            (InputKind::Documents, None) => self.profile_of_fingerprints(&references)?,
            (InputKind::Fingerprints, None) => Profile::default(),
        };
        Ok(Resolved {
            kind,
            width,
            inputs,
            file_list,
            references,
            last_run,
            criterion,
            verify: self.compare.verify().map(|verify| verify.min_similarity),
            recall: self.recall(),
            cluster_by: self.cluster_by(criterion),
            keep: self.keep.clone(),
            profile,
            sketcher,
            reads_twice: default_text_profile.is_some() || outputs.is_some_and(Outputs::write_documents),
            default_text_profile,
            added_to_similar,
            is_exact: self.compare.is_exact(),
        })
    }

    /// Width of the fingerprints: as the option `bits` or the stores say, else 64 bits.
    ///
    /// # Errors
    /// [`Error::Refused`] if a store is missing, or if stores have different widths.
    pub(crate) fn width(&self) -> Result<Width> {
        let mut stored: Option<(u32, &Path)> = None;
        for (at, store) in self.against.iter().enumerate() {
            if !is_store(store) {
                // The first store may be missing if documents are added: it is created then.
                if at == 0 && self.add.is_some() {
                    continue;
                }
                return Err(Error::Refused(format!("{}: no such store", store.display())));
            }
            let bits = stored_bits(store)?;
            match stored {
                Some((other, first)) if other != bits => {
                    return Err(Error::Refused(format!(
                        "{}: has {bits}-bit fingerprints, but {} has {other}-bit fingerprints: use stores of one width",
                        store.display(),
                        first.display()
                    )));
                }
                _ => stored = Some((bits, store)),
            }
        }
        let requested = self.compare.of_distance().and_then(|distance| distance.bits);
        Width::from_bits(requested.or(stored.map(|(bits, _)| bits)).unwrap_or(u64::BITS))
    }

    /// The configuration of [`sample_pairs`](crate::sample_pairs), and the threshold of this configuration. `lowest` computes the lowest
    /// similarity to search for from threshold and recall.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the options compare fingerprints or stores, or keep none of the duplicates.
    pub(crate) fn for_pair_sample(
        &self,
        inputs: &Inputs,
        lowest: impl FnOnce(f64, f64) -> Result<f64>,
    ) -> Result<(DedupConfig, f64)> {
        if inputs.kind()? == InputKind::Fingerprints {
            return bad("option `sample_pairs` needs documents, but the inputs are fingerprints");
        }
        let similar = match &self.compare {
            ComparisonConfig::Default => SimilarityConfig::default(),
            ComparisonConfig::Similarity(similar) => similar.clone(),
            ComparisonConfig::Distance(_) => {
                return bad(
                    "option `sample_pairs` compares texts: leave out option `distance` and other fingerprint options",
                );
            }
        };
        if !self.against.is_empty() || self.resume.is_some() {
            return bad("option `sample_pairs` does not work with options `against` and `resume`");
        }
        if self.keep == Keep::None {
            return bad("option `sample_pairs` needs preferred documents: leave out `keep` none");
        }
        self.check()?;
        let threshold = similar.min_similarity.unwrap_or(SIMILARITY);
        let least = Some(lowest(threshold, self.recall())?);
        let compare = ComparisonConfig::Similarity(SimilarityConfig { min_similarity: least, ..similar });
        Ok((DedupConfig { compare, pairs: true, ..self.clone() }, threshold))
    }

    /// Refuses options that are invalid for every input.
    pub(crate) fn check(&self) -> Result<()> {
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
        if let Some(store) = self.repeated_store() {
            return bad(format!("{}: given as two stores", store.display()));
        }
        if self.add.is_some() && self.against.is_empty() {
            return bad("option `add` needs option `against`");
        }
        Ok(())
    }

    /// A store that an earlier path already names.
    fn repeated_store(&self) -> Option<&PathBuf> {
        let place = |store: &PathBuf| store.canonicalize().unwrap_or_else(|_| resolve_path(store));
        let mut seen = BTreeSet::new();
        self.against.iter().find(|store| !seen.insert(place(store)))
    }

    /// Refuses options that do not apply to this kind of input.
    fn check_kind(&self, kind: InputKind) -> Result<()> {
        if kind == InputKind::Documents {
            return Ok(());
        }
        let option = match &self.compare {
            ComparisonConfig::Similarity(SimilarityConfig { min_similarity: Some(_), .. }) => Some("similar"),
            ComparisonConfig::Similarity(SimilarityConfig { recall: Some(_), .. }) => Some("recall"),
            ComparisonConfig::Similarity(_) => Some("verify_profile"),
            ComparisonConfig::Distance(DistanceConfig { profile: Some(_), .. }) => Some("profile"),
            ComparisonConfig::Distance(DistanceConfig { verify: Some(_), .. }) => Some("verify_text"),
            ComparisonConfig::Distance(_) | ComparisonConfig::Default => None,
        };
        let others = [
            (self.resume.is_some(), "resume"),
            (self.keep == Keep::Longest || self.keep.field().is_some(), "keep"),
        ];
        match option.or(first_set(others)).or_else(|| given_resources(&self.resources).next()) {
            Some(option) => {
                bad(format!("option `{option}` needs documents, but the inputs are fingerprints"))
            }
            None => Ok(()),
        }
    }

    /// Refuses options that need input files, for inputs in memory.
    fn check_in_memory(&self, kind: InputKind, outputs: Option<&Outputs>) -> Result<()> {
        let writes_documents = kind == InputKind::Documents && outputs.is_some_and(Outputs::write_documents);
        match first_set([(self.resume.is_some(), "resume"), (writes_documents, "output")]) {
            Some(option) => bad(format!("option `{option}` needs files as inputs")),
            None => Ok(()),
        }
    }

    /// Refuses a profile of fingerprints that is not the profile of the stores.
    fn check_profile(&self, kind: InputKind, references: &References) -> Result<()> {
        let is_named = self.compare.of_distance().is_some_and(|distance| distance.profile.is_some());
        if is_named && !references.are_similar() && kind == InputKind::Documents {
            self.profile_of_fingerprints(references)?;
        }
        Ok(())
    }

    fn recall(&self) -> f64 {
        self.compare.similarity_config().and_then(|similar| similar.recall).unwrap_or(RECALL)
    }

    fn cluster_by(&self, criterion: Criterion) -> ClusterBy {
        self.cluster_by.unwrap_or(match criterion {
            Criterion::Similarity(_) if self.keep != Keep::None => ClusterBy::Stars,
            _ => ClusterBy::Components,
        })
    }

    /// The criterion for inputs of this kind, and for the stores, if any. Warns if an option such as `bits` has selected
    /// fingerprints, although option `distance` is missing.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if inputs or stores cannot be compared as the options say, or if a store would change the default
    /// criterion.
    pub(crate) fn criterion(
        &self,
        kind: InputKind,
        width: Width,
        references: &References,
        observer: &dyn Observer,
    ) -> Result<Criterion> {
        let criterion = if references.are_similar() {
            self.criterion_of_similar_stores(kind, references)?
        } else {
            self.criterion_of_fingerprints_or_texts(kind, references, observer)?
        };
        match criterion {
            Criterion::Distance(distance) => {
                let most = each_width!(width, type F => F::MAX_DISTANCE);
                if distance > most {
                    let bits = width.bits();
                    return bad(format!(
                        "distance {distance} is too large: at most {most} for {bits}-bit fingerprints"
                    ));
                }
                Ok(criterion)
            }
            // An impossible similarity or recall is refused before any input is read.
            Criterion::Similarity(least) => band_choice::choose(least, self.recall(), 0).map(|_| criterion),
        }
    }

    fn criterion_of_fingerprints_or_texts(
        &self,
        kind: InputKind,
        references: &References,
        observer: &dyn Observer,
    ) -> Result<Criterion> {
        // Every store can answer within the smallest distance of all stores.
        let distance = references.snapshots().map(|store| store.distance()).min().unwrap_or(DISTANCE);
        // A store that does not exist yet is created for the criterion.
        let existing = references.stores.iter().find(|store| store.exists());
        match (&self.compare, existing) {
            (ComparisonConfig::Similarity(SimilarityConfig { min_similarity: Some(_), .. }), Some(_)) => bad(
                "option `similar` compares texts, but the store of option `against` has only fingerprints: use a store created by \
                 `simstore add` with option `similar`, or use option `distance`",
            ),
            (ComparisonConfig::Distance(DistanceConfig { max_distance: Some(most), .. }), _) => {
                Ok(Criterion::Distance(*most))
            }
            _ if kind == InputKind::Fingerprints => Ok(Criterion::Distance(distance)),
            (_, Some(existing)) => bad(format!(
                "{}: this store has fingerprints and no text similarities: give option `distance` ({distance} finds copies with very \
                 small edits), or use a store created by `simstore add` with option `similar`",
                existing.path().display()
            )),
            (ComparisonConfig::Distance(asked), None) => {
                if let Some(option) = self.option_of_fingerprints(asked) {
                    observer.diagnostic(&Diagnostic::Warning(&format!(
                        "option `{option}` compares fingerprints, within {DISTANCE} bits by default (option `distance` changes this); \
                         leave it out to compare texts by similarity"
                    )));
                }
                Ok(Criterion::Distance(DISTANCE))
            }
            (ComparisonConfig::Similarity(similar), None) => {
                Ok(Criterion::Similarity(similar.min_similarity.unwrap_or(SIMILARITY)))
            }
            (ComparisonConfig::Default, None) => Ok(Criterion::Similarity(SIMILARITY)),
        }
    }

    /// An option that selects fingerprints without a distance.
    fn option_of_fingerprints(&self, distance: &DistanceConfig) -> Option<&'static str> {
        let options = [
            (distance.bits.is_some(), "bits"),
            (distance.profile.is_some(), "profile"),
            (distance.verify.is_some(), "verify_text"),
        ];
        first_set(options).or_else(|| given_resources(&self.resources).next())
    }

    /// The criterion for stores of similar documents: the similarity of the stores, or a greater one.
    fn criterion_of_similar_stores(&self, kind: InputKind, references: &References) -> Result<Criterion> {
        let default = (&SimilarityConfig::default(), &DistanceConfig::default());
        let (similar, distance) = match &self.compare {
            ComparisonConfig::Default => default,
            ComparisonConfig::Similarity(similar) => (similar, default.1),
            ComparisonConfig::Distance(distance) => (default.0, distance),
        };
        let other_profile = match similar.profile.as_ref().or(distance.profile.as_ref()) {
            Some(name) => {
                let profile = Profile::with_resources(name, &self.resources)?.to_string();
                let is_same = references.profile.as_ref() == Some(&profile);
                (!is_same).then(|| format!("profile `{}`", excerpt(name)))
            }
            None => None,
        };
        let of_distance = first_set([
            (kind == InputKind::Fingerprints, "fingerprints in the input"),
            (distance.max_distance.is_some(), "option `distance`"),
            (distance.bits.is_some(), "option `bits`"),
        ]);
        if let Some(what) = of_distance.map(str::to_owned).or(other_profile) {
            return bad(format!(
                "{what}: not possible with a store of similar documents, which compares texts by their similarity"
            ));
        }
        self.check_keep_with_similar_stores()?;
        let similarities = references.settings.iter().map(SimilarSettings::min_similarity);
        let stored = similarities.max_by(f64::total_cmp).unwrap_or(SIMILARITY);
        let least = similar.min_similarity.unwrap_or(stored);
        if least < stored {
            return bad(format!(
                "option `similar` is {least}, but the store was created for a similarity of at least {stored}"
            ));
        }
        let recall = references.settings.iter().map(SimilarSettings::recall).min_by(f64::total_cmp);
        match (similar.recall, recall) {
            (Some(asked), Some(recall)) if asked > recall => {
                bad(format!("option `recall` is {asked}, but the store was created with recall {recall}"))
            }
            _ => Ok(Criterion::Similarity(least)),
        }
    }

    /// Refuses a `keep` rule that stores of similar documents do not support.
    fn check_keep_with_similar_stores(&self) -> Result<()> {
        if self.keep == Keep::None {
            return bad(
                "option `keep` none does not work with a store of similar documents: run with option `keep` none and option `output` \
                 first, then compare this output with the store",
            );
        }
        Ok(())
    }

    /// Settings of the store of similar documents that documents are added to, which may be new. `None` if no documents are added, or
    /// if they are added to a store of fingerprints.
    fn added_to_similar(
        &self,
        criterion: Criterion,
        references: &References,
    ) -> Result<Option<SimilarSettings>> {
        let (Criterion::Similarity(least), Some((first, add))) =
            (criterion, references.stores.first().zip(self.add))
        else {
            return if self.add.is_some_and(|add| add.with_texts) {
                bad("option `with_texts` needs a new store of similar documents, created by option `add`")
            } else {
                Ok(None)
            };
        };
        if first.exists() {
            // `settings` has the existing stores in order, so the first is the store to add to.
            let stored = references.settings.first().copied();
            return match stored.filter(|stored| add.with_texts && !stored.has_texts()) {
                Some(_) => bad(format!(
                    "option `with_texts`: {} was created without texts: leave the option out, or use another store",
                    first.path().display()
                )),
                None => Ok(stored),
            };
        }
        self.check_keep_with_similar_stores()?;
        let made = SimilarSettings::new(least, self.recall())?;
        Ok(Some(if add.with_texts { made.with_texts() } else { made }))
    }

    /// Profile for comparing texts: the profile of the stores, the named one, the profile for code if all files are source code, or
    /// shingles of words. `None` if texts are not compared.
    fn default_text_profile(
        &self,
        criterion: Criterion,
        references: &References,
        file_list: Option<&FileList>,
        observer: &dyn Observer,
    ) -> Result<Option<Profile>> {
        let by_similarity = matches!(criterion, Criterion::Similarity(_));
        if !by_similarity && self.compare.verify().is_none() {
            return Ok(None);
        }
        if let Some(stored) = references.profile.as_deref().filter(|_| references.are_similar()) {
            return profile_with(None, &self.resources, Some(stored)).map(Some);
        }
        let named = match &self.compare {
            ComparisonConfig::Similarity(SimilarityConfig { profile, .. })
            | ComparisonConfig::Distance(DistanceConfig {
                verify: Some(VerifyConfig { profile, .. }), ..
            }) => profile.as_ref(),
            ComparisonConfig::Default | ComparisonConfig::Distance(_) => None,
        };
        Ok(Some(match (named, file_list) {
            (Some(name), _) => Profile::with_resources(name, &self.resources)?,
            (None, Some(files)) => default_text_profile_for_files(files.paths(), "verify_profile", observer),
            (None, None) => Profile::shingles(),
        }))
    }

    /// The profile of fingerprints: the named one, else the profile of the stores, else the default one. Stores of fingerprints
    /// without a profile allow any.
    fn profile_of_fingerprints(&self, references: &References) -> Result<Profile> {
        let named = self.compare.of_distance().and_then(|distance| distance.profile.as_deref());
        profile_with(named, &self.resources, references.profile.as_deref())
    }
}

/// The first option that is set.
fn first_set<const N: usize>(options: [(bool, &'static str); N]) -> Option<&'static str> {
    options.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option)
}

/// Refuses outputs that conflict with the inputs.
fn check_outputs(
    outputs: &Outputs,
    inputs: &Inputs,
    file_list: Option<&FileList>,
    adds: bool,
    observer: &dyn Observer,
) -> Result<()> {
    if inputs.is_in_memory() {
        return outputs.check_with_inputs(std::iter::empty(), None, adds);
    }
    match file_list {
        Some(file_list) => {
            outputs.warn_of_folders(inputs.paths(), observer);
            outputs.check_with_inputs(file_list.paths(), Some(file_list), adds)
        }
        None => {
            let paths = inputs.fingerprint_files()?;
            outputs.check_with_inputs(paths.iter().map(PathBuf::as_path), None, adds)
        }
    }
}

/// The profile of this name, else the profile of the store, else the default one. It must equal the profile of the store, if
/// any.
///
/// # Errors
/// [`Error::BadArgument`] for an unknown profile, [`Error::Refused`] if the store has another one.
pub fn profile_with(name: Option<&str>, resources: &Resources, stored: Option<&str>) -> Result<Profile> {
    let stored = stored.filter(|stored| !stored.is_empty());
    let wanted = name.or(stored).map_or_else(|| Profile::default().to_string(), str::to_owned);
    let profile = Profile::with_resources(&wanted, resources).map_err(|error| match error {
        // A profile named by the store, not by the caller, is no bad argument.
        Error::BadArgument(reason) if name.is_none() && stored.is_some() => {
            Error::Refused(format!("profile of the store: {reason}"))
        }
        error => error,
    })?;
    match stored {
        Some(stored) if stored != profile.to_string() => Err(Error::Refused(format!(
            "the store has profile {stored}, not {profile}: leave out option `profile`, or create another store"
        ))),
        _ => Ok(profile),
    }
}
