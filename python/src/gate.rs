//! The gate that calls go through: it lets other Python threads run, notices Ctrl-C, tells how far a call has come, and makes
//! exceptions of errors.

use std::ffi::CString;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBool;
use simstore::progress::ProgressCallback;
use simstore::threads::in_this_process;
use simstore::{Error, Result};
use simstore_corpus::{Counts, InputKind, Notice, ReadNotes, Watch};

use crate::errors::{exception, said};
use crate::panics::{caught, caught_here};

/// How often a long call asks for signals, and tells how far it has come.
const ASKED_EVERY: Duration = Duration::from_millis(50);

/// What is malformed is told one by one up to so many in a step, and then only counted.
const MALFORMED_SHOWN: u64 = 10;

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
#[pyclass(frozen, module = "simstore")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Progress {
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
impl Progress {
    fn __repr__(&self) -> String {
        let total = self.total.map_or_else(String::new, |total| format!(", total={total}"));
        format!("Progress(step={:?}, count={}{total})", self.step, self.count)
    }
}

/// A call that is under way: what the libraries ask whether to go on, and tell how far they are.
pub(crate) struct Call {
    is_stopped: AtomicBool,
    /// The steps under way, the last one that was told of last.
    steps: Mutex<Vec<Progress>>,
    /// What is to be said, and whether it is a warning.
    notices: Mutex<Vec<(bool, String)>>,
    /// What there is to say of what was read, when that has ended.
    notes: Mutex<ReadNotes>,
    /// What was malformed in this step.
    malformed: Mutex<u64>,
    /// The exception of what the work has asked for.
    raised: Mutex<Option<PyErr>>,
    events: Sender<Event>,
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

    /// Does something with Python in the thread that called, which is the one that signals end, and that what belongs to one
    /// thread belongs to. Its exception ends the call.
    pub(crate) fn in_caller<T: Send + 'static>(
        &self,
        wanted: impl FnOnce(Python<'_>) -> PyResult<T> + Send + 'static,
    ) -> Result<T> {
        self.check()?;
        let (answer, answered) = mpsc::sync_channel(1);
        let asked = move |py: Python<'_>| drop(answer.send(caught_here(py, || wanted(py))));
        // Without an answer the call is at its end.
        self.events.send(Event::Asked(Box::new(asked))).map_err(|_| Error::Cancelled)?;
        match answered.recv() {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(raised)) => Err(self.raise(raised)),
            Err(_) => Err(Error::Cancelled),
        }
    }

    /// The error of work that ends by an exception of Python: the call raises it.
    pub(crate) fn raise(&self, raised: PyErr) -> Error {
        lock(&self.raised).get_or_insert(raised);
        Error::Cancelled
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
            call.step(step, progress.done, progress.total);
            call.go_on()
        })
    }

    /// Says something that is no failure.
    pub(crate) fn say(&self, notice: &Notice<'_>) {
        lock(&self.notices).push((notice.is_warning(), said(&notice.to_string())));
    }

    /// Warns of something when the call ends, or before.
    pub(crate) fn warn_of(&self, said: String) {
        lock(&self.notices).push((true, said));
    }

    /// Says what is to be known of a reading.
    pub(crate) fn say_counts(&self, counts: &Counts, kind: InputKind) {
        let notes = std::mem::take(&mut *lock(&self.notes));
        counts.notices(kind, notes).iter().for_each(|notice| self.say(notice));
    }

    /// Warns of what was said so far: where warnings are errors, the call ends here.
    pub(crate) fn warn(self: &Arc<Self>) -> Result<()> {
        let call = Arc::clone(self);
        self.in_caller(move |py| warn(py, &call))
    }

    /// Tells of a step of the engine, or of Python's side; a total of 0 is not known.
    pub(crate) fn step(&self, step: &str, count: u64, total: u64) {
        let total = Some(total).filter(|&total| total > 0);
        self.tell(Progress { step: step.to_owned(), count, total, bytes: 0, total_bytes: None });
    }
}

impl Watch for Call {
    fn progress(&self, progress: &simstore_corpus::Progress) -> ControlFlow<()> {
        let &simstore_corpus::Progress { what, count, bytes, total_bytes } = progress;
        self.tell(Progress { step: what.to_owned(), count, total: None, bytes, total_bytes });
        self.go_on()
    }

    fn done(&self, _: &'static str) {
        *lock(&self.malformed) = 0;
    }

    fn notice(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Malformed(error) => {
                let mut malformed = lock(&self.malformed);
                *malformed += 1;
                if *malformed <= MALFORMED_SHOWN {
                    lock(&self.notices).push((true, said(&error.to_string())));
                }
                if *malformed == MALFORMED_SHOWN + 1 {
                    let more = "further invalid documents are only counted";
                    lock(&self.notices).push((true, more.to_owned()));
                }
            }
            Notice::Read(note, count) => *lock(&self.notes).entry(*note).or_default() += count,
            notice => self.say(notice),
        }
    }

    fn wants_totals(&self) -> bool {
        self.wants_totals
    }
}

