//! Where output goes: standard output, or a file that appears only when it is complete.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Stdout, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;
use simstore_corpus::{Compression, Compressor};

use self::temporary::TemporaryFile;
use crate::failure::{Failure, Outcome};

mod temporary;

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

/// Output of a command, buffered and compressed as its name says; [`Output::finish`] must be called at the end.
#[derive(Debug)]
pub(crate) struct Output {
    /// `-` for standard output.
    path: PathBuf,
    writer: BufWriter<Compressor<Target>>,
}

#[derive(Debug)]
enum Target {
    Stdout {
        stdout: Stdout,
        /// Whether what nobody reads any more is passed over in silence.
        outlives_reader: bool,
        is_closed: bool,
    },
    File(TemporaryFile),
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Target::Stdout { is_closed: true, .. } => Ok(bytes.len()),
            Target::Stdout { stdout, outlives_reader, is_closed } => match stdout.write(bytes) {
                Err(error) if *outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => {
                    *is_closed = true;
                    Ok(bytes.len())
                }
                written => written,
            },
            Target::File(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Target::Stdout { is_closed: true, .. } => Ok(()),
            Target::Stdout { stdout, outlives_reader, is_closed } => match stdout.flush() {
                Err(error) if *outlives_reader && error.kind() == io::ErrorKind::BrokenPipe => {
                    *is_closed = true;
                    Ok(())
                }
                flushed => flushed,
            },
            Target::File(file) => file.flush(),
        }
    }
}

impl Output {
    pub(crate) fn stdout() -> Self {
        Output::of_stdout(false)
    }

    /// Standard output for a command that has more to do than to print: if nobody reads any more, it goes on.
    pub(crate) fn stdout_that_may_close() -> Self {
        Output::of_stdout(true)
    }

    fn of_stdout(outlives_reader: bool) -> Self {
        let target = Target::Stdout { stdout: io::stdout(), outlives_reader, is_closed: false };
        let writer = BufWriter::with_capacity(1 << 16, Compressor::plain(target));
        Output { path: PathBuf::from("-"), writer }
    }

    /// A file, compressed as its name says, or standard output for `-`.
    pub(crate) fn create(path: &Path) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            return Ok(Output::stdout());
        }
        Output::create_with(path, Compression::of_name(path))
    }

    /// A file of the bytes that are written, whatever its name says.
    pub(crate) fn create_as_it_is(path: &Path) -> Outcome<Self> {
        Output::create_with(path, Compression::None)
    }

    fn create_with(path: &Path, compression: Compression) -> Outcome<Self> {
        let folder = path.parent().unwrap_or(Path::new("."));
        if simstore::store::stored_bits(folder).is_ok() {
            return Err(Failure::Usage(format!(
                "{}: is inside a store, whose files are its own; write it elsewhere",
                path.display()
            )));
        }
        let target = Target::File(TemporaryFile::create(path)?);
        let compressor = Compressor::new(compression, target).map_err(Failure::write(path))?;
        Ok(Output { path: path.to_path_buf(), writer: BufWriter::with_capacity(1 << 16, compressor) })
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

    /// Lets what comes next be read by itself, if this is gzip.
    pub(crate) fn end_member(&mut self) -> Outcome {
        let ended = self.writer.flush().and_then(|()| self.writer.get_mut().end_member());
        ended.map_err(Failure::write(&self.path))
    }

    /// Writes the rest and gives a file its name.
    pub(crate) fn finish(self) -> Outcome {
        self.complete()?.publish()
    }

    /// Writes the rest, and waits until it is on the disk. A file has not got its name then.
    pub(crate) fn complete(self) -> Outcome<Complete> {
        let Output { path, writer } = self;
        let mut target = writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(Compressor::finish)
            .map_err(Failure::write(&path))?;
        target.flush().map_err(Failure::write(&path))?;
        let (file, is_cut_off) = match target {
            Target::File(file) => (Some(file), false),
            Target::Stdout { is_closed, outlives_reader, .. } => {
                if outlives_reader {
                    sync_stdout();
                }
                (None, is_closed)
            }
        };
        file.iter().try_for_each(TemporaryFile::sync).map_err(Failure::write(&path))?;
        Ok(Complete { path, file, is_cut_off })
    }
}

/// Standard output may be a file: as durable as other files. A pipe cannot be synced, and need not.
fn sync_stdout() {
    #[cfg(unix)]
    if let Ok(stdout) = std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned() {
        let _ = File::from(stdout).sync_all();
    }
}

/// An output of which nothing is missing but its name.
#[derive(Debug)]
pub(crate) struct Complete {
    path: PathBuf,
    /// `None` for standard output.
    file: Option<TemporaryFile>,
    /// Whether standard output was closed before all was written.
    is_cut_off: bool,
}

impl Complete {
    /// Whether somebody read only the beginning of it.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }

    /// Gives a file its name.
    pub(crate) fn publish(self) -> Outcome {
        match self.file {
            Some(file) => file.publish(&self.path).map_err(Failure::write(&self.path)),
            None => Ok(()),
        }
    }

    /// Gives a file another name that does not end with the process: whoever knows it can publish it later.
    /// `None` for what has no other name.
    pub(crate) fn set_aside(&mut self, suffix: &str) -> Outcome<Option<SetAside>> {
        let Some(file) = &mut self.file else { return Ok(None) };
        let aside = file.set_aside(&self.path, suffix).map_err(Failure::write(&self.path))?;
        Ok(aside.map(|aside| SetAside { aside, path: self.path.clone() }))
    }

    /// From now on the file that was set aside stays, whatever happens.
    pub(crate) fn keep(&mut self) {
        self.file.iter_mut().for_each(TemporaryFile::keep);
    }
}

/// A file that was set aside, and the name that it is to get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SetAside {
    pub(crate) aside: PathBuf,
    pub(crate) path: PathBuf,
}

impl SetAside {
    /// The file that was set aside for a path.
    pub(crate) fn of(path: &Path, suffix: &str) -> Option<SetAside> {
        let aside = temporary::hidden(path, suffix)?;
        Some(SetAside { aside, path: path.to_path_buf() })
    }

    /// Where the file is to be, whatever folder another process runs in.
    pub(crate) fn place(&self) -> Outcome<String> {
        let place = place_of(&self.path);
        place.to_str().map(str::to_owned).ok_or_else(|| {
            Failure::Usage(format!("{}: not Unicode, as the name has to be here", place.display()))
        })
    }

    /// Gives the file its name, if that is still to be done.
    pub(crate) fn publish(&self) -> Outcome<bool> {
        if !self.aside.exists() {
            return Ok(false);
        }
        temporary::rename(&self.aside, &self.path).map_err(Failure::write(&self.path))?;
        Ok(true)
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

/// Where a path leads to, also if there is nothing yet: two paths of one file are equal then.
pub(crate) fn place_of(path: &Path) -> PathBuf {
    let Some(name) = path.file_name() else { return path.to_path_buf() };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf()).join(name)
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
