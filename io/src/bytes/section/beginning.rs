//! The beginning of a file: its bytes before the lines of a section, decompressed. Looking at them takes the time of reading them,
//! so few callers do.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use super::Section;
use super::stream::Stream;

impl Section {
    /// Number of lines or rows before the section, once its first line has been found.
    pub fn lines_before(&self) -> io::Result<u64> {
        if self.lines.is_none() {
            return Ok(self.reached.rows_before());
        }
        let mut lines = 0;
        self.visit_beginning(|bytes| {
            lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            true
        })?;
        Ok(lines)
    }

    /// Number of bytes before the section if all are ASCII, once its first line has been found.
    pub(crate) fn ascii_bytes_before(&self) -> io::Result<Option<u64>> {
        let mut count = Some(0);
        self.visit_beginning(|bytes| {
            count = count.filter(|_| bytes.is_ascii()).map(|count| count + bytes.len() as u64);
            count.is_some()
        })?;
        Ok(count)
    }

    /// Visits the bytes before the first line of the section until the visitor returns false.
    fn visit_beginning(&self, mut visitor: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        if self.from == 0 {
            return Ok(());
        }
        let (to, progress) = (Some(self.from), Arc::default());
        let stream = Stream::open(&self.path, self.compression, self.memory, 0, to, &progress)?;
        let border = stream.border();
        let mut reader = BufReader::with_capacity(1 << 16, stream);
        let mut at = 0;
        loop {
            let bytes = reader.fill_buf()?;
            let left = border.bytes().saturating_add(self.reached.skipped()) - at;
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
