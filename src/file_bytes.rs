//! The bytes of a file, as a memory map or as a buffer. No other module maps files.

use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::Range;

#[cfg(unix)]
use memmap2::Advice;
use memmap2::{Mmap, MmapMut};

/// Bytes with random access: a mapped file, or a buffer in memory.
#[derive(Debug)]
pub struct Bytes(ByteSource);

/// Number of bytes that [`Bytes::copy_to`] asks the operating system to load at once.
const COPY_BYTES: usize = 1 << 20;

#[derive(Debug)]
enum ByteSource {
    Mapped(Mmap),
    Read(Mmap),
    Buffer(Vec<u8>),
}

impl Bytes {
    /// Maps a file. The operating system reads a page when it is first touched.
    ///
    /// # Errors
    /// Errors of the operating system.
    #[expect(unsafe_code, reason = "a map is the one thing here that the compiler cannot vouch for")]
    pub fn map(file: &File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes(ByteSource::Buffer(Vec::new())));
        }
        // SAFETY: the map is read-only and private to this value. A reference into it is only sound while the file does not
        // change. simstore never writes to a file that has its final name. It only replaces or removes such a file, which
        // leaves the mapped file unchanged. The documentation of `Snapshot::open` requires the same of other programs.
        let map = unsafe { Mmap::map(file)? };
        // A hint, so an error does not matter. Look-ups touch single blocks: reading ahead would waste memory and disk
        // bandwidth.
        #[cfg(unix)]
        let _ = map.advise(Advice::Random);
        Ok(Bytes(ByteSource::Mapped(map)))
    }

    /// Reads a whole file into anonymous memory, in huge pages if the system has them. Huge pages make random
    /// reads faster, since most addresses are then found in the processor's translation lookaside buffer (TLB).
    ///
    /// # Errors
    /// Errors of the operating system.
    pub fn read(mut file: &File) -> io::Result<Bytes> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if len == 0 {
            return Ok(Bytes(ByteSource::Buffer(Vec::new())));
        }
        let mut map = MmapMut::map_anon(len)?;
        // A hint, so an error does not matter.
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        file.read_exact(&mut map)?;
        Ok(Bytes(ByteSource::Read(map.make_read_only()?)))
    }
}

impl Bytes {
    /// Writes all bytes to `sink`.
    pub(crate) fn copy_to(&self, mut sink: impl Write) -> io::Result<()> {
        let all = self.as_ref();
        for start in (0..all.len()).step_by(COPY_BYTES) {
            let end = (start + COPY_BYTES).min(all.len());
            self.will_need(start..end);
            sink.write_all(&all[start..end])?;
        }
        Ok(())
    }

    /// If the file is mapped, advises the operating system that this range will be read soon. The system can
    /// then load the range from the disk in advance.
    pub(crate) fn will_need(&self, bytes: Range<usize>) {
        #[cfg(not(unix))]
        let _ = bytes;
        #[cfg(unix)]
        if let ByteSource::Mapped(map) = &self.0 {
            // A hint, so an error does not matter. The range lies in the map.
            let _ = map.advise_range(Advice::WillNeed, bytes.start, bytes.len());
        }
    }
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            ByteSource::Mapped(map) | ByteSource::Read(map) => map,
            ByteSource::Buffer(buffer) => buffer,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(buffer: Vec<u8>) -> Bytes {
        Bytes(ByteSource::Buffer(buffer))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn mapped_and_read_are_the_same() {
        for len in [0, 1, 4096, 3 << 20] {
            let content: Vec<u8> = (0..len).map(|i: u32| (i * 7 / 8) as u8).collect();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&content).unwrap();
            let open = || File::open(file.path()).unwrap();
            assert!(Bytes::map(&open()).unwrap().as_ref() == content);
            assert!(Bytes::read(&open()).unwrap().as_ref() == content);
        }
    }
}
