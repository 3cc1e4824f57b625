//! Sorting more records than fit in memory: sorted runs in temporary files, merged as they are read.

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;

use super::file::{SpillFile, SpillReader, SpillWriter};
use super::fixed::Fixed;
use super::place::Place;
use crate::error::Result;
use crate::progress::{ProgressCallback, Steps};
use crate::threads;

/// A record that can be sorted: a [`Fixed`] one, or one of any length.
pub trait Sortable: Ord + Send {
    /// Bytes of memory that it takes.
    fn memory(&self) -> usize;

    /// Writes it behind others.
    ///
    /// # Errors
    /// Those of writing.
    fn push_to(&self, file: &mut SpillWriter) -> Result<()>;

    /// Reads the next one, if any.
    ///
    /// # Errors
    /// Those of reading.
    fn read_from(file: &mut SpillReader) -> Result<Option<Self>>
    where
        Self: Sized;
}

impl<R: Fixed> Sortable for R {
    #[inline]
    fn memory(&self) -> usize {
        size_of::<R>()
    }

    #[inline]
    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record(*self)
    }

    #[inline]
    fn read_from(file: &mut SpillReader) -> Result<Option<R>> {
        file.record()
    }
}

/// A key and bytes, such as an id and its note.
impl<A: Fixed> Sortable for (A, Vec<u8>) {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.1.len()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record((self.0, self.1.len() as u64))?;
        file.push(&self.1)
    }

    fn read_from(file: &mut SpillReader) -> Result<Option<Self>> {
        let Some(key) = file.record()? else { return Ok(None) };
        Ok(Some((key, file.records()?)))
    }
}

/// Bytes as the key, and the record with this key.
impl<A: Fixed> Sortable for (Vec<u8>, A) {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.0.len()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record((self.1, self.0.len() as u64))?;
        file.push(&self.0)
    }

    fn read_from(file: &mut SpillReader) -> Result<Option<Self>> {
        Ok(<(A, Vec<u8>)>::read_from(file)?.map(|(of_key, key)| (key, of_key)))
    }
}

/// Runs that are merged into one when there are so many of about one length: files that are open at the same time.
const RUNS: usize = 32;
/// Bytes that are read at once of a run: at most, and at least.
const BUFFER: usize = 1 << 18;
const SMALL_BUFFER: usize = 1 << 13;
/// Records whose size is taken into memory in any case, without what they own besides.
const LEAST_RECORDS: usize = 1024;

/// Takes records in any order. Records beyond its memory go to sorted runs in files.
#[derive(Debug)]
pub struct Sorter<R> {
    place: Arc<dyn Place>,
    /// The most bytes of memory.
    limit: usize,
    /// Bytes of the records in memory.
    held: usize,
    buffer: Vec<R>,
    /// Each with how often it was merged.
    runs: Vec<(u32, SpillFile)>,
    /// Asked whether to go on while records are written.
    progress: Option<ProgressCallback>,
}

impl<R: Sortable> Sorter<R> {
    /// Takes so many bytes of memory, about.
    pub fn new(place: Arc<dyn Place>, memory: u64) -> Self {
        Sorter {
            place,
            limit: usize::try_from(memory).unwrap_or(usize::MAX).max(LEAST_RECORDS * size_of::<R>()),
            held: 0,
            buffer: Vec::new(),
            runs: Vec::new(),
            progress: None,
        }
    }

    /// The same, whose sorting ends with [`Error::Cancelled`](crate::Error::Cancelled) when the callback says so.
    #[must_use]
    pub fn watched(self, progress: Option<&ProgressCallback>) -> Self {
        Sorter { progress: progress.cloned(), ..self }
    }

