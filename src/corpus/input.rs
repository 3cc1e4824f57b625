//! Opening inputs: formats by name, decompression, lines of bounded length.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use flate2::bufread::MultiGzDecoder;

use crate::corpus::once::{self, is_read_once, is_stdin};
use crate::error::{Error, Result};

/// Bytes looked at to tell what an input without a telling name holds.
const HEAD_BYTES: usize = 64 * 1024;
const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// What an input holds, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// One JSON object a line.
    Jsonl,
    /// The whole file is one document.
    Text,
    /// One fingerprint a line, in hexadecimal.
    HexLines,
    /// Little-endian fingerprints of this many bits.
    Raw { bits: u32 },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

impl Compression {
    fn of_head(head: &[u8]) -> Compression {
        if head.starts_with(GZIP_MAGIC) {
            Compression::Gzip
        } else if head.starts_with(ZSTD_MAGIC) {
            Compression::Zstd
        } else {
            Compression::None
        }
    }

    fn reader<'r>(self, raw: impl BufRead + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(MultiGzDecoder::new(raw)),
            Compression::Zstd => Box::new(zstd::Decoder::with_buffer(raw)?),
        })
    }
}

/// The compression and, below it, the format that a file name tells.
fn by_name(path: &Path) -> (Compression, Option<Format>) {
    let lower = |path: &Path| path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    let (compression, extension) = match lower(path).as_deref() {
        Some("gz") => (Compression::Gzip, lower(Path::new(path.file_stem().unwrap_or_default()))),
        Some("zst") => (Compression::Zstd, lower(Path::new(path.file_stem().unwrap_or_default()))),
        _ => (Compression::None, lower(path)),
    };
    let format = match extension.as_deref() {
        Some("jsonl" | "ndjson" | "json") => Some(Format::Jsonl),
        Some("txt" | "text" | "md" | "markdown" | "htm" | "html") => Some(Format::Text),
        Some("hex" | "tsv") => Some(Format::HexLines),
        Some("u64") => Some(Format::Raw { bits: 64 }),
        Some("u128") => Some(Format::Raw { bits: 128 }),
        _ => None,
    };
    (compression, format)
}

/// The format that a file name tells, if it does.
pub(crate) fn format_by_name(path: &Path) -> Option<Format> {
    if is_stdin(path) { None } else { by_name(path).1 }
}

/// The format of an input, by its name or else by its first bytes; `None` if neither tells.
pub(crate) fn detect_format(path: &Path) -> Result<Option<Format>> {
    if let Some(format) = format_by_name(path) {
        return Ok(Some(format));
    }
    Ok(format_of_head(&head_of(path)?))
}

/// The first bytes of an input.
fn head_of(path: &Path) -> Result<Vec<u8>> {
    if is_read_once(path)? {
        return once::peek(path, HEAD_BYTES, holds_first_line);
    }
    let mut head = Vec::new();
    let read = open_file(path)?.take(HEAD_BYTES as u64).read_to_end(&mut head);
    read.map_err(Error::io(path, "read"))?;
    Ok(head)
}

/// Whether the first line that is not blank ends within the head: a pipe may give a few bytes at a time.
fn holds_first_line(head: &[u8]) -> bool {
    Compression::of_head(head) == Compression::None && without_blank_start(head).contains(&b'\n')
}

fn without_blank_start(head: &[u8]) -> &[u8] {
    head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head).trim_ascii_start()
}

fn format_of_head(raw: &[u8]) -> Option<Format> {
    let mut head = Vec::new();
    // A head that is cut off in a compressed block ends in an error; what came before it counts.
    if let Ok(reader) = Compression::of_head(raw).reader(raw) {
        let _ = reader.take(HEAD_BYTES as u64).read_to_end(&mut head);
    }
    let first = without_blank_start(&head).split(|&b| b == b'\n').next().unwrap_or_default();
    let hex = first.split(|&b| b == b'\t').next().unwrap_or_default().trim_ascii_end();
    if first.first() == Some(&b'{') {
        Some(Format::Jsonl)
    } else if matches!(hex.len(), 16 | 32) && hex.iter().all(u8::is_ascii_hexdigit) {
        Some(Format::HexLines)
    } else {
        None
    }
}

/// Whether a path is a folder.
pub(crate) fn is_folder(path: &Path) -> Result<bool> {
    Ok(path.metadata().map_err(Error::io(path, "open"))?.is_dir())
}

fn open_file(path: &Path) -> Result<File> {
    File::open(path).map_err(Error::io(path, "open"))
}

/// An input, decompressed.
pub(crate) struct Input {
    path: PathBuf,
    reader: BufReader<Box<dyn Read + Send>>,
    /// Lines read so far.
    line: u64,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Input").field("path", &self.path).field("line", &self.line).finish_non_exhaustive()
    }
}

