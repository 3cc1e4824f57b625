//! The function `evaluate` and its result.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, LargeStringArray, UInt32Array, UInt64Array};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use simstore_corpus::evaluate::{
    CurvePoint, EvaluateOptions, FalsePairs, PairOptions, ProfileCurve, evaluate as evaluate_pairs,
    labelled_pairs, labelled_rows,
};
use simstore_io::numbers::{format_count, format_count_of};

use crate::call;
use crate::dedup::one_or_many;
use crate::html::{escape, table_of_cells};
use crate::labelled_pairs::{PairSource, flatten_rows};
use crate::number_arguments;
use crate::profile::PyProfile;
use crate::table::PyTable;

/// The result of `evaluate`: near-duplicates found among labelled pairs at each distance. A *random pair* is a
/// pair of unrelated texts, drawn from the labelled pairs.
///
/// Attributes
/// ----------
/// points : Table
///     For each profile, a row for each distance k from 0 to 16 bits. Columns: profile, k; recall, precision, f1
///     (from 0 to 1); positives, negatives, random (numbers of pairs within k); alike (number of the random pairs
///     within k whose texts are alike); false_share (share of the random pairs that are within k and not alike);
///     false_pairs (number expected in the corpus; null if no false pair was seen), false_pairs_at_most (in that
///     case, the maximum with 95% confidence); recommended (whether k is the recommended distance).
/// profiles : Table
///     For each profile: profile; best (the k of the largest F1), f1 (at that k); recommended (k, or null);
///     positives, negatives, random (numbers of pairs); looked_at (number of random pairs whose texts were
///     compared); excluded (number of labelled pairs with a text without features); empty (number of texts without
///     features); too_few_random (whether there are too few random pairs for a recommendation).
/// similar : Table
///     For each requested value of ``similar``: similar, recall, precision, f1, positives, negatives, excluded
///     (number of labelled pairs with a text without shingles).
/// pairs : int
///     Number of labelled pairs.
/// positives : int
///     Number of positive pairs.
/// bad : int
///     Number of invalid pairs that were skipped.
/// bits : int
///     Width of the fingerprints.
/// documents : int
///     Number of documents in the corpus that a distance is recommended for.
/// alike_from : float
///     Random pairs with at least this similarity are alike.
#[pyclass(frozen, module = "simstore", name = "Evaluation")]
pub(crate) struct PyEvaluation {
    inner: simstore_corpus::evaluate::Evaluation,
}

