//! In-memory index of the queries of a batch.

use super::batch_plan::{BatchFlips, BatchPlan};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::TablePlan;

/// Queries of a batch, grouped by a key: a number that is computed from the query. Finds the queries with a given
/// key.
#[derive(Debug)]
pub(super) struct QueryBuckets<F> {
    queries: Vec<F>,
    /// For each query of `queries`, its index in the batch as the caller passed it.
    positions: Vec<u32>,
    /// For each key, the index in `queries` at which the queries with this key start. The last entry is the number
    /// of queries.
    starts: Vec<u32>,
}

impl<F: Fingerprint> QueryBuckets<F> {
    /// Groups queries by their keys, with a counting sort. `key` computes the key of a query, a number of at most
    /// `bits` bits. There must be fewer than 2^32 queries.
    fn new(queries: &[F], bits: u32, key: impl Fn(F) -> u64) -> Self {
        let mut starts = vec![0_u32; (1 << bits) + 1];
        for &query in queries {
            starts[key(query) as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        let mut sorted = vec![F::ZERO; queries.len()];
        let mut positions = vec![0; queries.len()];
        for (position, &query) in queries.iter().enumerate() {
            let slot = &mut next[key(query) as usize];
            sorted[*slot as usize] = query;
            positions[*slot as usize] = position as u32;
            *slot += 1;
        }
        QueryBuckets { queries: sorted, positions, starts }
    }

    /// Returns the queries with the given key, each with its index in the batch.
    #[inline(always)]
    pub(super) fn get(&self, key: usize) -> impl Iterator<Item = (F, u32)> {
        let range = self.starts[key] as usize..self.starts[key + 1] as usize;
        self.queries[range.clone()].iter().copied().zip(self.positions[range].iter().copied())
    }
}

/// Returns the `bits` bits of a fingerprint from bit `start` on, as a number. Bit 0 is the most significant. `bits`
/// is at most 64.
#[inline(always)]
fn field<F: Fingerprint>(fingerprint: F, start: u32, bits: u32) -> u64 {
    // A shift by the whole width would overflow.
    if bits == 0 { 0 } else { (fingerprint << start >> (F::BITS - bits)).low_u64() }
}

/// Number of probes between two cancellation checks. A probe is a look-up in a [`GroupIndex`], or a comparison of
/// a stored fingerprint with a query. This many probes take some hundredths of a second.
pub(super) const CANCEL_CHECK_PROBES: usize = 1 << 22;

/// Index of the queries of a batch by their head, which consists of the leading bits (see [`BatchPlan`]).
#[derive(Debug)]
pub(super) struct HeadIndex<F> {
    group_bits: u32,
    index_bits: u32,
    flips: u32,
    by_group: QueryBuckets<F>,
    group_flips: BatchFlips,
    index_flips: BatchFlips,
    /// Mask of the head, which is the first `group_bits + index_bits` bits.
    mask: F,
}

impl<F: Fingerprint> HeadIndex<F> {
    fn new(queries: &[F], plan: &BatchPlan) -> Self {
        let BatchPlan { group_bits, index_bits, flips, .. } = *plan;
        HeadIndex {
            group_bits,
            index_bits,
            flips,
            by_group: QueryBuckets::new(queries, group_bits, |query| field(query, 0, group_bits)),
            group_flips: BatchFlips::new(group_bits, flips),
            index_flips: BatchFlips::new(index_bits, flips),
            mask: F::prefix_mask(group_bits + index_bits),
        }
    }

    /// Returns the first [`BatchPlan::group_bits`] bits of a fingerprint as a number.
    #[inline(always)]
    pub(super) fn group(&self, fingerprint: F) -> u64 {
        field(fingerprint, 0, self.group_bits)
    }

    /// Returns the index bits of a fingerprint as a number. They are the [`BatchPlan::index_bits`] bits after the
    /// first [`BatchPlan::group_bits`] bits.
    #[inline(always)]
    fn index(&self, fingerprint: F) -> u32 {
        field(fingerprint, self.group_bits, self.index_bits) as u32
    }

    /// Whether a query and a stored fingerprint differ in so few bits of the head (the leading bits) that the search
    /// by the head finds the pair. `difference` is the XOR of the query and the fingerprint.
    #[inline(always)]
    fn finds(&self, difference: F) -> bool {
        (difference & self.mask).count_ones() <= self.flips
    }
}

/// Index of one group of stored fingerprints. The fingerprints of a group have the same first bits (see
/// [`BatchPlan::group_bits`]), and are indexed by the bits after them (see [`BatchPlan::index_bits`]).
#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    /// Bit set of the values that the index bits (see [`BatchPlan::index_bits`]) have in the group: bit `v` is set if
    /// the value is `v` in some fingerprint of the group.
    present: Vec<u64>,
    /// For each word of `present`, which stands for 64 successive values of the index bits: the position in the group
    /// of the first fingerprint with one of these values. Undefined for a word without set bits.
    starts: Vec<u32>,
    /// Reusable buffer for the values of index bits that [`GroupIndex::find`] finds.
    found: Vec<u32>,
}

impl GroupIndex {
    /// Replaces the content of this index by the fingerprints of a group, which must be ascending. `head` defines by
    /// which bits of a fingerprint they are indexed.
    #[inline(never)]
    fn fill<F: Fingerprint>(&mut self, head: &HeadIndex<F>, group: &[F]) {
        let words = (1_usize << head.index_bits).div_ceil(64);
        self.present.clear();
        self.present.resize(words, 0);
        self.starts.resize(words, 0);
        self.found.resize(head.index_flips.within(head.flips).len(), 0);
        let mut last = usize::MAX;
        for (i, &fingerprint) in group.iter().enumerate() {
            let value = head.index(fingerprint);
            let word = value as usize / 64;
            if word != last {
                self.starts[word] = i as u32;
                last = word;
            }
            self.present[word] |= 1 << (value % 64);
        }
    }

