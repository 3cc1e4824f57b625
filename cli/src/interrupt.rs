//! Handling of Ctrl-C, and of other signals that stop a command.

use std::io::ErrorKind;
#[cfg(unix)]
use std::sync::{Arc, atomic::AtomicBool};

use crate::command_error::{CommandError, CommandResult, print_message};
use crate::output::UNFINISHED_OUTPUTS;

/// Exit code of an interrupted command, as in shells.
pub(crate) const INTERRUPTED_EXIT_CODE: i32 = 130;

/// Installs the signal handler, unless the command handles these signals itself (`stops_by_itself`). An interrupted command removes its unfinished output files and exits. Its changes to a store stay,
/// because a store is valid at every moment. If the thread that waits for signals cannot be started, the system's default handling
/// applies.
pub(crate) fn install_handler(stops_by_itself: bool) -> CommandResult {
    catch_file_size_signal()?;
    if stops_by_itself {
        return Ok(());
    }
    let handler = || {
        UNFINISHED_OUTPUTS.remove_all_and_block();
        print_message("interrupted");
        std::process::exit(INTERRUPTED_EXIT_CODE);
    };
    match ctrlc::set_handler(handler) {
        Err(ctrlc::Error::System(error)) if error.kind() == ErrorKind::WouldBlock => {
            print_message(&format!(
                "warning: cannot start a thread, so an interrupted run may leave unfinished output files: {error}"
            ));
            Ok(())
        }
        result => result.map_err(|error| CommandError::Failed(format!("cannot handle Ctrl-C: {error}"))),
    }
}

/// Catches the signal of the file size limit (`ulimit -f`). Uncaught, the signal ends the process silently. If it is caught, the write
/// fails with an error, which the command reports.
fn catch_file_size_signal() -> CommandResult {
    #[cfg(unix)]
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::new(AtomicBool::new(false)))
        .map_err(|error| CommandError::Failed(format!("cannot handle the file size limit: {error}")))?;
    Ok(())
}
