//! Files as lines in an encoding that lines can be told apart in.

use std::fmt;
use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding as Charset, UTF_8};

use crate::bytes::encoding::{self, Encoding};
use crate::bytes::section::{self, Section};

/// The mark of malformed bytes between a [`Utf8Reader`] and the decoding of a line. UTF-8 never contains it.
const MALFORMED: u8 = 0xff;

/// The lines of a file, without its byte order mark.
pub(crate) struct Lines {
    pub(crate) reader: Box<dyn Read + Send>,
    /// An encoding that [`decode_line`](crate::bytes::encoding::decode_line) takes.
    pub(crate) encoding: Encoding,
    /// Whether there was a byte order mark.
    pub(crate) is_marked: bool,
    /// How sections of the file are read; `None` if the file can be read only from its start, since it is converted to
    /// UTF-8.
    pub(crate) in_sections: Option<section::Lines>,
}

/// Reads the lines of a file. Without a requested encoding they are UTF-8; other encodings fail with [`NotUtf8`].
pub(crate) fn line_reader(mut file: impl Read + Send + 'static, encoding: Encoding) -> io::Result<Lines> {
    let mut start = Vec::new();
    (&mut file).take(3).read_to_end(&mut start)?;
    let (charset, mark) = match Charset::for_bom(&start) {
        Some((charset, mark)) => (charset, mark),
        None => (encoding.0.unwrap_or(UTF_8), 0),
    };
    let file = io::Cursor::new(start.split_off(mark)).chain(file);
    let is_marked = mark > 0;
    let is_judged = !is_marked && encoding == Encoding::AUTO;
    if !charset.is_ascii_compatible() {
        let reader = Box::new(Utf8Reader::new(file, charset));
        return Ok(Lines { reader, encoding: Encoding(Some(UTF_8)), is_marked, in_sections: None });
    }
    let encoding = Encoding(Some(charset));
    let in_sections = Some(section::Lines { encoding, mark: mark as u64, is_judged });
    let reader: Box<dyn Read + Send> = match is_judged {
        true => Box::new(Watched::new(file, None)),
        false => Box::new(file),
    };
    Ok(Lines { reader, encoding, is_marked, in_sections })
}

/// The lines of a section of a file that does not say that it is UTF-8.
pub(crate) fn watched(lines: impl Read + Send, section: Section) -> impl Read + Send {
    Watched::new(lines, Some(section))
}

/// Lines are in another encoding than UTF-8.
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

/// Bytes sampled to detect the encoding, from the first byte that is not ASCII.
const SAMPLE_BYTES: u64 = 1 << 16;

/// A stream that fails with [`NotUtf8`] where the first characters that are not ASCII are in another encoding.
struct Watched<R> {
    inner: R,
    /// Bytes of ASCII that have been read.
    before: u64,
    /// The section that the stream reads, if it reads only a section of a file.
    section: Option<Section>,
    is_judged: bool,
    /// The sample, which is still to be returned, and the error behind it.
    sample: io::Cursor<Vec<u8>>,
    failure: Option<io::Error>,
}

impl<R> Watched<R> {
    fn new(inner: R, section: Option<Section>) -> Self {
        Watched { inner, before: 0, section, is_judged: false, sample: io::Cursor::default(), failure: None }
    }
}