    /// Looks up the value `own ^ flip` in the bit set `present`, for each mask `flip` of `flips`. Writes the values
    /// that are present to `found`, and returns their number. `own` is the value of a query's index bits.
    ///
    /// The loop has no branch, because few values are present, and the processor could not predict which.
    #[inline(always)]
    fn find(present: &[u64], own: u32, flips: &[u32], found: &mut [u32]) -> usize {
        let mut count = 0;
        for flip in flips {
            let value = own ^ flip;
            found[count] = value;
            count += (present[value as usize / 64] >> (value % 64) & 1) as usize;
        }
        count
    }
}

impl<F: Fingerprint> HeadIndex<F> {
    /// Searches a group of stored fingerprints, whose first bits are the same (see [`BatchPlan::group_bits`]), for
    /// matches of the queries. For each match, calls `visitor` with the index of the query in the batch, the position
    /// of the fingerprint in the group, and their distance. Calls `check_cancelled` from time to time. Overwrites
    /// `index`, whose memory is reused for the next group.
    #[inline(never)]
    pub(super) fn search(
        &self,
        group: &[F],
        index: &mut GroupIndex,
        distance: u32,
        check_cancelled: impl Fn() -> Result<()>,
        mut visitor: impl FnMut(u32, usize, u32),
    ) -> Result<()> {
        let Some(&first) = group.first() else { return Ok(()) };
        index.fill(self, group);
        let GroupIndex { present, starts, found } = index;
        let (shared, mut probes) = (self.group(first) as usize, 0);
        for (flipped, masks) in self.group_flips.by_count() {
            let index_flips = self.index_flips.within(self.flips - flipped);
            for &mask in masks {
                for (query, position) in self.by_group.get(shared ^ mask as usize) {
                    probes += index_flips.len();
                    if probes >= CANCEL_CHECK_PROBES {
                        check_cancelled()?;
                        probes = 0;
                    }
                    let count = GroupIndex::find(present, self.index(query), index_flips, found);
                    for &value in &found[..count] {
                        let start = starts[value as usize / 64] as usize;
                        self.compare(&group[start..], value, query, distance, |i, distance| {
                            visitor(position, start + i, distance);
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Compares a query with the fingerprints in `group` whose index bits (see [`BatchPlan::index_bits`]) equal
    /// `value`. The fingerprints are ascending. Calls `visitor` with the position and the distance of each fingerprint
    /// within `distance` bits.
    #[inline(always)]
    fn compare(&self, group: &[F], value: u32, query: F, distance: u32, mut visitor: impl FnMut(usize, u32)) {
        for (i, &fingerprint) in group.iter().enumerate() {
            let here = self.index(fingerprint);
            if here > value {
                break;
            }
            if here == value {
                let bits = fingerprint.distance(query);
                if bits <= distance {
                    visitor(i, bits);
                }
            }
        }
    }
}

/// Index of the queries of a batch by one tail, which is a range of bits (see [`BatchPlan`]). It finds the queries
/// that have the same tail as a stored fingerprint.
#[derive(Debug)]
pub(super) struct TailIndex<F> {
    mask: F,
    /// Bloom filter of the queries' tails. The hash of a tail selects a word of the filter, and two bits in the
    /// word.
    filter: Vec<u64>,
    /// Queries, grouped by the first `bucket_bits` bits of the hash of their tail.
    by_hash: QueryBuckets<F>,
    bucket_bits: u32,
}

/// Size of the Bloom filter of a [`TailIndex`], in bits per query.
const FILTER_BITS: usize = 8;
/// Position in a hash, counted from the least significant bit. The bits from this position on select the word in
/// the Bloom filter of a [`TailIndex`]. The twelve bits below it select two bits in this word.
const FILTER_SHIFT: u32 = 32;

impl<F: Fingerprint> TailIndex<F> {
    fn new(queries: &[F], table: &TablePlan<F>) -> Self {
        let mask = table.prefix_mask();
        let words = (queries.len() * FILTER_BITS / 64).next_power_of_two();
        let mut filter = vec![0; words];
        for &query in queries {
            let hash = hash(query & mask);
            filter[(hash >> FILTER_SHIFT) as usize & (words - 1)] |= filter_bits(hash);
        }
        let bucket_bits = queries.len().max(2).ilog2();
        let by_hash =
            QueryBuckets::new(queries, bucket_bits, |query| hash(query & mask) >> (64 - bucket_bits));
        TailIndex { mask, filter, by_hash, bucket_bits }
    }

    /// Looks up the tails of `fingerprints` in the Bloom filter. Writes the positions of the fingerprints that pass
    /// the filter to `passed`, and returns their number. `passed` must be at least as long as `fingerprints`.
    ///
    /// The loop has no branch, so that the processor loads many words of the filter at the same time.
    #[inline(always)]
    pub(super) fn filter(&self, fingerprints: &[F], passed: &mut [u32]) -> usize {
        let (words, mask) = (&self.filter[..], self.mask);
        let mut count = 0;
        for (i, &fingerprint) in fingerprints.iter().enumerate() {
            let hash = hash(fingerprint & mask);
            let bits = filter_bits(hash);
            passed[count] = i as u32;
            count += usize::from(words[(hash >> FILTER_SHIFT) as usize & (words.len() - 1)] & bits == bits);
        }
        count
    }

    /// Returns all queries with the same tail as `fingerprint`, and a few other queries, since only the first bits of
    /// the hash of the tail are compared. Each query comes with its index in the batch.
    #[inline(always)]
    pub(super) fn candidates(&self, fingerprint: F) -> impl Iterator<Item = (F, u32)> {
        self.by_hash.get((hash(fingerprint & self.mask) >> (64 - self.bucket_bits)) as usize)
    }

    /// Whether a query and a stored fingerprint have the same tail, so that the search by this tail finds the pair.
    /// `difference` is the XOR of the query and the fingerprint.
    #[inline(always)]
    fn finds(&self, difference: F) -> bool {
        difference & self.mask == F::ZERO
    }
}

/// Hashes the tail of a fingerprint. `value` is the fingerprint with all bits outside the tail set to 0. The first
/// bits of the hash are the most random, since multiplication carries upward only.
#[inline(always)]
fn hash<F: Fingerprint>(value: F) -> u64 {
    // The constants come from SplitMix64.
    let folded = if F::BITS == 64 {
        value.low_u64()
    } else {
        value.high_u64().wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ value.low_u64()
    };
    (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the mask of the two bits that a hash selects in a word of the Bloom filter of a [`TailIndex`].
#[inline(always)]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash >> (FILTER_SHIFT - 6) & 63) | 1 << (hash >> (FILTER_SHIFT - 12) & 63)
}

/// Indexes of the queries of a batch: one by the head (the leading bits) and one by each tail (a range of the other
/// bits), see [`BatchPlan`].
#[derive(Debug)]
pub(super) struct QueryIndex<F> {
    pub(super) distance: u32,
    pub(super) head: HeadIndex<F>,
    pub(super) tails: Vec<TailIndex<F>>,
}

impl<F: Fingerprint> QueryIndex<F> {
    pub(super) fn new(queries: &[F], plan: &BatchPlan, distance: u32) -> Result<Self> {
        let tables = plan.tables::<F>(distance)?;
        let tails = tables.tables()[1..].iter().map(|table| TailIndex::new(queries, table)).collect();
        Ok(QueryIndex { distance, head: HeadIndex::new(queries, plan), tails })
    }

    /// Whether the search by the tail with the index `tail` is the first search that finds a pair of a query and a
    /// stored fingerprint. The search by the head and the searches by earlier tails come before it. Only the first
    /// search reports the pair. `difference` is the XOR of the query and the fingerprint.
    #[inline(always)]
    pub(super) fn finds_first(&self, tail: usize, difference: F) -> bool {
        self.tails[tail].finds(difference)
            && !self.head.finds(difference)
            && !self.tails[..tail].iter().any(|earlier| earlier.finds(difference))
    }
}
