//! Temporary files that are written once and read sequentially.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fixed_size::FixedSize;
use super::location::SpillLocation;
use crate::error::{Error, Result};
use crate::fs::WriteFile;
use crate::threads::Process;

/// Default size of a read or write buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// Writer of a temporary file.
pub struct SpillWriter {
    file: SpillFile,
    output: Box<dyn WriteFile>,
    buffer: Vec<u8>,
    /// Size limit of `buffer` in bytes.
    limit: usize,
}

/// A complete temporary file. The file is removed when this value is dropped, but only in the process that created the file.
#[derive(Debug)]
pub struct SpillFile {
    location: Arc<dyn SpillLocation>,
    path: PathBuf,
    bytes: u64,
    process: Process,
}

/// Sequential reader of a temporary file.
pub struct SpillReader {
    location: Arc<dyn SpillLocation>,
    path: PathBuf,
    input: Box<dyn Read + Send>,
    /// Read buffer. Its bytes `at..end` have been read from the disk, but not by the caller.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Size of `buffer` in bytes. The buffer grows beyond it only for a longer record.
    limit: usize,
    /// Number of bytes that have not been read from the disk yet.
    on_disk: u64,
    /// The file, if the reader is from [`SpillFile::open_once`]: dropping the reader then removes the file.
    _file: Option<SpillFile>,
}

impl fmt::Debug for SpillWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl fmt::Debug for SpillReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpillReader").field("path", &self.path).finish_non_exhaustive()
    }
}

impl SpillWriter {
    /// Creates a file in a location.
    ///
    /// # Errors
    /// The error of [`SpillLocation::file_error`] if the file cannot be created.
    pub fn create(location: Arc<dyn SpillLocation>) -> Result<SpillWriter> {
        SpillWriter::create_with_buffer(location, BUFFER_BYTES)
    }

    /// Like [`SpillWriter::create`], with a buffer of `buffer` bytes.
    ///
    /// # Errors
    /// See [`SpillWriter::create`].
    pub fn create_with_buffer(location: Arc<dyn SpillLocation>, buffer: usize) -> Result<SpillWriter> {
        let path = location.path(location.counters().next_file())?;
        let output =
            location.fs().create(&path).map_err(|error| location.file_error(&path, "create", error))?;
        let file = SpillFile { location, path, bytes: 0, process: Process::this() };
        Ok(SpillWriter { file, output, buffer: Vec::with_capacity(buffer), limit: buffer })
    }

