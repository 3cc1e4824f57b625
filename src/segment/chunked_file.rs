//! The structure that the id, name, note and metadata files of a segment share: a header, chunks with a checksum each, a
//! directory of chunk offsets, and a footer (`format-spec/chunked.md`). In all but id files, a chunk is a
//! sequence of entries.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::format::{self, chunks_footer as footer, entries_chunk, entries_header, ids_header as header};
use crate::simd;

/// Number of units of work that reading one chunk counts as. After a fixed number of units, verification checks whether
/// it was cancelled.
pub(super) const CHUNK_RECORDS: u64 = 1 << 8;

/// Writer of a chunked file: writes the complete header first, and then chunk by chunk.
pub(super) struct ChunkedFileWriter<W> {
    sink: W,
    path: PathBuf,
    magic: [u8; 8],
    header_crc: u32,
    /// Checksum of the chunks' checksums.
    chunks_crc: crc32fast::Hasher,
    offset: u64,
    directory: Vec<u8>,
    chunks: u64,
}

impl<W: Write> ChunkedFileWriter<W> {
    pub(super) fn new(mut sink: W, path: &Path, header: &[u8]) -> Result<Self> {
        sink.write_all(header).map_err(Error::io(path, "write"))?;
        let mut magic = [0; 8];
        magic.copy_from_slice(&header[..8]);
        Ok(ChunkedFileWriter {
            sink,
            path: path.to_path_buf(),
            magic,
            header_crc: crc32fast::hash(header),
            chunks_crc: crc32fast::Hasher::new(),
            offset: header.len() as u64,
            directory: Vec::new(),
            chunks: 0,
        })
    }

    /// Writes a chunk. Overwrites the first four bytes of `chunk` with its checksum. If the directory has keys,
    /// `key` is the key of the chunk.
    pub(super) fn write(&mut self, chunk: &mut [u8], key: Option<u64>) -> Result<()> {
        let crc = format::numbered_crc(self.chunks, chunk);
        LittleEndian::write_u32(chunk, crc);
        self.sink.write_all(chunk).map_err(Error::io(&self.path, "write"))?;
        self.chunks_crc.update(&crc.to_le_bytes());
        self.directory.extend_from_slice(&self.offset.to_le_bytes());
        if let Some(key) = key {
            self.directory.extend_from_slice(&key.to_le_bytes());
        }
        self.offset += chunk.len() as u64;
        self.chunks += 1;
        Ok(())
    }

    /// Writes the directory and the footer, and returns the sink.
    pub(super) fn finish(mut self) -> Result<W> {
        self.directory.extend_from_slice(&self.offset.to_le_bytes());
        let mut bytes = [0; footer::LEN];
        LittleEndian::write_u64(&mut bytes[footer::CHUNKS..], self.chunks);
        LittleEndian::write_u32(&mut bytes[footer::HEADER_CRC..], self.header_crc);
        LittleEndian::write_u32(&mut bytes[footer::CHUNKS_CRC..], self.chunks_crc.finalize());
        LittleEndian::write_u32(&mut bytes[footer::DIRECTORY_CRC..], crc32fast::hash(&self.directory));
        let crc = crc32fast::hash(&bytes[..footer::FOOTER_CRC]);
        LittleEndian::write_u32(&mut bytes[footer::FOOTER_CRC..], crc);
        bytes[footer::LEN - 8..].copy_from_slice(&self.magic);
        for part in [&self.directory[..], &bytes] {
            self.sink.write_all(part).map_err(Error::io(&self.path, "write"))?;
        }
        Ok(self.sink)
    }
}

/// Parameters in which the formats of name, note and metadata files differ.
pub(super) struct EntryFormat {
    pub(super) magic: [u8; 8],
    /// Whether the directory has a key for each chunk.
    pub(super) keyed: bool,
    /// Threshold in bytes: once a chunk has at least this size, the next entry starts a new chunk.
    pub(super) close_bytes: usize,
    /// Maximum size of a chunk in bytes, as a number and in words for error messages.
    pub(super) max_bytes: (usize, &'static str),
    /// Name of a chunk's entries in error messages.
    pub(super) name: &'static str,
}

/// Writer of a chunked file whose chunks are sequences of entries: a name, note or metadata file.
pub(super) struct EntryFileWriter<W> {
    chunks: ChunkedFileWriter<W>,
    format: &'static EntryFormat,
    /// The unfinished chunk.
    chunk: Vec<u8>,
    /// Number of entries in the unfinished chunk.
    count: u32,
    /// Key of the first entry in the unfinished chunk.
    key: Option<u64>,
    /// Number of entries pushed so far.
    pub(super) total: u64,
}

impl<W: Write> EntryFileWriter<W> {
    pub(super) fn new(sink: W, path: &Path, format: &'static EntryFormat) -> Result<Self> {
        let mut header = [0; entries_header::LEN];
        header[..entries_header::VERSION].copy_from_slice(&format.magic);
        LittleEndian::write_u32(&mut header[entries_header::VERSION..], crate::format::VERSION);
        let chunks = ChunkedFileWriter::new(sink, path, &header)?;
        Ok(EntryFileWriter {
            chunks,
            format,
            chunk: vec![0; entries_chunk::LEN],
            count: 0,
            key: None,
            total: 0,
        })
    }

