//! Operations of a log, and their encoding.

use std::marker::PhantomData;

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{
    MAX_METADATA_KEY_BYTES, MAX_METADATA_VALUE_BYTES, MAX_NAME_BYTES, MAX_NOTE_BYTES, MAX_PAYLOAD_BYTES,
    check_text,
};

const INSERT: u8 = 1;
const INSERT_NAMED: u8 = 2;
const DELETE: u8 = 3;
const METADATA: u8 = 4;
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
    /// Sets a metadata value, atomically with the other operations of its record.
    Metadata {
        key: &'a str,
        value: &'a [u8],
    },
    /// Sets the note of a document.
    Note {
        id: u64,
        note: &'a [u8],
    },
}

/// The payload of a record: its operations, encoded.
#[derive(Debug)]
pub(crate) struct Payload<F> {
    bytes: Vec<u8>,
    fingerprints: PhantomData<fn(F)>,
}

impl<F> Default for Payload<F> {
    fn default() -> Payload<F> {
        Payload { bytes: Vec::new(), fingerprints: PhantomData }
    }
}

impl<F: Fingerprint> Payload<F> {
    /// Appends an operation. An error leaves the payload unchanged.
    pub(crate) fn push(&mut self, operation: &Operation<'_, F>) -> Result<()> {
        let within = |what, len: usize, limit| {
            let message = || format!("a {what} of {len} bytes: shorten it to {limit} bytes at most");
            if len > limit { Err(Error::BadArgument(message())) } else { Ok(len) }
        };
        let len = match *operation {
            Operation::Insert { name, .. } => {
                let name = name.unwrap_or_default();
                check_text("name", name.as_bytes())?;
                within("name", name.len(), MAX_NAME_BYTES)?
            }
            Operation::Metadata { key, value } => {
                check_text("metadata key", key.as_bytes())?;
                within("metadata key", key.len(), MAX_METADATA_KEY_BYTES)?
                    + within("metadata value", value.len(), MAX_METADATA_VALUE_BYTES)?
            }
            Operation::Delete { .. } => 0,
            Operation::Note { note, .. } => within("note", note.len(), MAX_NOTE_BYTES)?,
        };
        // The fixed-size fields of an operation take at most 64 bytes.
        if self.bytes.len() + len + 64 > MAX_PAYLOAD_BYTES {
            let message =
                format!("a transaction of more than {MAX_PAYLOAD_BYTES} bytes: split it into smaller ones");
            return Err(Error::BadArgument(message));
        }
        match *operation {
            Operation::Insert { fingerprint, id, name: None } => self.push_pair(INSERT, fingerprint, id),
            Operation::Insert { fingerprint, id, name: Some(name) } => {
                self.push_pair(INSERT_NAMED, fingerprint, id);
                self.push_bytes(name.as_bytes());
            }
            Operation::Delete { fingerprint, id } => self.push_pair(DELETE, fingerprint, id),
            Operation::Metadata { key, value } => {
                self.bytes.push(METADATA);
                self.push_bytes(key.as_bytes());
                self.push_bytes(value);
            }
            Operation::Note { id, note } => {
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

    /// Payload length in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Calls `visitor` with each operation, in order. Decodes the operations from the payload, which costs no more than to
    /// keep a copy of each.
    pub(crate) fn visit(&self, mut visitor: impl FnMut(Operation<'_, F>)) {
        let mut operations = OperationReader::new(&self.bytes, true);
        while let Ok(Some(operation)) = operations.next() {
            visitor(operation);
        }
        debug_assert_eq!(operations.position(), self.bytes.len(), "what was pushed can be read");
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Number of inserts in a payload. Looks only at the kinds and lengths of operations, and stops at the first one that
/// is truncated or unknown.
pub(super) fn count_inserts<F: Fingerprint>(payload: &[u8]) -> u64 {
    let (mut rest, mut inserts) = (payload, 0);
    while let Some(&kind) = rest.first() {
        let (fields, texts) = match kind {
            INSERT | DELETE => (1 + F::BYTES + 8, 0),
            INSERT_NAMED => (1 + F::BYTES + 8, 1),
            METADATA => (1, 2),
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

/// Decoder of the operations in a payload.
pub(super) struct OperationReader<'a, F> {
    payload: &'a [u8],
    at: usize,
    /// Whether the store keeps ids. If not, ids other than 0, names and notes are errors.
    keeps_ids: bool,
    fingerprints: PhantomData<F>,
}

impl<'a, F: Fingerprint> OperationReader<'a, F> {
    /// Creates a decoder for the payload of a record. `keeps_ids` is whether the store keeps ids.
    pub(super) fn new(payload: &'a [u8], keeps_ids: bool) -> OperationReader<'a, F> {
        OperationReader { payload, at: 0, keeps_ids, fingerprints: PhantomData }
    }

    /// Number of bytes decoded. After an error, this is the offset of the error in the payload.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    /// Decodes the next operation; `None` at the end of the payload.
    pub(super) fn next(&mut self) -> Result<Option<Operation<'a, F>>, Damage> {
        if self.at == self.payload.len() {
            return Ok(None);
        }
        let kind = self.payload[self.at];
        let is_valid = match kind {
            INSERT | DELETE | METADATA => true,
            INSERT_NAMED | NOTE => self.keeps_ids,
            _ => false,
        };
        if !is_valid {
            let expected = if self.keeps_ids { "1 to 5" } else { "1, 3 or 4 in a store without ids" };
            return Err(Damage::Field { name: "kind", found: u64::from(kind), expected });
        }
        self.at += 1;
        if kind == METADATA {
            let key = self.text(MAX_METADATA_KEY_BYTES, "at most 4096 bytes")?;
            let value = self.bytes(MAX_METADATA_VALUE_BYTES, "at most 4096 bytes")?;
            return Ok(Some(Operation::Metadata { key, value }));
        }
        if kind == NOTE {
            let (id, note) = (self.u64()?, self.bytes(MAX_NOTE_BYTES, "at most 16777216 bytes")?);
            return Ok(Some(Operation::Note { id, note }));
        }
        let fingerprint = F::read_le(self.take(F::BYTES)?);
        let id_at = self.at;
        let id = self.u64()?;
        if !self.keeps_ids && id > 0 {
            self.at = id_at;
            return Err(Damage::Field { name: "id", found: id, expected: "0 in a store without ids" });
        }
        Ok(Some(match kind {
            INSERT => Operation::Insert { fingerprint, id, name: None },
            INSERT_NAMED => {
                let name = Some(self.text(MAX_NAME_BYTES, "at most 65536 bytes")?);
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
