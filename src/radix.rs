//! Radix partition and radix sort on all cores.

use rayon::prelude::*;

use crate::fingerprint::Fingerprint;

/// Maximum number of bits of a digit.
pub(crate) const MAX_DIGIT_BITS: u32 = 24;

/// A selection of fingerprint bits. The *digit* of a fingerprint is the number that these bits form, with the
/// first bit as the most significant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digit<F> {
    /// For each run of contiguous selected bits: the mask of the run, and the right shift that moves the run to its
    /// place in the digit. Only the first `len` entries are used.
    runs: [(F, u32); MAX_DIGIT_BITS as usize],
    len: usize,
    bits: u32,
}

impl<F: Fingerprint> Digit<F> {
    /// Creates a digit of the bits that are set in a mask, at most [`MAX_DIGIT_BITS`] bits. In the digit, the
    /// bits have the same order as in the fingerprint.
    ///
    /// # Panics
    /// If the mask has more bits.
    pub(crate) fn new(mask: F) -> Self {
        let bits = mask.count_ones();
        assert!(bits <= MAX_DIGIT_BITS, "a digit of {bits} bits");
        let mut digit = Digit { runs: [(F::ZERO, 0); MAX_DIGIT_BITS as usize], len: 0, bits };
        let (mut left, mut lower) = (mask, bits);
        while left != F::ZERO {
            let start = left.leading_zeros();
            let length = (!(left << start)).leading_zeros();
            let run = F::suffix_mask(F::BITS - start) & !F::suffix_mask(F::BITS - start - length);
            lower -= length;
            digit.runs[digit.len] = (run, F::BITS - start - length - lower);
            digit.len += 1;
            left = left & !run;
        }
        digit
    }

    /// Number of possible digits, and so of buckets (groups of fingerprints with equal digits).
    pub(crate) fn buckets(&self) -> usize {
        1 << self.bits
    }

    /// Returns the digit of a fingerprint.
    #[inline(always)]
    pub(crate) fn extract(&self, fingerprint: F) -> usize {
        self.runs[..self.len].iter().fold(0, |digit, run| digit | gather(run, fingerprint))
    }

    /// Writes the fingerprints to `out`, which has the same length, in ascending order of their digits.
    /// Fingerprints with equal digits keep their order. `ends` has one entry for each possible digit. The entry
    /// is set to the position in `out` at which the fingerprints with this digit end.
    pub(crate) fn scatter(&self, fingerprints: &[F], out: &mut [F], ends: &mut [u32]) {
        // If the number of runs is a constant, `scatter` has no inner loop.
        match self.runs[..self.len] {
            [a] => scatter(fingerprints, out, ends, |x| gather(&a, x)),
            [a, b] => scatter(fingerprints, out, ends, |x| gather(&a, x) | gather(&b, x)),
            [a, b, c] => {
                scatter(fingerprints, out, ends, |x| gather(&a, x) | gather(&b, x) | gather(&c, x));
            }
            _ => scatter(fingerprints, out, ends, |x| self.extract(x)),
        }
    }
}

#[inline(always)]
fn gather<F: Fingerprint>(&(mask, shift): &(F, u32), fingerprint: F) -> usize {
    ((fingerprint & mask) >> shift).low_u64() as usize
}

/// Returns the `count` most significant set bits of a mask, or all its set bits if they are fewer.
pub(crate) fn first_bits<F: Fingerprint>(mask: F, count: u32) -> F {
    let mut left = mask;
    for _ in 0..count.min(mask.count_ones()) {
        left = left & !F::bit_mask(left.leading_zeros());
    }
    mask & !left
}

#[inline(always)]
fn scatter<T: Copy>(values: &[T], out: &mut [T], ends: &mut [u32], digit: impl Fn(T) -> usize) {
    ends.fill(0);
    for &value in values {
        ends[digit(value)] += 1;
    }
    let mut start = 0;
    for end in ends.iter_mut() {
        start += std::mem::replace(end, start);
    }
    for &value in values {
        let end = &mut ends[digit(value)];
        out[*end as usize] = value;
        *end += 1;
    }
}

