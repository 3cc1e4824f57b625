//! The folder of a run's temporary files.

use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use simstore::fs::{Disk, Fs};
use simstore::spill::{Counts, Place};
use simstore::{Error, Result};

use crate::numbers::bytes;
use crate::output::Unfinished;
use crate::{Notice, Watch};

/// How the name of such a folder begins and ends, and the file in it that its process has locked.
const PREFIX: &str = "simstore-";
const SUFFIX: &str = ".tmp";
const LOCK: &str = "lock";

/// Where a run puts what is too much for its memory: a folder in the one that was asked for, or in the system's. It is made when
/// it is first needed, and removed with all that is in it when this is dropped, or the run is interrupted. What a process that was
/// killed has left, the next one removes that is given the same folder.
#[derive(Debug)]
pub(crate) struct Temporary {
    parent: PathBuf,
    unfinished: Unfinished,
    made: Mutex<Option<Made>>,
    disk: Disk,
    /// Bytes written, and held there.
    pub(crate) counts: Counts,
    /// Bytes that will be there at most, as far as that is known.
    needed: AtomicU64,
}

/// A folder that is there; the lock is held as long.
#[derive(Debug)]
struct Made {
    path: PathBuf,
    _lock: File,
}

impl Temporary {
    /// A folder in this one, or else in the system's, of which nothing is there yet. What was left by processes that were
    /// killed is removed, and the watch is told.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the one that is asked for is no folder.
    pub(crate) fn new(
        parent: Option<&Path>,
        unfinished: &Unfinished,
        watch: &dyn Watch,
    ) -> Result<Arc<Temporary>> {
        let is_folder = |parent: &Path| match parent.metadata() {
            Ok(metadata) => Ok(metadata.is_dir()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::io(parent, "look at")(error)),
        };
        if let Some(parent) = parent
            && !is_folder(parent)?
        {
            return Err(Error::BadArgument(format!(
                "{}: the folder does not exist: option `temporary` takes an existing one",
                parent.display()
            )));
        }
        let parent = parent.map_or_else(std::env::temp_dir, Path::to_path_buf);
        remove_left(&parent, watch);
        Ok(Arc::new(Temporary {
            parent,
            unfinished: unfinished.clone(),
            made: Mutex::default(),
            disk: Disk::default(),
            counts: Counts::default(),
            needed: AtomicU64::new(0),
        }))
    }

    /// The folder that was asked for, where files without a name can be made.
    pub(crate) fn parent(&self) -> &Path {
        &self.parent
    }

    /// The folder itself.
    ///
    /// # Errors
    /// [`Error::Refused`] if it cannot be made.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(made) = &*made {
            return Ok(made.path.clone());
        }
        let new = self.make().map_err(|error| self.failed(&error))?;
        let path = new.path.clone();
        *made = Some(new);
        Ok(path)
    }

    fn make(&self) -> io::Result<Made> {
        loop {
            let folder = tempfile::Builder::new().prefix(PREFIX).suffix(SUFFIX).tempdir_in(&self.parent)?;
            let path = folder.path().to_path_buf();
            // Between the two calls, another process may take it for one that was left, and remove it.
            let lock = match File::create_new(path.join(LOCK)) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                lock => lock?,
            };
            match lock.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // Not all file systems have locks; where there are none, nobody takes it for one that was left.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if path.join(LOCK).exists() {
                self.unfinished.change(|all| all.insert(folder.keep()));
                return Ok(Made { path, _lock: lock });
            }
        }
    }

    /// So many bytes are going to be there at most.
    pub(crate) fn expect(&self, bytes: u64) {
        self.needed.fetch_max(bytes, Ordering::Relaxed);
    }

    /// The error of something that was to be written there: says how much is, how much is needed, and what to do.
    pub(crate) fn failed(&self, error: &io::Error) -> Error {
        let is_full = matches!(
            error.kind(),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
        );
        let (held, needed) = (self.counts.held(), self.needed.load(Ordering::Relaxed));
        let what = match (is_full, needed > held) {
            (false, _) => String::new(),
            (true, true) => {
                format!(": {} were there, of about {} that it takes in all", bytes(held), bytes(needed))
            }
            (true, false) => format!(": {} were there, and it takes more", bytes(held)),
        };
        Error::Refused(format!(
            "{}: cannot write temporary files there: {error}{what}; make room, or name another folder with option \
             `temporary`",
            self.parent.display()
        ))
    }

    /// The same, if an error is of a file there; any other is as it was.
    pub(crate) fn explain(&self, error: Error) -> Error {
        match error {
            Error::Io { path, source, .. } if self.is_here(&path) => self.failed(&source),
            error => error,
        }
    }

    fn is_here(&self, path: &Path) -> bool {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        path == self.parent || made.as_ref().is_some_and(|made| path.starts_with(&made.path))
    }
}

impl Place for Temporary {
    fn fs(&self) -> &dyn Fs {
        &self.disk
    }

    fn path(&self, number: u64) -> Result<PathBuf> {
        Ok(self.folder()?.join(format!("{number}")))
    }

    fn counts(&self) -> &Counts {
        &self.counts
    }

    fn failed(&self, _: &Path, _: &'static str, error: io::Error) -> Error {
        Temporary::failed(self, &error)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let made = self.made.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(Made { path, .. }) = made {
            self.unfinished.change(|all| {
                // What cannot be removed is left to the next run.
                let _ = std::fs::remove_dir_all(&*path);
                all.remove(path)
            });
        }
    }
}

