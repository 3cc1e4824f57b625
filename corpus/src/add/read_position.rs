//! Number and checksum of the documents that have been read from a file. The store keeps both as metadata.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Position in a file, with the number and the checksum of the documents before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadPosition {
    /// Number of documents before the position.
    pub(super) documents: u64,
    /// Line on which the last document before the position starts. See [`Item::line`](crate::Item::line).
    pub(super) line: u64,
    /// Checksum of all documents before the position, in order.
    checksum: u64,
}

/// Position after the last document read from a file, and position before this document. The last document may be incomplete,
/// if another program was still writing the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReadCheckpoint {
    pub(super) end: ReadPosition,
    pub(super) before_last: ReadPosition,
}

impl ReadCheckpoint {
    /// Number of 64-bit fields of an encoded [`ReadCheckpoint`].
    const FIELDS: usize = 6;

    /// Moves the checkpoint past the next document, which has this line and checksum.
    pub(super) fn push(&mut self, line: u64, checksum: u64) {
        self.before_last = self.end;
        let end = &mut self.end;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&line.to_le_bytes());
        bytes[8..].copy_from_slice(&checksum.to_le_bytes());
        *end = ReadPosition {
            documents: end.documents + 1,
            line,
            checksum: xxh3_64_with_seed(&bytes, end.checksum),
        };
    }

    /// Encodes the fields as little-endian words, for the store's metadata.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let fields = |position: ReadPosition| [position.documents, position.line, position.checksum];
        [fields(self.end), fields(self.before_last)].concat().into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// Decodes a checkpoint; `None` if the length is wrong.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<ReadCheckpoint> {
        let (fields, []) = bytes.as_chunks::<8>() else { return None };
        let fields: [u64; ReadCheckpoint::FIELDS] =
            fields.iter().map(|&field| u64::from_le_bytes(field)).collect::<Vec<_>>().try_into().ok()?;
        let position = |at: usize| ReadPosition {
            documents: fields[at],
            line: fields[at + 1],
            checksum: fields[at + 2],
        };
        Some(ReadCheckpoint { end: position(0), before_last: position(3) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint(documents: &[(u64, u64)]) -> ReadCheckpoint {
        let mut checkpoint = ReadCheckpoint::default();
        documents.iter().for_each(|&(line, checksum)| checkpoint.push(line, checksum));
        checkpoint
    }

    #[test]
    fn trails_tell_documents_apart() {
        let two = checkpoint(&[(1, 7), (2, 8)]);
        assert_eq!(two.before_last, checkpoint(&[(1, 7)]).end);
        for other in [&[(1, 7), (2, 9)][..], &[(1, 6), (2, 8)], &[(1, 8), (2, 7)], &[(1, 7), (3, 8)], &[]] {
            assert_ne!(checkpoint(other).end, two.end);
        }
    }

    #[test]
    fn trails_come_back_from_bytes() {
        let checkpoint = checkpoint(&[(1, u64::MAX), (20, 3)]);
        assert_eq!(ReadCheckpoint::from_bytes(&checkpoint.to_bytes()), Some(checkpoint));
        let bytes = checkpoint.to_bytes();
        assert!((0..bytes.len()).all(|len| ReadCheckpoint::from_bytes(&bytes[..len]).is_none()));
    }
}
