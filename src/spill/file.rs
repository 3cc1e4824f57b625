//! Temporary files that are written once, and read in order.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::fixed::Fixed;
use super::place::Place;
use crate::error::{Error, Result};
use crate::fs::WriteFile;
use crate::threads::Process;

/// Bytes that are written or read at once.
const BUFFER: usize = 1 << 18;

/// A temporary file that is being written.
pub struct SpillWriter {
    file: SpillFile,
    output: Box<dyn WriteFile>,
    buffer: Vec<u8>,
    /// Bytes that are written at once.
    limit: usize,
}

/// A temporary file that is complete. It is removed when this is dropped by the process that has made it.
#[derive(Debug)]
pub struct SpillFile {
    place: Arc<dyn Place>,
    path: PathBuf,
    bytes: u64,
    process: Process,
}

/// Reads a temporary file from its start.
pub struct SpillReader {
    place: Arc<dyn Place>,
    path: PathBuf,
    input: Box<dyn Read + Send>,
    /// Those from `at` to `end` have been read from the disk, and not been asked for.
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    /// Bytes that are read at once.
    limit: usize,
    /// Bytes that are still on the disk.
    left: u64,
    /// A file that is removed when it has been read.
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
    /// A new file of a place.
    ///
    /// # Errors
    /// That of [`Place::failed`].
    pub fn create(place: Arc<dyn Place>) -> Result<SpillWriter> {
        SpillWriter::create_with(place, BUFFER)
    }

    /// The same, written so many bytes at a time.
    ///
    /// # Errors
    /// As [`SpillWriter::create`].
    pub fn create_with(place: Arc<dyn Place>, buffer: usize) -> Result<SpillWriter> {
        let path = place.path(place.counts().next_file())?;
        let output = place.fs().create(&path).map_err(|error| place.failed(&path, "create", error))?;
        let file = SpillFile { place, path, bytes: 0, process: Process::this() };
        Ok(SpillWriter { file, output, buffer: Vec::with_capacity(buffer), limit: buffer })
    }

    /// How many bytes have been added.
    pub fn bytes(&self) -> u64 {
        self.file.bytes + self.buffer.len() as u64
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// That of [`Place::failed`].
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

    /// Adds a record.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    #[inline]
    pub fn push_record<R: Fixed>(&mut self, record: R) -> Result<()> {
        let start = self.buffer.len();
        if start + R::BYTES > self.limit {
            self.flush()?;
        }
        let start = self.buffer.len();
        self.buffer.resize(start + R::BYTES, 0);
        record.write(&mut self.buffer[start..]);
        Ok(())
    }

    /// Adds records that stand one after the other: faster than one by one.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub fn push_all<R: Fixed>(&mut self, mut records: &[R]) -> Result<()> {
        while !records.is_empty() {
            if self.buffer.len() + R::BYTES > self.limit {
                self.flush()?;
            }
            let start = self.buffer.len();
            let room = (self.limit.saturating_sub(start) / R::BYTES).max(1);
            let (now, later) = records.split_at(room.min(records.len()));
            self.buffer.resize(start + now.len() * R::BYTES, 0);
            let places = self.buffer[start..].chunks_exact_mut(R::BYTES);
            now.iter().zip(places).for_each(|(record, place)| record.write(place));
            records = later;
        }
        Ok(())
    }

    /// Adds records, and before them how many there are.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub fn push_records<R: Fixed>(&mut self, mut records: impl ExactSizeIterator<Item = R>) -> Result<()> {
        self.push_record(records.len() as u64)?;
        records.try_for_each(|record| self.push_record(record))
    }

    /// Adds a text, and before it how long it is.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
    pub fn push_text(&mut self, text: &str) -> Result<()> {
        self.push_record(text.len() as u64)?;
        self.push(text.as_bytes())
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// As [`SpillWriter::push`].
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
        let SpillFile { place, path, .. } = &self.file;
        self.output.write_all(bytes).map_err(|error| place.failed(path, "write", error))?;
        place.counts().add_written(bytes.len() as u64);
        self.file.bytes += bytes.len() as u64;
        Ok(())
    }
}

