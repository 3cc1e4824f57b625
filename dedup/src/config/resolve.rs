//! Resolution of a configuration: replaces defaults by values. Refuses options that contradict each other, the
//! inputs or the stores.

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

use crate::config::band_search_plan;
use crate::config::criterion::{
    ComparisonConfig, Criterion, DistanceConfig, SimilarityConfig, VerifyConfig, bad_argument,
    given_resources,
};
use crate::config::{ClusterBy, DedupConfig};
use crate::documents::file_list::FileList;
use crate::documents::keep_rule::KeepRule;
use crate::reference_stores::ReferenceStores;
use crate::report::outputs::Outputs;
use crate::store_writer::last_run::LastRun;

/// Default minimum similarity of near-duplicates.
pub(crate) const DEFAULT_SIMILARITY: f64 = 0.8;
/// Default maximum distance of near-duplicates, in bits.
const DEFAULT_DISTANCE: u32 = 3;
/// Default recall: the least probability of finding a pair whose similarity is exactly the minimum.
const DEFAULT_RECALL: f64 = 0.95;

/// Configuration in which all options have values: those of the user, or the defaults. Also has the opened stores and the list of
/// input files.
pub(crate) struct ResolvedConfig {
    pub(crate) kind: InputKind,
    pub(crate) width: Width,
    /// Inputs, with the options for reading them. These include the memory limit, and the field that the keep rule
    /// compares.
    pub(crate) inputs: Inputs,
    /// List of the input files; `None` if the inputs are fingerprints.
    pub(crate) file_list: Option<FileList>,
    pub(crate) references: ReferenceStores,
    /// Last run that added documents to the first store, if this run adds documents too.
    pub(crate) last_run: LastRun,
    pub(crate) criterion: Criterion,
    /// Least similarity of the texts of documents with near fingerprints; `None` if texts are not verified.
    pub(crate) min_verified_similarity: Option<f64>,
    pub(crate) recall: f64,
    pub(crate) cluster_by: ClusterBy,
    pub(crate) keep: KeepRule,
    /// Profile of the fingerprints or MinHash signatures.
    pub(crate) profile: Profile,
    /// Computes MinHash signatures; `None` if documents are compared by distance.
    pub(crate) min_hasher: Option<MinHasher>,
    /// Profile that turns texts into features to compare them; `None` if only fingerprints are compared.
    pub(crate) text_profile: Option<Profile>,
    /// Settings of the store that documents are added to, if it is a store of similar documents. `None` if no
    /// documents are added, or if the store has only fingerprints.
    pub(crate) addition_settings: Option<SimilarSettings>,
    /// Whether only equal texts are duplicates.
    pub(crate) is_exact: bool,
    /// Whether the inputs are read a second time, to compare texts or to write documents.
    pub(crate) reads_twice: bool,
    /// Whether a report page may be made.
    pub(crate) has_report: bool,
}

impl ResolvedConfig {
    /// Returns the inputs, if they are documents and not fingerprints.
    pub(crate) fn documents(&self) -> Option<&Inputs> {
        (self.kind == InputKind::Documents).then_some(&self.inputs)
    }

    /// Checks that input files have not changed since the run began. Checks nothing if the inputs are read only
    /// once.
    ///
    /// # Errors
    /// [`Error::Refused`] if an input file has changed.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        match &self.file_list {
            Some(file_list) if self.reads_twice => file_list.check_unchanged(&self.inputs),
            _ => Ok(()),
        }
    }

    pub(crate) fn keeps_none(&self) -> bool {
        self.keep == KeepRule::None
    }
}

