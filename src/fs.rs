//! File access: everything that changes the disk goes through [`Fs`], so that the same code can run on the
//! real disk and on one that fails or fills up.

use std::fmt::Debug;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use crate::error::{Error, Result};
use crate::map::Bytes;
use crate::threads::Process;

/// The operations on files and folders that a store needs.
pub trait Fs: Debug + Send + Sync {
    /// Creates a new file for writing. A file or a link of that name is removed first: nothing is written through a link.
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>>;
    /// Opens a file to be read from start to end.
    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>>;
    /// The bytes of a file, to be read at random.
    fn map(&self, path: &Path) -> io::Result<Bytes>;
    /// Gives a file another name in the same folder, replacing what has this name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Creates a folder; its parent exists.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// The names of a folder's entries.
    fn list(&self, path: &Path) -> io::Result<Vec<String>>;
    /// Makes the content of a file durable, also if another process has written it.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of a file that is created if need be, and is no link; `None` if another process has it.
    fn lock(&self, path: &Path) -> io::Result<Option<Lock>>;
}

/// Declares methods of [`Fs`] that call the same method of another file system. `$disk` returns the other one.
macro_rules! delegate {
    ($self:ident => $disk:expr; $($name:ident($($path:ident),+) -> $result:ty;)+) => {
        $(fn $name(&$self, $($path: &Path),+) -> io::Result<$result> { $disk.$name($($path),+) })+
    };
}
pub(crate) use delegate;

/// A file being written.
pub trait WriteFile: Write + Send {
    /// Makes all that was written durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Another handle of the file, which makes earlier writes durable while the file is written further.
    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>>;
}

/// A file to be made durable.
pub trait SyncFile: Send + Sync {
    /// Makes all that was written before this call durable.
    fn sync(&self) -> io::Result<()>;
}

/// A lock that is held until it is dropped or its process ends.
pub struct Lock {
    held: Box<dyn Held>,
}

/// A locked file. Dropping it gives the lock back.
pub trait Held: Send + Sync {
    /// Whether the path that was locked still leads to the locked file. It does not after the file's folder was moved, or the
    /// file removed.
    fn is_in_place(&self) -> io::Result<bool>;
}

impl Lock {
    /// A lock that is given back when `held` is dropped.
    pub fn new(held: impl Held + 'static) -> Lock {
        Lock { held: Box::new(held) }
    }

    /// [`Held::is_in_place`] of the locked file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn is_in_place(&self) -> io::Result<bool> {
        self.held.is_in_place()
    }
}

/// A locked file. A lock lasts until its last handle is closed, and a process that was just forked, even only to start a
/// program, holds a copy of each handle. So the process that took the lock releases it explicitly.
struct LockedFile {
    file: File,
    /// As it was given.
    path: PathBuf,
    place: Arc<Path>,
    process: Process,
}

/// Locked files, each with the process that has locked it.
type Locked = Vec<(Arc<Path>, Process)>;

/// The locked files of this process, and of those that it was forked from.
static LOCKED: Mutex<Locked> = Mutex::new(Vec::new());

impl LockedFile {
    fn new(file: File, path: &Path) -> Self {
        let (place, process) = (place_of(path), Process::this());
        let locked = LockedFile { file, path: path.to_path_buf(), place: Arc::clone(&place), process };
        all_locked().iter_mut().for_each(|all| all.push((place.clone(), process)));
        locked
    }
}

impl Held for LockedFile {
    fn is_in_place(&self) -> io::Result<bool> {
        is_still_at(&self.file, &self.path)
    }
}

impl Drop for LockedFile {
    fn drop(&mut self) {
        if self.process.is_here() {
            all_locked().iter_mut().for_each(|all| all.retain(|(place, _)| *place != self.place));
            // Where it fails, closing the file gives it back.
            let _ = self.file.unlock();
        }
    }
}

