//! Inputs that can be read only once: standard input, pipes, devices.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::input::cannot_open;
use simstore::{Error, Result};

/// Inputs of which something has been read, to tell what they hold; the reader to come takes them from here.
static OPENED: Mutex<BTreeMap<PathBuf, Opened>> = Mutex::new(BTreeMap::new());

/// Inputs that have been put aside.
static PUT_ASIDE: Mutex<BTreeMap<PathBuf, File>> = Mutex::new(BTreeMap::new());

/// Lets an input be read again and again that can be read only once, standard input (`-`) or a pipe: its bytes are put
/// aside in a temporary file, which is gone when the process ends. At one time only one reader may read it.
///
/// # Errors
/// [`Error::Io`] if the input cannot be read, or nothing can be written to the folder for temporary files.
pub fn put_aside(path: &Path) -> Result<()> {
    let Opened { head, rest } = Opened::take(path)?;
    let mut reader = Cursor::new(head).chain(rest);
    let failed = |source| Error::Io { path: std::env::temp_dir(), action: "put an input aside in", source };
    let mut file = tempfile::tempfile().map_err(failed)?;
    io::copy(&mut reader, &mut file).map_err(failed)?;
    put_aside_inputs().insert(path.to_path_buf(), file);
    Ok(())
}

fn put_aside_inputs() -> MutexGuard<'static, BTreeMap<PathBuf, File>> {
    PUT_ASIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An open input and what has been read of it.
struct Opened {
    head: Vec<u8>,
    rest: Box<dyn Read + Send>,
}

impl Opened {
    /// What has been opened before, or else what is opened now.
    fn take(path: &Path) -> Result<Opened> {
        if let Some(opened) = opened().remove(path) {
            return Ok(opened);
        }
        if let Some(file) = put_aside_inputs().get(path) {
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

fn opened() -> MutexGuard<'static, BTreeMap<PathBuf, Opened>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether a path stands for standard input.
pub(crate) fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether an input can be read only once.
pub(crate) fn is_read_once(path: &Path) -> Result<bool> {
    if is_stdin(path) {
        return Ok(true);
    }
    let metadata = path.metadata().map_err(cannot_open(path))?;
    Ok(!metadata.is_file() && !metadata.is_dir())
}

/// The first bytes of such an input: as many as are enough, `max_bytes` or a little more, or all. They are not
/// lost to [`open`].
pub(crate) fn peek(path: &Path, max_bytes: usize, is_enough: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
    let mut input = Opened::take(path)?;
    input.fill(max_bytes, is_enough).map_err(Error::io(path, "read"))?;
    let head = input.head.clone();
    opened().insert(path.to_path_buf(), input);
    Ok(head)
}

/// Such an input from its first byte.
pub(crate) fn open(path: &Path) -> Result<impl Read + Send + use<>> {
    let Opened { head, rest } = Opened::take(path)?;
    Ok(Cursor::new(head).chain(rest))
}