impl SpillFile {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads it; it can be read again.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be opened.
    pub fn read(&self) -> Result<SpillReader> {
        self.read_with(BUFFER)
    }

    /// The same, so many bytes at once.
    ///
    /// # Errors
    /// As [`SpillFile::read`].
    pub fn read_with(&self, buffer: usize) -> Result<SpillReader> {
        let input = self.place.fs().open(&self.path).map_err(Error::io(&self.path, "open"))?;
        Ok(SpillReader {
            place: self.place.clone(),
            path: self.path.clone(),
            input,
            buffer: Vec::new(),
            at: 0,
            end: 0,
            limit: buffer,
            left: self.bytes,
            _file: None,
        })
    }

    /// Reads it once: it is removed when the reader is dropped.
    ///
    /// # Errors
    /// As [`SpillFile::read`].
    pub(super) fn read_once(self, buffer: usize) -> Result<SpillReader> {
        let reader = self.read_with(buffer)?;
        Ok(SpillReader { _file: Some(self), ..reader })
    }
}

impl Drop for SpillFile {
    fn drop(&mut self) {
        if self.process.is_here() {
            // What cannot be removed is left to whoever removes the folder, or builds there next.
            let _ = self.place.fs().remove(&self.path);
            self.place.counts().add_removed(self.bytes);
        }
    }
}

impl SpillReader {
    /// Whether all has been read.
    pub fn is_at_end(&self) -> bool {
        self.left == 0 && self.at == self.end
    }

    /// The next record; none at the end.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be read, or others have changed the file.
    #[inline]
    pub fn record<R: Fixed>(&mut self) -> Result<Option<R>> {
        if self.end - self.at < R::BYTES {
            if self.is_at_end() {
                return Ok(None);
            }
            self.more(R::BYTES)?;
        }
        let record = R::read(&self.buffer[self.at..]);
        self.at += R::BYTES;
        Ok(Some(record))
    }

    /// Takes the records that come next in the place of others, as many as are read at once; `false` if there are none any more.
    ///
    /// # Errors
    /// As [`SpillReader::record`].
    pub fn some<R: Fixed>(&mut self, records: &mut Vec<R>) -> Result<bool> {
        records.clear();
        if self.is_at_end() {
            return Ok(false);
        }
        self.more(R::BYTES)?;
        let whole = self.buffer[self.at..self.end].chunks_exact(R::BYTES);
        records.extend(whole.map(R::read));
        self.at += records.len() * R::BYTES;
        Ok(true)
    }

    /// Takes so many records behind others: faster than one by one.
    ///
    /// # Errors
    /// As [`SpillReader::record`], and if there are fewer.
    pub fn take<R: Fixed>(&mut self, mut count: usize, records: &mut Vec<R>) -> Result<()> {
        while count > 0 {
            if self.end - self.at < R::BYTES {
                self.more(R::BYTES)?;
            }
            let whole = self.buffer[self.at..self.end].chunks_exact(R::BYTES).take(count);
            let now = whole.len();
            records.extend(whole.map(R::read));
            self.at += now * R::BYTES;
            count -= now;
        }
        Ok(())
    }

    /// The records that were added together.
    ///
    /// # Errors
    /// As [`SpillReader::record`].
    pub fn records<R: Fixed>(&mut self) -> Result<Vec<R>> {
        let count = self.length(R::BYTES)?;
        let mut records = Vec::with_capacity(count);
        self.take(count, &mut records)?;
        Ok(records)
    }

    /// A text that was added.
    ///
    /// # Errors
    /// As [`SpillReader::record`].
    pub fn text(&mut self) -> Result<String> {
        let mut bytes = vec![0; self.length(1)?];
        self.fill(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| self.changed())
    }

    /// The error of a file that is not as it was written.
    pub fn changed(&self) -> Error {
        Error::io(&self.path, "read")(ErrorKind::InvalidData.into())
    }

