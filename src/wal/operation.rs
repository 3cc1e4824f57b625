//! Operations and their bytes.

use std::marker::PhantomData;

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{
    MAX_KEY, MAX_MARK, MAX_NAME, MAX_NOTE, MAX_PAYLOAD, VERSION, VERSION_WITH_NOTES, check_text,
};

const INSERT: u8 = 1;
const INSERT_NAMED: u8 = 2;
const DELETE: u8 = 3;
const MARK: u8 = 4;
/// From version 4 on.
const NOTE: u8 = 5;

/// A change of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation<'a, F> {
    Insert {
        fingerprint: F,
        id: u64,
        name: Option<&'a str>,
    },
    Delete {
        fingerprint: F,
        id: u64,
    },
    /// What the caller keeps together with what else its record holds.
    Mark {
        key: &'a str,
        value: &'a [u8],
    },
    /// What is kept with a document.
    Note {
        id: u64,
        note: &'a [u8],
    },
}

/// The operations of one record, encoded as they are added.
#[derive(Debug)]
pub(crate) struct Payload<F> {
    bytes: Vec<u8>,
    /// The version of the format that has all of them.
    version: u32,
    fingerprints: PhantomData<fn(F)>,
}

impl<F> Default for Payload<F> {
    fn default() -> Payload<F> {
        Payload { bytes: Vec::new(), version: VERSION, fingerprints: PhantomData }
    }
}

impl<F: Fingerprint> Payload<F> {
    /// Adds an operation. One that is refused leaves the payload as it was.
    pub(crate) fn push(&mut self, operation: &Operation<'_, F>) -> Result<()> {
        let within = |what, len: usize, limit| {
            let message = || format!("a {what} of {len} bytes: shorten it to {limit} bytes at most");
            if len > limit { Err(Error::BadArgument(message())) } else { Ok(len) }
        };
        let len = match *operation {
            Operation::Insert { name, .. } => {
                let name = name.unwrap_or_default();
                check_text("name", name.as_bytes())?;
                within("name", name.len(), MAX_NAME)?
            }
            Operation::Mark { key, value } => {
                check_text("key of a mark", key.as_bytes())?;
                within("key of a mark", key.len(), MAX_KEY)? + within("mark", value.len(), MAX_MARK)?
            }
            Operation::Delete { .. } => 0,
            Operation::Note { note, .. } => within("note", note.len(), MAX_NOTE)?,
        };
        // No operation takes more than this beside what is of any length.
        if self.bytes.len() + len + 64 > MAX_PAYLOAD {
            let message =
                format!("a transaction of more than {MAX_PAYLOAD} bytes: split it into smaller ones");
            return Err(Error::BadArgument(message));
        }
        match *operation {
            Operation::Insert { fingerprint, id, name: None } => self.push_pair(INSERT, fingerprint, id),
            Operation::Insert { fingerprint, id, name: Some(name) } => {
                self.push_pair(INSERT_NAMED, fingerprint, id);
                self.push_bytes(name.as_bytes());
            }
            Operation::Delete { fingerprint, id } => self.push_pair(DELETE, fingerprint, id),
            Operation::Mark { key, value } => {
                self.bytes.push(MARK);
                self.push_bytes(key.as_bytes());
                self.push_bytes(value);
            }
            Operation::Note { id, note } => {
                self.version = VERSION_WITH_NOTES;
                self.bytes.push(NOTE);
                self.bytes.extend_from_slice(&id.to_le_bytes());
                self.push_bytes(note);
            }
        }
        Ok(())
    }

    fn push_pair(&mut self, kind: u8, fingerprint: F, id: u64) {
        let mut bytes = [0; 1 + 16 + 8];
        bytes[0] = kind;
        fingerprint.write_le(&mut bytes[1..]);
        bytes[1 + F::BYTES..][..8].copy_from_slice(&id.to_le_bytes());
        self.bytes.extend_from_slice(&bytes[..1 + F::BYTES + 8]);
    }

    fn push_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The version of the format that a log must have to hold it.
    pub(crate) fn version(&self) -> u32 {
        self.version
    }

