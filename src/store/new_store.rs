//! [`NewStore`]: the folder of a store that is not complete yet.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::locked_folder::LockedFolder;
use super::{LOCK_FILE, create_folder, remove_build_marker, remove_unlisted_files, sync_parent};
use crate::error::{Error, Result};
use crate::fs::Fs;
use crate::manifest::{
    BUILD_MARKER, MANIFEST, MANIFEST_LOST_REASON, Manifest, is_manifest_lost, is_store_file, next_free_number,
};
use crate::threads::Process;

/// The reason of [`Error::AlreadyExists`] if the folder has a store, which may not be replaced.
pub(super) const STORE_EXISTS_REASON: &str = "a store already exists; option `replace` replaces it";

/// The locked folder of a store that is being written. The store appears in [`NewStore::publish`]. If this value is
/// dropped before, the files of the new store are removed.
pub(super) struct NewStore {
    path: PathBuf,
    disk: Arc<dyn Fs>,
    /// File system for all writes. Each of its operations first checks that the folder at the path is still the locked
    /// one.
    fs: Arc<dyn Fs>,
    /// First file number that no file in the folder has.
    free_number: u64,
    /// Names of all files of the old store, if the new store replaces one.
    replaced: Vec<String>,
    /// Names of the complete files of the new store, until the manifest lists them. Dropping this value removes the files.
    created_files: Vec<String>,
    /// Whether the folder has the marker file of an unfinished build. When the store is complete, the marker file is
    /// renamed to the manifest.
    has_marker: bool,
    is_new_folder: bool,
    locked: Option<LockedFolder>,
    process: Process,
}

impl NewStore {
    /// Locks a folder for a new store. Creates the folder if it does not exist. Removes the files of a killed build. The
    /// folder must be empty, or hold an unfinished build. If `replace` is set, it may also hold a store.
    pub(super) fn create(disk: &Arc<dyn Fs>, path: &Path, replace: bool) -> Result<NewStore> {
        let is_new_folder = create_folder(&**disk, path)?;
        let mut store = NewStore {
            path: path.to_path_buf(),
            disk: disk.clone(),
            fs: disk.clone(),
            free_number: 0,
            replaced: Vec::new(),
            created_files: Vec::new(),
            has_marker: false,
            is_new_folder,
            locked: None,
            process: Process::this(),
        };
        store.prepare_folder(replace)?;
        Ok(store)
    }

    /// Locks the folder, removes the files of a killed build, and finds a file number for the first new file.
    fn prepare_folder(&mut self, replace: bool) -> Result<()> {
        // If the folder is not a store's, nothing is created in it, not even a lock file.
        self.check_folder(&*self.disk, replace)?;
        let locked = LockedFolder::acquire(&self.disk, &self.path)?;
        let fs = &locked;
        // Another build may have finished in between, so the folder is checked again under the lock.
        let names = self.check_folder(fs, replace)?;
        let old = match names.iter().any(|name| name == MANIFEST) {
            true => Some(Manifest::load(fs, &self.path)),
            false => None,
        };
        self.fs = Arc::new(locked.clone());
        self.locked = Some(locked.clone());
        if old.is_some() {
            remove_build_marker(fs, &self.path)?;
        } else {
            self.mark_unfinished(fs, &names)?;
        }
        self.replaced = match &old {
            None => Vec::new(),
            Some(Ok(old)) => old.file_names(&names),
            // An unreadable store is replaced, too. Its files stay until the new store is complete.
            Some(Err(_)) => names.iter().filter(|name| is_store_file(name)).cloned().collect(),
        };
        remove_unlisted_files(fs, &self.path, &self.replaced)?;
        self.free_number = next_free_number(old.and_then(Result::ok).as_ref(), &self.replaced);
        Ok(())
    }

    /// Creates the marker file of an unfinished build, unless it exists. `names` has the names of the files in the
    /// folder. The marker permits the next build to remove this build's files, so it is made durable before any of
    /// these files is created.
    fn mark_unfinished(&mut self, fs: &dyn Fs, names: &[String]) -> Result<()> {
        self.has_marker = true;
        if names.iter().any(|name| name == BUILD_MARKER) {
            return Ok(());
        }
        let marker = self.path.join(BUILD_MARKER);
        let mut file = fs.create(&marker).map_err(Error::io(&marker, "create"))?;
        file.sync().map_err(Error::io(&marker, "sync"))?;
        fs.sync_dir(&self.path).map_err(Error::io(&self.path, "sync"))
    }