    /// Whether the entry that is pushed next starts a new chunk.
    pub(super) fn starts_chunk(&self) -> bool {
        self.count == 0
    }

    /// Adds an entry; `write` appends its bytes. The `key` of a chunk's first entry becomes the key of the chunk.
    pub(super) fn push(&mut self, key: Option<u64>, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.count == 0 {
            self.key = key;
        }
        write(&mut self.chunk);
        self.count += 1;
        if self.chunk.len() >= self.format.close_bytes {
            self.close_chunk()?;
        }
        self.total += 1;
        Ok(())
    }

    fn close_chunk(&mut self) -> Result<()> {
        LittleEndian::write_u32(&mut self.chunk[entries_chunk::COUNT..], self.count);
        self.chunks.write(&mut self.chunk, self.key)?;
        self.chunk.clear();
        self.chunk.resize(entries_chunk::LEN, 0);
        self.count = 0;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<W> {
        if self.count > 0 {
            self.close_chunk()?;
        }
        self.chunks.finish()
    }
}

/// An open chunked file.
#[derive(Debug)]
pub(super) struct ChunkedFile {
    path: PathBuf,
    bytes: Bytes,
    header_len: usize,
    /// Byte offset of the directory.
    directory: usize,
    /// Size of a directory entry in bytes: 8, or 16 with a key.
    entry_len: usize,
    /// A bit for each chunk: whether its checksum has been verified.
    sound: BitBox<AtomicU64>,
}

impl ChunkedFile {
    /// Opens a file that must have this magic number. `keyed` is whether its directory has a key for each chunk. Checks the
    /// header, the directory and the footer, but not the chunks.
    pub(super) fn open(
        path: &Path,
        bytes: Bytes,
        magic: [u8; 8],
        header_len: usize,
        keyed: bool,
    ) -> Result<Self> {
        let file = bytes.as_ref();
        let end = format::check_ends(path, file, magic, footer::LEN)?;
        let foot = &file[end..];
        let crc = |at: usize, part, offset: usize, bytes: &[u8]| {
            format::check_crc(path, part, offset, bytes, LittleEndian::read_u32(&foot[at..]))
        };
        crc(footer::FOOTER_CRC, "footer", end, &foot[..footer::FOOTER_CRC])?;
        let chunks = LittleEndian::read_u64(&foot[footer::CHUNKS..]);
        let entry_len = if keyed { 16 } else { 8 };
        let directory_len = u128::from(chunks) * entry_len as u128 + 8;
        if directory_len + header_len as u128 > end as u128 {
            let expected = "no more than the file has room for";
            let damage = Damage::Field { name: "chunks", found: chunks, expected };
            return Err(Error::corrupt(path, (end + footer::CHUNKS) as u64, damage));
        }
        let directory = end - directory_len as usize;
        crc(footer::HEADER_CRC, "header", 0, &file[..header_len])?;
        crc(footer::DIRECTORY_CRC, "directory", directory, &file[directory..end])?;
        // In all headers, four reserved bytes follow the magic and the version.
        format::check_reserved(path, header::RESERVED, &file[header::RESERVED..][..4])?;
        let sound = BitVec::repeat(false, chunks as usize).into_boxed_bitslice();
        let chunks = ChunkedFile { path: path.to_path_buf(), header_len, directory, entry_len, sound, bytes };
        let mut expected = header_len as u64;
        for chunk in 0..chunks.len() {
            if chunks.offset(chunk) != expected || chunks.offset(chunk + 1) < expected {
                return Err(chunks.misplaced(chunk));
            }
            expected = chunks.offset(chunk + 1);
        }
        if chunks.offset(chunks.len()) != directory as u64 {
            return Err(chunks.misplaced(chunks.len()));
        }
        Ok(chunks)
    }

    /// Like [`ChunkedFile::open`], for a file whose chunks are sequences of entries.
    pub(super) fn open_entries(path: &Path, bytes: Bytes, format: &EntryFormat) -> Result<Self> {
        ChunkedFile::open(path, bytes, format.magic, entries_header::LEN, format.keyed)
    }