/// Returns the range of each bucket (the values with one digit). `ends` has the end of each bucket, as
/// [`Digit::scatter`] sets it.
pub(crate) fn ranges(ends: &[u32]) -> impl Iterator<Item = std::ops::Range<usize>> + '_ {
    let mut start = 0;
    ends.iter().map(move |&end| std::mem::replace(&mut start, end as usize)..end as usize)
}

/// Length of a chunk: the number of values that are partitioned at once, so few that they fit in the second-level
/// cache.
const CHUNK_LEN: usize = 1 << 16;

/// Tells where the values with each digit are in a partitioned list. The list consists of chunks of [`CHUNK_LEN`] values,
/// and each chunk is ordered by digit. The values with the same digit are a *bucket*, which has one range in each chunk.
///
/// Each chunk is partitioned separately. So the cores need no common counters, and each core reads and writes
/// contiguous memory.
pub(crate) struct Partition {
    /// End of each bucket's range in the first chunk, then in the second chunk, and so on. Each end is counted from the
    /// start of its chunk.
    ends: Vec<u32>,
    buckets: usize,
}

impl Partition {
    /// Partitions `values` by `digit`, and writes them to `space`, which has the same length. Before each chunk, calls
    /// `go_on` with the index of the chunk. If `go_on` returns false, the chunk is skipped, and the partition is incomplete.
    pub(crate) fn new<F: Fingerprint>(
        values: &[F],
        space: &mut [F],
        digit: &Digit<F>,
        go_on: impl Fn(usize) -> bool + Send + Sync,
    ) -> Self {
        let buckets = digit.buckets();
        let mut ends = vec![0; values.len().div_ceil(CHUNK_LEN) * buckets];
        (values.par_chunks(CHUNK_LEN), space.par_chunks_mut(CHUNK_LEN), ends.par_chunks_mut(buckets))
            .into_par_iter()
            .enumerate()
            .for_each(|(chunk, (values, space, ends))| {
                if go_on(chunk) {
                    digit.scatter(values, space, ends);
                }
            });
        Partition { ends, buckets }
    }

    pub(crate) fn buckets(&self) -> usize {
        self.buckets
    }

    /// Returns where the values of a bucket are: one range of indexes in each chunk, counted from the start of the chunk.
    fn ranges(&self, bucket: usize) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.ends.chunks(self.buckets).map(move |ends| {
            let start = if bucket == 0 { 0 } else { ends[bucket - 1] };
            start as usize..ends[bucket] as usize
        })
    }

    /// Returns the slices of `partitioned` that have the values of a bucket, one slice per chunk.
    fn pieces<'a, F>(&'a self, partitioned: &'a [F], bucket: usize) -> impl Iterator<Item = &'a [F]> {
        partitioned.chunks(CHUNK_LEN).zip(self.ranges(bucket)).map(|(values, range)| &values[range])
    }

    /// Number of values in a bucket, that is, with the digit `bucket`.
    pub(crate) fn len(&self, bucket: usize) -> usize {
        self.ranges(bucket).map(|range| range.len()).sum()
    }

    /// Splits `out`, which has as many elements as the partitioned list, into one slice per bucket. Each slice
    /// is as long as its bucket, and the slices are in the order of the buckets.
    pub(crate) fn split<'o, F>(&self, out: &'o mut [F]) -> Vec<BucketSlice<'o, F>> {
        let (mut rest, mut start) = (out, 0);
        let take = |bucket| {
            let (values, after) = std::mem::take(&mut rest).split_at_mut(self.len(bucket));
            rest = after;
            start += values.len();
            BucketSlice { bucket, start: start - values.len(), values }
        };
        (0..self.buckets).map(take).collect()
    }

    /// Replaces the content of `values` by the values of `partitioned` that have the digit `bucket`, in the same order.
    pub(crate) fn read<F: Fingerprint>(&self, partitioned: &[F], bucket: usize, values: &mut Vec<F>) {
        values.clear();
        values.reserve_exact(self.len(bucket));
        self.pieces(partitioned, bucket).for_each(|piece| values.extend_from_slice(piece));
    }
}

