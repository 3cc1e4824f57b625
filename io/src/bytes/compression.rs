//! Decompresses files, and detects their compression by the file name or by the first bytes.

use std::fmt;
use std::io::{self, BufRead, Read};
use std::path::Path;

use bzip2::bufread::BzDecoder;
use flate2::bufread::GzDecoder;
use liblzma::bufread::XzDecoder;
use liblzma::stream::{self, CONCATENATED, Stream};

use crate::bytes::length_limit::MORE_MEMORY_ADVICE;
use crate::numbers::format_bytes;

/// Number of bytes at the start of a file that are examined to detect its compression.
pub(crate) const MAGIC_BYTES: usize = 10;

/// Base-2 logarithm of the size, in bytes, of the largest zstd window that is accepted. `zstd --long=31` writes
/// windows of 2^31 bytes.
pub(crate) const ZSTD_WINDOW_LOG: u32 = if usize::BITS < 64 { 30 } else { 31 };

/// Compression of an input or output file as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed, or compressed inside the format, as Parquet is.
    None,
    /// gzip (`.gz`).
    Gzip,
    /// Zstandard (`.zst`).
    Zstd,
    /// bzip2 (`.bz2`).
    Bzip2,
    /// xz (`.xz`).
    Xz,
}

impl Compression {
    /// Returns the compression that the last extension of a file name implies. Returns [`Compression::None`] for
    /// other extensions.
    pub fn from_name(path: &Path) -> Compression {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("gz") => Compression::Gzip,
            Some("zst") => Compression::Zstd,
            Some("bz2") => Compression::Bzip2,
            Some("xz") => Compression::Xz,
            _ => Compression::None,
        }
    }

    /// Detects the compression by the first [`MAGIC_BYTES`] bytes of a file. Returns [`Compression::None`] if no
    /// signature matches.
    pub(crate) fn from_head(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, 8, ..] => Compression::Gzip,
            // The second pattern is a skippable frame; parallel compressors begin with one.
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

    /// Returns a reader that decompresses `raw`. If `raw` is a concatenation of compressed files (*members*), the
    /// reader returns the contents of all members one after the other.
    ///
    /// After an error, a gzip reader can be read further: it continues with the next member after the damage.
    /// If decompression needs more than `memory` bytes, the reader returns an error of the kind
    /// [`OutOfMemory`](io::ErrorKind::OutOfMemory).
    pub(crate) fn reader<'r>(
        self,
        raw: impl BufRead + Send + 'r,
        memory: Option<u64>,
    ) -> io::Result<Box<dyn Read + Send + 'r>> {
        Ok(match self {
            Compression::None => Box::new(raw),
            Compression::Gzip => Box::new(GzipMembers::new(raw)),
            Compression::Zstd => {
                let mut decoder = zstd::Decoder::with_buffer(raw)?;
                decoder.window_log_max(zstd_window_log(memory))?;
                Box::new(MemoryLimitedReader { inner: decoder, memory })
            }
            Compression::Bzip2 => Box::new(Bzip2Members { member: Some(BzDecoder::new(raw)) }),
            Compression::Xz => {
                let stream = Stream::new_stream_decoder(memory.unwrap_or(u64::MAX), CONCATENATED)?;
                Box::new(MemoryLimitedReader { inner: XzDecoder::new_stream(raw, stream), memory })
            }
        })
    }
}

/// Returns the base-2 logarithm of the size, in bytes, of the largest zstd window that can be decoded within
/// `memory` bytes.
pub(crate) fn zstd_window_log(memory: Option<u64>) -> u32 {
    // The other half is for the decoder's further buffers.
    memory.map_or(ZSTD_WINDOW_LOG, |memory| (memory.max(1 << 12) / 2).ilog2().min(ZSTD_WINDOW_LOG))
}

/// A decompressing reader. If decompression needs more than `memory` bytes, the reader returns an error that advises
/// the user to raise the option `memory`.
pub(crate) struct MemoryLimitedReader<R> {
    pub(crate) inner: R,
    pub(crate) memory: Option<u64>,
}

impl<R: Read> Read for MemoryLimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            let xz_error = error.get_ref().and_then(|inner| inner.downcast_ref::<stream::Error>());
            match (self.memory, xz_error) {
                (Some(memory), Some(stream::Error::MemLimit)) => memory_limit_error(memory),
                // The zstd library reports this only in its message.
                (Some(memory), None) if error.to_string().contains("too much memory") => {
                    memory_limit_error(memory)
                }
                _ => error,
            }
        })
    }
}

fn memory_limit_error(memory: u64) -> io::Error {
    let memory = format_bytes(memory);
    let reason = format!("decompression needs more than {memory} of memory; {MORE_MEMORY_ADVICE}");
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

/// Skips the zero bytes between two compressed members: tapes and some tools pad members with zeros. Returns false
/// at the end of the file.
fn skip_zeros(raw: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = raw.fill_buf()?;
        if bytes.is_empty() {
            return Ok(false);
        }
        let zeros = bytes.iter().position(|&byte| byte != 0);
        let skipped = zeros.unwrap_or(bytes.len());
        raw.consume(skipped);
        if zeros.is_some() {
            return Ok(true);
        }
    }
}

/// Decompressing reader of a bzip2 file, which may be a concatenation of several compressed members.
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
            if skip_zeros(&mut raw)? {
                self.member = Some(BzDecoder::new(raw));
            }
        }
        Ok(0)
    }
}

/// A reader that returns first the `bytes` that were put back, and then the bytes of `raw`.
struct PushbackReader<R> {
    bytes: Vec<u8>,
    raw: R,
}

impl<R: BufRead> Read for PushbackReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: BufRead> BufRead for PushbackReader<R> {
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

/// Decompressing reader of a gzip file, which may be a concatenation of several compressed members. After damage,
/// it continues with the next member.
struct GzipMembers<R> {
    member: Option<GzDecoder<PushbackReader<R>>>,
    /// The compressed input between two members; `None` while the decoder `member` owns it.
    raw: Option<PushbackReader<R>>,
    is_damaged: bool,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(raw: R) -> Self {
        let raw = PushbackReader { bytes: Vec::new(), raw };
        GzipMembers { member: Some(GzDecoder::new(raw)), raw: None, is_damaged: false }
    }

    /// Skips damaged data up to the next bytes that may begin a gzip member. Returns false at the end of the file.
    fn find_member(raw: &mut PushbackReader<R>) -> io::Result<bool> {
        let is_start = |header: &[u8]| header[..3] == [0x1f, 0x8b, 8] && header[3] & 0xe0 == 0;
        // The last skipped bytes: a header may begin in them and continue in the next buffer.
        let mut last = Vec::new();
        loop {
            let bytes = raw.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let joint = [&last[..], &bytes[..bytes.len().min(3)]].concat();
            if let Some(start) = joint.windows(4).position(is_start).filter(|start| *start < last.len()) {
                // Bytes that were put back earlier are still unread, and follow these bytes.
                raw.bytes.splice(..0, last.drain(start..));
                return Ok(true);
            }
            let start = bytes.windows(4).position(is_start);
            let skipped = start.unwrap_or(bytes.len());
            last.extend_from_slice(&bytes[skipped.saturating_sub(3)..skipped]);
            last.drain(..last.len().saturating_sub(3));
            raw.consume(skipped);
            if start.is_some() {
                return Ok(true);
            }
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
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
            let is_there = if self.is_damaged { Self::find_member(&mut raw)? } else { skip_zeros(&mut raw)? };
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
            let mut reader = GzipMembers::new(BufReader::with_capacity(capacity, &bytes[..]));
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
