//! Recorded operations of a disk.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kinds of operations: first the recorded ones, which change the disk, then the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Create,
    Write,
    SyncFile,
    Rename,
    Remove,
    CreateDir,
    RemoveDir,
    SyncDir,
    Lock,
    Map,
    Open,
    List,
    /// A check that the path of a lock leads to the locked file. Such checks are not counted, and never fail.
    IsInPlace,
}

impl Kind {
    pub(crate) fn reads(self) -> bool {
        matches!(self, Kind::Map | Kind::Open | Kind::List | Kind::IsInPlace)
    }
}

/// A change of the disk. Open files are identified by number; the path is only for display.
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
    /// A failed sync: `percent` percent of the unsynced sectors fell back to their old contents.
    LosePages {
        path: Arc<Path>,
        file: usize,
        percent: u64,
        seed: u64,
    },
    Rename(PathBuf, PathBuf),
    Remove(PathBuf),
    CreateDir(PathBuf),
    RemoveDir(PathBuf),
    SyncDir(PathBuf),
    Lock(PathBuf),
}

impl Action {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Action::Create(_) => Kind::Create,
            Action::Write { .. } => Kind::Write,
            Action::SyncFile { .. } | Action::LosePages { .. } => Kind::SyncFile,
            Action::Rename(..) => Kind::Rename,
            Action::Remove(_) => Kind::Remove,
            Action::CreateDir(_) => Kind::CreateDir,
            Action::RemoveDir(_) => Kind::RemoveDir,
            Action::SyncDir(_) => Kind::SyncDir,
            Action::Lock(_) => Kind::Lock,
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
            Action::Remove(path) => write!(f, "remove {}", path.display()),
            Action::CreateDir(path) => write!(f, "create folder {}", path.display()),
            Action::RemoveDir(path) => write!(f, "remove folder {}", path.display()),
            Action::SyncDir(path) => write!(f, "sync folder {}", path.display()),
            Action::Lock(path) => write!(f, "lock {}", path.display()),
        }
    }
}

/// A recorded operation.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) action: Action,
    /// Whether the operation changed the disk.
    pub(super) applied: bool,
    /// The error returned to the caller, if it failed.
    pub(crate) error: Option<String>,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.error {
            Some(error) => write!(f, "{}: {error}", self.action),
            None if !self.applied => write!(f, "{}, ignored", self.action),
            None => self.action.fmt(f),
        }
    }
}
