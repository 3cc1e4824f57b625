//! What stands in a file before the lines of a section.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use super::stream::Stream;
use crate::bytes::compression::Compression;

/// The bytes of a file before a section, decompressed. To look at them takes the time of reading them, and so is left to the few
/// cases where something depends on it.
#[derive(Clone, Debug)]
pub(crate) struct Beginning {
    path: Arc<Path>,
    compression: Compression,
    /// The most that unpacking it may take.
    memory: Option<u64>,
    /// Up to this place in the file.
    to: u64,
    /// And so many bytes more, which end a line.
    more: u64,
}

impl Beginning {
    pub(super) fn new(
        path: &Arc<Path>,
        compression: Compression,
        memory: Option<u64>,
        to: u64,
        more: u64,
    ) -> Beginning {
        Beginning { path: Arc::clone(path), compression, memory, to, more }
    }

    /// How many lines there are.
    pub(crate) fn lines(&self) -> io::Result<u64> {
        let mut lines = 0;
        self.visit(|bytes| {
            lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            true
        })?;
        Ok(lines)
    }

    /// How many bytes there are, if all are ASCII.
    pub(crate) fn ascii_bytes(&self) -> io::Result<Option<u64>> {
        let mut count = Some(0);
        self.visit(|bytes| {
            count = count.filter(|_| bytes.is_ascii()).map(|count| count + bytes.len() as u64);
            count.is_some()
        })?;
        Ok(count)
    }

    /// Visits the bytes until the visitor says that it has enough.
    fn visit(&self, mut visitor: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        if self.to == 0 {
            return Ok(());
        }
        let stream =
            Stream::open(&self.path, self.compression, self.memory, 0, Some(self.to), &Arc::default())?;
        let border = stream.border();
        let mut reader = BufReader::with_capacity(1 << 16, stream);
        let mut at = 0;
        loop {
            let bytes = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
            let left = border.bytes().saturating_add(self.more) - at;
            let bytes = &bytes[..bytes.len().min(usize::try_from(left).unwrap_or(usize::MAX))];
            if bytes.is_empty() || !visitor(bytes) {
                return Ok(());
            }
            let read = bytes.len();
            at += read as u64;
            reader.consume(read);
        }
    }
}
