//! The names of a segment's documents, by id (`format-spec/names.md`).

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;

use super::chunks::{CHUNK_RECORDS, Chunks, EntriesWriter, EntryKind};
use crate::error::{Damage, Error, Result};
use crate::format;
use crate::map::Bytes;
use crate::progress::Steps;

const KIND: EntryKind = EntryKind {
    magic: format::NAMES_MAGIC,
    keyed: true,
    closed_at: format::NAMES_CHUNK,
    longest: (format::MAX_NAMES_CHUNK, "at most 131072 bytes"),
    name: "the entries of a chunk of names",
};

/// Writes a name file.
pub(super) struct NamesWriter<W> {
    entries: EntriesWriter<W>,
    previous: Option<(u64, String)>,
}

impl<W: Write> NamesWriter<W> {
    pub(super) fn new(sink: W, path: &Path) -> Result<Self> {
        Ok(NamesWriter { entries: EntriesWriter::new(sink, path, &KIND)?, previous: None })
    }

    /// Adds the name of an id larger than the one before.
    pub(super) fn push(&mut self, id: u64, name: &str) -> Result<()> {
        if name.len() > format::MAX_NAME {
            return Err(Error::BadArgument(format!(
                "the name of document {id} is {} bytes long; at most {} are kept",
                name.len(),
                format::MAX_NAME
            )));
        }
        if let Some((previous, _)) = &self.previous
            && *previous >= id
        {
            return Err(Error::OutOfOrder {
                what: "the ids of named documents",
                previous: previous.to_string(),
                got: id.to_string(),
            });
        }
        let in_chunk = if self.entries.starts_chunk() { None } else { self.previous.as_ref() };
        let (delta, shared) = match in_chunk {
            Some((previous, before)) => {
                let same = before.bytes().zip(name.bytes()).take_while(|(a, b)| a == b).count();
                (id - previous, same)
            }
            None => (0, 0),
        };
        self.previous = Some((id, name.to_string()));
        self.entries.push(Some(id), |chunk| {
            write_varint(chunk, delta);
            write_varint(chunk, shared as u64);
            write_varint(chunk, (name.len() - shared) as u64);
            chunk.extend_from_slice(&name.as_bytes()[shared..]);
        })
    }

    pub(super) fn finish(self) -> Result<W> {
        self.entries.finish()
    }
}

/// An open name file.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) chunks: Chunks,
}

impl Names {
    pub(super) fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        let chunks = Chunks::open_entries(path, bytes, &KIND)?;
        if let Some(chunk) = (1..chunks.len()).find(|&chunk| chunks.key(chunk - 1) >= chunks.key(chunk)) {
            return Err(chunks.damaged(chunk, Damage::Order { what: "the first ids of the chunks of names" }));
        }
        Ok(Names { chunks })
    }

    /// The chunk that has the name of a document, if any has.
    fn chunk_of(&self, id: u64) -> Option<usize> {
        let (mut from, mut to) = (0, self.chunks.len());
        while from < to {
            let middle = from.midpoint(to);
            if self.chunks.key(middle) <= id { from = middle + 1 } else { to = middle }
        }
        from.checked_sub(1)
    }

    /// The name of a document, if it has one.
    pub(super) fn get(&self, id: u64) -> Result<Option<String>> {
        let mut found = None;
        self.get_each(&[id], |_, name| found = Some(name))?;
        Ok(found)
    }

    /// Calls `found` with positions among some ids, which ascend, and the names of these; reads no chunk twice.
    pub(super) fn get_each(&self, ids: &[u64], mut found: impl FnMut(usize, String)) -> Result<()> {
        let mut next = 0;
        while next < ids.len() {
            let Some(chunk) = self.chunk_of(ids[next]) else {
                next += 1;
                continue;
            };
            let in_chunk = |&id: &u64| chunk + 1 == self.chunks.len() || id < self.chunks.key(chunk + 1);
            let end = next + ids[next..].partition_point(in_chunk);
            let mut is_text = true;
            self.visit(chunk, |id, name| {
                while next < end && ids[next] < id {
                    next += 1;
                }
                if next < end && ids[next] == id {
                    match std::str::from_utf8(name) {
                        Ok(name) => found(next, name.to_string()),
                        Err(_) => is_text = false,
                    }
                    next += 1;
                }
                is_text && next < end
            })?;
            if !is_text {
                return Err(self.malformed(chunk));
            }
            next = end;
        }
        Ok(())
    }

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

    /// Calls `visitor` with the ids and names of a chunk until it says stop.
    fn visit(&self, chunk: usize, mut visitor: impl FnMut(u64, &[u8]) -> bool) -> Result<()> {
        let (count, mut rest) = self.chunks.entries(chunk, &KIND)?;
        let mut id = self.chunks.key(chunk);
        let mut name = Vec::new();
        for i in 0..count {
            let mut field = || read_varint(&mut rest).ok_or_else(|| self.malformed(chunk));
            let (delta, shared, len) = (field()?, field()?, field()?);
            let (shared, len) = (shared.min(usize::MAX as u64) as usize, len.min(usize::MAX as u64) as usize);
            if shared > name.len() || len > rest.len() || shared + len > format::MAX_NAME {
                return Err(self.malformed(chunk));
            }
            // The first id is the key; each other one is larger than the one before.
            if (i == 0) != (delta == 0) {
                return Err(self.malformed(chunk));
            }
            id = id.checked_add(delta).ok_or_else(|| self.malformed(chunk))?;
            name.truncate(shared);
            name.extend_from_slice(&rest[..len]);
            rest = &rest[len..];
            if !visitor(id, &name) {
                return Ok(());
            }
        }
        if rest.is_empty() { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Appends the ids and names of a chunk, ascending.
    pub(super) fn read(&self, chunk: usize, all: &mut impl Extend<(u64, String)>) -> Result<()> {
        let mut is_text = true;
        self.visit(chunk, |id, name| {
            match std::str::from_utf8(name) {
                Ok(name) => all.extend([(id, name.to_string())]),
                Err(_) => is_text = false,
            }
            is_text
        })?;
        if is_text { Ok(()) } else { Err(self.malformed(chunk)) }
    }

    /// Reads everything; calls `damaged` with each error. Returns the number of names read.
    pub(super) fn verify(&self, steps: &Steps<'_>, mut damaged: impl FnMut(Error)) -> Result<u64> {
        let (mut count, mut previous, mut pending) = (0, None, 0);
        for chunk in 0..self.chunks.len() {
            steps.ask_some(&mut pending, CHUNK_RECORDS)?;
            let mut sound = true;
            let read = self.visit(chunk, |id, name| {
                sound &= previous.is_none_or(|previous| previous < id) && std::str::from_utf8(name).is_ok();
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
        self.chunks.malformed(chunk, &KIND)
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
