//! File access. All changes of the disk go through [`Fs`], so that the same code runs on the real disk and on simulated
//! disks that fail or fill up.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::threads::Process;

/// The operations on files and folders that a store needs.
pub trait Fs: Debug + Send + Sync {
    /// Creates a new file for writing. Removes an existing file or link of this name first, so that no write follows a link.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// Opens a file for reading from start to end.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// Opens a file for random access to its bytes, mapped or read into memory.
    fn map(&self, path: &Path) -> io::Result<Bytes>;
    /// Renames a file within its folder. Replaces an existing file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file a second name, `to`, in another folder (a hard link). Fails if `to` exists, if `from` is a link to another
    /// file, and if the file system has no such names, or `to` is on another file system. Then the caller copies the file.
    ///
    /// By default, returns an error of the kind [`io::ErrorKind::Unsupported`].
    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let _ = (from, to);
        Err(io::ErrorKind::Unsupported.into())
    }
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder. Its parent must exist.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Lists the names of a folder's entries.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Makes the content of a file durable, even if another process has written it.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Makes the creation, renaming and removal of a folder's entries durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of a file. Creates the file if it does not exist, and refuses a link. Returns `None` if
    /// the file is already locked.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// Declares methods of an [`Fs`] that call the same method of another `Fs`, which the expression `$disk` returns.
macro_rules! delegate {
    ($self:ident => $disk:expr; $($name:ident($($path:ident),+) -> $result:ty;)+) => {
        $(fn $name(&$self, $($path: &Path),+) -> io::Result<$result> { $disk.$name($($path),+) })+
    };
}
pub(crate) use delegate;

/// A file being written.
pub trait WriteFile: Write + Send {
    /// Makes all earlier writes durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Returns a second handle of the file. It makes earlier writes durable while the first handle continues to write.
    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>>;
}

/// A handle that makes a file durable.
pub trait SyncFile: Send + Sync {
    /// Makes all writes before this call durable.
    fn sync(&self) -> io::Result<()>;
}

/// A held lock of a file. It is released when this value is dropped, or when the process ends.
pub struct Lock {
    handle: Box<dyn LockHandle>,
}

/// A locked file. Dropping it releases the lock.
pub trait LockHandle: Send + Sync {
    /// Whether the locked path still leads to the locked file. After the folder is moved or the file removed, it does not.
    ///
    /// # Errors
    /// Errors of the file system.
    fn is_in_place(&self) -> io::Result<bool>;
}

impl Lock {
    /// Creates a lock that is released when `handle` is dropped.
    pub fn new(handle: impl LockHandle + 'static) -> Lock {
        Lock { handle: Box::new(handle) }
    }

    /// Whether the locked path still leads to the locked file. See [`LockHandle::is_in_place`].
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn is_in_place(&self) -> io::Result<bool> {
        self.handle.is_in_place()
    }
}

/// A locked file on the real disk. The system keeps the lock until all handles of the file are closed. A forked
/// process has copies of the handles, even if it was forked only to start a program. So the process that took the
/// lock releases it explicitly.
struct DiskLock {
    file: File,
    /// Path of the locked file, as the caller gave it.
    path: PathBuf,
    /// Canonical path of the locked file.
    canonical: Arc<Path>,
    process: Process,
}

/// Canonical paths of locked files, each with the process that has locked it.
type LockedPaths = Vec<(Arc<Path>, Process)>;

/// The locked files of this process and of the processes that it was forked from.
static LOCKED_PATHS: Mutex<LockedPaths> = Mutex::new(Vec::new());

impl DiskLock {
    fn new(file: File, path: &Path) -> Self {
        let (canonical, process) = (canonical_path(path), Process::this());
        let locked = DiskLock { file, path: path.to_path_buf(), canonical: Arc::clone(&canonical), process };
        locked_paths().iter_mut().for_each(|all| all.push((canonical.clone(), process)));
        locked
    }
}

impl LockHandle for DiskLock {
    fn is_in_place(&self) -> io::Result<bool> {
        is_file_at(&self.file, &self.path)
    }
}

impl Drop for DiskLock {
    fn drop(&mut self) {
        if self.process.is_here() {
            locked_paths()
                .iter_mut()
                .for_each(|all| all.retain(|(canonical, _)| *canonical != self.canonical));
            // If this fails, closing the file releases the lock.
            let _ = self.file.unlock();
        }
    }
}

/// Returns the canonical path of a file, or `path` itself if the file has none.
fn canonical_path(path: &Path) -> Arc<Path> {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()).into()
}

/// Whether this process has the lock of a file.
pub(crate) fn is_locked_by_this_process(path: &Path) -> bool {
    let canonical = canonical_path(path);
    locked_paths()
        .is_some_and(|all| all.iter().any(|(other, process)| *other == canonical && process.is_here()))
}

/// Returns [`LOCKED_PATHS`] for reading or changing. Gives up after some attempts and returns `None`: if a process
/// was forked while a thread changed the list, the mutex of the list stays locked for ever in the new process.
/// Without the list, only the text of [`Error::Locked`] differs.
fn locked_paths() -> Option<MutexGuard<'static, LockedPaths>> {
    let tries = (0..10_000).map(|_| match LOCKED_PATHS.try_lock() {
        Ok(all) => Some(all),
        Err(std::sync::TryLockError::Poisoned(all)) => Some(all.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => {
            std::thread::yield_now();
            None
        }
    });
    tries.flatten().next()
}

