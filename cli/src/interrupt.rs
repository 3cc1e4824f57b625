//! Handling of Ctrl-C, and of other signals that stop a command.

use std::io::ErrorKind;
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

use crate::failure::{Failure, Outcome, complain};
use crate::output::UNFINISHED;

/// Exit code of an interrupted command, as in shells.
pub(crate) const INTERRUPTED: i32 = 130;

/// Installs the handler: an interrupted command removes its unfinished output files, and exits. Its changes to a store stay, as a
/// store is valid at every moment. If no thread can be started to wait for signals, the default handling of the system applies.
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

/// Catches the signal of the file size limit (`ulimit -f`). Uncaught, it ends the process silently; caught, the write fails with an
/// error that is reported.
fn outlive_file_limit() -> Outcome {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(|error| Failure::Failed(format!("cannot handle the file size limit: {error}")))?;
    Ok(())
}
