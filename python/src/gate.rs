//! Runs the work of calls from Python: it lets other Python threads run, handles Ctrl-C, reports progress, and turns errors into
//! exceptions.

use std::ffi::CString;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use rayon::prelude::*;
use simstore::progress::ProgressCallback;
use simstore::threads::{ensure_pool, in_this_process, lock};
use simstore::{Error, Result};
use simstore_corpus::{InputCounts, InputKind, Diagnostic, ReadDiagnosticCounts, Observer};

use crate::errors::{exception, said};
use crate::panics::{caught, caught_here};

/// Interval at which a long call checks for signals and reports progress.
const SIGNAL_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Number of malformed documents that are reported one by one in a step; further ones are only counted.
const MALFORMED_REPORTED_MAX: u64 = 10;

/// The progress of one step of a long call.
///
/// Attributes
/// ----------
/// step : str
///     The name of the step, which is the thing counted: "documents", "fingerprints", "texts compared", ...
/// count : int
///     Number of things done.
/// total : int or None
///     Number of all things, if known.
/// bytes : int
///     Bytes read from input files.
/// total_bytes : int or None
///     Bytes of all input files, if known.
#[pyclass(frozen, module = "simstore", name = "Progress")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PyProgress {
    #[pyo3(get)]
    step: String,
    #[pyo3(get)]
    count: u64,
    #[pyo3(get)]
    total: Option<u64>,
    #[pyo3(get)]
    bytes: u64,
    #[pyo3(get)]
    total_bytes: Option<u64>,
}

#[pymethods]
impl PyProgress {
    fn __repr__(&self) -> String {
        let total = self.total.map_or_else(String::new, |total| format!(", total={total}"));
        format!("Progress(step={:?}, count={}{total})", self.step, self.count)
    }
}

/// A running call. The libraries report their progress to it, and ask it whether to go on.
pub(crate) struct Call {
    is_stopped: AtomicBool,
    /// Unreported progress, one entry per step; the most recently updated step is last.
    steps: Mutex<Vec<PyProgress>>,
    /// Pending messages; the flag marks warnings.
    notices: Mutex<Vec<(bool, String)>>,
    /// Counts of notes about the input, reported once reading has ended.
    notes: Mutex<ReadDiagnosticCounts>,
    /// Number of malformed documents in this step.
    malformed: Mutex<u64>,
    /// The first exception of Python code that the work ran.
    raised: Mutex<Option<PyErr>>,
    events: Sender<CallEvent>,
    wants_totals: bool,
}

impl Call {
    /// Returns `Break` once the call is stopped.
    pub(crate) fn go_on(&self) -> ControlFlow<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns [`Error::Cancelled`] once the call is stopped.
    pub(crate) fn check(&self) -> Result<()> {
        if self.go_on().is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Runs Python code in the calling thread, and returns its result. Signals interrupt that thread, and objects bound to one
    /// thread belong to it. An exception ends the call.
    pub(crate) fn in_caller<T: Send + 'static>(
        &self,
        wanted: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.check()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let asked = move |py: Python<'_>| drop(answer.send(caught_here(py, || wanted(py))));
        // If the message or the answer is lost, the call is ending.
        self.events.send(CallEvent::RunPython(Box::new(asked))).map_err(|_| Error::Cancelled)?;
        match answered.recv() {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(raised)) => Err(self.raise(raised)),
            Err(_) => Err(Error::Cancelled),
        }
    }

    /// Stores a Python exception, which the call raises at its end. Returns the error that ends the work.
    pub(crate) fn raise(&self, raised: PyErr) -> Error {
        lock(&self.raised).get_or_insert(raised);
        Error::Cancelled
    }

    fn report_progress(&self, told: PyProgress) {
        let mut steps = lock(&self.steps);
        steps.retain(|step| step.step != told.step);
        steps.push(told);
    }

    /// Returns a callback for a step of the engine: it reports progress and returns whether to go on.
    pub(crate) fn callback(self: &Arc<Self>, step: &'static str) -> ProgressCallback {
        let call = Arc::clone(self);
        ProgressCallback::new(move |progress| {
            call.step(step, progress.done, progress.total);
            call.go_on()
        })
    }

    /// Adds a notice to the pending messages.
    pub(crate) fn say(&self, notice: &Diagnostic<'_>) {
        lock(&self.notices).push((notice.is_warning(), said(&notice.to_string())));
    }

    /// Adds a warning to the pending messages.
    pub(crate) fn warn_of(&self, said: String) {
        lock(&self.notices).push((true, said));
    }

    /// Adds the notices about the input that was read.
    pub(crate) fn say_counts(&self, counts: &InputCounts, kind: InputKind) {
        let notes = std::mem::take(&mut *lock(&self.notes));
        counts.diagnostics(kind, notes).iter().for_each(|notice| self.say(notice));
    }

    /// Shows the pending messages now. If Python turns warnings into errors, the call ends here.
    pub(crate) fn warn(self: &Arc<Self>) -> Result<()> {
        let call = Arc::clone(self);
        self.in_caller(move |py| warn(py, &call))
    }

    /// Reports the progress of a step of the engine, or of the Python side. A total of 0 means unknown.
    pub(crate) fn step(&self, step: &str, count: u64, total: u64) {
        let total = Some(total).filter(|&total| total > 0);
        self.report_progress(PyProgress { step: step.to_owned(), count, total, bytes: 0, total_bytes: None });
    }
}

