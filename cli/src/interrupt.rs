//! Ctrl-C, and what else asks a command to stop.

use std::io::ErrorKind;
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

use crate::failure::{Failure, Outcome, complain};
use crate::output::UNFINISHED;

/// The exit code of a command that was interrupted, as shells have it.
pub(crate) const INTERRUPTED: i32 = 130;

/// From now on an interrupted command removes the output that it has not finished, and ends. What it has written of
/// a store is left: a store is valid at every moment. Where there is no thread to wait with, it ends as the system has it.
pub(crate) fn handle() -> Outcome {
    let stop = || {
        UNFINISHED.remove_for_good();
        complain("interrupted");
        std::process::exit(INTERRUPTED);
    };
    outlive_file_limit()?;
    match ctrlc::set_handler(stop) {
        Err(ctrlc::Error::System(error)) if error.kind() == ErrorKind::WouldBlock => {
            complain(&format!(
                "warning: cannot start a thread, so an interrupted run may leave unfinished output files: {error}"
            ));
            Ok(())
        }
        handled => handled.map_err(|error| Failure::Failed(format!("cannot handle Ctrl-C: {error}"))),
    }
}

/// A file that would grow over the limit of `ulimit -f` ends a process without a word, unless the signal is caught: then
/// the write fails, and that is told.
fn outlive_file_limit() -> Outcome {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(|error| Failure::Failed(format!("cannot handle the file size limit: {error}")))?;
    Ok(())
}