/// A call that takes a moment: other threads run meanwhile.
pub(crate) fn quick<T: Send>(py: Python<'_>, work: impl FnOnce() -> Result<T> + Send) -> PyResult<T> {
    py.detach(|| caught(work)).map_err(|error| exception(py, error))
}

/// A call that may take long: it is done by another thread, while this one asks for signals.
pub(crate) fn long<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    told(py, None, work)
}

/// The same, which tells how far it has come: a callable, or bars of tqdm for `True`.
pub(crate) fn told<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = Told::of(py, progress)?;
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
    // Bars are taken away whatever has happened.
    let closed = progress.map_or(Ok(()), |progress| progress.close(py));
    warn(py, &call)?;
    let result = result?;
    told.and(closed)?;
    Ok(result)
}

/// Does the work in another thread. This one asks for signals meanwhile, and does what the work asks for.
///
/// The error of the outside is Python's: somebody wants the call to end.
fn run<T: Send>(
    call: &Arc<Call>,
    received: &Receiver<Event>,
    progress: Option<&Told>,
    work: impl FnOnce(&Arc<Call>) -> Result<T> + Send,
) -> PyResult<Result<T>> {
    std::thread::scope(|scope| {
        let worker =
            std::thread::Builder::new().name("simstore call".to_owned()).spawn_scoped(scope, move || {
                let _ended = Ended(&call.events);
                caught(|| in_this_process(|| work(call)).flatten())
            });
        let worker = match worker {
            Ok(worker) => worker,
            Err(source) => return Ok(Err(Error::Thread { source })),
        };
        let mut stopped = None;
        let mut asked = Instant::now();
        loop {
            match received.recv_timeout(ASKED_EVERY.saturating_sub(asked.elapsed())) {
                Ok(Event::Ended) => break,
                // Whoever asked is told by its end.
                Ok(Event::Asked(wanted)) if stopped.is_some() => drop(wanted),
                Ok(Event::Asked(wanted)) => Python::attach(wanted),
                Err(_) => {}
            }
            if asked.elapsed() < ASKED_EVERY {
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
            // What was done all the same is done.
            (_, Some(error)) => Err(error),
            (Ok(result), None) => Ok(result),
            // Panics have become errors before.
            (Err(_), None) => Ok(Err(Error::Bug("a call has ended without a result".to_owned()))),
        }
    })
}

/// What the thread that called is to know.
enum Event {
    /// The work wants something of Python.
    Asked(Box<dyn FnOnce(Python<'_>) + Send>),
    /// The work has ended.
    Ended,
}

/// Says that the work has ended, also where it has panicked.
struct Ended<'a>(&'a Sender<Event>);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // Nobody listens only if the caller has panicked.
        let _ = self.0.send(Event::Ended);
    }
}

/// Who is told how far a call has come.
struct Told {
    callable: Py<PyAny>,
    /// Whether it is our own, which is closed in the end.
    is_bars: bool,
}

impl Told {
    /// What the argument `progress` asks for, in all calls: nothing, bars of tqdm, or a callable.
    fn of(py: Python<'_>, progress: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Told>> {
        let Some(progress) = progress.filter(|progress| !progress.is_none()) else { return Ok(None) };
        if let Ok(is_wanted) = progress.cast::<PyBool>() {
            if !is_wanted.is_true() {
                return Ok(None);
            }
            let bars = py.import("simstore._progress")?.getattr("Bars")?.call0()?;
            return Ok(Some(Told { callable: bars.unbind(), is_bars: true }));
        }
        if !progress.is_callable() {
            return Err(PyTypeError::new_err(format!(
                "progress: expected True, None or a callable that takes a simstore.Progress, found {}",
                progress.get_type().name()?
            )));
        }
        Ok(Some(Told { callable: progress.clone().unbind(), is_bars: false }))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        if self.is_bars { self.callable.call_method0(py, "close").map(drop) } else { Ok(()) }
    }
}

/// What is asked every now and then, and told.
fn ask(py: Python<'_>, call: &Call, progress: Option<&Told>) -> PyResult<()> {
    py.check_signals()?;
    warn(py, call)?;
    progress.map_or(Ok(()), |progress| tell(py, call, progress))
}

fn tell(py: Python<'_>, call: &Call, progress: &Told) -> PyResult<()> {
    let steps = std::mem::take(&mut *lock(&call.steps));
    steps.into_iter().try_for_each(|step| progress.callable.call1(py, (step,)).map(drop))
}

/// Says what a person should know: as Python's warnings, and what is only good to know to the log "simstore".
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

/// Warns of what may not be as it was meant.
pub(crate) fn warn_of(py: Python<'_>, said: &str) -> PyResult<()> {
    let category = py.import("simstore.errors")?.getattr("SimstoreWarning")?;
    let said = CString::new(said.replace('\0', " ")).unwrap_or_default();
    PyErr::warn(py, &category, &said, 1)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
