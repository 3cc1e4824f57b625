//! External sort: sorted parts of the records (*runs*) in temporary files, merged while they are read.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;

use super::file::{SpillFile, SpillReader, SpillWriter};
use super::fixed_size::FixedSize;
use super::location::SpillLocation;
use crate::error::Result;
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::threads;

/// A record that a [`Sorter`] can sort: a [`FixedSize`] record, or a key with bytes of any length.
pub trait Sortable: Ord + Send {
    /// Memory of the record in bytes.
    fn memory(&self) -> usize;

    /// Appends the record to a file.
    ///
    /// # Errors
    /// An error if the file cannot be written.
    fn push_to(&self, file: &mut SpillWriter) -> Result<()>;

    /// Reads the next record; `None` at the end of the file.
    ///
    /// # Errors
    /// An error if the file cannot be read.
    fn pop_from(file: &mut SpillReader) -> Result<Option<Self>>
    where
        Self: Sized;
}

impl<R: FixedSize> Sortable for R {
    #[inline]
    fn memory(&self) -> usize {
        size_of::<R>()
    }

    #[inline]
    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record(*self)
    }

    #[inline]
    fn pop_from(file: &mut SpillReader) -> Result<Option<R>> {
        file.read_record()
    }
}

/// A key and bytes, such as an id and its note.
impl<A: FixedSize> Sortable for (A, Vec<u8>) {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.1.len()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record((self.0, self.1.len() as u64))?;
        file.push(&self.1)
    }

    fn pop_from(file: &mut SpillReader) -> Result<Option<Self>> {
        let Some(key) = file.read_record()? else { return Ok(None) };
        Ok(Some((key, file.read_records()?)))
    }
}

/// Bytes, such as a name, and a record. The bytes are the sort key.
impl<A: FixedSize> Sortable for (Vec<u8>, A) {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.len()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record((self.1, self.0.len() as u64))?;
        file.push(&self.0)
    }

    fn pop_from(file: &mut SpillReader) -> Result<Option<Self>> {
        Ok(<(A, Vec<u8>)>::pop_from(file)?.map(|(record, key)| (key, record)))
    }
}

/// Number of sorted runs of about the same length that are merged into one longer run. A larger number means fewer
/// merges, but more files that are open at the same time.
const MERGE_RUNS: usize = 32;
/// Maximum size of the read buffer of a sorted run, in bytes.
const MAX_BUFFER_BYTES: usize = 1 << 18;
/// Minimum size of the read buffer of a sorted run, in bytes.
const MIN_BUFFER_BYTES: usize = 1 << 13;
/// The memory limit of a sorter is raised, if necessary, to the size of this number of records without their heap
/// memory.
const MIN_RECORDS: usize = 1024;

/// Sorts records. Records beyond the memory limit go to sorted runs in temporary files.
#[derive(Debug)]
pub struct Sorter<R> {
    location: Arc<dyn SpillLocation>,
    /// Memory limit in bytes.
    limit: usize,
    /// Memory of the buffered records in bytes.
    used: usize,
    buffer: Vec<R>,
    /// Sorted runs on disk, oldest first, each with its level. A run written from memory has level 0; a merged run
    /// has one level more than the runs that it was merged from. No run has a higher level than an older run.
    runs: Vec<(u32, SpillFile)>,
    /// Callback that can cancel the sort. It is called while records are written to temporary files.
    progress: Option<ProgressCallback>,
}

impl<R: Sortable> Sorter<R> {
    /// Creates a sorter that takes about `memory` bytes of memory and writes its files to `location`.
    pub fn new(location: Arc<dyn SpillLocation>, memory: u64) -> Self {
        Sorter {
            location,
            limit: usize::try_from(memory).unwrap_or(usize::MAX).max(MIN_RECORDS * size_of::<R>()),
            used: 0,
            buffer: Vec::new(),
            runs: Vec::new(),
            progress: None,
        }
    }

