//! An open input: decompressed, counted, lines of bounded length.

mod lines;
mod of_section;

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use encoding_rs::UTF_8;

use crate::bytes::compression::Compression;
use crate::bytes::encoding::{self, Encoding};
use crate::bytes::limit::Longest;
use crate::bytes::open_errors::cannot_open;
use crate::bytes::pipes::Pipes;
use crate::bytes::section::{self, SectionRead};
use crate::bytes::transcode::{self, NotUtf8};
use crate::progress::{Counted, ReadNote, ReadProgress};
use simstore::{Error, Result};

const BUFFER_BYTES: usize = 1 << 16;
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An input, decompressed.
///
/// A read error is one [`Error::BadInput`], and the end of the input.
pub struct Input {
    path: Arc<Path>,
    compression: Compression,
    reader: BufReader<Box<dyn Read + Send>>,
    /// Bytes that are read and no line yet.
    block: BytesMut,
    /// The encoding of lines, and the byte order mark before the first.
    encoding: Encoding,
    mark: &'static [u8],
    /// Lines read so far.
    line: u64,
    progress: Arc<ReadProgress>,
    /// The progress when the input was opened, and the place in the file.
    opened_at: u64,
    from: u64,
    /// How sections of it are read, if they can be.
    in_sections: Option<section::Lines>,
    /// The section that it is of a file, and how far that has been read.
    part: Option<SectionRead>,
}

/// Fails once where reading has failed before, if it has.
struct Failing(Option<io::Error>);

impl Read for Failing {
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
    /// Opens a file that is compressed so, or standard input for `-`. Unpacking it may take so much memory.
    pub fn open(
        path: &Path,
        compression: Compression,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
        pipes: &Pipes,
    ) -> Result<Input> {
        let raw: Box<dyn Read + Send> = if pipes.is_read_once(path)? {
            Box::new(pipes.open(path)?)
        } else {
            Box::new(File::open(path).map_err(cannot_open(path))?)
        };
        let raw = BufReader::with_capacity(BUFFER_BYTES, Counted::new(raw, progress));
        Input::new(path, compression, raw, memory, progress, progress.bytes())
    }

    /// A member of an archive, that may be compressed itself; its bytes are counted where it comes from.
    pub(crate) fn of_member(
        path: &Path,
        reader: Box<dyn Read + Send>,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> Result<Input> {
        let opened_at = progress.bytes();
        let mut raw = BufReader::with_capacity(BUFFER_BYTES, reader);
        let bad = |error: io::Error| Error::BadInput {
            path: path.to_path_buf(),
            line: 0,
            reason: format!("cannot be read from the archive: {error}"),
        };
        let compression = match Compression::of_name(path) {
            Compression::None => Compression::of_head(raw.fill_buf().map_err(bad)?),
            compression => compression,
        };
        Input::new(path, compression, raw, memory, progress, opened_at)
    }

    fn new(
        path: &Path,
        compression: Compression,
        raw: impl BufRead + Send + 'static,
        memory: Option<u64>,
        progress: &Arc<ReadProgress>,
        opened_at: u64,
    ) -> Result<Input> {
        let reader = compression.reader(raw, memory).map_err(cannot_open(path))?;
        Ok(Input {
            path: path.into(),
            compression,
            reader: BufReader::with_capacity(BUFFER_BYTES, reader),
            block: BytesMut::new(),
            encoding: Encoding::AUTO,
            mark: b"",
            line: 0,
            progress: Arc::clone(progress),
            opened_at,
            from: 0,
            in_sections: None,
            part: None,
        })
    }

    /// The first bytes: so many, or all. They are not taken.
    ///
    /// # Errors
    /// [`Error::BadInput`] if not even the first can be read.
    pub(crate) fn peek(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut head = Vec::new();
        let failed = (&mut self.reader).take(bytes as u64).read_to_end(&mut head).err();
        if let Some(error) = failed.as_ref().filter(|_| head.is_empty()) {
            return Err(self.broken(error));
        }
        let rest = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let rest = Failing(failed).chain(rest);
        let reader: Box<dyn Read + Send> = Box::new(io::Cursor::new(head.clone()).chain(rest));
        self.reader = BufReader::with_capacity(BUFFER_BYTES, reader);
        Ok(head)
    }

    /// Its bytes, decompressed.
    pub(crate) fn into_reader(self) -> Box<dyn Read + Send> {
        Box::new(self.reader)
    }

    pub(crate) fn is_packed(&self) -> bool {
        self.compression != Compression::None
    }

    /// The same input, without its byte order mark, and in an encoding whose lines end in the byte of a line feed.
    ///
    /// # Errors
    /// [`Error::BadInput`] for an unreadable input, and for UTF-16 without a byte order mark.
    pub fn into_lines(mut self, asked: Encoding) -> Result<Input> {
        if asked == Encoding::AUTO
            && let Some(encoding) = encoding::unmarked_utf16(self.fill()?)
        {
            self.line = 1;
            return Err(self.bad(NotUtf8(encoding).to_string()));
        }
        let reader = std::mem::replace(&mut self.reader, BufReader::new(Box::new(io::empty())));
        let lines = transcode::line_reader(reader, asked).map_err(|error| self.broken(&error))?;
        let mark = if lines.is_marked { BYTE_ORDER_MARK } else { b"" };
        let reader = BufReader::with_capacity(BUFFER_BYTES, lines.reader);
        Ok(Input { reader, encoding: lines.encoding, mark, in_sections: lines.in_sections, ..self })
    }

    /// The same in UTF-8, if it is in another encoding of lines. Malformed bytes stay malformed.
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

    /// The encoding of lines.
    pub(crate) fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The byte order mark before the first line, in UTF-8, or nothing.
    pub(crate) fn mark(&self) -> &'static [u8] {
        self.mark
    }

