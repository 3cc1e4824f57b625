//! Tests of log records with a note of the maximum length. The records are torn or damaged, or give a wrong length.

use super::super::reader::count_inserts;
use super::*;
use crate::format::MAX_NOTE_BYTES;

/// A log with an insert, a note of the maximum length, and another insert. `synced` has the indexes of synced records.
fn with_a_long_note(synced: &[usize]) -> (Vec<u8>, NumberedBatches) {
    let long =
        (0..MAX_NOTE_BYTES as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
    let batches =
        [vec![insert(1, 1, None)], vec![OwnedOperation::Note(1, long)], vec![insert(2, 2, Some("two"))]];
    (log::<u64>(1, 7, &batches, synced), numbered(7, &batches))
}

#[test]
fn a_torn_note_ends_the_log_before_it() {
    let (bytes, all) = with_a_long_note(&[]);
    let offsets = record_offsets(&bytes);
    let inside = [0, 1, 31, 32, 45, 4096, MAX_NOTE_BYTES, MAX_NOTE_BYTES + 44].map(|at| offsets[1] + at);
    for len in inside {
        let (end, found) = read::<u64>(&bytes[..len], 1).unwrap().unwrap();
        assert!(found == all[..1], "{len}");
        assert_eq!((end.sound_bytes, end.torn_bytes), (offsets[1] as u64, (len - offsets[1]) as u64));
        // Bytes that the operating system had not written are zeros.
        let mut zeros = bytes.clone();
        zeros[len..].fill(0);
        assert!(read::<u64>(&zeros, 1).unwrap().unwrap().1 == all[..1], "{len}");
    }
    assert!(read::<u64>(&bytes, 1).unwrap().unwrap().1 == all);
}

#[test]
fn a_bit_that_flips_in_a_synced_note_is_damage() {
    let (sound, all) = with_a_long_note(&[0, 1]);
    let offsets = record_offsets(&sound);
    for at in [offsets[1] + 9, offsets[1] + 40, offsets[1] + MAX_NOTE_BYTES / 2, offsets[2] - 1] {
        let mut bytes = sound.clone();
        bytes[at] ^= 64;
        let error = read::<u64>(&bytes, 1).unwrap_err();
        assert!(matches!(error, Error::Corrupt { offset, .. } if offset == offsets[1] as u64), "{error}");
        let mut rescued = Vec::new();
        let damaged_log = crate::wal::salvage_log::<u64>(Path::new("l"), &bytes, 1, true, |operation| {
            rescued.push(OwnedOperation::from_operation(operation));
        });
        assert!(rescued == [&all[0].1[..], &all[2].1].concat());
        assert_eq!((damaged_log.missing, damaged_log.damage.len()), (1, 1));
    }
}

/// Asserts that a record is refused if its note claims a length above the maximum or beyond the end of the payload.
#[test]
fn a_length_that_is_wrong_is_refused() {
    let sound = log::<u64>(1, 1, &[vec![OwnedOperation::Note(1, b"short".to_vec())]], &[]);
    let (at, end) = (log_header::LEN, sound.len());
    let length = at + log_record::LEN + 1 + 8;
    for (claimed, expected) in
        [(MAX_NOTE_BYTES + 1, None), (u32::MAX as usize, None), (MAX_NOTE_BYTES, Some(MAX_NOTE_BYTES))]
    {
        let mut bytes = sound.clone();
        bytes[length..][..4].copy_from_slice(&(claimed as u32).to_le_bytes());
        seal(&mut bytes, 1, at, end);
        match (read::<u64>(&bytes, 1).unwrap_err(), expected) {
            (Error::Corrupt { damage: Damage::Field { name: "length", found, expected }, .. }, None) => {
                assert_eq!((found, expected), (claimed as u64, "at most 16777216 bytes"));
            }
            (Error::Corrupt { damage: Damage::Truncated { expected, found: 5 }, .. }, Some(claimed)) => {
                assert_eq!(expected, claimed as u64);
            }
            (other, _) => panic!("{claimed}: {other}"),
        }
        assert_eq!(count_inserts::<u64>(&bytes, 0), 0);
    }
    // A record that claims to be longer than the file is torn.
    let mut bytes = sound;
    bytes[at + log_record::PAYLOAD_LEN..][..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(read::<u64>(&bytes, 1).unwrap().unwrap().0.torn_bytes, (end - at) as u64);
}

#[test]
fn inserts_are_counted_and_nothing_else() {
    let (bytes, _) = with_a_long_note(&[]);
    let offsets = record_offsets(&bytes);
    let counted =
        [0, offsets[1], offsets[2], offsets[3]].map(|from| count_inserts::<u64>(&bytes, from as u64));
    assert_eq!(counted, [2, 1, 1, 0]);
    assert_eq!(count_inserts::<u64>(&bytes[..offsets[3] - 1], 0), 1);
    assert_eq!(count_inserts::<u64>(&log::<u64>(1, 7, &example(), &[]), 0), 3);
    assert_eq!(count_inserts::<u128>(&log::<u128>(1, 7, &example(), &[]), 0), 3);
}
