use byteorder::{ByteOrder, LittleEndian};
use proptest::prelude::*;

use super::block_codec::NONCONFORMING_BLOCK;
use super::delta::DeltaCodec;
use super::*;
use crate::bits;
use crate::huffman::HuffmanCode;

/// Sorted, distinct fingerprints of several kinds: spread out, dense, at both ends of the range.
fn fingerprints<F: Fingerprint>() -> impl Strategy<Value = Vec<F>> {
    let value = prop_oneof![
        any::<u128>(),
        (0_u128..2000),
        (0_u128..2000).prop_map(|low| u128::MAX - low),
        (any::<u8>(), 0_u128..500)
            .prop_map(|(high, low)| u128::from(high) << 56 | u128::from(high) << 120 | low),
    ];
    prop::collection::vec(value, 1..700).prop_map(|values| {
        let mut values: Vec<F> = values.into_iter().map(F::from_u128).collect();
        values.sort_unstable();
        values.dedup();
        values
    })
}

fn parameters(code: &HuffmanCode, span: u16, block_size: u32) -> CodecParameters<'_> {
    CodecParameters { code, span, block_size, line_shape: None, lines: None }
}

fn huffman<const ADDS: bool>(fingerprints: &[impl Fingerprint], span: u16, size: u32) -> DeltaCodec<ADDS> {
    let mut counts = [0; 128];
    let symbol = |pair: &[_]| DeltaCodec::<ADDS>::symbol(pair[0], pair[1]) as usize;
    fingerprints.windows(2).for_each(|pair| counts[symbol(pair)] += 1);
    DeltaCodec::new(parameters(&HuffmanCode::from_counts(&counts), span, size))
}

fn all_differences<F: Fingerprint>(fingerprints: &[F], span: u16, block_size: u32) -> AllDifferences {
    let mut counts = SymbolCounter::new(Codec::AllDifferences);
    fingerprints.iter().for_each(|&fingerprint| counts.push(fingerprint));
    AllDifferences::new(parameters(&counts.code(), span, block_size))
}

/// Calls `visitor` with the fingerprints from `low` to `high` in a block, as a look-up does. `last` is the block's
/// last fingerprint.
fn visit<F: Fingerprint>(
    codec: &impl BlockCodec<F>,
    block: &[u8],
    low: F,
    high: F,
    last: F,
    visitor: impl FnMut(usize, F),
) -> Result<(), Damage> {
    let block = Block { number: 0, bytes: block };
    codec.prefetch_for_locate(block, low, last)?;
    let range = FingerprintRange { low, high };
    match codec.locate(block, range, last)? {
        Some(spot) => codec.visit_from(block, spot.index, range, HammingBall::ALL, visitor),
        None => Ok(()),
    }
}

/// Encodes `fingerprints` into blocks, decodes the blocks, and visits ranges in them. Compares each result with the
/// fingerprints.
fn round_trip<F: Fingerprint>(
    codec: &impl BlockCodec<F>,
    fingerprints: &[F],
    block_size: usize,
    ranges: &[(F, F)],
) {
    let mut rest = fingerprints;
    while !rest.is_empty() {
        let fit = codec.fit(rest, block_size);
        assert!(fit.count >= 1 && fit.bytes <= block_size);
        let (here, after) = rest.split_at(fit.count);
        let mut block = vec![0; if after.is_empty() { fit.bytes } else { block_size }];
        codec.encode(here, &mut block);
        let mut decoded = Vec::new();
        let whole = Block { number: 0, bytes: &block };
        codec.decode(whole, &mut decoded).unwrap();
        assert_eq!(decoded, here);
        codec.check(whole, here).unwrap();
        check_codings(here, &codec.codings(whole, here).unwrap());
        let bounds = ranges.iter().copied().chain(here.iter().map(|&x| (x, x))).chain([(F::ZERO, F::MAX)]);
        for (low, high) in bounds {
            let mut visited = Vec::new();
            let last = here[here.len() - 1];
            visit(codec, &block, low, high, last, |i, value| visited.push((i, value))).unwrap();
            let expected: Vec<_> =
                here.iter().copied().enumerate().filter(|&(_, x)| low <= x && x <= high).collect();
            assert_eq!(visited, expected, "{low:x?} to {high:x?}");
        }
        rest = after;
    }
}

