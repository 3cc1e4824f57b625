//! Inputs that can be read only once: standard input, pipes, devices.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bytes::open_errors::cannot_open;
use simstore::{Error, Result};

/// Inputs of one job that can be read only once, with the bytes that were read ahead or put aside for later readers. Dropping it
/// removes them.
#[derive(Default)]
pub struct Pipes {
    /// Inputs that were read ahead, to detect their format.
    opened: Mutex<BTreeMap<PathBuf, Opened>>,
    /// Inputs that have been put aside, in temporary files without a name.
    aside: Mutex<BTreeMap<PathBuf, File>>,
    /// Name of documents that the caller gives as an iterator, not in a file.
    given: Option<PathBuf>,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opened: Vec<PathBuf> = self.opened().keys().cloned().collect();
        let aside: Vec<PathBuf> = self.aside().keys().cloned().collect();
        f.debug_struct("Pipes").field("opened", &opened).field("aside", &aside).finish()
    }
}

/// An open input, and the bytes that were read ahead.
struct Opened {
    head: Vec<u8>,
    rest: Box<dyn Read + Send>,
}

impl Opened {
    fn fill(&mut self, max_bytes: usize, is_enough: impl Fn(&[u8]) -> bool) -> io::Result<()> {
        let mut buffer = [0; 8192];
        while self.head.len() < max_bytes && !is_enough(&self.head) {
            match self.rest.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => self.head.extend_from_slice(&buffer[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Pipes {
    /// Pipes of documents that the caller gives as an iterator. `name` is their name in messages.
    pub fn of_given(name: &str) -> Pipes {
        Pipes { given: Some(PathBuf::from(name)), ..Pipes::default() }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Opened>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn aside(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.aside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An input that is already open, or else opens it.
    fn take(&self, path: &Path) -> Result<Opened> {
        if let Some(opened) = self.opened().remove(path) {
            return Ok(opened);
        }
        if let Some(file) = self.aside().get(path) {
            let rewound = file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
            let rest = Box::new(rewound.map_err(Error::io(path, "read"))?);
            return Ok(Opened { head: Vec::new(), rest });
        }
        let rest: Box<dyn Read + Send> = if is_stdin(path) {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(cannot_open(path))?)
        };
        Ok(Opened { head: Vec::new(), rest })
    }

    /// Whether a path is the name of documents in memory.
    pub fn is_given(&self, path: &Path) -> bool {
        self.given.as_deref() == Some(path)
    }

    /// Whether an input can be read only once.
    pub fn is_read_once(&self, path: &Path) -> Result<bool> {
        if self.is_given(path) { Ok(true) } else { is_read_once(path) }
    }

    /// The first bytes of an input: as many as are enough, `max_bytes` or a little more, or all. They are not lost to
    /// [`Pipes::open`].
    pub(crate) fn peek(
        &self,
        path: &Path,
        max_bytes: usize,
        is_enough: impl Fn(&[u8]) -> bool,
    ) -> Result<Vec<u8>> {
        let mut input = self.take(path)?;
        input.fill(max_bytes, is_enough).map_err(Error::io(path, "read"))?;
        let head = input.head.clone();
        self.opened().insert(path.to_path_buf(), input);
        Ok(head)
    }

    /// An input from its first byte.
    pub(crate) fn open(&self, path: &Path) -> Result<impl Read + Send + use<>> {
        let Opened { head, rest } = self.take(path)?;
        Ok(Cursor::new(head).chain(rest))
    }

    /// Lets an input be read again and again, by one reader at a time: its bytes go to a temporary file in this folder.
    ///
    /// # Errors
    /// [`Error::Io`] if the input cannot be read, or nothing can be written to the folder.
    pub fn put_aside(&self, path: &Path, folder: &Path) -> Result<()> {
        let mut reader = self.open(path)?;
        let failed =
            |source| Error::Io { path: folder.to_path_buf(), action: "put an input aside in", source };
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        io::copy(&mut reader, &mut file).map_err(failed)?;
        self.aside().insert(path.to_path_buf(), file);
        Ok(())
    }
}

/// Whether a path is `-`, standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether an input can be read only once.
pub fn is_read_once(path: &Path) -> Result<bool> {
    if is_stdin(path) {
        return Ok(true);
    }
    let metadata = path.metadata().map_err(cannot_open(path))?;
    Ok(!metadata.is_file() && !metadata.is_dir())
}
