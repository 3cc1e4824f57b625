//! Decompresses files; detects the compression by name or by the first bytes.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{self, CONCATENATED, Stream};

use crate::bytes::limit::MORE_MEMORY;
use crate::numbers::bytes;

/// Bytes needed to detect how a file is compressed.
pub(crate) const MAGIC_BYTES: usize = 10;

/// Largest Zstandard window accepted, as a power of two. `zstd --long=31` writes windows of this size.
pub(crate) const ZSTD_WINDOW_LOG: u32 = if usize::BITS < 64 { 30 } else { 31 };

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed, or compressed inside the format, as Parquet is.
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
    /// Returns the compression for the last extension of a name.
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

    /// Detects the compression by the first [`MAGIC_BYTES`] of a file.
    pub(crate) fn of_head(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            // The second is a frame without data; parallel compressors begin with one.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Compression::Zstd,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            // Three letters would be too little evidence: a block number or the end number must follow.
            [b'B', b'Z', b'h', b'1'..=b'9', number @ ..]
                if number.starts_with(b"\x31\x41\x59\x26\x53\x59")
                    || number.starts_with(b"\x17\x72\x45\x38\x50\x90") =>
            {
                Compression::Bzip2
            }
            _ => Compression::None,
        }
    }

    /// Returns a reader of the decompressed bytes of all members.
    ///
    /// After an error, gzip may be read further: the reader continues with the next member behind the damage.
    /// Decompression that needs more than `memory` bytes fails with an error of the kind
    /// [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    pub(crate) fn reader<'r>(
        self,
        raw: impl BufRead + Send + 'r,
        memory: Option<u64>,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(Members::new(raw)),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(raw)?;
                decoder.window_log_max(zstd_window_log(memory))?;
                Box::new(Within { inner: decoder, memory })
            }
            Compression::Bzip2 => Box::new(Bzip2Members { member: Some(BzDecoder::new(raw)) }),
            Compression::Xz => {
                let stream = Stream::new_stream_decoder(memory.unwrap_or(u64::MAX), CONCATENATED)?;
                Box::new(Within { inner: XzDecoder::new_stream(raw, stream), memory })
            }
        })
    }
}

/// Largest Zstandard window that can be decoded in this much memory, as a power of two.
pub(crate) fn zstd_window_log(memory: Option<u64>) -> u32 {
    // Besides the window, the decoder needs memory for the data that it adds to it.
    memory.map_or(ZSTD_WINDOW_LOG, |memory| (memory.max(1 << 12) / 2).ilog2().min(ZSTD_WINDOW_LOG))
}

/// A reader that adds a remedy to the error if decompression needs too much memory.
pub(crate) struct Within<R> {
    pub(crate) inner: R,
    pub(crate) memory: Option<u64>,
}

impl<R: Read> Read for Within<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let of_xz = error.get_ref().and_then(|inner| inner.downcast_ref::<stream::Error>());
            match (self.memory, of_xz) {
                (Some(memory), Some(stream::Error::MemLimit)) => takes_more_than(memory),
                // Zstandard reports this by its message only.
                (Some(memory), None) if error.to_string().contains("too much memory") => {
                    takes_more_than(memory)
                }
                _ => error,
            }
        })
    }
}

fn takes_more_than(memory: u64) -> io::Error {
    let memory = bytes(memory);
    let reason = format!("decompression needs more than {memory} of memory; {MORE_MEMORY}");
    io::Error::new(io::ErrorKind::OutOfMemory, reason)
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

/// Skips zero bytes, which tapes and some tools put after a member. Returns false if nothing follows them.
fn pass_zeros(raw: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = raw.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().position(|&byte| byte != 0);
        let passed = zeros.unwrap_or(bytes.len());
        raw.consume(passed);
        if zeros.is_some() {
            return Ok(true);
        }
    }
}

/// Reader of a bzip2 file with any number of members.
struct Bzip2Members<R> {
    member: Option<BzDecoder<R>>,
}

impl<R: BufRead> Read for Bzip2Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = self.member.as_mut().filter(|_| !buffer.is_empty()) {
            let read = member.read(buffer)?;
            if read > 0 {
                return Ok(read);
            }
            let Some(mut raw) = self.member.take().map(BzDecoder::into_inner) else { break };
            if pass_zeros(&mut raw)? {
                self.member = Some(BzDecoder::new(raw));
            }
        }
        Ok(0)
    }
}

/// A reader with bytes that were put back, to be read again.
struct PutBack<R> {
    bytes: Vec<u8>,
    raw: R,
}

