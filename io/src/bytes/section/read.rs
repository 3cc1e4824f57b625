//! How far the lines of a section have been read.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::Reached;
use super::stream::Border;

/// How far a section has been read.
pub(crate) struct SectionRead {
    at: u64,
    border: Arc<Border>,
    is_last: bool,
    pub reached: Arc<Reached>,
}

impl SectionRead {
    /// One that begins behind so many bytes, and ends at the border.
    pub(crate) fn new(at: u64, border: Arc<Border>, is_last: bool, reached: Arc<Reached>) -> SectionRead {
        SectionRead { at, border, is_last, reached }
    }

    /// Passes over the end of a line that the section before has; false if no line begins in this one.
    pub(crate) fn skip_line(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        loop {
            let bytes = reader.fill_buf()?;
            let newline = bytes.iter().position(|&byte| byte == b'\n');
            let (passed, is_end) = (newline.map_or(bytes.len(), |at| at + 1), bytes.is_empty());
            reader.consume(passed);
            self.at += passed as u64;
            if newline.is_some() || is_end || self.is_over() {
                self.reached.set_skipped(self.at);
                return Ok(!is_end && !self.is_over());
            }
        }
    }

    /// Counts bytes of lines that were read.
    pub(crate) fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }

    /// Whether no more lines begin in the section.
    pub(crate) fn is_over(&self) -> bool {
        self.at > self.border.bytes()
    }

    /// The file has ended.
    pub(crate) fn end(&self) {
        if !self.is_last && !self.border.is_known() {
            self.reached.set_rest();
        }
    }
}
