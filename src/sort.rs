//! Sorting more records than fit in memory: sorted runs in temporary files, merged as they are read.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::slice::ParallelSliceMut;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::{Fs, TEMPORARY};
use crate::progress::{ProgressCallback, Steps};
use crate::threads::{self, Process};

/// What is sorted: a fingerprint, or a fingerprint with an id.
pub(crate) trait Record: Copy + Ord + Send + Sync {
    type Fingerprint: Fingerprint;
    /// Length in a run, in bytes.
    const LEN: usize;

    fn fingerprint(self) -> Self::Fingerprint;
    /// The id; `None` where ids are not kept.
    fn id(self) -> Option<u64>;
    fn write(self, bytes: &mut [u8]);
    fn read(bytes: &[u8]) -> Self;
}

impl<F: Fingerprint> Record for F {
    type Fingerprint = F;
    const LEN: usize = F::BYTES;

    fn fingerprint(self) -> F {
        self
    }
    fn id(self) -> Option<u64> {
        None
    }
    fn write(self, bytes: &mut [u8]) {
        self.write_le(bytes);
    }
    fn read(bytes: &[u8]) -> Self {
        F::read_le(bytes)
    }
}

/// A fingerprint with an id, in order of the fingerprint, then of the id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WithId<F> {
    pub(crate) fingerprint: F,
    pub(crate) id: u64,
}

impl<F: Fingerprint> Record for WithId<F> {
    type Fingerprint = F;
    const LEN: usize = F::BYTES + 8;

    fn fingerprint(self) -> F {
        self.fingerprint
    }
    fn id(self) -> Option<u64> {
        Some(self.id)
    }
    fn write(self, bytes: &mut [u8]) {
        self.fingerprint.write_le(bytes);
        self.id.write_le(&mut bytes[F::BYTES..]);
    }
    fn read(bytes: &[u8]) -> Self {
        WithId { fingerprint: F::read_le(bytes), id: u64::read_le(&bytes[F::BYTES..]) }
    }
}

/// Buffer for reading or writing a run, in bytes.
const RUN_BUFFER: usize = 1 << 18;

/// Takes records in any order.
pub(crate) struct Sorter<R> {
    fs: Arc<dyn Fs>,
    /// Where runs go: this path with a number and an ending.
    path: PathBuf,
    /// The most records in memory.
    limit: usize,
    buffer: Vec<R>,
    runs: Runs,
    /// Asked whether to go on while records are written.
    progress: Option<ProgressCallback>,
}

/// Temporary files, removed when this is dropped.
struct Runs {
    fs: Arc<dyn Fs>,
    paths: Vec<PathBuf>,
    process: Process,
}

impl Drop for Runs {
    fn drop(&mut self) {
        for path in self.paths.iter().filter(|_| self.process.is_here()) {
            // What cannot be removed now is removed by the next build.
            let _ = self.fs.remove(path);
        }
    }
}

impl<R: Record> Sorter<R> {
    /// `memory` is in bytes.
    pub(crate) fn new(fs: &Arc<dyn Fs>, path: &Path, memory: u64) -> Self {
        let limit = usize::try_from(memory).unwrap_or(usize::MAX) / size_of::<R>();
        Sorter {
            fs: fs.clone(),
            path: path.to_path_buf(),
            limit: limit.max(1024),
            buffer: Vec::new(),
            runs: Runs { fs: fs.clone(), paths: Vec::new(), process: Process::this() },
            progress: None,
        }
    }

    /// The same, whose sorting ends with [`Error::Cancelled`] when the callback says so.
    pub(crate) fn watched(self, progress: Option<&ProgressCallback>) -> Self {
        Sorter { progress: progress.cloned(), ..self }
    }

    pub(crate) fn push(&mut self, record: R) -> Result<()> {
        if self.buffer.len() == self.buffer.capacity() {
            if self.buffer.len() >= self.limit {
                self.spill()?;
            } else {
                // Doubling, but never past the limit.
                let more = self.buffer.len().max(1024).min(self.limit - self.buffer.len());
                self.buffer.reserve_exact(more);
            }
        }
        self.buffer.push(record);
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        threads::ensure_pool()?;
        self.buffer.par_sort_unstable();
        let path = self.path.with_extension(format!("{}{TEMPORARY}", self.runs.paths.len()));
        let mut file = self.fs.create(&path).map_err(Error::io(&path, "create"))?;
        self.runs.paths.push(path.clone());
        let mut bytes = vec![0; RUN_BUFFER / R::LEN * R::LEN];
        let steps = Steps::new(self.progress.as_ref(), 0);
        for records in self.buffer.chunks(RUN_BUFFER / R::LEN) {
            steps.ask()?;
            for (record, bytes) in records.iter().zip(bytes.chunks_exact_mut(R::LEN)) {
                record.write(bytes);
            }
            file.write_all(&bytes[..records.len() * R::LEN]).map_err(Error::io(&path, "write"))?;
        }
        self.buffer.clear();
        Ok(())
    }

