//! Threads of this crate's own, and pools of them: as many as the system lets start.
//!
//! Rayon panics where the threads of its global pool cannot be started, and a pool that could start only some gives up. So
//! threads are started first, and then a pool is made of those that there are.

use std::cell::Cell;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for its work. It ends without any when this is dropped.
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
        // It waits: nothing else ends it.
        let _ = self.work.send(Box::new(work));
        self.thread
    }

    fn end(self) {
        drop(self.work);
        let _ = self.thread.join();
    }
}

/// The process that something was made in. A process that is forked from it has no threads of its own but the one, and is to
/// leave alone what belongs to the other.
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

/// As many threads as wanted; one at least. Where there are fewer, half of them are given back, so that what needs a thread
/// after this finds one.
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

/// Has a pool take threads that have been started.
fn taking(mut threads: Vec<Ready>) -> impl FnMut(ThreadBuilder) -> io::Result<()> {
    move |worker| {
        let thread = threads.pop().ok_or_else(|| io::Error::other("more workers than threads"))?;
        thread.give(|| worker.run());
        Ok(())
    }
}

/// A pool with a thread for each core, or fewer where not so many can be started.
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

/// Does something on a pool of its own, which is there as long as it takes: for work that may have to wait, on which nothing else
/// is to wait.
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

/// Starts rayon's global pool, on which batches, joins and builds run unless they are called inside of another one: for a
/// `main` that must do with the threads that it gets. `wanted` is as many as there are cores by default. Where only some can be
/// started it has fewer; where none can, all is done by the calling thread, and other threads must not wait for the pool then.
/// Does nothing if the pool is there.
pub fn start_global_pool(wanted: Option<usize>) {
    match start("simstore", wanted.unwrap_or_else(usual)) {
        Ok(threads) => make_global(threads),
        // An error says that there is one already.
        Err(_) => drop(ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()),
    }
    STARTED.get_or_init(Process::this);
}

fn make_global(threads: Vec<Ready>) {
    let builder = ThreadPoolBuilder::new().num_threads(threads.len());
    // An error says that there is one already; the threads end then.
    drop(builder.spawn_handler(taking(threads)).build_global());
}

static STARTED: OnceLock<Process> = OnceLock::new();

/// A pool of a process that was forked from the one which started the global pool.
static OF_FORKED: Mutex<Option<(Process, Arc<ThreadPool>)>> = Mutex::new(None);

/// Does something that takes many threads, with those of this process: for programs that fork. A process that was forked from the
/// one that started the [global pool](ensure_pool) has none of its threads, and gets a pool of its own here.
///
/// # Errors
/// [`Error::Thread`] if not one thread can be started.
pub fn in_this_process<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    if STARTED.get().is_none_or(|process| process.is_here()) {
        return Ok(work());
    }
    let mut of_forked = OF_FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match &*of_forked {
        Some((process, pool)) if process.is_here() => Arc::clone(pool),
        _ => {
            let pool = Arc::new(pool("simstore")?);
            // What a parent has left there is its own.
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

/// Whether this thread is one of a pool that this process has started.
fn is_of_pool_here() -> bool {
    rayon::current_thread_index().is_some() && STARTED_IN.get().is_some_and(Process::is_here)
}

/// Makes sure that rayon has a pool to work on: where not all of its threads can be started it has fewer, instead of
/// panicking.
///
/// # Errors
/// [`Error::Thread`] if not one can be started, or if this process was forked from the one that started them
/// and this is not done [in a pool of its own](in_this_process).
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
