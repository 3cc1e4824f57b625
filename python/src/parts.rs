//! A join in parts, for several machines: what each of them does.

use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, ListBuilder, UInt32Builder};
use arrow_array::{ArrayRef, UInt32Array};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::AnyWidth;
use simstore::join::{Bucket, Parts as Inner, Sent, Spread, bucketed, pack, spread};
use simstore::{Error, Fingerprint, Result, each_width};

use crate::array::Array;
use crate::fingerprints::Fingerprints;
use crate::gate;
use crate::near::{NearPairs, send_pairs};
use crate::numbers;
use crate::packed::{Rows, array_of_edges, unpacked};
use crate::table::Table;

/// A join as pieces of work of their own, for tasks on several machines.
///
/// At distance k there are k + 1 tables or more, each with some bits of its own. The fingerprints that agree in these are a part of
/// the table. Near ones are together in a part of some table, and count in the first such table. A *place* is one part of one table,
/// by number: ``table * parts + part``. `pack` is done wherever fingerprints are, `scatter` once for each bucket, `pairs` or `forest`
/// once for each place; what they make is sent on by whatever there is to send it. All may be done again: nothing is kept.
///
/// Parameters
/// ----------
/// distance : int
///     In bits, up to 16 of 64, 32 of 128.
/// parts : int
///     Parts of each table: a power of two up to 4096, or the next one.
/// bits : {64, 128}
///     Width of the fingerprints.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> parts = simstore.Parts(3, parts=2)
/// >>> packed = parts.pack([0b1111, 1 << 40, 0b0111, 0b1111])
/// >>> sent = parts.scatter(packed["fingerprints"], packed["repeated"])
/// >>> places = dict(zip(sent["place"].to_pylist(), range(len(sent))))
/// >>> pairs = []
/// >>> for place, row in places.items():
/// ...     for table in parts.pairs(place, sent["fingerprints"][row : row + 1], sent["repeated"][row : row + 1]):
/// ...         pairs += table.to_pylist()
/// >>> sorted(pairs, key=str)
/// [{'a': 15, 'b': 15, 'distance': 0}, {'a': 7, 'b': 15, 'distance': 1}]
#[pyclass(frozen, module = "simstore")]
#[derive(Clone)]
pub(crate) struct Parts {
    inner: AnyParts,
}

type AnyParts = AnyWidth<Inner<u64>, Inner<u128>>;

