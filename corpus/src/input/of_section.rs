//! The lines of a section as an input.

use std::io::{self, BufRead, BufReader, Read};
use std::sync::Arc;

use super::{BUFFER_BYTES, Input, cannot_open};
use crate::compression::Within;
use crate::progress::ReadProgress;
use crate::section::{Border, Reached, Section, Stream};
use crate::transcode;
use simstore::{Error, Result};

/// How far a section has been read.
pub(super) struct SectionRead {
    at: u64,
    border: Arc<Border>,
    is_last: bool,
    pub(super) reached: Arc<Reached>,
}

impl SectionRead {
    /// Passes over the end of a line that the section before has; false if no line begins in this one.
    fn skip_line(&mut self, reader: &mut impl BufRead) -> io::Result<bool> {
        loop {
            let bytes = match reader.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                bytes => bytes?,
            };
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
    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes as u64;
    }

    /// Whether no more lines begin in the section.
    pub(super) fn is_over(&self) -> bool {
        self.at > self.border.bytes()
    }

    /// The file has ended.
    pub(super) fn end(&self) {
        if !self.is_last && !self.border.is_known() {
            self.reached.set_rest();
        }
    }
}

impl Input {
    /// The lines of a section.
    ///
    /// # Errors
    /// [`Error::BadInput`] for what cannot be opened or read.
    pub(crate) fn of_section(section: &Section, progress: &Arc<ReadProgress>) -> Result<Input> {
        let Section { path, compression, memory, from, to, is_last, lines, .. } = section;
        let bad = |error: io::Error| Error::BadInput {
            path: path.to_path_buf(),
            line: 0,
            reason: format!("cannot be read from byte {from} on: {error}"),
        };
        let opened_at = progress.bytes();
        let to = Some(*to).filter(|_| !is_last);
        let stream = Stream::open(path, *compression, *memory, *from, to, progress);
        let stream = stream.map_err(cannot_open(path))?;
        let (border, reached) = (stream.border(), Arc::clone(&section.reached));
        let stream = Within { inner: stream, memory: *memory };
        let mut part = SectionRead { at: 0, border, is_last: *is_last, reached };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        let Some(lines) = lines else { return Err(bad(io::ErrorKind::InvalidInput.into())) };
        if *from == 0 {
            part.at = io::copy(&mut (&mut reader).take(lines.mark), &mut io::sink()).map_err(bad)?;
        }
        let mut input = Input {
            path: Arc::clone(path),
            compression: *compression,
            reader: BufReader::new(Box::new(io::empty())),
            encoding: lines.encoding,
            mark: b"",
            line: 0,
            progress: Arc::clone(progress),
            opened_at,
            from: *from,
            in_sections: None,
            part: None,
        };
        let is_there = match *from {
            0 => Ok(true),
            _ => part.skip_line(&mut reader),
        };
        if let Ok(false) = is_there {
            part.end();
        }
        input.part = Some(part);
        if is_there.map_err(|error| input.broken(&error))? {
            let reader: Box<dyn Read + Send> = match lines.is_judged {
                true => Box::new(transcode::watched(reader, section.beginning())),
                false => Box::new(reader),
            };
            input.reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        }
        Ok(input)
    }
}
