//! The class `Forest`, which joins near pairs into clusters, and merges the clusters that several tasks found.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use simstore::any::{AnyFingerprints, AnyWidth, Width};
use simstore::join::Forest as EngineForest;
use simstore::{Fingerprint, each_width};

use crate::array::PyArrowArray;
use crate::call;
use crate::fingerprints::{FingerprintColumn, array_of, width_of};
use crate::packed_fingerprints::{edge_array, unpack_all};
use crate::table::PyTable;

/// Clusters of fingerprints: the connected components of pairs. A forest does not keep the pairs. For each cluster
/// it keeps edges that connect the members, one edge fewer than members.
///
/// Forests can be merged in any order, by any number of tasks: the result is the same.
///
/// Parameters
/// ----------
/// bits : {64, 128}
///     Width of the fingerprints, or of other values to connect.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> one, other = simstore.Forest(), simstore.Forest()
/// >>> one.connect([9, 1], [4, 2])
/// >>> other.connect([7], [9])
/// >>> one.merge(other.packed())
/// >>> one.edges().to_pylist()
/// [{'first': 1, 'member': 2}, {'first': 4, 'member': 7}, {'first': 4, 'member': 9}]
#[pyclass(frozen, module = "simstore", name = "Forest")]
pub(crate) struct PyForest {
    /// No Python code runs while this mutex is locked, so a wait for the mutex cannot deadlock with the GIL.
    inner: Mutex<AnyForest>,
    width: Width,
}

type AnyForest = AnyWidth<EngineForest<u64>, EngineForest<u128>>;

impl PyForest {
    fn lock(&self) -> MutexGuard<'_, AnyForest> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyForest {
    #[new]
    #[pyo3(signature = (bits=64))]
    fn new(py: Python<'_>, bits: u32) -> PyResult<PyForest> {
        let width = width_of(py, bits)?;
        Ok(PyForest {
            inner: Mutex::new(width.map(|()| EngineForest::new(), |()| EngineForest::new())),
            width,
        })
    }

    /// Width of the connected values, in bits.
    #[getter]
    fn bits(&self) -> u32 {
        self.width.bits()
    }

    /// Connects ``a[i]`` and ``b[i]`` for each i, and so merges their clusters. A fingerprint that is connected
    /// only with itself has a cluster of one member.
    ///
    /// Parameters
    /// ----------
    /// a, b : array_like, shape (n,)
    ///     Arrays of the same length, as for `self_join`, but without nulls.
    fn connect(&self, py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<()> {
        let bits = Some(self.bits());
        let (a, b) = (FingerprintColumn::read_all(a, bits)?, FingerprintColumn::read_all(b, bits)?);
        if a.len() != b.len() {
            return Err(PyValueError::new_err(format!("arrays of {} and {} fingerprints", a.len(), b.len())));
        }
        call::detached(py, || {
            let pairs = a.zip(b)?;
            each_width!(self.lock().as_mut().zip(pairs)?, (forest, (a, b)) => connect(forest, &a, &b));
            Ok(())
        })
    }

    /// Merges other forests into this one.
    ///
    /// Parameters
    /// ----------
    /// packed : Arrow array of binary
    ///     Results of `packed` or `JoinParts.forest`.
    fn merge(&self, py: Python<'_>, packed: &Bound<'_, PyAny>) -> PyResult<()> {
        let edges: AnyFingerprints = each_width!(self.width, type F => unpack_edges::<F>(packed)?.into());
        call::detached(py, || {
            each_width!(self.lock().as_mut().zip(edges)?, (forest, edges) => connect_edges(forest, &edges));
            Ok(())
        })
    }

    /// Returns the edges, packed for other tasks in binary values of about half a MiB each.
    ///
    /// Returns
    /// -------
    /// Array
    ///     Of type binary. Each edge is two fingerprints, little-endian.
    fn packed(&self, py: Python<'_>) -> PyResult<PyArrowArray> {
        call::detached(py, || Ok(each_width!(&mut *self.lock(), forest => edge_array(forest.edges()))))
    }

    /// Returns the clusters: each member except the first, with the first member of its cluster. A cluster of one member has this member
    /// in both columns.
    ///
    /// Returns
    /// -------
    /// Table
    ///     With columns first and member, sorted.
    fn edges(&self, py: Python<'_>) -> PyResult<PyTable> {
        let [first, member] = call::detached(py, || {
            Ok(each_width!(&mut *self.lock(), forest => edge_columns(forest.edges())))
        })?;
        PyTable::from_columns(vec![("first", first.values), ("member", member.values)])
    }

    fn __repr__(&self) -> String {
        format!("Forest(bits={})", self.bits())
    }
}

fn unpack_edges<F: Fingerprint>(packed: &Bound<'_, PyAny>) -> PyResult<Vec<F>> {
    let ends: Vec<F> = unpack_all(packed)?;
    if ends.len() % 2 == 1 {
        return Err(PyValueError::new_err("expected packed edges, of two fingerprints each"));
    }
    Ok(ends)
}

fn connect<F: Fingerprint>(forest: &mut EngineForest<F>, a: &[F], b: &[F]) {
    a.iter().zip(b).for_each(|(&a, &b)| forest.connect(a, b));
}

fn connect_edges<F: Fingerprint>(forest: &mut EngineForest<F>, ends: &[F]) {
    ends.chunks_exact(2).for_each(|edge| forest.connect(edge[0], edge[1]));
}

fn edge_columns<F: Fingerprint>(edges: &[(F, F)]) -> [PyArrowArray; 2] {
    [array_of(edges.iter().map(|edge| Some(edge.0))), array_of(edges.iter().map(|edge| Some(edge.1)))]
}
