//! Decompresses a file from the start of a section on, and reports where the section ends in the decompressed
//! stream.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use crate::bytes::compression::{Compression, zstd_window_log};
use crate::read_progress::{CountingReader, ReadProgress};

const BUFFER_BYTES: usize = 1 << 16;

/// Position of a section's end in the decompressed stream. In a compressed file, the position is known only after
/// the stream was read up to it, and only if a gzip member or zstd frame ends there.
#[derive(Debug)]
pub(crate) struct SectionBoundary(AtomicU64);

impl SectionBoundary {
    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Number of decompressed bytes before the section's end; `u64::MAX` while the end is not known. As long as the
    /// end is not known, all bytes that were read from the stream are before the end.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.bytes() < u64::MAX
    }
}

/// A file, and the offset of the next byte to read.
struct PositionedFile {
    file: BufReader<CountingReader<File>>,
    at: u64,
}

impl Read for PositionedFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl BufRead for PositionedFile {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.file.consume(bytes);
    }
}

/// Reader of the decompressed bytes of a file from the start of a section on. It does not stop at the section's end.
pub(crate) struct SectionStream {
    state: DecoderState,
    /// Offset of the section's end in the file, in bytes; `u64::MAX` for the end of the file.
    boundary_offset: u64,
    boundary: Arc<SectionBoundary>,
    /// Number of decompressed bytes returned so far.
    produced: u64,
}

enum DecoderState {
    Plain(PositionedFile),
    /// The position is within a gzip member.
    Member(GzDecoder<PositionedFile>),
    /// The position is before, between, or after gzip members.
    Members(PositionedFile),
    /// A file of zstd frames.
    Frames {
        raw: PositionedFile,
        decoder: raw::Decoder<'static>,
        in_frame: bool,
    },
    Ended,
}

impl SectionStream {
    /// Opens a file at offset `from`. If the file is compressed, a gzip member or zstd frame must begin there.
    /// `to` is the offset of the section's end; `None` means the end of the file. Decompression may take `memory`
    /// bytes.
    ///
    /// # Errors
    /// Errors of opening the file, and [`InvalidInput`](io::ErrorKind::InvalidInput) for bzip2 and xz, which can be
    /// decompressed only from the start of the file.
    pub(crate) fn open(
        path: &Path,
        compression: Compression,
        memory: Option<u64>,
        from: u64,
        to: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> io::Result<SectionStream> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let file = BufReader::with_capacity(BUFFER_BYTES, CountingReader::new(file, progress));
        let raw = PositionedFile { file, at: from };
        let boundary = SectionBoundary(AtomicU64::new(u64::MAX));
        let state = match compression {
            Compression::None => {
                to.iter().for_each(|to| boundary.set(to - from));
                DecoderState::Plain(raw)
            }
            Compression::Gzip => DecoderState::Members(raw),
            Compression::Zstd => {
                let mut decoder = raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(zstd_window_log(memory)))?;
                DecoderState::Frames { raw, decoder, in_frame: false }
            }
            Compression::Bzip2 | Compression::Xz => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(SectionStream {
            state,
            boundary_offset: to.unwrap_or(u64::MAX),
            boundary: Arc::new(boundary),
            produced: 0,
        })
    }

    /// Returns the position of the section's end in the decompressed stream. In a compressed file, this reader sets the
    /// position when it reaches the end.
    pub(crate) fn boundary(&self) -> Arc<SectionBoundary> {
        Arc::clone(&self.boundary)
    }

    /// Handles the end of a gzip member or zstd frame at offset `at` of the file. If the section ends at this offset,
    /// sets the [`SectionBoundary`].
    fn end_member(&self, at: u64) {
        if at == self.boundary_offset {
            self.boundary.set(self.produced);
        }
    }

    fn read_gzip(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.state, DecoderState::Ended) {
                DecoderState::Members(mut raw) => {
                    let is_end = raw.fill_buf().map(<[u8]>::is_empty);
                    self.state = match is_end {
                        Ok(false) => DecoderState::Member(GzDecoder::new(raw)),
                        _ => DecoderState::Members(raw),
                    };
                    if is_end? {
                        return Ok(0);
                    }
                }
                DecoderState::Member(mut member) => match member.read(buffer) {
                    Ok(0) => {
                        let raw = member.into_inner();
                        self.end_member(raw.at);
                        self.state = DecoderState::Members(raw);
                    }
                    read => {
                        self.state = DecoderState::Member(member);
                        return read;
                    }
                },
                _ => return Ok(0),
            }
        }
    }

    fn read_zstd(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let DecoderState::Frames { raw, decoder, in_frame } = &mut self.state else { return Ok(0) };
            let input = raw.fill_buf()?;
            let is_end = input.is_empty();
            if !*in_frame {
                if is_end {
                    return Ok(0);
                }
                decoder.reinit()?;
                *in_frame = true;
            }
            let (mut from, mut into) = (InBuffer::around(input), OutBuffer::around(&mut *buffer));
            let is_frame_over = decoder.run(&mut from, &mut into)? == 0;
            let (read, written) = (from.pos(), into.pos());
            raw.consume(read);
            self.produced += written as u64;
            if is_frame_over {
                *in_frame = false;
                let at = raw.at;
                self.end_member(at);
            }
            if written > 0 {
                return Ok(written);
            }
            if is_end && !is_frame_over {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "incomplete frame"));
            }
        }
    }
}

impl Read for SectionStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match &mut self.state {
            DecoderState::Plain(raw) => raw.read(buffer),
            DecoderState::Member(_) | DecoderState::Members(_) => {
                let read = self.read_gzip(buffer)?;
                self.produced += read as u64;
                Ok(read)
            }
            DecoderState::Frames { .. } => self.read_zstd(buffer),
            DecoderState::Ended => Ok(0),
        }
    }
}
