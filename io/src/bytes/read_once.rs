//! Inputs that can be read only once: standard input, pipes, devices.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::bytes::open_errors::cannot_open;
use simstore::{Error, Result};

/// The inputs of a job that can be read only once, such as standard input and pipes.
///
/// If the first bytes of such an input were read to detect its format, they are kept here, and are returned again
/// when the input is read. [`spool_to`](Self::spool_to) copies an input to a temporary file, so that it can be read
/// several times. Dropping the value removes these files.
#[derive(Default)]
pub struct ReadOnceInputs {
    /// Inputs whose first bytes were read to detect their format.
    opened: Mutex<BTreeMap<PathBuf, OpenedInput>>,
    /// Inputs that were spooled to unnamed temporary files.
    spooled: Mutex<BTreeMap<PathBuf, File>>,
    /// Path that denotes the documents from an iterator; `None` if all documents are in files.
    stream_name: Option<PathBuf>,
}

impl fmt::Debug for ReadOnceInputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let opened: Vec<PathBuf> = self.opened().keys().cloned().collect();
        let spooled: Vec<PathBuf> = self.spooled().keys().cloned().collect();
        f.debug_struct("ReadOnceInputs").field("opened", &opened).field("spooled", &spooled).finish()
    }
}

/// An open input. `head` contains the first bytes, which were already read; `rest` returns the bytes after them.
struct OpenedInput {
    head: Vec<u8>,
    rest: Box<dyn Read + Send>,
}

impl OpenedInput {
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

impl ReadOnceInputs {
    /// Creates a value with an iterator of documents as an input. The path `name` denotes the iterator, not a file, also
    /// in error messages.
    pub fn with_document_stream(name: &str) -> ReadOnceInputs {
        ReadOnceInputs { stream_name: Some(PathBuf::from(name)), ..ReadOnceInputs::default() }
    }

    fn opened(&self) -> MutexGuard<'_, BTreeMap<PathBuf, OpenedInput>> {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spooled(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.spooled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the open input, if its first bytes were already read. Otherwise opens its temporary copy. If
    /// it has none, opens the path itself, or standard input.
    fn take(&self, path: &Path) -> Result<OpenedInput> {
        if let Some(opened) = self.opened().remove(path) {
            return Ok(opened);
        }
        if let Some(file) = self.spooled().get(path) {
            let rewound = file.try_clone().and_then(|mut file| file.rewind().map(|()| file));
            let rest = Box::new(rewound.map_err(Error::io(path, "read"))?);
            return Ok(OpenedInput { head: Vec::new(), rest });
        }
        let rest: Box<dyn Read + Send> = if is_stdin(path) {
            Box::new(io::stdin())
        } else {
            Box::new(File::open(path).map_err(cannot_open(path))?)
        };
        Ok(OpenedInput { head: Vec::new(), rest })
    }

    /// Whether `path` is the name that was given to [`with_document_stream`](Self::with_document_stream). This name is
    /// no path on disk: it denotes documents from an iterator.
    pub fn is_stream(&self, path: &Path) -> bool {
        self.stream_name.as_deref() == Some(path)
    }

    /// Whether an input can be read only once. True for documents from an iterator, and if [`is_read_once`] returns true
    /// for the path.
    ///
    /// # Errors
    /// See [`cannot_open`].
    pub fn is_read_once(&self, path: &Path) -> Result<bool> {
        if self.is_stream(path) { Ok(true) } else { is_read_once(path) }
    }

    /// Reads the beginning of an input, and returns it. Stops when `is_enough` returns true for the bytes read so
    /// far, after about `max_bytes` bytes, or at the end of the input. A later [`ReadOnceInputs::open`] returns
    /// these bytes again.
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

    /// Opens an input at its first byte, even if [`ReadOnceInputs::peek`] has already read the first bytes.
    pub(crate) fn open(&self, path: &Path) -> Result<impl Read + Send + use<>> {
        let OpenedInput { head, rest } = self.take(path)?;
        Ok(Cursor::new(head).chain(rest))
    }

    /// Copies an input to a temporary file in `folder`. After that, the input can be read any number of times, by
    /// one reader at a time.
    ///
    /// # Errors
    /// [`Error::Io`] if the input cannot be read, or the file cannot be written.
    pub fn spool_to(&self, path: &Path, folder: &Path) -> Result<()> {
        let mut reader = self.open(path)?;
        let failed =
            |source| Error::Io { path: folder.to_path_buf(), action: "put an input aside in", source };
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        io::copy(&mut reader, &mut file).map_err(failed)?;
        self.spooled().insert(path.to_path_buf(), file);
        Ok(())
    }
}

/// Whether a path is `-`, which denotes standard input.
pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a path can be read only once, since it is neither a regular file nor a folder.
///
/// # Errors
/// See [`cannot_open`].
pub fn is_read_once(path: &Path) -> Result<bool> {
    if is_stdin(path) {
        return Ok(true);
    }
    let metadata = path.metadata().map_err(cannot_open(path))?;
    Ok(!metadata.is_file() && !metadata.is_dir())
}