/// The file system of the operating system. Files for random access are memory-mapped or, if the value was created by
/// [`Disk::resident`], read into memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    resident: bool,
}

impl Disk {
    /// Creates a `Disk` that uses no memory maps. Files for random access are read whole into memory, in huge pages if
    /// the system has them. Look-ups in large stores are about a tenth faster. But opening takes as long as reading all
    /// bytes, and the memory belongs to the process, not to the page cache.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use simstore::fs::{Disk, Fs};
    /// use simstore::{BuildOptions, Builder, Snapshot};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("pages");
    /// # Builder::<u64>::create(&path, BuildOptions::default())?.finish()?;
    /// let fs: Arc<dyn Fs> = Arc::new(Disk::resident());
    /// let store = Snapshot::<u64>::open_on(&fs, &path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn resident() -> Disk {
        Disk { resident: true }
    }
}

impl Fs for Disk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let create = || File::create_new(path);
        let file = match create() {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                fs::remove_file(path)?;
                create()
            }
            created => created,
        };
        Ok(Box::new(file?))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(open_regular(path)?))
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let file = open_regular(path)?;
        if self.resident { Bytes::read(&file) } else { Bytes::map(&file) }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn hard_link(&self, from: &Path, to: &Path) -> io::Result<()> {
        // A hard link to a symbolic link is a second name of the symbolic link, not of the file.
        if !fs::symlink_metadata(from)?.is_file() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        // Some systems sync only through a handle with write access.
        open_regular_with(OpenOptions::new().write(true), path)?.sync_all()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        if cfg!(not(unix)) {
            return Ok(());
        }
        if !fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        File::open(path)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        loop {
            let file = match File::create_new(path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink()) {
                        return Err(io::Error::other("the lock file is a link: remove it"));
                    }
                    match open_regular_with(OpenOptions::new().write(true), path) {
                        // The owner of the lock has removed the file since.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        opened => opened?,
                    }
                }
                created => created?,
            };
            match file.try_lock() {
                // Between opening and locking, the owner of the lock may have removed the file. Then this lock has no effect.
                Ok(()) if is_file_at(&file, path)? => {
                    return Ok(Some(Lock::new(DiskLock::new(file, path))));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Opens a regular file for reading. Refuses a named pipe, since opening it would wait for a process at its other end, perhaps
/// for ever. Also refuses sockets and devices.
///
/// # Errors
/// Errors of the file system, and an error of the kind [`io::ErrorKind::Other`] for a pipe, a socket or a device.
pub fn open_regular(path: &Path) -> io::Result<File> {
    open_regular_with(OpenOptions::new().read(true), path)
}

fn open_regular_with(options: &OpenOptions, path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() {
        return Err(io::Error::other("expected a file, found a pipe, a socket or a device: remove it"));
    }
    options.open(path)
}

/// Whether the path leads to the open file.
#[cfg(unix)]
fn is_file_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(metadata) => {
            file.metadata().map(|open| (open.dev(), open.ino()) == (metadata.dev(), metadata.ino()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the path leads to the open file. Always true, because an open file cannot be removed on this system.
#[cfg(not(unix))]
fn is_file_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

impl WriteFile for File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }

    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>> {
        Ok(Box::new(self.try_clone()?))
    }
}

impl SyncFile for File {
    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

/// A file that is written under a temporary name, and gets its final name when it is complete and durable. If this
/// value is dropped before, the file is removed.
pub(crate) struct NewFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<Box<dyn WriteFile>>>,
    process: Process,
}

/// Suffix of the temporary names of incomplete files.
pub(crate) const TEMPORARY_SUFFIX: &str = ".tmp";
const WRITE_BUFFER_BYTES: usize = 1 << 18;

impl NewFile {
    pub(crate) fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<NewFile> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(TEMPORARY_SUFFIX);
        let temporary = PathBuf::from(temporary);
        let file = fs.create(&temporary).map_err(Error::io(&temporary, "create"))?;
        let file = Some(BufWriter::with_capacity(WRITE_BUFFER_BYTES, file));
        Ok(NewFile { fs: fs.clone(), path: path.to_path_buf(), temporary, file, process: Process::this() })
    }

    /// Makes the file durable, and renames it to its final name. Does not sync the folder.
    pub(crate) fn commit(mut self) -> Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let committed = file
            .into_inner()
            .map_err(io::IntoInnerError::into_error)
            .and_then(|mut file| file.sync())
            .map_err(Error::io(&self.path, "write"))
            .and_then(|()| {
                self.fs.rename(&self.temporary, &self.path).map_err(Error::io(&self.path, "rename to"))
            });
        if committed.is_err() {
            // The first error is returned. If this removal fails, the next build removes the file.
            let _ = self.fs.remove(&self.temporary);
        }
        committed
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(file) = self.file.take() {
            // Discards the buffer: the file is removed next.
            drop(file.into_parts());
            if self.process.is_here() {
                let _ = self.fs.remove(&self.temporary);
            }
        }
    }
}

/// Reads a text file of the operating system, such as one in `/proc`.
pub(crate) fn read_to_string(path: &str) -> io::Result<String> {
    fs::read_to_string(path)
}