    /// Number of bytes appended so far.
    pub fn bytes(&self) -> u64 {
        self.file.bytes + self.buffer.len() as u64
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The error of [`SpillLocation::file_error`] if the file cannot be written.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.buffer.len() + bytes.len() > self.limit {
            self.flush()?;
        }
        if bytes.len() >= self.limit {
            return self.write(bytes);
        }
        self.buffer.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends a record.
    ///
    /// # Errors
    /// See [`SpillWriter::push`].
    #[inline]
    pub fn push_record<R: FixedSize>(&mut self, record: R) -> Result<()> {
        let start = self.buffer.len();
        if start + R::BYTES > self.limit {
            self.flush()?;
        }
        let start = self.buffer.len();
        self.buffer.resize(start + R::BYTES, 0);
        record.write(&mut self.buffer[start..]);
        Ok(())
    }

    /// Appends the records of a slice; faster than one by one.
    ///
    /// # Errors
    /// See [`SpillWriter::push`].
    pub fn push_all<R: FixedSize>(&mut self, mut records: &[R]) -> Result<()> {
        while !records.is_empty() {
            if self.buffer.len() + R::BYTES > self.limit {
                self.flush()?;
            }
            let start = self.buffer.len();
            let room = (self.limit.saturating_sub(start) / R::BYTES).max(1);
            let (now, later) = records.split_at(room.min(records.len()));
            self.buffer.resize(start + now.len() * R::BYTES, 0);
            let slots = self.buffer[start..].chunks_exact_mut(R::BYTES);
            now.iter().zip(slots).for_each(|(record, slot)| record.write(slot));
            records = later;
        }
        Ok(())
    }

    /// Appends the number of records, and then the records. [`SpillReader::read_records`] reads them.
    ///
    /// # Errors
    /// See [`SpillWriter::push`].
    pub fn push_records<R: FixedSize>(
        &mut self,
        mut records: impl ExactSizeIterator<Item = R>,
    ) -> Result<()> {
        self.push_record(records.len() as u64)?;
        records.try_for_each(|record| self.push_record(record))
    }

    /// Appends the length of a text in bytes, and then the text. [`SpillReader::read_text`] reads it.
    ///
    /// # Errors
    /// See [`SpillWriter::push`].
    pub fn push_text(&mut self, text: &str) -> Result<()> {
        self.push_record(text.len() as u64)?;
        self.push(text.as_bytes())
    }

    /// Writes the rest of the buffer and returns the complete file.
    ///
    /// # Errors
    /// See [`SpillWriter::push`].
    pub fn finish(mut self) -> Result<SpillFile> {
        self.flush()?;
        Ok(self.file)
    }

    fn flush(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.buffer);
        let written = self.write(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        written
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let SpillFile { location, path, .. } = &self.file;
        self.output.write_all(bytes).map_err(|error| location.file_error(path, "write", error))?;
        location.counters().add_written(bytes.len() as u64);
        self.file.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl SpillFile {
    /// Path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// File size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Opens the file for reading. It can be opened any number of times.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened.
    pub fn open(&self) -> Result<SpillReader> {
        self.open_with_buffer(BUFFER_BYTES)
    }

    /// Like [`SpillFile::open`], with a buffer of `buffer` bytes.
    ///
    /// # Errors
    /// See [`SpillFile::open`].
    pub fn open_with_buffer(&self, buffer: usize) -> Result<SpillReader> {
        let input = self.location.fs().open(&self.path).map_err(Error::io(&self.path, "open"))?;
        Ok(SpillReader {
            location: self.location.clone(),
            path: self.path.clone(),
            input,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            limit: buffer,
            on_disk: self.bytes,
            _file: None,
        })
    }

    /// Opens the file for reading once: dropping the reader removes the file.
    ///
    /// # Errors
    /// See [`SpillFile::open`].
    pub(super) fn open_once(self, buffer: usize) -> Result<SpillReader> {
        let reader = self.open_with_buffer(buffer)?;
        Ok(SpillReader { _file: Some(self), ..reader })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if self.process.is_here() {
            // A file that cannot be removed is left for the removal of the folder, or for the next build in it.
            let _ = self.location.fs().remove(&self.path);
            self.location.counters().add_removed(self.bytes);
        }
    }
}

impl SpillReader {
    /// Whether the caller has read the whole file.
    pub fn is_at_end(&self) -> bool {
        self.on_disk == 0 && self.at == self.end
    }

    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, or was changed after it was written.
    #[inline]
    pub fn read_record<R: FixedSize>(&mut self) -> Result<Option<R>> {
        if self.end - self.at < R::BYTES {
            if self.is_at_end() {
                return Ok(None);
            }
            self.refill(R::BYTES)?;
        }
        let record = R::read(&self.buffer[self.at..]);
        self.at += R::BYTES;
        Ok(Some(record))
    }

    /// Replaces the contents of `records` with the next records: about as many as fit in the read buffer. Returns
    /// `false` at the end of the file.
    ///
    /// # Errors
    /// See [`SpillReader::read_record`].
    pub fn read_batch<R: FixedSize>(&mut self, records: &mut Vec<R>) -> Result<bool> {
        records.clear();
        if self.is_at_end() {
            return Ok(false);
        }
        self.refill(R::BYTES)?;
        let whole = self.buffer[self.at..self.end].chunks_exact(R::BYTES);
        records.extend(whole.map(R::read));
        self.at += records.len() * R::BYTES;
        Ok(true)
    }

    /// Appends the next `count` records to `records`; faster than one by one.
    ///
    /// # Errors
    /// See [`SpillReader::read_record`]; also if fewer records are left.
    pub fn read_count<R: FixedSize>(&mut self, mut count: usize, records: &mut Vec<R>) -> Result<()> {
        while count > 0 {
            if self.end - self.at < R::BYTES {
                self.refill(R::BYTES)?;
            }
            let whole = self.buffer[self.at..self.end].chunks_exact(R::BYTES).take(count);
            let now = whole.len();
            records.extend(whole.map(R::read));
            self.at += now * R::BYTES;
            count -= now;
        }
        Ok(())
    }

    /// Reads the records of one [`SpillWriter::push_records`].
    ///
    /// # Errors
    /// See [`SpillReader::read_record`].
    pub fn read_records<R: FixedSize>(&mut self) -> Result<Vec<R>> {
        let count = self.read_length(R::BYTES)?;
        let mut records = Vec::with_capacity(count);
        self.read_count(count, &mut records)?;
        Ok(records)
    }

    /// Reads the text of one [`SpillWriter::push_text`].
    ///
    /// # Errors
    /// See [`SpillReader::read_record`].
    pub fn read_text(&mut self) -> Result<String> {
        let mut bytes = vec![0; self.read_length(1)?];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.changed_error())
    }

    /// Error for a file whose contents were changed after it was written.
    pub fn changed_error(&self) -> Error {
        Error::io(&self.path, "read")(ErrorKind::InvalidData.into())
    }

    /// Fills `bytes` with the next bytes of the file. Fails if the file has fewer bytes left.
    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.at == self.end {
                self.refill(1)?;
            }
            let some = bytes.len().min(self.end - self.at);
            let (now, later) = bytes.split_at_mut(some);
            now.copy_from_slice(&self.buffer[self.at..self.at + some]);
            self.at += some;
            bytes = later;
        }
        Ok(())
    }

