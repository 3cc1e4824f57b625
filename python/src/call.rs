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
use simstore_corpus::{Diagnostic, InputCounts, InputKind, Observer, ReadDiagnosticCounts};

use crate::errors::{exception, python_message};
use crate::panics::{catch_panic, catch_panic_in_python};

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

/// A running call from Python to this module. The Rust crates report progress to it, and poll it for cancellation.
pub(crate) struct Call {
    is_stopped: AtomicBool,
    /// Unreported progress, one entry per step; the most recently updated step is last.
    steps: Mutex<Vec<PyProgress>>,
    /// Pending messages; the flag marks warnings.
    messages: Mutex<Vec<(bool, String)>>,
    /// Counts of diagnostics about the input, reported after all input was read.
    read_diagnostics: Mutex<ReadDiagnosticCounts>,
    /// Number of malformed documents in the current step.
    malformed: Mutex<u64>,
    /// The first exception of Python code that the work ran.
    raised: Mutex<Option<PyErr>>,
    /// Channel to the thread that called from Python.
    caller: Sender<CallEvent>,
    /// Whether the total of each step is needed: true if the caller wants reports of the progress.
    wants_totals: bool,
}

impl Call {
    /// Returns `Break` if the call was stopped.
    pub(crate) fn control_flow(&self) -> ControlFlow<()> {
        if self.is_stopped.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    /// Returns [`Error::Cancelled`] if the call was stopped.
    pub(crate) fn check(&self) -> Result<()> {
        if self.control_flow().is_break() { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Runs Python code in the thread that called this module from Python, and returns its result. Only that thread
    /// handles signals, and can use objects that are bound to it. An exception ends the call.
    pub(crate) fn in_caller<T: Send + 'static>(
        &self,
        work: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.check()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let request = move |py: Python<'_>| drop(answer.send(catch_panic_in_python(py, || work(py))));
        // If the message or the answer is lost, the call is ending.
        self.caller.send(CallEvent::RunPython(Box::new(request))).map_err(|_| Error::Cancelled)?;
        match answered.recv() {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(raised)) => Err(self.raise(raised)),
            Err(_) => Err(Error::Cancelled),
        }
    }

    /// Stores a Python exception, which is raised when the call ends. Returns an error for the Rust code to return.
    pub(crate) fn raise(&self, raised: PyErr) -> Error {
        lock(&self.raised).get_or_insert(raised);
        Error::Cancelled
    }

    fn report_progress(&self, progress: PyProgress) {
        let mut steps = lock(&self.steps);
        steps.retain(|step| step.step != progress.step);
        steps.push(progress);
    }

    /// Returns a callback for a step of the engine. The callback reports progress, and returns `Break` if the call was stopped.
    pub(crate) fn callback(self: &Arc<Self>, step: &'static str) -> ProgressCallback {
        let call = Arc::clone(self);
        ProgressCallback::new(move |progress| {
            call.report_step(step, progress.done, progress.total);
            call.control_flow()
        })
    }

    /// Adds a diagnostic to the pending messages.
    pub(crate) fn push_diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        lock(&self.messages).push((diagnostic.is_warning(), python_message(&diagnostic.to_string())));
    }

    /// Adds a warning to the pending messages.
    pub(crate) fn push_warning(&self, message: String) {
        lock(&self.messages).push((true, message));
    }

    /// Adds the diagnostics about input that was read to its end, such as the number of skipped documents, to the
    /// pending messages.
    pub(crate) fn push_input_diagnostics(&self, counts: &InputCounts, kind: InputKind) {
        let notes = std::mem::take(&mut *lock(&self.read_diagnostics));
        counts.diagnostics(kind, notes).iter().for_each(|diagnostic| self.push_diagnostic(diagnostic));
    }

    /// Shows the pending messages now. If Python turns warnings into errors, the call ends here.
    pub(crate) fn show_messages(self: &Arc<Self>) -> Result<()> {
        let call = Arc::clone(self);
        self.in_caller(move |py| show_messages(py, &call))
    }

    /// Reports the progress of a step of the engine, or of the Python side. A total of 0 means unknown.
    pub(crate) fn report_step(&self, step: &str, count: u64, total: u64) {
        let total = Some(total).filter(|&total| total > 0);
        self.report_progress(PyProgress { step: step.to_owned(), count, total, bytes: 0, total_bytes: None });
    }
}

impl Observer for Call {
    fn progress(&self, progress: &simstore_corpus::StageProgress) -> ControlFlow<()> {
        let &simstore_corpus::StageProgress { stage: what, count, bytes, total_bytes } = progress;
        self.report_progress(PyProgress { step: what.to_owned(), count, total: None, bytes, total_bytes });
        self.control_flow()
    }

    fn stage_ended(&self, _: &'static str) {
        *lock(&self.malformed) = 0;
    }

    fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        match diagnostic {
            Diagnostic::Malformed(error) => {
                let mut malformed = lock(&self.malformed);
                *malformed += 1;
                if *malformed <= MALFORMED_REPORTED_MAX {
                    lock(&self.messages).push((true, python_message(&error.to_string())));
                }
                if *malformed == MALFORMED_REPORTED_MAX + 1 {
                    let more = "further invalid documents are only counted";
                    lock(&self.messages).push((true, more.to_owned()));
                }
            }
            Diagnostic::Read(note, count) => *lock(&self.read_diagnostics).entry(*note).or_default() += count,
            diagnostic => self.push_diagnostic(diagnostic),
        }
    }

    fn wants_totals(&self) -> bool {
        self.wants_totals
    }
}

/// Runs a short call without the GIL, so that other Python threads can run. The call cannot be interrupted.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| catch_panic(work)).map_err(|error| exception(py, error))
}