impl DedupConfig {
    /// Resolves the configuration for inputs and outputs. Opens the stores. If documents are added, opens the
    /// first store for writing, and renames the output files of the last run to their final names if that run was
    /// killed before it did so. Without `outputs`, as for an estimate, nothing is written.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if options contradict each other or the inputs, [`Error::Refused`] if they
    /// contradict the stores.
    pub(crate) fn resolve(
        &self,
        inputs: &Inputs,
        outputs: Option<&Outputs>,
        observer: &dyn Observer,
    ) -> Result<ResolvedConfig> {
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
        let references = ReferenceStores::open(&self.against, width, adds, budget, observer)?;
        self.check_profile(kind, &references)?;
        // This comes before the inputs are listed, because output files of an interrupted run may be among
        // them.
        let last_run = LastRun::complete(references.stores.first().filter(|_| adds), observer)?;
        let criterion = self.criterion(kind, width, &references, observer)?;
        let file_list = match kind {
            InputKind::Documents => Some(FileList::read(&inputs)?),
            InputKind::Fingerprints => None,
        };
        outputs
            .map_or(Ok(()), |outputs| check_outputs(outputs, &inputs, file_list.as_ref(), adds, observer))?;
        let addition_settings = self.addition_settings(criterion, &references)?;
        let text_profile = self.text_profile(criterion, &references, file_list.as_ref(), observer)?;
        let min_hasher = match criterion {
            Criterion::Similarity(_) => text_profile.clone().map(MinHasher::new),
            Criterion::Distance(_) => None,
        };
        let profile = match (kind, &min_hasher) {
            (_, Some(min_hasher)) => min_hasher.profile().clone(),
            (InputKind::Documents, None) => self.fingerprint_profile(&references)?,
            (InputKind::Fingerprints, None) => Profile::default(),
        };
        Ok(ResolvedConfig {
            kind,
            width,
            inputs,
            file_list,
            references,
            last_run,
            criterion,
            min_verified_similarity: self.comparison.verify_config().map(|verify| verify.min_similarity),
            recall: self.recall(),
            cluster_by: self.cluster_by(criterion),
            keep: self.keep.clone(),
            profile,
            min_hasher,
            reads_twice: text_profile.is_some() || self.report || outputs.is_some_and(Outputs::reads_again),
            has_report: self.report || outputs.is_some_and(|outputs| outputs.report.is_some()),
            text_profile,
            addition_settings,
            is_exact: self.comparison.is_exact(),
        })
    }

    /// Returns the width of the fingerprints: the option `bits`, else the width of the stores, else 64 bits.
    ///
    /// # Errors
    /// [`Error::Refused`] if a store is missing, or if stores have different widths.
    pub(crate) fn width(&self) -> Result<Width> {
        let mut stored: Option<(u32, &Path)> = None;
        for (at, store) in self.against.iter().enumerate() {
            if !is_store(store) {
                // If documents are added, a missing first store is created later.
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
        let requested = self.comparison.distance_config().and_then(|distance| distance.bits);
        Width::from_bits(requested.or(stored.map(|(bits, _)| bits)).unwrap_or(u64::BITS))
    }

    /// Returns the configuration for [`sample_pairs`](crate::sample_pairs), and the requested threshold. The
    /// returned configuration has a lower threshold, which `lowest` computes from the requested threshold (the
    /// first argument) and the recall.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the inputs are fingerprints, or if the configuration compares fingerprints, has
    /// reference stores or checkpoints, or keeps no document of a cluster.
    pub(crate) fn to_pair_sample_config(
        &self,
        inputs: &Inputs,
        lowest: impl FnOnce(f64, f64) -> Result<f64>,
    ) -> Result<(DedupConfig, f64)> {
        if inputs.kind()? == InputKind::Fingerprints {
            return bad_argument("option `sample_pairs` needs documents, but the inputs are fingerprints");
        }
        let similar = match &self.comparison {
            ComparisonConfig::Default => SimilarityConfig::default(),
            ComparisonConfig::Similarity(similar) => similar.clone(),
            ComparisonConfig::Distance(_) => {
                return bad_argument(
                    "option `sample_pairs` compares texts: leave out option `distance` and other fingerprint options",
                );
            }
        };
        if !self.against.is_empty() || self.resume.is_some() {
            return bad_argument("option `sample_pairs` does not work with options `against` and `resume`");
        }
        if self.keep == KeepRule::None {
            return bad_argument("option `sample_pairs` needs preferred documents: leave out `keep` none");
        }
        self.check()?;
        let threshold = similar.min_similarity.unwrap_or(DEFAULT_SIMILARITY);
        let least = Some(lowest(threshold, self.recall())?);
        let compare = ComparisonConfig::Similarity(SimilarityConfig { min_similarity: least, ..similar });
        Ok((DedupConfig { comparison: compare, pairs: true, ..self.clone() }, threshold))
    }

    /// Fails if the options are invalid by themselves, without regard to the inputs.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.against.is_empty() && self.comparison.verify_config().is_some() {
            return bad_argument(
                "option `verify_text` does not work with option `against`, because a store of fingerprints has no texts: run with option \
                 `verify_text` and option `output` first, then compare this output with the store",
            );
        }
        self.comparison.check()?;
        check_memory(self.memory)?;
        if self.keep == KeepRule::None && self.cluster_by == Some(ClusterBy::Stars) {
            return bad_argument(
                "option `keep` none needs clusters by components: leave out option `cluster_by`",
            );
        }
        if let Some(store) = self.repeated_store() {
            return bad_argument(format!("{}: given as two stores", store.display()));
        }
        if self.add.is_some() && self.against.is_empty() {
            return bad_argument("option `add` needs option `against`");
        }
        Ok(())
    }