impl Observer for Call {
    fn progress(&self, progress: &simstore_corpus::StageProgress) -> ControlFlow<()> {
        let &simstore_corpus::StageProgress { stage: what, count, bytes, total_bytes } = progress;
        self.report_progress(PyProgress { step: what.to_owned(), count, total: None, bytes, total_bytes });
        self.go_on()
    }

    fn stage_ended(&self, _: &'static str) {
        *lock(&self.malformed) = 0;
    }

    fn diagnostic(&self, notice: &Diagnostic<'_>) {
        match notice {
            Diagnostic::Malformed(error) => {
                let mut malformed = lock(&self.malformed);
                *malformed += 1;
                if *malformed <= MALFORMED_REPORTED_MAX {
                    lock(&self.notices).push((true, said(&error.to_string())));
                }
                if *malformed == MALFORMED_REPORTED_MAX + 1 {
                    let more = "further invalid documents are only counted";
                    lock(&self.notices).push((true, more.to_owned()));
                }
            }
            Diagnostic::Read(note, count) => *lock(&self.notes).entry(*note).or_default() += count,
            notice => self.say(notice),
        }
    }

    fn wants_totals(&self) -> bool {
        self.wants_totals
    }
}

/// Runs a short call, while other Python threads may run.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| caught(work)).map_err(|error| exception(py, error))
}

/// Applies a function to the numbers below `count`, on all cores. Checks for interruption before each chunk.
pub(crate) fn in_parallel<T: Default + Send>(
    call: &Call,
    count: usize,
    chunk: usize,
    one: impl Fn(usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    ensure_pool()?;
    let mut done: Vec<T> = Vec::new();
    done.resize_with(count, T::default);
    done.par_chunks_mut(chunk).enumerate().try_for_each(|(at, done)| {
        call.check()?;
        (at * chunk..).zip(done).try_for_each(|(at, done)| one(at).map(|made| *done = made))
    })?;
    Ok(done)
}

/// Runs a long call in another thread, while this thread checks for signals.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    with_progress(py, None, work)
}

/// Runs a long call like [`interruptible`], and reports progress: to a callable, or to tqdm bars if `progress` is `True`.
pub(crate) fn with_progress<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = ProgressReceiver::of(py, progress)?;
    let (events, received) = mpsc::channel();
    let call = Arc::new(Call {
        is_stopped: AtomicBool::new(false),
        steps: Mutex::default(),
        notices: Mutex::default(),
        notes: Mutex::default(),
        malformed: Mutex::default(),
        raised: Mutex::default(),
        events,
        wants_totals: progress.is_some(),
    });
    let (asked, told) = (&call, progress.as_ref());
    let done = py.detach(move || {
        let received = received;
        run(asked, &received, told, work)
    });
    let result = match lock(&call.raised).take() {
        Some(raised) => Err(raised),
        None => done.and_then(|result| result.map_err(|error| exception(py, error))),
    };
    let told = match &progress {
        Some(progress) if result.is_ok() => tell(py, &call, progress),
        _ => Ok(()),
    };
    // Progress bars are closed after errors too.
    let closed = progress.map_or(Ok(()), |progress| progress.close(py));
    warn(py, &call)?;
    let result = result?;
    told.and(closed)?;
    Ok(result)
}

