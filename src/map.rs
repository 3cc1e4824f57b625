//! The bytes of a file: a memory map of it, or memory that it was read into. The one place where files are mapped.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

#[cfg(unix)]
use memmap2::Advice;
use memmap2::{Mmap, MmapMut};

/// Bytes that can be read at random: a mapped file, or a buffer in memory.
#[derive(Debug)]
pub struct Bytes(Source);

#[derive(Debug)]
enum Source {
    Mapped(Mmap),
    Read(Mmap),
    Buffer(Vec<u8>),
}

impl Bytes {
    /// Maps a file. Its pages are read when they are first touched.
    ///
    /// # Errors
    /// What the operating system says.
    #[expect(unsafe_code, reason = "a map is the one thing here that the compiler cannot vouch for")]
    pub fn map(file: &File) -> io::Result<Bytes> {
        if file.metadata()?.len() == 0 {
            return Ok(Bytes(Source::Buffer(Vec::new())));
        }
        // SAFETY: the map is read-only and private to this value. A reference into it is only sound while nobody changes the
        // file; simstore never writes to a file that has been given its final name, it only replaces or removes it, which
        // leaves the mapped file as it was. The documentation of `Snapshot::open` asks the same of other programs.
        let map = unsafe { Mmap::map(file)? };
        // Only a hint: look-ups touch single blocks, so reading ahead would waste memory and disk bandwidth.
        #[cfg(unix)]
        let _ = map.advise(Advice::Random);
        Ok(Bytes(Source::Mapped(map)))
    }

    /// Reads a file whole into memory of its own, in huge pages where the system has them: then most look-ups find
    /// the address of a page in the processor's cache of addresses.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn read(mut file: &File) -> io::Result<Bytes> {
        let len = usize::try_from(file.metadata()?.len()).map_err(io::Error::other)?;
        if len == 0 {
            return Ok(Bytes(Source::Buffer(Vec::new())));
        }
        let mut map = MmapMut::map_anon(len)?;
        // Only a hint.
        #[cfg(target_os = "linux")]
        let _ = map.advise(Advice::HugePage);
        file.read_exact(&mut map)?;
        Ok(Bytes(Source::Read(map.make_read_only()?)))
    }
}

impl Bytes {
    /// Says that these bytes will be read soon, one after the other: the operating system may fetch them ahead.
    pub(crate) fn will_need(&self, bytes: Range<usize>) {
        #[cfg(not(unix))]
        let _ = bytes;
        #[cfg(unix)]
        if let Source::Mapped(map) = &self.0 {
            // Only a hint, for a range that ends in the map.
            let _ = map.advise_range(Advice::WillNeed, bytes.start, bytes.len());
        }
    }
}

impl AsRef<[u8]> for Bytes {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Source::Mapped(map) | Source::Read(map) => map,
            Source::Buffer(buffer) => buffer,
        }
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(buffer: Vec<u8>) -> Bytes {
        Bytes(Source::Buffer(buffer))
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
