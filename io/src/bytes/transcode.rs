//! Converts files to UTF-8 if their encoding is not ASCII-compatible, so that lines can be found by the line feed
//! byte.

use std::fmt;
use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding as Charset, UTF_8};

use crate::bytes::encoding::{self, Encoding};
use crate::bytes::section::{self, Section};

/// Byte that a [`Utf8Reader`] returns in place of malformed input. UTF-8 never contains this byte, so it becomes
/// U+FFFD and is counted when the line is decoded.
const MALFORMED: u8 = 0xff;

/// A reader of a file's lines, without the byte order mark, together with their detected encoding.
pub(crate) struct LineReader {
    pub(crate) reader: Box<dyn Read + Send>,
    /// Encoding of the lines, to be passed to [`decode_line`](crate::bytes::encoding::decode_line).
    pub(crate) encoding: Encoding,
    /// Whether the file began with a byte order mark.
    pub(crate) is_marked: bool,
    /// Properties of the file that readers of its [sections](section) need; `None` if the file is converted to UTF-8,
    /// and so can be read only from its start.
    pub(crate) line_format: Option<section::LineFormat>,
}

/// Returns a reader of the lines of `file`. `encoding` is the requested encoding. If it is `auto`, and the lines are
/// not UTF-8, reading fails with [`NotUtf8`].
pub(crate) fn line_reader(
    mut file: impl Read + Send + 'static,
    encoding: Encoding,
) -> io::Result<LineReader> {
    let mut start = Vec::new();
    (&mut file).take(3).read_to_end(&mut start)?;
    let (charset, mark) = match Charset::for_bom(&start) {
        Some((charset, mark)) => (charset, mark),
        None => (encoding.0.unwrap_or(UTF_8), 0),
    };
    let file = io::Cursor::new(start.split_off(mark)).chain(file);
    let is_marked = mark > 0;
    let detects_encoding = !is_marked && encoding == Encoding::AUTO;
    if !charset.is_ascii_compatible() {
        let reader = Box::new(Utf8Reader::new(file, charset));
        return Ok(LineReader { reader, encoding: Encoding(Some(UTF_8)), is_marked, line_format: None });
    }
    let encoding = Encoding(Some(charset));
    let line_format = Some(section::LineFormat { encoding, bom_bytes: mark as u64, detects_encoding });
    let reader: Box<dyn Read + Send> = match detects_encoding {
        true => Box::new(Utf8Checker::new(file, None)),
        false => Box::new(file),
    };
    Ok(LineReader { reader, encoding, is_marked, line_format })
}

/// Returns a reader of `lines` that fails with [`NotUtf8`] if they are not UTF-8. `lines` are the bytes of
/// `section`, whose encoding is neither requested nor given by a byte order mark.
pub(crate) fn check_utf8(lines: impl Read + Send, section: Section) -> impl Read + Send {
    Utf8Checker::new(lines, Some(section))
}

/// Error for lines that are not UTF-8. The error names their likely encoding.
#[derive(Debug)]
pub(crate) struct NotUtf8(pub(crate) Encoding);

impl fmt::Display for NotUtf8 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.to_string().to_lowercase();
        write!(
            f,
            "not UTF-8 from here on; it looks like {name}: give option `encoding` {name}, or option `encoding` utf-8 to replace invalid \
             bytes"
        )
    }
}

impl std::error::Error for NotUtf8 {}

/// Size in bytes of the sample by which the encoding is detected. The sample starts at the first non-ASCII byte.
const SAMPLE_BYTES: u64 = 1 << 16;

/// A stream that fails with [`NotUtf8`] if its first non-ASCII characters are in another encoding.
struct Utf8Checker<R> {
    inner: R,
    /// Number of ASCII bytes read before the first non-ASCII byte.
    ascii_bytes: u64,
    /// Section that the stream reads; `None` for a whole file.
    section: Option<Section>,
    /// Whether the sample, which starts at the first non-ASCII byte, was read and checked to be UTF-8. All
    /// later bytes are passed on unchecked.
    was_sample_checked: bool,
    /// Bytes that were read ahead to detect the encoding, and found to be UTF-8. Read calls return these bytes before
    /// those of `inner`.
    sample: io::Cursor<Vec<u8>>,
    /// Error that occurred while bytes were read ahead to detect the encoding: reading failed, or the bytes are not
    /// UTF-8. A read call returns the error once all earlier bytes have been returned.
    failure: Option<io::Error>,
}

impl<R> Utf8Checker<R> {
    fn new(inner: R, section: Option<Section>) -> Self {
        Utf8Checker {
            inner,
            ascii_bytes: 0,
            section,
            was_sample_checked: false,
            sample: io::Cursor::default(),
            failure: None,
        }
    }
}

impl<R> Utf8Checker<R> {
    /// Detects the encoding of the lines by `sample`, which starts at their first non-ASCII byte. Returns `None` for
    /// UTF-8.
    fn detect_non_utf8(&self, sample: &[u8]) -> io::Result<Option<Encoding>> {
        let other = encoding::detect_non_utf8(sample, self.ascii_bytes);
        // ASCII before the section lowers the share of malformed bytes. It is counted only if needed.
        match (&other, &self.section) {
            (Some(_), Some(section)) => Ok(section
                .ascii_bytes_before()?
                .and_then(|before| encoding::detect_non_utf8(sample, before + self.ascii_bytes))),
            _ => Ok(other),
        }
    }
}