    /// Its length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `visitor` with the operations, in order. They are read back from their bytes: keeping another copy of
    /// each would be no less work.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(Operation<'_, F>)) {
        let mut operations = Operations::new(&self.bytes, self.version);
        while let Ok(Some(operation)) = operations.next() {
            visitor(operation);
        }
        debug_assert_eq!(operations.position(), self.bytes.len(), "what was pushed can be read");
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// How many inserts a payload holds, by the kinds and the lengths of its operations alone: nothing is counted behind one that is
/// cut off or unknown.
pub(super) fn count_inserts<F: Fingerprint>(payload: &[u8]) -> u64 {
    let (mut rest, mut inserts) = (payload, 0);
    while let Some(&kind) = rest.first() {
        let (fields, texts) = match kind {
            INSERT | DELETE => (1 + F::BYTES + 8, 0),
            INSERT_NAMED => (1 + F::BYTES + 8, 1),
            MARK => (1, 2),
            NOTE => (1 + 8, 1),
            _ => break,
        };
        let mut end = rest.get(fields..);
        for _ in 0..texts {
            end = end.and_then(|text| {
                let (len, text) = text.split_at_checked(4)?;
                text.get(LittleEndian::read_u32(len) as usize..)
            });
        }
        let Some(end) = end else { break };
        inserts += u64::from(kind == INSERT || kind == INSERT_NAMED);
        rest = end;
    }
    inserts
}

/// Reads the operations of a payload one after the other.
pub(super) struct Operations<'a, F> {
    payload: &'a [u8],
    at: usize,
    /// The last kind that the version has, and how messages say it.
    last: (u8, &'static str),
    fingerprints: PhantomData<F>,
}

impl<'a, F: Fingerprint> Operations<'a, F> {
    /// Of a log of this version.
    pub(super) fn new(payload: &'a [u8], version: u32) -> Operations<'a, F> {
        let last = if version < VERSION_WITH_NOTES { (MARK, "1 to 4") } else { (NOTE, "1 to 5") };
        Operations { payload, at: 0, last, fingerprints: PhantomData }
    }

    /// How many bytes have been read: after an error, where it is.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// The next operation, `None` at the end of the payload.
    pub(super) fn next(&mut self) -> Result<Option<Operation<'a, F>>, Damage> {
        if self.at == self.payload.len() {
            return Ok(None);
        }
        let kind = self.payload[self.at];
        let (last, expected) = self.last;
        if !(INSERT..=last).contains(&kind) {
            return Err(Damage::Field { name: "kind", found: u64::from(kind), expected });
        }
        self.at += 1;
        if kind == MARK {
            let key = self.text(MAX_KEY, "at most 4096 bytes")?;
            let value = self.bytes(MAX_MARK, "at most 4096 bytes")?;
            return Ok(Some(Operation::Mark { key, value }));
        }
        if kind == NOTE {
            let (id, note) = (self.u64()?, self.bytes(MAX_NOTE, "at most 16777216 bytes")?);
            return Ok(Some(Operation::Note { id, note }));
        }
        let fingerprint = F::read_le(self.take(F::BYTES)?);
        let id = self.u64()?;
        Ok(Some(match kind {
            INSERT => Operation::Insert { fingerprint, id, name: None },
            INSERT_NAMED => {
                let name = Some(self.text(MAX_NAME, "at most 65536 bytes")?);
                Operation::Insert { fingerprint, id, name }
            }
            _ => Operation::Delete { fingerprint, id },
        }))
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Damage> {
        let rest = &self.payload[self.at..];
        let Some(bytes) = rest.get(..len) else {
            return Err(Damage::Truncated { expected: len as u64, found: rest.len() as u64 });
        };
        self.at += len;
        Ok(bytes)
    }

    fn u64(&mut self) -> Result<u64, Damage> {
        self.take(8).map(LittleEndian::read_u64)
    }

    fn bytes(&mut self, limit: usize, expected: &'static str) -> Result<&'a [u8], Damage> {
        let len = self.take(4).map(LittleEndian::read_u32)? as usize;
        if len > limit {
            return Err(Damage::Field { name: "length", found: len as u64, expected });
        }
        self.take(len)
    }

    fn text(&mut self, limit: usize, expected: &'static str) -> Result<&'a str, Damage> {
        std::str::from_utf8(self.bytes(limit, expected)?).map_err(|error| {
            let found = error.valid_up_to() as u64;
            Damage::Field { name: "text", found, expected: "UTF-8" }
        })
    }
}
