//! The class `JoinParts`: a join split into tasks for several machines.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, UInt32Array};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::AnyWidth;
use simstore::join::{
    Bucket, FingerprintBatch, JoinParts as EngineParts, PositionedBatch, bucket_distinct, bucket_positions,
    pack,
};
use simstore::{Error, Fingerprint, Result, each_width};

use crate::array::PyArrowArray;
use crate::call;
use crate::fingerprints::FingerprintColumn;
use crate::near_pairs::{PyNearPairs, send_pairs};
use crate::number_arguments;
use crate::packed_fingerprints::{PlaceTableBuilder, edge_array, unpack_all};
use crate::table::PyTable;

/// A join split into independent tasks, for several machines.
///
/// At distance k there are at least k + 1 tables. Each table selects some bits, and fingerprints with the same
/// values of these bits form a part of the table. Two near fingerprints are in the same part of at least one
/// table, and only the first such table yields their pair. A *place* is one part of one table, with the number
/// ``table * parts + part``. A *bucket* has the fingerprints with the same value of a hash function. Call `pack`
/// on the fingerprints of each task, `scatter` once for each bucket, and `pairs` or `forest` once for each place.
/// The caller sends the results between tasks. All calls can be repeated: they keep no state.
///
/// Parameters
/// ----------
/// distance : int
///     In bits, up to 16 for 64-bit and 32 for 128-bit fingerprints.
/// parts : int
///     Parts of each table: a power of two up to 4096. Other numbers are rounded up.
/// bits : {64, 128}
///     Width of the fingerprints.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> parts = simstore.JoinParts(3, parts=2)
/// >>> packed = parts.pack([0b1111, 1 << 40, 0b0111, 0b1111])
/// >>> sent = parts.scatter(packed["fingerprints"], packed["repeated"])
/// >>> places = dict(zip(sent["place"].to_pylist(), range(len(sent))))
/// >>> pairs = []
/// >>> for place, row in places.items():
/// ...     for table in parts.pairs(place, sent["fingerprints"][row : row + 1], sent["repeated"][row : row + 1]):
/// ...         pairs += table.to_pylist()
/// >>> sorted(pairs, key=str)
/// [{'a': 15, 'b': 15, 'distance': 0}, {'a': 7, 'b': 15, 'distance': 1}]
#[pyclass(frozen, module = "simstore", name = "JoinParts")]
#[derive(Clone)]
pub(crate) struct PyJoinParts {
    inner: AnyJoinParts,
}

type AnyJoinParts = AnyWidth<EngineParts<u64>, EngineParts<u128>>;

#[pymethods]
impl PyJoinParts {
    #[new]
    #[pyo3(signature = (distance=3, *, parts=1, bits=64))]
    fn with_parts(
        py: Python<'_>,
        #[pyo3(from_py_with = number_arguments::required_distance)] distance: u32,
        #[pyo3(from_py_with = number_arguments::required_parts)] parts: usize,
        #[pyo3(from_py_with = number_arguments::required_bits)] bits: u32,
    ) -> PyResult<PyJoinParts> {
        let make = || {
            AnyJoinParts::with_bits(
                bits,
                || EngineParts::with_parts(distance, parts),
                || EngineParts::with_parts(distance, parts),
            )
        };
        call::detached(py, || Ok(PyJoinParts { inner: make()? }))
    }

    /// Chooses the smallest number of parts such that one part can be joined within ``memory``. Fewer parts mean less work.
    ///
    /// Parameters
    /// ----------
    /// count : int
    ///     The largest possible number of different fingerprints.
    /// distance : int
    /// memory : int or str
    ///     Memory for one part, in bytes, or as "8G".
    /// bits : {64, 128}
    #[staticmethod]
    #[pyo3(signature = (count, distance=3, *, memory, bits=64))]
    fn choose(
        py: Python<'_>,
        #[pyo3(from_py_with = number_arguments::required_count)] count: usize,
        #[pyo3(from_py_with = number_arguments::required_distance)] distance: u32,
        #[pyo3(from_py_with = number_arguments::required_memory)] memory: u64,
        #[pyo3(from_py_with = number_arguments::required_bits)] bits: u32,
    ) -> PyResult<PyJoinParts> {
        let count = count as u64;
        let make = || {
            AnyJoinParts::with_bits(
                bits,
                || EngineParts::choose(count, distance, memory),
                || EngineParts::choose(count, distance, memory),
            )
        };
        call::detached(py, || Ok(PyJoinParts { inner: make()? }))
    }

