//! Sorting more records than fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;
use simstore::{Result, threads};

use super::file::{SpillFile, SpillReader, SpillWriter};
use super::fixed::{Fixed, MAX_RECORD};
use super::folder::Temporary;
use super::rows::{Rows, RowsWriter};

/// A record that can be sorted: a [`Fixed`] one, or one of any length.
pub(crate) trait Record: Ord + Send {
    /// Bytes of memory that it takes.
    fn memory(&self) -> usize;
    /// Writes it behind others.
    ///
    /// # Errors
    /// Those of writing.
    fn push_to(&self, file: &mut SpillWriter) -> Result<()>;
    /// Reads the next one, if there is one.
    ///
    /// # Errors
    /// Those of reading.
    fn read_from(file: &mut SpillReader) -> Result<Option<Self>>
    where
        Self: Sized;
}

impl<R: Fixed> Record for R {
    fn memory(&self) -> usize {
        size_of::<R>()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        let mut bytes = [0; MAX_RECORD];
        self.write(&mut bytes);
        file.push(&bytes[..R::BYTES])
    }

    fn read_from(file: &mut SpillReader) -> Result<Option<R>> {
        let mut bytes = [0; MAX_RECORD];
        let bytes = &mut bytes[..R::BYTES];
        Ok(file.fill(bytes)?.then(|| R::read(bytes)))
    }
}

/// Runs that are merged into one when there are so many of about one length: files that are open at the same time.
const RUNS: usize = 32;
/// Bytes that are read at once of a run: at most, and at least.
const BUFFER: usize = 1 << 18;
const SMALL_BUFFER: usize = 1 << 13;
/// Records that are taken into memory in any case.
const LEAST_RECORDS: usize = 1024;

/// Takes records in any order. What is too much for its memory goes to sorted runs in files.
#[derive(Debug)]
pub(crate) struct Sorter<R> {
    temporary: Arc<Temporary>,
    /// The most bytes of memory.
    limit: usize,
    /// Bytes of the records in memory.
    held: usize,
    buffer: Vec<R>,
    /// Each with how often it was merged.
    runs: Vec<(u32, SpillFile)>,
}

