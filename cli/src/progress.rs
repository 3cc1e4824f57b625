//! Progress bars, summaries and diagnostics on standard error.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use simstore::threads::lock;
use simstore_corpus::{self, Diagnostic, Observer, ReadDiagnosticCounts};

use crate::command_error::{CommandError, CommandResult, error_message, options_as_flags, print_message};
use crate::malformed_list::MalformedList;
use crate::numbers::format_count;

/// Maximum number of malformed documents whose errors are printed in one stage of a command, such as reading. Further
/// malformed documents are only counted; if `--bad FILE` is given, they are also listed in that file.
const MAX_PRINTED_MALFORMED: u64 = 10;

/// Display of progress and diagnostics of a command, on standard error.
#[derive(Debug)]
pub(crate) struct ProgressDisplay {
    /// Whether `--quiet` is given: no progress and no summary.
    is_quiet: bool,
    /// Whether progress is shown: standard error is a terminal, and `--quiet` is not given.
    is_shown: bool,
    started: Instant,
    /// Counts of the diagnostics of reading that are not printed yet, such as the number of skipped files.
    read_diagnostics: Mutex<ReadDiagnosticCounts>,
    /// Number of malformed documents found since a stage of the command, such as reading the inputs, last ended.
    malformed_count: Mutex<u64>,
    /// Table of all malformed documents, for `--bad`.
    malformed_list: Mutex<Option<MalformedList>>,
    /// Progress bars of the running stages of the command, by the name of the stage.
    stage_bars: Mutex<BTreeMap<&'static str, ProgressBar>>,
}

impl ProgressDisplay {
    pub(crate) fn new(quiet: bool) -> Self {
        let is_shown = !quiet && io::stderr().is_terminal();
        ProgressDisplay {
            is_quiet: quiet,
            is_shown,
            started: Instant::now(),
            read_diagnostics: Mutex::default(),
            malformed_count: Mutex::default(),
            malformed_list: Mutex::default(),
            stage_bars: Mutex::default(),
        }
    }

    /// Returns the counts of diagnostics of reading, such as skipped files, that are not printed yet. Resets the counts.
    pub(crate) fn take_read_diagnostics(&self) -> ReadDiagnosticCounts {
        std::mem::take(&mut lock(&self.read_diagnostics))
    }

    /// Returns a counter with a spinner, for a stage whose total is unknown.
    fn spinner(&self) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(None, self.draw_target());
        bar.set_style(ProgressStyle::with_template("{spinner} {msg} [{elapsed}]").unwrap_or_else(|_| {
            // The template is a valid constant. The default style is a fallback without the count.
            ProgressStyle::default_spinner()
        }));
        if self.is_shown {
            enable_tick(&bar);
        }
        bar
    }

    /// Returns the progress bar for a stage of a library function: a bar of the bytes read if their total is known, else a
    /// spinner.
    fn stage_bar(&self, progress: &simstore_corpus::StageProgress) -> ProgressBar {
        let Some(total) = progress.total_bytes else { return self.spinner() };
        let bar = ProgressBar::with_draw_target(Some(total), self.draw_target());
        bar.set_style(byte_bar_style());
        enable_tick(&bar);
        bar
    }

    /// Returns a bar with a label, a percentage and the remaining time. The caller sets its length and position.
    pub(crate) fn progress_bar(&self, label: &'static str) -> ProgressBar {
        let bar = ProgressBar::with_draw_target(Some(0), self.draw_target()).with_message(label);
        let template = "{msg} {wide_bar} {percent}% [{elapsed}, {eta} left]";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar
    }

    fn draw_target(&self) -> ProgressDrawTarget {
        if self.is_shown { ProgressDrawTarget::stderr_with_hz(5) } else { ProgressDrawTarget::hidden() }
    }

    /// Creates the table for `--bad`. Malformed documents that are found from then on are written to this table.
    pub(crate) fn create_malformed_list(&self, path: &Path) -> CommandResult {
        *lock(&self.malformed_list) = Some(MalformedList::create(path)?);
        Ok(())
    }

    /// Completes the table of malformed documents, unless the command failed. Returns `result`, which is the result of the
    /// command; but if the table cannot be completed, returns that error.
    pub(crate) fn finish(&self, result: CommandResult) -> CommandResult {
        match (lock(&self.malformed_list).take(), result) {
            (Some(list), Ok(())) => list.finish(),
            (Some(list), Err(CommandError::OutputClosed)) => {
                list.finish().and(Err(CommandError::OutputClosed))
            }
            (_, result) => result,
        }
    }

    /// Prints a line of a summary to standard error, unless `--quiet` is given.
    pub(crate) fn print_summary(&self, line: &str) {
        if !self.is_quiet {
            let _ = writeln!(io::stderr().lock(), "{line}");
        }
    }

    /// Prints a library diagnostic, with flags in place of the library's option names. With `--quiet`, prints it only if it is a
    /// warning, or is about a skipped input or a completed output.
    pub(crate) fn print_diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        match diagnostic {
            Diagnostic::CompletedOutput(_) => print_message(&diagnostic.to_string()),
            _ if diagnostic.is_warning() => {
                print_message(&options_as_flags(&format!("warning: {diagnostic}")));
            }
            _ if diagnostic.is_skipped_input() => print_message(&options_as_flags(&diagnostic.to_string())),
            _ => self.print_summary(&options_as_flags(&diagnostic.to_string())),
        }
    }

    /// Seconds since the command started.
    pub(crate) fn elapsed_seconds(&self) -> f64 {
        self.started.elapsed().as_secs_f64()
    }
}

