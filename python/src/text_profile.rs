//! How texts become the fingerprints of a store: by the profile that it names.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use arrow_buffer::NullBuffer;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::Width;
use simstore::{Error, Fingerprint as _, Result, each_width};
use simstore_text::Resources;

use crate::errors::either;
use crate::fingerprints::{FingerprintColumn, PresentFingerprints};
use crate::gate::{self, Call};
use crate::profile::{PyProfile, fingerprint_of, in_parallel};
use crate::texts::Texts;

/// The profile of a store, which is made of its name when it is first needed.
#[derive(Clone)]
pub(crate) struct TextProfile {
    name: String,
    width: Width,
    path: PathBuf,
    made: OnceLock<ProfileWithWidth>,
}

/// A profile whose fingerprints have a width.
#[derive(Clone)]
pub(crate) struct ProfileWithWidth {
    profile: simstore_text::Profile,
    width: Width,
}

impl ProfileWithWidth {
    /// The fingerprint of a text; `None` if it has no features.
    pub(crate) fn fingerprint(&self, text: &str) -> Option<u128> {
        fingerprint_of(&self.profile, self.width, text)
    }
}

impl TextProfile {
    /// Returns the profile of a store. `given` is the caller's object, which has the files that the name refers to.
    pub(crate) fn new(
        name: &str,
        width: Width,
        path: &Path,
        given: Option<&Bound<'_, PyAny>>,
    ) -> TextProfile {
        let made = OnceLock::new();
        if let Some(Ok(given)) = given.map(|given| given.cast::<PyProfile>()) {
            made.get_or_init(|| ProfileWithWidth { profile: given.get().inner.clone(), width });
        }
        TextProfile { name: name.to_owned(), width, path: path.to_path_buf(), made }
    }

    pub(crate) fn get(&self) -> Result<&ProfileWithWidth> {
        if let Some(made) = self.made.get() {
            return Ok(made);
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
        Ok(self.made.get_or_init(|| ProfileWithWidth { profile, width: self.width }))
    }

    /// Returns the given fingerprint, or the text's fingerprint; `None` if the text has none.
    pub(crate) fn either<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        text: Option<&str>,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<u128>,
    ) -> PyResult<Option<u128>> {
        match (fingerprint, text) {
            (Some(fingerprint), None) => read(fingerprint).map(Some),
            (None, Some(text)) => gate::detached(py, || Ok(self.get()?.fingerprint(text))),
            (fingerprint, _) => Err(either("a fingerprint", "a text", fingerprint.is_some())),
        }
    }

    /// Returns a fingerprint to insert, like [`TextProfile::either`]. A text without a fingerprint is an error.
    pub(crate) fn inserted<'py>(
        &self,
        py: Python<'py>,
        fingerprint: Option<&Bound<'py, PyAny>>,
        text: Option<&str>,
        read: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<u128>,
    ) -> PyResult<u128> {
        self.either(py, fingerprint, text, read)?.ok_or_else(|| {
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
            (fingerprints, _) => Err(either("fingerprints", "texts", fingerprints.is_some())),
        }
    }

    /// Returns the fingerprints, without missing ones.
    pub(crate) fn make(&mut self, profile: &TextProfile, call: &Call) -> Result<PresentFingerprints> {
        let texts = match self {
            QueryInput::Fingerprints(fingerprints) => {
                let read =
                    fingerprints.take().ok_or_else(|| Error::Bug("queries are made once".to_owned()))?;
                return Ok(read.present());
            }
            QueryInput::Texts(texts) => texts,
        };
        let of = profile.get()?;
        let made = in_parallel(texts, call, |text| of.fingerprint(text))?;
        let valid = NullBuffer::from_iter(made.iter().map(Option::is_some));
        let made = made.into_iter().map(Option::unwrap_or_default);
        let values = each_width!(profile.width, type F => made.map(F::from_u128).collect::<Vec<F>>().into());
        Ok(FingerprintColumn { values, valid: Some(valid) }.present())
    }
}
