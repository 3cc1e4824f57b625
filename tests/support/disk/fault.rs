//! Operations that fail, as planned.

use std::io;

use super::operation::OperationKind;

/// How an operation fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// Nothing is done: EIO.
    IoError,
    /// Nothing is done: ENOSPC.
    NoSpace,
    /// Nothing is done, and it may be tried again: EINTR.
    Interrupted,
    /// It is done, but its caller is told of EIO.
    DoneButIoError,
    /// A write of so many bytes, at least one, but fewer than asked if that is more than one; no error. Other operations succeed.
    Short(usize),
    /// The sync of a file fails with EIO, and each of its unsynced sectors falls back to what is on the disk with
    /// this probability. Other operations succeed.
    LosePages { percent: u64, seed: u64 },
    /// A sync does nothing and reports no error: a disk that lies. Other operations succeed.
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

/// Which operations are counted.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationFilter {
    /// Those that change the disk: their numbers are those of the listing.
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

/// The n-th of these operations since the disk was made, from 0, fails; with `lasting`, all later ones too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) counted: OperationFilter,
    pub(crate) n: usize,
    pub(crate) lasting: bool,
    pub(crate) failure: Failure,
}

/// Counts operations, and says which fail.
#[derive(Debug, Default)]
pub(super) struct FaultPlan {
    pub(super) planned: Vec<Fault>,
    /// Bytes that may still be written; `None` is no limit.
    pub(super) free_bytes: Option<usize>,
    counts: [usize; OperationKind::List as usize + 1],
}

impl FaultPlan {
    pub(super) fn count(&self, counted: OperationFilter) -> usize {
        let kinds = COUNTED_KINDS.into_iter().filter(|&kind| counted.counts(kind));
        kinds.map(|kind| self.counts[kind as usize]).sum()
    }

    /// As `next`, for a write of so many bytes, for which there may be no room.
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

    /// Counts an operation, and says how it fails if it does.
    pub(super) fn next(&mut self, kind: OperationKind) -> Option<Failure> {
        let fails = |fault: &&Fault| {
            let n = self.count(fault.counted);
            // Who is interrupted for ever tries for ever.
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
