//! Tests of notes (bytes stored with documents) of various lengths, up to the longest permitted, in logs and segments.

use super::super::salvage::{SalvageOptions, salvage};
use super::*;
use crate::format::MAX_NOTE_BYTES;

const LENGTHS: [usize; 6] = [0, 1, 16_384, 16_385, 1 << 20, MAX_NOTE_BYTES];

/// Returns a note of `len` pseudorandom bytes. The bytes do not repeat at the sizes of chunks or disk blocks, so a
/// swapped chunk changes the note.
fn note(len: usize) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// Asserts that the snapshot has one note of each of the [`LENGTHS`]. The id of a note is the index of its length in
/// `LENGTHS`.
fn assert_has_all(snapshot: &Snapshot<u64>) {
    let ids: Vec<u64> = (0..LENGTHS.len() as u64).collect();
    let expected: Vec<_> = LENGTHS.iter().map(|&len| Some(note(len))).collect();
    assert!(snapshot.notes_of(&ids).unwrap() == expected);
    for (&id, expected) in ids.iter().zip(&expected) {
        assert!(snapshot.note(id).unwrap() == *expected, "{}", LENGTHS[id as usize]);
    }
    assert_eq!(snapshot.note(ids.len() as u64).unwrap(), None);
}

fn assert_is_sound(store: &ManualStore) {
    store.snapshot().verify(|error| panic!("{error}"));
}

#[test]
fn notes_of_every_length_come_back() {
    let options = || StoreOptions { memtable: 1 << 26, ..StoreOptions::default() };
    let store = ManualStore::new(options());
    let write = |store: &ManualStore, ids: std::ops::Range<usize>| {
        store.commit(|batch| {
            for id in ids {
                batch.insert(id as u64, id as u64);
                batch.set_note(id as u64, &note(LENGTHS[id])).unwrap();
            }
        });
    };
    write(&store, 0..3);
    write(&store, 3..LENGTHS.len());
    assert_has_all(&store.snapshot());
    let store = store.reopen().unwrap();
    assert_has_all(&store.snapshot());
    let salvaged = |store: &ManualStore| {
        let folder = tempfile::tempdir().unwrap();
        let new = folder.path().join("new");
        let result = salvage::<u64>(store.path(), &new, &SalvageOptions::default()).unwrap();
        assert_eq!((result.notes, result.is_whole()), (LENGTHS.len() as u64, true));
        assert_has_all(&Snapshot::open(&new).unwrap());
    };
    salvaged(&store);
    store.flush().unwrap();
    assert_has_all(&store.snapshot());
    let store = store.reopen().unwrap();
    assert_has_all(&store.snapshot());
    store.commit_and_flush(|batch| batch.set_note(1, b"another").unwrap());
    write(&store, 1..LENGTHS.len());
    store.flush().unwrap();
    let segments = store.manifest().segments.len();
    assert!(segments > 1);
    store.merge(0..segments);
    assert_eq!(store.manifest().segments.len(), 1);
    assert_has_all(&store.snapshot());
    let store = store.reopen().unwrap();
    assert_has_all(&store.snapshot());
    assert_is_sound(&store);
    salvaged(&store);
}

#[test]
fn one_byte_more_is_refused() {
    let store = ManualStore::new(small());
    store.commit(|batch| {
        let error = batch.set_note(1, &vec![0; MAX_NOTE_BYTES + 1]).unwrap_err();
        assert_eq!(error.to_string(), "a note of 16777217 bytes: shorten it to 16777216 bytes at most");
    });
    let folder = tempfile::tempdir().unwrap();
    let mut builder = Builder::<u64>::create(&folder.path().join("new"), BuildOptions::default()).unwrap();
    let error = builder.set_note(1, &vec![0; MAX_NOTE_BYTES + 1]).unwrap_err();
    assert_eq!(error.to_string(), "the note of document 1 is 16777217 bytes long; at most 16777216 are kept");
}

/// Asserts that a transaction returns an error for a note that would make it too long, even if the note alone has a permitted
/// length.
#[test]
fn a_transaction_of_too_many_long_notes_says_so() {
    let store = ManualStore::new(small());
    let (long, mut batch) = (vec![7; MAX_NOTE_BYTES], Transaction::new(&store.writer));
    (0..63).for_each(|id| batch.set_note(id, &long).unwrap());
    let (before, error) = (batch.bytes(), batch.set_note(63, &long).unwrap_err());
    assert_eq!(error.to_string(), "a transaction of more than 1073741824 bytes: split it into smaller ones");
    assert_eq!(batch.bytes(), before);
}

/// Asserts that a few long notes fill a memtable, because its size includes the bytes of notes.
#[test]
fn a_memtable_is_full_by_the_bytes_of_notes() {
    let store = ManualStore::new(StoreOptions { memtable: 1 << 22, ..StoreOptions::default() });
    let memtables = || store.shared.view().memtables.len();
    // The first note starts a log of another version.
    store.commit(|batch| batch.set_note(0, b"").unwrap());
    let begun = memtables();
    (0..4).for_each(|id| store.commit(|batch| batch.set_note(id, &note(1 << 20)).unwrap()));
    assert_eq!(memtables(), begun);
    store.commit(|batch| batch.insert(1, 1));
    assert_eq!(memtables(), begun + 1);
}

/// Asserts that a refresh after a long note was written reads only the new record. A refresh reads all records again, into a
/// larger memtable, only if the new records have too many pairs of fingerprint and id for the old one. A note of any length
/// does not count as a pair.
#[test]
fn a_log_of_long_notes_is_read_into_a_memtable_of_its_pairs() {
    let store = ManualStore::new(StoreOptions { memtable: 1 << 22, ..StoreOptions::default() });
    store.commit(|batch| batch.insert(1, 1));
    let reader = Snapshot::<u64>::open(store.path()).unwrap();
    store.commit(|batch| batch.set_note(1, &note(1 << 19)).unwrap());
    let newer = reader.refresh().unwrap();
    let (one, other) = (reader.memtables().next().unwrap(), newer.memtables().next().unwrap());
    assert!(std::ptr::eq(one.0, other.0), "what the reader had read is read again");
    assert_eq!((one.1, other.1, newer.memtables().len()), (1, 2, 1));
}
