//! The lines of a section as an input.

use std::io::{self, BufReader, Read};
use std::sync::Arc;

use bytes::BytesMut;

use super::{BUFFER_BYTES, Input};
use crate::bytes::compression::Within;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::section::{Section, SectionRead, Stream};
use crate::bytes::transcode;
use crate::progress::ReadProgress;
use simstore::{Error, Result};

impl Input {
    /// The lines of a section.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a file that cannot be opened or read.
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
        let mut reader = BufReader::with_capacity(BUFFER_BYTES, stream);
        let Some(lines) = lines else { return Err(bad(io::ErrorKind::InvalidInput.into())) };
        let at = match *from {
            0 => io::copy(&mut (&mut reader).take(lines.mark), &mut io::sink()).map_err(bad)?,
            _ => 0,
        };
        let mut part = SectionRead::new(at, border, *is_last, reached);
        let mut input = Input {
            path: Arc::clone(path),
            compression: *compression,
            reader: BufReader::new(Box::new(io::empty())),
            block: BytesMut::new(),
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
                true => Box::new(transcode::watched(reader, section.clone())),
                false => Box::new(reader),
            };
            input.reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        }
        Ok(input)
    }
}
