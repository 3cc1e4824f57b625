//! Compressing what is written.

use std::fmt;
use std::io::{self, Write};

use bzip2::write::BzEncoder;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::Compression;

/// A writer that compresses; [`Compressor::finish`] must be called at the end.
///
/// ```
/// use std::io::Write;
/// use std::path::Path;
///
/// use simstore_io::{Compression, Compressor};
///
/// let compression = Compression::of_name(Path::new("unique.jsonl.gz"));
/// let mut writer = Compressor::new(compression, Vec::new())?;
/// writer.write_all(b"{}\n")?;
/// assert_eq!(writer.finish()?[..2], [0x1f, 0x8b]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Compressor<W: Write>(Encoder<W>);

enum Encoder<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
    Bzip2(BzEncoder<W>),
    Xz(XzEncoder<W>),
    /// A member has ended: what is written next begins another.
    BetweenGzip(W),
    Broken,
}

impl<W: Write> fmt::Debug for Compressor<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Compressor").finish_non_exhaustive()
    }
}

impl<W: Write> Compressor<W> {
    /// A writer that compresses like this.
    ///
    /// # Errors
    /// If there is no memory for it.
    pub fn new(compression: Compression, write: W) -> io::Result<Self> {
        Ok(Compressor(match compression {
            Compression::None => Encoder::Plain(write),
            Compression::Gzip => gzip(write),
            Compression::Zstd => {
                let mut encoder = zstd::Encoder::new(write, zstd::DEFAULT_COMPRESSION_LEVEL)?;
                encoder.include_checksum(true)?;
                Encoder::Zstd(encoder)
            }
            Compression::Bzip2 => Encoder::Bzip2(BzEncoder::new(write, bzip2::Compression::default())),
            Compression::Xz => Encoder::Xz(XzEncoder::new(write, 6)),
        }))
    }

    /// A writer that does not compress.
    pub fn plain(write: W) -> Self {
        Compressor(Encoder::Plain(write))
    }

    /// Ends a member of a gzip file, so that what comes next can be read by itself: web archives have each record in one.
    /// In other compressions nothing happens.
    ///
    /// # Errors
    /// If what is left cannot be written.
    pub fn end_member(&mut self) -> io::Result<()> {
        if let Encoder::Gzip(_) = self.0
            && let Encoder::Gzip(encoder) = std::mem::replace(&mut self.0, Encoder::Broken)
        {
            self.0 = Encoder::BetweenGzip(encoder.finish()?);
        }
        Ok(())
    }

    /// Writes what is left and hands the output back.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Encoder::Plain(write) | Encoder::BetweenGzip(write) => Ok(write),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Bzip2(encoder) => encoder.finish(),
            Encoder::Xz(encoder) => encoder.finish(),
            Encoder::Broken => Err(broken()),
        }
    }
}

fn gzip<W: Write>(write: W) -> Encoder<W> {
    Encoder::Gzip(GzEncoder::new(write, flate2::Compression::default()))
}

fn broken() -> io::Error {
    io::Error::other("an earlier write has failed")
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Encoder::BetweenGzip(_) = self.0
            && let Encoder::BetweenGzip(write) = std::mem::replace(&mut self.0, Encoder::Broken)
        {
            self.0 = gzip(write);
        }
        match &mut self.0 {
            Encoder::Plain(write) | Encoder::BetweenGzip(write) => write.write(bytes),
            Encoder::Gzip(encoder) => encoder.write(bytes),
            Encoder::Zstd(encoder) => encoder.write(bytes),
            Encoder::Bzip2(encoder) => encoder.write(bytes),
            Encoder::Xz(encoder) => encoder.write(bytes),
            Encoder::Broken => Err(broken()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Encoder::Plain(write) | Encoder::BetweenGzip(write) => write.flush(),
            Encoder::Gzip(encoder) => encoder.flush(),
            Encoder::Zstd(encoder) => encoder.flush(),
            Encoder::Bzip2(encoder) => encoder.flush(),
            Encoder::Xz(encoder) => encoder.flush(),
            Encoder::Broken => Err(broken()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_is_compressed_comes_back() {
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
