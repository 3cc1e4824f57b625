//! Files that appear only when they are complete.
//!
//! An [`Output`] is written under a hidden name, synced, and given its name in the end: [`Output::finish`]. Several outputs
//! that appear together are first made [complete](Output::complete). An output that is dropped leaves nothing.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use simstore::{Error, Result};

use self::temporary::TemporaryFile;
use self::temporary_name::TemporaryName;
use crate::{Compression, Compressor};

mod complete;
pub(crate) mod folder;
pub mod format_of_name;
mod temporary;
mod temporary_name;
mod unfinished;

pub use self::complete::Complete;
pub use self::complete::{SetAside, place_of};
pub use self::folder::{OutputFolder, names_folder};
pub use self::unfinished::Unfinished;

/// Bytes that are handed on at once.
const BUFFER_BYTES: usize = 1 << 16;

/// An output, buffered, and compressed as its name says; [`Output::finish`] must be called at the end.
#[derive(Debug)]
pub struct Output {
    /// Its path in errors; `-` for standard output.
    path: PathBuf,
    writer: BufWriter<Compressor<Box<dyn Write + Send>>>,
    /// The file that the writer writes to, dropped after the writer; `None` for other outputs.
    file: Option<TemporaryFile>,
}

fn refuse_in_store(path: &Path) -> Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    if simstore::store::stored_bits(folder).is_ok() {
        return Err(Error::BadArgument(format!(
            "{}: is inside a store directory; write it elsewhere",
            path.display()
        )));
    }
    Ok(())
}

impl Output {
    /// A file, compressed as its name says.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a path inside a store, or that names no file; [`Error::Refused`] if another process writes
    /// it; [`Error::Io`] if it cannot be written.
    pub fn create(path: &Path, unfinished: &Unfinished) -> Result<Self> {
        refuse_in_store(path)?;
        Output::of_file(path, Compression::of_name(path), TemporaryFile::create(path, unfinished)?)
    }

    /// A file that a later run reads, such as a part. It is not compressed, and it takes the place of anything with its name, also of a
    /// pipe, which an output would be written to.
    ///
    /// # Errors
    /// As [`Output::create`].
    pub fn replace(path: &Path, unfinished: &Unfinished) -> Result<Self> {
        refuse_in_store(path)?;
        Output::of_file(path, Compression::None, TemporaryFile::replace(path, unfinished)?)
    }

    /// An uncompressed output to any writer, such as standard output, a socket or memory. Errors name it by this path.
    pub fn of_writer(path: &Path, writer: Box<dyn Write + Send>) -> Self {
        Output::new(path, Compressor::plain(writer), None)
    }

    fn of_file(path: &Path, compression: Compression, file: TemporaryFile) -> Result<Self> {
        let writer: Box<dyn Write + Send> = Box::new(Arc::clone(&file.file));
        let compressor = Compressor::new(compression, writer).map_err(Error::io(path, "write"))?;
        Ok(Output::new(path, compressor, Some(file)))
    }

    fn new(path: &Path, compressor: Compressor<Box<dyn Write + Send>>, file: Option<TemporaryFile>) -> Self {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, compressor);
        Output { path: path.to_path_buf(), writer, file }
    }

    /// Writes bytes.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be written, as in all that follows.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(Error::io(&self.path, "write"))
    }

    /// Writes a line.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn line(&mut self, line: impl fmt::Display) -> Result<()> {
        writeln!(self.writer, "{line}").map_err(Error::io(&self.path, "write"))
    }

    /// Writes an object as one line of JSON.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn json(&mut self, object: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.writer, object)
            .map_err(|error| Error::io(&self.path, "write")(error.into()))?;
        self.push(b"\n")
    }

    /// Writes what a function draws.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub fn draw(&mut self, draw: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        draw(&mut self.writer).map_err(Error::io(&self.path, "write"))
    }

    /// Lets what comes next be read by itself, if this is gzip.
    ///
    /// # Errors
    /// [`Error::Io`] if what is left cannot be written.
    pub fn end_member(&mut self) -> Result<()> {
        let ended = self.writer.flush().and_then(|()| self.writer.get_mut().end_member());
        ended.map_err(Error::io(&self.path, "write"))
    }

    /// Writes the rest and gives a file its name.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written; the file is gone then.
    pub fn finish(self) -> Result<()> {
        self.complete()?.publish()
    }

    /// Writes the rest, and waits until it is on the disk. A file has not got its name then.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written; the file is gone then.
    pub fn complete(self) -> Result<Complete> {
        let Output { path, writer, file } = self;
        writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(Compressor::finish)
            .and_then(|mut writer| writer.flush())
            .map_err(Error::io(&path, "write"))?;
        match file {
            Some(file) => file.complete(path),
            None => Ok(Complete::new(path, TemporaryName::default(), None)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    /// Hands over what is still in the buffer: for output that someone waits for.
    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_when_it_is_complete_and_what_is_dropped_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "before").unwrap();
        let unfinished = Unfinished::default();
        let mut dropped = Output::create(&path, &unfinished).unwrap();
        dropped.line("half").unwrap();
        assert_eq!(names(folder.path()), [".a.txt.tmp", "a.txt"]);
        let second = Output::create(&path, &unfinished).unwrap_err();
        assert!(matches!(second, Error::Refused(_)), "{second}");
        drop(dropped);
        assert_eq!(names(folder.path()), ["a.txt"]);
        let mut output = Output::create(&path, &unfinished).unwrap();
        output.line("whole").unwrap();
        let complete = output.complete().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        complete.publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole\n");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn the_unfinished_files_of_one_job_are_removed_and_not_those_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = [Unfinished::default(), Unfinished::default()];
        let our_file = Output::create(&folder.path().join("a"), &ours).unwrap();
        let their_file = Output::create(&folder.path().join("b"), &theirs).unwrap();
        ours.remove_for_good();
        assert_eq!(names(folder.path()), [".b.tmp"]);
        their_file.finish().unwrap();
        assert_eq!(names(folder.path()), ["b"]);
        // Dropping `our_file` would lock the list, which stays locked: it would wait for ever.
        std::mem::forget(our_file);
    }
}