/// The part of an output slice that [`Partition::split`] assigns to one bucket.
pub(crate) struct BucketSlice<'o, F> {
    pub(crate) bucket: usize,
    /// Index in the whole output slice at which this part starts.
    pub(crate) start: usize,
    pub(crate) values: &'o mut [F],
}

/// Returns the first `count` elements of a reusable buffer, with arbitrary values. The buffer grows if necessary.
pub(crate) fn scratch<F: Fingerprint>(space: &mut Vec<F>, count: usize) -> &mut [F] {
    if space.len() < count {
        // A new vector, since `resize` would copy the old values.
        *space = vec![F::ZERO; count];
    }
    &mut space[..count]
}

/// Maximum number of values that are sorted by comparison. More values are sorted by radix.
const COMPARISON_SORT_MAX: usize = 64;
/// Bits of each digit of the radix sort.
const SORT_DIGIT_BITS: u32 = 8;

/// Sorts values on all cores, with `space` as a buffer. The buffer grows to the number of values if necessary.
/// This is twice as fast as [`sort`], which sorts in place.
pub(crate) fn sort_with_space<F: Fingerprint>(values: &mut [F], space: &mut Vec<F>) {
    let first = values.first().copied().unwrap_or_default();
    let common = values.iter().fold(F::ZERO, |bits, &value| bits | (value ^ first)).leading_zeros();
    if values.len() <= CHUNK_LEN || common == F::BITS {
        return sort_below(values, |value| value, 0);
    }
    let common = common / SORT_DIGIT_BITS * SORT_DIGIT_BITS;
    let digit = Digit::new(F::prefix_mask(SORT_DIGIT_BITS) >> common);
    let space = scratch(space, values.len());
    let partition = Partition::new(values, space, &digit, |_| true);
    partition.split(values).into_par_iter().for_each(|part| {
        let mut at = 0;
        for piece in partition.pieces(space, part.bucket) {
            part.values[at..at + piece.len()].copy_from_slice(piece);
            at += piece.len();
        }
        sort_below(part.values, |value| value, common + SORT_DIGIT_BITS);
    });
}

/// Sorts values in place on all cores. A smaller value must have a smaller or equal `key`.
pub(crate) fn sort<T: Copy + Ord + Send, F: Fingerprint>(
    values: &mut [T],
    key: impl Fn(T) -> F + Copy + Sync,
) {
    sort_below(values, key, 0);
}