impl<R: BufRead> Read for PutBack<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for PutBack<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.bytes.is_empty() { self.raw.fill_buf() } else { Ok(&self.bytes) }
    }

    fn consume(&mut self, amount: usize) {
        if self.bytes.is_empty() {
            self.raw.consume(amount);
        } else {
            self.bytes.drain(..amount);
        }
    }
}

/// Reader of a gzip file with any number of members.
struct Members<R> {
    member: Option<GzDecoder<PutBack<R>>>,
    /// The input between two members, while no decoder has it.
    raw: Option<PutBack<R>>,
    is_damaged: bool,
}

impl<R: BufRead> Members<R> {
    fn new(raw: R) -> Self {
        let raw = PutBack { bytes: Vec::new(), raw };
        Members { member: Some(GzDecoder::new(raw)), raw: None, is_damaged: false }
    }

    /// Skips to the next bytes that may begin a member. Returns false at the end of the file.
    fn find_member(raw: &mut PutBack<R>) -> io::Result<bool> {
        let is_start = |header: &[u8]| header[..3] == [0x1f, 0x8b, 8] && header[3] & 0xe0 == 0;
        // The last bytes skipped: a header may begin in them and continue in the next buffer.
        let mut last = Vec::new();
        loop {
            let bytes = raw.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let border = [&last[..], &bytes[..bytes.len().min(3)]].concat();
            if let Some(start) = border.windows(4).position(is_start).filter(|start| *start < last.len()) {
                // Bytes put back earlier are still unread, and follow these.
                raw.bytes.splice(..0, last.drain(start..));
                return Ok(true);
            }
            let start = bytes.windows(4).position(is_start);
            let passed = start.unwrap_or(bytes.len());
            last.extend_from_slice(&bytes[passed.saturating_sub(3)..passed]);
            last.drain(..last.len().saturating_sub(3));
            raw.consume(passed);
            if start.is_some() {
                return Ok(true);
            }
        }
    }
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(mut member) = self.member.take() {
                match member.read(buffer) {
                    Ok(0) => self.raw = Some(member.into_inner()),
                    Err(error) => {
                        // Only damaged data can be skipped. After any other error, reading ends.
                        use io::ErrorKind::{InvalidData, InvalidInput};
                        if matches!(error.kind(), InvalidData | InvalidInput) {
                            self.raw = Some(member.into_inner());
                            self.is_damaged = true;
                        }
                        return Err(error);
                    }
                    read => {
                        self.member = Some(member);
                        return read;
                    }
                }
            }
            let Some(mut raw) = self.raw.take() else { return Ok(0) };
            let is_there = if self.is_damaged { Self::find_member(&mut raw)? } else { pass_zeros(&mut raw)? };
            if !is_there {
                return Ok(0);
            }
            self.is_damaged = false;
            self.member = Some(GzDecoder::new(raw));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufReader, Write};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut writer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        writer.write_all(bytes).unwrap();
        writer.finish().unwrap()
    }

    #[test]
    fn a_member_is_found_across_the_border_of_a_buffer() {
        let mut damaged = gzip(b"first");
        let sum = damaged.len() - 8;
        damaged[sum] ^= 1;
        let bytes = [&damaged[..], &[0x1f; 5], &gzip(b"second")].concat();
        for capacity in 1..bytes.len() + 1 {
            let mut reader = Members::new(BufReader::with_capacity(capacity, &bytes[..]));
            let mut read = Vec::new();
            assert!(reader.read_to_end(&mut read).is_err());
            reader.read_to_end(&mut read).unwrap();
            assert_eq!(read, b"firstsecond", "{capacity}");
        }
    }

    #[test]
    fn zeros_after_members_are_padding() {
        let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        bzip2.write_all(b"page").unwrap();
        let bzip2 = bzip2.finish().unwrap();
        for (compression, member) in [(Compression::Gzip, gzip(b"page")), (Compression::Bzip2, bzip2)] {
            let read = |bytes: &[u8]| {
                let mut read = Vec::new();
                compression.reader(BufReader::with_capacity(7, bytes), None)?.read_to_end(&mut read)?;
                io::Result::Ok(read)
            };
            let zeros = [0; 512];
            assert_eq!(read(&[&member[..], &zeros].concat()).unwrap(), b"page");
            assert_eq!(read(&[&member[..], &zeros, &member, &zeros].concat()).unwrap(), b"pagepage");
            assert!(read(&[&member[..], b"more"].concat()).is_err());
            assert!(read(&member[..member.len() - 3]).is_err());
        }
    }
}
