use std::ops::ControlFlow;
use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::codec::{Codec, SymbolCounter};
use crate::error::{Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;
use crate::plan::{Plan, TablePlan};

/// Encodes a table of `fingerprints`, which are permuted and sorted here.
fn write<F: Fingerprint>(
    fingerprints: &[F],
    plan: &TablePlan<F>,
    codec: Codec,
    block_size: u32,
    span: u16,
) -> Vec<u8> {
    let mut permuted: Vec<F> = fingerprints.iter().map(|&x| plan.permutation.apply(x)).collect();
    permuted.sort_unstable();
    permuted.dedup();
    let mut counts = SymbolCounter::new(codec);
    permuted.iter().for_each(|&x| counts.push(x));
    let header = TableHeader {
        plan: plan.clone(),
        codec,
        block_size,
        span: if codec.has_spans() { span } else { 0 },
        fingerprints: counts.fingerprints(),
        code: counts.code(),
        line_shape: counts.line_shape(),
    };
    let mut writer = TableWriter::new(Vec::new(), Path::new("t"), header, None).unwrap();
    let mut in_blocks = 0;
    for &x in &permuted {
        in_blocks += writer.push(x).unwrap().unwrap_or(0);
    }
    while let Some(count) = writer.drain().unwrap() {
        in_blocks += count;
    }
    assert_eq!(in_blocks, permuted.len());
    let (bytes, len) = writer.finish().unwrap();
    assert_eq!(bytes.len() as u64, len);
    bytes
}

fn open<F: Fingerprint>(bytes: &[u8]) -> Result<Table<F>> {
    Table::open(Path::new("t"), Bytes::from(bytes.to_vec()))
}

fn check<F: Fingerprint>(
    mut fingerprints: Vec<F>,
    plan: &TablePlan<F>,
    codec: Codec,
    block_size: u32,
    span: u16,
) {
    let table = open::<F>(&write(&fingerprints, plan, codec, block_size, span)).unwrap();
    fingerprints.iter_mut().for_each(|x| *x = plan.permutation.apply(*x));
    fingerprints.sort_unstable();
    fingerprints.dedup();
    assert_eq!(table.scan().collect::<Result<Vec<F>>>().unwrap(), fingerprints);
    let mut seen = Vec::new();
    let read = |some: &[F]| {
        seen.extend_from_slice(some);
        ControlFlow::Continue(())
    };
    assert_eq!(table.verify(read, |error| panic!("{error}")).unwrap(), fingerprints.len() as u64);
    if !fingerprints.is_empty() {
        let cancelled = table.verify(|_| ControlFlow::Break(()), |error| panic!("{error}"));
        assert!(matches!(cancelled, Err(Error::Cancelled)));
    }
    assert_eq!(seen, fingerprints);

    let queries: Vec<F> = fingerprints.iter().step_by(7).copied().chain([F::ZERO, F::MAX]).collect();
    for (i, &query) in queries.iter().enumerate() {
        // The second half of the queries uses a Bloom filter. The results must be the same.
        if i == queries.len() / 2 {
            table.build_filter().unwrap();
        }
        for distance in 0..=plan.flips + 2 {
            let mut found = Vec::new();
            table.probe(query, distance, |x| found.push(x)).unwrap();
            found.sort_unstable();
            assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "none twice");
            let permuted = plan.permutation.apply(query);
            assert!(found.iter().all(|x| x.distance(permuted) <= distance));
            let in_prefix =
                |x: F| ((x ^ permuted) & F::prefix_mask(plan.prefix_bits)).count_ones() <= plan.flips;
            let promised =
                fingerprints.iter().copied().filter(|&x| x.distance(permuted) <= distance && in_prefix(x));
            found.retain(|&x| in_prefix(x));
            assert_eq!(found, promised.collect::<Vec<F>>());
        }
        let mut found = Vec::new();
        let high = query | F::suffix_mask(F::BITS / 2);
        table.visit(query, high, |block, i, x| found.push((block, i, x))).unwrap();
        let expected: Vec<F> = fingerprints.iter().copied().filter(|&x| query <= x && x <= high).collect();
        assert_eq!(found.iter().map(|f| f.2).collect::<Vec<F>>(), expected);
        for (block, i, x) in found {
            let mut decoded = Vec::new();
            table.decode_block(block, &mut decoded).unwrap();
            assert_eq!(decoded[i], x);
        }
    }
}

