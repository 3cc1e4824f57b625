//! Progress on a terminal, and the words for people beside the output.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use simstore::threads::lock;
use simstore_corpus::{self, Notice, ReadNotes, Watch};

use crate::bad::BadList;
use crate::failure::{Failure, Outcome, complain, said_here, with_flags};
use crate::numbers::grouped;

/// Malformed documents that are printed in a step; further ones are only counted.
const MALFORMED_SHOWN: u64 = 10;

/// Says how far a command has come.
#[derive(Debug)]
pub(crate) struct Progress {
    quiet: bool,
    shown: bool,
    started: Instant,
    /// Notes of the reading that are not printed yet.
    notes: Mutex<ReadNotes>,
    /// Malformed documents in this step.
    malformed: Mutex<u64>,
    /// Where all of it is listed.
    list: Mutex<Option<BadList>>,
    /// The progress lines of steps, by the noun that they count.
    bars: Mutex<BTreeMap<&'static str, ProgressBar>>,
}

impl Progress {
    pub(crate) fn new(quiet: bool) -> Self {
        let shown = !quiet && io::stderr().is_terminal();
        Progress {
            quiet,
            shown,
            started: Instant::now(),
            notes: Mutex::default(),
            malformed: Mutex::default(),
            list: Mutex::default(),
            bars: Mutex::default(),
        }
    }

    /// Takes the notes that are not printed yet.
    pub(crate) fn take_notes(&self) -> ReadNotes {
        std::mem::take(&mut lock(&self.notes))
    }

    /// A line that counts up, of something whose end is not known.
    fn spinner(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(None, self.target());
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} [{elapsed}]").unwrap_or_else(|_| {
            // The template is a constant; without it the bar is only less pretty.
            ProgressStyle::default_spinner()
        }));
        if self.shown {
            tick(&bar);
        }
        bar
    }

    /// The line of a step of the library.
    fn bar_of(&self, progress: &simstore_corpus::Progress) -> ProgressBar {
        let Some(total) = progress.total_bytes else { return self.spinner() };
        let bar = ProgressBar::with_draw_target(Some(total), self.target());
        bar.set_style(reading_style());
        tick(&bar);
        bar
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

    /// From now on all that is malformed is listed in this file too.
    pub(crate) fn list_bad(&self, path: &Path) -> Outcome {
        *lock(&self.list) = Some(BadList::create(path)?);
        Ok(())
    }

    /// The end of a command: the list gets its name, unless the command could not be done.
    pub(crate) fn end(&self, done: Outcome) -> Outcome {
        match (lock(&self.list).take(), done) {
            (Some(list), Ok(())) => list.finish(),
            (Some(list), Err(Failure::Closed)) => list.finish().and(Err(Failure::Closed)),
            (_, done) => done,
        }
    }

    /// Prints a line of a summary to standard error, unless `--quiet` is given.
    pub(crate) fn say(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Says what is told on the way, in the words of the library.
    pub(crate) fn tell(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Published(_) => complain(&notice.to_string()),
            _ if notice.is_warning() => complain(&with_flags(&format!("warning: {notice}"))),
            _ if notice.is_passed_over() => complain(&with_flags(&notice.to_string())),
            _ => self.say(&with_flags(&notice.to_string())),
        }
    }

    /// Seconds since the command started.
    pub(crate) fn seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Watch for Progress {
    fn progress(&self, progress: &simstore_corpus::Progress) -> ControlFlow<()> {
        if self.shown {
            let mut bars = lock(&self.bars);
            let bar = bars.entry(progress.what).or_insert_with(|| self.bar_of(progress));
            bar.set_message(counted(progress.count, progress.what));
            if progress.total_bytes.is_some() {
                bar.set_position(progress.bytes);
            }
        }
        ControlFlow::Continue(())
    }

    fn done(&self, what: &'static str) {
        *lock(&self.malformed) = 0;
        if let Some(bar) = lock(&self.bars).remove(what) {
            bar.finish_and_clear();
        }
    }

    fn notice(&self, notice: &Notice<'_>) {
        match notice {
            Notice::Malformed(error) => {
                if let Some(list) = &mut *lock(&self.list) {
                    list.push(error);
                }
                let mut malformed = lock(&self.malformed);
                *malformed += 1;
                if *malformed <= MALFORMED_SHOWN {
                    complain(&said_here(error));
                }
                if *malformed == MALFORMED_SHOWN + 1 {
                    let listed =
                        if lock(&self.list).is_some() { "listed" } else { "counted (--bad FILE lists them)" };
                    complain(&format!("further invalid documents are only {listed}"));
                }
            }
            Notice::Read(note, count) => *lock(&self.notes).entry(*note).or_default() += count,
            other => self.tell(other),
        }
    }

    fn wants_totals(&self) -> bool {
        self.shown
    }
}

/// A count and its noun, the first word, which is given in the plural.
fn counted(count: u64, what: &str) -> String {
    let (noun, rest) = what.split_once(' ').map_or((what, ""), |(noun, _)| (noun, &what[noun.len()..]));
    let noun = if count == 1 { noun.strip_suffix('s').unwrap_or(noun) } else { noun };
    format!("{} {noun}{rest}", grouped(count))
}

/// How a bar that fills as files are read looks. The template is a constant; without it the bar is only less pretty.
fn reading_style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec} [{elapsed}, {eta} left]";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Shows that time passes. The bar would panic where a thread cannot be started for that.
fn tick(bar: &ProgressBar) {
    if let Ok(thread) = std::thread::Builder::new().spawn(|| ()) {
        let _ = thread.join();
        bar.enable_steady_tick(Duration::from_millis(200));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        for (count, what, said) in [
            (0, "parts", "0 parts"),
            (1, "parts", "1 part"),
            (1, "pairs with the store", "1 pair with the store"),
            (2000, "texts to compare", "2,000 texts to compare"),
        ] {
            assert_eq!(counted(count, what), said);
        }
    }
}
