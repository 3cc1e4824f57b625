//! The gate that calls go through: it lets other Python threads run, notices Ctrl-C, tells how far a call has come, and makes
//! exceptions of errors.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use simstore::progress::ProgressCallback;
use simstore::threads::in_this_process;
use simstore::{Error, Result};
use simstore_corpus::{Notice, Watch};

use crate::errors::exception;

/// How often a long call asks for signals, and tells how far it has come.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// How far a step of a long call has come.
///
/// Attributes
/// ----------
/// step : str
///     What is counted: "documents", "fingerprints", "texts compared", ...
/// count : int
///     How many of them are done.
/// bytes : int
///     Bytes read of the input files, where files are read.
/// total_bytes : int or None
///     Bytes of all input files, where they are known.
#[pyclass(frozen, module = "simstore")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
    #[pyo3(get)]
    step: String,
    #[pyo3(get)]
    count: u64,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    total_bytes: Option<u64>,
}

#[pymethods]
impl Progress {
    fn __repr__(&self) -> String {
        format!("Progress(step={:?}, count={})", self.step, self.count)
    }
}

/// A call that is under way: what the libraries ask whether to go on, and tell how far they are.
#[derive(Debug, Default)]
pub(crate) struct Call {
    is_stopped: AtomicBool,
    /// The steps under way, the last one that was told of last.
    steps: Mutex<Vec<Progress>>,
    notices: Mutex<Vec<String>>,
    wants_totals: bool,
}

impl Call {
    /// What the engine is given to ask.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// The same, as an error.
    pub(crate) fn check(&self) -> Result<()> {
        if self.go_on().is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn tell(&self, told: Progress) {
        let mut steps = lock(&self.steps);
        steps.retain(|step| step.step != told.step);
        steps.push(told);
    }

    /// What the engine tells, and asks, in a step.
    pub(crate) fn callback(self: &Arc<Self>, step: &'static str) -> ProgressCallback {
        let call = Arc::clone(self);
        ProgressCallback::new(move |progress| {
            call.step(step, progress.done);
            call.go_on()
        })
    }

    /// Tells of a step of the engine, or of Python's side.
    pub(crate) fn step(&self, step: &str, count: u64) {
        self.tell(Progress { step: step.to_owned(), count, bytes: 0, total_bytes: None });
    }
}

impl Watch for Call {
    fn progress(&self, progress: &simstore_corpus::Progress) -> ControlFlow<()> {
        let &simstore_corpus::Progress { what, count, bytes, total_bytes } = progress;
        self.tell(Progress { step: what.to_owned(), count, bytes, total_bytes });
        self.go_on()
    }

    fn notice(&self, notice: &Notice<'_>) {
        lock(&self.notices).push(format!("{notice:?}"));
    }

    fn wants_totals(&self) -> bool {
        self.wants_totals
    }
}

/// A call that takes a moment: other threads run meanwhile.
pub(crate) fn quick<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(work).map_err(|error| exception(py, error))
}

/// A call that may take long: it is done by another thread, while this one asks for signals.
pub(crate) fn long<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    told(py, None, work)
}

/// The same, which tells a callable how far it has come.
pub(crate) fn told<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    let call = Arc::new(Call { wants_totals: progress.is_some(), ..Call::default() });
    let progress = progress.map(|progress| progress.clone().unbind());
    let done = py.detach(|| {
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(1);
            let call = &call;
            let worker =
                std::thread::Builder::new().name("simstore call".to_owned()).spawn_scoped(scope, move || {
                    // Nobody is left to take it only if this thread's caller has panicked.
                    let _ = sender.send(in_this_process(|| work(call)).and_then(|result| result));
                });
            let worker = match worker {
                Ok(worker) => worker,
                Err(source) => return Ok(Err(Error::Thread { source })),
            };
            let mut stopped = None;
            let result = loop {
                match receiver.recv_timeout(ASKED_EVERY) {
                    Ok(result) => break result,
                    Err(RecvTimeoutError::Timeout) if stopped.is_none() => {
                        if let Err(error) = Python::attach(|py| ask(py, call, progress.as_ref())) {
                            call.is_stopped.store(true, Ordering::Relaxed);
                            stopped = Some(error);
                        }
                    }
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => break Err(Error::Bug("a call has ended without a result".to_owned())),
                    },
                }
            };
            match stopped {
                // What was done all the same is done.
                Some(error) => Err(error),
                None => Ok(result),
            }
        })
    })?;
    let result = done.map_err(|error| exception(py, error));
    warn(py, &call)?;
    let result = result?;
    if let Some(progress) = progress {
        tell(py, &call, &progress)?;
    }
    Ok(result)
}

/// What is asked every now and then, and told.
fn ask(py: Python<'_>, call: &Call, progress: Option<&Py<PyAny>>) -> PyResult<()> {
    py.check_signals()?;
    warn(py, call)?;
    progress.map_or(Ok(()), |progress| tell(py, call, progress))
}

fn tell(py: Python<'_>, call: &Call, progress: &Py<PyAny>) -> PyResult<()> {
    let steps = std::mem::take(&mut *lock(&call.steps));
    steps.into_iter().try_for_each(|step| progress.call1(py, (step,)).map(drop))
}

/// Warns of what a person should know, as Python's warnings.
fn warn(py: Python<'_>, call: &Call) -> PyResult<()> {
    let notices = std::mem::take(&mut *lock(&call.notices));
    let category = py.get_type::<PyUserWarning>();
    notices.into_iter().try_for_each(|notice| {
        let notice = std::ffi::CString::new(notice.replace('\0', " ")).unwrap_or_default();
        PyErr::warn(py, &category, &notice, 1)
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