    /// Sets a callback that can cancel the sort, which then returns [`Error::Cancelled`](crate::Error::Cancelled).
    #[must_use]
    pub fn with_progress(self, progress: Option<&ProgressCallback>) -> Self {
        Sorter { progress: progress.cloned(), ..self }
    }

    /// Location of the temporary files.
    pub fn location(&self) -> &Arc<dyn SpillLocation> {
        &self.location
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The error of [`SpillLocation::file_error`] if a temporary file cannot be written.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        let more = record.memory();
        if self.used + more > self.limit && !self.buffer.is_empty() {
            self.spill()?;
        }
        if self.buffer.len() == self.buffer.capacity() {
            self.grow();
        }
        self.used += more;
        self.buffer.push(record);
        Ok(())
    }

    /// Doubles the capacity of the buffer, but does not go far past the memory limit.
    #[cold]
    fn grow(&mut self) {
        let left = self.limit.saturating_sub(self.used) / size_of::<R>() + 1;
        let more = if self.buffer.is_empty() { MIN_RECORDS } else { self.buffer.len().min(left) };
        self.buffer.reserve_exact(more);
    }

    fn sort(&mut self) -> Result<()> {
        threads::ensure_pool()?;
        self.buffer.par_sort_unstable();
        Ok(())
    }

    #[cold]
    fn spill(&mut self) -> Result<()> {
        self.sort()?;
        let run = self.write(self.buffer.iter().map(Ok))?;
        self.runs.push((0, run));
        self.buffer.clear();
        self.used = 0;
        while let Some(&(level, _)) = self.runs.last()
            && let Some(first) = self.runs.len().checked_sub(MERGE_RUNS)
            && self.runs[first].0 == level
        {
            let buffer = self.buffer_bytes();
            let merge = Merge::<R>::from_files(self.runs.drain(first..).map(|(_, run)| run), buffer)?;
            let run = self.write(merge)?;
            self.runs.push((level + 1, run));
        }
        Ok(())
    }

    /// Size of the read buffer of a sorted run, in bytes.
    fn buffer_bytes(&self) -> usize {
        (self.limit / (MERGE_RUNS * 2)).clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES)
    }

    fn write<T: Borrow<R>>(&self, records: impl Iterator<Item = Result<T>>) -> Result<SpillFile> {
        let mut file = SpillWriter::create(self.location.clone())?;
        let (progress, mut written) = (ProgressCounter::new(self.progress.as_ref(), 0), 0);
        for record in records {
            record?.borrow().push_to(&mut file)?;
            progress.check_cancelled_at(&mut written)?;
        }
        file.finish()
    }

    /// Completes the sort of the buffered records. If there are sorted runs on disk, the buffered records become
    /// another run.
    fn complete(&mut self) -> Result<()> {
        match self.runs.is_empty() {
            true => self.sort(),
            false if self.buffer.is_empty() => Ok(()),
            false => self.spill(),
        }
    }

    /// Returns all records in order, including equal ones. They can be read once.
    ///
    /// # Errors
    /// The errors of [`Sorter::push`]; [`Error::Io`](crate::Error::Io) if a file cannot be read. If reading fails later,
    /// the iterator returns the error as an item.
    pub fn finish(mut self) -> Result<SortedRecords<R>> {
        self.complete()?;
        if self.runs.is_empty() {
            return Ok(SortedRecords::Memory(self.buffer.into_iter()));
        }
        let buffer = self.buffer_bytes();
        self.buffer = Vec::new();
        Ok(SortedRecords::Merge(Merge::from_files(self.runs.into_iter().map(|(_, run)| run), buffer)?))
    }

    /// Returns all records in order. They can be read any number of times.
    pub(crate) fn finish_runs(mut self) -> Result<SortedRuns<R>> {
        self.complete()?;
        if self.runs.is_empty() {
            return Ok(SortedRuns::Memory(self.buffer));
        }
        let buffer = self.buffer_bytes();
        Ok(SortedRuns::Files(self.runs.into_iter().map(|(_, run)| run).collect(), buffer))
    }
}

