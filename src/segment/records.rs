//! Sorted input records of a segment build.

use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::spill::{FixedSize, SortedRuns};

/// An input record of a segment: a fingerprint, or a fingerprint with an id.
pub(super) trait SegmentRecord: FixedSize + Sync {
    type Fingerprint: Fingerprint;

    fn fingerprint(self) -> Self::Fingerprint;
    /// Id; `None` in a segment without ids.
    fn id(self) -> Option<u64>;
}

impl<F: Fingerprint> SegmentRecord for F {
    type Fingerprint = F;

    fn fingerprint(self) -> F {
        self
    }
    fn id(self) -> Option<u64> {
        None
    }
}

impl<F: Fingerprint> SegmentRecord for (F, u64) {
    type Fingerprint = F;

    fn fingerprint(self) -> F {
        self.0
    }
    fn id(self) -> Option<u64> {
        Some(self.1)
    }
}

/// A source of sorted records. It is a function that takes a callback, and calls it with one batch of records
/// after the other. Each call of the function passes the same records again.
pub(crate) type SortedRecordSource<R> =
    Box<dyn Fn(&mut dyn FnMut(&[R]) -> Result<()>) -> Result<()> + Send + Sync>;

/// The sorted records of a segment build. They can be read any number of times.
pub(super) enum SegmentRecords<R> {
    Sorted(SortedRuns<R>),
    Source(SortedRecordSource<R>),
}

impl<R: SegmentRecord> SegmentRecords<R> {
    /// Calls `visitor` with each distinct record, in order.
    pub(super) fn visit(&self, mut visitor: impl FnMut(R) -> Result<()>) -> Result<()> {
        match self {
            SegmentRecords::Sorted(runs) => runs.visit(visitor),
            SegmentRecords::Source(source) => {
                let mut previous = None;
                source(&mut |records| {
                    records.iter().try_for_each(|&record| match previous.replace(record) == Some(record) {
                        true => Ok(()),
                        false => visitor(record),
                    })
                })
            }
        }
    }

    /// Calls `visitor` with each distinct fingerprint, in order.
    pub(super) fn visit_fingerprints(
        &self,
        mut visitor: impl FnMut(R::Fingerprint) -> Result<()>,
    ) -> Result<()> {
        let mut previous = None;
        self.visit(|record| {
            let fingerprint = record.fingerprint();
            if previous.replace(fingerprint) == Some(fingerprint) { Ok(()) } else { visitor(fingerprint) }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fs::{Disk, Fs};
    use crate::spill::{PrefixLocation, Sorter};

    #[test]
    fn each_fingerprint_is_visited_once() {
        let folder = tempfile::tempdir().unwrap();
        let fs: Arc<dyn Fs> = Arc::new(Disk::default());
        for memory in [0, u64::MAX] {
            let mut sorter = Sorter::new(PrefixLocation::new(&fs, &folder.path().join("run")), memory);
            (0..9000_u64).for_each(|at| sorter.push((at * 7919 % 3000 / 2, at % 3)).unwrap());
            let records = SegmentRecords::Sorted(sorter.finish_runs().unwrap());
            for _ in 0..2 {
                let (mut fingerprints, mut pairs) = (Vec::new(), 0);
                records
                    .visit_fingerprints(|fingerprint| {
                        fingerprints.push(fingerprint);
                        Ok(())
                    })
                    .unwrap();
                assert!(fingerprints.into_iter().eq(0..1500));
                records
                    .visit(|record| {
                        assert!(record.id() == Some(record.1));
                        pairs += 1;
                        Ok(())
                    })
                    .unwrap();
                let mut expected: Vec<_> = (0..9000_u64).map(|at| (at * 7919 % 3000 / 2, at % 3)).collect();
                expected.sort_unstable();
                expected.dedup();
                assert_eq!(pairs, expected.len());
            }
        }
    }
}