#[pymethods]
impl PyEvaluation {
    #[getter]
    fn points(&self) -> PyResult<PyTable> {
        let all: Vec<(&ProfileCurve, &CurvePoint)> = self
            .inner
            .profiles
            .iter()
            .flat_map(|curve| curve.points.iter().map(move |point| (curve, point)))
            .collect();
        let counts = |count: fn(&CurvePoint) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(all.iter().map(|(_, point)| count(point))))
        };
        let shares = |share: &dyn Fn(&CurvePoint) -> Option<f64>| -> ArrayRef {
            Arc::new(all.iter().map(|(_, point)| share(point)).collect::<Float64Array>())
        };
        let recommended = |(curve, point): &(&ProfileCurve, &CurvePoint)| {
            Some(curve.recommended().is_some_and(|recommended| recommended.k == point.k))
        };
        let profiles = all.iter().map(|(curve, _)| &curve.profile);
        PyTable::from_columns(vec![
            ("profile", Arc::new(LargeStringArray::from_iter_values(profiles))),
            ("k", Arc::new(UInt32Array::from_iter_values(all.iter().map(|(_, point)| point.k)))),
            ("recall", shares(&|point| Some(point.recall))),
            ("precision", shares(&|point| point.precision)),
            ("f1", shares(&|point| Some(point.f1))),
            ("positives", counts(|point| point.positives)),
            ("negatives", counts(|point| point.negatives)),
            ("random", counts(|point| point.random)),
            ("alike", counts(|point| point.alike)),
            ("false_share", shares(&|point| point.false_share)),
            (
                "false_pairs",
                shares(&|point| match point.false_pairs? {
                    FalsePairs::Expected(count) => Some(count),
                    FalsePairs::AtMost(_) => None,
                }),
            ),
            (
                "false_pairs_at_most",
                shares(&|point| match point.false_pairs? {
                    FalsePairs::Expected(_) => None,
                    FalsePairs::AtMost(count) => Some(count),
                }),
            ),
            ("recommended", Arc::new(all.iter().map(recommended).collect::<BooleanArray>())),
        ])
    }

    #[getter]
    fn profiles(&self) -> PyResult<PyTable> {
        let curves = &self.inner.profiles;
        let counts = |count: fn(&ProfileCurve) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(curves.iter().map(count)))
        };
        let names = LargeStringArray::from_iter_values(curves.iter().map(|curve| &curve.profile));
        let recommended = curves.iter().map(|curve| curve.recommended().map(|point| point.k));
        let too_few = curves.iter().map(|curve| Some(curve.too_few_random));
        PyTable::from_columns(vec![
            ("profile", Arc::new(names)),
            ("best", Arc::new(UInt32Array::from_iter_values(curves.iter().map(|curve| curve.best)))),
            ("f1", Arc::new(Float64Array::from_iter_values(curves.iter().map(|curve| curve.best().f1)))),
            ("recommended", Arc::new(recommended.collect::<UInt32Array>())),
            ("positives", counts(|curve| curve.positives)),
            ("negatives", counts(|curve| curve.negatives)),
            ("random", counts(|curve| curve.random)),
            ("looked_at", counts(|curve| curve.verified)),
            ("excluded", counts(|curve| curve.excluded)),
            ("empty", counts(|curve| curve.empty)),
            ("too_few_random", Arc::new(too_few.collect::<BooleanArray>())),
        ])
    }

    #[getter]
    fn similar(&self) -> PyResult<PyTable> {
        let points = &self.inner.similar;
        let shares = |share: fn(&simstore_corpus::evaluate::SimilarityPoint) -> Option<f64>| -> ArrayRef {
            Arc::new(points.iter().map(share).collect::<Float64Array>())
        };
        let counts = |count: fn(&simstore_corpus::evaluate::SimilarityPoint) -> u64| -> ArrayRef {
            Arc::new(UInt64Array::from_iter_values(points.iter().map(count)))
        };
        PyTable::from_columns(vec![
            ("similar", shares(|point| Some(point.similar))),
            ("recall", shares(|point| Some(point.recall))),
            ("precision", shares(|point| point.precision)),
            ("f1", shares(|point| Some(point.f1))),
            ("positives", counts(|point| point.positives)),
            ("negatives", counts(|point| point.negatives)),
            ("excluded", counts(|point| point.excluded)),
        ])
    }

    /// A dict of the distance with the largest F1 for each profile.
    #[getter]
    fn best<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let best = PyDict::new(py);
        for curve in &self.inner.profiles {
            best.set_item(&curve.profile, curve.best)?;
        }
        Ok(best)
    }

    /// A dict of the recommended distance for each profile. The distance is None if F1 is below 0.8, or if there
    /// are too few random pairs (pairs of unrelated texts) for a recommendation.
    #[getter]
    fn recommended<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let recommended = PyDict::new(py);
        for curve in &self.inner.profiles {
            recommended.set_item(&curve.profile, curve.recommended().map(|point| point.k))?;
        }
        Ok(recommended)
    }

    #[getter]
    fn pairs(&self) -> u64 {
        self.inner.pairs
    }

    #[getter]
    fn positives(&self) -> u64 {
        self.inner.positives
    }

    #[getter]
    fn bad(&self) -> u64 {
        self.inner.malformed
    }

    #[getter]
    fn bits(&self) -> u32 {
        self.inner.bits
    }

    #[getter]
    fn documents(&self) -> u64 {
        self.inner.documents
    }

    #[getter]
    fn alike_from(&self) -> f64 {
        self.inner.alike_from
    }

    /// Draws recall, precision and F1 against the Hamming distance k. Returns the picture as SVG text.
    fn to_svg(&self) -> PyResult<String> {
        let mut svg = Vec::new();
        // Writing to memory does not fail.
        self.inner.draw_svg(&mut svg)?;
        String::from_utf8(svg).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// Draws recall, precision and F1 against the Hamming distance k; needs matplotlib.
    ///
    /// Parameters
    /// ----------
    /// ax : matplotlib.axes.Axes, optional
    ///     The axes to draw on; a new figure by default.
    ///
    /// Returns
    /// -------
    /// matplotlib.axes.Axes
    #[pyo3(signature = (ax=None))]
    fn plot<'py>(slf: &Bound<'py, Self>, ax: Option<&Bound<'py, PyAny>>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("simstore._plot")?.call_method1("plot", (slf, ax))
    }

    /// Returns all numbers as a JSON object in a str.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.inner).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let make = py.import("simstore._simstore")?.getattr("_evaluation")?;
        Ok((make, (self.to_json()?,)))
    }

    fn __repr__(&self) -> String {
        let of_profile = |curve: &ProfileCurve| match curve.recommended() {
            Some(point) => format!("{}: k = {} recommended, F1 {:.3}", curve.profile, point.k, point.f1),
            None => format!("{}: best k = {}, F1 {:.3}", curve.profile, curve.best, curve.best().f1),
        };
        let profiles: Vec<String> = self.inner.profiles.iter().map(of_profile).collect();
        format!(
            "Evaluation({}, {} positive; {})",
            format_count_of(self.inner.pairs, "pair"),
            format_count(self.inner.positives),
            profiles.join("; ")
        )
    }

    fn _repr_html_(&self) -> PyResult<String> {
        let percent = |share: f64| format!("{:.2}%", share * 100.0);
        let row = |curve: &ProfileCurve| {
            let (best, is_recommended) = (curve.best(), curve.recommended().is_some());
            let k = format!("{}{}", best.k, if is_recommended { " (recommended)" } else { "" });
            let precision = best.precision.map_or_else(|| "-".to_owned(), percent);
            [escape(&curve.profile), k, percent(best.recall), precision, percent(best.f1)]
        };
        let names = ["profile", "k", "recall", "precision", "F1"];
        Ok(table_of_cells(&names, "th", self.inner.profiles.iter().map(row)) + &self.to_svg()?)
    }
}

