//! An open input: a decompressed byte stream that is read as lines, records, or a whole.

mod lines;
mod section_input;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use encoding_rs::UTF_8;

use crate::bytes::compression::Compression;
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::length_limit::LengthLimit;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::read_once::ReadOnceInputs;
use crate::bytes::section::{self, SectionCursor};
use crate::bytes::transcode::{self, NotUtf8};
use crate::read_progress::{CountingReader, ReadDiagnostic, ReadProgress};
use simstore::{Error, Result};

const BUFFER_BYTES: usize = 1 << 16;
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An open file whose decompressed bytes are read as lines, as records of fixed length, or as a whole.
///
/// If reading fails, one [`Error::BadInput`] is returned, and the input ends.
pub struct Input {
    path: Arc<Path>,
    compression: Compression,
    reader: BufReader<Box<dyn Read + Send>>,
    /// Bytes that were taken from `reader`, but not yet returned as a line.
    block: BytesMut,
    /// Encoding of the lines.
    encoding: Encoding,
    /// Byte order mark before the first line; empty if there is none.
    byte_order_mark: &'static [u8],
    /// Number of lines or records read so far.
    line: u64,
    progress: Arc<ReadProgress>,
    /// Value of `progress.bytes()` when the input was opened. The difference to its current value is the number of
    /// bytes read from this input.
    progress_at_open: u64,
    /// Offset in the file, in bytes, at which the input starts: above 0 only for a section.
    start_offset: u64,
    /// Properties of the file that readers of its [sections](section) need; `None` if the file must be read from its
    /// start.
    line_format: Option<section::LineFormat>,
    /// Position in the section, if the input is a section of a file.
    section: Option<SectionCursor>,
}

/// A reader that returns the given error at its first call, and then ends.
struct DeferredError(Option<io::Error>);

impl Read for DeferredError {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Input {
    /// Opens a file, or standard input if the path is `-`. Decompression may take at most `memory` bytes. If the
    /// first bytes of a pipe were already read, `read_once` holds them, and the input returns them again.
    pub fn open(
        path: &Path,
        compression: Compression,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
        read_once: &ReadOnceInputs,
    ) -> Result<Input> {
        let raw: Box<dyn Read + Send> = if read_once.is_read_once(path)? {
            Box::new(read_once.open(path)?)
        } else {
            Box::new(File::open(path).map_err(cannot_open(path))?)
        };
        let raw = BufReader::with_capacity(BUFFER_BYTES, CountingReader::new(raw, progress));
        Input::new(path, compression, raw, memory, progress, progress.bytes())
    }

    /// Opens a member of an archive. The member may be compressed on its own. The input does not add the member's
    /// bytes to `progress`, because the reader of the archive does so.
    pub(crate) fn from_archive_member(
        path: &Path,
        reader: Box<dyn Read + Send>,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> Result<Input> {
        let progress_at_open = progress.bytes();
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, reader);
        let bad = |error: io::Error| Error::BadInput {
            path: path.to_path_buf(),
            line: 0,
            reason: format!("cannot be read from the archive: {error}"),
        };
        let compression = match Compression::from_name(path) {
            Compression::None => Compression::from_head(raw.fill_buf().map_err(bad)?),
            compression => compression,
        };
        Input::new(path, compression, raw, memory, progress, progress_at_open)
    }

    fn new(
        path: &Path,
        compression: Compression,
        raw: impl BufRead + Send + 'static,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
        progress_at_open: u64,
    ) -> Result<Input> {
        let reader = compression.reader(raw, memory).map_err(cannot_open(path))?;
        Ok(Input {
            path: path.into(),
            compression,
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            block: BytesMut::new(),
            encoding: Encoding::AUTO,
            byte_order_mark: b"",
            line: 0,
            progress: Arc::clone(progress),
            progress_at_open,
            start_offset: 0,
            line_format: None,
            section: None,
        })
    }