impl Input {
    /// Opens a file, or standard input for `-`.
    ///
    /// An input is decompressed if its name ends in `.gz` or `.zst`; standard input, and a pipe whose
    /// name tells nothing, if it starts like such a file.
    pub(crate) fn open(path: &Path) -> Result<Input> {
        let reader = if is_read_once(path)? {
            let (by_name, format) = by_name(path);
            let compression = if by_name == Compression::None && format.is_none() {
                Compression::of_head(&head_of(path)?)
            } else {
                by_name
            };
            compression.reader(BufReader::with_capacity(1 << 16, once::open(path)?))
        } else {
            by_name(path).0.reader(BufReader::with_capacity(1 << 16, open_file(path)?))
        };
        let reader = BufReader::with_capacity(1 << 16, reader.map_err(Error::io(path, "read"))?);
        Ok(Input { path: path.to_path_buf(), reader, line: 0 })
    }

    /// Number of the line that was read last, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next line that is not blank into `line`, without its end; false at the end of
    /// the input. A byte order mark at the start of the input is left out.
    ///
    /// # Errors
    /// [`Error::BadInput`] for a line of more than `max_bytes`, which is skipped;
    /// [`Error::Io`] if the input cannot be read, or is damaged as a compressed file.
    pub(crate) fn read_line(&mut self, line: &mut Vec<u8>, max_bytes: usize) -> Result<bool> {
        loop {
            line.clear();
            // One byte more than a line may hold tells a line of that length from a longer one.
            let limit = max_bytes as u64 + 1;
            let read = (&mut self.reader).take(limit).read_until(b'\n', line);
            if read.map_err(Error::io(&self.path, "read"))? == 0 {
                return Ok(false);
            }
            self.line += 1;
            if line.len() > max_bytes && line.last() != Some(&b'\n') {
                self.reader.skip_until(b'\n').map_err(Error::io(&self.path, "read"))?;
                return Err(self.too_long(max_bytes));
            }
            if self.line == 1 && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if !line.trim_ascii().is_empty() {
                while line.last().is_some_and(|b| matches!(b, b'\n' | b'\r')) {
                    line.pop();
                }
                return Ok(true);
            }
        }
    }

    /// Reads the whole input as one document, that starts at line 1.
    ///
    /// # Errors
    /// As [`Input::read_line`].
    pub(crate) fn read_all(&mut self, max_bytes: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let limit = max_bytes as u64 + 1;
        (&mut self.reader).take(limit).read_to_end(&mut bytes).map_err(Error::io(&self.path, "read"))?;
        self.line = 1;
        if bytes.len() > max_bytes {
            return Err(self.too_long(max_bytes));
        }
        if bytes.starts_with(BYTE_ORDER_MARK) {
            bytes.drain(..BYTE_ORDER_MARK.len());
        }
        Ok(bytes)
    }

    /// Fills `record` with the next bytes; false at the end of the input.
    ///
    /// # Errors
    /// [`Error::BadInput`] if the input ends within the record; [`Error::Io`].
    pub(crate) fn read_record(&mut self, record: &mut [u8]) -> Result<bool> {
        let mut filled = 0;
        while filled < record.len() {
            match self.reader.read(&mut record[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io(&self.path, "read")(error)),
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
    /// [`Error::Io`].
    pub(crate) fn visit_buffered(&mut self, length: usize, visitor: impl FnOnce(&[u8])) -> Result<u64> {
        let buffer = match self.reader.fill_buf() {
            Ok(buffer) => buffer,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(0),
            Err(error) => return Err(Error::io(&self.path, "read")(error)),
        };
        let records = buffer.len() / length;
        visitor(&buffer[..records * length]);
        self.reader.consume(records * length);
        self.line += records as u64;
        Ok(records as u64)
    }

    /// [`Error::BadInput`] for the line that was read last.
    pub(crate) fn bad(&self, reason: String) -> Error {
        Error::BadInput { path: self.path.clone(), line: self.line, reason }
    }

    fn too_long(&self, max_bytes: usize) -> Error {
        self.bad(format!("longer than the limit of {max_bytes} bytes"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_formats() {
        for (name, expected) in [
            ("a.jsonl", Some(Format::Jsonl)),
            ("a.JSON.GZ", Some(Format::Jsonl)),
            ("x.y/a.ndjson.zst", Some(Format::Jsonl)),
            ("a.md", Some(Format::Text)),
            ("a.tsv.gz", Some(Format::HexLines)),
            ("a.u64", Some(Format::Raw { bits: 64 })),
            ("a.u128.zst", Some(Format::Raw { bits: 128 })),
            ("jsonl", None),
            ("a.gz", None),
            ("a.dat", None),
            ("-", None),
        ] {
            assert_eq!(format_by_name(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn heads_tell_formats() {
        for (head, expected) in [
            (&b"\xef\xbb\xbf\r\n {\"id\": 1}"[..], Some(Format::Jsonl)),
            (b"0123456789abcdef", Some(Format::HexLines)),
            (b"0123456789ABCDEF\tname\r\nx", Some(Format::HexLines)),
            (b"0123456789abcdef0123456789abcdef\r\n", Some(Format::HexLines)),
            (b"0123456789abcde\n", None),
            (b"0123456789abcdefg\n", None),
            (b"", None),
            (b"\x1f\x8b\x08", None),
            (b"[]", None),
        ] {
            assert_eq!(format_of_head(head), expected, "{}", head.escape_ascii());
        }
        let packed = zstd::encode_all(&b"{}"[..], 1).unwrap();
        assert_eq!(format_of_head(&packed), Some(Format::Jsonl));
    }
}
