//! What was read of a file: so many documents, known by a checksum of them all.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Documents from the start of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Point {
    pub(super) documents: u64,
    /// Where the last of them starts.
    pub(super) line: u64,
    /// Of all of them, in order.
    checksum: u64,
}

/// How far a file has been read, and how far before the last document: that may have been cut off by whoever was
/// writing the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Trail {
    pub(super) end: Point,
    pub(super) before_last: Point,
}

impl Trail {
    const FIELDS: usize = 6;

    /// Takes one more document: where it starts, and its checksum.
    pub(super) fn push(&mut self, line: u64, checksum: u64) {
        self.before_last = self.end;
        let end = &mut self.end;
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&line.to_le_bytes());
        bytes[8..].copy_from_slice(&checksum.to_le_bytes());
        *end =
            Point { documents: end.documents + 1, line, checksum: xxh3_64_with_seed(&bytes, end.checksum) };
    }

    /// As it is kept with the store: little-endian fields.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        let fields = |point: Point| [point.documents, point.line, point.checksum];
        [fields(self.end), fields(self.before_last)].concat().into_iter().flat_map(u64::to_le_bytes).collect()
    }

    /// `None` for what no trail is.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Trail> {
        let (fields, []) = bytes.as_chunks::<8>() else { return None };
        let fields: [u64; Trail::FIELDS] =
            fields.iter().map(|&field| u64::from_le_bytes(field)).collect::<Vec<_>>().try_into().ok()?;
        let point =
            |at: usize| Point { documents: fields[at], line: fields[at + 1], checksum: fields[at + 2] };
        Some(Trail { end: point(0), before_last: point(3) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trail(documents: &[(u64, u64)]) -> Trail {
        let mut trail = Trail::default();
        documents.iter().for_each(|&(line, checksum)| trail.push(line, checksum));
        trail
    }

    #[test]
    fn trails_tell_documents_apart() {
        let two = trail(&[(1, 7), (2, 8)]);
        assert_eq!(two.before_last, trail(&[(1, 7)]).end);
        for other in [&[(1, 7), (2, 9)][..], &[(1, 6), (2, 8)], &[(1, 8), (2, 7)], &[(1, 7), (3, 8)], &[]] {
            assert_ne!(trail(other).end, two.end);
        }
    }

    #[test]
    fn trails_come_back_from_bytes() {
        let trail = trail(&[(1, u64::MAX), (20, 3)]);
        assert_eq!(Trail::from_bytes(&trail.to_bytes()), Some(trail));
        let bytes = trail.to_bytes();
        assert!((0..bytes.len()).all(|len| Trail::from_bytes(&bytes[..len]).is_none()));
    }
}