/// One path for all names of a file.
fn place_of(path: &Path) -> Arc<Path> {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf()).into()
}

/// Whether it is this process that has the lock of a file.
pub(crate) fn is_locked_here(path: &Path) -> bool {
    let place = place_of(path);
    all_locked().is_some_and(|all| all.iter().any(|(other, process)| *other == place && process.is_here()))
}

/// The locked files; `None` if the list stays locked. In a process forked while a thread changed the list, it stays locked for
/// ever. So the number of attempts is bounded: the list only affects the text of an error.
fn all_locked() -> Option<MutexGuard<'static, Locked>> {
    let tries = (0..10_000).map(|_| match LOCKED.try_lock() {
        Ok(all) => Some(all),
        Err(std::sync::TryLockError::Poisoned(all)) => Some(all.into_inner()),
        Err(std::sync::TryLockError::WouldBlock) => {
            std::thread::yield_now();
            None
        }
    });
    tries.flatten().next()
}

/// The real disk. Files to be read at random are mapped, unless it is [`Disk::resident`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk {
    resident: bool,
}

impl Disk {
    /// The real disk, without memory maps: files to be read at random are read whole into memory, in huge pages where the system
    /// has them. Look-ups in large stores are some tenth faster. Opening takes as long as reading does, and the memory
    /// is the process's own instead of the page cache's.
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
        // Some systems sync only through a handle that may write.
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
                    if fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink()) {
                        return Err(io::Error::other("the lock file is a link: remove it"));
                    }
                    match open_regular_with(OpenOptions::new().write(true), path) {
                        // Its holder has removed it since.
                        Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                        opened => opened?,
                    }
                }
                created => created?,
            };
            match file.try_lock() {
                // Between opening and locking, its holder may have removed the file: that lock locks nothing.
                Ok(()) if is_still_at(&file, path)? => {
                    return Ok(Some(Lock::new(LockedFile::new(file, path))));
                }
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }
}

/// Opens a file for reading that has to be a regular one. A named pipe in its place is refused: opening it would wait for a process
/// at its other end, perhaps for ever. So are sockets and devices.
///
/// # Errors
/// Those of the file system; one of the kind [`io::ErrorKind::Other`] for anything else than a file.
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
fn is_still_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    match fs::metadata(path) {
        Ok(there) => file.metadata().map(|open| (open.dev(), open.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the path leads to the open file; here an open file cannot be removed.
#[cfg(not(unix))]
fn is_still_at(_: &File, _: &Path) -> io::Result<bool> {
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

/// A file that gets its name only when it is complete and durable; dropped before, it is removed.
pub(crate) struct NewFile {
    fs: Arc<dyn Fs>,
    path: PathBuf,
    temporary: PathBuf,
    file: Option<BufWriter<Box<dyn WriteFile>>>,
    process: Process,
}

/// The ending of the names of files that are not complete.
pub(crate) const TEMPORARY: &str = ".tmp";
const BUFFER: usize = 1 << 18;

impl NewFile {
    pub(crate) fn create(fs: &Arc<dyn Fs>, path: &Path) -> Result<NewFile> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(TEMPORARY);
        let temporary = PathBuf::from(temporary);
        let file = fs.create(&temporary).map_err(Error::io(&temporary, "create"))?;
        let file = Some(BufWriter::with_capacity(BUFFER, file));
        Ok(NewFile { fs: fs.clone(), path: path.to_path_buf(), temporary, file, process: Process::this() })
    }

    /// Makes the file durable and gives it its name. The folder is not synced.
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
            // The first error is returned. The next build removes the file if that fails now.
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
            // Not worth writing what is about to be removed.
            drop(file.into_parts());
            if self.process.is_here() {
                let _ = self.fs.remove(&self.temporary);
            }
        }
    }
}

/// A file of the operating system as text.
pub(crate) fn read_to_string(path: &str) -> io::Result<String> {
    fs::read_to_string(path)
}
