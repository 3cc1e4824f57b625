//! Common format of part files and stage files: a Zstandard frame of lines or rows, then the checksum of this
//! frame. `format-spec/part.md` specifies the format.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Take, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use simstore::fs::open_regular;
use simstore::{Error, Result};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use simstore_io::output::{Output, UnfinishedOutputs};

/// Maximum length of a line in bytes. Longer lines are refused.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 26;
/// Header of the skippable Zstandard frame that follows the data. The content of this frame is the checksum, which
/// has 8 bytes.
const TRAILER_HEADER: [u8; 8] = [0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0];
const TRAILER_BYTES: u64 = 16;

/// Encodes a value as a line of JSON, without the line feed.
pub(crate) fn to_json_line(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Error::Refused(error.to_string()))
}

/// Returns the path in `folder` of the file with this header. The file name is the hash of the header, a dot, and
/// `ending`. So files with different headers have different names.
pub(crate) fn path_from_header(folder: &Path, header: &impl Serialize, ending: &str) -> Result<PathBuf> {
    Ok(folder.join(format!("{:016x}.{ending}", xxh3_64(&to_json_line(header)?))))
}

/// Writes a compressed file that ends with its checksum. The file appears under its name only when it is complete.
pub(crate) struct ChecksummedWriter {
    path: PathBuf,
    frame: zstd::Encoder<'static, HashingOutput>,
}

/// Output that hashes the bytes written to it.
struct HashingOutput {
    output: Output,
    hash: Xxh3,
}

impl Write for HashingOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = Write::write(&mut self.output, bytes)?;
        self.hash.update(&bytes[..written]);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Write::flush(&mut self.output)
    }
}

impl ChecksummedWriter {
    pub(crate) fn create(path: &Path, unfinished: &UnfinishedOutputs) -> Result<Self> {
        let output = HashingOutput { output: Output::replace(path, unfinished)?, hash: Xxh3::new() };
        let frame = zstd::Encoder::new(output, 1).map_err(Error::io(path, "write"))?;
        Ok(ChecksummedWriter { path: path.to_path_buf(), frame })
    }

    /// Writes a line and a line feed.
    pub(crate) fn push_line(&mut self, line: &[u8]) -> Result<()> {
        self.push_bytes(line).and_then(|()| self.push_bytes(b"\n"))
    }

    /// Writes bytes, without adding a line feed.
    pub(crate) fn push_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.frame.write_all(bytes).map_err(Error::io(&self.path, "write"))
    }

    /// Writes the checksum, and renames the complete file to its final name.
    pub(crate) fn finish(self) -> Result<()> {
        let HashingOutput { mut output, hash } =
            self.frame.finish().map_err(Error::io(&self.path, "write"))?;
        output.write_bytes(&TRAILER_HEADER)?;
        output.write_bytes(&hash.digest().to_le_bytes())?;
        output.finish()
    }
}

/// Reads a compressed file, whose checksum is verified when it is opened.
pub(crate) struct ChecksummedReader {
    reader: BufReader<zstd::Decoder<'static, BufReader<Take<File>>>>,
    line: Vec<u8>,
}

impl ChecksummedReader {
    /// Opens a file and verifies its checksum. An error is a message for users that does not contain the path.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let decoder =
            zstd::Decoder::new(verified_frame(path)?).map_err(|error| format!("cannot read: {error}"))?;
        Ok(ChecksummedReader { reader: BufReader::new(decoder), line: Vec::new() })
    }

    /// Reads the next line. After the last line, returns an error.
    pub(crate) fn next_line(&mut self) -> Result<&[u8], String> {
        self.line.clear();
        let read = (&mut self.reader).take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', &mut self.line);
        read.map_err(|error| format!("cannot read: {error}"))?;
        match self.line.split_last() {
            Some((b'\n', line)) => Ok(line),
            _ if self.line.len() > MAX_LINE_BYTES => {
                Err(format!("a line is longer than {MAX_LINE_BYTES} bytes"))
            }
            _ => Err("the end is missing".to_owned()),
        }
    }
}

impl ChecksummedReader {
    /// Fills `bytes` from the file. If fewer bytes are left, returns an error.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Result<(), String> {
        self.reader.read_exact(bytes).map_err(|error| format!("cannot read: {error}"))
    }

    /// Whether all bytes have been read.
    pub(crate) fn is_at_end(&mut self) -> bool {
        matches!(self.reader.fill_buf(), Ok([]))
    }
}

/// Verifies the checksum of a file, and returns a reader of its compressed data, the first Zstandard frame.
fn verified_frame(path: &Path) -> Result<Take<File>, String> {
    let failed = |error: io::Error| format!("cannot read: {error}");
    let mut file = open_regular(path).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    let Some(frame_bytes) = bytes.checked_sub(TRAILER_BYTES) else {
        return Err("damaged: too short".to_owned());
    };
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 16]);
    let mut frame = (&mut file).take(frame_bytes);
    loop {
        match frame.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let mut trailer = [0; TRAILER_BYTES as usize];
    file.read_exact(&mut trailer).map_err(failed)?;
    if trailer[..8] != TRAILER_HEADER || trailer[8..] != hash.digest().to_le_bytes() {
        return Err("damaged: wrong checksum".to_owned());
    }
    file.rewind().map_err(failed)?;
    Ok(file.take(frame_bytes))
}