    /// Returns the first path in [`DedupConfig::against`] that refers to the same store as an earlier path, if
    /// any.
    fn repeated_store(&self) -> Option<&PathBuf> {
        let place = |store: &PathBuf| store.canonicalize().unwrap_or_else(|_| resolve_path(store));
        let mut seen = BTreeSet::new();
        self.against.iter().find(|store| !seen.insert(place(store)))
    }

    /// Fails if an option does not apply to this kind of input.
    fn check_kind(&self, kind: InputKind) -> Result<()> {
        if kind == InputKind::Documents {
            return Ok(());
        }
        let option = match &self.comparison {
            ComparisonConfig::Similarity(SimilarityConfig { min_similarity: Some(_), .. }) => Some("similar"),
            ComparisonConfig::Similarity(SimilarityConfig { recall: Some(_), .. }) => Some("recall"),
            ComparisonConfig::Similarity(_) => Some("verify_profile"),
            ComparisonConfig::Distance(DistanceConfig { profile: Some(_), .. }) => Some("profile"),
            ComparisonConfig::Distance(DistanceConfig { verify: Some(_), .. }) => Some("verify_text"),
            ComparisonConfig::Distance(_) | ComparisonConfig::Default => None,
        };
        let others = [
            (self.resume.is_some(), "resume"),
            (self.keep == KeepRule::Longest || self.keep.field().is_some(), "keep"),
        ];
        match option.or(first_set_option(others)).or_else(|| given_resources(&self.resources).next()) {
            Some(option) => {
                bad_argument(format!("option `{option}` needs documents, but the inputs are fingerprints"))
            }
            None => Ok(()),
        }
    }

    /// Fails if an option is set that needs input files. Must be called only if the inputs are in memory.
    fn check_in_memory(&self, kind: InputKind, outputs: Option<&Outputs>) -> Result<()> {
        let writes_documents = kind == InputKind::Documents && outputs.is_some_and(Outputs::writes_documents);
        match first_set_option([(self.resume.is_some(), "resume"), (writes_documents, "output")]) {
            Some(option) => bad_argument(format!("option `{option}` needs files as inputs")),
            None => Ok(()),
        }
    }

    /// If fingerprints of texts are compared, fails if the requested profile, by which they are computed from the texts,
    /// is unknown or not the profile of the stores.
    fn check_profile(&self, kind: InputKind, references: &ReferenceStores) -> Result<()> {
        let is_named = self.comparison.distance_config().is_some_and(|distance| distance.profile.is_some());
        if is_named && !references.are_similar() && kind == InputKind::Documents {
            self.fingerprint_profile(references)?;
        }
        Ok(())
    }

    fn recall(&self) -> f64 {
        self.comparison.similarity_config().and_then(|similar| similar.recall).unwrap_or(DEFAULT_RECALL)
    }

    fn cluster_by(&self, criterion: Criterion) -> ClusterBy {
        self.cluster_by.unwrap_or(match criterion {
            Criterion::Similarity(_) if self.keep != KeepRule::None => ClusterBy::Stars,
            _ => ClusterBy::Components,
        })
    }

    /// Returns the threshold for near-duplicates, for inputs of this kind and for the stores. Warns if an option
    /// such as `bits` implies that fingerprints are compared, but the option `distance` is missing.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the options do not fit the inputs or the stores, or if a store of
    /// fingerprints is used without an explicit option `distance`.
    pub(crate) fn criterion(
        &self,
        kind: InputKind,
        width: Width,
        references: &ReferenceStores,
        observer: &dyn Observer,
    ) -> Result<Criterion> {
        let criterion = if references.are_similar() {
            self.similar_store_criterion(kind, references)?
        } else {
            self.default_criterion(kind, references, observer)?
        };
        match criterion {
            Criterion::Distance(distance) => {
                let most = each_width!(width, type F => F::MAX_DISTANCE);
                if distance > most {
                    let bits = width.bits();
                    return bad_argument(format!(
                        "distance {distance} is too large: at most {most} for {bits}-bit fingerprints"
                    ));
                }
                Ok(criterion)
            }
            // An impossible similarity or recall is refused before any input is read.
            Criterion::Similarity(least) => {
                band_search_plan::plan_band_search(least, self.recall(), 0).map(|_| criterion)
            }
        }
    }