/// Sorted records that can be read any number of times.
#[derive(Debug)]
pub(crate) enum SortedRuns<R> {
    Memory(Vec<R>),
    /// Files with one sorted run each, and the size in bytes of the read buffer for each run.
    Files(Vec<SpillFile>, usize),
}

impl<R: Sortable + Copy> SortedRuns<R> {
    /// Calls `visitor` with each record in order, including equal ones.
    pub(crate) fn visit_all(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        match self {
            SortedRuns::Memory(records) => records.iter().try_for_each(|&record| visitor(record)),
            SortedRuns::Files(runs, buffer) => {
                let mut merge = Merge::new(runs.iter().map(|run| run.open_with_buffer(*buffer)))?;
                while let Some(record) = merge.next_record()? {
                    visitor(record)?;
                }
                Ok(())
            }
        }
    }

    /// Calls `visitor` with each distinct record in order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        let mut previous = None;
        self.visit_all(|record| match previous.replace(record) == Some(record) {
            true => Ok(()),
            false => visitor(record),
        })
    }
}

/// Sorted records that can be read once.
#[derive(Debug)]
pub enum SortedRecords<R> {
    /// Records that fitted in memory.
    Memory(std::vec::IntoIter<R>),
    /// Records in several sorted files on disk.
    Merge(Merge<R>),
}

impl<R: Sortable> Iterator for SortedRecords<R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        match self {
            SortedRecords::Memory(records) => records.next().map(Ok),
            SortedRecords::Merge(merge) => merge.next(),
        }
    }
}

/// K-way merge of sorted sequences of records in files.
#[derive(Debug)]
pub struct Merge<R> {
    runs: Vec<SpillReader>,
    /// Next record of each run that is not at its end, with the index of the run.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: Sortable> Merge<R> {
    fn new(runs: impl Iterator<Item = Result<SpillReader>>) -> Result<Merge<R>> {
        let mut merge = Merge { runs: Vec::new(), heads: BinaryHeap::new() };
        for (number, run) in runs.enumerate() {
            let mut run = run?;
            merge.heads.extend(R::pop_from(&mut run)?.map(|record| Reverse((record, number))));
            merge.runs.push(run);
        }
        Ok(merge)
    }

    /// Creates a merge of the sorted runs in these files. The files are removed when the merge is dropped.
    fn from_files(runs: impl Iterator<Item = SpillFile>, buffer: usize) -> Result<Merge<R>> {
        Merge::new(runs.map(|run| run.open_once(buffer)))
    }

    fn next_record(&mut self) -> Result<Option<R>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, number)) = &mut *head;
        Ok(Some(match R::pop_from(&mut self.runs[*number])? {
            Some(following) => std::mem::replace(record, following),
            None => PeekMut::pop(head).0.0,
        }))
    }
}

