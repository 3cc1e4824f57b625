//! Sorting more records than fit in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;
use simstore::{Result, threads};

use super::file::{SpillFile, SpillReader};
use super::fixed::{Fixed, MAX_RECORD};
use super::folder::Temporary;

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
    /// The most records in memory.
    limit: usize,
    buffer: Vec<R>,
    /// Each with how often it was merged.
    runs: Vec<(u32, SpillFile)>,
}

impl<R: Fixed> Sorter<R> {
    /// Takes so many bytes of memory, about.
    pub(crate) fn new(temporary: &Arc<Temporary>, memory: u64) -> Self {
        let limit = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<R>();
        Sorter {
            temporary: Arc::clone(temporary),
            limit: limit.max(LEAST_RECORDS),
            buffer: Vec::new(),
            runs: Vec::new(),
        }
    }

    /// Adds a record.
    ///
    /// # Errors
    /// Those of writing, as [`Temporary::failed`] has them.
    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        if self.buffer.len() == self.buffer.capacity() {
            if self.buffer.len() >= self.limit {
                self.spill()?;
            } else {
                // Doubling, but never past the limit.
                let more = self.buffer.len().max(LEAST_RECORDS).min(self.limit - self.buffer.len());
                self.buffer.reserve_exact(more);
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        threads::ensure_pool()?;
        self.buffer.par_sort_unstable();
        let run = self.write(self.buffer.iter().map(|&record| Ok(record)))?;
        self.runs.push((0, run));
        self.buffer.clear();
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
        (self.limit * size_of::<R>() / (RUNS * 2)).clamp(SMALL_BUFFER, BUFFER)
    }

    fn write(&self, records: impl Iterator<Item = Result<R>>) -> Result<SpillFile> {
        let mut file = self.temporary.create("sorted")?;
        let mut bytes = [0; MAX_RECORD];
        for record in records {
            record?.write(&mut bytes);
            file.push(&bytes[..R::BYTES])?;
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

/// Records in order.
#[derive(Debug)]
pub(crate) enum Sorted<R> {
    Memory(std::vec::IntoIter<R>),
    Runs(Merge<R>),
}

impl<R: Fixed> Iterator for Sorted<R> {
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

impl<R: Fixed> Merge<R> {
    fn new(runs: impl Iterator<Item = SpillFile>, buffer: usize) -> Result<Merge<R>> {
        let mut merge = Merge { runs: Vec::new(), heads: BinaryHeap::new() };
        for (number, run) in runs.enumerate() {
            let mut run = run.read_once(buffer)?;
            merge.heads.extend(next(&mut run)?.map(|record| Reverse((record, number))));
            merge.runs.push(run);
        }
        Ok(merge)
    }
}

impl<R: Fixed> Iterator for Merge<R> {
    type Item = Result<R>;

    fn next(&mut self) -> Option<Result<R>> {
        let mut head = self.heads.peek_mut()?;
        let Reverse((record, number)) = *head;
        match next(&mut self.runs[number]) {
            Ok(Some(following)) => *head = Reverse((following, number)),
            Ok(None) => {
                PeekMut::pop(head);
            }
            Err(error) => return Some(Err(error)),
        }
        Some(Ok(record))
    }
}

/// The next record of a run.
fn next<R: Fixed>(run: &mut SpillReader) -> Result<Option<R>> {
    let mut bytes = [0; MAX_RECORD];
    let bytes = &mut bytes[..R::BYTES];
    Ok(run.fill(bytes)?.then(|| R::read(bytes)))
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
