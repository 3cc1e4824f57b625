//! Rows in memory or, if they are too many, in a file. Both are read alike.

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use simstore::spill::{Fixed, Place, Sorted, Sorter, SpillFile, SpillReader, SpillWriter};
use simstore::{Error, Result};

/// Rows that are taken into memory in any case.
const LEAST_ROWS: usize = 1024;
/// Bytes that are read at once.
const BUFFER: usize = 1 << 16;
/// Bytes of the longest row: one of sketches.
const MAX_ROW: usize = 96;

/// Rows, to be read in order any number of times, or here and there.
#[derive(Debug)]
pub enum Rows<R> {
    Memory(Vec<R>),
    File(RowsFile<R>),
}

/// Rows on disk.
#[derive(Debug)]
pub struct RowsFile<R> {
    file: SpillFile,
    /// Opened for the first read at any place.
    opened: OnceLock<File>,
    rows: PhantomData<R>,
}

/// Takes rows in their order.
#[derive(Debug)]
pub struct RowsWriter<R> {
    place: Arc<dyn Place>,
    /// The most rows in memory.
    limit: usize,
    rows: Vec<R>,
    /// Those before the ones in memory.
    file: Option<SpillWriter>,
}

impl<R: Fixed> RowsWriter<R> {
    /// Takes about this many bytes of memory; further rows go to a file.
    pub fn new(place: Arc<dyn Place>, memory: u64) -> Self {
        let limit = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<R>();
        RowsWriter { place, limit: limit.max(LEAST_ROWS), rows: Vec::new(), file: None }
    }

    /// Adds a row.
    ///
    /// # Errors
    /// Those of writing, as [`Place::failed`] has them.
    pub fn push(&mut self, row: R) -> Result<()> {
        if self.rows.len() >= self.limit {
            self.spill()?;
        }
        self.rows.push(row);
        Ok(())
    }

    /// Writes what is in memory; from then on little is.
    ///
    /// # Errors
    /// As [`RowsWriter::push`].
    pub fn spill(&mut self) -> Result<()> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => SpillWriter::create(self.place.clone())?,
        };
        file.push_all(&self.rows)?;
        self.file = Some(file);
        self.limit = LEAST_ROWS;
        self.rows.clear();
        self.rows.shrink_to(LEAST_ROWS);
        Ok(())
    }

    /// Whether no row was pushed.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len() + self.file.as_ref().map_or(0, |file| file.bytes() as usize / R::BYTES)
    }

    /// How many rows are in memory.
    pub fn in_memory(&self) -> usize {
        self.rows.len()
    }

    /// All rows.
    ///
    /// # Errors
    /// As [`RowsWriter::push`].
    pub fn finish(mut self) -> Result<Rows<R>> {
        if self.file.is_some() {
            self.spill()?;
        }
        match self.file {
            Some(file) => Ok(Rows::of_file(file.finish()?)),
            None => Ok(Rows::Memory(self.rows)),
        }
    }
}

impl<R: Fixed> Rows<R> {
    /// Those that were written to a file.
    pub fn of_file(file: SpillFile) -> Self {
        Rows::File(RowsFile { file, opened: OnceLock::new(), rows: PhantomData })
    }

    /// Collects the rows of a sorter.
    ///
    /// # Errors
    /// Those of writing and reading.
    pub fn sorted(sorter: Sorter<R>) -> Result<Self> {
        let place = sorter.place().clone();
        match sorter.finish()? {
            Sorted::Memory(rows) => Ok(Rows::Memory(rows.collect())),
            Sorted::Merge(mut rows) => {
                let mut file = SpillWriter::create(place)?;
                rows.try_for_each(|row| file.push_record(row?))?;
                Ok(Rows::of_file(file.finish()?))
            }
        }
    }

    /// Whether there is no row.
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

    /// One of them.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if it cannot be read.
    pub fn get(&self, at: usize) -> Result<R> {
        match self {
            Rows::Memory(rows) => Ok(rows[at]),
            Rows::File(rows) => rows.get(at),
        }
    }

    /// Returns the place of the first row that does not fulfil a predicate, by binary search. All rows before it fulfil the predicate,
    /// and no row after it.
    ///
    /// # Errors
    /// As [`Rows::get`].
    pub fn partition_point(&self, holds: impl FnMut(&R) -> bool) -> Result<usize> {
        self.partition_point_in(0..self.len(), holds)
    }

    /// Like [`partition_point`](Self::partition_point), but searches a range of rows, and returns a place in it.
    ///
    /// # Errors
    /// As [`Rows::get`].
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

    /// All of them in order.
    ///
    /// # Errors
    /// [`Error::Io`](simstore::Error::Io) if the file cannot be opened; items are errors where it cannot be read.
    pub fn iter(&self) -> Result<RowsIter<'_, R>> {
        Ok(match self {
            Rows::Memory(rows) => RowsIter::Memory(rows.iter()),
            Rows::File(rows) => RowsIter::File(Box::new(rows.file.read_with(BUFFER)?)),
        })
    }

    /// The same, one after the other as they are asked for.
    ///
    /// # Errors
    /// As [`Rows::iter`].
    pub fn cursor(&self) -> Result<Cursor<RowsIter<'_, R>, R>> {
        Ok(Cursor::new(self.iter()?))
    }

    /// The rows, if they are in memory.
    pub fn in_memory(&self) -> Option<&[R]> {
        match self {
            Rows::Memory(rows) => Some(rows),
            Rows::File(..) => None,
        }
    }
}