/// Applies a function to the numbers below `count`, on all cores. Checks for interruption before each chunk of `chunk` numbers.
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

/// Runs a long call in another thread, while this thread checks for signals. Ctrl-C stops the call.
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
    let progress = ProgressReceiver::from_argument(py, progress)?;
    let (caller, receiver) = mpsc::channel();
    let call = Arc::new(Call {
        is_stopped: AtomicBool::new(false),
        steps: Mutex::default(),
        messages: Mutex::default(),
        read_diagnostics: Mutex::default(),
        malformed: Mutex::default(),
        raised: Mutex::default(),
        caller,
        wants_totals: progress.is_some(),
    });
    let (running, progress_receiver) = (&call, progress.as_ref());
    let done = py.detach(move || {
        let receiver = receiver;
        run(running, &receiver, progress_receiver, work)
    });
    let result = match lock(&call.raised).take() {
        Some(raised) => Err(raised),
        None => done.and_then(|result| result.map_err(|error| exception(py, error))),
    };
    let reported = match &progress {
        Some(progress) if result.is_ok() => send_progress(py, &call, progress),
        _ => Ok(()),
    };
    // Progress bars are closed after errors too.
    let closed = progress.map_or(Ok(()), |progress| progress.close(py));
    show_messages(py, &call)?;
    let result = result?;
    reported.and(closed)?;
    Ok(result)
}

/// Runs the work in another thread. Meanwhile this thread checks for signals, and runs Python code that the work needs.
///
/// The outer error is a Python exception that stops the call, such as `KeyboardInterrupt`.
fn run<T: Send>(
    call: &Arc<Call>,
    receiver: &Receiver<CallEvent>,
    progress: Option<&ProgressReceiver>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<Result<T>> {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().name("simstore call".to_owned()).spawn_scoped(scope, move || {
                let _ended = EndNotifier(&call.caller);
                catch_panic(|| in_this_process(|| work(call)).flatten())
            });
        let worker = match worker {
            Ok(worker) => worker,
            Err(source) => return Ok(Err(Error::Thread { source })),
        };
        let mut stopped = None;
        let mut last_check = Instant::now();
        loop {
            match receiver.recv_timeout(SIGNAL_CHECK_INTERVAL.saturating_sub(last_check.elapsed())) {
                Ok(CallEvent::Ended) => break,
                // Dropping the request closes its answer channel, so the work gets `Error::Cancelled`.
                Ok(CallEvent::RunPython(request)) if stopped.is_some() => drop(request),
                Ok(CallEvent::RunPython(request)) => Python::attach(request),
                Err(_) => {}
            }
            if last_check.elapsed() < SIGNAL_CHECK_INTERVAL {
                continue;
            }
            last_check = Instant::now();
            if stopped.is_none()
                && let Err(error) =
                    Python::attach(|py| catch_panic_in_python(py, || check_caller(py, call, progress)))
            {
                call.is_stopped.store(true, Ordering::Relaxed);
                stopped = Some(error);
            }
        }
        match (worker.join(), stopped) {
            // The work may have completed nevertheless; it is not undone.
            (_, Some(error)) => Err(error),
            (Ok(result), None) => Ok(result),
            // `catch_panic` has already turned panics into errors.
            (Err(_), None) => Ok(Err(Error::Bug("a call has ended without a result".to_owned()))),
        }
    })
}

/// A message from the thread that does the work to the thread that called from Python.
enum CallEvent {
    /// Python code that the work needs.
    RunPython(Box<dyn FnOnce(Python<'_>) + Send>),
    /// The work has ended.
    Ended,
}

/// Sends [`CallEvent::Ended`] when dropped, also after a panic.
struct EndNotifier<'a>(&'a Sender<CallEvent>);

impl Drop for EndNotifier<'_> {
    fn drop(&mut self) {
        // Sending fails only if the calling thread has panicked.
        let _ = self.0.send(CallEvent::Ended);
    }
}

/// The Python callable that receives progress reports.
struct ProgressReceiver {
    callable: Py<PyAny>,
    /// Whether the callable is `simstore._progress.Bars`, which must be closed at the end.
    is_bars: bool,
}

impl ProgressReceiver {
    /// Parses the argument `progress` of all calls: `None`, `False`, `True` for tqdm bars, or a callable.
    fn from_argument(
        py: Python<'_>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<ProgressReceiver>> {
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
fn check_caller(py: Python<'_>, call: &Call, progress: Option<&ProgressReceiver>) -> PyResult<()> {
    py.check_signals()?;
    show_messages(py, call)?;
    progress.map_or(Ok(()), |progress| send_progress(py, call, progress))
}

fn send_progress(py: Python<'_>, call: &Call, progress: &ProgressReceiver) -> PyResult<()> {
    let steps = std::mem::take(&mut *lock(&call.steps));
    steps.into_iter().try_for_each(|step| progress.callable.call1(py, (step,)).map(drop))
}

/// Shows the pending messages: warnings as Python warnings, others through the Python logger "simstore".
fn show_messages(py: Python<'_>, call: &Call) -> PyResult<()> {
    let messages = std::mem::take(&mut *lock(&call.messages));
    for (is_warning, message) in messages {
        if !is_warning {
            let log = py.import("logging")?.call_method1("getLogger", ("simstore",))?;
            log.call_method1("info", ("%s", message))?;
            continue;
        }
        issue_warning(py, &message)?;
    }
    Ok(())
}

/// Issues a `SimstoreWarning`.
pub(crate) fn issue_warning(py: Python<'_>, message: &str) -> PyResult<()> {
    let category = py.import("simstore.errors")?.getattr("SimstoreWarning")?;
    let message = CString::new(message.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &category, &message, 1)
}
