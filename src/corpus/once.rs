//! Inputs that can be read only once: standard input, pipes, devices.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::corpus::input::cannot_open;
use crate::error::{Error, Result};

/// Inputs of which something has been read, to tell what they hold; the reader to come takes them from here.
static OPENED: Mutex<BTreeMap<PathBuf, Opened>> = Mutex::new(BTreeMap::new());

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