    /// Returns the names of the files in the folder, or an error if no store may be written to this folder.
    fn check_folder(&self, fs: &dyn Fs, replace: bool) -> Result<Vec<String>> {
        let path = &self.path;
        let refuse = |reason| Err(Error::AlreadyExists { path: path.clone(), reason });
        let names = match fs.list(path) {
            Ok(names) => names,
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return refuse("a file is in the way; choose another path for the store");
            }
            Err(error) => return Err(Error::io(path, "list")(error)),
        };
        let has = |wanted: &str| names.iter().any(|name| name == wanted);
        // A build creates its lock file first, so files without a lock file are not from a build.
        let only_store_files = names
            .iter()
            .all(|name| is_store_file(name) || [LOCK_FILE, MANIFEST, BUILD_MARKER].contains(&&name[..]));
        let is_ours = names.is_empty() || ((has(LOCK_FILE) || has(BUILD_MARKER)) && only_store_files);
        if only_store_files && is_manifest_lost(&names) {
            return refuse(MANIFEST_LOST_REASON);
        }
        if has(MANIFEST) && (is_ours || Manifest::has_magic(fs, path)) {
            if !replace {
                return refuse(STORE_EXISTS_REASON);
            }
        } else if !is_ours {
            return refuse("the directory is not empty and not a store; choose another path for the store");
        }
        Ok(names)
    }

    /// Path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file system for files in the folder. Each of its operations first checks that the folder at the
    /// path is still the locked one.
    pub(super) fn fs(&self) -> &Arc<dyn Fs> {
        &self.fs
    }

    /// First file number that no file in the folder has.
    pub(super) fn free_number(&self) -> u64 {
        self.free_number
    }

    /// Adds files to the new store, by their names in the folder. Must be called before another error can occur: if the store
    /// is not published, these files are removed.
    pub(super) fn add_files(&mut self, names: Vec<String>) {
        self.created_files.extend(names);
    }

    /// Makes the names of the new files durable, then writes the manifest, which makes the store visible. Then removes the
    /// files of the replaced store.
    pub(super) fn publish(mut self, manifest: &Manifest) -> Result<()> {
        let fs = self.fs.clone();
        fs.sync_dir(&self.path).map_err(Error::io(&self.path, "sync"))?;
        if self.is_new_folder {
            sync_parent(&*fs, &self.path)?;
        }
        let saved = match self.has_marker {
            true => manifest.save_over_marker(&fs, &self.path),
            false => manifest.save(&fs, &self.path),
        };
        if let Err(error) = saved {
            let may_be_visible = match Manifest::load(&*fs, &self.path) {
                Ok(found) => found == *manifest,
                Err(Error::NotAStore { .. }) => false,
                // The disk may have the old or the new manifest, so the files of both stores stay.
                Err(_) => true,
            };
            if may_be_visible {
                self.keep_files();
            }
            return Err(error);
        }
        self.keep_files();
        // The store is complete. If an old file cannot be removed now, the next build removes it.
        self.replaced.iter().for_each(|name| drop(fs.remove(&self.path.join(name))));
        if let Some(locked) = &self.locked {
            locked.check().map_err(Error::io(&self.path, "open"))?;
        }
        Ok(())
    }

    /// Dropping this value removes nothing any more.
    fn keep_files(&mut self) {
        self.created_files.clear();
        self.has_marker = false;
        self.is_new_folder = false;
    }
}

impl Drop for NewStore {
    fn drop(&mut self) {
        if !self.process.is_here() {
            return;
        }
        let fs = &self.fs;
        // Only files of this build are removed. The marker is removed last, and stays if any other file could not be
        // removed.
        self.created_files.iter().for_each(|name| drop(fs.remove(&self.path.join(name))));
        let is_empty =
            || fs.list(&self.path).is_ok_and(|names| !names.iter().any(|name| is_store_file(name)));
        if self.has_marker && is_empty() {
            // If this sync fails, a power failure may leave files without the marker. Later builds then refuse the
            // folder, and do not remove its files.
            let _ = fs.sync_dir(&self.path);
            let _ = fs.remove(&self.path.join(BUILD_MARKER));
        }
        let is_moved = self.locked.as_ref().is_some_and(|locked| locked.check().is_err());
        if !self.is_new_folder || is_moved {
            return;
        }
        if self.locked.is_some() {
            let _ = self.disk.remove(&self.path.join(LOCK_FILE));
        }
        // If another build has begun in the folder, this fails, as intended.
        let _ = self.disk.remove_dir(&self.path);
    }
}