impl<R> Watched<R> {
    /// The encoding that lines look like, by the first that are not ASCII.
    fn other_than_utf8(&self, sample: &[u8]) -> io::Result<Option<Encoding>> {
        let other = encoding::other_than_utf8(sample, self.before);
        // With more ASCII, a smaller share is malformed. A file is judged once.
        match (&other, &self.section) {
            (Some(_), Some(section)) => Ok(section
                .ascii_bytes_before()?
                .and_then(|before| encoding::other_than_utf8(sample, before + self.before))),
            _ => Ok(other),
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.sample.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        let read = self.inner.read(buffer)?;
        if self.is_judged {
            return Ok(read);
        }
        let ascii = Charset::ascii_valid_up_to(&buffer[..read]);
        self.before += ascii as u64;
        if ascii == read {
            return Ok(read);
        }
        self.is_judged = true;
        let mut sample = buffer[ascii..read].to_vec();
        let more = SAMPLE_BYTES.saturating_sub(sample.len() as u64);
        self.failure = (&mut self.inner).take(more).read_to_end(&mut sample).err();
        match self.other_than_utf8(&sample)? {
            Some(other) => self.failure = Some(io::Error::new(io::ErrorKind::InvalidData, NotUtf8(other))),
            None => self.sample = io::Cursor::new(sample),
        }
        // The lines before come first.
        if ascii > 0 { Ok(ascii) } else { self.read(buffer) }
    }
}

/// Makes UTF-8 of a stream in an encoding.
pub(crate) fn utf8_reader(file: impl Read + Send + 'static, encoding: Encoding) -> Box<dyn Read + Send> {
    match encoding.0 {
        None => Box::new(file),
        Some(charset) if charset == UTF_8 => Box::new(file),
        Some(charset) => Box::new(Utf8Reader::new(file, charset)),
    }
}

/// Converts a stream to UTF-8. Malformed bytes become [`MALFORMED`]: they are replaced and counted where the line is decoded.
struct Utf8Reader<R> {
    inner: R,
    decoder: Decoder,
    input: Vec<u8>,
    /// How far `input` is decoded.
    decoded: usize,
    output: Vec<u8>,
    /// How far `output` is handed out.
    given: usize,
    /// Whether `inner` has ended, and then the decoder.
    ended: bool,
    finished: bool,
}

impl<R: Read> Utf8Reader<R> {
    const CHUNK: usize = 1 << 14;

    fn new(inner: R, charset: &'static Charset) -> Self {
        Utf8Reader {
            inner,
            decoder: charset.new_decoder_without_bom_handling(),
            input: Vec::new(),
            decoded: 0,
            output: Vec::new(),
            given: 0,
            ended: false,
            finished: false,
        }
    }

    /// Decodes more, when all has been handed out.
    fn fill(&mut self) -> io::Result<()> {
        self.output.clear();
        self.given = 0;
        if self.decoded == self.input.len() && !self.ended {
            self.input.resize(Self::CHUNK, 0);
            let read = self.inner.read(&mut self.input);
            self.input.truncate(*read.as_ref().unwrap_or(&0));
            self.decoded = 0;
            self.ended = read? == 0;
        }
        // No byte of any encoding becomes more than 3 bytes of UTF-8.
        self.output.resize(3 * Self::CHUNK + 16, 0);
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
        while self.given == self.output.len() {
            if self.finished {
                return Ok(0);
            }
            self.fill()?;
        }
        let count = buffer.len().min(self.output.len() - self.given);
        buffer[..count].copy_from_slice(&self.output[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bytes::encoding::decode_line;
    use crate::bytes::encoding::tests::{encoded, encoding};

    /// Reads a few bytes at a time.
    struct Trickle(io::Cursor<Vec<u8>>);

    impl Read for Trickle {
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
            let mut lines = line_reader(Trickle(io::Cursor::new(bytes)), asked).unwrap();
            let mut read = Vec::new();
            lines.reader.read_to_end(&mut read).unwrap();
            assert!(read == text.as_bytes(), "{label}");
            assert_eq!((lines.encoding, lines.is_marked), (encoding("utf-8"), !mark.is_empty()));
        }
        // Half a surrogate pair, and half a character at the end.
        let bytes = b"\xff\xfea\0\0\xd8b\0c".to_vec();
        let mut read = Vec::new();
        line_reader(Trickle(io::Cursor::new(bytes)), Encoding::AUTO)
            .unwrap()
            .reader
            .read_to_end(&mut read)
            .unwrap();
        assert_eq!(decode_line(&read, Encoding::AUTO), ("a\u{fffd}b\u{fffd}".into(), 2));
    }
}