/// Runs the work in another thread. Meanwhile this thread checks for signals, and runs Python code that the work needs.
///
/// The outer error is a Python exception that stops the call, such as `KeyboardInterrupt`.
fn run<T: Send>(
    call: &Arc<Call>,
    received: &Receiver<CallEvent>,
    progress: Option<&ProgressReceiver>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<Result<T>> {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().name("simstore call".to_owned()).spawn_scoped(scope, move || {
                let _ended = EndNotifier(&call.events);
                caught(|| in_this_process(|| work(call)).flatten())
            });
        let worker = match worker {
            Ok(worker) => worker,
            Err(source) => return Ok(Err(Error::Thread { source })),
        };
        let mut stopped = None;
        let mut asked = Instant::now();
        loop {
            match received.recv_timeout(SIGNAL_CHECK_INTERVAL.saturating_sub(asked.elapsed())) {
                Ok(CallEvent::Ended) => break,
                // Dropping the request closes its answer channel, so the work gets `Error::Cancelled`.
                Ok(CallEvent::RunPython(wanted)) if stopped.is_some() => drop(wanted),
                Ok(CallEvent::RunPython(wanted)) => Python::attach(wanted),
                Err(_) => {}
            }
            if asked.elapsed() < SIGNAL_CHECK_INTERVAL {
                continue;
            }
            asked = Instant::now();
            if stopped.is_none()
                && let Err(error) = Python::attach(|py| caught_here(py, || ask(py, call, progress)))
            {
                call.is_stopped.store(true, Ordering::Relaxed);
                stopped = Some(error);
            }
        }
        match (worker.join(), stopped) {
            // The work may have completed nevertheless; it is not undone.
            (_, Some(error)) => Err(error),
            (Ok(result), None) => Ok(result),
            // `caught` has already turned panics into errors.
            (Err(_), None) => Ok(Err(Error::Bug("a call has ended without a result".to_owned()))),
        }
    })
}

/// A message to the calling thread.
enum CallEvent {
    /// Python code that the work needs.
    RunPython(Box<dyn FnOnce(Python<'_>) + Send>),
    /// The work has ended.
    Ended,
}

/// Sends [`CallEvent::EndNotifier`] when dropped, also after a panic.
struct EndNotifier<'a>(&'a Sender<CallEvent>);

impl Drop for EndNotifier<'_> {
    fn drop(&mut self) {
        // Sending fails only if the calling thread has panicked.
        let _ = self.0.send(CallEvent::Ended);
    }
}

/// Receiver of progress reports.
struct ProgressReceiver {
    callable: Py<PyAny>,
    /// Whether the callable is `simstore._progress.Bars`, which must be closed at the end.
    is_bars: bool,
}

impl ProgressReceiver {
    /// Parses the argument `progress` of all calls: nothing, `True` for tqdm bars, or a callable.
    fn of(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Option<ProgressReceiver>> {
        let Some(progress) = progress.filter(|progress| !progress.is_none()) else { return Ok(None) };
        if let Ok(is_wanted) = progress.cast::<PyBool>() {
            if !is_wanted.is_true() {
                return Ok(None);
            }
            let bars = py.import("simstore._progress")?.getattr("Bars")?.call0()?;
            return Ok(Some(ProgressReceiver { callable: bars.unbind(), is_bars: true }));
        }
        if !progress.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "progress: expected True, None or a callable that takes a simstore.Progress, found {}",
                progress.get_type().name()?
            )));
        }
        Ok(Some(ProgressReceiver { callable: progress.clone().unbind(), is_bars: false }))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_bars { self.callable.call_method0(py, "close").map(drop) } else { Ok(()) }
    }
}

/// Checks for signals, shows pending messages, and reports progress.
fn ask(py: Python<'_>, call: &Call, progress: Option<&ProgressReceiver>) -> PyResult<()> {
    py.check_signals()?;
    warn(py, call)?;
    progress.map_or(Ok(()), |progress| tell(py, call, progress))
}

fn tell(py: Python<'_>, call: &Call, progress: &ProgressReceiver) -> PyResult<()> {
    let steps = std::mem::take(&mut *lock(&call.steps));
    steps.into_iter().try_for_each(|step| progress.callable.call1(py, (step,)).map(drop))
}

/// Shows the pending messages: warnings as Python warnings, others in the log "simstore".
fn warn(py: Python<'_>, call: &Call) -> PyResult<()> {
    let notices = std::mem::take(&mut *lock(&call.notices));
    for (is_warning, said) in notices {
        if !is_warning {
            let log = py.import("logging")?.call_method1("getLogger", ("simstore",))?;
            log.call_method1("info", ("%s", said))?;
            continue;
        }
        warn_of(py, &said)?;
    }
    Ok(())
}

/// Issues a `SimstoreWarning`.
pub(crate) fn warn_of(py: Python<'_>, said: &str) -> PyResult<()> {
    let category = py.import("simstore.errors")?.getattr("SimstoreWarning")?;
    let said = CString::new(said.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &category, &said, 1)
}