/// Restores a pickled evaluation.
#[pyfunction]
pub(crate) fn _evaluation(json: &str) -> PyResult<PyEvaluation> {
    let inner = serde_json::from_str(json).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(PyEvaluation { inner })
}

/// Measures recall and precision of each distance on labelled pairs of texts, and estimates the number of false pairs in a corpus.
///
/// Recall at distance k is the share of positive pairs whose fingerprints differ in at most k bits. Precision is
/// the share of positive pairs among all pairs within k in a corpus of ``documents`` documents. In this corpus,
/// each document forms a labelled pair with one document, and a random pair (a pair of unrelated texts) with each
/// of the others. F1 is the harmonic mean of recall and precision.
///
/// Parameters
/// ----------
/// pairs : path, list of paths, frame, Arrow table or stream, or iterable of dicts or tuples
///     Files of JSON lines; rows with the fields text_a, text_b and optionally label; or tuples (text_a, text_b, label). Without labels,
///     all pairs are positive.
/// profiles : Profile, str, or list of them, optional
///     The profiles that turn texts into fingerprints. Each profile is evaluated separately.
/// bits : {64, 128}
///     Width of the fingerprints.
/// documents : int
///     Number of documents in the corpus that a distance is recommended for.
/// alike_from : float
///     Random pairs of texts with at least this similarity, from 0 to 1, are alike and do not count as false.
/// similar : float or list of float, optional
///     Thresholds of text similarity. Their recall and precision are measured too, for comparison with the distances.
/// text_a, text_b, label : str, optional
///     The names of the fields: by default text_a or text_old, text_b or text_new, label.
/// positive_from : float, optional
///     The smallest label of a positive pair. If given, labels must be numbers.
/// skip_bad : bool
///     Whether invalid pairs are skipped and counted, with a warning for each, instead of ending the call.
/// progress : callable or bool, optional
///     A callable receives a `Progress` from time to time; True shows bars of tqdm.
///
/// Returns
/// -------
/// Evaluation
///
/// Examples
/// --------
/// >>> import simstore
/// >>> text = "To be, or not to be, that is the question"
/// >>> other = "The slings and arrows of outrageous fortune"
/// >>> evaluation = simstore.evaluate([(text, text + "!", True), (text, other, False)], profiles="words-1", documents=2)
/// >>> evaluation.best
/// {'words-1': 0}
#[pyfunction]
#[pyo3(signature = (
    pairs, *, profiles=None, bits=64, documents=1_000_000, alike_from=0.8, similar=None, text_a=None, text_b=None,
    label=None, positive_from=None, skip_bad=false, progress=None,
))]
#[expect(clippy::too_many_arguments, reason = "they are the options of the command line")]
pub(crate) fn evaluate(
    py: Python<'_>,
    pairs: &Bound<'_, PyAny>,
    profiles: Option<&Bound<'_, PyAny>>,
    #[pyo3(from_py_with = number_arguments::required_bits)] bits: u32,
    #[pyo3(from_py_with = number_arguments::required_documents)] documents: u64,
    alike_from: f64,
    similar: Option<&Bound<'_, PyAny>>,
    text_a: Option<String>,
    text_b: Option<String>,
    label: Option<String>,
    positive_from: Option<f64>,
    skip_bad: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyEvaluation> {
    let profiles = match profiles.filter(|profiles| !profiles.is_none()) {
        None => Vec::new(),
        Some(one) if one.is_instance_of::<PyString>() || one.is_instance_of::<PyProfile>() => {
            vec![profile_of(py, one)?]
        }
        Some(several) => {
            several.try_iter()?.map(|one| profile_of(py, &one?)).collect::<PyResult<Vec<_>>>()?
        }
    };
    let similar = similar.map(one_or_many::<f64>).transpose()?.unwrap_or_default();
    let options =
        EvaluateOptions { profiles, bits, documents, alike_from, similar, skip_malformed: skip_bad };
    let fields = PairOptions { text_a, text_b, label_field: label, positive_from, ..PairOptions::default() };
    let source = PairSource::read(pairs, &fields)?;
    let inner = call::with_progress(py, progress, |call| match source {
        PairSource::Paths(paths) => evaluate_pairs(labelled_pairs(&paths, &fields), &options, &**call),
        PairSource::Rows(rows) => {
            evaluate_pairs(labelled_rows(flatten_rows(rows, call), &fields), &options, &**call)
        }
    })?;
    Ok(PyEvaluation { inner })
}

fn profile_of(py: Python<'_>, object: &Bound<'_, PyAny>) -> PyResult<simstore_text::Profile> {
    if let Ok(name) = object.extract::<&str>() {
        return call::detached(py, || name.parse());
    }
    match object.cast::<PyProfile>() {
        Ok(profile) => Ok(profile.get().inner.clone()),
        Err(_) => {
            let found = object.get_type().name()?;
            Err(PyTypeError::new_err(format!("expected a simstore.Profile or its name, found {found}")))
        }
    }
}