    fn default_criterion(
        &self,
        kind: InputKind,
        references: &ReferenceStores,
        observer: &dyn Observer,
    ) -> Result<Criterion> {
        // The smallest of the stores' distances works for all of them.
        let distance = references.snapshots().map(|store| store.distance()).min().unwrap_or(DEFAULT_DISTANCE);
        // A missing store does not restrict the criterion: it is created for it.
        let existing = references.stores.iter().find(|store| store.exists());
        match (&self.comparison, existing) {
            (ComparisonConfig::Similarity(SimilarityConfig { min_similarity: Some(_), .. }), Some(_)) => {
                bad_argument(
                    "option `similar` compares texts, but the store of option `against` has only fingerprints: use a store created by \
                 `simstore add` with option `similar`, or use option `distance`",
                )
            }
            (ComparisonConfig::Distance(DistanceConfig { max_distance: Some(most), .. }), _) => {
                Ok(Criterion::Distance(*most))
            }
            _ if kind == InputKind::Fingerprints => Ok(Criterion::Distance(distance)),
            (_, Some(existing)) => bad_argument(format!(
                "{}: this store has fingerprints and no text similarities: give option `distance` ({distance} finds copies with very \
                 small edits), or use a store created by `simstore add` with option `similar`",
                existing.path().display()
            )),
            (ComparisonConfig::Distance(asked), None) => {
                if let Some(option) = self.fingerprint_option(asked) {
                    observer.diagnostic(&Diagnostic::Warning(&format!(
                        "option `{option}` compares fingerprints, within {DEFAULT_DISTANCE} bits by default (option `distance` changes this); \
                         leave it out to compare texts by similarity"
                    )));
                }
                Ok(Criterion::Distance(DEFAULT_DISTANCE))
            }
            (ComparisonConfig::Similarity(similar), None) => {
                Ok(Criterion::Similarity(similar.min_similarity.unwrap_or(DEFAULT_SIMILARITY)))
            }
            (ComparisonConfig::Default, None) => Ok(Criterion::Similarity(DEFAULT_SIMILARITY)),
        }
    }

