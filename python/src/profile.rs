//! The class `Profile`, and the functions `similarity` and `bands`.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::builder::FixedSizeListBuilder;
use arrow_array::builder::UInt64Builder;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::Width;
use simstore::{Fingerprint, Result, each_width};
use simstore_text::{BANDS, MinHasher, Preset, Resource, Resources, jaccard};

use crate::array::PyArrowArray;
use crate::call::{self, Call};
use crate::fingerprints::{array_of, to_python};
use crate::number_arguments;
use crate::texts::Texts;

/// Texts processed between checks for interruption.
const TEXTS_PER_CANCEL_CHECK: usize = 64;

/// Turns texts into fingerprints. A profile is a tokenizer with options, and its name lists both, separated by commas.
///
/// Parameters
/// ----------
/// name : str
///     A name with the parts that ``simstore profiles`` lists. The default is good for English and Chinese.
/// bits : {64, 128}, optional
///     Width of the fingerprints. The default is 64, or the width of the preset that is named.
/// dictionary, stop_words, idf : path, optional
///     Files. ``dictionary``: words to add to jieba's dictionary. ``stop_words``: words to exclude from keywords,
///     one in each line. ``idf``: a table of inverse document frequencies. The profile's name holds their
///     checksums; a pickled profile holds their contents.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> profile = simstore.Profile("auto,plain-text")
/// >>> profile.fingerprint("To be, or not to be, that is the question") is None
/// False
/// >>> profile.fingerprints(["", None]).null_count
/// 2
#[pyclass(frozen, eq, hash, module = "simstore", name = "Profile")]
#[derive(Clone)]
pub(crate) struct PyProfile {
    pub(crate) inner: simstore_text::Profile,
    pub(crate) width: Width,
    /// The files to which the profile's name refers.
    pub(crate) resources: Resources,
}

impl PartialEq for PyProfile {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner && self.width == other.width
    }
}

impl std::hash::Hash for PyProfile {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (self.inner.to_string(), self.width.bits()).hash(state);
    }
}

#[pymethods]
impl PyProfile {
    #[new]
    #[pyo3(signature = (name=None, *, bits=None, dictionary=None, stop_words=None, idf=None))]
    fn new(
        py: Python<'_>,
        name: Option<&str>,
        #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
        dictionary: Option<PathBuf>,
        stop_words: Option<PathBuf>,
        idf: Option<PathBuf>,
    ) -> PyResult<Self> {
        let read = |path: Option<PathBuf>| path.map(Resource::read).transpose();
        let resources = call::detached(py, || {
            Ok(Resources { dictionary: read(dictionary)?, stop_words: read(stop_words)?, idf: read(idf)? })
        })?;
        PyProfile::with_name(py, name, bits, resources)
    }

    /// Returns a profile that reproduces another tool, bit for bit.
    ///
    /// Parameters
    /// ----------
    /// name : str
    ///     A name from `presets()`, such as "pypi-simhash" for the package ``simhash``.
    #[staticmethod]
    fn preset(py: Python<'_>, name: &str) -> PyResult<Self> {
        if Preset::ALL.iter().all(|preset| preset.name() != name) {
            let names = Preset::ALL.map(Preset::name).join(", ");
            return Err(PyValueError::new_err(format!("unknown preset `{name}`; expected one of {names}")));
        }
        PyProfile::with_name(py, Some(name), None, Resources::default())
    }

    /// Returns all presets: a dict of names and descriptions.
    #[staticmethod]
    fn presets() -> std::collections::BTreeMap<&'static str, &'static str> {
        Preset::ALL.iter().map(|preset| (preset.name(), preset.description())).collect()
    }

    /// The name in canonical form, without default options.
    #[getter]
    pub(crate) fn name(&self) -> String {
        self.inner.to_string()
    }

    /// Width of the fingerprints, in bits.
    #[getter]
    pub(crate) fn bits(&self) -> u32 {
        self.width.bits()
    }

    /// Returns the fingerprint of a text.
    ///
    /// Returns
    /// -------
    /// int, bytes of length 16 for 128 bits, or None
    ///     None if the text has no features, for example no letter and no digit.
    fn fingerprint<'py>(&self, py: Python<'py>, text: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let fingerprint = call::detached(py, || Ok(fingerprint_text(&self.inner, self.width, text)))?;
        fingerprint.map(|fingerprint| to_python(py, fingerprint, self.width.bits())).transpose()
    }

    /// Returns the fingerprints of many texts, on all cores.
    ///
    /// Parameters
    /// ----------
    /// texts : iterable of str or None
    ///     A list, a numpy array, a pandas or Polars series, an Arrow array or stream of strings.
    ///
    /// Returns
    /// -------
    /// Array
    ///     Of shape (n,): uint64, or 16 bytes each (the most significant first) for 128 bits; null for None and for texts
    ///     without features.
    fn fingerprints(&self, py: Python<'_>, texts: &Bound<'_, PyAny>) -> PyResult<PyArrowArray> {
        let texts = Texts::read(texts, "text")?;
        call::interruptible(
            py,
            |call| each_width!(self.width, type F => fingerprint_texts::<F>(&self.inner, &texts, call)),
        )
    }

    fn __repr__(&self) -> String {
        match (self.width.bits(), self.inner.bits()) {
            (128, None) => format!("Profile('{}', bits=128)", self.inner),
            _ => format!("Profile('{}')", self.inner),
        }
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, ProfileFields)> {
        let PyProfile { inner, width, resources } = slf.get();
        let make = slf.py().import("simstore._simstore")?.getattr("_profile")?;
        let Resources { dictionary, stop_words, idf } = resources;
        let file = |file: &Option<Resource>| {
            let file = file.as_ref()?;
            Some((file.path().display().to_string(), file.text().to_owned()))
        };
        Ok((make, (inner.to_string(), width.bits(), file(dictionary), file(stop_words), file(idf))))
    }
}

