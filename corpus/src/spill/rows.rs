//! Rows (records of fixed size) in memory or, if they exceed the memory budget, in a file. Readers see no difference.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use simstore::spill::{FixedSize, SortedRecords, Sorter, SpillFile, SpillLocation, SpillReader, SpillWriter};
use simstore::{Error, Result};

/// Number of rows that a writer may keep in memory, however small its budget is.
const MIN_ROWS_IN_MEMORY: usize = 1024;
/// Size of the read buffer of a file, in bytes.
const READ_BUFFER_BYTES: usize = 1 << 16;
/// Size of the longest encoded row, in bytes. The longest row is one with a signature.
const MAX_ROW_BYTES: usize = 96;

/// Rows (records of fixed size) in memory or in a file. They can be read in order, any number of times, or by index.
#[derive(Debug)]
pub enum Rows<R> {
    Memory(Vec<R>),
    File(SpilledRows<R>),
}

/// Rows that are in a file.
#[derive(Debug)]
pub struct SpilledRows<R> {
    file: SpillFile,
    /// `file`, opened for reads of rows by index. Empty until the first such read.
    opened: OnceLock<File>,
    rows: PhantomData<R>,
}

/// Writer of [`Rows`]. When the rows need more memory than allowed, the writer moves them to a file.
#[derive(Debug)]
pub struct RowsWriter<R> {
    place: Arc<dyn SpillLocation>,
    /// Maximum number of rows that are kept in memory.
    limit: usize,
    rows: Vec<R>,
    /// File with all rows appended before the rows in memory; `None` if all rows are in memory.
    file: Option<SpillWriter>,
}

impl<R: FixedSize> RowsWriter<R> {
    /// Creates a writer that keeps up to about `memory` bytes of rows in memory. If there are more rows, they go to a file in
    /// `place`.
    pub fn new(place: Arc<dyn SpillLocation>, memory: u64) -> Self {
        let limit = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<R>();
        RowsWriter { place, limit: limit.max(MIN_ROWS_IN_MEMORY), rows: Vec::new(), file: None }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Errors of writing the file, as returned by [`SpillLocation::file_error`].
    pub fn push(&mut self, row: R) -> Result<()> {
        if self.rows.len() >= self.limit {
            self.spill()?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Moves the rows in memory to a file. From then on, the writer keeps at most 1,024 rows in memory.
    ///
    /// # Errors
    /// Errors of [`RowsWriter::push`].
    pub fn spill(&mut self) -> Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => SpillWriter::create(self.place.clone())?,
        };
        file.push_all(&self.rows)?;
        self.file = Some(file);
        self.limit = MIN_ROWS_IN_MEMORY;
        self.rows.clear();
        self.rows.shrink_to(MIN_ROWS_IN_MEMORY);
        Ok(())
    }

    /// Whether no row has been appended.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of rows appended so far, in memory and in the file.
    pub fn len(&self) -> usize {
        self.rows.len() + self.file.as_ref().map_or(0, |file| file.bytes() as usize / R::BYTES)
    }

    /// Number of appended rows that are in memory, not in a file.
    pub fn rows_in_memory(&self) -> usize {
        self.rows.len()
    }

    /// Finishes writing, and returns all rows that were appended.
    ///
    /// # Errors
    /// Errors of [`RowsWriter::push`].
    pub fn finish(mut self) -> Result<Rows<R>> {
        if self.file.is_some() {
            self.spill()?;
        }
        match self.file {
            Some(file) => Ok(Rows::from_file(file.finish()?)),
            None => Ok(Rows::Memory(self.rows)),
        }
    }
}

impl<R: FixedSize> Rows<R> {
    /// Makes [`Rows`] from a file that has only encoded rows.
    pub fn from_file(file: SpillFile) -> Self {
        Rows::File(SpilledRows { file, opened: OnceLock::new(), rows: PhantomData })
    }

