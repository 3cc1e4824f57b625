//! Files that are written once, and read in order.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::Arc;

use simstore::{Error, Result};

use super::folder::Temporary;

/// Bytes that are written or read at once.
const BUFFER: usize = 1 << 18;

/// A temporary file that is being written.
#[derive(Debug)]
pub(crate) struct SpillWriter {
    file: SpillFile,
    writer: BufWriter<File>,
}

/// A temporary file that is complete, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct SpillFile {
    temporary: Arc<Temporary>,
    path: PathBuf,
    bytes: u64,
}

/// Reads a temporary file from its start.
#[derive(Debug)]
pub(crate) struct SpillReader {
    path: PathBuf,
    reader: BufReader<File>,
    /// A file that is removed when it has been read.
    _file: Option<SpillFile>,
}

impl SpillWriter {
    pub(super) fn create(temporary: &Arc<Temporary>, path: PathBuf) -> Result<SpillWriter> {
        let file = File::create(&path).map_err(|error| temporary.failed(&error))?;
        Ok(SpillWriter {
            file: SpillFile { temporary: Arc::clone(temporary), path, bytes: 0 },
            writer: BufWriter::with_capacity(BUFFER, file),
        })
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// That of [`Temporary::failed`].
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer.write_all(bytes).map_err(|error| self.file.temporary.failed(&error))?;
        self.file.bytes += bytes.len() as u64;
        self.file.temporary.wrote(bytes.len() as u64);
        Ok(())
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn finish(self) -> Result<SpillFile> {
        let SpillWriter { file, writer } = self;
        match writer.into_inner().map_err(io::IntoInnerError::into_error) {
            Ok(_) => Ok(file),
            Err(error) => Err(file.temporary.failed(&error)),
        }
    }
}

impl SpillFile {
    /// How long it is.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads it; it can be read again.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened.
    pub(crate) fn read(&self) -> Result<SpillReader> {
        self.read_with(BUFFER)
    }

    /// The same, so many bytes at once.
    ///
    /// # Errors
    /// As [`SpillFile::read`].
    pub(crate) fn read_with(&self, buffer: usize) -> Result<SpillReader> {
        let file = File::open(&self.path).map_err(Error::io(&self.path, "open"))?;
        Ok(SpillReader {
            path: self.path.clone(),
            reader: BufReader::with_capacity(buffer, file),
            _file: None,
        })
    }

    /// Reads it once: it is removed when the reader is dropped.
    ///
    /// # Errors
    /// As [`SpillFile::read`].
    pub(crate) fn read_once(self, buffer: usize) -> Result<SpillReader> {
        let reader = self.read_with(buffer)?;
        Ok(SpillReader { _file: Some(self), ..reader })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        // What cannot be removed goes with the folder.
        let _ = std::fs::remove_file(&self.path);
        self.temporary.removed(self.bytes);
    }
}

impl SpillReader {
    /// Fills a buffer with the bytes that come next; `false` if there are none any more.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be read, or there are some, but fewer.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Result<bool> {
        match self.fill_some(bytes)? {
            read if read == bytes.len() => Ok(true),
            0 => Ok(false),
            _ => Err(Error::io(&self.path, "read")(ErrorKind::UnexpectedEof.into())),
        }
    }

    /// The same with as many as there are; says how many.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be read.
    pub(crate) fn fill_some(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.reader.read(&mut bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, "read")(error)),
            }
        }
        Ok(filled)
    }
}
