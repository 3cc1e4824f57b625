//! What is asked for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use simstore::any::Width;
use simstore::store::{is_store, stored_bits};
use simstore::{Error, Result};
use simstore_text::{Profile, Resources, Sketcher};

use super::documents::Keep;
use super::question::Question;
use crate::inputs::code::profile_of_files;
use crate::output::place_of;
use crate::{InputKind, Watch};

/// How documents come together in clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClusterBy {
    /// What a chain of near ones connects: each is near another, not necessarily all.
    #[default]
    Components,
    /// Each is near the one that stands for the cluster.
    Stars,
}

/// What is near what, what is kept, and what is done with it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Texts are near whose [shingles](Profile::shingles) are at least so similar: a number above 0, up to 1. 0.8 by default,
    /// unless an option asks for a distance.
    pub similar: Option<f64>,
    /// The least probability that two texts of just that similarity are found; 0.95 by default. More similar ones are found
    /// with a greater one.
    pub recall: Option<f64>,
    /// Fingerprints that differ in at most this many bits are near; where only fingerprints are at hand, or one of the options
    /// `bits`, `profile` or `verify_text` is given, 3 by default, or what the store was built for.
    pub distance: Option<u32>,
    /// Width of fingerprints in bits, 64 or 128; 64 by default, or that of the store.
    pub bits: Option<u32>,
    /// The name of the [`Profile`] by which texts become fingerprints; the default one, or that of the store. With `similar`, the
    /// same as `verify_profile`.
    pub profile: Option<String>,
    /// The files that the name of the profile refers to.
    pub resources: Resources,
    /// How documents come together in clusters; stars by default where texts are compared by similarity and one is kept, else
    /// components.
    pub cluster_by: Option<ClusterBy>,
    /// Which document of a cluster is kept.
    pub keep: Keep,
    /// Documents whose fingerprints are near are alike only if at least this share (0 to 1) of all features of the two is in
    /// both. The texts are read a second time.
    pub verify_text: Option<f64>,
    /// The name of the profile of these features, and of those of `similar`; [shingles](Profile::shingles) by default, or for files of
    /// source code [that of code](Profile::code).
    pub verify_profile: Option<String>,
    /// Stores, of one width, kind and profile: what is near something in one of them is not kept. Those of [similar
    /// documents](simstore_text::open_similar) are asked for their similarity, or a greater one; it is estimated by sketches there, or exact if they keep texts.
    pub against: Vec<PathBuf>,
    /// Whether what is kept is added to the first of them, which is made if there is none. Store and output files change
    /// together.
    pub add: bool,
    /// Whether a store of similar documents that is made for that keeps the texts, so that these decide from then on.
    pub with_texts: bool,
    /// Whether it is added even if the same run has added its documents before.
    pub again: bool,
    /// A folder for the fingerprints of finished files, and those that are there are taken: a run that was cut off carries on.
    pub resume: Option<PathBuf>,
    /// With `resume`, a larger file is several parts, of about so many bytes of it on disk, if it can be read from the middle;
    /// 256 MiB by default.
    pub section: Option<u64>,
    /// Whether all pairs are to be [visited](super::Found::visit_pairs): they take memory.
    pub pairs: bool,
    /// The most memory to take, in bytes; by default what the machine, or the group of processes, has. A quarter of it, up to 128
    /// MiB, is left to the program and to what it reads at a time. Documents are put on disk where they would take more.
    pub memory: Option<u64>,
    /// The folder for temporary files; that of the system by default. What processes that were killed have left there of such files
    /// is removed.
    pub temporary: Option<PathBuf>,
}

/// What is found of texts of just the similarity that is asked for, where nothing says how much.
const RECALL: f64 = 0.95;