impl<R: Read> Read for Utf8Checker<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.sample.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let read = self.inner.read(buffer)?;
        if self.was_sample_checked {
            return Ok(read);
        }
        let ascii = Charset::ascii_valid_up_to(&buffer[..read]);
        self.ascii_bytes += ascii as u64;
        if ascii == read {
            return Ok(read);
        }
        self.was_sample_checked = true;
        let mut sample = buffer[ascii..read].to_vec();
        let more = SAMPLE_BYTES.saturating_sub(sample.len() as u64);
        self.failure = (&mut self.inner).take(more).read_to_end(&mut sample).err();
        match self.detect_non_utf8(&sample)? {
            Some(other) => self.failure = Some(io::Error::new(io::ErrorKind::InvalidData, NotUtf8(other))),
            None => self.sample = io::Cursor::new(sample),
        }
        // First return the ASCII bytes before the sample.
        if ascii > 0 { Ok(ascii) } else { self.read(buffer) }
    }
}

/// Returns a reader that converts a stream from `encoding` to UTF-8.
pub(crate) fn utf8_reader(file: impl Read + Send + 'static, encoding: Encoding) -> Box<dyn Read + Send> {
    match encoding.0 {
        None => Box::new(file),
        Some(charset) if charset == UTF_8 => Box::new(file),
        Some(charset) => Box::new(Utf8Reader::new(file, charset)),
    }
}

/// A reader that converts a stream to UTF-8. Malformed bytes become [`MALFORMED`]; they are replaced by U+FFFD and
/// counted when the line is decoded.
struct Utf8Reader<R> {
    inner: R,
    decoder: Decoder,
    input: Vec<u8>,
    /// Number of bytes of `input` that the decoder has consumed.
    decoded: usize,
    output: Vec<u8>,
    /// Number of bytes of `output` that read calls have returned.
    returned: usize,
    /// Whether `inner` has ended.
    ended: bool,
    /// Whether the decoder has returned all its output.
    finished: bool,
}

impl<R: Read> Utf8Reader<R> {
    const CHUNK_BYTES: usize = 1 << 14;

    fn new(inner: R, charset: &'static Charset) -> Self {
        Utf8Reader {
            inner,
            decoder: charset.new_decoder_without_bom_handling(),
            input: Vec::new(),
            decoded: 0,
            output: Vec::new(),
            returned: 0,
            ended: false,
            finished: false,
        }
    }

    /// Replaces `output` by the next decoded bytes, reading more input if necessary. The caller must already have
    /// returned all of the old `output`.
    fn fill(&mut self) -> io::Result<()> {
        self.output.clear();
        self.returned = 0;
        if self.decoded == self.input.len() && !self.ended {
            self.input.resize(Self::CHUNK_BYTES, 0);
            let read = self.inner.read(&mut self.input);
            self.input.truncate(*read.as_ref().unwrap_or(&0));
            self.decoded = 0;
            self.ended = read? == 0;
        }
        // In every encoding, a byte becomes at most 3 bytes of UTF-8.
        self.output.resize(3 * Self::CHUNK_BYTES + 16, 0);
        let input = &self.input[self.decoded..];
        let (result, read, written) =
            self.decoder.decode_to_utf8_without_replacement(input, &mut self.output, self.ended);
        self.decoded += read;
        self.output.truncate(written);
        match result {
            DecoderResult::Malformed(..) => self.output.push(MALFORMED),
            DecoderResult::InputEmpty => self.finished = self.ended,
            DecoderResult::OutputFull => {}
        }
        Ok(())
    }
}

impl<R: Read> Read for Utf8Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.returned == self.output.len() {
            if self.finished {
                return Ok(0);
            }
            self.fill()?;
        }
        let count = buffer.len().min(self.output.len() - self.returned);
        buffer[..count].copy_from_slice(&self.output[self.returned..self.returned + count]);
        self.returned += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::encoding::decode_line;
    use crate::bytes::encoding::tests::{encoded, encoding};

    /// A reader that returns one to three bytes per call.
    struct ThreeByteReader(io::Cursor<Vec<u8>>);

    impl Read for ThreeByteReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(1 + self.0.position() as usize % 3);
            self.0.read(&mut buffer[..count])
        }
    }

    #[test]
    fn streams_become_lines_of_utf8() {
        let text = "相似的文档，\n".repeat(9000);
        for (label, mark) in
            [("utf-16le", ""), ("utf-16be", "\u{feff}"), ("iso-2022-jp", ""), ("utf-8", "\u{feff}")]
        {
            let text = if label == "iso-2022-jp" { "日本の文\n".repeat(9000) } else { text.clone() };
            let bytes = encoded(&format!("{mark}{text}"), label);
            let asked = if mark.is_empty() { encoding(label) } else { Encoding::AUTO };
            let mut lines = line_reader(ThreeByteReader(io::Cursor::new(bytes)), asked).unwrap();
            let mut read = Vec::new();
            lines.reader.read_to_end(&mut read).unwrap();
            assert!(read == text.as_bytes(), "{label}");
            assert_eq!((lines.encoding, lines.is_marked), (encoding("utf-8"), !mark.is_empty()));
        }
        // Half a surrogate pair, and half a character at the end.
        let bytes = b"\xff\xfea\0\0\xd8b\0c".to_vec();
        let mut read = Vec::new();
        line_reader(ThreeByteReader(io::Cursor::new(bytes)), Encoding::AUTO)
            .unwrap()
            .reader
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(decode_line(&read, Encoding::AUTO), ("a\u{fffd}b\u{fffd}".into(), 2));
    }
}
