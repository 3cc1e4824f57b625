//! Planned failures of disk operations.

use std::io;

use super::operation::OperationKind;

/// How an operation of a simulated disk fails.
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
    /// A write succeeds, but writes at most this number of bytes. It writes at least one byte, and (unless only one is
    /// requested) fewer bytes than requested. Operations other than writes succeed.
    Short(usize),
    /// The sync of a file fails with EIO. Each unsynced sector of the file returns to its old contents with a
    /// probability of `percent` percent. Operations other than syncs of files succeed.
    LosePages { percent: u64, seed: u64 },
    /// A sync does nothing and reports success. Operations other than syncs succeed.
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

/// Selects the operations that a [`Fault`] counts.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationFilter {
    /// All operations that change the disk. So operation `n` of a [`Fault`] is the one with the number `n` in
    /// [`SimulatedDisk::listing`](super::SimulatedDisk::listing).
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

/// A planned failure. It concerns the operations that `counted` selects. Operation number `n` of these fails, counted
/// from 0 since the disk was created. If `lasting`, all later ones fail, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) counted: OperationFilter,
    pub(crate) n: usize,
    pub(crate) lasting: bool,
    pub(crate) failure: Failure,
}

/// The planned failures of a simulated disk, and the number of operations of each kind so far.
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

    /// Counts a write of `len` bytes. Returns its failure if it fails, as planned or because the disk is full.
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

    /// Counts an operation of the kind `kind`. Returns its failure, if one is planned for it.
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
    OperationKind::HardLink,
    OperationKind::Remove,
    OperationKind::CreateDir,
    OperationKind::RemoveDir,
    OperationKind::SyncDir,
    OperationKind::Lock,
    OperationKind::Map,
    OperationKind::Open,
    OperationKind::List,
];
