//! Operations that are done all at once against those done one by one.

use super::{Operation, query, random};
use crate::fingerprint::Fingerprint;
use crate::memtable::Memtable;

/// The same operations, done all at once as a log has them.
pub(super) fn filled<F: Fingerprint>(
    distance: u32,
    bytes: u64,
    operations: &[(Operation<F>, bool)],
) -> Memtable<F> {
    let memtable = Memtable::new(distance, bytes);
    memtable.fill(|filling| {
        for (operation, _) in operations {
            filling.apply(&operation.logged());
        }
    });
    assert_eq!(memtable.version(), 0);
    assert_eq!(memtable.publish(), operations.len() as u64);
    memtable
}

/// Whether two memtables show the same at a version, in the same order.
pub(super) fn assert_same<F: Fingerprint>(
    one: &Memtable<F>,
    other: &Memtable<F>,
    version: u64,
    queries: &[F],
) {
    let visited = |memtable: &Memtable<F>| {
        let mut all = Vec::new();
        memtable.visit(version, |fingerprint, id| all.push((fingerprint, id)));
        all
    };
    assert_eq!(visited(one), visited(other));
    assert_eq!(one.tombstones(version), other.tombstones(version));
    assert_eq!(one.names(version), other.names(version));
    assert_eq!(one.notes(version), other.notes(version));
    assert_eq!(one.marks(version), other.marks(version));
    assert_eq!((one.len(version), one.highest_id(version)), (other.len(version), other.highest_id(version)));
    for &asked in queries {
        for distance in [0, 1, 3, 7, 16] {
            assert_eq!(query(one, version, asked, distance), query(other, version, asked, distance));
        }
    }
}

/// More than one thread is handed, with pairs that come again, and that go and come.
#[test]
fn many_at_once_as_one_by_one() {
    let operations: Vec<(Operation<u64>, bool)> = (0..30_000)
        .map(|i| {
            let (fingerprint, id) = (random(random(i) % 9000), random(i) % 3);
            let operation = match random(i) >> 32 & 31 {
                0 => Operation::Delete(fingerprint, id),
                1 => Operation::Note(id, i.to_le_bytes().to_vec()),
                2 => Operation::Insert(fingerprint, id, Some(i.to_string())),
                _ => Operation::Insert(fingerprint, id, None),
            };
            (operation, false)
        })
        .collect();
    for distance in [0, 3, 10] {
        let one_by_one = Memtable::new(distance, 1 << 20);
        operations.iter().for_each(|(operation, _)| one_by_one.apply(&operation.logged()));
        one_by_one.publish();
        let filled = filled(distance, 1 << 20, &operations);
        let queries: Vec<u64> = (0..50).map(|i| random(i) ^ 1 << i).collect();
        for version in [0, 1, 127, 128, 129, 4095, 4096, 4097, 20_000, 30_000] {
            assert_same(&one_by_one, &filled, version, &queries);
        }
    }
}
