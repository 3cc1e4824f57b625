//! Ctrl-C, and what else asks a command to stop.

use crate::failure::{Failure, Outcome, complain};
use crate::output::remove_unfinished;

/// The exit code of a command that was interrupted, as shells have it.
pub(crate) const INTERRUPTED: i32 = 130;

/// From now on an interrupted command removes the output that it has not finished, and ends. What it has written of
/// a store is left: a store is valid at every moment.
pub(crate) fn handle() -> Outcome {
    let stop = || {
        remove_unfinished();
        complain("interrupted");
        std::process::exit(INTERRUPTED);
    };
    ctrlc::set_handler(stop)
        .map_err(|error| Failure::Failed(format!("cannot wait for interruptions: {error}")))
}
