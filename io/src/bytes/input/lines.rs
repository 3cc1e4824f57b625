//! Reads an input by lines, in blocks.

use std::io::Read;

use bytes::{BufMut, Bytes};
use memchr::memchr;

use super::Input;
use crate::bytes::length_limit::LengthLimit;
use crate::bytes::section::SectionCursor;
use simstore::Result;

/// Size in bytes of a block, a piece of memory into which several lines are read. The returned lines share the
/// memory of their block. For a longer line, the block is larger.
const BLOCK_BYTES: usize = 1 << 16;
/// Minimum free space of a block, in bytes. If a block has less, the next read goes into a new block.
const MIN_SPACE_BYTES: usize = 1 << 12;

impl Input {
    /// Reads the next line that is not blank, without its newline. Returns `None` at the end of the input.
    ///
    /// # Errors
    /// [`Error::BadInput`](simstore::Error::BadInput) for an unreadable input, and for a line that is longer than `limit`.
    /// After such a line, the next call continues with the next line.
    pub fn read_line(&mut self, limit: LengthLimit) -> Result<Option<Bytes>> {
        loop {
            if let Some(cursor) = self.section.as_ref() {
                cursor.outcome.set_lines(self.line);
                if cursor.is_over() {
                    return Ok(None);
                }
            }
            let Some(NextLine { length, ends }) = self.find_line(limit)? else {
                self.section.iter().for_each(SectionCursor::end);
                return Ok(None);
            };
            self.line += 1;
            let mut line = self.block.split_to(length).freeze();
            self.advance(length);
            if ends {
                line.truncate(length - 1);
            }
            if line.len() > limit.bytes {
                if !ends {
                    self.skip_line()?;
                }
                return Err(self.too_long(limit));
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Finds the end of the next line, reading more bytes into the block if necessary. If the result has no newline,
    /// it is the last line, or longer than `limit`. Returns `None` at the end of the input.
    fn find_line(&mut self, limit: LengthLimit) -> Result<Option<NextLine>> {
        let mut searched = 0;
        loop {
            if let Some(at) = memchr(b'\n', &self.block[searched..]) {
                return Ok(Some(NextLine { length: searched + at + 1, ends: true }));
            }
            searched = self.block.len();
            if searched > limit.bytes || !self.fill_block()? {
                return Ok(Some(NextLine { length: searched, ends: false }).filter(|_| searched > 0));
            }
        }
    }

    /// Skips the rest of a line that is too long.
    fn skip_line(&mut self) -> Result<()> {
        loop {
            let (length, ends) = match memchr(b'\n', &self.block) {
                Some(at) => (at + 1, true),
                None => (self.block.len(), false),
            };
            drop(self.block.split_to(length));
            self.advance(length);
            if ends || !self.fill_block()? {
                return Ok(());
            }
        }
    }

    /// Makes one read call, and appends the bytes that it returns to the block. Returns false at the end of the
    /// input.
    fn fill_block(&mut self) -> Result<bool> {
        let space = self.block.capacity() - self.block.len();
        if space < MIN_SPACE_BYTES {
            self.block.reserve(BLOCK_BYTES.max(self.block.len()));
        }
        let start = self.block.len();
        let space = self.block.capacity() - start;
        self.block.put_bytes(0, space);
        let read = self.reader.read(&mut self.block[start..]);
        self.block.truncate(start + read.as_ref().map_or(0, |&read| read));
        read.map(|read| read > 0).map_err(|error| self.read_failure(&error))
    }

    /// If the input is a section of a file, moves the position in the section by `bytes`.
    fn advance(&mut self, bytes: usize) {
        self.section.iter_mut().for_each(|cursor| cursor.advance(bytes));
    }
}

/// Length of the next line, which starts with the first unread byte of the input's block.
struct NextLine {
    /// Length of the line in bytes, including its newline.
    length: usize,
    /// Whether the line ends with a newline.
    ends: bool,
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};
    use std::path::Path;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::bytes::encoding::Encoding;
    use crate::read_progress::CountingReader;
    use crate::{Compression, Compressor};

    /// A reader that returns at most the given number of bytes per call.
    struct TrickleReader(io::Cursor<Vec<u8>>, usize);

    impl Read for TrickleReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len().min(self.1);
            self.0.read(&mut buffer[..count])
        }
    }