    /// Finishes a sorter, and collects its sorted rows in memory or in a file.
    ///
    /// # Errors
    /// Errors of writing and reading the files of the sorter, and of writing the rows.
    pub fn from_sorter(sorter: Sorter<R>) -> Result<Self> {
        let place = sorter.location().clone();
        match sorter.finish()? {
            SortedRecords::Memory(rows) => Ok(Rows::Memory(rows.collect())),
            SortedRecords::Merge(mut rows) => {
                let mut file = SpillWriter::create(place)?;
                rows.try_for_each(|row| file.push_record(row?))?;
                Ok(Rows::from_file(file.finish()?))
            }
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self {
            Rows::Memory(rows) => rows.len(),
            Rows::File(rows) => rows.file.bytes() as usize / R::BYTES,
        }
    }

    /// Returns the row at an index. Panics if the rows are in memory and the index is too large.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if the file cannot be read.
    pub fn get(&self, at: usize) -> Result<R> {
        match self {
            Rows::Memory(rows) => Ok(rows[at]),
            Rows::File(rows) => rows.get(at),
        }
    }

    /// Returns the index of the first row for which `holds` is false, by binary search. `holds` must be true for all rows
    /// before this row, and false for all rows after it. If `holds` is true for all rows, returns the number of rows.
    ///
    /// # Errors
    /// Errors of [`Rows::get`].
    pub fn partition_point(&self, holds: impl FnMut(&R) -> bool) -> Result<usize> {
        self.partition_point_in(0..self.len(), holds)
    }

    /// Like [`partition_point`](Self::partition_point), but searches only a range of rows. If `holds` is true for all rows
    /// in the range, returns the end of the range.
    ///
    /// # Errors
    /// Errors of [`Rows::get`].
    pub fn partition_point_in(
        &self,
        Range { mut start, mut end }: Range<usize>,
        mut holds: impl FnMut(&R) -> bool,
    ) -> Result<usize> {
        while start < end {
            let middle = start.midpoint(end);
            if holds(&self.get(middle)?) {
                start = middle + 1;
            } else {
                end = middle;
            }
        }
        Ok(start)
    }

    /// Returns an iterator over all rows in order.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if the rows are in a file that cannot be opened. If the file cannot be read, the
    /// iterator returns the error.
    pub fn iter(&self) -> Result<RowsIter<'_, R>> {
        Ok(match self {
            Rows::Memory(rows) => RowsIter::Memory(rows.iter()),
            Rows::File(rows) => RowsIter::File(Box::new(rows.file.open_with_buffer(READ_BUFFER_BYTES)?)),
        })
    }

    /// Returns a cursor that is positioned before the first row.
    ///
    /// # Errors
    /// Errors of [`Rows::iter`].
    pub fn cursor(&self) -> Result<RowCursor<RowsIter<'_, R>, R>> {
        Ok(RowCursor::new(self.iter()?))
    }

    /// Returns the rows as a slice; `None` if they are in a file.
    pub fn as_slice(&self) -> Option<&[R]> {
        match self {
            Rows::Memory(rows) => Some(rows),
            Rows::File(..) => None,
        }
    }
}

impl<R: FixedSize> SpilledRows<R> {
    fn get(&self, at: usize) -> Result<R> {
        let path = self.file.path();
        let file = match self.opened.get() {
            Some(file) => file,
            None => {
                let file = File::open(path).map_err(Error::io(path, "open"))?;
                self.opened.get_or_init(|| file)
            }
        };
        let mut bytes = [0; MAX_ROW_BYTES];
        read_exact_at(file, &mut bytes[..R::BYTES], (at * R::BYTES) as u64)
            .map_err(Error::io(path, "read"))?;
        Ok(R::read(&bytes))
    }
}

/// Fills `bytes` with the bytes at an offset of a file. Several threads can read the same file at the same time.
#[cfg(unix)]
pub fn read_exact_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

/// Fills `bytes` with the bytes at an offset of a file. Several threads can read the same file at the same time.
#[cfg(windows)]
pub fn read_exact_at(file: &File, mut bytes: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, offset) = (&mut bytes[read..], offset + read as u64),
        }
    }
    Ok(())
}

/// Iterator over [`Rows`] in order.
#[derive(Debug)]
pub enum RowsIter<'a, R> {
    Memory(std::slice::Iter<'a, R>),
    File(Box<SpillReader>),
}

impl<R: FixedSize> Iterator for RowsIter<'_, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        match self {
            RowsIter::Memory(rows) => rows.next().copied().map(Ok),
            RowsIter::File(file) => file.read_record().transpose(),
        }
    }
}

/// Cursor over the rows of an iterator. It can return the next row without consuming it.
#[derive(Debug)]
pub struct RowCursor<I, R> {
    rows: I,
    next: Option<R>,
    is_read: bool,
}