#[pymethods]
impl Parts {
    #[new]
    #[pyo3(signature = (distance=3, *, parts=1, bits=64))]
    fn with_parts(
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::required_distance)] distance: u32,
        #[pyo3(from_py_with = numbers::required_parts)] parts: usize,
        #[pyo3(from_py_with = numbers::required_bits)] bits: u32,
    ) -> PyResult<Parts> {
        let of = || {
            AnyParts::of_bits(
                bits,
                || Inner::with_parts(distance, parts),
                || Inner::with_parts(distance, parts),
            )
        };
        gate::quick(py, || Ok(Parts { inner: of()? }))
    }

    /// As few parts as let one of them be joined within so much memory. Few parts are less work.
    ///
    /// Parameters
    /// ----------
    /// count : int
    ///     How many different fingerprints there are, at most.
    /// distance : int
    /// memory : int or str
    ///     For one part, in bytes, or as "8G".
    /// bits : {64, 128}
    #[staticmethod]
    #[pyo3(signature = (count, distance=3, *, memory, bits=64))]
    fn choose(
        py: Python<'_>,
        #[pyo3(from_py_with = numbers::required_count)] count: usize,
        #[pyo3(from_py_with = numbers::required_distance)] distance: u32,
        #[pyo3(from_py_with = numbers::required_memory)] memory: u64,
        #[pyo3(from_py_with = numbers::required_bits)] bits: u32,
    ) -> PyResult<Parts> {
        let count = count as u64;
        let of = || {
            AnyParts::of_bits(
                bits,
                || Inner::choose(count, distance, memory),
                || Inner::choose(count, distance, memory),
            )
        };
        gate::quick(py, || Ok(Parts { inner: of()? }))
    }

    /// Width of the fingerprints, in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.inner.bits()
    }

    /// The most bits in which two near fingerprints differ.
    #[getter]
    fn distance(&self) -> u32 {
        each_width!(&self.inner, parts => parts.distance())
    }

    /// How many parts each table has.
    #[getter]
    fn parts(&self) -> usize {
        each_width!(&self.inner, parts => parts.parts())
    }

    /// How many tables there are: to so many places a fingerprint is sent.
    #[getter]
    fn tables(&self) -> usize {
        each_width!(&self.inner, parts => parts.tables())
    }

    /// Packs some of the fingerprints, each once, by buckets: equal ones of all tasks are in one bucket.
    ///
    /// Parameters
    /// ----------
    /// fingerprints : array_like, shape (n,)
    ///     As for `self_join`. Nulls are left out: they are near nothing.
    /// buckets : int
    ///     How many there are.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32, the bucket, from 0), fingerprints (binary, packed and ascending), and repeated (binary): those
    ///     that were there several times, null for none.
    #[pyo3(signature = (fingerprints, buckets=1))]
    fn pack(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = numbers::required_buckets)] buckets: u32,
    ) -> PyResult<Table> {
        if buckets == 0 {
            return Err(PyValueError::new_err("expected a bucket at least"));
        }
        let values = Fingerprints::read(fingerprints, Some(self.bits()))?.present().values;
        let sent =
            gate::long(py, |_| each_width!(values, values => sent_of(&bucketed(values, buckets as usize))))?;
        sent.finish()
    }

    /// Packs all of the fingerprints by buckets, and says where each was: for what goes with them.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, buckets
    ///     As for `pack`.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32), fingerprints (binary, packed), and positions (list of uint32): those of the fingerprints in the
    ///     array, in their order.
    #[pyo3(signature = (fingerprints, buckets=1))]
    fn spread(&self, py: Python<'_>, fingerprints: &Bound<'_, PyAny>, buckets: u32) -> PyResult<Table> {
        if buckets == 0 {
            return Err(PyValueError::new_err("expected a bucket at least"));
        }
        let present = Fingerprints::read(fingerprints, Some(self.bits()))?.present();
        let columns = gate::quick(py, || {
            Ok(each_width!(&present.values, values => {
                spread_columns(&spread(values, buckets as usize, |at| present.position(at) as u32))
            }))
        })?;
        Table::of_columns(columns)
    }

    /// Looks fingerprints up among those of a bucket.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, values : Arrow arrays of binary
    ///     Packed: those of the bucket, each there any number of times, and those that are looked for.
    ///
    /// Returns
    /// -------
    /// Array
    ///     A list of uint32 for each value: its positions in the bucket, ascending.
    fn look_up(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        values: &Bound<'_, PyAny>,
    ) -> PyResult<Array> {
        each_width!(&self.inner, type F => {
            let (stored, values) = (unpacked::<F>(fingerprints)?, unpacked(values)?);
            gate::quick(py, || looked_up(&stored, &values))
        })
    }

    /// Collapses what came to a bucket, and packs it once for each table, by places.
    ///
    /// Parameters
    /// ----------
    /// fingerprints, repeated : Arrow arrays of binary
    ///     The columns that `pack` has made, all values of a bucket.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns place (uint32), fingerprints (binary, packed), and repeated (binary) where the place is of the first table.
    fn scatter(
        &self,
        py: Python<'_>,
        fingerprints: &Bound<'_, PyAny>,
        repeated: &Bound<'_, PyAny>,
    ) -> PyResult<Table> {
        let sent = each_width!(&self.inner, parts => {
            let of = (unpacked(fingerprints)?, unpacked(repeated)?);
            gate::long(py, |_| scattered(parts, of.0, of.1))
        })?;
        sent.finish()
    }

    /// The pairs of a place, as they are found: of all places together each pair once, and for each fingerprint that was there
    /// several times the pair of it and itself.
    ///
    /// Parameters
    /// ----------
    /// place : int
    /// fingerprints, repeated : Arrow arrays of binary
    ///     The columns that `scatter` has made, all values of this place.
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
    ) -> PyResult<NearPairs> {
        each_width!(&self.inner, parts => {
            let (table, _) = gate::quick(py, || parts.of_place(place))?;
            let of = (parts.clone(), unpacked(fingerprints)?, unpacked(repeated)?);
            NearPairs::start(py, move |sender| send_pairs(&of.0, table, &of.1, &of.2, sender))
        })
    }

    /// What the pairs of a place connect: one edge fewer than members of each cluster, however many pairs there are.
    ///
    /// Parameters
    /// ----------
    /// place, fingerprints, repeated
    ///     As for `pairs`.
    ///
    /// Returns
    /// -------
    /// Array
    ///     Packed edges (binary), for `Forest.merge`. What was there several times has an edge with itself.
    fn forest(
        &self,
        py: Python<'_>,
        place: usize,
        fingerprints: &Bound<'_, PyAny>,
        repeated: &Bound<'_, PyAny>,
    ) -> PyResult<Array> {
        each_width!(&self.inner, parts => {
            let of = (unpacked(fingerprints)?, unpacked(repeated)?);
            gate::long(py, |call| edges_of(parts, place, of.0, &of.1, call))
        })
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (u32, usize, u32))> {
        let parts = slf.get();
        let made = slf.py().import("simstore")?.getattr("_simstore")?.getattr("_parts")?;
        Ok((made.unbind(), (parts.distance(), parts.parts(), parts.bits())))
    }

    fn __repr__(&self) -> String {
        let (tables, bits) = (self.tables(), self.bits());
        format!("Parts({}, parts={}, bits={bits}, tables={tables})", self.distance(), self.parts())
    }
}