    /// Returns the first `bytes` bytes, or a shorter input as a whole, without consuming them.
    ///
    /// # Errors
    /// [`Error::BadInput`] if reading fails before the first byte. An empty input is no error.
    pub(crate) fn peek(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let failed = (&mut self.reader).take(bytes as u64).read_to_end(&mut head).err();
        if let Some(error) = failed.as_ref().filter(|_| head.is_empty()) {
            return Err(self.read_failure(error));
        }
        let rest = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let rest = DeferredError(failed).chain(rest);
        let reader: Box<dyn Read + Send> = Box::new(io::Cursor::new(head.clone()).chain(rest));
        self.reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Ok(head)
    }

    /// Returns the decompressed byte stream.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(self.reader)
    }

    pub(crate) fn is_compressed(&self) -> bool {
        self.compression != Compression::None
    }

    /// Prepares the input to be read by lines in the `requested` encoding. Removes the byte order mark. Converts the
    /// lines to UTF-8 if their encoding is not ASCII-compatible.
    ///
    /// # Errors
    /// [`Error::BadInput`] for an unreadable input, and for UTF-16 without a byte order mark.
    pub fn into_lines(mut self, requested: Encoding) -> Result<Input> {
        if requested == Encoding::AUTO
            && let Some(encoding) = encoding::detect_unmarked_utf16(self.fill()?)
        {
            self.line = 1;
            return Err(self.line_error(NotUtf8(encoding).to_string()));
        }
        let reader = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let lines = transcode::line_reader(reader, requested).map_err(|error| self.read_failure(&error))?;
        let byte_order_mark = if lines.is_marked { BYTE_ORDER_MARK } else { b"" };
        let reader = BufReader::with_capacity(BUFFER_BYTES, lines.reader);
        Ok(Input {
            reader,
            encoding: lines.encoding,
            byte_order_mark,
            line_format: lines.line_format,
            ..self
        })
    }

    /// Converts lines in another encoding to UTF-8. Malformed bytes stay malformed.
    pub(crate) fn into_utf8(mut self) -> Input {
        let reader = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let reader = transcode::utf8_reader(reader, self.encoding);
        Input {
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            encoding: Encoding(Some(UTF_8)),
            ..self
        }
    }

    /// Path of the file; `-` for standard input.
    pub fn path(&self) -> &Arc<Path> {
        &self.path
    }

