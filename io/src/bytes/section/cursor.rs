//! Tracks how far a section of a file of lines was read.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::SectionOutcome;
use super::stream::SectionBoundary;

/// Position of a reader in a section of a file of lines. It tells when the reader has reached the section's end.
pub(crate) struct SectionCursor {
    at: u64,
    boundary: Arc<SectionBoundary>,
    is_last: bool,
    pub outcome: Arc<SectionOutcome>,
}

impl SectionCursor {
    /// Creates a cursor for a section that ends at `boundary`. The first `at` bytes of the section were already
    /// read.
    pub(crate) fn new(
        at: u64,
        boundary: Arc<SectionBoundary>,
        is_last: bool,
        outcome: Arc<SectionOutcome>,
    ) -> SectionCursor {
        SectionCursor { at, boundary, is_last, outcome }
    }

    /// Skips the end of a line that began in the preceding section. Returns false if no line begins in this
    /// section.
    pub(crate) fn skip_line(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        loop {
            let bytes = reader.fill_buf()?;
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            let (skipped, is_end) = (newline.map_or(bytes.len(), |at| at + 1), bytes.is_empty());
            reader.consume(skipped);
            self.at += skipped as u64;
            if newline.is_some() || is_end || self.is_over() {
                self.outcome.set_skipped(self.at);
                return Ok(!is_end && !self.is_over());
            }
        }
    }

    /// Moves the position forward by `bytes` bytes, after lines of this length were read.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }

    /// Whether no more lines begin in the section.
    pub(crate) fn is_over(&self) -> bool {
        self.at > self.boundary.bytes()
    }

    /// Must be called when the reader has reached the end of the file. If it has not found the section's end before,
    /// the section extends to the end of the file. Then [`is_end_of_file`](SectionOutcome::is_end_of_file) is set, so
    /// that later sections are not read.
    pub(crate) fn end(&self) {
        if !self.is_last && !self.boundary.is_known() {
            self.outcome.set_end_of_file();
        }
    }
}