impl Options {
    /// The options of files that profiles refer to, of those that are given.
    pub(super) fn given_resources(&self) -> impl Iterator<Item = &'static str> + use<> {
        let Resources { dictionary, stop_words, idf } = &self.resources;
        let all = [("dictionary", dictionary), ("stop_words", stop_words), ("idf", idf)];
        all.map(|(option, resource)| resource.is_some().then_some(option)).into_iter().flatten()
    }

    pub(super) fn recall(&self) -> f64 {
        self.recall.unwrap_or(RECALL)
    }

    /// How clusters are made, of what is near by a question.
    pub(super) fn cluster_by(&self, question: Question) -> ClusterBy {
        self.cluster_by.unwrap_or(match question {
            Question::Similarity(_) if self.keep != Keep::None => ClusterBy::Stars,
            _ => ClusterBy::Components,
        })
    }

    /// Makes what is kept of documents that are compared by similarity.
    pub(super) fn sketcher(&self, question: Question) -> Result<Option<Sketcher>> {
        match question {
            Question::Distance(_) => Ok(None),
            Question::Similarity(_) => Ok(Some(Sketcher::new(self.profile_of_texts()?))),
        }
    }

    /// The same for documents that are compared with those of stores, by their profile.
    pub(super) fn sketcher_like(&self, question: Question, stored: &str) -> Result<Option<Sketcher>> {
        let sketcher = self.sketcher(question)?;
        let profile = profile_with(None, &self.resources, Some(stored))?;
        Ok(sketcher.map(|_| Sketcher::new(profile)))
    }

    /// The profile of the features by which texts are compared.
    pub(super) fn profile_of_texts(&self) -> Result<Profile> {
        match self.named_profile_of_texts() {
            Some(name) => Profile::with_resources(name, &self.resources),
            None => Ok(Profile::shingles()),
        }
    }

    fn named_profile_of_texts(&self) -> Option<&String> {
        self.verify_profile.as_ref().or(self.profile.as_ref().filter(|_| self.similar.is_some()))
    }

    /// The same options for these files: with the profile of source code, if they all are that and nothing says by which texts are
    /// compared.
    pub(super) fn of_files<'a>(
        &self,
        files: impl Iterator<Item = &'a Path>,
        question: Question,
        watch: &dyn Watch,
    ) -> Options {
        let compares_texts = self.verify_text.is_some() || matches!(question, Question::Similarity(_));
        let mut options = self.clone();
        // Fingerprints of stores have a profile of their own.
        let is_free = self.against.is_empty() || matches!(question, Question::Similarity(_));
        if compares_texts && is_free && self.named_profile_of_texts().is_none() {
            let profile = profile_of_files(files, "verify_profile", watch);
            options.verify_profile = (profile != Profile::shingles()).then(|| profile.to_string());
        }
        options
    }

    /// The width of the fingerprints.
    pub(super) fn width(&self) -> Result<Width> {
        let mut stored: Option<(u32, &Path)> = None;
        for (at, store) in self.against.iter().enumerate() {
            // The first is made if it is added to.
            if !is_store(store) && (at > 0 || !self.add) {
                return Err(Error::Refused(format!("{}: there is no store", store.display())));
            }
            if !is_store(store) {
                continue;
            }
            let bits = stored_bits(store)?;
            match stored {
                Some((other, first)) if other != bits => {
                    return Err(Error::Refused(format!(
                        "{}: holds fingerprints of {bits} bits, {} of {other}: compare with stores of one width at a time",
                        store.display(),
                        first.display()
                    )));
                }
                _ => stored = Some((bits, store)),
            }
        }
        Width::of(self.bits.or(stored.map(|(bits, _)| bits)).unwrap_or(u64::BITS))
    }

    /// Refuses what makes no sense whatever is read.
    pub(super) fn check(&self) -> Result<()> {
        if !self.against.is_empty() && self.verify_text.is_some() {
            return Err(Error::BadArgument(
                "option `verify_text` cannot be used with option `against`: a store holds fingerprints and no texts. Remove \
                 duplicates among the documents first, with option `verify_text` and option `output`, then compare that \
                 output with the store"
                    .to_owned(),
            ));
        }
        let bad = |reason: &str| Err(Error::BadArgument(reason.to_owned()));
        if self.verify_text.is_some_and(|share| !(0.0..=1.0).contains(&share)) {
            return bad("option `verify_text`: expected a number from 0 to 1");
        }
        if self.similar.is_some_and(|similar| !(similar > 0.0 && similar <= 1.0)) {
            return bad("option `similar`: expected a number above 0, up to 1");
        }
        if self.recall.is_some_and(|recall| !(recall > 0.0 && recall < 1.0)) {
            return bad("option `recall`: expected a number between 0 and 1");
        }
        let of_distance = [
            (self.distance.is_some(), "distance"),
            (self.bits.is_some(), "bits"),
            (self.verify_text.is_some(), "verify_text"),
        ];
        if let Some((_, option)) = of_distance.iter().find(|(is_set, _)| *is_set && self.similar.is_some()) {
            return Err(Error::BadArgument(format!(
                "option `{option}` is about fingerprints, option `similar` about the texts themselves: leave out one of them"
            )));
        }
        if self.similar.is_some() && self.profile.is_some() && self.verify_profile.is_some() {
            return bad(
                "options `profile` and `verify_profile` both name what texts are compared by: leave out one of them",
            );
        }
        if self.keep == Keep::None && self.cluster_by == Some(ClusterBy::Stars) {
            return bad(
                "option `keep` none removes every document that has a near-duplicate, but stars separate some of these: leave \
                 out option `cluster_by`",
            );
        }
        if let Some(store) = self.named_twice() {
            return Err(Error::BadArgument(format!("{}: named for two stores", store.display())));
        }
        if (self.add && self.against.is_empty()) || (self.again && !self.add) {
            let (option, other) = if self.add { ("add", "against") } else { ("again", "add") };
            return Err(Error::BadArgument(format!("option `{option}` needs option `{other}`")));
        }
        Ok(())
    }

    /// A store that another path has named before.
    fn named_twice(&self) -> Option<&PathBuf> {
        let place = |store: &PathBuf| store.canonicalize().unwrap_or_else(|_| place_of(store));
        let mut seen = BTreeSet::new();
        self.against.iter().find(|store| !seen.insert(place(store)))
    }

    /// Refuses what does not go with what the inputs hold.
    pub(super) fn check_with(&self, kind: InputKind) -> Result<()> {
        if kind == InputKind::Documents {
            return Ok(());
        }
        let of_documents = [
            (self.similar.is_some(), "similar"),
            (self.recall.is_some(), "recall"),
            (self.profile.is_some(), "profile"),
            (self.verify_text.is_some(), "verify_text"),
            (self.verify_profile.is_some(), "verify_profile"),
            (self.resume.is_some(), "resume"),
            (self.keep == Keep::Longest || self.keep.field().is_some(), "keep"),
        ];
        let resources = self.given_resources().map(|option| (true, option));
        match of_documents.into_iter().chain(resources).find(|(is_set, _)| *is_set) {
            Some((_, option)) => Err(Error::BadArgument(format!(
                "option `{option}` is for documents: the inputs hold fingerprints"
            ))),
            None => Ok(()),
        }
    }

    /// The profile of texts that are compared with those of a store, if there is one. A store of fingerprints, whose profile
    /// is empty, leaves the choice.
    pub(super) fn profile_with(&self, stored: Option<&str>) -> Result<Profile> {
        profile_with(self.profile.as_deref(), &self.resources, stored)
    }
}

/// The profile of this name, or that of a store, or the default one; it has to be that of the store, if there is one.
///
/// # Errors
/// [`Error::BadArgument`] if there is no such profile, [`Error::Refused`] if the store has another one.
pub fn profile_with(name: Option<&str>, resources: &Resources, stored: Option<&str>) -> Result<Profile> {
    let stored = stored.filter(|stored| !stored.is_empty());
    let wanted = name.or(stored).map_or_else(|| Profile::default().to_string(), str::to_owned);
    let profile = Profile::with_resources(&wanted, resources).map_err(|error| match error {
        // What a store says is no bad argument.
        Error::BadArgument(reason) if name.is_none() && stored.is_some() => {
            Error::Refused(format!("profile of the store: {reason}"))
        }
        error => error,
    })?;
    match stored {
        Some(stored) if stored != profile.to_string() => Err(Error::Refused(format!(
            "the store has profile {stored}, not {profile}: leave out option `profile`, or make another store"
        ))),
        _ => Ok(profile),
    }
}
