//! A file system in memory, which can fill up.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use simstore::fs::{Fs, Lock, SyncFile, WriteFile};
use simstore::raw::Bytes;

/// What is in a file, whatever it is called.
type Content = Arc<Mutex<Vec<u8>>>;

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<PathBuf, Content>,
    folders: BTreeSet<PathBuf>,
    /// Bytes that may still be written; `None` is no limit.
    room: Option<usize>,
    /// Folder syncs that still succeed; `None` is no limit.
    folder_syncs: Option<usize>,
    /// Called once, when a lock is asked for and before it is given.
    before_lock: Option<fn(&MemoryDisk)>,
}

/// Files and folders in memory. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryDisk(Arc<Mutex<State>>);

impl MemoryDisk {
    /// A disk on which `room` more bytes can be written.
    #[allow(dead_code, reason = "not every test file fills a disk")]
    pub(crate) fn with_room(room: usize) -> MemoryDisk {
        let disk = MemoryDisk::default();
        disk.0.lock().unwrap().room = Some(room);
        disk
    }

    /// Sets the number of bytes that can be written from now on.
    #[allow(dead_code, reason = "not every test file fills a disk")]
    pub(crate) fn set_room(&self, room: Option<usize>) {
        self.0.lock().unwrap().room = room;
    }

    /// Lets so many folder syncs succeed, and all others fail.
    #[allow(dead_code, reason = "not every test file has syncs fail")]
    pub(crate) fn set_folder_syncs(&self, count: Option<usize>) {
        self.0.lock().unwrap().folder_syncs = count;
    }

    /// Has something happen when the next lock is asked for and not yet given.
    #[allow(dead_code, reason = "not every test file races")]
    pub(crate) fn before_lock(&self, happens: fn(&MemoryDisk)) {
        self.0.lock().unwrap().before_lock = Some(happens);
    }

    /// Puts a file there.
    #[allow(dead_code, reason = "not every test file has files of its own")]
    pub(crate) fn put(&self, path: &str, bytes: &[u8]) {
        self.0.lock().unwrap().files.insert(path.into(), Arc::new(Mutex::new(bytes.to_vec())));
    }

    /// The paths of all files and folders.
    #[allow(dead_code, reason = "not every test file looks for litter")]
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let state = self.0.lock().unwrap();
        state.files.keys().chain(&state.folders).cloned().collect()
    }
}

struct MemoryFile {
    disk: MemoryDisk,
    content: Content,
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.disk.0.lock().unwrap();
        let len = state.room.map_or(bytes.len(), |room| room.min(bytes.len()));
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        if let Some(room) = &mut state.room {
            *room -= len;
        }
        self.content.lock().unwrap().extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl WriteFile for MemoryFile {
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync_handle(&self) -> io::Result<Box<dyn SyncFile>> {
        Ok(Box::new(Kept))
    }
}

/// Memory needs no sync.
struct Kept;

impl SyncFile for Kept {
    fn sync(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Fs for MemoryDisk {
    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let content = Content::default();
        self.0.lock().unwrap().files.insert(path.to_path_buf(), content.clone());
        Ok(Box::new(MemoryFile { disk: self.clone(), content }))
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn Read + Send>> {
        let state = self.0.lock().unwrap();
        let bytes = state.files.get(path).ok_or(io::ErrorKind::NotFound)?.lock().unwrap().clone();
        Ok(Box::new(io::Cursor::new(bytes)))
    }

    fn map(&self, path: &Path) -> io::Result<Bytes> {
        let state = self.0.lock().unwrap();
        let bytes = state.files.get(path).ok_or(io::ErrorKind::NotFound)?.lock().unwrap().clone();
        Ok(Bytes::from(bytes))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.0.lock().unwrap();
        let bytes = state.files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        state.files.insert(to.to_path_buf(), bytes);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.0.lock().unwrap().files.remove(path).map(|_| ()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let new = self.0.lock().unwrap().folders.insert(path.to_path_buf());
        if new { Ok(()) } else { Err(io::ErrorKind::AlreadyExists.into()) }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        if !self.list(path)?.is_empty() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        self.0.lock().unwrap().folders.remove(path);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let state = self.0.lock().unwrap();
        if !state.folders.contains(path) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let here = state.files.keys().filter(|file| file.parent() == Some(path));
        Ok(here.map(|file| file.file_name().unwrap().to_string_lossy().into_owned()).collect())
    }

    fn sync_file(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        match &mut self.0.lock().unwrap().folder_syncs {
            Some(0) => Err(io::Error::other("the folder cannot be synced")),
            Some(left) => {
                *left -= 1;
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Lock>> {
        let happens = self.0.lock().unwrap().before_lock.take();
        if let Some(happens) = happens {
            happens(self);
        }
        self.0.lock().unwrap().files.entry(path.to_path_buf()).or_default();
        Ok(Some(Lock::new(())))
    }
}
