//! The metadata file of a segment: small values, each stored by a program under a key (`format-spec/metadata.md`).

use std::io::Write;
use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use super::chunked_file::{CHUNK_RECORDS, ChunkedFile, EntryFileWriter, EntryFormat};
use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::format;
use crate::progress::ProgressCounter;

const FORMAT: EntryFormat = EntryFormat {
    magic: format::METADATA_MAGIC,
    keyed: false,
    close_bytes: format::METADATA_CHUNK_BYTES,
    max_bytes: (format::MAX_METADATA_CHUNK_BYTES, "at most 16384 bytes"),
    name: "the entries of a chunk of metadata",
};

/// Writer of a metadata file.
pub(super) struct MetadataFileWriter<W> {
    pub(super) entries: EntryFileWriter<W>,
    previous: Option<String>,
}

impl<W: Write> MetadataFileWriter<W> {
    pub(super) fn new(sink: W, path: &Path) -> Result<Self> {
        Ok(MetadataFileWriter { entries: EntryFileWriter::new(sink, path, &FORMAT)?, previous: None })
    }

    /// Appends a value. Keys must ascend. The caller has checked that neither the key nor the value is longer than the
    /// format permits.
    pub(super) fn push(&mut self, key: &str, value: &[u8]) -> Result<()> {
        if let Some(previous) = &self.previous
            && **previous >= *key
        {
            let (previous, got) = (previous.clone(), key.to_string());
            return Err(Error::OutOfOrder { what: "the keys of metadata", previous, got });
        }
        self.previous = Some(key.to_string());
        self.entries.push(None, |chunk| {
            chunk.extend_from_slice(&(key.len() as u16).to_le_bytes());
            chunk.extend_from_slice(&(value.len() as u16).to_le_bytes());
            chunk.extend_from_slice(key.as_bytes());
            chunk.extend_from_slice(value);
        })
    }

    pub(super) fn finish(self) -> Result<W> {
        self.entries.finish()
    }
}

/// An open metadata file.
#[derive(Debug)]
pub(super) struct MetadataFile {
    pub(super) chunks: ChunkedFile,
}

