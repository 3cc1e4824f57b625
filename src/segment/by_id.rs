//! Names and notes of documents in a segment, by id (`format-spec/names.md`, `format-spec/notes.md`).

use std::collections::HashSet;
use std::io::Write;
use std::marker::PhantomData;
use std::path::Path;

use super::chunks::{CHUNK_RECORDS, Chunks, EntriesWriter, EntryKind};
use crate::error::{Damage, Error, Result};
use crate::format;
use crate::map::Bytes;
use crate::progress::Steps;

/// The names of documents.
pub(super) type Names = ById<String>;
/// The notes of documents.
pub(super) type Notes = ById<Vec<u8>>;
pub(super) type NamesWriter<W> = ByIdWriter<String, W>;
pub(super) type NotesWriter<W> = ByIdWriter<Vec<u8>, W>;

/// A name or a note.
pub(super) trait Value: Sized {
    const KIND: &'static EntryKind;
    /// Whether a value may share its start with the value before.
    const SHARES_STARTS: bool;
    /// The most bytes of one.
    const LONGEST: usize;
    /// Words for messages: for a value, for the ids with a value, and for the first ids of chunks.
    const WORDS: [&'static str; 3];

    /// `None` if these bytes are no such value.
    fn of_bytes(bytes: &[u8]) -> Option<Self>;
}

impl Value for String {
    const KIND: &'static EntryKind = &EntryKind {
        magic: format::NAMES_MAGIC,
        version: format::VERSION,
        keyed: true,
        closed_at: format::NAMES_CHUNK,
        longest: (format::MAX_NAMES_CHUNK, "at most 131072 bytes"),
        name: "the entries of a chunk of names",
    };
    const SHARES_STARTS: bool = true;
    const LONGEST: usize = format::MAX_NAME;
    const WORDS: [&'static str; 3] =
        ["name", "the ids of named documents", "the first ids of the chunks of names"];

    fn of_bytes(bytes: &[u8]) -> Option<String> {
        std::str::from_utf8(bytes).ok().map(str::to_string)
    }
}

impl Value for Vec<u8> {
    const KIND: &'static EntryKind = &EntryKind {
        magic: format::NOTES_MAGIC,
        version: format::VERSION_WITH_NOTES,
        keyed: true,
        closed_at: format::NOTES_CHUNK,
        longest: (format::MAX_NOTES_CHUNK, "at most 16842752 bytes"),
        name: "the entries of a chunk of notes",
    };
    const SHARES_STARTS: bool = false;
    const LONGEST: usize = format::MAX_NOTE;
    const WORDS: [&'static str; 3] =
        ["note", "the ids of documents with notes", "the first ids of the chunks of notes"];

    fn of_bytes(bytes: &[u8]) -> Option<Vec<u8>> {
        Some(bytes.to_vec())
    }
}

/// Writes a file of names or notes.
pub(super) struct ByIdWriter<V, W> {
    pub(super) entries: EntriesWriter<W>,
    previous: Option<u64>,
    /// The value before, if the next one may share its start.
    before: Vec<u8>,
    values: PhantomData<V>,
}

impl<V: Value, W: Write> ByIdWriter<V, W> {
    pub(super) fn new(sink: W, path: &Path) -> Result<Self> {
        Ok(ByIdWriter {
            entries: EntriesWriter::new(sink, path, V::KIND)?,
            previous: None,
            before: Vec::new(),
            values: PhantomData,
        })
    }