/// A pickled profile: its name, its width, and the contents of its files.
type ProfileFields = (String, u32, Option<FileContents>, Option<FileContents>, Option<FileContents>);
type FileContents = (String, String);

impl PyProfile {
    fn with_name(
        py: Python<'_>,
        name: Option<&str>,
        bits: Option<u32>,
        resources: Resources,
    ) -> PyResult<Self> {
        let default = simstore_text::Profile::default().to_string();
        let name = name.unwrap_or(&default);
        let inner = call::detached(py, || simstore_text::Profile::with_resources(name, &resources))?;
        let width = call::detached(py, || {
            let width = Width::from_bits(bits.or(inner.bits()).unwrap_or(64))?;
            inner.check_bits(width.bits()).map(|()| width)
        })?;
        Ok(PyProfile { inner, width, resources })
    }
}

/// Restores a pickled profile.
#[pyfunction]
pub(crate) fn _profile(
    py: Python<'_>,
    name: &str,
    bits: u32,
    dictionary: Option<FileContents>,
    stop_words: Option<FileContents>,
    idf: Option<FileContents>,
) -> PyResult<PyProfile> {
    let file = |file: Option<FileContents>| file.map(|(path, text)| Resource::new(path, text));
    let resources = Resources { dictionary: file(dictionary), stop_words: file(stop_words), idf: file(idf) };
    PyProfile::with_name(py, Some(name), Some(bits), resources)
}

/// Returns the fingerprint of a text in either width.
pub(crate) fn fingerprint_text(profile: &simstore_text::Profile, width: Width, text: &str) -> Option<u128> {
    each_width!(width, type F => profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint.to_u128()))
}

fn fingerprint_texts<F: Fingerprint>(
    profile: &simstore_text::Profile,
    texts: &Texts,
    call: &Call,
) -> Result<PyArrowArray> {
    let fingerprints =
        map_texts(texts, call, |text| profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint))?;
    Ok(array_of(fingerprints.into_iter()))
}

/// Applies a function to each text, on all cores. Missing texts give `None`.
pub(crate) fn map_texts<T: Send>(
    texts: &Texts,
    call: &Call,
    make: impl Fn(&str) -> Option<T> + Sync,
) -> Result<Vec<Option<T>>> {
    call::in_parallel(call, texts.len(), TEXTS_PER_CANCEL_CHECK, |at| Ok(texts.get(at).and_then(&make)))
}

/// Returns the Jaccard similarity of two texts: the number of shingles in both, divided by the number of shingles in at least one.
///
/// A shingle is three successive words. A Han character or kana is a word; punctuation is ignored.
///
/// Parameters
/// ----------
/// text_a, text_b : str
/// profile : Profile, optional
///     The profile whose features are compared, instead of shingles.
///
/// Returns
/// -------
/// float
///     From 0 to 1. A text without features, such as "!!!", has similarity 1 to the same text and 0 to other
///     texts. Any two texts of white space have similarity 1.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> simstore.similarity("to be or not to be", "to be or not")
/// 0.5
#[pyfunction]
#[pyo3(signature = (text_a, text_b, *, profile=None))]
pub(crate) fn similarity(
    py: Python<'_>,
    text_a: &str,
    text_b: &str,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<f64> {
    let profile =
        profile.map_or_else(simstore_text::Profile::shingles, |profile| profile.get().inner.clone());
    call::detached(py, || Ok(jaccard(&profile.feature_set(text_a), &profile.feature_set(text_b))))
}

/// Returns the first bands of each text's MinHash signature. A band is 64 bits. Each bit is one bit of the minimum
/// of a hash function over the text's shingles. On average, a share of (1 - s) / 2 of the bits differ between two
/// texts of similarity s.
///
/// Parameters
/// ----------
/// texts : iterable of str or None
///     As for `Profile.fingerprints`.
/// count : int
///     Number of bands for each text, 1 to 8.
/// profile : Profile, optional
///     The profile whose features are used, instead of shingles.
///
/// Returns
/// -------
/// Array
///     n lists of ``count`` uint64; null for None and for texts of white space. ``to_numpy()`` has shape (n, count).
#[pyfunction]
#[pyo3(signature = (texts, count=8, *, profile=None))]
pub(crate) fn bands(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    #[pyo3(from_py_with = number_arguments::required_count)] count: usize,
    profile: Option<&Bound<'_, PyProfile>>,
) -> PyResult<PyArrowArray> {
    if !(1..=BANDS).contains(&count) {
        return Err(PyValueError::new_err(format!("count is {count}: expected 1 to {BANDS}")));
    }
    let texts = Texts::read(texts, "text")?;
    let profile =
        profile.map_or_else(simstore_text::Profile::shingles, |profile| profile.get().inner.clone());
    call::interruptible(py, |call| {
        let hasher = MinHasher::new(profile);
        let signatures =
            map_texts(&texts, call, |text| hasher.signature(text).map(|signature| signature.bands))?;
        let mut lists =
            FixedSizeListBuilder::new(UInt64Builder::with_capacity(signatures.len() * count), count as i32);
        for bands in &signatures {
            match bands {
                Some(bands) => lists.values().append_slice(&bands[..count]),
                None => lists.values().append_nulls(count),
            }
            lists.append(bands.is_some());
        }
        Ok(PyArrowArray::new(Arc::new(lists.finish())))
    })
}