    /// Where its files go.
    pub fn place(&self) -> &Arc<dyn Place> {
        &self.place
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Those of writing, as [`Place::failed`] has them.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<()> {
        let more = record.memory();
        if self.held + more > self.limit && !self.buffer.is_empty() {
            self.spill()?;
        }
        if self.buffer.len() == self.buffer.capacity() {
            self.grow();
        }
        self.held += more;
        self.buffer.push(record);
        Ok(())
    }

    /// Doubling, but never far past the limit.
    #[cold]
    fn grow(&mut self) {
        let left = self.limit.saturating_sub(self.held) / size_of::<R>() + 1;
        let more = if self.buffer.is_empty() { LEAST_RECORDS } else { self.buffer.len().min(left) };
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
        self.held = 0;
        while let Some(&(level, _)) = self.runs.last()
            && let Some(first) = self.runs.len().checked_sub(RUNS)
            && self.runs[first].0 == level
        {
            let buffer = self.buffer_bytes();
            let merge = Merge::<R>::of_once(self.runs.drain(first..).map(|(_, run)| run), buffer)?;
            let run = self.write(merge)?;
            self.runs.push((level + 1, run));
        }
        Ok(())
    }

    /// Bytes to read at once of a run.
    fn buffer_bytes(&self) -> usize {
        (self.limit / (RUNS * 2)).clamp(SMALL_BUFFER, BUFFER)
    }

    fn write<T: Borrow<R>>(&self, records: impl Iterator<Item = Result<T>>) -> Result<SpillFile> {
        let mut file = SpillWriter::create(self.place.clone())?;
        let (steps, mut written) = (Steps::new(self.progress.as_ref(), 0), 0);
        for record in records {
            record?.borrow().push_to(&mut file)?;
            steps.ask_at(&mut written)?;
        }
        file.finish()
    }

    /// Sorts what is in memory, or puts it on disk beside the rest.
    fn complete(&mut self) -> Result<()> {
        match self.runs.is_empty() {
            true => self.sort(),
            false if self.buffer.is_empty() => Ok(()),
            false => self.spill(),
        }
    }

    /// All records in order, to be read once; of equal ones, each.
    ///
    /// # Errors
    /// As [`Sorter::push`], and those of reading; so are the errors of items.
    pub fn finish(mut self) -> Result<Sorted<R>> {
        self.complete()?;
        if self.runs.is_empty() {
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        let buffer = self.buffer_bytes();
        self.buffer = Vec::new();
        Ok(Sorted::Merge(Merge::of_once(self.runs.into_iter().map(|(_, run)| run), buffer)?))
    }

    /// All records in order, to be read any number of times.
    pub(crate) fn finish_runs(mut self) -> Result<Runs<R>> {
        self.complete()?;
        if self.runs.is_empty() {
            return Ok(Runs::Memory(self.buffer));
        }
        let buffer = self.buffer_bytes();
        Ok(Runs::Files(self.runs.into_iter().map(|(_, run)| run).collect(), buffer))
    }
}

/// Sorted records that can be read any number of times.
#[derive(Debug)]
pub(crate) enum Runs<R> {
    Memory(Vec<R>),
    /// So many bytes are read at once of each.
    Files(Vec<SpillFile>, usize),
}

impl<R: Sortable + Copy> Runs<R> {
    /// Calls `visitor` with each record, in order, as often as it was pushed.
    pub(crate) fn visit_all(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        match self {
            Runs::Memory(records) => records.iter().try_for_each(|&record| visitor(record)),
            Runs::Files(runs, buffer) => {
                let mut merge = Merge::new(runs.iter().map(|run| run.read_with(*buffer)))?;
                while let Some(record) = merge.following()? {
                    visitor(record)?;
                }
                Ok(())
            }
        }
    }

    /// Calls `visitor` with each different record, in order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        let mut previous = None;
        self.visit_all(|record| match previous.replace(record) == Some(record) {
            true => Ok(()),
            false => visitor(record),
        })
    }
}

/// Sorted records that are read once.
#[derive(Debug)]
pub enum Sorted<R> {
    /// Those that were not too many.
    Memory(std::vec::IntoIter<R>),
    /// Those of runs on disk.
    Merge(Merge<R>),
}

impl<R: Sortable> Iterator for Sorted<R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        match self {
            Sorted::Memory(records) => records.next().map(Ok),
            Sorted::Merge(merge) => merge.next(),
        }
    }
}

/// Reads several runs as one.
#[derive(Debug)]
pub struct Merge<R> {
    runs: Vec<SpillReader>,
    /// The next record of each run that has one.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: Sortable> Merge<R> {
    fn new(runs: impl Iterator<Item = Result<SpillReader>>) -> Result<Merge<R>> {
        let mut merge = Merge { runs: Vec::new(), heads: BinaryHeap::new() };
        for (number, run) in runs.enumerate() {
            let mut run = run?;
            merge.heads.extend(R::read_from(&mut run)?.map(|record| Reverse((record, number))));
            merge.runs.push(run);
        }
        Ok(merge)
    }

