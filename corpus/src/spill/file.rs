//! Files that are written once, and read in order.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use simstore::{Error, Result};

use super::fixed::{Fixed, MAX_RECORD};
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
    /// Open for whoever reads here and there.
    opened: OnceLock<File>,
}

/// Reads a temporary file from its start.
#[derive(Debug)]
pub(crate) struct SpillReader {
    path: PathBuf,
    reader: BufReader<File>,
    /// Bytes that are still to come.
    left: u64,
    /// A file that is removed when it has been read.
    _file: Option<SpillFile>,
}

impl Temporary {
    /// A new file of the folder.
    ///
    /// # Errors
    /// [`Error::Refused`] if it cannot be made.
    pub(crate) fn create(self: &Arc<Self>, name: &str) -> Result<SpillWriter> {
        self.create_with(name, BUFFER)
    }

    /// The same, written so many bytes at a time.
    ///
    /// # Errors
    /// As [`Temporary::create`].
    pub(crate) fn create_with(self: &Arc<Self>, name: &str, buffer: usize) -> Result<SpillWriter> {
        SpillWriter::create(self, self.new_path(name)?, buffer)
    }
}

impl SpillWriter {
    /// Bytes are written so many at a time.
    fn create(temporary: &Arc<Temporary>, path: PathBuf, buffer: usize) -> Result<SpillWriter> {
        let file = File::create_new(&path).map_err(|error| temporary.failed(&error))?;
        Ok(SpillWriter {
            file: SpillFile { temporary: Arc::clone(temporary), path, bytes: 0, opened: OnceLock::new() },
            writer: BufWriter::with_capacity(buffer, file),
        })
    }

    /// How many bytes have been written.
    pub(crate) fn bytes(&self) -> u64 {
        self.file.bytes
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

    /// Adds records, and before them how many there are.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn push_records<R: Fixed>(&mut self, records: impl ExactSizeIterator<Item = R>) -> Result<()> {
        self.push(&(records.len() as u64).to_le_bytes())?;
        let mut bytes = [0; MAX_RECORD];
        for record in records {
            record.write(&mut bytes);
            self.push(&bytes[..R::BYTES])?;
        }
        Ok(())
    }

    /// Adds a text, and before it how long it is.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub(crate) fn push_text(&mut self, text: &str) -> Result<()> {
        self.push(&(text.len() as u64).to_le_bytes())?;
        self.push(text.as_bytes())
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
            left: self.bytes,
            _file: None,
        })
    }

    /// Reads what stands there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read.
    pub(crate) fn read_at(&self, bytes: &mut [u8], place: u64) -> Result<()> {
        let file = match self.opened.get() {
            Some(file) => file,
            None => {
                let file = File::open(&self.path).map_err(Error::io(&self.path, "open"))?;
                self.opened.get_or_init(|| file)
            }
        };
        read_at(file, bytes, place).map_err(Error::io(&self.path, "read"))
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

/// Reads what stands in a file there, from any thread.
#[cfg(unix)]
pub(crate) fn read_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, place)
}

/// Reads what stands in a file there, from any thread.
#[cfg(windows)]
pub(crate) fn read_at(file: &File, mut bytes: &mut [u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, place)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            read => (bytes, place) = (&mut bytes[read..], place + read as u64),
        }
    }
    Ok(())
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
            _ => Err(self.changed()),
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
        self.left = self.left.saturating_sub(filled as u64);
        Ok(filled)
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.left == 0
    }

    /// The records that were added together.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be read, or others have changed the file.
    pub(crate) fn records<R: Fixed>(&mut self) -> Result<Vec<R>> {
        let count = self.length(R::BYTES)?;
        let mut records = Vec::with_capacity(count);
        let mut bytes = [0; MAX_RECORD];
        for _ in 0..count {
            self.all(&mut bytes[..R::BYTES])?;
            records.push(R::read(&bytes));
        }
        Ok(records)
    }

    /// A text that was added.
    ///
    /// # Errors
    /// As [`SpillReader::records`].
    pub(crate) fn text(&mut self) -> Result<String> {
        let mut bytes = vec![0; self.length(1)?];
        self.all(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.changed())
    }

    fn length(&mut self, of_each: usize) -> Result<usize> {
        let mut bytes = [0; 8];
        self.all(&mut bytes)?;
        let count = u64::from_le_bytes(bytes);
        match usize::try_from(count) {
            Ok(length) if count.saturating_mul(of_each as u64) <= self.left => Ok(length),
            _ => Err(self.changed()),
        }
    }

    fn all(&mut self, bytes: &mut [u8]) -> Result<()> {
        if self.fill_some(bytes)? == bytes.len() { Ok(()) } else { Err(self.changed()) }
    }

    /// The error of a file that is not as it was written.
    pub(crate) fn changed(&self) -> Error {
        Error::io(&self.path, "read")(ErrorKind::InvalidData.into())
    }
}
