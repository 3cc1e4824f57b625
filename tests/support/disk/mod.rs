//! A disk in memory, for tests. It records its operations, can simulate a power loss after any of them, and can make
//! planned operations fail.
//!
//! A sync of a file makes the contents of the file durable, but not its name. A sync of the folder makes the name durable,
//! but not the contents. If several threads use the disk, operations are recorded in the order in which they are done.

mod crash;
mod fault;
mod file_tree;
mod operation;

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::io::{self, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use simstore::fs::{Fs, Lock, LockHandle, SyncFile, WriteFile};
use simstore::raw::Bytes;

pub(crate) use self::crash::{CrashReplay, SurvivalChoice};
use self::fault::FaultPlan;
pub(crate) use self::fault::{Failure, Fault, OperationFilter};
pub(crate) use self::file_tree::SECTOR_BYTES;
use self::file_tree::{FileTree, Node};
pub(crate) use self::operation::OperationKind;
use self::operation::{Action, DiskOperation};

/// A function that the disk calls before an operation, with the kind of the operation (see [`SimulatedDisk::set_hook`]).
type Hook = Arc<dyn Fn(&SimulatedDisk, OperationKind) + Send + Sync>;

struct DiskState {
    /// Contents of the disk before the recorded operations.
    initial: Arc<FileTree>,
    tree: Arc<FileTree>,
    operations: Vec<Arc<DiskOperation>>,
    /// Files that are locked, as indexes in the file tree.
    locked_files: BTreeSet<usize>,
    faults: FaultPlan,
    hook: Option<Hook>,
}

/// A simulated disk: files and folders in memory. Clones are handles of the same disk.
#[derive(Clone)]
pub(crate) struct SimulatedDisk(Arc<Mutex<DiskState>>);

impl Default for SimulatedDisk {
    fn default() -> Self {
        SimulatedDisk::with(FileTree::empty())
    }
}

impl fmt::Debug for SimulatedDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SimulatedDisk({} operations)", self.operations())
    }
}

