//! Progress on a terminal, and the words for people beside the output.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use simstore_corpus::{ReadNote, ReadProgress};

use crate::numbers::grouped;

/// Says how far a command has come.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
    shown: bool,
    started: Instant,
    /// What is still to be said of what was read.
    notes: Mutex<BTreeMap<ReadNote, u64>>,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        Progress { quiet, shown, started: Instant::now(), notes: Mutex::default() }
    }

    /// Keeps what there is to say of a reading that has ended.
    pub(crate) fn note(&self, read: &ReadProgress) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        for (note, count) in read.notes() {
            *notes.entry(note).or_default() += count;
        }
    }

    /// What there is to say, once.
    pub(crate) fn take_notes(&self) -> BTreeMap<ReadNote, u64> {
        std::mem::take(&mut self.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A line that counts up, of something whose end is not known.
    pub(crate) fn counter(&self, what: &'static str) -> Counter {
        let bar = ProgressBar::with_draw_target(None, self.target());
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} [{elapsed}]").unwrap_or_else(|_| {
            // The template is a constant; without it the bar is only less pretty.
            ProgressStyle::default_spinner()
        }));
        if self.shown {
            tick(&bar);
        }
        Counter { bar, what, count: 0, read: None }
    }

    /// A line that counts up, with a bar that fills as files are read; the total is asked for only if it is shown.
    pub(crate) fn reading(
        &self,
        what: &'static str,
        read: Arc<ReadProgress>,
        total: impl FnOnce() -> Option<u64>,
    ) -> Counter {
        let total = if self.shown { total() } else { None };
        let Some(total) = total else { return self.counter(what) };
        let bar = ProgressBar::with_draw_target(Some(total), self.target());
        let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec} [{elapsed}, {eta} left]";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        tick(&bar);
        Counter { bar, what, count: 0, read: Some(read) }
    }

    /// A bar that fills.
    pub(crate) fn bar(&self, what: &'static str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(0), self.target()).with_message(what);
        let template = "{msg} {wide_bar} {percent}% [{elapsed}, {eta} left]";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar
    }

    fn target(&self) -> ProgressDrawTarget {
        if self.shown { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() }
    }

    /// Prints a line of a summary to standard error, unless the command is to be quiet.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Seconds since the command started.
    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

/// Shows that time passes. The bar would panic where a thread cannot be started for that.
fn tick(bar: &ProgressBar) {
    if let Ok(thread) = std::thread::Builder::new().spawn(|| ()) {
        let _ = thread.join();
        bar.enable_steady_tick(Duration::from_millis(200));
    }
}

/// A line that counts up; it is cleared when dropped.
#[derive(Debug)]
pub(crate) struct Counter {
    bar: ProgressBar,
    what: &'static str,
    count: u64,
    /// Where the bytes are counted that have been read, if they are known.
    read: Option<Arc<ReadProgress>>,
}

impl Counter {
    pub(crate) fn add(&mut self, more: u64) {
        let before = self.count;
        self.count += more;
        if before / 1024 != self.count / 1024 {
            self.bar.set_message(format!("{} {}", grouped(self.count), self.what));
            if let Some(read) = &self.read {
                self.bar.set_position(read.bytes());
            }
        }
    }
}

impl Drop for Counter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