fn fingerprints<F: Fingerprint>() -> impl Strategy<Value = Vec<F>> {
    let value = prop_oneof![
        4 => any::<u128>(),
        2 => 0_u128..3000,
        1 => (0_u32..128).prop_map(|bit| 1 << bit),
        1 => (0_u32..128).prop_map(|bit| !(1 << bit)),
    ];
    prop::collection::vec(value.prop_map(F::from_u128), 0..1500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn tables_of_64_bits(
        fingerprints in fingerprints::<u64>(),
        codec in prop::sample::select(&Codec::ALL[..]),
        name in prop::sample::select(&["scan", "probe-1", "probe-2", "cover-11", "paper-16"][..]),
        pick in any::<prop::sample::Index>(),
        log in 8_u32..=12,
        span in 1_u16..=256,
    ) {
        let plan = Plan::named(name, 3).unwrap();
        check(fingerprints, pick.get(plan.tables()), codec, 1 << log, span);
    }

    #[test]
    fn tables_of_128_bits(
        fingerprints in fingerprints::<u128>(),
        codec in prop::sample::select(&Codec::ALL[..]),
        name in prop::sample::select(&["scan", "probe-1", "probe-3", "cover-5", "paper-4"][..]),
        pick in any::<prop::sample::Index>(),
        log in 8_u32..=12,
        span in 1_u16..=256,
    ) {
        let plan = Plan::named(name, 3).unwrap();
        check(fingerprints, pick.get(plan.tables()), codec, 1 << log, span);
    }
}

fn small() -> Vec<u64> {
    (0..120_u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}

#[test]
fn every_truncation_is_refused() {
    let plan = Plan::named("probe-2", 3).unwrap();
    for codec in Codec::ALL {
        let bytes = write(&small(), &plan.tables()[1], codec, 256, 8);
        for len in 0..bytes.len() {
            assert!(open::<u64>(&bytes[..len]).is_err(), "{codec} {len}");
        }
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let plan = Plan::named("probe-2", 3).unwrap();
    for codec in Codec::ALL {
        let mut bytes = write(&small(), &plan.tables()[1], codec, 256, 8);
        for bit in 0..bytes.len() * 8 {
            bytes[bit / 8] ^= 1 << (bit % 8);
            let found = open::<u64>(&bytes).is_err_and(|_| true)
                || open::<u64>(&bytes).unwrap().scan().any(|item| item.is_err());
            assert!(found, "{codec}: bit {bit}");
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn other_widths_and_versions_are_refused() {
    let plan = Plan::named("scan", 3).unwrap();
    let mut bytes = write(&small(), &plan.tables()[0], Codec::Gap, 256, 8);
    assert!(open::<u128>(&bytes).is_err());
    for version in [0, 2, 3, 7] {
        bytes[8] = version;
        let error = open::<u64>(&bytes).unwrap_err();
        assert!(matches!(error, Error::UnsupportedVersion { supported: 1, .. }), "{error}");
    }
}

#[test]
fn unsorted_fingerprints_are_refused() {
    let plan = Plan::<u64>::named("scan", 3).unwrap();
    let header = TableHeader {
        plan: plan.tables()[0].clone(),
        codec: Codec::EliasFano,
        block_size: 256,
        span: 0,
        fingerprints: 3,
        code: SymbolCounter::<u64>::new(Codec::EliasFano).code(),
        line_shape: None,
    };
    let mut writer = TableWriter::new(Vec::new(), Path::new("t"), header.clone(), None).unwrap();
    writer.push(7).unwrap();
    assert!(matches!(writer.push(7), Err(crate::Error::OutOfOrder { .. })));
    let mut writer = TableWriter::new(Vec::new(), Path::new("t"), header, None).unwrap();
    writer.push(7).unwrap();
    assert!(writer.finish().is_err(), "fewer than announced");
}

#[test]
fn neighbours_differ_where_the_codec_looks() {
    let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
    // Neighbours differ by 1, 2, 7 and 12 (xor), and by 1, 2, 1 and 4 (difference).
    let fingerprints = [0_u64, 1, 3, 4, 8];
    let (by_xor, by_minus) = ([1, 1, 1, 1], [0, 1, 1, 2]);
    for (codec, expected) in [
        (Codec::FirstDifference, by_xor),
        (Codec::EliasFano, by_xor),
        (Codec::Gap, by_minus),
        (Codec::AllDifferences, by_xor),
        (Codec::PrefixLines, by_xor),
    ] {
        let table = open::<u64>(&write(&fingerprints, &plan, codec, 256, 64)).unwrap();
        let counts = table.differing_bits(1).unwrap();
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (64, 4), "{codec}");
        assert_eq!(counts[60..], expected, "{codec}");
    }
}

#[test]
fn codings_are_reported_as_in_the_blocks() {
    let plan = TablePlan { permutation: Permutation::identity(), prefix_bits: 0, flips: 0 };
    // Families whose members differ in one to three bits below 2^40, far from one another; spans end within them.
    let members = [0_u64, 1 << 3, 1 << 20, 1 << 20 | 1 << 3, 1 << 33, 1 << 33 | 1 << 20 | 1 << 3];
    let fingerprints: Vec<u64> =
        (1..200).flat_map(|family| members.map(|member| family << 44 | member)).collect();
    let span = 16;
    for codec in Codec::ALL {
        let table = open::<u64>(&write(&fingerprints, &plan, codec, 1024, span)).unwrap();
        let (mut coded, mut near, mut earlier, mut at) = (0, 0, 0, 0);
        for block in 0..table.blocks() {
            let mut decoded = Vec::new();
            table.decode_block(block, &mut decoded).unwrap();
            let codings = table.codings(block).unwrap();
            assert_eq!(codings.len(), decoded.len());
            for (i, coding) in codings.iter().enumerate() {
                let restarts = !codec.has_spans() || i % usize::from(span) == 0;
                assert_eq!(coding.is_none(), restarts, "{codec} {block} {i}");
                let Some(coding) = coding else { continue };
                coded += 1;
                near += u32::from(coding.differing.is_some());
                earlier += u32::from(coding.back > 0);
                let other = fingerprints[at + i - 1 - coding.back as usize];
                let difference = match (codec, coding.differing) {
                    (Codec::Gap, _) | (Codec::AllDifferences, None) => decoded[i] - other,
                    _ => decoded[i] ^ other,
                };
                assert_eq!(coding.h, difference.ilog2(), "{codec} {block} {i}");
                let below = difference.count_ones() - 1;
                assert!(coding.differing.is_none_or(|differing| differing == below), "{codec} {block} {i}");
            }
            at += decoded.len();
        }
        assert_eq!(at, fingerprints.len());
        // Five of the six members are near others. Some are nearest to a fingerprint before their predecessor.
        let is_all_differences = codec == Codec::AllDifferences;
        assert_eq!(
            (near > coded / 2, earlier > coded / 10),
            (is_all_differences, is_all_differences),
            "{codec}"
        );
        assert!(table.codings(table.blocks()).is_err());
    }
}