    /// Adds the value of an id larger than the one before.
    pub(super) fn push(&mut self, id: u64, value: &[u8]) -> Result<()> {
        let [what, ids, _] = V::WORDS;
        if value.len() > V::LONGEST {
            return Err(Error::BadArgument(format!(
                "the {what} of document {id} is {} bytes long; at most {} are kept",
                value.len(),
                V::LONGEST
            )));
        }
        if let Some(previous) = self.previous
            && previous >= id
        {
            let (previous, got) = (previous.to_string(), id.to_string());
            return Err(Error::OutOfOrder { what: ids, previous, got });
        }
        let previous = self.previous.filter(|_| !self.entries.starts_chunk());
        let delta = previous.map_or(0, |previous| id - previous);
        let is_same = |(a, b): &(&u8, &u8)| a == b;
        let shared = previous.map_or(0, |_| self.before.iter().zip(value).take_while(is_same).count());
        self.entries.push(Some(id), |chunk| {
            write_varint(chunk, delta);
            if V::SHARES_STARTS {
                write_varint(chunk, shared as u64);
            }
            write_varint(chunk, (value.len() - shared) as u64);
            chunk.extend_from_slice(&value[shared..]);
        })?;
        self.previous = Some(id);
        if V::SHARES_STARTS {
            self.before.clear();
            self.before.extend_from_slice(value);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<W> {
        self.entries.finish()
    }
}

/// An open file of names or notes.
#[derive(Debug)]
pub(super) struct ById<V> {
    pub(super) chunks: Chunks,
    values: PhantomData<V>,
}

impl<V: Value> ById<V> {
    pub(super) fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        let chunks = Chunks::open_entries(path, bytes, V::KIND)?;
        if let Some(chunk) = (1..chunks.len()).find(|&chunk| chunks.key(chunk - 1) >= chunks.key(chunk)) {
            return Err(chunks.damaged(chunk, Damage::Order { what: V::WORDS[2] }));
        }
        Ok(ById { chunks, values: PhantomData })
    }

    /// The chunk that has the value of an id, if any has.
    fn chunk_of(&self, id: u64) -> Option<usize> {
        let (mut from, mut to) = (0, self.chunks.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.chunks.key(middle) <= id { from = middle + 1 } else { to = middle }
        }
        from.checked_sub(1)
    }

    /// The value of an id, if it has one.
    pub(super) fn get(&self, id: u64) -> Result<Option<V>> {
        let mut found = None;
        self.get_each(&[id], |_, value| found = Some(value))?;
        Ok(found)
    }

    /// Calls `found` with positions among some ids, which ascend, and the values of these; reads no chunk twice.
    pub(super) fn get_each(&self, ids: &[u64], mut found: impl FnMut(usize, V)) -> Result<()> {
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
                    match V::of_bytes(value) {
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

    /// Calls `visitor` with the ids and values of a chunk until it says stop.
    fn visit(&self, chunk: usize, mut visitor: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (count, mut rest) = self.chunks.entries(chunk, V::KIND)?;
        if count == 0 {
            return Err(self.malformed(chunk));
        }
        let mut id = self.chunks.key(chunk);
        let mut before = Vec::new();
        for i in 0..count {
            let mut field = || read_varint(&mut rest).ok_or_else(|| self.malformed(chunk));
            let delta = field()?;
            let shared = if V::SHARES_STARTS { field()? } else { 0 };
            let len = field()?;
            let (shared, len) = (shared.min(usize::MAX as u64) as usize, len.min(usize::MAX as u64) as usize);
            if shared > before.len() || len > rest.len() || shared + len > V::LONGEST {
                return Err(self.malformed(chunk));
            }
            // The first id is the key; each other one is larger than the one before.
            if (i == 0) != (delta == 0) {
                return Err(self.malformed(chunk));
            }
            id = id.checked_add(delta).ok_or_else(|| self.malformed(chunk))?;
            let mut value = &rest[..len];
            rest = &rest[len..];
            if V::SHARES_STARTS {
                before.truncate(shared);
                before.extend_from_slice(value);
                value = &before;
            }
            if !visitor(id, value) {
                return Ok(());
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Appends the ids and values of a chunk, ascending.
    pub(super) fn read(&self, chunk: usize, all: &mut impl Extend<(u64, V)>) -> Result<()> {
        let mut sound = true;
        self.visit(chunk, |id, value| {
            match V::of_bytes(value) {
                Some(value) => all.extend([(id, value)]),
                None => sound = false,
            }
            sound
        })?;
        if sound { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Reads everything; calls `damaged` with each error. Returns the number of values read.
    pub(super) fn verify(&self, steps: &Steps<'_>, mut damaged: impl FnMut(Error)) -> Result<u64> {
        let (mut count, mut previous, mut pending) = (0, None, 0);
        for chunk in 0..self.chunks.len() {
            steps.ask_some(&mut pending, CHUNK_RECORDS)?;
            let mut sound = true;
            let read = self.visit(chunk, |id, value| {
                sound &= previous.is_none_or(|previous| previous < id) && V::of_bytes(value).is_some();
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
        self.chunks.malformed(chunk, V::KIND)
    }
}

impl Names {
    /// The ids in a chunk whose name is one of these.
    pub(super) fn ids_of(&self, chunk: usize, wanted: &HashSet<String>) -> Result<Vec<u64>> {
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

/// LEB128: seven bits a byte, low bits first; the top bit says that more follow.
fn write_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        if shift == 63 && byte > 1 {
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