    /// Width of the fingerprints, in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.inner.bits()
    }

    /// The distance of the join, in bits.
    #[getter]
    fn distance(&self) -> u32 {
        each_width!(&self.inner, parts => parts.distance())
    }

    /// Number of parts in each table.
    #[getter]
    fn parts(&self) -> usize {
        each_width!(&self.inner, parts => parts.part_count())
    }

    /// Number of tables. Each fingerprint is in one part of each table.
    #[getter]
    fn tables(&self) -> usize {
        each_width!(&self.inner, parts => parts.table_count())
    }

    /// Groups fingerprints into buckets by a hash, and packs the distinct fingerprints of each bucket into one
    /// value. Equal fingerprints of all tasks are in the same bucket.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     As for `self_join`. Nulls are skipped: a null is near no fingerprint.
    /// buckets : int
    ///     Number of buckets.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32, the bucket, from 0), fingerprints (binary, packed and ascending), and repeated (binary): the
    ///     fingerprints that occur several times, or null.
    #[pyo3(signature = (fingerprints, buckets=1))]
    fn pack(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number_arguments::required_buckets)] buckets: u32,
    ) -> PyResult<PyTable> {
        if buckets == 0 {
            return Err(PyValueError::new_err("expected a bucket at least"));
        }
        let values = FingerprintColumn::read(fingerprints, Some(self.bits()))?.present().values;
        let sent = call::interruptible(
            py,
            |_| each_width!(values, values => packed_rows(&bucket_distinct(values, buckets as usize))),
        )?;
        sent.finish()
    }

    /// Groups fingerprints into buckets like `pack`, and packs the fingerprints of each bucket into one value, but
    /// keeps repeated fingerprints. Also returns the positions of the fingerprints, so that the caller can group
    /// other columns in the same way.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, buckets
    ///     As for `pack`.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32, the bucket, from 0), fingerprints (binary, packed), and positions (list of
    ///     uint32): positions of the fingerprints in the array, in the same order.
    #[pyo3(signature = (fingerprints, buckets=1))]
    fn spread(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>, buckets: u32) -> PyResult<PyTable> {
        if buckets == 0 {
            return Err(PyValueError::new_err("expected a bucket at least"));
        }
        let present = FingerprintColumn::read(fingerprints, Some(self.bits()))?.present();
        let columns = call::detached(py, || {
            Ok(each_width!(&present.values, values => {
                position_columns(&bucket_positions(values, buckets as usize, |at| present.position(at) as u32))
            }))
        })?;
        PyTable::from_columns(columns)
    }

    /// Looks up fingerprints among the fingerprints of a bucket, which are all fingerprints with the same value of
    /// a hash.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, values : Arrow arrays of binary
    ///     Packed fingerprints. ``fingerprints``: all fingerprints of the bucket, including repeated ones.
    ///     ``values``: the fingerprints to look up.
    ///
    /// Returns
    /// -------
    /// Array
    ///     For each fingerprint in ``values``, a list of uint32: its positions in ``fingerprints``, ascending.
    fn look_up(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<PyArrowArray> {
        each_width!(&self.inner, type F => {
            let (stored, values) = (unpack_all::<F>(fingerprints)?, unpack_all(values)?);
            call::detached(py, || look_up_positions(&stored, &values))
        })
    }

    /// Collapses equal fingerprints of a bucket, and packs each distinct fingerprint once for each table of the
    /// join. The result has a row for each place, which is one part of one table.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, repeated : Arrow arrays of binary
    ///     The columns of these names made by `pack`: all values of one bucket, from all tasks.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32), fingerprints (binary, packed), and repeated (binary): the fingerprints that occur several
    ///     times, only in places of the first table.
    fn scatter(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        repeated: &Bound<'_, PyAny>,
    ) -> PyResult<PyTable> {
        let sent = each_width!(&self.inner, parts => {
            let inputs = (unpack_all(fingerprints)?, unpack_all(repeated)?);
            call::interruptible(py, |_| scatter_to_places(parts, inputs.0, inputs.1))
        })?;
        sent.finish()
    }

    /// Yields the near pairs of a place (one part of one table of the join) as they are found. All places together
    /// yield each pair once. A fingerprint that occurs several times is also paired with itself.
    ///
    /// Parameters
    /// ----------
    /// place : int
    /// fingerprints, repeated : Arrow arrays of binary
    ///     The columns of these names made by `scatter`: all values of this place, from all tasks.
    ///
    /// Returns
    /// -------
    /// iterator of Table
    ///     With columns a and b (fingerprints, a <= b) and distance (uint8), in no order.
    fn pairs(
        &self,
        py: Python<'_>,
        place: usize,
        fingerprints: &Bound<'_, PyAny>,
        repeated: &Bound<'_, PyAny>,
    ) -> PyResult<PyNearPairs> {
        each_width!(&self.inner, parts => {
            let (table, _) = call::detached(py, || parts.table_and_part(place))?;
            let inputs = (parts.clone(), unpack_all(fingerprints)?, unpack_all(repeated)?);
            PyNearPairs::spawn(py, move |sender| send_pairs(&inputs.0, table, &inputs.1, &inputs.2, sender))
        })
    }

    /// Returns edges that connect the members of each cluster in a place, which is one part of one table of the
    /// join. A cluster has one edge fewer than members, however many pairs it has.
    ///
    /// Parameters
    /// ----------
    /// place, fingerprints, repeated
    ///     As for `pairs`.
    ///
    /// Returns
    /// -------
    /// Array
    ///     Packed edges (binary), for `Forest.merge`. A fingerprint that occurs several times has an edge to itself.
    fn forest(
        &self,
        py: Python<'_>,
        place: usize,
        fingerprints: &Bound<'_, PyAny>,
        repeated: &Bound<'_, PyAny>,
    ) -> PyResult<PyArrowArray> {
        each_width!(&self.inner, parts => {
            let inputs = (unpack_all(fingerprints)?, unpack_all(repeated)?);
            call::interruptible(py, |call| place_edges(parts, place, inputs.0, &inputs.1, call))
        })
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (u32, usize, u32))> {
        let parts = slf.get();
        let restore = slf.py().import("simstore")?.getattr("_simstore")?.getattr("_parts")?;
        Ok((restore.unbind(), (parts.distance(), parts.parts(), parts.bits())))
    }

    fn __repr__(&self) -> String {
        let (tables, bits) = (self.tables(), self.bits());
        format!("JoinParts({}, parts={}, bits={bits}, tables={tables})", self.distance(), self.parts())
    }
}