impl<R: Record> Sorter<R> {
    /// Takes so many bytes of memory, about.
    pub(crate) fn new(temporary: &Arc<Temporary>, memory: u64) -> Self {
        Sorter {
            temporary: Arc::clone(temporary),
            limit: usize::try_from(memory).unwrap_or(usize::MAX),
            held: 0,
            buffer: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Those of writing, as [`Temporary::failed`] has them.
    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        let more = record.memory();
        if self.held + more > self.limit && self.buffer.len() >= LEAST_RECORDS {
            self.spill()?;
        }
        if self.buffer.len() == self.buffer.capacity() {
            // Doubling, but never far past the limit.
            let left = self.limit.saturating_sub(self.held) / size_of::<R>() + 1;
            let doubled = self.buffer.len().max(LEAST_RECORDS);
            self.buffer.reserve_exact(if self.buffer.is_empty() { LEAST_RECORDS } else { doubled.min(left) });
        }
        self.held += more;
        self.buffer.push(record);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        threads::ensure_pool()?;
        self.buffer.par_sort_unstable();
        let mut file = self.temporary.create("sorted")?;
        self.buffer.iter().try_for_each(|record| record.push_to(&mut file))?;
        self.runs.push((0, file.finish()?));
        self.buffer.clear();
        self.held = 0;
        while let Some(&(level, _)) = self.runs.last()
            && let Some(first) = self.runs.len().checked_sub(RUNS)
            && self.runs[first].0 == level
        {
            let buffer = self.buffer_bytes();
            let merged = Merge::<R>::new(self.runs.drain(first..).map(|(_, run)| run), buffer)?;
            let run = self.write(merged)?;
            self.runs.push((level + 1, run));
        }
        Ok(())
    }

    /// Bytes to read at once of a run.
    fn buffer_bytes(&self) -> usize {
        (self.limit / (RUNS * 2)).clamp(SMALL_BUFFER, BUFFER)
    }

    fn write(&self, records: impl Iterator<Item = Result<R>>) -> Result<SpillFile> {
        let mut file = self.temporary.create("sorted")?;
        for record in records {
            record?.push_to(&mut file)?;
        }
        file.finish()
    }

    /// All records in order; of equal ones, each.
    ///
    /// # Errors
    /// As [`Sorter::push`], and those of reading; so are the errors of items.
    pub(crate) fn finish(mut self) -> Result<Sorted<R>> {
        if self.runs.is_empty() {
            threads::ensure_pool()?;
            self.buffer.par_sort_unstable();
            return Ok(Sorted::Memory(self.buffer.into_iter()));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        let buffer = self.buffer_bytes();
        self.buffer = Vec::new();
        Ok(Sorted::Runs(Merge::new(self.runs.into_iter().map(|(_, run)| run), buffer)?))
    }
}

impl<R: Fixed> Sorter<R> {
    /// All records in order, to be read any number of times.
    ///
    /// # Errors
    /// As [`Sorter::finish`].
    pub(crate) fn rows(self) -> Result<Rows<R>> {
        let temporary = Arc::clone(&self.temporary);
        match self.finish()? {
            Sorted::Memory(rows) => Ok(Rows::Memory(rows.collect())),
            Sorted::Runs(merge) => {
                let mut rows = RowsWriter::new(&temporary, 0);
                merge.into_iter().try_for_each(|row| rows.push(row?))?;
                rows.finish()
            }
        }
    }
}

/// Records in order.
#[derive(Debug)]
pub(crate) enum Sorted<R> {
    Memory(std::vec::IntoIter<R>),
    Runs(Merge<R>),
}

impl<R: Record> Iterator for Sorted<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        match self {
            Sorted::Memory(records) => records.next().map(Ok),
            Sorted::Runs(merge) => merge.next(),
        }
    }
}

/// Reads several runs as one; they are removed when they have been read.
#[derive(Debug)]
pub(crate) struct Merge<R> {
    runs: Vec<SpillReader>,
    /// The next record of each run that has one.
    heads: BinaryHeap<Reverse<(R, usize)>>,
}

impl<R: Record> Merge<R> {
    fn new(runs: impl Iterator<Item = SpillFile>, buffer: usize) -> Result<Merge<R>> {
        let mut merge = Merge { runs: Vec::new(), heads: BinaryHeap::new() };
        for (number, run) in runs.enumerate() {
            let mut run = run.read_once(buffer)?;
            merge.heads.extend(R::read_from(&mut run)?.map(|record| Reverse((record, number))));
            merge.runs.push(run);
        }
        Ok(merge)
    }
}

impl<R: Record> Iterator for Merge<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((record, number)) = &mut *head;
        match R::read_from(&mut self.runs[*number]) {
            Ok(Some(following)) => Some(Ok(std::mem::replace(record, following))),
            Ok(None) => {
                let Reverse((record, _)) = PeekMut::pop(head);
                Some(Ok(record))
            }
            Err(error) => Some(Err(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::Unfinished;

    fn sorted<R: Fixed>(records: &[R], memory: u64) -> (Vec<R>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
        let mut sorter = Sorter::new(&temporary, memory);
        records.iter().for_each(|&record| sorter.push(record).unwrap());
        let all = sorter.finish().unwrap().map(Result::unwrap).collect();
        assert_eq!(temporary.held(), 0);
        (all, temporary.written())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        #[test]
        fn same_as_a_plain_sort(records in prop::collection::vec((0_u64..500, any::<u64>()), 0..6000)) {
            let mut expected = records.clone();
            expected.sort_unstable();
            for memory in [0, 40_000, u64::MAX] {
                let (all, written) = sorted(&records, memory);
                prop_assert_eq!(&all, &expected);
                prop_assert_eq!(written > 0, memory == 0 && records.len() > LEAST_RECORDS
                    || memory == 40_000 && records.len() > 2500);
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
}
