//! Output to standard output, or to a file that appears only when it is complete.

use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use simstore_io::output::UnfinishedOutputs;

use crate::command_error::{CommandError, CommandResult};

pub(crate) use simstore_io::escape::{escape_name, escape_text};
pub(crate) use simstore_io::output::Output;

/// Builds a value that serializes as a JSON object with the given fields, in the given order. A field without a value takes the
/// value of the variable of the same name.
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

/// Unfinished output files of the command that this process runs. An interrupted command removes them.
pub(crate) static UNFINISHED_OUTPUTS: LazyLock<UnfinishedOutputs> = LazyLock::new(UnfinishedOutputs::default);

/// Returns standard output. If its reader closes it, writes fail.
pub(crate) fn stdout() -> Output {
    to_stdout(Box::new(io::stdout()))
}

/// Returns standard output for a command that continues after the reader closes it. Sets `is_closed` when that happens.
pub(crate) fn closable_stdout(is_closed: &Arc<AtomicBool>) -> Output {
    to_stdout(Box::new(ClosableStdout::new(is_closed)))
}

fn to_stdout(writer: Box<dyn Write + Send>) -> Output {
    Output::from_writer(Path::new("-"), writer)
}

/// Creates an output file, compressed if its extension says so; returns standard output for `-`.
pub(crate) fn create(path: &Path) -> CommandResult<Output> {
    if path.as_os_str() == "-" {
        Ok(stdout())
    } else {
        Output::create(path, &UNFINISHED_OUTPUTS).map_err(CommandError::usage)
    }
}

/// Standard output that drops further bytes after its reader has closed it.
pub(crate) struct ClosableStdout {
    stdout: Stdout,
    /// Whether a write has failed because the reader had closed standard output.
    is_closed: Arc<AtomicBool>,
}

impl ClosableStdout {
    pub(crate) fn new(is_closed: &Arc<AtomicBool>) -> Self {
        ClosableStdout { stdout: io::stdout(), is_closed: Arc::clone(is_closed) }
    }

    /// Runs `call` on standard output. Returns `if_closed` if the reader has closed standard output, now or earlier.
    fn ignore_broken_pipe<T>(
        &mut self,
        if_closed: T,
        call: impl FnOnce(&mut Stdout) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_closed.load(Ordering::Relaxed) {
            return Ok(if_closed);
        }
        match call(&mut self.stdout) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.is_closed.store(true, Ordering::Relaxed);
                Ok(if_closed)
            }
            other => other,
        }
    }
}

impl Write for ClosableStdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.ignore_broken_pipe(bytes.len(), |stdout| stdout.write(bytes))
    }

    /// Flushes and syncs, because standard output may be redirected to a file, which has to be as durable as other output files. Ignores a
    /// failed sync: a pipe cannot be synced.
    fn flush(&mut self) -> io::Result<()> {
        self.ignore_broken_pipe((), Stdout::flush)?;
        #[cfg(unix)]
        if let Ok(stdout) = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned() {
            let _ = File::from(stdout).sync_all();
        }
        Ok(())
    }
}
