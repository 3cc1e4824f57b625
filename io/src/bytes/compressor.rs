//! A writer that compresses output in any of the supported formats.

use std::fmt;
use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::Compression;

/// A compressing writer. Call [`Compressor::finish`] at the end.
///
/// ```
/// use std::io::Write;
/// use std::path::Path;
///
/// use simstore_io::{Compression, Compressor};
///
/// let compression = Compression::from_name(Path::new("unique.jsonl.gz"));
/// let mut writer = Compressor::new(compression, Vec::new())?;
/// writer.write_all(b"{}\n")?;
/// assert_eq!(writer.finish()?[..2], [0x1f, 0x8b]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Compressor<W: Write>(EncoderState<W>);

enum EncoderState<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
    Xz(XzEncoder<W>),
    /// A gzip member has ended, and the next write begins another one.
    GzipMemberEnded(W),
    Broken,
}

impl<W: Write> fmt::Debug for Compressor<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl<W: Write> Compressor<W> {
    /// Creates a writer that passes the compressed bytes to `write`.
    ///
    /// # Errors
    /// If the encoder cannot be allocated.
    pub fn new(compression: Compression, write: W) -> io::Result<Self> {
        Ok(Compressor(match compression {
            Compression::None => EncoderState::Plain(write),
            Compression::Gzip => gzip(write),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(write, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                EncoderState::Zstd(encoder)
            }
            Compression::Bzip2 => EncoderState::Bzip2(BzEncoder::new(write, bzip2::Compression::default())),
            Compression::Xz => EncoderState::Xz(XzEncoder::new(write, 6)),
        }))
    }

    /// Creates a writer that does not compress.
    pub fn uncompressed(write: W) -> Self {
        Compressor(EncoderState::Plain(write))
    }

    /// Ends the current gzip member, so that the following data can be decompressed without the data before
    /// it. In a compressed web archive, each record is a member. For other compressions, this does nothing.
    ///
    /// # Errors
    /// If buffered data cannot be written.
    pub fn end_member(&mut self) -> io::Result<()> {
        if let EncoderState::Gzip(_) = self.0
            && let EncoderState::Gzip(encoder) = std::mem::replace(&mut self.0, EncoderState::Broken)
        {
            self.0 = EncoderState::GzipMemberEnded(encoder.finish()?);
        }
        Ok(())
    }

    /// Ends the compressed data, and returns the writer that [`Compressor::new`] was given.
    ///
    /// # Errors
    /// If the data cannot be written.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            EncoderState::Plain(write) | EncoderState::GzipMemberEnded(write) => Ok(write),
            EncoderState::Gzip(encoder) => encoder.finish(),
            EncoderState::Zstd(encoder) => encoder.finish(),
            EncoderState::Bzip2(encoder) => encoder.finish(),
            EncoderState::Xz(encoder) => encoder.finish(),
            EncoderState::Broken => Err(after_failure()),
        }
    }
}

fn gzip<W: Write>(write: W) -> EncoderState<W> {
    EncoderState::Gzip(GzEncoder::new(write, flate2::Compression::default()))
}

fn after_failure() -> io::Error {
    io::Error::other("an earlier write has failed")
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let EncoderState::GzipMemberEnded(_) = self.0
            && let EncoderState::GzipMemberEnded(write) = std::mem::replace(&mut self.0, EncoderState::Broken)
        {
            self.0 = gzip(write);
        }
        match &mut self.0 {
            EncoderState::Plain(write) | EncoderState::GzipMemberEnded(write) => write.write(bytes),
            EncoderState::Gzip(encoder) => encoder.write(bytes),
            EncoderState::Zstd(encoder) => encoder.write(bytes),
            EncoderState::Bzip2(encoder) => encoder.write(bytes),
            EncoderState::Xz(encoder) => encoder.write(bytes),
            EncoderState::Broken => Err(after_failure()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            EncoderState::Plain(write) | EncoderState::GzipMemberEnded(write) => write.flush(),
            EncoderState::Gzip(encoder) => encoder.flush(),
            EncoderState::Zstd(encoder) => encoder.flush(),
            EncoderState::Bzip2(encoder) => encoder.flush(),
            EncoderState::Xz(encoder) => encoder.flush(),
            EncoderState::Broken => Err(after_failure()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn compressed_bytes_are_restored() {
        let all =
            [Compression::None, Compression::Gzip, Compression::Zstd, Compression::Bzip2, Compression::Xz];
        for compression in all {
            for parts in [&[][..], &[&b"a"[..]], &[b"some words ", b"", b"more words"]] {
                let mut writer = Compressor::new(compression, Vec::new()).unwrap();
                for part in parts {
                    writer.write_all(part).unwrap();
                    writer.end_member().unwrap();
                }
                let written = writer.finish().unwrap();
                let mut read = Vec::new();
                compression.reader(&written[..], None).unwrap().read_to_end(&mut read).unwrap();
                assert_eq!(read, parts.concat(), "{compression}");
                assert!(compression == Compression::None || !written.is_empty(), "{compression}");
                if compression == Compression::Gzip && parts.len() == 3 {
                    let starts = written.windows(3).filter(|bytes| **bytes == [0x1f, 0x8b, 8]).count();
                    assert_eq!(starts, 2);
                }
            }
        }
    }
}
