//! Output files that appear only when they are complete.
//!
//! An [`Output`] is written under a temporary name, synced, and renamed at the end by [`Output::finish`]. To
//! make several outputs appear together, first [complete](Output::complete) all of them, then publish all. An
//! output that is dropped leaves no file.

use std::fmt;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use simstore::{Error, Result};

use self::temporary_file::TemporaryFile;
use self::temporary_path::TemporaryPath;
use crate::{Compression, Compressor};

mod complete_output;
pub(crate) mod output_folder;
pub mod output_format;
mod temporary_file;
mod temporary_path;
mod unfinished_outputs;

pub use self::complete_output::CompleteOutput;
pub use self::complete_output::{StagedOutput, resolve_path};
pub use self::output_folder::{OutputFolder, is_folder_path};
pub use self::unfinished_outputs::UnfinishedOutputs;

/// Size in bytes of the buffer for data that the compressor has not yet got.
const BUFFER_BYTES: usize = 1 << 16;

/// A buffered output, compressed according to its name. Call [`Output::finish`] at the end.
#[derive(Debug)]
pub struct Output {
    /// Path in error messages; `-` for standard output.
    path: PathBuf,
    writer: BufWriter<Compressor<Box<dyn Write + Send>>>,
    /// File that `writer` writes to; `None` if the output is not a file. This field is after `writer`, and so is
    /// dropped later.
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
    /// Creates a file, compressed according to its name. A pipe or a device is written directly.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a path inside a store, or without a file name; [`Error::Refused`] if
    /// another process writes the file; [`Error::Io`] if the file cannot be written.
    pub fn create(path: &Path, unfinished: &UnfinishedOutputs) -> Result<Self> {
        refuse_in_store(path)?;
        Output::from_file(path, Compression::from_name(path), TemporaryFile::create(path, unfinished)?)
    }

    /// Creates an uncompressed file that a later run reads, such as a part of a distributed job. The file replaces
    /// anything with its name except a folder. Even a pipe is replaced, whereas [`Output::create`] writes to the pipe.
    ///
    /// # Errors
    /// See [`Output::create`].
    pub fn replace(path: &Path, unfinished: &UnfinishedOutputs) -> Result<Self> {
        refuse_in_store(path)?;
        Output::from_file(path, Compression::None, TemporaryFile::replace(path, unfinished)?)
    }

    /// Creates an uncompressed output to any writer, such as standard output, a socket, or memory. Error messages
    /// call the output `path`.
    pub fn from_writer(path: &Path, writer: Box<dyn Write + Send>) -> Self {
        Output::new(path, Compressor::uncompressed(writer), None)
    }

    fn from_file(path: &Path, compression: Compression, file: TemporaryFile) -> Result<Self> {
        let writer: Box<dyn Write + Send> = Box::new(Arc::clone(&file.file));
        let compressor = Compressor::new(compression, writer).map_err(Error::io(path, "write"))?;
        Ok(Output::new(path, compressor, Some(file)))
    }

    fn new(path: &Path, compressor: Compressor<Box<dyn Write + Send>>, file: Option<TemporaryFile>) -> Self {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, compressor);
        Output { path: path.to_path_buf(), writer, file }
    }

    /// Appends bytes to the output.
    ///
    /// # Errors
    /// [`Error::Io`] if the bytes cannot be written.
    pub fn write_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(Error::io(&self.path, "write"))
    }

    /// Appends a line and a newline to the output.
    ///
    /// # Errors
    /// [`Error::Io`] if the line cannot be written.
    pub fn write_line(&mut self, line: impl fmt::Display) -> Result<()> {
        writeln!(self.writer, "{line}").map_err(Error::io(&self.path, "write"))
    }

    /// Appends an object to the output, as one line of JSON.
    ///
    /// # Errors
    /// [`Error::Io`] if the object cannot be written.
    pub fn write_json(&mut self, object: &impl Serialize) -> Result<()> {
        serde_json::to_writer(&mut self.writer, object)
            .map_err(|error| Error::io(&self.path, "write")(error.into()))?;
        self.write_bytes(b"\n")
    }

    /// Calls a function that writes to the output.
    ///
    /// # Errors
    /// [`Error::Io`] if the function fails.
    pub fn write_with(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        write(&mut self.writer).map_err(Error::io(&self.path, "write"))
    }

    /// Ends the current gzip member, so that the following data can be decompressed without the data before
    /// it. Other outputs are only flushed.
    ///
    /// # Errors
    /// [`Error::Io`] if buffered data cannot be written.
    pub fn end_member(&mut self) -> Result<()> {
        let ended = self.writer.flush().and_then(|()| self.writer.get_mut().end_member());
        ended.map_err(Error::io(&self.path, "write"))
    }

    /// Completes the output. A file is renamed to its final name.
    ///
    /// # Errors
    /// [`Error::Io`] if the output cannot be written; its temporary file is removed then.
    pub fn finish(self) -> Result<()> {
        self.complete()?.publish()
    }

    /// Writes all buffered data. A file is synced to disk, and keeps its temporary name.
    ///
    /// # Errors
    /// [`Error::Io`] if the output cannot be written; its temporary file is removed then.
    pub fn complete(self) -> Result<CompleteOutput> {
        let Output { path, writer, file } = self;
        writer
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(Compressor::finish)
            .and_then(|mut writer| writer.flush())
            .map_err(Error::io(&path, "write"))?;
        match file {
            Some(file) => file.complete(path),
            None => Ok(CompleteOutput::new(path, TemporaryPath::default(), None)),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    /// Passes all buffered data through the compressor to the file or pipe. This is necessary if the output is read
    /// while it is written.
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
    fn a_file_appears_when_complete_and_dropped_outputs_leave_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        std::fs::write(&path, "before").unwrap();
        let unfinished = UnfinishedOutputs::default();
        let mut dropped = Output::create(&path, &unfinished).unwrap();
        dropped.write_line("half").unwrap();
        assert_eq!(names(folder.path()), [".a.txt.tmp", "a.txt"]);
        let second = Output::create(&path, &unfinished).unwrap_err();
        assert!(matches!(second, Error::Refused(_)), "{second}");
        drop(dropped);
        assert_eq!(names(folder.path()), ["a.txt"]);
        let mut output = Output::create(&path, &unfinished).unwrap();
        output.write_line("whole").unwrap();
        let complete = output.complete().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
        complete.publish().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole\n");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn the_unfinished_files_of_one_job_are_removed_and_not_those_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, theirs] = [UnfinishedOutputs::default(), UnfinishedOutputs::default()];
        let our_file = Output::create(&folder.path().join("a"), &ours).unwrap();
        let their_file = Output::create(&folder.path().join("b"), &theirs).unwrap();
        ours.remove_all_and_block();
        assert_eq!(names(folder.path()), [".b.tmp"]);
        their_file.finish().unwrap();
        assert_eq!(names(folder.path()), ["b"]);
        // Dropping `our_file` would wait forever for the lock of the list.
        std::mem::forget(our_file);
    }
}