    /// Sorts what was pushed.
    pub(crate) fn finish(mut self) -> Result<Sorted<R>> {
        if self.runs.paths.is_empty() {
            threads::ensure_pool()?;
            self.buffer.par_sort_unstable();
            return Ok(Sorted::Memory(self.buffer));
        }
        if !self.buffer.is_empty() {
            self.spill()?;
        }
        Ok(Sorted::Runs(SortedRuns { runs: self.runs }))
    }
}

/// Sorted records, which can be read any number of times.
pub(crate) enum Sorted<R> {
    Memory(Vec<R>),
    Runs(SortedRuns),
    Source(Source<R>),
}

/// Hands over the same records, in order, each time that it is called, some at a time.
pub(crate) type Source<R> = Box<dyn Fn(&mut dyn FnMut(&[R]) -> Result<()>) -> Result<()> + Send + Sync>;

pub(crate) struct SortedRuns {
    runs: Runs,
}

impl<R: Record> Sorted<R> {
    /// Calls `visitor` with each different record, in order.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        let mut previous = None;
        self.visit_all(|record| {
            if previous == Some(record) {
                return Ok(());
            }
            previous = Some(record);
            visitor(record)
        })
    }

    /// Calls `visitor` with each record, in order, as often as it was pushed.
    pub(crate) fn visit_all(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        match self {
            Sorted::Memory(records) => records.iter().try_for_each(|&record| visitor(record)),
            Sorted::Runs(sorted) => merge(&sorted.runs, visitor),
            Sorted::Source(source) => {
                source(&mut |records| records.iter().try_for_each(|&record| visitor(record)))
            }
        }
    }

    /// Calls `visitor` with each different fingerprint, in order.
    pub(crate) fn visit_fingerprints(
        &self,
        mut visitor: impl FnMut(R::Fingerprint) -> Result<()>,
    ) -> Result<()> {
        let mut previous = None;
        self.visit(|record| {
            if previous == Some(record.fingerprint()) {
                return Ok(());
            }
            previous = Some(record.fingerprint());
            visitor(record.fingerprint())
        })
    }
}

fn merge<R: Record>(runs: &Runs, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
    let mut readers = Vec::new();
    let mut heads = BinaryHeap::new();
    for (number, path) in runs.paths.iter().enumerate() {
        let file = runs.fs.open(path).map_err(Error::io(path, "open"))?;
        let mut reader =
            RunReader { path, file, bytes: vec![0; RUN_BUFFER / R::LEN * R::LEN], at: 0, end: 0 };
        if let Some(record) = reader.next::<R>()? {
            heads.push(Reverse((record, number)));
        }
        readers.push(reader);
    }
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((record, number)) = *head;
        match readers[number].next()? {
            Some(next) => *head = Reverse((next, number)),
            None => {
                PeekMut::pop(head);
            }
        }
        visitor(record)?;
    }
    Ok(())
}

struct RunReader<'a> {
    path: &'a Path,
    file: Box<dyn Read + Send>,
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl RunReader<'_> {
    fn next<R: Record>(&mut self) -> Result<Option<R>> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
            while self.end < self.bytes.len() {
                match self.file.read(&mut self.bytes[self.end..]) {
                    Ok(0) => break,
                    Ok(len) => self.end += len,
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(Error::io(self.path, "read")(error)),
                }
            }
            if self.end == 0 {
                return Ok(None);
            }
            if !self.end.is_multiple_of(R::LEN) {
                return Err(Error::io(self.path, "read")(std::io::ErrorKind::UnexpectedEof.into()));
            }
        }
        self.at += R::LEN;
        Ok(Some(R::read(&self.bytes[self.at - R::LEN..self.at])))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fs::Disk;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

        #[test]
        fn same_in_memory_and_in_runs(
            records in prop::collection::vec((0_u128..5000, 0_u64..4), 0..20_000),
        ) {
            let records: Vec<_> = records.into_iter().map(|(fingerprint, id)| WithId { fingerprint, id }).collect();
            let mut expected = records.clone();
            expected.sort_unstable();
            expected.dedup();
            let folder = tempfile::tempdir().unwrap();
            let fs: Arc<dyn Fs> = Arc::new(Disk::default());
            for memory in [0, 100_000, u64::MAX] {
                let mut sorter = Sorter::new(&fs, &folder.path().join("run"), memory);
                records.iter().for_each(|&record| sorter.push(record).unwrap());
                let sorted = sorter.finish().unwrap();
                for _ in 0..2 {
                    let mut read = Vec::new();
                    sorted.visit(|record| { read.push(record); Ok(()) }).unwrap();
                    prop_assert_eq!(&read, &expected);
                }
                let mut fingerprints = Vec::new();
                sorted.visit_fingerprints(|x| { fingerprints.push(x); Ok(()) }).unwrap();
                let mut plain: Vec<u128> = expected.iter().map(|record| record.fingerprint).collect();
                plain.dedup();
                prop_assert_eq!(fingerprints, plain);
                drop(sorted);
                prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            }
        }
    }
}
