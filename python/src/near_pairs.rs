//! Iterator over the near pairs of a place: one part of one table of a join (see `JoinParts`). A thread finds the
//! pairs while Python reads them.

use std::ops::ControlFlow;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_array::{ArrayRef, UInt8Array};
use pyo3::prelude::*;
use simstore::join::{FingerprintPair, JoinParts};
use simstore::threads::{in_own_pool, in_this_process};
use simstore::{Error, Fingerprint, Result};

use crate::call;
use crate::fingerprints::array_of;
use crate::panics::catch_panic;
use crate::reentrancy::Exclusive;
use crate::table::PyTable;

/// Maximum number of finished batches that wait in the channel.
const PAIR_BATCH_QUEUE_MAX: usize = 2;
/// Minimum number of pairs in a batch, except for the last batch.
const PAIR_BATCH: usize = 1 << 16;

/// The columns of a batch of pairs, each with its name.
type PairColumns = Vec<(&'static str, ArrayRef)>;

/// Finds the pairs in one part of a table of the join, and sends them in batches. Stops early if the receiver is
/// dropped.
///
/// Each fingerprint in `repeated` occurs several times and is also paired with itself.
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
        let full_batch = std::mem::take(&mut *waiting);
        drop(waiting);
        match sender.send(Ok(pair_columns(&full_batch))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    // A separate thread pool: its threads block on the channel, and must not block other calls.
    let join = || parts.join(table, fingerprints, visit);
    // A panic becomes an error, so that it does not look like the end of the pairs.
    let joined = catch_panic(|| in_this_process(|| in_own_pool("simstore join", join)).flatten().flatten());
    let last = match joined {
        Ok(()) => Ok(pair_columns(&waiting.into_inner().unwrap_or_else(PoisonError::into_inner))),
        Err(error) => Err(error),
    };
    // Sending fails if the receiver was dropped.
    let _ = sender.send(last);
}

/// Iterates over the near pairs in one part of a table of a join; made by `JoinParts.pairs`.
#[pyclass(frozen, module = "simstore", name = "NearPairs")]
pub(crate) struct PyNearPairs {
    receiver: Exclusive<Receiver<Result<PairColumns>>>,
}

impl PyNearPairs {
    /// Starts `work` in a new thread. `work` sends batches of pairs to the returned iterator.
    pub(crate) fn spawn(
        py: Python<'_>,
        work: impl FnOnce(&SyncSender<Result<PairColumns>>) + Send + 'static,
    ) -> PyResult<PyNearPairs> {
        let (sender, receiver) = mpsc::sync_channel(PAIR_BATCH_QUEUE_MAX);
        let start = || {
            std::thread::Builder::new()
                .name("simstore join".to_owned())
                .spawn(move || work(&sender))
                .map_err(|source| Error::Thread { source })
        };
        call::detached(py, || start().map(drop))?;
        Ok(PyNearPairs { receiver: Exclusive::new(receiver) })
    }
}

#[pymethods]
impl PyNearPairs {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyTable>> {
        /// Interval at which a wait for the next batch checks for interruption.
        const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
        let take = |receiver: &mut Receiver<Result<PairColumns>>| {
            call::interruptible(py, move |call| {
                loop {
                    match receiver.recv_timeout(SIGNAL_CHECK_INTERVAL) {
                        Ok(found) => return found.map(Some),
                        Err(RecvTimeoutError::Disconnected) => return Ok(None),
                        Err(RecvTimeoutError::Timeout) => call.check()?,
                    }
                }
            })
        };
        self.receiver.with(py, "next", take)?.map(PyTable::from_columns).transpose()
    }
}

fn pair_columns<F: Fingerprint>(pairs: &[FingerprintPair<F>]) -> PairColumns {
    let fingerprints =
        |field: fn(&FingerprintPair<F>) -> F| array_of(pairs.iter().map(|pair| Some(field(pair)))).values;
    let distance = UInt8Array::from_iter_values(pairs.iter().map(|pair| pair.distance as u8));
    vec![
        ("a", fingerprints(|pair| pair.a)),
        ("b", fingerprints(|pair| pair.b)),
        ("distance", Arc::new(distance)),
    ]
}
