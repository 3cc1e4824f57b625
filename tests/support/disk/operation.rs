//! Operations of a simulated disk, in the form in which the disk records them.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kinds of operations of a simulated disk. First come the kinds that change the disk and are recorded, then the
/// kinds that only read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperationKind {
    Create,
    Write,
    SyncFile,
    Rename,
    HardLink,
    Remove,
    CreateDir,
    RemoveDir,
    SyncDir,
    Lock,
    Map,
    Open,
    List,
    /// A check that the path of a held lock still leads to the locked file. Such checks are not counted, and none can
    /// be made to fail.
    IsInPlace,
}

impl OperationKind {
    pub(crate) fn is_read(self) -> bool {
        matches!(
            self,
            OperationKind::Map | OperationKind::Open | OperationKind::List | OperationKind::IsInPlace
        )
    }
}

/// An operation that changes the disk. The field `file` identifies an open file by its index in the file tree; the field
/// `path` is only for display.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Create(PathBuf),
    Write {
        path: Arc<Path>,
        file: usize,
        at: usize,
        bytes: Arc<[u8]>,
    },
    SyncFile {
        path: Arc<Path>,
        file: usize,
    },
    /// A sync of a file that failed and lost data: each unsynced sector of the file returned to its old contents with a
    /// probability of `percent` percent.
    LosePages {
        path: Arc<Path>,
        file: usize,
        percent: u64,
        seed: u64,
    },
    Rename(PathBuf, PathBuf),
    HardLink(PathBuf, PathBuf),
    Remove(PathBuf),
    CreateDir(PathBuf),
    RemoveDir(PathBuf),
    SyncDir(PathBuf),
    Lock(PathBuf),
}

impl Action {
    pub(crate) fn kind(&self) -> OperationKind {
        match self {
            Action::Create(_) => OperationKind::Create,
            Action::Write { .. } => OperationKind::Write,
            Action::SyncFile { .. } | Action::LosePages { .. } => OperationKind::SyncFile,
            Action::Rename(..) => OperationKind::Rename,
            Action::HardLink(..) => OperationKind::HardLink,
            Action::Remove(_) => OperationKind::Remove,
            Action::CreateDir(_) => OperationKind::CreateDir,
            Action::RemoveDir(_) => OperationKind::RemoveDir,
            Action::SyncDir(_) => OperationKind::SyncDir,
            Action::Lock(_) => OperationKind::Lock,
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Create(path) => write!(f, "create {}", path.display()),
            Action::Write { path, at, bytes, .. } => {
                write!(f, "write {} +{} at {at}", path.display(), bytes.len())
            }
            Action::SyncFile { path, .. } => write!(f, "sync {}", path.display()),
            Action::LosePages { path, percent, .. } => {
                write!(f, "sync {}, losing {percent}% of its unsynced sectors", path.display())
            }
            Action::Rename(from, to) => write!(f, "rename {} to {}", from.display(), to.display()),
            Action::HardLink(from, to) => write!(f, "link {} as {}", from.display(), to.display()),
            Action::Remove(path) => write!(f, "remove {}", path.display()),
            Action::CreateDir(path) => write!(f, "create folder {}", path.display()),
            Action::RemoveDir(path) => write!(f, "remove folder {}", path.display()),
            Action::SyncDir(path) => write!(f, "sync folder {}", path.display()),
            Action::Lock(path) => write!(f, "lock {}", path.display()),
        }
    }
}

/// A recorded operation of a simulated disk, with its result.
#[derive(Clone, Debug)]
pub(crate) struct DiskOperation {
    pub(crate) action: Action,
    /// Whether the disk performed the operation. If not, the operation changed nothing.
    pub(super) applied: bool,
    /// The error that the caller got; `None` if the caller got no error.
    pub(crate) error: Option<String>,
}

impl fmt::Display for DiskOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.action),
            None if !self.applied => write!(f, "{}, ignored", self.action),
            None => self.action.fmt(f),
        }
    }
}
