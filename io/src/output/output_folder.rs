//! Output folders that appear only when they are complete.

use std::fs::{self, File};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use simstore::{Error, Result, threads};

use super::complete_output::CompleteOutput;
use super::temporary_file::{is_same_file, lock};
use super::temporary_path::{TemporaryPath, hidden_path};
use super::unfinished_outputs::UnfinishedOutputs;

/// An output folder with the temporary name `.NAME.tmp`. Dropping this value removes the folder. To keep the folder,
/// call [`complete`](OutputFolder::complete), which syncs its files, and publish the result.
///
/// The folder is locked, if the system can lock folders. If a killed process left such a folder, the next
/// process that writes the same output removes it. If two processes write the same output at the same time,
/// the second one fails.
#[derive(Debug)]
pub struct OutputFolder {
    /// Final name of the folder.
    path: PathBuf,
    /// Temporary path. This field is before the lock, and so is dropped first: the folder is still locked while it is
    /// removed.
    temporary: TemporaryPath,
    lock: Option<File>,
    files: Vec<PathBuf>,
}

/// Whether a path denotes an output folder: it ends in a path separator.
pub fn is_folder_path(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().last().is_some_and(|&end| std::path::is_separator(end.into()))
}

impl OutputFolder {
    /// Creates the folder under its temporary name. `path` is the final name.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for a path that does not end in a name; [`Error::Refused`] if the path exists
    /// and is not an empty folder, or if another process writes it; [`Error::Io`] if the folder cannot be
    /// created.
    pub fn create(path: &Path, unfinished: &UnfinishedOutputs) -> Result<OutputFolder> {
        let Some(hidden) = hidden_path(path, "tmp") else {
            return Err(Error::BadArgument(format!("{}: not a directory name", path.display())));
        };
        let is_free = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                path.read_dir().map_err(Error::io(path, "list"))?.next().is_none()
            }
            Ok(_) => false,
            Err(error) => {
                // Without its trailing slash, the path may lead to a file.
                let is_file = error.kind() == io::ErrorKind::NotADirectory
                    && path.components().collect::<PathBuf>().symlink_metadata().is_ok();
                !is_file
            }
        };
        if !is_free {
            return Err(Error::Refused(format!(
                "{}: already exists and is not an empty directory: remove it, or choose another path",
                path.display()
            )));
        }
        let lock = loop {
            match fs::create_dir(&hidden) {
                Ok(()) => {
                    let lock = lock_folder(&hidden, path)?;
                    // Before this process took the lock, another one may have removed the folder as a leftover.
                    if lock.as_ref().is_none_or(|lock| is_same_file(lock, &hidden)) {
                        break lock;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    let _left = lock_folder(&hidden, path)?;
                    let removed = match hidden.symlink_metadata() {
                        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(&hidden),
                        Ok(_) => fs::remove_file(&hidden),
                        Err(error) => Err(error),
                    };
                    removed
                        .or_else(
                            |error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) },
                        )
                        .map_err(Error::io(&hidden, "remove"))?;
                }
                Err(error) => return Err(Error::io(&hidden, "create")(error)),
            }
        };
        let temporary = TemporaryPath::new(hidden, unfinished);
        Ok(OutputFolder { path: path.components().collect(), temporary, lock, files: Vec::new() })
    }

    /// Current path of the folder: the temporary one until it is published.
    pub fn temporary_path(&self) -> &Path {
        self.temporary.path().unwrap_or(&self.path)
    }

    /// Copies a file into the folder. `place` is the path of the copy relative to the folder.
    ///
    /// # Errors
    /// [`Error::Refused`] if `place` exists or is outside of the folder; [`Error::Io`] if the file cannot be
    /// copied.
    pub fn copy(&mut self, file: &Path, place: &Path) -> Result<()> {
        let refused = |reason: String| Err(Error::Refused(format!("{}: {reason}", file.display())));
        let is_inside = |component: Component<'_>| matches!(component, Component::Normal(_));
        if place.as_os_str().is_empty() || !place.components().all(is_inside) {
            return refused(format!("has no place in {}", self.path.display()));
        }
        let to = self.temporary_path().join(place);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent).map_err(Error::io(parent, "create"))?;
        }
        let mut from = File::open(file).map_err(Error::io(file, "open"))?;
        let mut into = match File::options().write(true).create_new(true).open(&to) {
            Ok(into) => into,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let place = self.path.join(place);
                return refused(format!(
                    "would be written to {}, like another file: give a single input directory",
                    place.display()
                ));
            }
            Err(error) => return Err(Error::io(&to, "write")(error)),
        };
        let metadata = from.metadata().map_err(Error::io(file, "read"))?;
        // The copy has the permissions of the file.
        let copied =
            io::copy(&mut from, &mut into).and_then(|_| into.set_permissions(metadata.permissions()));
        copied.map_err(Error::io(&to, "write"))?;
        self.files.push(to);
        Ok(())
    }

    /// Syncs all files of the folder to disk. The folder keeps its temporary name.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be synced; the folder is removed then.
    pub fn complete(self) -> Result<CompleteOutput> {
        threads::ensure_pool()?;
        let OutputFolder { path, temporary, lock, files } = self;
        let sync = |path: &PathBuf| {
            File::open(path).and_then(|file| file.sync_all()).map_err(Error::io(path, "write"))
        };
        files.par_iter().try_for_each(sync)?;
        #[cfg(unix)]
        for entry in walkdir::WalkDir::new(temporary.path().unwrap_or(&path)) {
            let entry = entry.map_err(|error| Error::io(&path, "list")(error.into()))?;
            if entry.file_type().is_dir() {
                sync(&entry.into_path())?;
            }
        }
        Ok(CompleteOutput::new(path, temporary, lock.map(Arc::new)))
    }
}

/// Locks `folder`, and returns the lock; `None` if the system cannot lock folders. `path` is the name of the output in
/// error messages.
fn lock_folder(folder: &Path, path: &Path) -> Result<Option<File>> {
    // Opening a pipe would wait for its other end.
    if !folder.symlink_metadata().is_ok_and(|it| it.is_dir()) {
        return Ok(None);
    }
    let Ok(file) = File::open(folder) else { return Ok(None) };
    lock(&file, path, folder)?;
    Ok(Some(file))
}
