//! Profiles for making fingerprints or sketches of texts, and for comparing texts.

use std::path::Path;

use simstore::{Error, Result};
use simstore_text::{Profile, Resources, Sketcher};

use super::options::Options;
use super::question::{Compare, Question, Similar};
use simstore_corpus::profile_of_files;
use simstore_corpus::{InputKind, Watch};

/// Profiles for making fingerprints or sketches of texts, and for comparing texts.
pub(super) struct Profiles {
    pub(super) sketcher: Option<Sketcher>,
    pub(super) profile: Profile,
    pub(super) of_texts: Option<Profile>,
}

impl Profiles {
    /// `stored` is the profile of stores, and `is_similar` whether these are of similar documents.
    pub(super) fn new(
        options: &Options,
        kind: InputKind,
        question: Question,
        stored: Option<&str>,
        is_similar: bool,
    ) -> Result<Profiles> {
        let sketcher = match stored {
            Some(stored) if is_similar => options.sketcher_like(question, stored)?,
            _ => options.sketcher(question)?,
        };
        let profile = match (kind, &sketcher) {
            (_, Some(sketcher)) => sketcher.profile().clone(),
            (InputKind::Documents, None) => options.profile_with(stored)?,
            (InputKind::Fingerprints, None) => Profile::default(),
        };
        let of_texts = match (&sketcher, options.compare.verify()) {
            (Some(sketcher), _) => Some(sketcher.profile().clone()),
            (None, Some(_)) => Some(options.profile_of_texts()?),
            (None, None) => None,
        };
        Ok(Profiles { sketcher, profile, of_texts })
    }
}

impl Options {
    /// Makes what is kept of documents that are compared by similarity.
    pub(super) fn sketcher(&self, question: Question) -> Result<Option<Sketcher>> {
        match question {
            Question::Distance(_) => Ok(None),
            Question::Similarity(_) => Ok(Some(Sketcher::new(self.profile_of_texts()?))),
        }
    }

    /// Like `sketcher`, but with the profile of the stores that documents are compared with.
    pub(super) fn sketcher_like(&self, question: Question, stored: &str) -> Result<Option<Sketcher>> {
        let sketcher = self.sketcher(question)?;
        let profile = profile_with(None, &self.resources, Some(stored))?;
        Ok(sketcher.map(|_| Sketcher::new(profile)))
    }

    /// The profile whose features texts are compared by.
    pub(super) fn profile_of_texts(&self) -> Result<Profile> {
        match self.named_profile_of_texts() {
            Some(name) => Profile::with_resources(name, &self.resources),
            None => Ok(Profile::shingles()),
        }
    }

    fn named_profile_of_texts(&self) -> Option<&String> {
        match &self.compare {
            Compare::Default => None,
            Compare::Similar(similar) => similar.profile.as_ref(),
            Compare::Distance(distance) => distance.verify.as_ref()?.profile.as_ref(),
        }
    }

    /// The options for these files: with the profile of source code, if all are source code and no option names a profile to
    /// compare texts.
    pub(super) fn of_files<'a>(
        &self,
        files: impl Iterator<Item = &'a Path>,
        question: Question,
        watch: &dyn Watch,
    ) -> Options {
        let mut options = self.clone();
        // Fingerprints of stores have a profile of their own.
        let is_free = self.against.is_empty() || matches!(question, Question::Similarity(_));
        if self.compares_texts(question) && is_free && self.named_profile_of_texts().is_none() {
            let profile = profile_of_files(files, "verify_profile", watch);
            let named = (profile != Profile::shingles()).then(|| profile.to_string());
            match &mut options.compare {
                Compare::Similar(similar) => similar.profile = named,
                Compare::Distance(distance) => {
                    distance.verify.iter_mut().for_each(|verify| verify.profile.clone_from(&named));
                }
                Compare::Default => {
                    options.compare = Compare::Similar(Similar { profile: named, ..Similar::default() });
                }
            }
        }
        options
    }

    /// The profile to make fingerprints with: the named one, else the store's, else the default. A store of fingerprints has an
    /// empty profile and allows any.
    pub(super) fn profile_with(&self, stored: Option<&str>) -> Result<Profile> {
        let named = self.compare.of_distance().and_then(|distance| distance.profile.as_deref());
        profile_with(named, &self.resources, stored)
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
