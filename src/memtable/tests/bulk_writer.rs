//! Tests that applying operations in bulk gives the same memtable as applying them one by one.

use super::{ModelOperation, query, random};
use crate::fingerprint::Fingerprint;
use crate::memtable::Memtable;

/// Creates a memtable and applies the operations to it in bulk.
pub(super) fn filled<F: Fingerprint>(
    distance: u32,
    bytes: u64,
    operations: &[(ModelOperation<F>, bool)],
) -> Memtable<F> {
    let memtable = Memtable::new(distance, bytes);
    memtable.apply_bulk(|writer| {
        for (operation, _) in operations {
            writer.apply(&operation.logged());
        }
    });
    assert_eq!(memtable.version(), 0);
    assert_eq!(memtable.publish(), operations.len() as u64);
    memtable
}

/// Asserts that two memtables have the same contents at a version, in the same order.
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
    assert_eq!(one.all_metadata(version), other.all_metadata(version));
    assert_eq!((one.len(version), one.highest_id(version)), (other.len(version), other.highest_id(version)));
    for &one_query in queries {
        for distance in [0, 1, 3, 7, 16] {
            assert_eq!(query(one, version, one_query, distance), query(other, version, one_query, distance));
        }
    }
}

/// Asserts that applying operations in bulk gives the same memtable as applying them one by one, if there are so
/// many that several worker threads start.
#[test]
fn many_at_once_as_one_by_one() {
    let operations: Vec<(ModelOperation<u64>, bool)> = (0..30_000)
        .map(|i| {
            let (fingerprint, id) = (random(random(i) % 9000), random(i) % 3);
            let operation = match random(i) >> 32 & 31 {
                0 => ModelOperation::Delete(fingerprint, id),
                1 => ModelOperation::Note(id, i.to_le_bytes().to_vec()),
                2 => ModelOperation::Insert(fingerprint, id, Some(i.to_string())),
                _ => ModelOperation::Insert(fingerprint, id, None),
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