impl MetadataFile {
    pub(super) fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        Ok(MetadataFile { chunks: ChunkedFile::open_entries(path, bytes, &FORMAT)? })
    }

    /// Returns the value of a key, or `None` if the file does not have the key.
    pub(super) fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        let (mut from, mut to) = (0, self.chunks.len());
        while from < to {
            let middle = from.midpoint(to);
            let mut is_before = false;
            self.visit(middle, |first, _| {
                is_before = first <= key.as_bytes();
                false
            })?;
            if is_before { from = middle + 1 } else { to = middle }
        }
        let Some(chunk) = from.checked_sub(1) else { return Ok(None) };
        let mut found = None;
        self.visit(chunk, |other, value| {
            if other == key.as_bytes() {
                found = Some(value.to_vec());
            }
            other < key.as_bytes()
        })?;
        Ok(found)
    }

    /// Calls `visitor` with each key and value of a chunk, until `visitor` returns false.
    fn visit(&self, chunk: usize, mut visitor: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let (count, mut rest) = self.chunks.entries(chunk, &FORMAT)?;
        if count == 0 {
            return Err(self.malformed(chunk));
        }
        for _ in 0..count {
            let mut take = |len: usize| {
                let (taken, after) = rest.split_at_checked(len).ok_or_else(|| self.malformed(chunk))?;
                rest = after;
                Ok::<_, Error>(taken)
            };
            let lengths = take(4)?;
            let (key, value) = (LittleEndian::read_u16(lengths), LittleEndian::read_u16(&lengths[2..]));
            if usize::from(key) > format::MAX_METADATA_KEY_BYTES
                || usize::from(value) > format::MAX_METADATA_VALUE_BYTES
            {
                return Err(self.malformed(chunk));
            }
            if !visitor(take(usize::from(key))?, take(usize::from(value))?) {
                return Ok(());
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Appends the keys and values of a chunk to `all`, ascending by key.
    pub(super) fn read(&self, chunk: usize, all: &mut impl Extend<(String, Vec<u8>)>) -> Result<()> {
        let (mut sound, mut previous) = (true, None);
        self.visit(chunk, |key, value| {
            sound = previous.as_deref().is_none_or(|previous| previous < key);
            previous = Some(key.to_vec());
            match std::str::from_utf8(key) {
                Ok(key) if sound => all.extend([(key.to_string(), value.to_vec())]),
                _ => sound = false,
            }
            sound
        })?;
        if sound { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Reads all values and calls `damaged` with each error. Returns the number of values read.
    pub(super) fn verify(
        &self,
        progress: &ProgressCounter<'_>,
        mut damaged: impl FnMut(Error),
    ) -> Result<u64> {
        let (mut count, mut last, mut pending) = (0, None, 0);
        let mut metadata = Vec::new();
        for chunk in 0..self.chunks.len() {
            progress.check_cancelled_batched(&mut pending, CHUNK_RECORDS)?;
            metadata.clear();
            if let Err(error) = self.read(chunk, &mut metadata) {
                damaged(error);
                continue;
            }
            count += metadata.len() as u64;
            let first = metadata.first().map(|(key, _)| key.clone());
            if last.is_some() && last >= first {
                damaged(self.malformed(chunk));
            }
            last = metadata.pop().map(|(key, _)| key);
        }
        if let Err(error) = self.chunks.verify() {
            damaged(error);
        }
        Ok(count)
    }

    fn malformed(&self, chunk: usize) -> Error {
        self.chunks.malformed(chunk, &FORMAT)
    }
}

#[cfg(test)]
mod tests {
    use super::super::chunked_file::ChunkedFileWriter;
    use super::super::tests::every_damage_is_found;
    use super::*;

    fn key(i: u32) -> String {
        format!("{}{i:05}", "path/".repeat((i % 7) as usize * 20))
    }

    fn encoded(metadata: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut writer = MetadataFileWriter::new(Vec::new(), Path::new("m")).unwrap();
        metadata.iter().for_each(|(key, value)| writer.push(key, value).unwrap());
        writer.finish().unwrap()
    }

    fn open(bytes: &[u8]) -> Result<MetadataFile> {
        MetadataFile::open(Path::new("m"), bytes.to_vec().into())
    }

    fn all(metadata: &MetadataFile) -> Result<Vec<(String, Vec<u8>)>> {
        let mut all = Vec::new();
        (0..metadata.chunks.len()).try_for_each(|chunk| metadata.read(chunk, &mut all))?;
        Ok(all)
    }

    #[test]
    fn marks_come_back() {
        let mut expected: Vec<_> = (0..300).map(|i| (key(i), vec![i as u8; i as usize % 50])).collect();
        expected.extend([(String::new(), vec![]), ("x".repeat(4096), vec![7; 4096])]);
        expected.sort();
        for len in [0, 1, 2, expected.len()] {
            let metadata = open(&encoded(&expected[..len])).unwrap();
            assert!(len < 3 || metadata.chunks.len() > 9);
            assert_eq!(all(&metadata).unwrap(), &expected[..len]);
            assert_eq!(
                metadata.verify(&ProgressCounter::new(None, 0), |error| panic!("{error}")).unwrap(),
                len as u64
            );
            for (i, (key, value)) in expected.iter().enumerate() {
                assert_eq!(metadata.get(key).unwrap().as_ref(), (i < len).then_some(value), "{key}");
                assert_eq!(metadata.get(&format!("{key}!")).unwrap(), None);
            }
        }
        let mut writer = MetadataFileWriter::new(Vec::new(), Path::new("m")).unwrap();
        writer.push("b", b"").unwrap();
        assert!(matches!(writer.push("b", b""), Err(Error::OutOfOrder { .. })));
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let metadata: Vec<_> = (0..6).map(|i| (key(i), vec![i as u8; 3])).collect();
        let bytes = encoded(&metadata);
        let read = |bytes: &[u8]| {
            let metadata = open(bytes)?;
            let mut found = Ok(());
            metadata.verify(&ProgressCounter::new(None, 0), |error| found = Err(error)).unwrap();
            found
        };
        every_damage_is_found(bytes, read);
    }

    /// A file of one chunk with this content, and valid checksums.
    fn file_of(content: &[u8]) -> MetadataFile {
        let head = [&FORMAT.magic[..], &format::VERSION.to_le_bytes(), &[0; 4]].concat();
        let mut writer = ChunkedFileWriter::new(Vec::new(), Path::new("m"), &head).unwrap();
        writer.write(&mut [&[0; 4], content].concat(), None).unwrap();
        open(&writer.finish().unwrap()).unwrap()
    }

    #[test]
    fn hostile_chunks_are_refused() {
        let sound = b"\x02\0\0\0\x01\0\0\0a\x01\0\x01\0bX";
        assert_eq!(
            file_of(sound).verify(&ProgressCounter::new(None, 0), |error| panic!("{error}")).unwrap(),
            2
        );
        let unsound: [&[u8]; 8] = [
            b"\0\0\0\0",
            b"\xff\xff\xff\xff",
            b"\x01\0\0\0\x01\0\0\0ab",
            b"\x01\0\0\0\x02\0\0\0a",
            b"\x01\0\0\0\x01\0\xff\xffa",
            b"\x01\0\0\0\x01\0\0\0\xff",
            b"\x02\0\0\0\x01\0\0\0b\x01\0\0\0a",
            b"\x02\0\0\0\x01\0\0\0a\x01\0\0\0a",
        ];
        for content in unsound.into_iter().chain([&[&b"\x01\0\0\0\0\0\0\0"[..], &[0; 1 << 14]].concat()[..]])
        {
            let metadata = file_of(content);
            assert!(all(&metadata).is_err(), "{content:x?}");
            let mut problems = 0;
            metadata.verify(&ProgressCounter::new(None, 0), |_| problems += 1).unwrap();
            assert_eq!(problems, 1, "{content:x?}");
        }
    }
}
