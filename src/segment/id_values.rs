//! Files with the names or notes of documents in a segment, by id (`format-spec/names.md`, `format-spec/notes.md`).

use std::collections::HashSet;
use std::io::Write;
use std::marker::PhantomData;
use std::path::Path;

use super::chunked_file::{CHUNK_RECORDS, ChunkedFile, EntryFileWriter, EntryFormat};
use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::format;
use crate::progress::ProgressCounter;

/// A file with the names of documents.
pub(super) type NameFile = IdValueFile<String>;
/// A file with the notes of documents.
pub(super) type NoteFile = IdValueFile<Vec<u8>>;
pub(super) type NameFileWriter<W> = IdValueWriter<String, W>;
pub(super) type NoteFileWriter<W> = IdValueWriter<Vec<u8>, W>;

/// The value of an id: a name (`String`) or a note (`Vec<u8>`).
pub(super) trait IdValue: Sized {
    const FORMAT: &'static EntryFormat;
    /// Whether values are prefix-compressed: each stores the length of the prefix shared with the previous value.
    const HAS_SHARED_PREFIXES: bool;
    /// Maximum length of a value in bytes.
    const MAX_BYTES: usize;
    /// Words for three things in error messages: a value, the ids that have a value, and the first ids of the
    /// chunks.
    const WORDS: [&'static str; 3];

    /// Decodes a value; `None` if the bytes are invalid.
    fn from_bytes(bytes: &[u8]) -> Option<Self>;
}

impl IdValue for String {
    const FORMAT: &'static EntryFormat = &EntryFormat {
        magic: format::NAMES_MAGIC,
        keyed: true,
        close_bytes: format::NAMES_CHUNK_BYTES,
        max_bytes: (format::MAX_NAMES_CHUNK_BYTES, "at most 131072 bytes"),
        name: "the entries of a chunk of names",
    };
    const HAS_SHARED_PREFIXES: bool = true;
    const MAX_BYTES: usize = format::MAX_NAME_BYTES;
    const WORDS: [&'static str; 3] =
        ["name", "the ids of named documents", "the first ids of the chunks of names"];

    fn from_bytes(bytes: &[u8]) -> Option<String> {
        std::str::from_utf8(bytes).ok().map(str::to_string)
    }
}

impl IdValue for Vec<u8> {
    const FORMAT: &'static EntryFormat = &EntryFormat {
        magic: format::NOTES_MAGIC,
        keyed: true,
        close_bytes: format::NOTES_CHUNK_BYTES,
        max_bytes: (format::MAX_NOTES_CHUNK_BYTES, "at most 16842752 bytes"),
        name: "the entries of a chunk of notes",
    };
    const HAS_SHARED_PREFIXES: bool = false;
    const MAX_BYTES: usize = format::MAX_NOTE_BYTES;
    const WORDS: [&'static str; 3] =
        ["note", "the ids of documents with notes", "the first ids of the chunks of notes"];

    fn from_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

/// Writer of a file of names or notes.
pub(super) struct IdValueWriter<V, W> {
    pub(super) entries: EntryFileWriter<W>,
    previous_id: Option<u64>,
    /// The value pushed last. Stays empty if values are not prefix-compressed.
    previous_value: Vec<u8>,
    values: PhantomData<V>,
}

impl<V: IdValue, W: Write> IdValueWriter<V, W> {
    pub(super) fn new(sink: W, path: &Path) -> Result<Self> {
        Ok(IdValueWriter {
            entries: EntryFileWriter::new(sink, path, V::FORMAT)?,
            previous_id: None,
            previous_value: Vec::new(),
            values: PhantomData,
        })
    }

    /// Appends the value of an id. Ids must ascend.
    pub(super) fn push(&mut self, id: u64, value: &[u8]) -> Result<()> {
        let [what, ids, _] = V::WORDS;
        if value.len() > V::MAX_BYTES {
            return Err(Error::BadArgument(format!(
                "the {what} of document {id} is {} bytes long; at most {} are kept",
                value.len(),
                V::MAX_BYTES
            )));
        }
        if let Some(previous) = self.previous_id
            && previous >= id
        {
            let (previous, got) = (previous.to_string(), id.to_string());
            return Err(Error::OutOfOrder { what: ids, previous, got });
        }
        let previous = self.previous_id.filter(|_| !self.entries.starts_chunk());
        let delta = previous.map_or(0, |previous| id - previous);
        let is_same = |(a, b): &(&u8, &u8)| a == b;
        let shared =
            previous.map_or(0, |_| self.previous_value.iter().zip(value).take_while(is_same).count());
        self.entries.push(Some(id), |chunk| {
            write_varint(chunk, delta);
            if V::HAS_SHARED_PREFIXES {
                write_varint(chunk, shared as u64);
            }
            write_varint(chunk, (value.len() - shared) as u64);
            chunk.extend_from_slice(&value[shared..]);
        })?;
        self.previous_id = Some(id);
        if V::HAS_SHARED_PREFIXES {
            self.previous_value.clear();
            self.previous_value.extend_from_slice(value);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<W> {
        self.entries.finish()
    }
}

/// An open file of names or notes.
#[derive(Debug)]
pub(super) struct IdValueFile<V> {
    pub(super) chunks: ChunkedFile,
    values: PhantomData<V>,
}

impl<V: IdValue> IdValueFile<V> {
    pub(super) fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        let chunks = ChunkedFile::open_entries(path, bytes, V::FORMAT)?;
        if let Some(chunk) = (1..chunks.len()).find(|&chunk| chunks.key(chunk - 1) >= chunks.key(chunk)) {
            return Err(chunks.damaged(chunk, Damage::Order { what: V::WORDS[2] }));
        }
        Ok(IdValueFile { chunks, values: PhantomData })
    }

    /// The only chunk that may have the value of an id; `None` if the id is less than all ids of the file.
    fn chunk_of(&self, id: u64) -> Option<usize> {
        let (mut from, mut to) = (0, self.chunks.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.chunks.key(middle) <= id { from = middle + 1 } else { to = middle }
        }
        from.checked_sub(1)
    }

    /// Returns the value of an id, or `None` if the file has no value for it.
    pub(super) fn get(&self, id: u64) -> Result<Option<V>> {
        let mut found = None;
        self.get_all(&[id], |_, value| found = Some(value))?;
        Ok(found)
    }

    /// Looks up the values of `ids`, which must ascend. Calls `found` with the index of each id that has a value, and the
    /// value. Reads each chunk at most once.
    pub(super) fn get_all(&self, ids: &[u64], mut found: impl FnMut(usize, V)) -> Result<()> {
        let mut next = 0;
        while next < ids.len() {
            let Some(chunk) = self.chunk_of(ids[next]) else {
                next += 1;
                continue;
            };
            let in_chunk = |&id: &u64| chunk + 1 == self.chunks.len() || id < self.chunks.key(chunk + 1);
            let end = next + ids[next..].partition_point(in_chunk);
            let mut sound = true;
            self.visit(chunk, |id, value| {
                while next < end && ids[next] < id {
                    next += 1;
                }
                if next < end && ids[next] == id {
                    match V::from_bytes(value) {
                        Some(value) => found(next, value),
                        None => sound = false,
                    }
                    next += 1;
                }
                sound && next < end
            })?;
            if !sound {
                return Err(self.malformed(chunk));
            }
            next = end;
        }
        Ok(())
    }

    /// Calls `visitor` with each id and value of a chunk, until `visitor` returns false.
    fn visit(&self, chunk: usize, mut visitor: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (count, mut rest) = self.chunks.entries(chunk, V::FORMAT)?;
        if count == 0 {
            return Err(self.malformed(chunk));
        }
        let mut id = self.chunks.key(chunk);
        let mut previous_value = Vec::new();
        for i in 0..count {
            let mut field = || read_varint(&mut rest).ok_or_else(|| self.malformed(chunk));
            let delta = field()?;
            let shared = if V::HAS_SHARED_PREFIXES { field()? } else { 0 };
            let len = field()?;
            let (shared, len) = (shared.min(usize::MAX as u64) as usize, len.min(usize::MAX as u64) as usize);
            if shared > previous_value.len() || len > rest.len() || shared + len > V::MAX_BYTES {
                return Err(self.malformed(chunk));
            }
            // The first id equals the chunk's key; each other id is greater than the previous one.
            if (i == 0) != (delta == 0) {
                return Err(self.malformed(chunk));
            }
            id = id.checked_add(delta).ok_or_else(|| self.malformed(chunk))?;
            let mut value = &rest[..len];
            rest = &rest[len..];
            if V::HAS_SHARED_PREFIXES {
                previous_value.truncate(shared);
                previous_value.extend_from_slice(value);
                value = &previous_value;
            }
            if !visitor(id, value) {
                return Ok(());
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Appends the (id, value) pairs of a chunk to `all`, ascending by id.
    pub(super) fn read(&self, chunk: usize, all: &mut impl Extend<(u64, V)>) -> Result<()> {
        let mut sound = true;
        self.visit(chunk, |id, value| {
            match V::from_bytes(value) {
                Some(value) => all.extend([(id, value)]),
                None => sound = false,
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
        let (mut count, mut previous, mut pending) = (0, None, 0);
        for chunk in 0..self.chunks.len() {
            progress.check_cancelled_batched(&mut pending, CHUNK_RECORDS)?;
            let mut sound = true;
            let read = self.visit(chunk, |id, value| {
                sound &= previous.is_none_or(|previous| previous < id) && V::from_bytes(value).is_some();
                previous = Some(id);
                count += 1;
                true
            });
            if let Err(error) = read {
                damaged(error);
            } else if !sound {
                damaged(self.malformed(chunk));
            }
        }
        if let Err(error) = self.chunks.verify() {
            damaged(error);
        }
        Ok(count)
    }

    fn malformed(&self, chunk: usize) -> Error {
        self.chunks.malformed(chunk, V::FORMAT)
    }
}

impl NameFile {
    /// Returns those ids of a chunk whose names are in `wanted`.
    pub(super) fn ids_with_names(&self, chunk: usize, wanted: &HashSet<String>) -> Result<Vec<u64>> {
        let mut ids = Vec::new();
        self.visit(chunk, |id, name| {
            if std::str::from_utf8(name).is_ok_and(|name| wanted.contains(name)) {
                ids.push(id);
            }
            true
        })?;
        Ok(ids)
    }
}

/// Appends a number as LEB128: seven bits in each byte, low bits first. The top bit is set if more bytes follow.
fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads a number written by [`write_varint`] and advances `bytes`. `None` if it is truncated, exceeds 64 bits, or takes more
/// bytes than it needs.
fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 || shift > 0 && byte == 0 {
            return None;
        }
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests;
