use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::error::Damage;
use crate::file_bytes::Bytes;

/// Writes the lines of ascending keys. Returns the lines with the checksums of their pages, and the number of lines.
fn write(shape: LineShape, keys: &[u64]) -> (Vec<u8>, u64) {
    let mut writer = LineWriter::new(shape, LineBuffer::new(None));
    keys.iter().for_each(|&key| writer.push(key).unwrap());
    let lines = writer.finish().unwrap();
    let count = shape.lines() + lines.dividing();
    let mut bytes = Vec::new();
    let (len, crc) = lines.write(&mut bytes, Path::new("lines")).unwrap();
    assert_eq!(len, bytes.len() as u64);
    let crcs = count as usize * LINE_BYTES;
    assert_eq!(bytes.len(), crcs + page_count(count) as usize * 4);
    assert_eq!(crc, crc32fast::hash(&bytes[crcs..]));
    (bytes, count)
}

fn open(shape: LineShape, (bytes, lines): (Vec<u8>, u64)) -> PrefixLines {
    PrefixLines::new(Arc::new(Bytes::from(bytes)), 0, lines, shape)
}

/// Collects all keys from `low` to `high` with their ranks.
fn visited(lines: &PrefixLines, low: u64, high: u64) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let visitor = |run: KeyRun| {
        found.extend((run.rank..run.rank + run.count).map(|rank| (rank, run.key)));
        ControlFlow::Continue(())
    };
    lines.visit(low, high, visitor).unwrap();
    found
}

/// Asserts that the lines of `keys`, which ascend, find each key and nothing else.
fn check(shape: LineShape, keys: &[u64]) -> u64 {
    let (bytes, count) = write(shape, keys);
    let lines = open(shape, (bytes, count));
    lines.check(keys.len() as u64).unwrap();
    let all: Vec<(u64, u64)> = (0..).zip(keys.iter().copied()).collect();
    let most = u64::MAX >> (64 - shape.key_bits());
    assert_eq!(visited(&lines, 0, most), all);
    let near =
        keys.iter().step_by(1 + keys.len() / 50).flat_map(|&key| [key, key + 1, key.saturating_sub(1)]);
    for low in near.chain([0, most]).filter(|&low| low <= most) {
        assert_eq!(lines.rank_of(low).unwrap(), keys.partition_point(|&key| key < low) as u64, "{low}");
        for high in [low, (low + 300).min(most), (low | 0xff).min(most)] {
            let expected: Vec<(u64, u64)> =
                all.iter().copied().filter(|&(_, key)| low <= key && key <= high).collect();
            assert_eq!(visited(&lines, low, high), expected, "{low} to {high}");
        }
    }
    count
}

