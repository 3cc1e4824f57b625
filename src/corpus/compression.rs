//! Compressed files: told by name or by their first bytes, and decompressed.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::MultiGzDecoder;
use liblzma::bufread::XzDecoder;

/// Bytes that tell how a file is compressed.
pub(crate) const MAGIC_BYTES: usize = 10;

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all, or inside, as Parquet is.
    None,
    /// `.gz`
    Gzip,
    /// `.zst`
    Zstd,
    /// `.bz2`
    Bzip2,
    /// `.xz`
    Xz,
}

impl Compression {
    /// What the last extension of a name tells.
    pub fn of_name(path: &Path) -> Compression {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            Some("bz2") => Compression::Bzip2,
            Some("xz") => Compression::Xz,
            _ => Compression::None,
        }
    }

    /// What the first [`MAGIC_BYTES`] of a file tell.
    pub(crate) fn of_head(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            // The second is a frame that holds no data; parallel compressors begin with one.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // Three letters would be too little evidence: the number of a block, or of the end, must follow.
            [b'B', b'Z', b'h', b'1'..=b'9', number @ ..]
                if number.starts_with(b"\x31\x41\x59\x26\x53\x59")
                    || number.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
            {
                Compression::Bzip2
            }
            _ => Compression::None,
        }
    }

    /// Reads through the compression, however many members there are in a row.
    pub(crate) fn reader<'r>(self, raw: impl BufRead + Send + 'r) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(MultiGzDecoder::new(raw)),
            Compression::Zstd => Box::new(zstd::Decoder::with_buffer(raw)?),
            Compression::Bzip2 => Box::new(MultiBzDecoder::new(raw)),
            Compression::Xz => Box::new(XzDecoder::new_multi_decoder(raw)),
        })
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Bzip2 => "bzip2",
            Compression::Xz => "xz",
        })
    }
}
