//! Thread pools with as many threads as the system allows, and their state after a fork.
//!
//! Rayon panics if it cannot start the threads of its global pool. Its other pools fail if one thread cannot
//! be started. This module starts as many threads as the system allows, and then creates a pool on these threads.

use std::cell::Cell;
use std::io;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};

use rayon::{ThreadBuilder, ThreadPool, ThreadPoolBuilder};

use crate::error::{Error, Result};

type ThreadTask = Box<dyn FnOnce() + Send>;

/// A started thread that waits for a task. The thread runs one task and ends. If this value is dropped without a task,
/// the thread ends at once.
pub(crate) struct IdleThread {
    work: Sender<ThreadTask>,
    thread: JoinHandle<()>,
}

impl IdleThread {
    pub(crate) fn start_threads(name: &str) -> Result<IdleThread> {
        let (work, receiver) = mpsc::channel::<ThreadTask>();
        let wait = move || {
            THREAD_OWNER.set(Some(Process::this()));
            if let Ok(work) = receiver.recv() {
                work();
            }
        };
        let thread = thread::Builder::new().name(name.to_string()).spawn(wait).map_err(not_started)?;
        Ok(IdleThread { work, thread })
    }

    pub(crate) fn run(self, work: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
        // The thread still waits, so the send succeeds.
        let _ = self.work.send(Box::new(work));
        self.thread
    }

    fn stop(self) {
        drop(self.work);
        let _ = self.thread.join();
    }
}

/// Id of the process that created an object, such as a thread pool. A forked process gets a copy of the object, but of
/// all threads only the one that called fork. So a forked process must not use the pools of its parent.
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

/// Converts the operating system's error for a thread that could not be started to an [`Error::Thread`].
pub(crate) fn not_started(error: io::Error) -> Error {
    Error::Thread { source: error }
}

/// Starts `wanted` threads, or fewer if the system refuses some. After a refusal, half of the started threads end
/// again, so that other code can still start threads. Fails if no thread can be started.
fn start(name: &str, wanted: usize) -> Result<Vec<IdleThread>> {
    let mut threads = Vec::new();
    while threads.len() < wanted {
        match IdleThread::start_threads(&format!("{name} {}", threads.len())) {
            Ok(thread) => threads.push(thread),
            Err(error) if threads.is_empty() => return Err(error),
            Err(_) => {
                threads.drain(threads.len().div_ceil(2)..).for_each(IdleThread::stop);
                break;
            }
        }
    }
    Ok(threads)
}

/// Returns a spawn handler for a rayon pool. It runs each worker of the pool on one of `threads`.
fn spawn_on(mut threads: Vec<IdleThread>) -> impl FnMut(ThreadBuilder) -> io::Result<()> {
    move |worker| {
        let thread = threads.pop().ok_or_else(|| io::Error::other("more workers than threads"))?;
        thread.run(|| worker.run());
        Ok(())
    }
}

/// Creates a pool with [`default_count`] threads, or fewer if the system refuses threads.
pub(crate) fn pool(name: &str) -> Result<ThreadPool> {
    let threads = start(name, default_count())?;
    let builder = ThreadPoolBuilder::new().num_threads(threads.len());
    builder.spawn_handler(spawn_on(threads)).build().map_err(|error| not_started(io::Error::other(error)))
}

/// Locks a mutex, even if it is poisoned because a thread has panicked while it held the lock. The panic is not
/// lost: it continues in the thread that joins the panicked thread.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` on a new thread pool that ends afterwards. Use it for work that may block, so that this work does
/// not block the threads of another pool.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started.
pub fn in_own_pool<T: Send>(name: &str, work: impl FnOnce() -> T + Send) -> Result<T> {
    Ok(pool(name)?.install(work))
}

/// Number of threads that rayon would start by default: `RAYON_NUM_THREADS`, or the number of cores.
pub(crate) fn default_count() -> usize {
    let configured = std::env::var("RAYON_NUM_THREADS").ok().and_then(|count| count.parse().ok());
    configured
        .filter(|&count| count > 0)
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
}

/// Starts rayon's global pool with `wanted` threads; `None` means one thread per core, or `RAYON_NUM_THREADS` threads.
/// Does nothing if the pool exists.
///
/// Batches, joins and builds run on this pool, unless the caller is inside another pool. If the system
/// refuses some threads, the pool has fewer. If the system refuses all threads, the calling thread becomes the only
/// thread of the pool and does all the work. In this case, other threads must not wait for the pool.
pub fn start_global_pool(wanted: Option<usize>) {
    match start("simstore", wanted.unwrap_or_else(default_count)) {
        Ok(threads) => build_global(threads),
        // Building fails only if the pool exists.
        Err(_) => drop(ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global()),
    }
    POOL_OWNER.get_or_init(Process::this);
}

fn build_global(threads: Vec<IdleThread>) {
    let builder = ThreadPoolBuilder::new().num_threads(threads.len());
    // Building fails only if the pool exists; then the threads end.
    drop(builder.spawn_handler(spawn_on(threads)).build_global());
}

/// The process that started the global pool.
static POOL_OWNER: OnceLock<Process> = OnceLock::new();

/// The thread pool that a process uses if it was forked after the global pool was started, and the id of that process. A
/// process ignores a pool with the id of another process.
static FORKED_POOL: Mutex<Option<(Process, Arc<ThreadPool>)>> = Mutex::new(None);

/// Runs `work` so that the parallel code in it uses a thread pool of this process, for programs that fork.
///
/// A process that was forked after the start of the [global pool](ensure_pool) has none of that pool's
/// threads. This function gives it a new pool.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started.
pub fn in_this_process<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T> {
    if POOL_OWNER.get().is_none_or(|process| process.is_here()) {
        return Ok(work());
    }
    let mut forked_pool = FORKED_POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match &*forked_pool {
        Some((process, pool)) if process.is_here() => Arc::clone(pool),
        _ => {
            let pool = Arc::new(pool("simstore")?);
            // An earlier pool belongs to the parent process, and cannot be dropped in this process.
            std::mem::forget(forked_pool.replace((Process::this(), Arc::clone(&pool))));
            pool
        }
    };
    drop(forked_pool);
    Ok(pool.install(work))
}

thread_local! {
    /// The process that started the current thread; `None` if this module did not start the thread.
    static THREAD_OWNER: Cell<Option<Process>> = const { Cell::new(None) };
}

/// Whether the current thread belongs to a pool that this module started in this process.
fn is_pool_thread_of_this_process() -> bool {
    rayon::current_thread_index().is_some() && THREAD_OWNER.get().is_some_and(Process::is_here)
}

/// Starts rayon's global pool if it does not exist. If the system refuses some threads, the pool has fewer threads,
/// whereas rayon's own start of the pool would panic.
///
/// # Errors
/// [`Error::Thread`] if no thread can be started, or if this process was forked after the start of the pool
/// and the call is not inside [`in_this_process`].
pub fn ensure_pool() -> Result<()> {
    match POOL_OWNER.get() {
        Some(process) if process.is_here() => return Ok(()),
        Some(_) if is_pool_thread_of_this_process() => return Ok(()),
        Some(_) => {
            let reason = "this process was forked from one that had started its threads, and has none of them; fork first";
            return Err(not_started(io::Error::other(reason)));
        }
        None if rayon::current_thread_index().is_some() => return Ok(()),
        None => {}
    }
    build_global(start("simstore", default_count())?);
    POOL_OWNER.get_or_init(Process::this);
    Ok(())
}
