//! Opens the lines of a section as an input.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::BytesMut;

use super::{BUFFER_BYTES, Input};
use crate::bytes::compression::MemoryLimitedReader;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::section::{Section, SectionCursor, SectionStream};
use crate::bytes::transcode;
use crate::read_progress::ReadProgress;
use simstore::{Error, Result};

impl Input {
    /// Opens a section of a file of lines, and skips to the first line that begins in it.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that cannot be opened or read.
    pub(crate) fn from_section(section: &Section, progress: &Arc<ReadProgress>) -> Result<Input> {
        let Section { path, compression, memory, from, to, is_last, line_format, .. } = section;
        let bad = |error: io::Error| Error::BadInput {
            path: path.to_path_buf(),
            line: 0,
            reason: format!("cannot be read from byte {from} on: {error}"),
        };
        let progress_at_open = progress.bytes();
        let to = Some(*to).filter(|_| !is_last);
        let stream = SectionStream::open(path, *compression, *memory, *from, to, progress);
        let stream = stream.map_err(cannot_open(path))?;
        let (boundary, outcome) = (stream.boundary(), Arc::clone(&section.outcome));
        let stream = MemoryLimitedReader { inner: stream, memory: *memory };
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        let Some(line_format) = line_format else { return Err(bad(io::ErrorKind::InvalidInput.into())) };
        let at = match *from {
            0 => io::copy(&mut (&mut reader).take(line_format.bom_bytes), &mut io::sink()).map_err(bad)?,
            _ => 0,
        };
        let mut cursor = SectionCursor::new(at, boundary, *is_last, outcome);
        let mut input = Input {
            path: Arc::clone(path),
            compression: *compression,
            reader: BufReader::new(Box::new(io::empty())),
            block: BytesMut::new(),
            encoding: line_format.encoding,
            byte_order_mark: b"",
            line: 0,
            progress: Arc::clone(progress),
            progress_at_open,
            start_offset: *from,
            line_format: None,
            section: None,
        };
        let is_there = match *from {
            0 => Ok(true),
            _ => cursor.skip_line(&mut reader),
        };
        if let Ok(false) = is_there {
            cursor.end();
        }
        input.section = Some(cursor);
        if is_there.map_err(|error| input.read_failure(&error))? {
            let reader: Box<dyn Read + Send> = match line_format.detects_encoding {
                true => Box::new(transcode::check_utf8(reader, section.clone())),
                false => Box::new(reader),
            };
            input.reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        }
        Ok(input)
    }
}