/// Ascending keys of `bits` bits: spread out, dense, equal, and at both ends.
fn keys(bits: u32) -> impl Strategy<Value = Vec<u64>> {
    let most = u64::MAX >> (64 - bits);
    let cluster = (any::<u64>(), 0_u64..300, 1_usize..90).prop_map(|(start, step, count)| {
        (0..count as u64).map(|i| start.wrapping_add(i * step / 16)).collect::<Vec<u64>>()
    });
    let spread = prop::collection::vec(any::<u64>(), 1..200);
    let ends = prop::collection::vec(prop_oneof![0_u64..9, (0_u64..9).prop_map(|i| u64::MAX - i)], 1..9);
    let parts = prop_oneof![4 => cluster, 2 => spread, 1 => ends];
    prop::collection::vec(parts, 1..20).prop_map(move |parts| {
        let mut keys: Vec<u64> = parts.concat().into_iter().map(|key| key & most).collect();
        keys.sort_unstable();
        keys
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn lines_have_all_keys_with_their_ranks(
        (mean_keys, keys) in (1_u64..60, 9_u32..=40).prop_flat_map(|(mean, bits)| (Just(mean), keys(bits))),
    ) {
        // Few bits, so that the keys are dense, and as many as a table would have.
        let count = keys.len() as u64;
        let shape = LineShape::for_table(count, mean_keys, 64);
        let fewer: Vec<u64> = keys.iter().map(|key| key & (u64::MAX >> (64 - shape.key_bits()))).collect();
        let mut fewer = fewer;
        fewer.sort_unstable();
        check(shape, &fewer);
    }

    /// The arithmetic gives each bucket of a line its own slot, in the order of the buckets.
    #[test]
    fn buckets_have_slots_of_their_own(
        fingerprints in prop_oneof![1_u64..5000, any::<u32>().prop_map(u64::from), Just(1 << 36)],
        mean_keys in 1_u64..60,
        picks in prop::collection::vec(any::<prop::sample::Index>(), 10),
    ) {
        let shape = LineShape::for_table(fingerprints, mean_keys, 128);
        prop_assert_eq!(LineShape::from_header(shape.key_bits(), shape.lines(), 128).unwrap(), shape);
        for pick in picks {
            let line = pick.index(shape.lines() as usize) as u64;
            let buckets = shape.buckets(line);
            prop_assert!(!buckets.is_empty());
            let mut slots = Vec::new();
            for bucket in buckets.clone() {
                let address = shape.address(bucket);
                prop_assert_eq!(address.line, line);
                prop_assert!(address.slot < shape.slots());
                slots.push(address.slot);
            }
            prop_assert!(slots.windows(2).all(|pair| pair[0] < pair[1]));
            if line > 0 {
                prop_assert_eq!(shape.address(buckets.start - 1).line, line - 1);
            }
        }
        prop_assert_eq!(shape.address((1 << shape.bucket_bits()) - 1).line, shape.lines() - 1);
    }

    /// Lines of arbitrary bytes with a sound checksum give an error or wrong keys, but no panic and no endless loop.
    #[test]
    fn hostile_lines(
        seed in prop::collection::vec(any::<[[u8; 32]; 2]>(), 4..9),
        kinds in prop::collection::vec(any::<u8>(), 9),
        targets in prop::collection::vec((0_u8..10, 0_u8..9, 0_u8..20), 9),
        low in any::<u64>(),
    ) {
        let shape = LineShape::for_table(100, 36, 64);
        let mut bytes = Vec::new();
        for (i, line) in seed.iter().enumerate() {
            let mut line = line.concat();
            match kinds[i] % 4 {
                0 => line[0] &= !1,
                1 => {
                    let (first, low_bits, lines) = targets[i];
                    line[0] = 1;
                    line[1] = low_bits;
                    line[4..8].copy_from_slice(&u32::from(lines).to_le_bytes());
                    line[16..24].copy_from_slice(&u64::from(first).to_le_bytes());
                }
                2 => line[0] = 3,
                _ => {}
            }
            bytes.extend_from_slice(&line);
        }
        let count = seed.len() as u64;
        let crc = page_crc(0, &bytes);
        bytes.extend_from_slice(&crc.to_le_bytes());
        let lines = open(shape, (bytes, count));
        let most = u64::MAX >> (64 - shape.key_bits());
        let _ = lines.check(100);
        let _ = lines.rank_of(low & most);
        let _ = lines.visit(0, most, |_| ControlFlow::Continue(()));
        let _ = lines.visit_place(lines.main_line(1), low & most, most, |_| ControlFlow::Continue(()));
    }
}

#[test]
fn equal_and_dense_keys_divide_lines_down_to_runs() {
    let shape = LineShape::for_table(4000, 36, 64);
    let most = u64::MAX >> (64 - shape.key_bits());
    let equal = vec![most / 3; 4000];
    assert_eq!(check(shape, &equal), shape.lines(), "a run needs no further line");
    let dense: Vec<u64> = (0..4000).map(|i| most / 3 + i / 7).collect();
    assert!(check(shape, &dense) > shape.lines() + 100);
    let mut nested = vec![most / 3; 1000];
    nested.extend((0..1000).map(|i| most / 3 + 1 + i / 500));
    nested.extend((0..60).map(|i| most / 3 + 3 + i));
    check(shape, &nested);
}

/// A line that lacks a key is found by the full check: a mutant, made once.
#[test]
fn a_missing_key_is_found() {
    let shape = LineShape::for_table(200, 36, 64);
    let keys: Vec<u64> = (0..200).map(|i| i * 17).collect();
    let whole = write(shape, &keys);
    open(shape, whole).check(200).unwrap();
    let fewer = [&keys[..100], &keys[101..]].concat();
    let lines = open(shape, write(shape, &fewer));
    assert!(matches!(lines.check(200), Err(Damage::Mismatch { .. })));
}

#[test]
fn damaged_pages_are_reported_with_their_offset() {
    let shape = LineShape::for_table(6000, 36, 64);
    let keys: Vec<u64> = (0..6000).map(|i| i * 40).collect();
    let (bytes, count) = write(shape, &keys);
    for bit in (0..bytes.len() * 8).step_by(61) {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let lines = open(shape, (bytes, count));
        let mut found = Vec::new();
        lines.verify_pages(|damage| found.push(damage));
        let crcs = count as usize * LINE_BYTES;
        let page = if bit / 8 < crcs { bit / 8 / 4096 } else { (bit / 8 - crcs) / 4 };
        let [Damage::LinePage { offset, .. }] = found[..] else { panic!("{found:?}") };
        assert_eq!(offset, page as u64 * 4096);
        assert!(matches!(lines.line(page as u64 * 64), Err(Damage::LinePage { .. })));
    }
}
