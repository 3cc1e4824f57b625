//! The tombstone file of a segment: the (fingerprint, id) pairs that the segment deletes from older segments
//! (`format-spec/tombstones.md`).

use std::io::Write;
use std::path::Path;
use std::sync::OnceLock;

use byteorder::{ByteOrder, LittleEndian};

use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, TOMBSTONES_MAGIC, tombstones_footer as footer, tombstones_header as header};

/// Writes a tombstone file. `pairs` must ascend.
pub(super) fn write<F: Fingerprint>(mut sink: impl Write, path: &Path, pairs: &[(F, u64)]) -> Result<()> {
    let mut bytes = Vec::with_capacity(header::LEN + pairs.len() * (F::BYTES + 8) + footer::LEN);
    bytes.resize(header::LEN, 0);
    bytes[..header::VERSION].copy_from_slice(&TOMBSTONES_MAGIC);
    LittleEndian::write_u32(&mut bytes[header::VERSION..], format::VERSION);
    bytes[header::BITS] = F::BITS as u8;
    LittleEndian::write_u64(&mut bytes[header::COUNT..], pairs.len() as u64);
    let mut field = [0; 16];
    for &(fingerprint, id) in pairs {
        fingerprint.write_le(&mut field[..F::BYTES]);
        bytes.extend_from_slice(&field[..F::BYTES]);
        bytes.extend_from_slice(&id.to_le_bytes());
    }
    let crc = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&crc.to_le_bytes());
    bytes.extend_from_slice(&TOMBSTONES_MAGIC);
    sink.write_all(&bytes).map_err(Error::io(path, "write"))
}

/// The tombstones of a segment, in memory: the (fingerprint, id) pairs that the segment deletes from older
/// segments.
#[derive(Debug)]
pub(super) struct Tombstones<F> {
    file_len: u64,
    pairs: Vec<(F, u64)>,
    /// Distinct ids of the pairs, ascending; computed at first use.
    ids: OnceLock<Box<[u64]>>,
}

impl<F: Fingerprint> Tombstones<F> {
    pub(super) fn open(path: &Path, bytes: impl AsRef<[u8]>) -> Result<Self> {
        let bytes = bytes.as_ref();
        let end = format::check_ends(path, bytes, TOMBSTONES_MAGIC, footer::LEN)?;
        let corrupt = |offset: usize, damage| Err(Error::corrupt(path, offset as u64, damage));
        let crc = LittleEndian::read_u32(&bytes[end + footer::CRC..]);
        format::check_crc(path, "tombstones", end, &bytes[..end], crc)?;
        if end < header::LEN {
            let (expected, found) = ((header::LEN + footer::LEN) as u64, bytes.len() as u64);
            return corrupt(0, Damage::Truncated { expected, found });
        }
        if u32::from(bytes[header::BITS]) != F::BITS {
            let (expected, found) = (F::BITS, u32::from(bytes[header::BITS]));
            return Err(Error::Width { path: path.to_path_buf(), expected, found });
        }
        format::check_reserved(path, header::RESERVED, &bytes[header::RESERVED..header::COUNT])?;
        let body = &bytes[header::LEN..end];
        let count = LittleEndian::read_u64(&bytes[header::COUNT..]);
        if !body.len().is_multiple_of(F::BYTES + 8) || count != (body.len() / (F::BYTES + 8)) as u64 {
            let damage = Damage::Field { name: "count", found: count, expected: "what fits the file" };
            return corrupt(header::COUNT, damage);
        }
        let pair = |pair: &[u8]| (F::read_le(&pair[..F::BYTES]), LittleEndian::read_u64(&pair[F::BYTES..]));
        let pairs: Vec<_> = body.chunks_exact(F::BYTES + 8).map(pair).collect();
        if let Some(i) = (1..pairs.len()).find(|&i| pairs[i - 1] >= pairs[i]) {
            return corrupt(header::LEN + i * (F::BYTES + 8), Damage::Order { what: "tombstones" });
        }
        Ok(Tombstones { file_len: bytes.len() as u64, pairs, ids: OnceLock::new() })
    }

    /// Fails if a pair has an id other than 0, as in a store that keeps ids.
    pub(super) fn check_without_ids(&self, path: &Path) -> Result<()> {
        match self.pairs.iter().position(|&(_, id)| id > 0) {
            None => Ok(()),
            Some(i) => {
                let offset = header::LEN + i * (F::BYTES + 8) + F::BYTES;
                let damage = Damage::Field {
                    name: "id",
                    found: self.pairs[i].1,
                    expected: "0 in a store without ids",
                };
                Err(Error::corrupt(path, offset as u64, damage))
            }
        }
    }

    pub(super) fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The deleted (fingerprint, id) pairs, ascending.
    pub(super) fn pairs(&self) -> &[(F, u64)] {
        &self.pairs
    }

    pub(super) fn contains(&self, fingerprint: F, id: u64) -> bool {
        self.pairs.binary_search(&(fingerprint, id)).is_ok()
    }

    /// Whether any of the deleted pairs has this id.
    pub(super) fn has_id(&self, id: u64) -> bool {
        let ids = self.ids.get_or_init(|| {
            let mut ids: Vec<u64> = self.pairs.iter().map(|&(_, id)| id).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.into()
        });
        ids.binary_search(&id).is_ok()
    }

    /// Memory of the tombstones in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.pairs[..]) + self.ids.get().map_or(0, |ids| size_of_val(&ids[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::every_damage_is_found;
    use super::*;

    fn encoded<F: Fingerprint>(pairs: &[(F, u64)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(&mut bytes, Path::new("t"), pairs).unwrap();
        bytes
    }

    fn comes_back<F: Fingerprint>() {
        let pairs = [(F::ZERO, 0), (F::ZERO, 7), (F::ONE, u64::MAX), (F::MAX, 3)];
        for len in 0..pairs.len() {
            let read = Tombstones::open(Path::new("t"), encoded(&pairs[..len])).unwrap();
            assert_eq!(read.pairs(), &pairs[..len]);
            assert!(pairs.iter().enumerate().all(|(i, &(x, id))| read.contains(x, id) == (i < len)));
            assert!(!read.contains(F::ONE, 5));
            assert!(pairs.iter().enumerate().all(|(i, &(_, id))| read.has_id(id) == (i < len)));
            assert!(!read.has_id(5));
        }
    }

    #[test]
    fn both_widths_come_back() {
        comes_back::<u64>();
        comes_back::<u128>();
        assert!(Tombstones::<u128>::open(Path::new("t"), encoded(&[(1_u64, 1), (2, 2)])).is_err());
    }

    #[test]
    fn every_flipped_bit_and_every_truncation_is_found() {
        let open = |bytes: &[u8]| Tombstones::<u64>::open(Path::new("t"), bytes).map(drop);
        every_damage_is_found(encoded(&[(5_u64, 1), (6, 0), (6, 2)]), open);
        assert!(open(&encoded(&[(6_u64, 0), (5, 0)])).is_err());
    }
}
