//! The function `compression`: compressed sizes of fingerprints.

use std::sync::Arc;

use arrow_array::{Float64Array, LargeStringArray, UInt64Array};
use pyo3::prelude::*;
use serde_json::json;
use simstore::each_width;
use simstore_corpus::ratio::{CompressionRatios, MethodSize, RatioOptions, compression_ratios};
use simstore_io::numbers::{format_count, format_count_of};

use crate::call;
use crate::fingerprints::FingerprintColumn;
use crate::html::table_of_cells;
use crate::number_arguments;
use crate::table::PyTable;

/// The compressed size of a set of fingerprints, for each codec and for other methods.
///
/// Attributes
/// ----------
/// fingerprints : int
///     Number of given fingerprints.
/// distinct : int
///     Number of distinct fingerprints.
/// floor : float
///     Lower bound for random fingerprints: the information-theoretic minimum, in bits for each distinct fingerprint. Real fingerprints
///     are clustered, so a codec can be smaller.
/// sizes : Table
///     A row for each method, the smallest first: method, bytes, bits_per_fingerprint, ratio_to_floor. The methods
///     "simstore ..." are codecs of a store. Their sizes are those of whole table files, with headers and checksums.
///     The other methods give no random access.
#[pyclass(frozen, module = "simstore", name = "Compression")]
pub(crate) struct PyCompression {
    fingerprints: u64,
    distinct: u64,
    floor: f64,
    sizes: Vec<SizeRow>,
}

/// A row of the table `sizes`: method, bytes, bits per fingerprint, ratio to the lower bound.
type SizeRow = (String, u64, f64, f64);

/// Fields of a pickled `Compression`.
type CompressionFields = (u64, u64, f64, Vec<SizeRow>);

/// Makes a `Compression` from its pickled fields.
#[pyfunction]
pub(crate) fn _compression(
    fingerprints: u64,
    distinct: u64,
    floor: f64,
    sizes: Vec<SizeRow>,
) -> PyCompression {
    PyCompression { fingerprints, distinct, floor, sizes }
}

impl From<CompressionRatios> for PyCompression {
    fn from(ratios: CompressionRatios) -> PyCompression {
        let CompressionRatios { fingerprints, distinct, floor, sizes } = ratios;
        let size = |size: &MethodSize| {
            (size.method.to_string(), size.bytes, size.bits_per_fingerprint, size.ratio_to_floor)
        };
        PyCompression { fingerprints, distinct, floor, sizes: sizes.iter().map(size).collect() }
    }
}

#[pymethods]
impl PyCompression {
    #[getter]
    fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    #[getter]
    fn distinct(&self) -> u64 {
        self.distinct
    }

    #[getter]
    fn floor(&self) -> f64 {
        self.floor
    }

    #[getter]
    fn sizes(&self) -> PyResult<PyTable> {
        let sizes = &self.sizes;
        let methods = LargeStringArray::from_iter_values(sizes.iter().map(|size| &size.0));
        let bytes = UInt64Array::from_iter_values(sizes.iter().map(|size| size.1));
        let bits = Float64Array::from_iter_values(sizes.iter().map(|size| size.2));
        let ratios = Float64Array::from_iter_values(sizes.iter().map(|size| size.3));
        PyTable::from_columns(vec![
            ("method", Arc::new(methods)),
            ("bytes", Arc::new(bytes)),
            ("bits_per_fingerprint", Arc::new(bits)),
            ("ratio_to_floor", Arc::new(ratios)),
        ])
    }

    /// Returns the numbers as a JSON object in a str.
    fn to_json(&self) -> String {
        let size = |(method, bytes, bits, ratio): &SizeRow| json!({"method": method, "bytes": bytes, "bits_per_fingerprint": bits, "ratio_to_floor": ratio});
        json!({
            "fingerprints": self.fingerprints,
            "distinct": self.distinct,
            "floor": self.floor,
            "sizes": self.sizes.iter().map(size).collect::<Vec<_>>(),
        })
        .to_string()
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, CompressionFields)> {
        let make = py.import("simstore._simstore")?.getattr("_compression")?;
        Ok((make, (self.fingerprints, self.distinct, self.floor, self.sizes.clone())))
    }

    fn __repr__(&self) -> String {
        let smallest = self.sizes.first();
        let smallest = smallest.map(|(method, _, bits, _)| format!("; {method}: {bits:.2}"));
        format!(
            "Compression({}, {} distinct; bits each: lower bound {:.2}{})",
            format_count_of(self.fingerprints, "fingerprint"),
            format_count(self.distinct),
            self.floor,
            smallest.unwrap_or_default()
        )
    }

    fn _repr_html_(&self) -> String {
        let row = |method: &str, bytes: String, bits: f64, ratio: f64| {
            (bits, [method.to_owned(), bytes, format!("{bits:.2}"), format!("{ratio:.3}")])
        };
        let mut rows = vec![row("lower bound (random)", String::new(), self.floor, 1.0)];
        rows.extend(self.sizes.iter().map(|size| row(&size.0, format_count(size.1), size.2, size.3)));
        rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rows = rows.into_iter().map(|(_, row)| row);
        table_of_cells(&["method", "bytes", "bits each", "/ bound"], "th", rows)
    }
}

/// Measures the compressed size of fingerprints, for each codec and for other methods.
///
/// Parameters
/// ----------
/// array : array of fingerprints
///     numpy uint64, Arrow uint64 or fixed_size_binary[16], or a list of ints, in any order; repeated fingerprints count once.
/// zstd_level : int
///     Compression level of zstd, 1 to 22.
/// block_size : int, optional
///     Block size of the codecs in bytes, a power of two from 256 to 65536. The default is as for a store.
/// progress : callable or bool, optional
///     A callable receives a `Progress` from time to time; True shows bars of tqdm.
///
/// Returns
/// -------
/// Compression
///
/// Examples
/// --------
/// >>> import numpy as np, simstore
/// >>> simstore.compression(np.arange(10_000, dtype=np.uint64) * 1_844_674_407_370_955).distinct
/// 10000
#[pyfunction]
#[pyo3(signature = (array, *, zstd_level=19, block_size=None, progress=None))]
pub(crate) fn compression(
    py: Python<'_>,
    array: &Bound<'_, PyAny>,
    zstd_level: i32,
    #[pyo3(from_py_with = number_arguments::block_size)] block_size: Option<u32>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCompression> {
    let values = FingerprintColumn::read_all(array, None)?;
    let options = RatioOptions { zstd_level, block_size };
    let mut ratios = call::with_progress(
        py,
        progress,
        |call| each_width!(values, values => compression_ratios(values, &options, &**call)),
    )?;
    ratios.sizes.sort_by_key(|size| size.bytes);
    Ok(ratios.into())
}