/// Asserts that each coding describes the difference between its fingerprint and an earlier one.
fn check_codings<F: Fingerprint>(fingerprints: &[F], codings: &[Option<Coding>]) {
    assert_eq!(codings.len(), fingerprints.len());
    for (i, coding) in codings.iter().enumerate() {
        let Some(Coding { h, differing, back }) = *coding else { continue };
        let (other, top) = (fingerprints[i - 1 - back as usize], F::BITS - 1 - h);
        let (xor, minus) = (fingerprints[i] ^ other, fingerprints[i].wrapping_sub(other));
        match differing {
            Some(differing) => assert_eq!((xor.leading_zeros(), xor.count_ones() - 1), (top, differing)),
            None => {
                assert!(
                    back == 0 && [xor.leading_zeros(), minus.leading_zeros()].contains(&top),
                    "{coding:?}"
                );
            }
        }
    }
}

fn all_codecs<F: Fingerprint>(fingerprints: &[F], span: u16, block_size: u32, ranges: &[(F, F)]) {
    let size = block_size as usize;
    round_trip(&huffman::<false>(fingerprints, span, block_size), fingerprints, size, ranges);
    round_trip(&huffman::<true>(fingerprints, span, block_size), fingerprints, size, ranges);
    round_trip(&EliasFano, fingerprints, size, ranges);
    round_trip(&all_differences(fingerprints, span, block_size), fingerprints, size, ranges);
}

fn ranges<F: Fingerprint>(bounds: &[(u128, u128)]) -> Vec<(F, F)> {
    bounds
        .iter()
        .map(|&(a, b)| (F::from_u128(a).min(F::from_u128(b)), F::from_u128(a).max(F::from_u128(b))))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn blocks_of_64_bits(
        fingerprints in fingerprints::<u64>(),
        span in 1_u16..=256,
        log in 8_u32..=14,
        bounds in prop::collection::vec(any::<(u128, u128)>(), 0..8),
    ) {
        all_codecs(&fingerprints, span, 1 << log, &ranges(&bounds));
    }

    #[test]
    fn blocks_of_128_bits(
        fingerprints in fingerprints::<u128>(),
        span in 1_u16..=256,
        log in 8_u32..=14,
        bounds in prop::collection::vec(any::<(u128, u128)>(), 0..8),
    ) {
        all_codecs(&fingerprints, span, 1 << log, &ranges(&bounds));
    }

    /// Asserts that blocks of arbitrary bytes give an error or wrong fingerprints, but no panic and no endless
    /// loop.
    #[test]
    fn hostile_blocks(
        seed in fingerprints::<u64>(),
        mut block in prop::collection::vec(any::<u8>(), 0..600),
        count in any::<u16>(),
        width in 0_u8..=130,
        low in any::<u64>(),
    ) {
        if block.len() > 8 {
            LittleEndian::write_u16(&mut block[format::BLOCK_COUNT..], count % 4096);
            block[format::BLOCK_WIDTH] = width;
        }
        fn attack<F: Fingerprint>(codec: &impl BlockCodec<F>, block: &[u8], low: F) {
            let mut decoded = Vec::new();
            let _ = codec.decode(Block { number: 0, bytes: block }, &mut decoded);
            for last in [low, F::MAX] {
                let _ = visit(codec, block, low, F::MAX, last, |_, _| ());
                let _ = visit(codec, block, F::ZERO, low, last, |_, _| ());
            }
        }
        attack(&huffman::<false>(&seed, 16, 512), &block, low);
        attack(&huffman::<true>(&seed, 16, 512), &block, low);
        attack(&all_differences::<u64>(&seed, 16, 512), &block, low);
        attack::<u64>(&EliasFano, &block, low);
        attack::<u128>(&EliasFano, &block, u128::from(low) << 64);
        // A code for wider fingerprints: its tails may be longer than a fingerprint.
        let mut counts = [1; 128];
        counts[3] = 9;
        attack::<u64>(&Gap::new(parameters(&HuffmanCode::from_counts(&counts), 7, 512)), &block, low);
        attack::<u128>(&FirstDifference::new(parameters(&HuffmanCode::from_counts(&counts), 7, 512)), &block, 7);
    }
}