    /// How sections of it are read; `None` if its lines cannot be told apart from the middle.
    pub(crate) fn in_sections(&self) -> Option<section::Lines> {
        self.in_sections
    }

    /// Number of the line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the whole input as one document, that starts at line 1.
    ///
    /// # Errors
    /// As [`Input::read_line`].
    pub(crate) fn read_all(&mut self, longest: Longest) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = longest.bytes as u64 + 1;
        let read = (&mut self.reader).take(limit).read_to_end(&mut bytes);
        read.map_err(|error| self.broken(&error))?;
        self.line = 1;
        if bytes.len() > longest.bytes {
            return Err(self.too_long(longest));
        }
        Ok(bytes)
    }

    /// Fills `record` with the next bytes; false at the end of the input.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input ends within the record, or cannot be read.
    pub fn read_record(&mut self, record: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < record.len() {
            match self.reader.read(&mut record[filled..]).map_err(|error| self.broken(&error))? {
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
            return Err(self.bad(format!(
                "the file ends within a fingerprint: {filled} of {} bytes at offset {offset}",
                record.len()
            )));
        }
        Ok(true)
    }

    /// Visits the bytes of the records of `length` bytes that are next and lie in the buffer as a whole: a fast
    /// path, where there may be none although the input goes on. Returns how many there were.
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

    /// The bytes that are next; none at the end of the input.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input cannot be read.
    pub fn fill(&mut self) -> Result<&[u8]> {
        match self.reader.fill_buf().err() {
            Some(error) => Err(self.broken(&error)),
            None => Ok(self.reader.buffer()),
        }
    }

    /// Like [`Input::fill`], but reading goes on behind an error: with the next members of a gzip file.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input cannot be read here.
    pub(crate) fn fill_on(&mut self) -> Result<&[u8]> {
        let Some(error) = self.reader.fill_buf().err() else { return Ok(self.reader.buffer()) };
        let failure = self.cannot_read(&error);
        if self.compression != Compression::Gzip {
            self.end();
        }
        Err(self.bad(failure))
    }

    /// Takes bytes that [`Input::fill`] has shown.
    pub(crate) fn consume(&mut self, bytes: usize) {
        self.reader.consume(bytes);
    }

    /// Counts something that a person should know.
    pub(crate) fn note(&self, note: ReadNote) {
        self.progress.note(note);
    }

    /// Says on which line the next [`Input::bad`] is.
    pub(crate) fn set_line(&mut self, line: u64) {
        self.line = line;
    }

    /// [`Error::BadInput`] for the file as a whole.
    pub fn bad_file(&self, reason: &str) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: 0, reason: reason.to_owned() }
    }

    /// [`Error::BadInput`] for the line that was read last.
    pub fn bad(&self, reason: String) -> Error {
        Error::BadInput { path: self.path.to_path_buf(), line: self.line, reason }
    }

    pub(crate) fn too_long(&self, longest: Longest) -> Error {
        self.bad(longest.to_string())
    }

    /// Leaves out the rest of the input.
    pub(crate) fn end(&mut self) {
        self.part.iter().for_each(|part| part.reached.set_rest());
        self.reader = BufReader::with_capacity(0, Box::new(io::empty()));
        self.block.clear();
    }

    /// The error of an input that cannot be read on: it ends in the line after the last.
    fn broken(&mut self, error: &io::Error) -> Error {
        self.end();
        self.line += 1;
        let rest = match self.compression {
            Compression::None => "",
            _ if error.kind() == io::ErrorKind::UnexpectedEof => "",
            _ => "; the rest of the file is skipped",
        };
        self.bad(format!("{}{rest}", self.cannot_read(error)))
    }

    fn cannot_read(&self, error: &io::Error) -> String {
        if let Some(not_utf8) = error.get_ref().and_then(|inner| inner.downcast_ref::<NotUtf8>()) {
            return not_utf8.to_string();
        }
        let bytes = self.from + self.progress.bytes() - self.opened_at;
        match (self.compression, error.kind()) {
            (_, io::ErrorKind::OutOfMemory) => error.to_string(),
            // Errors of the system are no fault of the data.
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