impl Observer for ProgressDisplay {
    fn progress(&self, progress: &simstore_corpus::StageProgress) -> ControlFlow<()> {
        if self.is_shown {
            let mut bars = lock(&self.stage_bars);
            let bar = bars.entry(progress.stage).or_insert_with(|| self.stage_bar(progress));
            bar.set_message(format_stage_count(progress.count, progress.stage));
            if progress.total_bytes.is_some() {
                bar.set_position(progress.bytes);
            }
        }
        ControlFlow::Continue(())
    }

    fn stage_ended(&self, stage: &'static str) {
        *lock(&self.malformed_count) = 0;
        if let Some(bar) = lock(&self.stage_bars).remove(stage) {
            bar.finish_and_clear();
        }
    }

    fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        match diagnostic {
            Diagnostic::Malformed(error) => {
                if let Some(list) = &mut *lock(&self.malformed_list) {
                    list.push(error);
                }
                let mut malformed = lock(&self.malformed_count);
                *malformed += 1;
                if *malformed <= MAX_PRINTED_MALFORMED {
                    print_message(&error_message(error));
                }
                if *malformed == MAX_PRINTED_MALFORMED + 1 {
                    let listed = if lock(&self.malformed_list).is_some() {
                        "listed"
                    } else {
                        "counted (--bad FILE lists them)"
                    };
                    print_message(&format!("further invalid documents are only {listed}"));
                }
            }
            Diagnostic::Read(read, count) => *lock(&self.read_diagnostics).entry(*read).or_default() += count,
            other => self.print_diagnostic(other),
        }
    }

    fn wants_totals(&self) -> bool {
        self.is_shown
    }
}

/// Formats a count and the name of its stage, such as `3 texts compared`. The name begins with a plural noun, which becomes
/// singular if `count` is 1.
fn format_stage_count(count: u64, stage: &str) -> String {
    let (noun, rest) = stage.split_once(' ').map_or((stage, ""), |(noun, _)| (noun, &stage[noun.len()..]));
    let noun = if count == 1 { noun.strip_suffix('s').unwrap_or(noun) } else { noun };
    format!("{} {noun}{rest}", format_count(count))
}

/// Returns the style of a bar that counts the bytes read.
fn byte_bar_style() -> ProgressStyle {
    let template = "{msg} {wide_bar} {bytes} of {total_bytes}, {bytes_per_sec} [{elapsed}, {eta} left]";
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// Makes a thread redraw the bar every 200 ms. Starts another thread first as a test, because indicatif panics if no thread
/// can be started.
fn enable_tick(bar: &ProgressBar) {
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
        for (count, stage, expected) in [
            (0, "parts", "0 parts"),
            (1, "parts", "1 part"),
            (1, "pairs with the store", "1 pair with the store"),
            (2000, "texts to compare", "2,000 texts to compare"),
        ] {
            assert_eq!(format_stage_count(count, stage), expected);
        }
    }
}
