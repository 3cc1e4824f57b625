//! Threads of this crate, and pools of as many threads as the system can start.
//!
//! Rayon panics if the threads of its global pool cannot be started, and its other pools fail if one thread cannot. Here the threads
//! start first, and then the pool takes the threads that did start.

use std::cell::Cell;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for work. It ends when this is dropped.
pub(crate) struct Ready {
    work: Sender<Work>,
    thread: JoinHandle<()>,
}

impl Ready {
    pub(crate) fn start(name: &str) -> Result<Ready> {
        let (work, given) = mpsc::channel::<Work>();
        let wait = move || {
            STARTED_IN.set(Some(Process::this()));
            if let Ok(work) = given.recv() {
                work();
            }
        };
        let thread = thread::Builder::new().name(name.to_string()).spawn(wait).map_err(not_started)?;
        Ok(Ready { work, thread })
    }

    pub(crate) fn give(self, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        // The thread still waits, so the send succeeds.
        let _ = self.work.send(Box::new(work));
        self.thread
    }

    fn end(self) {
        drop(self.work);
        let _ = self.thread.join();
    }
}

/// The process that created an object. A forked process has only the thread that forked, and must not touch the pools of its parent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Process(u32);

impl Process {
    pub(crate) fn this() -> Process {
        Process(std::process::id())
    }

    pub(crate) fn is_here(self) -> bool {
        std::process::id() == self.0
    }
}

/// The error of a thread that cannot be started.
pub(crate) fn not_started(error: io::Error) -> Error {
    Error::Thread { source: error }
}

/// Starts `wanted` threads, or at least one. If the system refuses some, half of the started threads end again, so that other code
/// can still start a thread.
fn start(name: &str, wanted: usize) -> Result<Vec<Ready>> {
    let mut threads = Vec::new();
    while threads.len() < wanted {
        match Ready::start(&format!("{name} {}", threads.len())) {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => return Err(error),
            Err(_) => {
                threads.drain(threads.len().div_ceil(2)..).for_each(Ready::end);
                break;
            }
        }
    }
    Ok(threads)
}

/// A spawn handler that gives a pool the started threads.
fn taking(mut threads: Vec<Ready>) -> impl FnMut(ThreadBuilder) -> io::Result<()> {
    move |worker| {
        let thread = threads.pop().ok_or_else(|| io::Error::other("more workers than threads"))?;
        thread.give(|| worker.run());
        Ok(())
    }
}

/// A pool with a thread for each core, or fewer if the system refuses some.
pub(crate) fn pool(name: &str) -> Result<ThreadPool> {
    let threads = start(name, usual())?;
    let builder = ThreadPoolBuilder::new().num_threads(threads.len());
    builder.spawn_handler(taking(threads)).build().map_err(|error| not_started(io::Error::other(error)))
}

/// Takes a lock, even if a thread has panicked while it held the lock. The panic itself continues in the thread that waits for the
/// panicked one.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a new pool, which ends with it. For work that may block: other pools go on.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started.
pub fn in_own_pool<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool(name)?.install(work))
}

/// As many threads as rayon would start.
pub(crate) fn usual() -> usize {
    let asked = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
    asked.filter(|&count| count > 0).unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Starts rayon's global pool with `wanted` threads, by default one for each core. Batches, joins and builds run on it, unless the
/// caller is inside another pool. If the system refuses some threads, the pool has fewer. If it refuses all, the calling thread does
/// all the work, and other threads must not wait for the pool. Does nothing if the pool exists.
pub fn start_global_pool(wanted: Option<usize>) {
    match start("simstore", wanted.unwrap_or_else(usual)) {
        Ok(threads) => make_global(threads),
        // It fails only if the pool exists.
        Err(_) => drop(ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()),
    }
    STARTED.get_or_init(Process::this);
}

fn make_global(threads: Vec<Ready>) {
    let builder = ThreadPoolBuilder::new().num_threads(threads.len());
    // It fails only if the pool exists; then the threads end.
    drop(builder.spawn_handler(taking(threads)).build_global());
}

static STARTED: OnceLock<Process> = OnceLock::new();

/// A pool of a process that was forked from the one which started the global pool.
static OF_FORKED: Mutex<Option<(Process, Arc<ThreadPool>)>> = Mutex::new(None);

/// Runs `work` with threads of this process: for programs that fork. A process that was forked after the start of the
/// [global pool](ensure_pool) has none of the pool's threads, and gets a new pool here.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started.
pub fn in_this_process<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    if STARTED.get().is_none_or(|process| process.is_here()) {
        return Ok(work());
    }
    let mut of_forked = OF_FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match &*of_forked {
        Some((process, pool)) if process.is_here() => Arc::clone(pool),
        _ => {
            let pool = Arc::new(pool("simstore")?);
            // A pool here belongs to the parent process, and cannot be dropped in this one.
            std::mem::forget(of_forked.replace((Process::this(), Arc::clone(&pool))));
            pool
        }
    };
    drop(of_forked);
    Ok(pool.install(work))
}

thread_local! {
    /// The process that started this thread, if it is one of this crate's.
    static STARTED_IN: Cell<Option<Process>> = const { Cell::new(None) };
}

/// Whether this thread belongs to a pool that this process has started.
fn is_of_pool_here() -> bool {
    rayon::current_thread_index().is_some() && STARTED_IN.get().is_some_and(Process::is_here)
}

/// Makes sure that rayon's global pool exists. If the system refuses some threads, the pool has fewer; rayon itself would panic.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started, or if this process was forked after the start of the pool
/// and the call is not inside [`in_this_process`].
pub fn ensure_pool() -> Result<()> {
    match STARTED.get() {
        Some(process) if process.is_here() => return Ok(()),
        Some(_) if is_of_pool_here() => return Ok(()),
        Some(_) => {
            let reason = "this process was forked from one that had started its threads, and has none of them; fork first";
            return Err(not_started(io::Error::other(reason)));
        }
        None if rayon::current_thread_index().is_some() => return Ok(()),
        None => {}
    }
    make_global(start("simstore", usual())?);
    STARTED.get_or_init(Process::this);
    Ok(())
}