impl SimulatedDisk {
    fn with(tree: FileTree) -> SimulatedDisk {
        let start = Arc::new(tree);
        SimulatedDisk(Arc::new(Mutex::new(DiskState {
            tree: start.clone(),
            initial: start,
            operations: Vec::new(),
            locked_files: BTreeSet::new(),
            faults: FaultPlan::default(),
            hook: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, DiskState> {
        // If another thread panicked, the test fails anyway.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns this disk as the file system that a store is opened on.
    pub(crate) fn as_fs(&self) -> Arc<dyn Fs> {
        Arc::new(self.clone())
    }

    /// Returns the number of recorded operations. An operation that would change the disk is recorded, even if it fails.
    pub(crate) fn operations(&self) -> usize {
        self.state().operations.len()
    }

    /// Returns the number of operations so far of the kinds that `counted` selects. Reads are also counted, if selected.
    pub(crate) fn count(&self, counted: OperationFilter) -> usize {
        self.state().faults.count(counted)
    }

    /// Returns a text with one numbered line for each recorded operation, for error messages.
    pub(crate) fn listing(&self) -> String {
        let mut text = String::new();
        for (i, operation) in self.state().operations.iter().enumerate() {
            let _ = writeln!(text, "#{i} {operation}");
        }
        text
    }

    /// Returns a disk as it would be after a power loss that follows the first `done` recorded operations. `choice`
    /// says which unsynced data survives.
    pub(crate) fn crash(&self, done: usize, choice: &mut SurvivalChoice) -> SimulatedDisk {
        let mut crashes = self.replay();
        while crashes.done() < done && crashes.advance().is_some() {}
        crashes.image(choice)
    }

    /// Returns a replay of the recorded operations, which can make a disk image after each of them.
    pub(crate) fn replay(&self) -> CrashReplay {
        let state = self.state();
        CrashReplay::new(state.initial.clone(), state.operations.clone())
    }

    /// Plans the failure of an operation.
    pub(crate) fn plan(&self, fault: Fault) {
        self.state().faults.planned.push(fault);
    }

    /// Cancels all planned failures.
    pub(crate) fn clear_faults(&self) {
        self.state().faults.planned.clear();
    }

    /// Sets the number of bytes that can still be written before the disk is full; `None` means no limit.
    pub(crate) fn set_free_bytes(&self, room: Option<usize>) {
        self.state().faults.free_bytes = room;
    }

    /// Sets a hook that is called before each operation that changes the disk, and before each check that a lock file
    /// is in place. The hook may use the disk; operations of the hook do not call it again.
    pub(crate) fn set_hook(&self, hook: impl Fn(&SimulatedDisk, OperationKind) + Send + Sync + 'static) {
        self.state().hook = Some(Arc::new(hook));
    }

    /// Returns the paths of all files and folders.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        fn collect(tree: &FileTree, folder: usize, path: &Path, paths: &mut Vec<PathBuf>) {
            for (name, node) in &tree.folders[folder].names {
                paths.push(path.join(&**name));
                if let Node::Folder(inner) = *node {
                    collect(tree, inner, &path.join(&**name), paths);
                }
            }
        }
        let mut paths = Vec::new();
        collect(&self.state().tree, 0, Path::new(""), &mut paths);
        paths
    }

    /// Creates a file with these contents. Its folder must exist.
    pub(crate) fn write_file(&self, path: &str, bytes: &[u8]) {
        self.create(Path::new(path)).and_then(|mut file| file.write_all(bytes)).unwrap();
    }

    /// Returns the contents of a file, or `None` if it does not exist. This is not an operation of the disk: it is not
    /// counted, and no planned failure concerns it.
    pub(crate) fn content(&self, path: &Path) -> Option<Vec<u8>> {
        let state = self.state();
        state.tree.file(path).ok().map(|file| state.tree.files[file].bytes.to_vec())
    }

    /// Whether this disk and another one share the bytes of a file in memory.
    pub(crate) fn shares_bytes(&self, other: &SimulatedDisk, path: &Path) -> bool {
        let bytes = |disk: &SimulatedDisk| {
            let state = disk.state();
            state.tree.file(path).ok().map(|file| state.tree.files[file].bytes.clone())
        };
        bytes(self).zip(bytes(other)).is_some_and(|(one, other)| Arc::ptr_eq(&one, &other))
    }

    fn run_hook(&self, kind: OperationKind) {
        thread_local! {
            static RUNNING: Cell<bool> = const { Cell::new(false) };
        }
        let hook = self.state().hook.clone();
        if let Some(hook) = hook
            && !RUNNING.replace(true)
        {
            hook(self, kind);
            RUNNING.set(false);
        }
    }

    fn perform(&self, action: Action) -> io::Result<MutexGuard<'_, DiskState>> {
        self.run_hook(action.kind());
        let mut state = self.state();
        state.perform(action)?;
        Ok(state)
    }

    /// Counts a read of the kind `kind`. Calls `read` to perform it, or returns an error if its failure is planned.
    fn read<T>(&self, kind: OperationKind, read: impl FnOnce(&FileTree) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.state();
        match state.faults.next(kind) {
            None | Some(Failure::Short(_) | Failure::LosePages { .. } | Failure::Ignored) => {
                read(&state.tree)
            }
            Some(failure) => Err(failure.error()),
        }
    }
}

impl DiskState {
    /// Performs an operation that changes the disk, or makes it fail as planned. Records the operation and its result.
    fn perform(&mut self, mut action: Action) -> io::Result<()> {
        let failure = match &action {
            Action::Write { bytes, .. } => self.faults.next_write(bytes.len()),
            _ => self.faults.next(action.kind()),
        };
        let mut error = failure.map(Failure::error);
        let mut applied = true;
        match (failure, &mut action) {
            (None | Some(Failure::DoneButIoError), _) => {}
            (Some(Failure::Short(len)), Action::Write { bytes, .. }) => {
                let fewer = len.min(bytes.len().saturating_sub(1)).max(1);
                *bytes = bytes[..fewer.min(bytes.len())].into();
                error = None;
            }
            (Some(Failure::LosePages { percent, seed }), Action::SyncFile { path, file }) => {
                action = Action::LosePages { path: path.clone(), file: *file, percent, seed };
            }
            (Some(Failure::Ignored), Action::SyncFile { .. } | Action::SyncDir(_)) => {
                applied = false;
                error = None;
            }
            (Some(Failure::Short(_) | Failure::LosePages { .. } | Failure::Ignored), _) => error = None,
            (Some(_), _) => applied = false,
        }
        let mut result = if applied { Arc::make_mut(&mut self.tree).apply(&action) } else { Ok(()) };
        if let Some(error) = error {
            result = Err(error);
        }
        let error = result.as_ref().err().map(ToString::to_string);
        self.operations.push(Arc::new(DiskOperation { action, applied, error }));
        result
    }
}

impl Fs for SimulatedDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let state = self.perform(Action::Create(path.to_path_buf()))?;
        let file = state.tree.file(path)?;
        Ok(Box::new(OpenFileHandle { disk: self.clone(), path: path.into(), file, at: 0 }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let bytes = self.read(OperationKind::Open, |tree| Ok(tree.files[tree.file(path)?].bytes.to_vec()))?;
        Ok(Box::new(Cursor::new(bytes)))
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        self.read(OperationKind::Map, |tree| Ok(Bytes::from(tree.files[tree.file(path)?].bytes.to_vec())))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.perform(Action::Rename(from.to_path_buf(), to.to_path_buf())).map(|_| ())
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.perform(Action::HardLink(from.to_path_buf(), to.to_path_buf())).map(|_| ())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.perform(Action::Remove(path.to_path_buf())).map(|_| ())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.perform(Action::CreateDir(path.to_path_buf())).map(|_| ())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.perform(Action::RemoveDir(path.to_path_buf())).map(|_| ())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.read(OperationKind::List, |tree| {
            let folder = &tree.folders[tree.folder(path)?];
            Ok(folder.names.keys().map(ToString::to_string).collect())
        })
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let file = self.state().tree.file(path)?;
        self.perform(Action::SyncFile { path: path.into(), file }).map(|_| ())
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.perform(Action::SyncDir(path.to_path_buf())).map(|_| ())
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let mut state = self.perform(Action::Lock(path.to_path_buf()))?;
        let file = state.tree.file(path)?;
        let path = path.to_path_buf();
        Ok(state.locked_files.insert(file).then(|| Lock::new(LockedFile { disk: self.clone(), path, file })))
    }
}

/// Handle of a held lock; dropping it releases the lock.
struct LockedFile {
    disk: SimulatedDisk,
    path: PathBuf,
    file: usize,
}

impl LockHandle for LockedFile {
    fn is_in_place(&self) -> io::Result<bool> {
        self.disk.run_hook(OperationKind::IsInPlace);
        Ok(self.disk.state().tree.file(&self.path).is_ok_and(|file| file == self.file))
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        self.disk.state().locked_files.remove(&self.file);
    }
}

/// A handle of an open file. It stays valid when the file's name is changed or removed.
#[derive(Clone)]
struct OpenFileHandle {
    disk: SimulatedDisk,
    path: Arc<Path>,
    file: usize,
    at: usize,
}

impl Write for OpenFileHandle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let action =
            Action::Write { path: self.path.clone(), file: self.file, at: self.at, bytes: bytes.into() };
        let state = self.disk.perform(action)?;
        // The last operation is this one, since the disk is still locked. It may have been cut short.
        let written = match &state.operations[state.operations.len() - 1].action {
            Action::Write { bytes, .. } => bytes.len(),
            _ => 0,
        };
        drop(state);
        self.at += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for OpenFileHandle {
    fn sync(&mut self) -> io::Result<()> {
        SyncFile::sync(self)
    }

    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>> {
        Ok(Box::new(self.clone()))
    }
}

impl SyncFile for OpenFileHandle {
    fn sync(&self) -> io::Result<()> {
        self.disk.perform(Action::SyncFile { path: self.path.clone(), file: self.file }).map(|_| ())
    }
}
