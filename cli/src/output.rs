//! Where output goes: standard output, or a file that appears only when it is complete.

use std::fmt;
use std::fs::File;
use std::io::{self, Stdout, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use serde::Serialize;
use simstore_io::output::{self, Unfinished};

use crate::failure::{Failure, Outcome};

pub(crate) use simstore_io::escape::{escaped, escaped_name};

/// The output files of the one command of this process that are not finished.
pub(crate) static UNFINISHED: LazyLock<Unfinished> = LazyLock::new(Unfinished::default);

/// Output of a command; [`Output::finish`] must be called at the end.
#[derive(Debug)]
pub(crate) struct Output(pub(crate) output::Output);

impl Output {
    pub(crate) fn stdout() -> Self {
        Output::to_stdout(Box::new(io::stdout()))
    }

    /// Standard output for a command that has more to do than to print: if nobody reads any more, it goes on, and that is
    /// told.
    pub(crate) fn stdout_that_may_close(is_cut_off: &Arc<AtomicBool>) -> Self {
        Output::to_stdout(Box::new(StdoutThatMayClose::new(is_cut_off)))
    }

    fn to_stdout(writer: Box<dyn Write + Send>) -> Self {
        Output(output::Output::of_writer(Path::new("-"), writer))
    }

    /// A file, compressed as its name says, or standard output for `-`.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            return Ok(Output::stdout());
        }
        output::Output::create(path, &UNFINISHED).map(Output).map_err(Failure::usage)
    }

    /// Writes bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome {
        Ok(self.0.push(bytes)?)
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl fmt::Display) -> Outcome {
        Ok(self.0.line(line)?)
    }

    /// Writes an object as one line of JSON.
    pub(crate) fn json(&mut self, object: &impl Serialize) -> Outcome {
        Ok(self.0.json(object)?)
    }

    /// Writes what a function draws.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Outcome {
        Ok(self.0.draw(draw)?)
    }

    /// Writes the rest and gives a file its name.
    pub(crate) fn finish(self) -> Outcome {
        Ok(self.0.finish()?)
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.0)
    }
}

/// Standard output that is passed over once nobody reads it any more.
pub(crate) struct StdoutThatMayClose {
    stdout: Stdout,
    /// Whether whoever read it has gone before all was written.
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