    fn misplaced(&self, chunk: usize) -> Error {
        let damage = Damage::Order { what: "the offsets of the directory" };
        Error::corrupt(&self.path, (self.directory + chunk * self.entry_len) as u64, damage)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All bytes of the file.
    pub(super) fn file_bytes(&self) -> &Bytes {
        &self.bytes
    }

    pub(super) fn file_len(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// Memory in bytes, without the memory-mapped file.
    pub(super) fn memory(&self) -> usize {
        self.sound.len() / 8
    }

    pub(super) fn header(&self) -> &[u8] {
        &self.bytes.as_ref()[..self.header_len]
    }

    /// Number of chunks.
    pub(super) fn len(&self) -> usize {
        self.sound.len()
    }

    fn offset(&self, chunk: usize) -> u64 {
        LittleEndian::read_u64(&self.bytes.as_ref()[self.directory + chunk * self.entry_len..])
    }

    /// Key of a chunk. The file must be one whose directory has keys.
    pub(super) fn key(&self, chunk: usize) -> u64 {
        LittleEndian::read_u64(&self.bytes.as_ref()[self.directory + chunk * self.entry_len + 8..])
    }

    /// Prefetches the directory entry of a chunk.
    #[inline]
    pub(super) fn prefetch_directory_entry(&self, chunk: usize) {
        simd::prefetch(self.bytes.as_ref(), self.directory + chunk * self.entry_len);
    }

    /// Prefetches the start of a chunk.
    #[inline]
    pub(super) fn prefetch(&self, chunk: usize) {
        simd::prefetch(self.bytes.as_ref(), self.offset(chunk) as usize);
    }

    /// Returns the bytes of a chunk. Fails if the chunk has fewer than `header` bytes. The first call for a chunk verifies its
    /// checksum.
    pub(super) fn get(&self, chunk: usize, header: usize) -> Result<&[u8]> {
        let bytes = &self.bytes.as_ref()[self.offset(chunk) as usize..self.offset(chunk + 1) as usize];
        if bytes.len() < header {
            let damage = Damage::Truncated { expected: header as u64, found: bytes.len() as u64 };
            return Err(self.damaged(chunk, damage));
        }
        if !self.sound[chunk] {
            let (expected, found) =
                (LittleEndian::read_u32(bytes), format::numbered_crc(chunk as u64, bytes));
            if expected != found {
                return Err(self.damaged(chunk, Damage::Checksum { part: "chunk", expected, found }));
            }
            self.sound.set_aliased(chunk, true);
        }
        Ok(bytes)
    }

    /// Returns the number of entries in a chunk, and the bytes of all its entries.
    pub(super) fn entries(&self, chunk: usize, format: &EntryFormat) -> Result<(u32, &[u8])> {
        let bytes = self.get(chunk, entries_chunk::LEN)?;
        let (max_bytes, expected) = format.max_bytes;
        if bytes.len() > max_bytes {
            let found = bytes.len() as u64;
            return Err(self.damaged(chunk, Damage::Field { name: "chunk", found, expected }));
        }
        Ok((LittleEndian::read_u32(&bytes[entries_chunk::COUNT..]), &bytes[entries_chunk::LEN..]))
    }

    /// Creates the error for a chunk whose entries are invalid.
    pub(super) fn malformed(&self, chunk: usize, format: &EntryFormat) -> Error {
        self.damaged(chunk, Damage::Order { what: format.name })
    }

    /// Verifies the checksum in the footer, which covers the checksums of all chunks. Does not read the rest of the chunks.
    pub(super) fn verify(&self) -> Result<()> {
        let file = self.bytes.as_ref();
        let mut crc = crc32fast::Hasher::new();
        for chunk in 0..self.len() {
            let bytes = &file[self.offset(chunk) as usize..self.offset(chunk + 1) as usize];
            crc.update(&bytes[..bytes.len().min(4)]);
        }
        let at = file.len() - footer::LEN + footer::CHUNKS_CRC;
        let (expected, found) = (LittleEndian::read_u32(&file[at..]), crc.finalize());
        if expected == found {
            return Ok(());
        }
        let damage = Damage::Checksum { part: "checksums of the chunks", expected, found };
        Err(Error::corrupt(&self.path, at as u64, damage))
    }

    pub(super) fn damaged(&self, chunk: usize, damage: Damage) -> Error {
        Error::corrupt(&self.path, self.offset(chunk), damage)
    }
}

#[cfg(test)]
mod tests;