    /// Runs that are removed when this is dropped.
    fn of_once(runs: impl Iterator<Item = SpillFile>, buffer: usize) -> Result<Merge<R>> {
        Merge::new(runs.map(|run| run.read_once(buffer)))
    }

    fn following(&mut self) -> Result<Option<R>> {
        let Some(mut head) = self.heads.peek_mut() else { return Ok(None) };
        let Reverse((record, number)) = &mut *head;
        Ok(Some(match R::read_from(&mut self.runs[*number])? {
            Some(following) => std::mem::replace(record, following),
            None => PeekMut::pop(head).0.0,
        }))
    }
}

impl<R: Sortable> Iterator for Merge<R> {
    type Item = Result<R>;

    #[inline]
    fn next(&mut self) -> Option<Result<R>> {
        self.following().transpose()
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::fs::{Disk, Fs};
    use crate::progress::STEP;
    use crate::spill::Folder;

    /// Records as they are sorted, once and again; and how many bytes were written.
    fn sorted<R: Fixed + std::fmt::Debug>(records: &[R], memory: u64) -> (Vec<R>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let place = Folder::new(&fs, &folder.path().join("run"));
        let mut sorter = Sorter::new(place.clone(), memory);
        records.iter().for_each(|&record| sorter.push(record).unwrap());
        let all: Vec<R> = sorter.finish().unwrap().map(Result::unwrap).collect();
        let written = place.counts().written();
        let mut sorter = Sorter::new(place.clone(), memory);
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
        assert_eq!(place.counts().held(), 0);
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
                prop_assert_eq!(written > 0, memory == 0 && records.len() > LEAST_RECORDS
                    || memory == 40_000 && records.len() > 2500);
                prop_assert_eq!(&sorted(&pairs, memory).0, &expected_pairs);
            }
        }
    }

    /// Of more runs than are merged at once, those are merged first that are of one length.
    #[test]
    fn many_runs_are_merged_in_steps() {
        let count = (RUNS * RUNS + RUNS + 3) * LEAST_RECORDS;
        let record = |i: usize| (i as u32).wrapping_mul(2_654_435_761);
        let records: Vec<u32> = (0..count).map(record).collect();
        let mut expected = records.clone();
        expected.sort_unstable();
        let (all, written) = sorted(&records, 0);
        assert!(all == expected);
        assert!(written > 4 * 2 * count as u64 && written < 4 * 4 * count as u64);
    }

    /// Long records are bounded by their bytes, not by their number.
    #[test]
    fn records_of_any_length_are_sorted() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let place = Folder::new(&fs, &folder.path().join("run"));
        let mut by_key = Sorter::<(u32, Vec<u8>)>::new(place.clone(), 0);
        let mut by_bytes = Sorter::<(Vec<u8>, u32)>::new(place.clone(), 0);
        let mut expected: Vec<(u32, Vec<u8>)> = Vec::new();
        for i in 0..300_u32 {
            let key = i.wrapping_mul(2_654_435_761) % 100;
            let bytes = vec![key as u8; if i % 50 == 7 { 1 << 19 } else { i as usize * 5 }];
            by_key.push((key, bytes.clone())).unwrap();
            by_bytes.push((bytes.clone(), key)).unwrap();
            assert!(by_key.buffer.len() == 1 || by_key.held <= LEAST_RECORDS * 32);
            expected.push((key, bytes));
        }
        assert!(by_key.runs.len() > 2);
        expected.sort_unstable();
        assert!(by_key.finish().unwrap().map(Result::unwrap).eq(expected.iter().cloned()));
        expected.sort_unstable_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0)));
        let swapped = |row: Result<(Vec<u8>, u32)>| row.map(|(bytes, key)| (key, bytes)).unwrap();
        assert!(by_bytes.finish().unwrap().map(swapped).eq(expected));
        assert_eq!(place.counts().held(), 0);
    }

    #[test]
    fn sorting_that_is_told_to_stop_leaves_no_files() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        let place = Folder::new(&fs, &folder.path().join("run"));
        let stops = ProgressCallback::new(|_| ControlFlow::Break(()));
        let mut sorter = Sorter::new(place, STEP * 8).watched(Some(&stops));
        let pushed = (0..STEP * 2).try_for_each(|record| sorter.push(record));
        assert!(matches!(pushed, Err(Error::Cancelled)), "{pushed:?}");
        drop(sorter);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
