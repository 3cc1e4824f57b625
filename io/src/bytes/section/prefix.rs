//! Values that depend on the bytes before a section, such as its first line number. In a file of lines, each of them
//! costs a pass over the file from its start to the section.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use super::Section;
use super::stream::SectionStream;

impl Section {
    /// Number of lines or rows before the section. The section must have been read at least up to its first
    /// line.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn lines_before(&self) -> io::Result<u64> {
        if self.line_format.is_none() {
            return Ok(self.outcome.rows_before());
        }
        let mut lines = 0;
        self.visit_prefix(|bytes| {
            lines += bytes.iter().filter(|&&byte| byte == b'\n').count() as u64;
            true
        })?;
        Ok(lines)
    }

    /// Number of decompressed bytes before the first line of the section; `None` if any of these bytes is not ASCII.
    /// The section must have been read at least up to its first line.
    pub(crate) fn ascii_bytes_before(&self) -> io::Result<Option<u64>> {
        let mut count = Some(0);
        self.visit_prefix(|bytes| {
            count = count.filter(|_| bytes.is_ascii()).map(|count| count + bytes.len() as u64);
            count.is_some()
        })?;
        Ok(count)
    }

    /// Passes the decompressed bytes from the start of the file up to the first line of the section to `visitor`, in
    /// several calls. Stops when `visitor` returns false.
    fn visit_prefix(&self, mut visitor: impl FnMut(&[u8]) -> bool) -> io::Result<()> {
        if self.from == 0 {
            return Ok(());
        }
        let (to, progress) = (Some(self.from), Arc::default());
        let stream = SectionStream::open(&self.path, self.compression, self.memory, 0, to, &progress)?;
        let boundary = stream.boundary();
        let mut reader = BufReader::with_capacity(1 << 16, stream);
        let mut at = 0;
        loop {
            let bytes = reader.fill_buf()?;
            let left = boundary.bytes().saturating_add(self.outcome.skipped()) - at;
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