/// Removes the folders whose lock nobody has.
fn remove_left(parent: &Path, watch: &dyn Watch) {
    // What cannot be looked at is not ours.
    let Ok(entries) = parent.read_dir() else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_one = name.to_str().is_some_and(|name| name.starts_with(PREFIX) && name.ends_with(SUFFIX));
        if !is_one || !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        let path = entry.path().join(LOCK);
        // In a folder that all may write to, somebody else's may lead anywhere: nothing is made there, and no link followed.
        let is_removed = if path.symlink_metadata().is_ok_and(|it| it.is_file()) {
            let lock = File::open(path);
            lock.is_ok_and(|lock| lock.try_lock().is_ok() && std::fs::remove_dir_all(entry.path()).is_ok())
        } else {
            // It may be about to be used, and is made again then. What is not empty stays.
            std::fs::remove_dir(entry.path()).is_ok()
        };
        if is_removed {
            watch.notice(&Notice::Remark(&format!(
                "{}: removed; a run that was killed had left it",
                entry.path().display()
            )));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpillWriter;

    #[derive(Default)]
    struct Told(Mutex<Vec<String>>);

    impl Watch for Told {
        fn notice(&self, notice: &Notice<'_>) {
            if let Notice::Remark(remark) = notice {
                self.0.lock().unwrap().push((*remark).to_owned());
            }
        }
    }

    fn count(folder: &Path) -> usize {
        folder.read_dir().unwrap().count()
    }

    #[test]
    fn it_is_made_when_needed_and_gone_in_the_end() {
        let parent = tempfile::tempdir().unwrap();
        let unfinished = Unfinished::default();
        let temporary = Temporary::new(Some(parent.path()), &unfinished, &()).unwrap();
        assert_eq!(count(parent.path()), 0);
        let mut file = SpillWriter::create(temporary.clone()).unwrap();
        file.push(b"12345").unwrap();
        let file = file.finish().unwrap();
        assert_eq!((count(parent.path()), temporary.counts.held(), temporary.counts.written()), (1, 5, 5));
        drop(file);
        assert_eq!((temporary.counts.held(), temporary.counts.most()), (0, 5));
        drop(temporary);
        assert_eq!(count(parent.path()), 0);
        // A process that ends without dropping it.
        let temporary = Temporary::new(Some(parent.path()), &unfinished, &()).unwrap();
        std::mem::forget(SpillWriter::create(temporary.clone()).unwrap());
        unfinished.remove_for_good();
        assert_eq!(count(parent.path()), 0);
        // Whatever is changed now would wait for the end of the process.
        std::mem::forget(temporary);
    }

    #[test]
    fn what_was_left_is_removed_and_what_is_in_use_is_not() {
        let parent = tempfile::tempdir().unwrap();
        let told = Told::default();
        let open = || Temporary::new(Some(parent.path()), &Unfinished::default(), &told).unwrap();
        let used = open();
        let in_use = used.folder().unwrap();
        for (name, files) in [
            ("simstore-a.tmp", &["lock", "a"][..]),
            ("simstore-b.tmp", &[]),
            ("simstore-c.tmp", &["a"]),
            ("other-e.tmp", &["lock"]),
        ] {
            std::fs::create_dir(parent.path().join(name)).unwrap();
            files
                .iter()
                .for_each(|file| std::fs::write(parent.path().join(name).join(file), "left").unwrap());
        }
        std::fs::write(parent.path().join("simstore-d.tmp"), "a file").unwrap();
        open();
        let mut left: Vec<PathBuf> =
            parent.path().read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        left.sort();
        let stays = ["simstore-c.tmp", "simstore-d.tmp", "other-e.tmp"].map(|name| parent.path().join(name));
        let mut expected = [&stays[..], &[in_use]].concat();
        expected.sort();
        assert_eq!(left, expected);
        let mut told = told.0.into_inner().unwrap();
        told.sort();
        assert_eq!(told.len(), 2);
        assert!(told[0].ends_with("simstore-a.tmp: removed; a run that was killed had left it"), "{told:?}");
    }

    #[test]
    fn a_full_disk_is_told_with_what_is_needed() {
        let parent = tempfile::tempdir().unwrap();
        let temporary = Temporary::new(Some(parent.path()), &Unfinished::default(), &()).unwrap();
        temporary.counts.add_written(3 << 20);
        let full = || io::Error::from(ErrorKind::StorageFull);
        let message = temporary.failed(&full()).to_string();
        assert!(message.contains("3.0 MiB were there, and it takes more; make room"), "{message}");
        temporary.expect(5 << 30);
        let inside = temporary.folder().unwrap().join("x");
        let explained = temporary.explain(Error::Io { path: inside, action: "write", source: full() });
        assert!(explained.to_string().contains("of about 5.0 GiB that it takes in all"), "{explained}");
        let other = Error::Io { path: parent.path().join("x"), action: "write", source: full() };
        assert!(matches!(temporary.explain(other), Error::Io { .. }));
        let missing = Temporary::new(Some(&parent.path().join("none")), &Unfinished::default(), &());
        assert!(missing.unwrap_err().to_string().contains("option `temporary`"));
    }
}