/// Sorts values in place. A smaller value must have a smaller or equal `key`. The first `bits` bits of all keys must be
/// the same; the radix sort skips them.
fn sort_below<T: Copy + Ord + Send, F: Fingerprint>(
    values: &mut [T],
    key: impl Fn(T) -> F + Copy + Sync,
    bits: u32,
) {
    if values.len() <= COMPARISON_SORT_MAX || bits == F::BITS {
        // Either the values are few, or all keys are equal and the values decide.
        return if values.len() <= CHUNK_LEN { values.sort_unstable() } else { values.par_sort_unstable() };
    }
    let shift = F::BITS - bits - SORT_DIGIT_BITS;
    let digit = |value| ((key(value) >> shift).low_u64() & ((1 << SORT_DIGIT_BITS) - 1)) as usize;
    let mut ends = [0_usize; 1 << SORT_DIGIT_BITS];
    for &value in values.iter() {
        ends[digit(value)] += 1;
    }
    let mut places = [0; 1 << SORT_DIGIT_BITS];
    let mut start = 0;
    for (end, place) in ends.iter_mut().zip(&mut places) {
        *place = start;
        start += *end;
        *end = start;
    }
    // Permutes in place along cycles: a value moves to the next free place of its bucket and displaces the
    // value there, which moves on to its own bucket.
    for bucket in 0..places.len() {
        while places[bucket] < ends[bucket] {
            let mut value = values[places[bucket]];
            loop {
                let to = digit(value);
                let place = places[to];
                places[to] += 1;
                std::mem::swap(&mut value, &mut values[place]);
                if to == bucket {
                    break;
                }
            }
        }
    }
    let (len, mut rest, mut start) = (values.len(), values, 0);
    let mut buckets = Vec::with_capacity(if len > CHUNK_LEN { ends.len() } else { 0 });
    for end in ends {
        let (bucket, after) = rest.split_at_mut(end - start);
        (rest, start) = (after, end);
        if len > CHUNK_LEN {
            buckets.push(bucket);
        } else if bucket.len() > 1 {
            sort_below(bucket, key, bits + SORT_DIGIT_BITS);
        }
    }
    buckets.into_par_iter().for_each(|bucket| sort_below(bucket, key, bits + SORT_DIGIT_BITS));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn gathered<F: Fingerprint>(mask: F, value: F) -> usize {
        let bits = (0..F::BITS).filter(|&bit| mask & F::bit_mask(bit) != F::ZERO);
        bits.fold(0, |digit, bit| digit << 1 | usize::from(value & F::bit_mask(bit) != F::ZERO))
    }

    proptest! {
        #[test]
        fn digits_are_the_bits_of_the_mask(mask in any::<u128>(), value in any::<u128>(), count in 0_u32..=24) {
            let wide = first_bits(mask, count);
            prop_assert_eq!(wide.count_ones(), count.min(mask.count_ones()));
            prop_assert!(wide & !mask == 0 && (wide == 0 || mask >> wide.trailing_zeros() == wide >> wide.trailing_zeros()));
            prop_assert_eq!(Digit::new(wide).extract(value), gathered(wide, value));
            let narrow = first_bits(mask as u64, count);
            prop_assert_eq!(Digit::new(narrow).extract(value as u64), gathered(narrow, value as u64));
        }

        #[test]
        fn sorted_as_by_comparing(
            values in prop::collection::vec(any::<u128>(), 0..500),
            mask in any::<u128>(),
            repeat in 0_u64..300,
        ) {
            let mut pairs: Vec<(u128, u64)> =
                values.iter().flat_map(|&value| (0..repeat).map(move |i| (value & mask, i % 7))).collect();
            let mut narrow: Vec<u64> = pairs.iter().map(|pair| pair.0 as u64).collect();
            let mut expected = (pairs.clone(), narrow.clone());
            sort(&mut pairs, |pair| pair.0);
            let mut spacious = narrow.clone();
            sort(&mut narrow, |value| value);
            sort_with_space(&mut spacious, &mut Vec::new());
            prop_assert!(spacious == narrow);
            expected.0.sort_unstable();
            expected.1.sort_unstable();
            prop_assert!((pairs, narrow) == expected);
        }

        #[test]
        fn partition_keeps_the_order(values in prop::collection::vec(any::<u64>(), 0..300), repeat in 0_usize..500) {
            let values: Vec<u64> = values.iter().flat_map(|&value| std::iter::repeat_n(value, repeat)).collect();
            let digit = Digit::new(0xf000_0001_u64);
            let mut space = vec![0; values.len()];
            let partition = Partition::new(&values, &mut space, &digit, |_| true);
            let (mut bucket, mut all) = (Vec::new(), Vec::new());
            for number in 0..partition.buckets() {
                partition.read(&space, number, &mut bucket);
                prop_assert_eq!(bucket.len(), partition.len(number));
                all.extend_from_slice(&bucket);
            }
            let mut expected = values;
            expected.sort_by_key(|&value| digit.extract(value));
            prop_assert_eq!(all, expected);
        }
    }
}