impl<R: Copy, I: Iterator<Item = Result<R>>> RowCursor<I, R> {
    pub fn new(rows: I) -> Self {
        RowCursor { rows, next: None, is_read: false }
    }

    /// Returns the next row without consuming it; `None` after the last row.
    ///
    /// # Errors
    /// An error that the iterator of rows yields.
    pub fn peek(&mut self) -> Result<Option<R>> {
        if !self.is_read {
            self.next = self.rows.next().transpose()?;
            self.is_read = true;
        }
        Ok(self.next)
    }

    /// Consumes and returns the next row; `None` after the last row.
    ///
    /// # Errors
    /// An error that the iterator of rows yields.
    pub fn next_row(&mut self) -> Result<Option<R>> {
        let next = self.peek()?;
        self.is_read = next.is_none();
        Ok(next)
    }

    /// Consumes and returns the next row if `matches` is true for it. Otherwise returns `None`.
    ///
    /// # Errors
    /// An error that the iterator of rows yields.
    pub fn next_if(&mut self, matches: impl FnOnce(&R) -> bool) -> Result<Option<R>> {
        match self.peek()? {
            Some(row) if matches(&row) => self.next_row(),
            _ => Ok(None),
        }
    }

    /// Skips all rows with smaller keys than `key`. Then returns the next row, without consuming it, if it has this key;
    /// otherwise `None`. The rows must be in ascending order of `key_of`, and successive calls must have ascending keys.
    ///
    /// # Errors
    /// An error that the iterator of rows yields.
    pub fn seek<K: Ord + Copy>(&mut self, key: K, key_of: impl Fn(&R) -> K) -> Result<Option<R>> {
        while self.next_if(|row| key_of(row) < key)?.is_some() {}
        Ok(self.peek()?.filter(|row| key_of(row) == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::TemporaryFolder;
    use simstore_io::output::UnfinishedOutputs;

    #[test]
    fn rows_are_the_same_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let temporary =
            TemporaryFolder::new(Some(folder.path()), &UnfinishedOutputs::default(), &()).unwrap();
        for count in [0, 1, 1024, 1025, 5000] {
            let all: Vec<(u32, u64)> = (0..count).map(|at| (at * 7, u64::from(at) << 33)).collect();
            for memory in [0, u64::MAX] {
                let mut writer = RowsWriter::new(temporary.clone(), memory);
                all.iter().for_each(|&row| writer.push(row).unwrap());
                let rows = writer.finish().unwrap();
                assert_eq!(rows.as_slice().is_none(), memory == 0 && count > 1024);
                assert_eq!(rows.len(), all.len());
                for _ in 0..2 {
                    let read: Vec<_> = rows.iter().unwrap().map(Result::unwrap).collect();
                    assert!(read == all);
                }
                assert!(all.iter().enumerate().rev().all(|(at, row)| rows.get(at).unwrap() == *row));
                let mut cursor = rows.cursor().unwrap();
                for row in &all {
                    assert_eq!(cursor.next_if(|next| next == &(1, 1)).unwrap(), None);
                    assert_eq!(cursor.peek().unwrap(), Some(*row));
                    assert_eq!(cursor.next_row().unwrap(), Some(*row));
                }
                assert_eq!((cursor.peek().unwrap(), cursor.next_row().unwrap()), (None, None));
                let mut cursor = rows.cursor().unwrap();
                for key in 0..count.min(100) * 7 + 1 {
                    let row = (key < count * 7 && key % 7 == 0).then(|| all[key as usize / 7]);
                    assert_eq!(cursor.seek(key, |row| row.0).unwrap(), row);
                    assert_eq!(cursor.seek(key, |row| row.0).unwrap(), row);
                    let before = rows.partition_point(|row| row.0 < key).unwrap();
                    assert_eq!(before, all.partition_point(|row| row.0 < key));
                    let within = rows.partition_point_in(0..before, |row| row.0 + 7 < key);
                    assert_eq!(within.unwrap(), all.partition_point(|row| row.0 + 7 < key));
                }
                // Any number of rows can be skipped.
                assert_eq!(cursor.seek(u32::MAX, |row| row.0).unwrap(), None);
                assert_eq!(cursor.peek().unwrap(), None);
            }
        }
        assert_eq!(temporary.counts.on_disk(), 0);
    }
}