/// Parts that were pickled.
#[pyfunction]
#[pyo3(name = "_parts")]
pub(crate) fn parts(py: Python<'_>, distance: u32, parts: usize, bits: u32) -> PyResult<Parts> {
    Parts::with_parts(py, distance, parts, bits)
}

fn sent_of<F: Fingerprint>(all: &[Sent<F>]) -> Result<Rows> {
    let mut rows = Rows::default();
    all.iter().try_for_each(|sent| rows.push(sent))?;
    Ok(rows)
}

fn spread_columns<F: Fingerprint>(all: &[Spread<F>]) -> Vec<(&'static str, ArrayRef)> {
    let (mut fingerprints, mut positions) = (BinaryBuilder::new(), ListBuilder::new(UInt32Builder::new()));
    for of in all {
        fingerprints.append_value(pack(&of.fingerprints));
        positions.values().append_slice(&of.positions);
        positions.append(true);
    }
    vec![
        ("place", Arc::new(UInt32Array::from_iter_values(all.iter().map(|of| of.place as u32)))),
        ("fingerprints", Arc::new(fingerprints.finish())),
        ("positions", Arc::new(positions.finish())),
    ]
}

fn looked_up<F: Fingerprint>(stored: &[F], values: &[F]) -> Result<Array> {
    let bucket = Bucket::new(stored)?;
    let mut positions = ListBuilder::new(UInt32Builder::new());
    // A list of Arrow has no room for more.
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
    Ok(Array::new(Arc::new(positions.finish())))
}

fn scattered<F: Fingerprint>(parts: &Inner<F>, fingerprints: Vec<F>, repeated: Vec<F>) -> Result<Rows> {
    let mut rows = Rows::default();
    parts.send(fingerprints, repeated, |sent| rows.push(&sent))?;
    Ok(rows)
}

fn edges_of<F: Fingerprint>(
    parts: &Inner<F>,
    place: usize,
    fingerprints: Vec<F>,
    repeated: &[F],
    call: &Arc<gate::Call>,
) -> Result<Array> {
    let edges = parts.edges(place, fingerprints, repeated, Some(&call.callback("pairs")))?;
    Ok(array_of_edges(&edges))
}
