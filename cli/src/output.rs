//! Where output goes: standard output, or a file that appears only when it is complete.

use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use simstore_io::output::Unfinished;

use crate::failure::{Failure, Outcome};

pub(crate) use simstore_io::escape::{escaped, escaped_name};
pub(crate) use simstore_io::output::Output;

/// Makes a JSON object of fields and values, in the order of the output. A field without a value takes the variable of its name.
macro_rules! object {
    ($($(#[$meta:meta])* $field:ident $(: $value:expr)?),* $(,)?) => {{
        #[expect(non_camel_case_types, reason = "each field names the type of its value")]
        let object = {
            #[derive(serde::Serialize)]
            struct Object<$($field),*> { $($(#[$meta])* $field: $field),* }
            Object { $($field $(: $value)?),* }
        };
        object
    }};
}
pub(crate) use object;

/// The output files of the one command of this process that are not finished.
pub(crate) static UNFINISHED: LazyLock<Unfinished> = LazyLock::new(Unfinished::default);

/// Standard output.
pub(crate) fn stdout() -> Output {
    to_stdout(Box::new(io::stdout()))
}

/// Standard output of a command that continues if its reader closes it. Sets `is_cut_off` in this case.
pub(crate) fn stdout_that_may_close(is_cut_off: &Arc<AtomicBool>) -> Output {
    to_stdout(Box::new(StdoutThatMayClose::new(is_cut_off)))
}

fn to_stdout(writer: Box<dyn Write + Send>) -> Output {
    Output::of_writer(Path::new("-"), writer)
}

/// Creates a file, compressed as its name says, or returns standard output for `-`.
pub(crate) fn create(path: &Path) -> Outcome<Output> {
    if path.as_os_str() == "-" {
        Ok(stdout())
    } else {
        Output::create(path, &UNFINISHED).map_err(Failure::usage)
    }
}

/// Standard output that is passed over once nobody reads it any more.
pub(crate) struct StdoutThatMayClose {
    stdout: Stdout,
    /// Whether its reader closed it before all was written.
    is_cut_off: Arc<AtomicBool>,
}

impl StdoutThatMayClose {
    pub(crate) fn new(is_cut_off: &Arc<AtomicBool>) -> Self {
        StdoutThatMayClose { stdout: io::stdout(), is_cut_off: Arc::clone(is_cut_off) }
    }

    fn unless_closed<T>(
        &mut self,
        otherwise: T,
        call: impl FnOnce(&mut Stdout) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_cut_off.load(Ordering::Relaxed) {
            return Ok(otherwise);
        }
        match call(&mut self.stdout) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_cut_off.store(true, Ordering::Relaxed);
                Ok(otherwise)
            }
            other => other,
        }
    }
}

impl Write for StdoutThatMayClose {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.unless_closed(bytes.len(), |stdout| stdout.write(bytes))
    }

    /// Standard output may be a file: as durable as other files. A pipe cannot be synced, and need not.
    fn flush(&mut self) -> io::Result<()> {
        self.unless_closed((), Stdout::flush)?;
        #[cfg(unix)]
        if let Ok(stdout) = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned() {
            let _ = File::from(stdout).sync_all();
        }
        Ok(())
    }
}
