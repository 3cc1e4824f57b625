//! The pairs of a place, as they are found.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::{ArrayRef, UInt8Array};
use pyo3::prelude::*;
use simstore::join::{FingerprintPair, JoinParts};
use simstore::threads::{in_own_pool, in_this_process};
use simstore::{Error, Fingerprint, Result};

use crate::fingerprints::array_of;
use crate::gate;
use crate::panics::caught;
use crate::table::PyTable;
use crate::under_way::Exclusive;

/// Batches of pairs that wait for whoever reads them.
const PAIR_BATCH_QUEUE_MAX: usize = 2;
/// Pairs of a batch.
const PAIR_BATCH: usize = 1 << 16;

/// Columns of a batch.
type PairColumns = Vec<(&'static str, ArrayRef)>;

/// Finds pairs for as long as somebody takes them.
pub(crate) fn send_pairs<F: Fingerprint>(
    parts: &JoinParts<F>,
    table: usize,
    fingerprints: &[F],
    repeated: &[F],
    sender: &SyncSender<Result<PairColumns>>,
) {
    let equal = repeated.iter().map(|&one| FingerprintPair { a: one, b: one, distance: 0 }).collect();
    let waiting = Mutex::new(equal);
    let visit = |pairs: &[FingerprintPair<F>]| {
        let mut waiting: MutexGuard<'_, Vec<FingerprintPair<F>>> =
            waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend_from_slice(pairs);
        if waiting.len() < PAIR_BATCH {
            return ControlFlow::Continue(());
        }
        let many = std::mem::take(&mut *waiting);
        drop(waiting);
        match sender.send(Ok(columns_of(&many))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    // Of their own, as they wait for whoever takes the pairs: others must not wait for them.
    let join = || parts.join(table, fingerprints, visit);
    // A panic is not the end of the pairs.
    let joined = caught(|| in_this_process(|| in_own_pool("simstore join", join)).flatten().flatten());
    let last = match joined {
        Ok(()) => Ok(columns_of(&waiting.into_inner().unwrap_or_else(PoisonError::into_inner))),
        Err(error) => Err(error),
    };
    // Nobody may want it any more.
    let _ = sender.send(last);
}

/// Iterates over the pairs of a place; made by `JoinParts.pairs`.
#[pyclass(frozen, module = "simstore", name = "NearPairs")]
pub(crate) struct PyNearPairs {
    received: Exclusive<Receiver<Result<PairColumns>>>,
}

impl PyNearPairs {
    /// Starts the work that finds them, in a thread of its own.
    pub(crate) fn start(
        py: Python<'_>,
        work: impl FnOnce(&SyncSender<Result<PairColumns>>) + Send + 'static,
    ) -> PyResult<PyNearPairs> {
        let (sender, received) = mpsc::sync_channel(PAIR_BATCH_QUEUE_MAX);
        let start = || {
            std::thread::Builder::new()
                .name("simstore join".to_owned())
                .spawn(move || work(&sender))
                .map_err(|source| Error::Thread { source })
        };
        gate::detached(py, || start().map(drop))?;
        Ok(PyNearPairs { received: Exclusive::new(received) })
    }
}

#[pymethods]
impl PyNearPairs {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTable>> {
        /// How often it is asked whether to go on.
        const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
        let take = |received: &mut Receiver<Result<PairColumns>>| {
            gate::interruptible(py, move |call| {
                loop {
                    match received.recv_timeout(SIGNAL_CHECK_INTERVAL) {
                        Ok(found) => return found.map(Some),
                        Err(RecvTimeoutError::Disconnected) => return Ok(None),
                        Err(RecvTimeoutError::Timeout) => call.check()?,
                    }
                }
            })
        };
        self.received.with(py, "next", take)?.map(PyTable::of_columns).transpose()
    }
}

fn columns_of<F: Fingerprint>(pairs: &[FingerprintPair<F>]) -> PairColumns {
    let fingerprints = |of: fn(&FingerprintPair<F>) -> F| array_of(pairs.iter().map(|pair| Some(of(pair)))).values;
    let distance = UInt8Array::from_iter_values(pairs.iter().map(|pair| pair.distance as u8));
    vec![
        ("a", fingerprints(|pair| pair.a)),
        ("b", fingerprints(|pair| pair.b)),
        ("distance", Arc::new(distance)),
    ]
}
