//! The profile of a store, which turns texts into fingerprints.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow_buffer::NullBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::Width;
use simstore::{Error, Fingerprint as _, Result, each_width};
use simstore_text::Resources;

use crate::call::{self, Call};
use crate::errors::one_of_two_error;
use crate::fingerprints::{FingerprintColumn, PresentFingerprints};
use crate::profile::{PyProfile, fingerprint_text, map_texts};
use crate::texts::Texts;

/// The profile of a store. On first use, it is parsed from the name that the store records.
#[derive(Clone)]
pub(crate) struct TextProfile {
    name: String,
    width: Width,
    path: PathBuf,
    resolved: OnceLock<ProfileWithWidth>,
}

/// A profile and the width of its fingerprints.
#[derive(Clone)]
pub(crate) struct ProfileWithWidth {
    profile: simstore_text::Profile,
    width: Width,
}

impl ProfileWithWidth {
    /// Returns the fingerprint of a text, or `None` if the text has no features.
    pub(crate) fn fingerprint(&self, text: &str) -> Option<u128> {
        fingerprint_text(&self.profile, self.width, text)
    }
}

impl TextProfile {
    /// Makes the profile of a store. `name` is the profile's name that the store records, `given` the caller's
    /// argument `profile`. A Python `Profile` in `given` takes precedence over `name`, because it already has the
    /// files that a name may refer to.
    pub(crate) fn new(
        name: &str,
        width: Width,
        path: &Path,
        given: Option<&Bound<'_, PyAny>>,
    ) -> TextProfile {
        let resolved = OnceLock::new();
        if let Some(Ok(given)) = given.map(|given| given.cast::<PyProfile>()) {
            resolved.get_or_init(|| ProfileWithWidth { profile: given.get().inner.clone(), width });
        }
        TextProfile { name: name.to_owned(), width, path: path.to_path_buf(), resolved }
    }

    pub(crate) fn resolve(&self) -> Result<&ProfileWithWidth> {
        if let Some(resolved) = self.resolved.get() {
            return Ok(resolved);
        }
        let refused = |reason: String| Err(Error::BadArgument(format!("{}: {reason}", self.path.display())));
        if self.name.is_empty() {
            return refused(
                "the store has no profile, which says how texts become fingerprints: make a store with `profile`, or give fingerprints"
                    .to_owned(),
            );
        }
        let profile = match simstore_text::Profile::with_resources(&self.name, &Resources::default()) {
            Ok(profile) => profile,
            Err(Error::BadArgument(reason)) => {
                return refused(format!("{reason}; open it with `profile`, a Profile that has the files"));
            }
            Err(error) => return Err(error),
        };
        profile.check_bits(self.width.bits())?;
        Ok(self.resolved.get_or_init(|| ProfileWithWidth { profile, width: self.width }))
    }

    /// Returns the given fingerprint, converted by `read`, or the fingerprint of the given text. Returns `None` if the
    /// text has no features. Exactly one of `fingerprint` and `text` must be given.
    pub(crate) fn fingerprint_or_text<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        text: Option<&str>,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<u128>,
    ) -> PyResult<Option<u128>> {
        match (fingerprint, text) {
            (Some(fingerprint), None) => read(fingerprint).map(Some),
            (None, Some(text)) => call::detached(py, || Ok(self.resolve()?.fingerprint(text))),
            (fingerprint, _) => Err(one_of_two_error("a fingerprint", "a text", fingerprint.is_some())),
        }
    }

    /// Like [`TextProfile::fingerprint_or_text`], for insertions: a text without features is an error.
    pub(crate) fn fingerprint_to_insert<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        text: Option<&str>,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<u128>,
    ) -> PyResult<u128> {
        self.fingerprint_or_text(py, fingerprint, text, read)?.ok_or_else(|| {
            PyValueError::new_err("the text has no letter and no digit, and so no fingerprint: leave it out")
        })
    }
}

/// The fingerprints or texts of many queries.
pub(crate) enum QueryInput {
    Fingerprints(Option<FingerprintColumn>),
    Texts(Texts),
}

impl QueryInput {
    pub(crate) fn read(
        fingerprints: Option<&Bound<'_, PyAny>>,
        texts: Option<&Bound<'_, PyAny>>,
        bits: u32,
    ) -> PyResult<QueryInput> {
        match (fingerprints, texts) {
            (Some(fingerprints), None) => {
                Ok(QueryInput::Fingerprints(Some(FingerprintColumn::read(fingerprints, Some(bits))?)))
            }
            (None, Some(texts)) => Texts::read(texts, "text").map(QueryInput::Texts),
            (fingerprints, _) => Err(one_of_two_error("fingerprints", "texts", fingerprints.is_some())),
        }
    }

    /// Returns the fingerprints of the queries. Leaves out nulls, and texts that have no features. Can be called once.
    pub(crate) fn fingerprints(&mut self, profile: &TextProfile, call: &Call) -> Result<PresentFingerprints> {
        let texts = match self {
            QueryInput::Fingerprints(fingerprints) => {
                let read =
                    fingerprints.take().ok_or_else(|| Error::Bug("queries are made once".to_owned()))?;
                return Ok(read.present());
            }
            QueryInput::Texts(texts) => texts,
        };
        let resolved = profile.resolve()?;
        let fingerprints = map_texts(texts, call, |text| resolved.fingerprint(text))?;
        let valid = NullBuffer::from_iter(fingerprints.iter().map(Option::is_some));
        let fingerprints = fingerprints.into_iter().map(Option::unwrap_or_default);
        let values =
            each_width!(profile.width, type F => fingerprints.map(F::from_u128).collect::<Vec<F>>().into());
        Ok(FingerprintColumn { values, valid: Some(valid) }.present())
    }
}