impl<R: Sortable> Iterator for Merge<R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        self.next_record().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::fs::{Disk, Fs};
    use crate::progress::CANCEL_CHECK_INTERVAL;
    use crate::spill::PrefixLocation;

    /// Sorts records, and asserts that the methods of [`Sorter`] and [`SortedRuns`] agree. Returns the sorted records and the
    /// number of bytes that a sort with [`Sorter::finish`] writes.
    fn sorted<R: FixedSize + std::fmt::Debug>(records: &[R], memory: u64) -> (Vec<R>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let location = PrefixLocation::new(&fs, &folder.path().join("run"));
        let mut sorter = Sorter::new(location.clone(), memory);
        records.iter().for_each(|&record| sorter.push(record).unwrap());
        let all: Vec<R> = sorter.finish().unwrap().map(Result::unwrap).collect();
        let written = location.counters().written();
        let mut sorter = Sorter::new(location.clone(), memory);
        records.iter().for_each(|&record| sorter.push(record).unwrap());
        let runs = sorter.finish_runs().unwrap();
        for _ in 0..2 {
            let mut again = Vec::new();
            runs.visit_all(|record| {
                again.push(record);
                Ok(())
            })
            .unwrap();
            assert!(again == all);
            again.clear();
            runs.visit(|record| {
                again.push(record);
                Ok(())
            })
            .unwrap();
            let mut distinct = all.clone();
            distinct.dedup();
            assert!(again == distinct);
        }
        drop(runs);
        assert_eq!(location.counters().on_disk(), 0);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        (all, written)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        #[test]
        fn same_as_a_plain_sort(
            records in prop::collection::vec((0_u64..500, any::<u64>()), 0..6000),
            pairs in prop::collection::vec((0_u128..5000, 0_u64..4), 0..20_000),
        ) {
            let mut expected = records.clone();
            expected.sort_unstable();
            let mut expected_pairs = pairs.clone();
            expected_pairs.sort_unstable();
            for memory in [0, 40_000, u64::MAX] {
                let (all, written) = sorted(&records, memory);
                prop_assert_eq!(&all, &expected);
                prop_assert_eq!(written > 0, memory == 0 && records.len() > MIN_RECORDS
                    || memory == 40_000 && records.len() > 2500);
                prop_assert_eq!(&sorted(&pairs, memory).0, &expected_pairs);
            }
        }
    }

    /// Asserts that if there are more runs than one merge can read, runs of about the same length are first merged into
    /// longer ones.
    #[test]
    fn many_runs_are_merged_in_steps() {
        let count = (MERGE_RUNS * MERGE_RUNS + MERGE_RUNS + 3) * MIN_RECORDS;
        let record = |i: usize| (i as u32).wrapping_mul(2_654_435_761);
        let records: Vec<u32> = (0..count).map(record).collect();
        let mut expected = records.clone();
        expected.sort_unstable();
        let (all, written) = sorted(&records, 0);
        assert!(all == expected);
        assert!(written > 4 * 2 * count as u64 && written < 4 * 4 * count as u64);
    }

    /// Asserts that the memory limit counts the bytes of long records, not only their number.
    #[test]
    fn records_of_any_length_are_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let location = PrefixLocation::new(&fs, &folder.path().join("run"));
        let mut by_key = Sorter::<(u32, Vec<u8>)>::new(location.clone(), 0);
        let mut by_bytes = Sorter::<(Vec<u8>, u32)>::new(location.clone(), 0);
        let mut expected: Vec<(u32, Vec<u8>)> = Vec::new();
        for i in 0..300_u32 {
            let key = i.wrapping_mul(2_654_435_761) % 100;
            let bytes = vec![key as u8; if i % 50 == 7 { 1 << 19 } else { i as usize * 5 }];
            by_key.push((key, bytes.clone())).unwrap();
            by_bytes.push((bytes.clone(), key)).unwrap();
            assert!(by_key.buffer.len() == 1 || by_key.used <= MIN_RECORDS * 32);
            expected.push((key, bytes));
        }
        assert!(by_key.runs.len() > 2);
        expected.sort_unstable();
        assert!(by_key.finish().unwrap().map(Result::unwrap).eq(expected.iter().cloned()));
        expected.sort_unstable_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        let swapped = |row: Result<(Vec<u8>, u32)>| row.map(|(bytes, key)| (key, bytes)).unwrap();
        assert!(by_bytes.finish().unwrap().map(swapped).eq(expected));
        assert_eq!(location.counters().on_disk(), 0);
    }

    #[test]
    fn cancelled_sorting_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let location = PrefixLocation::new(&fs, &folder.path().join("run"));
        let stops = ProgressCallback::new(|_| ControlFlow::Break(()));
        let mut sorter = Sorter::new(location, CANCEL_CHECK_INTERVAL * 8).with_progress(Some(&stops));
        let pushed = (0..CANCEL_CHECK_INTERVAL * 2).try_for_each(|record| sorter.push(record));
        assert!(matches!(pushed, Err(Error::Cancelled)), "{pushed:?}");
        drop(sorter);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
