//! The frame that id, name, note and mark files share: a header, numbered chunks with a checksum each, a directory of
//! their offsets, a footer (`format-spec/README.md`, "Chunked files"). The chunks of all but ids are entries, one after the
//! other.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::format::{self, chunks_footer as footer, entries_chunk, entries_header, ids_header as header};
use crate::kernels;
use crate::map::Bytes;

/// Weight of a chunk, in fingerprints, until a callback is asked whether to go on: a chunk takes about as long to read.
pub(super) const CHUNK_RECORDS: u64 = 1 << 8;

/// Writes a chunked file: the header last known to be complete, then chunk by chunk.
pub(super) struct ChunksWriter<W> {
    sink: W,
    path: PathBuf,
    magic: [u8; 8],
    header_crc: u32,
    /// Of the checksums of the chunks.
    chunks_crc: crc32fast::Hasher,
    offset: u64,
    directory: Vec<u8>,
    chunks: u64,
}

impl<W: Write> ChunksWriter<W> {
    pub(super) fn new(mut sink: W, path: &Path, header: &[u8]) -> Result<Self> {
        sink.write_all(header).map_err(Error::io(path, "write"))?;
        let mut magic = [0; 8];
        magic.copy_from_slice(&header[..8]);
        Ok(ChunksWriter {
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

    /// Writes a chunk, whose first four bytes become its checksum; `key` goes into the directory.
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

    /// Writes directory and footer, and hands back the sink.
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

/// The differences between files of names, notes and marks.
pub(super) struct EntryKind {
    pub(super) magic: [u8; 8],
    /// The version of the format that it says.
    pub(super) version: u32,
    /// Whether the directory has a key for each chunk.
    pub(super) keyed: bool,
    /// A chunk is closed when it has as many bytes.
    pub(super) closed_at: usize,
    /// The most bytes of a chunk, and how messages say it.
    pub(super) longest: (usize, &'static str),
    /// Name of a chunk in messages.
    pub(super) name: &'static str,
}

/// Writes a file of entries.
pub(super) struct EntriesWriter<W> {
    chunks: ChunksWriter<W>,
    kind: &'static EntryKind,
    /// The chunk that is being filled; its entries, and the key of the first.
    chunk: Vec<u8>,
    count: u32,
    key: Option<u64>,
    /// Entries of all chunks.
    pub(super) total: u64,
}

impl<W: Write> EntriesWriter<W> {
    pub(super) fn new(sink: W, path: &Path, kind: &'static EntryKind) -> Result<Self> {
        let mut header = [0; entries_header::LEN];
        header[..entries_header::VERSION].copy_from_slice(&kind.magic);
        LittleEndian::write_u32(&mut header[entries_header::VERSION..], kind.version);
        let chunks = ChunksWriter::new(sink, path, &header)?;
        Ok(EntriesWriter { chunks, kind, chunk: vec![0; entries_chunk::LEN], count: 0, key: None, total: 0 })
    }

    /// Whether the next entry is the first of its chunk.
    pub(super) fn starts_chunk(&self) -> bool {
        self.count == 0
    }

    /// Adds an entry, whose bytes `write` appends; the first entry of a chunk gives the chunk its key.
    pub(super) fn push(&mut self, key: Option<u64>, write: impl FnOnce(&mut Vec<u8>)) -> Result<()> {
        if self.count == 0 {
            self.key = key;
        }
        write(&mut self.chunk);
        self.count += 1;
        if self.chunk.len() >= self.kind.closed_at {
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
pub(super) struct Chunks {
    path: PathBuf,
    bytes: Bytes,
    header_len: usize,
    directory: usize,
    /// Bytes of a directory entry: 8, or 16 with a key.
    entry: usize,
    sound: BitBox<AtomicU64>,
}

impl Chunks {
    /// Checks header, directory and footer, not the chunks.
    pub(super) fn open(
        path: &Path,
        bytes: Bytes,
        (magic, version): ([u8; 8], u32),
        header_len: usize,
        keyed: bool,
    ) -> Result<Self> {
        let file = bytes.as_ref();
        let end = format::check_ends(path, file, magic, version..=version, footer::LEN)?;
        let foot = &file[end..];
        let crc = |at: usize, part, offset: usize, bytes: &[u8]| {
            format::check_crc(path, part, offset, bytes, LittleEndian::read_u32(&foot[at..]))
        };
        crc(footer::FOOTER_CRC, "footer", end, &foot[..footer::FOOTER_CRC])?;
        let chunks = LittleEndian::read_u64(&foot[footer::CHUNKS..]);
        let entry = if keyed { 16 } else { 8 };
        let directory_len = u128::from(chunks) * entry as u128 + 8;
        if directory_len + header_len as u128 > end as u128 {
            let expected = "no more than the file has room for";
            let damage = Damage::Field { name: "chunks", found: chunks, expected };
            return Err(Error::corrupt(path, (end + footer::CHUNKS) as u64, damage));
        }
        let directory = end - directory_len as usize;
        crc(footer::HEADER_CRC, "header", 0, &file[..header_len])?;
        crc(footer::DIRECTORY_CRC, "directory", directory, &file[directory..end])?;
        // After magic and version, all headers have four bytes that are reserved.
        format::check_reserved(path, header::RESERVED, &file[header::RESERVED..][..4])?;
        let sound = BitVec::repeat(false, chunks as usize).into_boxed_bitslice();
        let chunks = Chunks { path: path.to_path_buf(), header_len, directory, entry, sound, bytes };
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

    /// As [`Chunks::open`], for a file of entries.
    pub(super) fn open_entries(path: &Path, bytes: Bytes, kind: &EntryKind) -> Result<Self> {
        Chunks::open(path, bytes, (kind.magic, kind.version), entries_header::LEN, kind.keyed)
    }

    fn misplaced(&self, chunk: usize) -> Error {
        let damage = Damage::Order { what: "the offsets of the directory" };
        Error::corrupt(&self.path, (self.directory + chunk * self.entry) as u64, damage)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn file_len(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// Bytes in memory besides the map.
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
        LittleEndian::read_u64(&self.bytes.as_ref()[self.directory + chunk * self.entry..])
    }

    /// The key of a chunk in a directory that has keys.
    pub(super) fn key(&self, chunk: usize) -> u64 {
        LittleEndian::read_u64(&self.bytes.as_ref()[self.directory + chunk * self.entry + 8..])
    }

    /// Asks for where a chunk is.
    #[inline]
    pub(super) fn prefetch_place(&self, chunk: usize) {
        kernels::prefetch(self.bytes.as_ref(), self.directory + chunk * self.entry);
    }

    /// Asks for the start of a chunk.
    #[inline]
    pub(super) fn prefetch(&self, chunk: usize) {
        kernels::prefetch(self.bytes.as_ref(), self.offset(chunk) as usize);
    }

    /// The bytes of a chunk, at least `header` of them, after its checksum has been verified once.
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

    /// The number of entries of a chunk, and their bytes.
    pub(super) fn entries(&self, chunk: usize, kind: &EntryKind) -> Result<(u32, &[u8])> {
        let bytes = self.get(chunk, entries_chunk::LEN)?;
        let (longest, expected) = kind.longest;
        if bytes.len() > longest {
            let found = bytes.len() as u64;
            return Err(self.damaged(chunk, Damage::Field { name: "chunk", found, expected }));
        }
        Ok((LittleEndian::read_u32(&bytes[entries_chunk::COUNT..]), &bytes[entries_chunk::LEN..]))
    }

    /// The entries of a chunk are not what they may be.
    pub(super) fn malformed(&self, chunk: usize, kind: &EntryKind) -> Error {
        self.damaged(chunk, Damage::Order { what: kind.name })
    }

    /// Compares the checksums of all chunks with the footer; damage inside a chunk is not looked for.
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