/// Restores a pickled `JoinParts`.
#[pyfunction]
#[pyo3(name = "_parts")]
pub(crate) fn restore_join_parts(
    py: Python<'_>,
    distance: u32,
    parts: usize,
    bits: u32,
) -> PyResult<PyJoinParts> {
    PyJoinParts::with_parts(py, distance, parts, bits)
}

fn packed_rows<F: Fingerprint>(all: &[FingerprintBatch<F>]) -> Result<PlaceTableBuilder> {
    let mut rows = PlaceTableBuilder::default();
    all.iter().try_for_each(|sent| rows.push(sent))?;
    Ok(rows)
}

fn position_columns<F: Fingerprint>(all: &[PositionedBatch<F>]) -> Vec<(&'static str, ArrayRef)> {
    let (mut fingerprints, mut positions) = (BinaryBuilder::new(), ListBuilder::new(UInt32Builder::new()));
    for batch in all {
        fingerprints.append_value(pack(&batch.fingerprints));
        positions.values().append_slice(&batch.positions);
        positions.append(true);
    }
    vec![
        ("place", Arc::new(UInt32Array::from_iter_values(all.iter().map(|batch| batch.place as u32)))),
        ("fingerprints", Arc::new(fingerprints.finish())),
        ("positions", Arc::new(positions.finish())),
    ]
}

fn look_up_positions<F: Fingerprint>(stored: &[F], values: &[F]) -> Result<PyArrowArray> {
    let bucket = Bucket::new(stored)?;
    let mut positions = ListBuilder::new(UInt32Builder::new());
    // Offsets of an Arrow list have 32 bits.
    let mut left = i32::MAX as usize;
    for &value in values {
        let found = bucket.positions(value);
        left = left.checked_sub(found.len()).ok_or_else(|| {
            Error::Refused(
                "more than 2,147,483,647 rows are near others in a bucket: take more buckets".to_owned(),
            )
        })?;
        found.for_each(|position| positions.values().append_value(position));
        positions.append(true);
    }
    Ok(PyArrowArray::new(Arc::new(positions.finish())))
}

fn scatter_to_places<F: Fingerprint>(
    parts: &EngineParts<F>,
    fingerprints: Vec<F>,
    repeated: Vec<F>,
) -> Result<PlaceTableBuilder> {
    let mut rows = PlaceTableBuilder::default();
    parts.distribute(fingerprints, repeated, |sent| rows.push(&sent))?;
    Ok(rows)
}

fn place_edges<F: Fingerprint>(
    parts: &EngineParts<F>,
    place: usize,
    fingerprints: Vec<F>,
    repeated: &[F],
    call: &Arc<call::Call>,
) -> Result<PyArrowArray> {
    let edges = parts.edges(place, fingerprints, repeated, Some(&call.callback("pairs")))?;
    Ok(edge_array(&edges))
}