    /// Fills a buffer with the bytes that come next.
    fn fill(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.at == self.end {
                self.more(1)?;
            }
            let some = bytes.len().min(self.end - self.at);
            let (now, later) = bytes.split_at_mut(some);
            now.copy_from_slice(&self.buffer[self.at..self.at + some]);
            self.at += some;
            bytes = later;
        }
        Ok(())
    }

    fn length(&mut self, of_each: usize) -> Result<usize> {
        let count: u64 = self.record()?.ok_or_else(|| self.changed())?;
        let left = self.left + (self.end - self.at) as u64;
        match usize::try_from(count) {
            Ok(length) if count.saturating_mul(of_each as u64) <= left => Ok(length),
            _ => Err(self.changed()),
        }
    }

    /// Reads as many bytes as are read at once; at least so many are there then.
    #[cold]
    #[inline(never)]
    fn more(&mut self, least: usize) -> Result<()> {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        let room = self.limit.max(least).saturating_sub(self.end);
        let end = self.end + room.min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if self.buffer.len() < end {
            self.buffer.reserve_exact(end - self.buffer.len());
            self.buffer.resize(end, 0);
        }
        let bytes = &mut self.buffer[self.end..end];
        self.input.read_exact(bytes).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.changed(),
            _ => Error::io(&self.path, "read")(error),
        })?;
        let read = (end - self.end) as u64;
        self.place.counts().add_read(read);
        (self.left, self.end) = (self.left - read, end);
        if self.end < least { Err(self.changed()) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fs::{Disk, Fs};
    use crate::spill::Folder;

    #[test]
    fn what_is_written_is_read_whatever_is_read_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let place = Folder::new(&fs, &folder.path().join("part"));
        for (written, read) in [(0, 0), (1, 7), (10, 3), (64, 64), (1 << 18, 1 << 18)] {
            let mut file = SpillWriter::create_with(place.clone(), written).unwrap();
            file.push_text("a text").unwrap();
            file.push_records([7_u32, 8, 9].into_iter()).unwrap();
            let rows: Vec<(u64, u8)> = (0..1000).map(|at| (at, at as u8)).collect();
            rows[..300].iter().try_for_each(|&row| file.push_record(row)).unwrap();
            file.push_all(&rows[300..]).unwrap();
            let bytes = file.bytes();
            let file = file.finish().unwrap();
            assert_eq!((file.bytes(), place.counts().held()), (bytes, bytes));
            for _ in 0..2 {
                let mut file = file.read_with(read).unwrap();
                assert_eq!(file.text().unwrap(), "a text");
                assert_eq!(file.records::<u32>().unwrap(), [7, 8, 9]);
                let mut some = Vec::new();
                file.take::<(u64, u8)>(100, &mut some).unwrap();
                assert_eq!(some, rows[..100]);
                let mut at = 100;
                while at < 500 {
                    assert!(file.some::<(u64, u8)>(&mut some).unwrap());
                    some.iter().for_each(|row| {
                        assert_eq!(*row, (at, at as u8));
                        at += 1;
                    });
                }
                while let Some(row) = file.record::<(u64, u8)>().unwrap() {
                    assert_eq!(row, (at, at as u8));
                    at += 1;
                }
                assert!(!file.some::<(u64, u8)>(&mut some).unwrap());
                assert!(
                    at == 1000
                        && some.is_empty()
                        && file.is_at_end()
                        && file.record::<u8>().unwrap().is_none()
                );
            }
        }
        assert_eq!(place.counts().held(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let place = Folder::new(&fs, &folder.path().join("part"));
        let mut file = SpillWriter::create(place).unwrap();
        (0..1000_u64).try_for_each(|record| file.push_record(record)).unwrap();
        let file = file.finish().unwrap();
        for length in [0, 80, 81, 7999] {
            let whole = std::fs::File::options().write(true).open(file.path()).unwrap();
            whole.set_len(8000).unwrap();
            whole.set_len(length).unwrap();
            let mut reader = file.read_with(80).unwrap();
            let error = loop {
                match reader.record::<u64>() {
                    Ok(record) => assert!(record.is_some(), "{length}"),
                    Err(error) => break error,
                }
            };
            assert!(matches!(error, Error::Io { .. }), "{error}");
        }
    }
}
