//! A file from a place in it on, decompressed; it tells where in the stream another place is.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use flate2::bufread::GzDecoder;
use zstd::stream::raw::{self, InBuffer, Operation, OutBuffer};
use zstd::zstd_safe::DParameter;

use crate::bytes::compression::{Compression, zstd_window_log};
use crate::progress::{Counted, ReadProgress};

const BUFFER_BYTES: usize = 1 << 16;

/// Where a place of a file is in a stream: known when the stream has come there, and only if a member ends there.
#[derive(Debug)]
pub(crate) struct Border(AtomicU64);

impl Border {
    fn set(&self, bytes: u64) {
        self.0.store(bytes, Ordering::Relaxed);
    }

    /// Bytes of the stream before it; more than there can be, as long as that is not known. What has come of the stream until
    /// then is before it.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(crate) fn is_known(&self) -> bool {
        self.bytes() < u64::MAX
    }
}

/// A file as it is on disk, and where in it the reading is.
struct Raw {
    file: BufReader<Counted<File>>,
    at: u64,
}

impl Read for Raw {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl BufRead for Raw {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.file.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes as u64;
        self.file.consume(bytes);
    }
}

/// The stream.
pub(crate) struct Stream {
    form: Form,
    /// The place in the file.
    to: u64,
    border: Arc<Border>,
    /// Bytes that have come.
    given: u64,
}

enum Form {
    Plain(Raw),
    /// Within a member, and between two.
    Member(GzDecoder<Raw>),
    Members(Raw),
    Frames {
        raw: Raw,
        decoder: raw::Decoder<'static>,
        in_frame: bool,
    },
    Ended,
}

impl Stream {
    /// A file from a place on, where a member or frame begins if it is compressed; `to` is the other place, if there is one.
    /// Unpacking may take so much memory.
    ///
    /// # Errors
    /// Those of opening, and [`InvalidInput`](io::ErrorKind::InvalidInput) for a compression whose members are not told apart.
    pub(crate) fn open(
        path: &Path,
        compression: Compression,
        memory: Option<u64>,
        from: u64,
        to: Option<u64>,
        progress: &Arc<ReadProgress>,
    ) -> io::Result<Stream> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(from))?;
        let file = BufReader::with_capacity(BUFFER_BYTES, Counted::new(file, progress));
        let raw = Raw { file, at: from };
        let border = Border(AtomicU64::new(u64::MAX));
        let form = match compression {
            Compression::None => {
                to.iter().for_each(|to| border.set(to - from));
                Form::Plain(raw)
            }
            Compression::Gzip => Form::Members(raw),
            Compression::Zstd => {
                let mut decoder = raw::Decoder::new()?;
                decoder.set_parameter(DParameter::WindowLogMax(zstd_window_log(memory)))?;
                Form::Frames { raw, decoder, in_frame: false }
            }
            Compression::Bzip2 | Compression::Xz => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Stream { form, to: to.unwrap_or(u64::MAX), border: Arc::new(border), given: 0 })
    }

    /// Where the place is in the stream.
    pub(crate) fn border(&self) -> Arc<Border> {
        Arc::clone(&self.border)
    }

    /// A member has ended here in the file.
    fn end_member(&self, at: u64) {
        if at == self.to {
            self.border.set(self.given);
        }
    }

    fn read_gzip(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match std::mem::replace(&mut self.form, Form::Ended) {
                Form::Members(mut raw) => {
                    let is_end = raw.fill_buf().map(<[u8]>::is_empty);
                    self.form = match is_end {
                        Ok(false) => Form::Member(GzDecoder::new(raw)),
                        _ => Form::Members(raw),
                    };
                    if is_end? {
                        return Ok(0);
                    }
                }
                Form::Member(mut member) => match member.read(buffer) {
                    Ok(0) => {
                        let raw = member.into_inner();
                        self.end_member(raw.at);
                        self.form = Form::Members(raw);
                    }
                    read => {
                        self.form = Form::Member(member);
                        return read;
                    }
                },
                _ => return Ok(0),
            }
        }
    }

    fn read_zstd(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let Form::Frames { raw, decoder, in_frame } = &mut self.form else { return Ok(0) };
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
            self.given += written as u64;
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

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        match &mut self.form {
            Form::Plain(raw) => raw.read(buffer),
            Form::Member(_) | Form::Members(_) => {
                let read = self.read_gzip(buffer)?;
                self.given += read as u64;
                Ok(read)
            }
            Form::Frames { .. } => self.read_zstd(buffer),
            Form::Ended => Ok(0),
        }
    }
}