impl<R: Fixed> RowsFile<R> {
    fn get(&self, at: usize) -> Result<R> {
        let path = self.file.path();
        let file = match self.opened.get() {
            Some(file) => file,
            None => {
                let file = File::open(path).map_err(Error::io(path, "open"))?;
                self.opened.get_or_init(|| file)
            }
        };
        let mut bytes = [0; MAX_ROW];
        read_at(file, &mut bytes[..R::BYTES], (at * R::BYTES) as u64).map_err(Error::io(path, "read"))?;
        Ok(R::read(&bytes))
    }
}

/// Reads the bytes at a place of a file, from any thread.
#[cfg(unix)]
pub fn read_at(file: &File, bytes: &mut [u8], place: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, place)
}

/// Reads the bytes at a place of a file, from any thread.
#[cfg(windows)]
pub fn read_at(file: &File, mut bytes: &mut [u8], mut place: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, bytes, place)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => (bytes, place) = (&mut bytes[read..], place + read as u64),
        }
    }
    Ok(())
}

/// Reads rows in order.
#[derive(Debug)]
pub enum RowsIter<'a, R> {
    Memory(std::slice::Iter<'a, R>),
    File(Box<SpillReader>),
}

impl<R: Fixed> Iterator for RowsIter<'_, R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        match self {
            RowsIter::Memory(rows) => rows.next().copied().map(Ok),
            RowsIter::File(file) => file.record().transpose(),
        }
    }
}

/// Rows in order. The next one can be looked at before it is taken.
#[derive(Debug)]
pub struct Cursor<I, R> {
    rows: I,
    next: Option<R>,
    is_read: bool,
}

impl<R: Copy, I: Iterator<Item = Result<R>>> Cursor<I, R> {
    pub fn new(rows: I) -> Self {
        Cursor { rows, next: None, is_read: false }
    }

    /// The next row, which stays the next.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn peek(&mut self) -> Result<Option<R>> {
        if !self.is_read {
            self.next = self.rows.next().transpose()?;
            self.is_read = true;
        }
        Ok(self.next)
    }

    /// The next row.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn take(&mut self) -> Result<Option<R>> {
        let next = self.peek()?;
        self.is_read = next.is_none();
        Ok(next)
    }

    /// The next row, if it is such.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn take_if(&mut self, is_such: impl FnOnce(&R) -> bool) -> Result<Option<R>> {
        match self.peek()? {
            Some(row) if is_such(&row) => self.take(),
            _ => Ok(None),
        }
    }

    /// The first row with a key, which stays the next. Rows with smaller keys are skipped. Rows are in the order of their keys, and keys
    /// are asked for in ascending order.
    ///
    /// # Errors
    /// Those of the rows.
    pub fn at<K: Ord + Copy>(&mut self, key: K, key_of: impl Fn(&R) -> K) -> Result<Option<R>> {
        while self.take_if(|row| key_of(row) < key)?.is_some() {}
        Ok(self.peek()?.filter(|row| key_of(row) == key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::Temporary;
    use simstore_io::output::Unfinished;

    #[test]
    fn rows_are_the_same_wherever_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
        for count in [0, 1, 1024, 1025, 5000] {
            let all: Vec<(u32, u64)> = (0..count).map(|at| (at * 7, u64::from(at) << 33)).collect();
            for memory in [0, u64::MAX] {
                let mut writer = RowsWriter::new(temporary.clone(), memory);
                all.iter().for_each(|&row| writer.push(row).unwrap());
                let rows = writer.finish().unwrap();
                assert_eq!(rows.in_memory().is_none(), memory == 0 && count > 1024);
                assert_eq!(rows.len(), all.len());
                for _ in 0..2 {
                    let read: Vec<_> = rows.iter().unwrap().map(Result::unwrap).collect();
                    assert!(read == all);
                }
                assert!(all.iter().enumerate().rev().all(|(at, row)| rows.get(at).unwrap() == *row));
                let mut cursor = rows.cursor().unwrap();
                for row in &all {
                    assert_eq!(cursor.take_if(|next| next == &(1, 1)).unwrap(), None);
                    assert_eq!(cursor.peek().unwrap(), Some(*row));
                    assert_eq!(cursor.take().unwrap(), Some(*row));
                }
                assert_eq!((cursor.peek().unwrap(), cursor.take().unwrap()), (None, None));
                let mut cursor = rows.cursor().unwrap();
                for key in 0..count.min(100) * 7 + 1 {
                    let row = (key < count * 7 && key % 7 == 0).then(|| all[key as usize / 7]);
                    assert_eq!(cursor.at(key, |row| row.0).unwrap(), row);
                    assert_eq!(cursor.at(key, |row| row.0).unwrap(), row);
                    let before = rows.partition_point(|row| row.0 < key).unwrap();
                    assert_eq!(before, all.partition_point(|row| row.0 < key));
                    let within = rows.partition_point_in(0..before, |row| row.0 + 7 < key);
                    assert_eq!(within.unwrap(), all.partition_point(|row| row.0 + 7 < key));
                }
                // Of rows that are skipped, any number.
                assert_eq!(cursor.at(u32::MAX, |row| row.0).unwrap(), None);
                assert_eq!(cursor.peek().unwrap(), None);
            }
        }
        assert_eq!(temporary.counts.held(), 0);
    }
}
