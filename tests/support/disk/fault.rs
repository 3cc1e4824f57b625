//! Planned failures of disk operations.

use std::io;

use super::operation::OperationKind;

/// Kind of failure of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// The operation does nothing and returns EIO.
    IoError,
    /// The operation does nothing and returns ENOSPC.
    NoSpace,
    /// The operation does nothing and returns EINTR. The caller may retry it.
    Interrupted,
    /// The operation is done, but returns EIO.
    DoneButIoError,
    /// A write of more than one byte writes at most this number of bytes: at least one, and fewer than requested. It returns
    /// no error. Other operations succeed.
    Short(usize),
    /// The sync of a file fails with EIO, and each of its unsynced sectors returns to its old contents with a probability of
    /// `percent` percent. Other operations succeed.
    LosePages { percent: u64, seed: u64 },
    /// A sync does nothing and reports success. Other operations succeed.
    Ignored,
}

impl Failure {
    pub(super) fn error(self) -> io::Error {
        match self {
            Failure::NoSpace => io::Error::from_raw_os_error(28),
            Failure::Interrupted => io::ErrorKind::Interrupted.into(),
            _ => io::Error::from_raw_os_error(5),
        }
    }
}

/// Kinds of operations that a fault counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationFilter {
    /// Operations that change the disk, numbered as in [`SimulatedDisk::listing`](super::SimulatedDisk::listing).
    Changes,
    All,
    Kind(OperationKind),
}

impl OperationFilter {
    fn counts(self, kind: OperationKind) -> bool {
        match self {
            OperationFilter::Changes => !kind.is_read(),
            OperationFilter::All => true,
            OperationFilter::Kind(wanted) => kind == wanted,
        }
    }
}

/// A planned failure. It counts the operations that `counted` selects, from 0, since the disk was created.
/// Operation number `n` among them fails and, if `lasting`, all later ones, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) counted: OperationFilter,
    pub(crate) n: usize,
    pub(crate) lasting: bool,
    pub(crate) failure: Failure,
}

/// Planned failures, and counts of the operations so far.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    pub(super) planned: Vec<Fault>,
    /// Number of bytes that can still be written before the disk is full; `None` means no limit.
    pub(super) free_bytes: Option<usize>,
    counts: [usize; OperationKind::List as usize + 1],
}

impl FaultPlan {
    pub(super) fn count(&self, counted: OperationFilter) -> usize {
        let kinds = COUNTED_KINDS.into_iter().filter(|&kind| counted.counts(kind));
        kinds.map(|kind| self.counts[kind as usize]).sum()
    }

    /// Like `next`, for a write of `len` bytes, which may also fail because the disk is full.
    pub(super) fn next_write(&mut self, len: usize) -> Option<Failure> {
        let planned = self.next(OperationKind::Write);
        let Some(room) = &mut self.free_bytes else { return planned };
        let fits = len.min(*room);
        *room -= fits;
        match fits {
            0 if len > 0 => Some(Failure::NoSpace),
            _ if fits < len => Some(Failure::Short(fits)),
            _ => planned,
        }
    }

    /// Counts an operation, and returns its failure if it fails.
    pub(super) fn next(&mut self, kind: OperationKind) -> Option<Failure> {
        let fails = |fault: &&Fault| {
            let n = self.count(fault.counted);
            // A caller retries an interrupted call, so a lasting interruption would never end.
            let lasting = fault.lasting && !matches!(fault.failure, Failure::Interrupted);
            fault.counted.counts(kind) && (n == fault.n || lasting && n > fault.n)
        };
        let failure = self.planned.iter().find(fails).map(|fault| fault.failure);
        self.counts[kind as usize] += 1;
        failure
    }
}

const COUNTED_KINDS: [OperationKind; OperationKind::List as usize + 1] = [
    OperationKind::Create,
    OperationKind::Write,
    OperationKind::SyncFile,
    OperationKind::Rename,
    OperationKind::Remove,
    OperationKind::CreateDir,
    OperationKind::RemoveDir,
    OperationKind::SyncDir,
    OperationKind::Lock,
    OperationKind::Map,
    OperationKind::Open,
    OperationKind::List,
];
