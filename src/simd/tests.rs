use proptest::prelude::*;

use super::*;

fn plain(word: u64, rank: u32) -> Option<u32> {
    (0..64).filter(|bit| word >> bit & 1 == 1).nth(rank as usize)
}

proptest! {
    #[test]
    fn both_selects_find_the_bit(word in prop_oneof![any::<u64>(), Just(u64::MAX), Just(1 << 63)], rank in 0_u32..64) {
        prop_assume!(rank < word.count_ones());
        prop_assert_eq!(Some(select(word, rank)), plain(word, rank));
        prop_assert_eq!(Some(Level::of_processor().select(word, rank)), plain(word, rank));
        prop_assert_eq!(Some(select_plain(word, rank)), plain(word, rank));
    }
}

proptest! {
    #[test]
    fn both_ways_to_rank_count(
        numbers in any::<[u16; 32]>(),
        spread in prop_oneof![Just(0_u32), Just(12)],
        low in any::<u16>(),
        high in any::<u16>(),
    ) {
        // Also tests few distinct numbers, including both ends of the range.
        let fewer = |x: u16| if spread == 0 { x } else { (x >> spread).wrapping_sub(1) };
        let (numbers, low, high) = (numbers.map(fewer), fewer(low), fewer(high));
        let below = numbers.iter().take(29).filter(|&&x| x < low).count() as u32;
        let up_to = numbers.iter().take(29).filter(|&&x| x <= high).count() as u32;
        prop_assert_eq!(ranks(&numbers, low, high), (below, up_to));
        prop_assert_eq!(ranks_plain(&numbers, low, high), (below, up_to));
    }

    #[test]
    fn both_ways_find_the_near_ones_of_eight(
        upper in any::<u64>(),
        count in 0_u32..=8,
        zeros in prop_oneof![0_u64..70, Just(u64::MAX)],
        bytes in any::<[[u8; 32]; 2]>(),
        width in 0_u32..=56,
        skip in 0_u32..64,
        base in any::<u64>(),
        query in any::<u64>(),
        distance in 20_u32..=64,
    ) {
        let bytes: [u8; 64] = bytes.concat().try_into().unwrap();
        let position = skip.min(512 - 8 * width - 8);
        let eight = EliasFanoGroup8 { upper, count, zeros, bytes: &bytes, position, width, base, query, distance };
        let (numbers, near, seen) = eight.find_matches();
        let (plain, plain_near, plain_seen) = eight.find_matches_plain();
        prop_assert_eq!((near, seen), (plain_near, plain_seen));
        for i in (0..8).filter(|i| near >> i & 1 == 1) {
            prop_assert_eq!(numbers[i], plain[i]);
        }
    }
}

proptest! {
    #[test]
    fn both_ways_find_the_matching_bytes(
        bytes in any::<[[u8; 32]; 2]>(),
        byte in any::<u8>(),
        mask in prop_oneof![Just(u8::MAX), (0_u32..=8).prop_map(|bits| (0xff00_u16 >> bits) as u8)],
        distance in 0_u32..=9,
    ) {
        let mut bytes: [u8; 64] = bytes.concat().try_into().unwrap();
        // Equal bytes, and bytes near the compared one.
        for i in 0..8 {
            bytes[i * 7] = byte ^ 1 << i;
            bytes[i * 7 + 1] = byte;
        }
        let expected = (0..64).filter(|&i| ((bytes[i] ^ byte) & mask).count_ones() <= distance);
        let expected = expected.fold(0_u64, |all, i| all | 1 << i);
        prop_assert_eq!(Level::of_processor().matching_bytes(&bytes, byte, mask, distance), expected);
        prop_assert_eq!(matching_bytes::matching_bytes_plain(&bytes, byte, mask, distance), expected);
    }
}

#[test]
fn prefetching_outside_of_a_slice_is_harmless() {
    prefetch::<u8>(&[], 0);
    prefetch(&[1_u8], usize::MAX);
}

/// Reads a field of `width` bits that starts at bit `position`, bit by bit.
fn field(bytes: &[u8], position: u32, width: u32) -> u64 {
    let bit = |i: u32| {
        let at = (position + i) as usize;
        u64::from(bytes[at / 8] >> (at % 8) & 1) << i
    };
    (0..width).map(bit).sum()
}

proptest! {
    #[test]
    fn both_ways_go_through_tails(
        lengths in prop_oneof![any::<[u8; 8]>(), Just([57; 8]), Just([0; 8])],
        count in 0_u32..=8,
        bytes in any::<[[u8; 32]; 2]>(),
        skip in 0_u32..64,
        previous in prop_oneof![any::<u64>(), 0_u64..1000],
        low in prop_oneof![any::<u64>(), Just(0)],
        high in prop_oneof![any::<u64>(), Just(u64::MAX)],
        query in any::<u64>(),
        distance in 20_u32..=64,
    ) {
        let lengths = lengths.map(|length| length % (TailGroup8::MAX_TAIL_BITS as u8 + 1));
        let bytes: [u8; 64] = bytes.concat().try_into().unwrap();
        let end = (lengths.iter().map(|&length| u32::from(length)).sum::<u32>() + skip).min(512);
        let lengths_field = u64::from_le_bytes(lengths);
        for adds in [false, true] {
            let tails = TailGroup8 {
                adds, lengths: lengths_field, count, bytes: &bytes, end, previous, range: (low, high), query, distance,
            };
            let found = tails.find_matches();
            prop_assert_eq!(found, tails.find_matches_plain());
            let (mut value, mut end) = (previous, end);
            for (i, length) in lengths[..count as usize].iter().map(|&length| u32::from(length)).enumerate() {
                end -= length;
                let tail = 1 << length | field(&bytes, end, length);
                value = if adds { value.wrapping_add(tail) } else { value >> length << length | tail };
                prop_assert_eq!(found.values[i], value);
                let far = (value ^ query).count_ones() > distance || value < low || value > high;
                prop_assert!(!(far && found.near >> i & 1 == 1));
                prop_assert!(value <= high || found.above);
            }
        }
    }

    #[test]
    fn both_ways_compare_fields(
        bytes in any::<[[u8; 32]; 4]>(),
        width in 0_u32..=57,
        more in 0_u32..=20,
        skip in 0_u32..512,
        one in any::<bool>(),
        bound in prop_oneof![any::<u64>(), (0_u32..57).prop_map(|bits| 1 << bits)],
    ) {
        let bytes = bytes.concat();
        let second = if one { 0 } else { 64 };
        let lines = [bytes[..64].try_into().unwrap(), bytes[second..second + 64].try_into().unwrap()];
        let (step, end) = (width + more, 512 + 8 * second as u32);
        let fields = FieldGroup8 { lines, position: skip, end, step, width };
        let (mut present, mut below) = (0, 0);
        for i in (0..8).filter(|i| skip + (i + 1) * step <= end) {
            present |= 1 << i;
            below |= u8::from(field(&bytes, skip + i * step, width) <= bound) << i;
        }
        prop_assert_eq!(fields.at_most_masks(bound), (present, below));
        prop_assert_eq!(fields.at_most_masks_plain(bound), (present, below));
    }
}