    /// Returns the name of an option that is set and implies that fingerprints are compared, such as `bits`.
    /// Does not consider the option `distance` itself.
    fn fingerprint_option(&self, distance: &DistanceConfig) -> Option<&'static str> {
        let options = [
            (distance.bits.is_some(), "bits"),
            (distance.profile.is_some(), "profile"),
            (distance.verify.is_some(), "verify_text"),
        ];
        first_set_option(options).or_else(|| given_resources(&self.resources).next())
    }

    /// Returns the threshold for stores of similar documents: the requested similarity, or by default the
    /// greatest of the stores' minimum similarities. A requested similarity below this default is refused.
    fn similar_store_criterion(&self, kind: InputKind, references: &ReferenceStores) -> Result<Criterion> {
        let default = (&SimilarityConfig::default(), &DistanceConfig::default());
        let (similar, distance) = match &self.comparison {
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
        let distance_config = first_set_option([
            (kind == InputKind::Fingerprints, "fingerprints in the input"),
            (distance.max_distance.is_some(), "option `distance`"),
            (distance.bits.is_some(), "option `bits`"),
        ]);
        if let Some(what) = distance_config.map(str::to_owned).or(other_profile) {
            return bad_argument(format!(
                "{what}: not possible with a store of similar documents, which compares texts by their similarity"
            ));
        }
        self.check_keep_with_similar_stores()?;
        let similarities = references.settings.iter().map(SimilarSettings::min_similarity);
        let stored = similarities.max_by(f64::total_cmp).unwrap_or(DEFAULT_SIMILARITY);
        let least = similar.min_similarity.unwrap_or(stored);
        if least < stored {
            return bad_argument(format!(
                "option `similar` is {least}, but the store was created for a similarity of at least {stored}"
            ));
        }
        let recall = references.settings.iter().map(SimilarSettings::recall).min_by(f64::total_cmp);
        match (similar.recall, recall) {
            (Some(asked), Some(recall)) if asked > recall => bad_argument(format!(
                "option `recall` is {asked}, but the store was created with recall {recall}"
            )),
            _ => Ok(Criterion::Similarity(least)),
        }
    }

    /// Fails if the keep rule does not work with stores of similar documents.
    fn check_keep_with_similar_stores(&self) -> Result<()> {
        if self.keep == KeepRule::None {
            return bad_argument(
                "option `keep` none does not work with a store of similar documents: run with option `keep` none and option `output` \
                 first, then compare this output with the store",
            );
        }
        Ok(())
    }

    /// Returns the settings of the store that documents are added to, if it is a store of similar documents.
    /// The run may create this store. Returns `None` if no documents are added, or if the store has only
    /// fingerprints.
    fn addition_settings(
        &self,
        criterion: Criterion,
        references: &ReferenceStores,
    ) -> Result<Option<SimilarSettings>> {
        let (Criterion::Similarity(least), Some((first, add))) =
            (criterion, references.stores.first().zip(self.add))
        else {
            return if self.add.is_some_and(|add| add.with_texts) {
                bad_argument(
                    "option `with_texts` needs a new store of similar documents, created by option `add`",
                )
            } else {
                Ok(None)
            };
        };
        if first.exists() {
            // `settings` has the existing stores in order, so the first is the store to add to.
            let stored = references.settings.first().copied();
            return match stored.filter(|stored| add.with_texts && !stored.has_texts()) {
                Some(_) => bad_argument(format!(
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

    /// Returns the profile that turns texts into features to compare them: the profile of the stores, else the
    /// requested profile. The default is the profile for code if all files are source code, else word shingles.
    /// Returns `None` if texts are not compared.
    fn text_profile(
        &self,
        criterion: Criterion,
        references: &ReferenceStores,
        file_list: Option<&FileList>,
        observer: &dyn Observer,
    ) -> Result<Option<Profile>> {
        let by_similarity = matches!(criterion, Criterion::Similarity(_));
        if !by_similarity && self.comparison.verify_config().is_none() {
            return Ok(None);
        }
        if let Some(stored) = references.profile.as_deref().filter(|_| references.are_similar()) {
            return resolve_profile(None, &self.resources, Some(stored)).map(Some);
        }
        let named = match &self.comparison {
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

    /// Returns the profile that turns texts into fingerprints: the requested profile, else the profile of the
    /// stores, else the default profile. If the stores have no profile, any profile is allowed.
    fn fingerprint_profile(&self, references: &ReferenceStores) -> Result<Profile> {
        let named = self.comparison.distance_config().and_then(|distance| distance.profile.as_deref());
        resolve_profile(named, &self.resources, references.profile.as_deref())
    }
}

/// Returns the name of the first option that is set. Each item is a flag whether an option is set, and its name.
fn first_set_option<const N: usize>(options: [(bool, &'static str); N]) -> Option<&'static str> {
    options.into_iter().find(|(is_set, _)| *is_set).map(|(_, option)| option)
}

/// Fails if outputs do not fit the inputs: for example, if an output would overwrite an input file.
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
            outputs.warn_inside_inputs(inputs.paths(), observer);
            outputs.check_with_inputs(file_list.paths(), Some(file_list), adds)
        }
        None => {
            let paths = inputs.fingerprint_files()?;
            outputs.check_with_inputs(paths.iter().map(PathBuf::as_path), None, adds)
        }
    }
}

/// Returns the profile `name`, else the profile `stored` of the store, else the default profile. If the store has a
/// profile, no other profile is accepted.
///
/// # Errors
/// [`Error::BadArgument`] for an unknown profile, [`Error::Refused`] if the store has another profile.
pub fn resolve_profile(name: Option<&str>, resources: &Resources, stored: Option<&str>) -> Result<Profile> {
    let stored = stored.filter(|stored| !stored.is_empty());
    let requested = name.or(stored).map_or_else(|| Profile::default().to_string(), str::to_owned);
    let profile = Profile::with_resources(&requested, resources).map_err(|error| match error {
        // An invalid profile of the store is not the caller's fault.
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