    /// Reads the count of the items that follow, each of `item_bytes` bytes. Fails if the file has fewer bytes left than
    /// these items take.
    fn read_length(&mut self, item_bytes: usize) -> Result<usize> {
        let count: u64 = self.read_record()?.ok_or_else(|| self.changed_error())?;
        let left = self.on_disk + (self.end - self.at) as u64;
        match usize::try_from(count) {
            Ok(length) if count.saturating_mul(item_bytes as u64) <= left => Ok(length),
            _ => Err(self.changed_error()),
        }
    }

    /// Reads from the disk until the buffer has at least `min_bytes` bytes for the caller.
    #[cold]
    #[inline(never)]
    fn refill(&mut self, min_bytes: usize) -> Result<()> {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        let room = self.limit.max(min_bytes).saturating_sub(self.end);
        let end = self.end + room.min(usize::try_from(self.on_disk).unwrap_or(usize::MAX));
        if self.buffer.len() < end {
            self.buffer.reserve_exact(end - self.buffer.len());
            self.buffer.resize(end, 0);
        }
        let bytes = &mut self.buffer[self.end..end];
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.changed_error(),
            _ => Error::io(&self.path, "read")(error),
        })?;
        let read = (end - self.end) as u64;
        self.location.counters().add_read(read);
        (self.on_disk, self.end) = (self.on_disk - read, end);
        if self.end < min_bytes { Err(self.changed_error()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fs::{Disk, Fs};
    use crate::spill::PrefixLocation;

    #[test]
    fn written_records_are_read_in_batches_of_any_size() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let location = PrefixLocation::new(&fs, &folder.path().join("part"));
        for (written, read) in [(0, 0), (1, 7), (10, 3), (64, 64), (1 << 18, 1 << 18)] {
            let mut file = SpillWriter::create_with_buffer(location.clone(), written).unwrap();
            file.push_text("a text").unwrap();
            file.push_records([7_u32, 8, 9].into_iter()).unwrap();
            let rows: Vec<(u64, u8)> = (0..1000).map(|at| (at, at as u8)).collect();
            rows[..300].iter().try_for_each(|&row| file.push_record(row)).unwrap();
            file.push_all(&rows[300..]).unwrap();
            let bytes = file.bytes();
            let file = file.finish().unwrap();
            assert_eq!((file.bytes(), location.counters().on_disk()), (bytes, bytes));
            for _ in 0..2 {
                let mut file = file.open_with_buffer(read).unwrap();
                assert_eq!(file.read_text().unwrap(), "a text");
                assert_eq!(file.read_records::<u32>().unwrap(), [7, 8, 9]);
                let mut some = Vec::new();
                file.read_count::<(u64, u8)>(100, &mut some).unwrap();
                assert_eq!(some, rows[..100]);
                let mut at = 100;
                while at < 500 {
                    assert!(file.read_batch::<(u64, u8)>(&mut some).unwrap());
                    some.iter().for_each(|row| {
                        assert_eq!(*row, (at, at as u8));
                        at += 1;
                    });
                }
                while let Some(row) = file.read_record::<(u64, u8)>().unwrap() {
                    assert_eq!(row, (at, at as u8));
                    at += 1;
                }
                assert!(!file.read_batch::<(u64, u8)>(&mut some).unwrap());
                assert!(
                    at == 1000
                        && some.is_empty()
                        && file.is_at_end()
                        && file.read_record::<u8>().unwrap().is_none()
                );
            }
        }
        assert_eq!(location.counters().on_disk(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let location = PrefixLocation::new(&fs, &folder.path().join("part"));
        let mut file = SpillWriter::create(location).unwrap();
        (0..1000_u64).try_for_each(|record| file.push_record(record)).unwrap();
        let file = file.finish().unwrap();
        for length in [0, 80, 81, 7999] {
            let whole = std::fs::File::options().write(true).open(file.path()).unwrap();
            whole.set_len(8000).unwrap();
            whole.set_len(length).unwrap();
            let mut reader = file.open_with_buffer(80).unwrap();
            let error = loop {
                match reader.read_record::<u64>() {
                    Ok(record) => assert!(record.is_some(), "{length}"),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Io { .. }), "{error}");
        }
    }
}