    /// Encoding of the lines.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Byte order mark before the first line, in UTF-8; empty if the input has none.
    pub(crate) fn byte_order_mark(&self) -> &'static [u8] {
        self.byte_order_mark
    }

    /// Properties of the file that readers of its [sections](section) need; `None` if the file must be read from its
    /// start.
    pub(crate) fn line_format(&self) -> Option<section::LineFormat> {
        self.line_format
    }

    /// Number of the last line or record that was read, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the whole input as one document, which starts at line 1.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input is longer than `limit`, or cannot be read.
    pub(crate) fn read_all(&mut self, limit: LengthLimit) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let read = (&mut self.reader).take(limit.bytes as u64 + 1).read_to_end(&mut bytes);
        read.map_err(|error| self.read_failure(&error))?;
        self.line = 1;
        if bytes.len() > limit.bytes {
            return Err(self.too_long(limit));
        }
        Ok(bytes)
    }

    /// Reads the next record of fixed length, and fills `record` with its bytes. Returns false at the end of the
    /// input.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input ends within the record, or cannot be read.
    pub fn read_record(&mut self, record: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < record.len() {
            match self.reader.read(&mut record[filled..]).map_err(|error| self.read_failure(&error))? {
                0 => break,
                read => filled += read,
            }
        }
        if filled == 0 {
            return Ok(false);
        }
        let offset = self.line * record.len() as u64;
        self.line += 1;
        if filled < record.len() {
            return Err(self.line_error(format!(
                "the file ends within a fingerprint: {filled} of {} bytes at offset {offset}",
                record.len()
            )));
        }
        Ok(true)
    }

    /// Passes all complete records of `length` bytes in the read buffer to one call of `visitor`, and consumes them.
    /// Returns the number of these records. It may be 0 before the end of the input; then
    /// [`read_record`](Input::read_record) reads the next record.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input cannot be read.
    pub fn visit_buffered(&mut self, length: usize, visitor: impl FnOnce(&[u8])) -> Result<u64> {
        let buffer = self.fill()?;
        let records = buffer.len() / length;
        visitor(&buffer[..records * length]);
        self.reader.consume(records * length);
        self.line += records as u64;
        Ok(records as u64)
    }

    /// Returns the next bytes without consuming them; empty at the end of the input.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input cannot be read.
    pub fn fill(&mut self) -> Result<&[u8]> {
        match self.reader.fill_buf().err() {
            Some(error) => Err(self.read_failure(&error)),
            None => Ok(self.reader.buffer()),
        }
    }

    /// Like [`Input::fill`]; but after an error in a gzip file, the next call continues with the next gzip member.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input cannot be read at this position.
    pub(crate) fn fill_resuming(&mut self) -> Result<&[u8]> {
        let Some(error) = self.reader.fill_buf().err() else { return Ok(self.reader.buffer()) };
        let failure = self.read_failure_reason(&error);
        if self.compression != Compression::Gzip {
            self.skip_rest();
        }
        Err(self.line_error(failure))
    }

    /// Consumes the first `bytes` bytes that [`Input::fill`] has returned.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
    }

    /// Adds a diagnostic to the progress of the reader, where the caller of the library can fetch it.
    pub(crate) fn add_diagnostic(&self, diagnostic: ReadDiagnostic) {
        self.progress.add_diagnostic(diagnostic);
    }

    /// Sets the number of the line that the next [`Input::line_error`] reports.
    pub(crate) fn set_line(&mut self, line: u64) {
        self.line = line;
    }

    /// Returns an [`Error::BadInput`] with this `reason` for the whole file.
    pub fn file_error(&self, reason: &str) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: 0, reason: reason.to_owned() }
    }

    /// Returns an [`Error::BadInput`] with this `reason` for the last line that was read.
    pub fn line_error(&self, reason: String) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: self.line, reason }
    }

    pub(crate) fn too_long(&self, limit: LengthLimit) -> Error {
        self.line_error(limit.to_string())
    }

    /// Skips the rest of the input.
    pub(crate) fn skip_rest(&mut self) {
        self.section.iter().for_each(|cursor| cursor.outcome.set_end_of_file());
        self.reader = BufReader::with_capacity(0, Box::new(io::empty()));
        self.block.clear();
    }

    /// Ends the input after a read error, and returns the error for the line after the last line that was read.
    fn read_failure(&mut self, error: &io::Error) -> Error {
        self.skip_rest();
        self.line += 1;
        let rest = match self.compression {
            Compression::None => "",
            _ if error.kind() == io::ErrorKind::UnexpectedEof => "",
            _ => "; the rest of the file is skipped",
        };
        self.line_error(format!("{}{rest}", self.read_failure_reason(error)))
    }

    fn read_failure_reason(&self, error: &io::Error) -> String {
        if let Some(not_utf8) = error.get_ref().and_then(|inner| inner.downcast_ref::<NotUtf8>()) {
            return not_utf8.to_string();
        }
        let bytes = self.start_offset + self.progress.bytes() - self.progress_at_open;
        match (self.compression, error.kind()) {
            (_, io::ErrorKind::OutOfMemory) => error.to_string(),
            // Errors of the operating system do not mean that the data are damaged.
            (Compression::None, _) => format!("cannot read after byte {bytes}: {error}"),
            _ if error.raw_os_error().is_some() => format!("cannot read after byte {bytes}: {error}"),
            (compression, io::ErrorKind::UnexpectedEof) => {
                format!("the {compression} data is truncated: the file ends at byte {bytes}")
            }
            (compression, _) => {
                format!("not {compression} data, or damaged, at or before byte {bytes} of the file: {error}")
            }
        }
    }
}
