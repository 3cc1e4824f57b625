//! Where output goes: standard output, or a file that appears only when it is complete.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use crate::failure::{Failure, Outcome};

/// Files under a temporary name.
static UNFINISHED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Removes all output files that are not finished, and lets none be finished any more.
pub(crate) fn remove_unfinished() {
    let unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
    for path in &*unfinished {
        // What cannot be removed is no more than litter.
        let _ = std::fs::remove_file(path);
    }
    // A file that is given its name takes the lock first: after this it waits for the end of the process.
    std::mem::forget(unfinished);
}

/// Output of a command, buffered; [`Output::finish`] must be called at the end.
#[derive(Debug)]
pub(crate) struct Output {
    /// `-` for standard output.
    path: PathBuf,
    writer: BufWriter<Target>,
}

#[derive(Debug)]
enum Target {
    Stdout(Stdout),
    File(TemporaryFile),
}

/// A file, where it can be replaced under a temporary name in the same folder; that one is removed when
/// dropped, unless renamed.
#[derive(Debug)]
struct TemporaryFile {
    /// `None` for what is no regular file (a pipe, /dev/null): it can only be written to.
    path: Option<PathBuf>,
    file: File,
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // Once renamed, there is nothing to remove; and what cannot be removed is no more than litter.
            let _ = std::fs::remove_file(path);
            UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout(stdout) => stdout.write(bytes),
            Target::File(temporary) => temporary.file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout(stdout) => stdout.flush(),
            Target::File(temporary) => temporary.file.flush(),
        }
    }
}

impl Output {
    pub(crate) fn stdout() -> Self {
        let writer = BufWriter::with_capacity(1 << 16, Target::Stdout(io::stdout()));
        Output { path: PathBuf::from("-"), writer }
    }

    /// A file, or standard output for `-`.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            return Ok(Output::stdout());
        }
        let Some(name) = path.file_name() else {
            return Err(Failure::Usage(format!("{}: not the name of a file", path.display())));
        };
        let in_place = path.metadata().is_ok_and(|metadata| !metadata.is_file());
        let temporary = (!in_place).then(|| {
            let mut hidden = std::ffi::OsString::from(".");
            hidden.push(name);
            hidden.push(format!(".{}.tmp", std::process::id()));
            path.with_file_name(hidden)
        });
        let opened = match &temporary {
            Some(temporary) => {
                UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner).insert(temporary.clone());
                File::create(temporary)
            }
            None => File::options().write(true).open(path),
        };
        let file = opened.map_err(Failure::write(path))?;
        let target = Target::File(TemporaryFile { path: temporary, file });
        Ok(Output { path: path.to_path_buf(), writer: BufWriter::with_capacity(1 << 16, target) })
    }

    /// Writes bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Outcome {
        self.writer.write_all(bytes).map_err(Failure::write(&self.path))
    }

    /// Writes a line.
    pub(crate) fn line(&mut self, line: impl std::fmt::Display) -> Outcome {
        writeln!(self.writer, "{line}").map_err(Failure::write(&self.path))
    }

    /// Writes an object as one line of JSON.
    pub(crate) fn json(&mut self, object: &impl Serialize) -> Outcome {
        serde_json::to_writer(&mut self.writer, object)
            .map_err(|error| Failure::write(&self.path)(error.into()))?;
        self.write(b"\n")
    }

    /// Writes what a function draws.
    pub(crate) fn draw(&mut self, draw: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Outcome {
        draw(&mut self.writer).map_err(Failure::write(&self.path))
    }

    /// Hands over what is still in the buffer: for output that someone waits for.
    pub(crate) fn flush(&mut self) -> Outcome {
        self.writer.flush().map_err(Failure::write(&self.path))
    }

    /// Writes the rest and gives a file its name.
    pub(crate) fn finish(mut self) -> Outcome {
        self.flush()?;
        if let Target::File(TemporaryFile { path: Some(temporary), file }) = self.writer.get_ref() {
            file.sync_all().map_err(Failure::write(&self.path))?;
            let _unfinished = UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner);
            std::fs::rename(temporary, &self.path).map_err(Failure::write(&self.path))?;
        }
        Ok(())
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// A name for a column of text: what would break the line or the terminal is escaped, and so is the backslash.
pub(crate) fn column(name: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| c.is_control() || c == '\\';
    if !name.contains(is_escaped) {
        return name.into();
    }
    let escape = |c: char| if is_escaped(c) { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escape).collect::<String>().into()
}