    /// A reader that is interrupted in two of three calls, and returns a few bytes in the third.
    struct InterruptedReader(TrickleReader, usize);

    impl Read for InterruptedReader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            let is_interrupted = !self.1.is_multiple_of(3);
            if is_interrupted { Err(io::ErrorKind::Interrupted.into()) } else { self.0.read(buffer) }
        }
    }

    #[test]
    fn interrupted_calls_are_repeated() {
        let text: String = (0..30_000).map(|number| format!("line {number}\n")).collect();
        let all =
            [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Bzip2, Compression::Xz];
        for compression in all {
            let mut writer = Compressor::new(compression, Vec::new()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
            let bytes = writer.finish().unwrap();
            let (length, progress) = (bytes.len() as u64, Arc::default());
            let reader = InterruptedReader(TrickleReader(io::Cursor::new(bytes), 1000), 0);
            let reader = Box::new(CountingReader::new(reader, &progress));
            let mut input = Input::from_archive_member(Path::new("lines"), reader, None, &progress).unwrap();
            assert_eq!(input.peek(4).unwrap(), b"line");
            let mut input = input.into_lines(Encoding::UTF_8).unwrap();
            let mut read = Vec::new();
            while let Some(line) = input.read_line(LengthLimit::fixed(100)).unwrap() {
                read.extend_from_slice(&line);
                read.push(b'\n');
            }
            assert!(read == text.as_bytes(), "{compression}");
            assert_eq!(progress.bytes(), length, "{compression}");
        }
    }

    /// Reads lines from `bytes`, at most `step` bytes in a read call. Returns the lines with their numbers, and the
    /// numbers of the lines that are longer than `longest`.
    fn read(bytes: Vec<u8>, step: usize, longest: LengthLimit) -> (Vec<(u64, Vec<u8>)>, Vec<u64>) {
        let reader = Box::new(TrickleReader(io::Cursor::new(bytes), step));
        let input = Input::from_archive_member(Path::new("lines"), reader, None, &Arc::default()).unwrap();
        let mut input = input.into_lines(Encoding::UTF_8).unwrap();
        let (mut lines, mut too_long) = (Vec::new(), Vec::new());
        loop {
            match input.read_line(longest) {
                Ok(Some(line)) => lines.push((input.line(), line.to_vec())),
                Ok(None) => return (lines, too_long),
                Err(_) => too_long.push(input.line()),
            }
        }
    }

    proptest! {
        #[test]
        fn lines_are_what_newlines_separate(
            lines in prop::collection::vec(prop_oneof![0_usize..9, 90_usize..110, 60_000_usize..140_000], 0..9),
            blank in any::<u8>(),
            step in prop_oneof![1_usize..40, 1_usize..1 << 18],
            longest in prop_oneof![95_usize..105, Just(1 << 20)],
            ends in any::<bool>(),
        ) {
            // Small steps through long lines would be slow.
            let step = if lines.iter().any(|&length| length > 1000) { step.max(50) } else { step };
            let sign = |number: usize| if number.is_multiple_of(3) && blank < 100 { b' ' } else { b'a' };
            let lines: Vec<Vec<u8>> =
                lines.iter().enumerate().map(|(number, &length)| vec![sign(number); length]).collect();
            let mut bytes = lines.join(&b'\n');
            if ends {
                bytes.push(b'\n');
            }
            let numbered = (1..).zip(lines);
            let (expected, too_long): (Vec<_>, Vec<_>) = numbered.partition(|(_, line)| line.len() <= longest);
            let expected: Vec<_> =
                expected.into_iter().filter(|(_, line)| !line.trim_ascii().is_empty()).collect();
            let too_long: Vec<u64> = too_long.into_iter().map(|(number, _)| number).collect();
            prop_assert!(read(bytes, step, LengthLimit::fixed(longest)) == (expected, too_long));
        }
    }
}