#[test]
fn consecutive_numbers_fill_a_block_to_its_count() {
    let fingerprints: Vec<u64> = (0..200_000).collect();
    let codec = huffman::<true>(&fingerprints, 64, 65536);
    let fit = codec.fit(&fingerprints, 65536);
    assert_eq!(fit.count, format::MAX_BLOCK_FINGERPRINTS);
    all_codecs(&fingerprints[..3000], 64, 1024, &[(5, 2000)]);
}

#[test]
fn both_ends_of_the_range() {
    all_codecs(&[0_u64, u64::MAX], 16, 256, &[(0, 0), (u64::MAX, u64::MAX), (1, u64::MAX - 1)]);
    all_codecs(&[0_u128, 1, u128::MAX - 1, u128::MAX], 1, 256, &[(0, 1), (1, u128::MAX - 1)]);
    all_codecs(&[7_u64], 16, 256, &[(0, 6), (7, 7), (8, 9)]);
}

/// Asserts that [`BlockCodec::check`] refuses a block that decodes to ascending fingerprints, but has other bytes
/// than a writer encodes for them.
#[test]
fn other_codes_of_the_same_fingerprints_are_no_code() {
    let values = [0x10_u64, 0x13, 0x20, 0x21, 0x25];
    let gap = huffman::<true>(&values, 2, 256);
    let of_gap = |block: &[u8]| {
        let mut decoded = Vec::new();
        let block = Block { number: 0, bytes: block };
        gap.decode(block, &mut decoded).unwrap();
        let checked = gap.check(block, &decoded);
        (decoded, checked)
    };
    let mut block = vec![0; 60];
    gap.encode(&values, &mut block);
    assert_eq!(of_gap(&block), (values.to_vec(), Ok(())));
    // Unused bits between the code words and the tails of the last span are not zero.
    let mut padded = block.clone();
    padded[40] = 1;
    assert_eq!(of_gap(&padded), (values.to_vec(), Err(NONCONFORMING_BLOCK)));
    // A sum of upper and lower bits above 2^64 - 1, with low 64 bits that are larger than the previous fingerprint.
    let mut block = vec![0; 16 + 1 + 16];
    BlockHeader { count: 3, width: 63, first: 0_u64 }.write(&mut block);
    let end = block.len() * 8;
    // Upper bits 0 and 2, lower bits 5 and 9.
    bits::write_u64(&mut block, 128, 4, 0b1001);
    bits::write(&mut block, end - 63, 63, 5_u64);
    bits::write(&mut block, end - 126, 63, 9_u64);
    let of_elias_fano = |block: &[u8]| {
        let mut decoded = Vec::<u64>::new();
        let block = Block { number: 0, bytes: block };
        EliasFano.decode(block, &mut decoded).unwrap();
        let checked = EliasFano.check(block, &decoded);
        (decoded, checked)
    };
    assert_eq!(of_elias_fano(&block), (vec![0, 5, 9], Err(NONCONFORMING_BLOCK)));
}

#[test]
fn names_and_numbers_tell_codecs_apart() {
    for codec in Codec::ALL {
        assert_eq!(codec.name().parse::<Codec>().unwrap(), codec);
        assert_eq!(Codec::from_number(codec.number()).unwrap(), codec);
    }
    let error = "zip".parse::<Codec>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown codec `zip`; expected first-difference, gap, elias-fano, all-differences or prefix-lines"
    );
    assert!(matches!(Codec::from_number(5), Err(Damage::Field { name: "codec", found: 5, .. })));
}
