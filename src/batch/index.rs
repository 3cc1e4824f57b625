//! The queries of a batch, indexed in memory.

use super::design::{Design, Flips};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::plan::TablePlan;

/// Queries in order of a key of so many bits: those of one key lie together.
#[derive(Debug)]
pub(super) struct Buckets<F> {
    queries: Vec<F>,
    /// Where each stands in the batch.
    positions: Vec<u32>,
    /// Where the queries of each key start; one entry more than keys.
    starts: Vec<u32>,
}

impl<F: Fingerprint> Buckets<F> {
    /// By counting. There are fewer than 2^32 queries, and keys have at most `bits` bits.
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
        Buckets { queries: sorted, positions, starts }
    }

    /// The queries of a key, with their positions in the batch.
    #[inline(always)]
    pub(super) fn get(&self, key: usize) -> impl Iterator<Item = (F, u32)> {
        let range = self.starts[key] as usize..self.starts[key + 1] as usize;
        self.queries[range.clone()].iter().copied().zip(self.positions[range].iter().copied())
    }
}

/// Up to 64 bits of a fingerprint from bit `start` on.
#[inline(always)]
fn field<F: Fingerprint>(fingerprint: F, start: u32, bits: u32) -> u64 {
    // A shift by the whole width is none.
    if bits == 0 { 0 } else { (fingerprint << start >> (F::BITS - bits)).low_u64() }
}

/// Look-ups in the index of a group, or queries compared, after which it is asked whether to go on: some hundredths of a second.
pub(super) const PROBES: usize = 1 << 22;

/// The search by the head.
#[derive(Debug)]
pub(super) struct Head<F> {
    group_bits: u32,
    index_bits: u32,
    flips: u32,
    by_group: Buckets<F>,
    group_flips: Flips,
    index_flips: Flips,
    /// The bits of the head.
    mask: F,
}

impl<F: Fingerprint> Head<F> {
    fn new(queries: &[F], design: &Design) -> Self {
        let Design { group_bits, index_bits, flips, .. } = *design;
        Head {
            group_bits,
            index_bits,
            flips,
            by_group: Buckets::new(queries, group_bits, |query| field(query, 0, group_bits)),
            group_flips: Flips::new(group_bits, flips),
            index_flips: Flips::new(index_bits, flips),
            mask: F::prefix_mask(group_bits + index_bits),
        }
    }

    /// The bits that all fingerprints of a group share.
    #[inline(always)]
    pub(super) fn group(&self, fingerprint: F) -> u64 {
        field(fingerprint, 0, self.group_bits)
    }

    /// The bits by which a group is indexed.
    #[inline(always)]
    fn index(&self, fingerprint: F) -> u32 {
        field(fingerprint, self.group_bits, self.index_bits) as u32
    }

    /// Whether the search by the head finds two fingerprints that differ in these bits.
    #[inline(always)]
    fn finds(&self, difference: F) -> bool {
        (difference & self.mask).count_ones() <= self.flips
    }
}

/// Which values of the index bits occur in a group, and where.
#[derive(Debug, Default)]
pub(super) struct GroupIndex {
    /// A bit for each value.
    occur: Vec<u64>,
    /// For each word of these, where the first fingerprint with one of its values stands.
    starts: Vec<u32>,
    /// Room for the values that are looked for and do occur.
    found: Vec<u32>,
}

impl GroupIndex {
    /// Indexes a group, which is in order.
    #[inline(never)]
    fn fill<F: Fingerprint>(&mut self, head: &Head<F>, group: &[F]) {
        let words = (1_usize << head.index_bits).div_ceil(64);
        self.occur.clear();
        self.occur.resize(words, 0);
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
            self.occur[word] |= 1 << (value % 64);
        }
    }

    /// Writes those of the values that occur to `found`, and returns how many they are.
    ///
    /// Without a branch: few occur, and no telling which.
    #[inline(always)]
    fn find(occur: &[u64], own: u32, flips: &[u32], found: &mut [u32]) -> usize {
        let mut count = 0;
        for flip in flips {
            let value = own ^ flip;
            found[count] = value;
            count += (occur[value as usize / 64] >> (value % 64) & 1) as usize;
        }
        count
    }
}

impl<F: Fingerprint> Head<F> {
    /// Calls `visitor` with the position of each query and the place in the group of each fingerprint that the
    /// search by the head brings together, and their distance. Asks now and then whether to go on.
    #[inline(never)]
    pub(super) fn search(
        &self,
        group: &[F],
        index: &mut GroupIndex,
        distance: u32,
        ask: impl Fn() -> Result<()>,
        mut visitor: impl FnMut(u32, usize, u32),
    ) -> Result<()> {
        let Some(&first) = group.first() else { return Ok(()) };
        index.fill(self, group);
        let GroupIndex { occur, starts, found } = index;
        let (shared, mut probes) = (self.group(first) as usize, 0);
        for (flipped, masks) in self.group_flips.by_count() {
            let index_flips = self.index_flips.within(self.flips - flipped);
            for &mask in masks {
                for (query, position) in self.by_group.get(shared ^ mask as usize) {
                    probes += index_flips.len();
                    if probes >= PROBES {
                        ask()?;
                        probes = 0;
                    }
                    let count = GroupIndex::find(occur, self.index(query), index_flips, found);
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

    /// Compares a query with the fingerprints that have a value of the index bits; they are in order.
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

/// The exact search by one tail.
#[derive(Debug)]
pub(super) struct Tail<F> {
    mask: F,
    /// A Bloom filter of the queries' tails: two bits for each, both in the word that its hash gives.
    filter: Vec<u64>,
    /// By the first bits of the hash.
    by_hash: Buckets<F>,
    bucket_bits: u32,
}

/// Bits of the filter for each query.
const FILTER_BITS: usize = 8;
/// The bits of a hash from this one on, counted from the least, give the word in the filter; the twelve below
/// them the two bits in the word.
const FILTER_SHIFT: u32 = 32;

impl<F: Fingerprint> Tail<F> {
    fn new(queries: &[F], table: &TablePlan<F>) -> Self {
        let mask = table.prefix_mask();
        let words = (queries.len() * FILTER_BITS / 64).next_power_of_two();
        let mut filter = vec![0; words];
        for &query in queries {
            let hash = hash(query & mask);
            filter[(hash >> FILTER_SHIFT) as usize & (words - 1)] |= filter_bits(hash);
        }
        let bucket_bits = queries.len().max(2).ilog2();
        let by_hash = Buckets::new(queries, bucket_bits, |query| hash(query & mask) >> (64 - bucket_bits));
        Tail { mask, filter, by_hash, bucket_bits }
    }

    /// Writes the places of the fingerprints that the filter lets pass to `passed`, which is at least as long,
    /// and returns how many there are.
    ///
    /// Without a branch: many loads of the filter are under way at once.
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

    /// The queries whose tail may be that of a fingerprint.
    #[inline(always)]
    pub(super) fn candidates(&self, fingerprint: F) -> impl Iterator<Item = (F, u32)> {
        self.by_hash.get((hash(fingerprint & self.mask) >> (64 - self.bucket_bits)) as usize)
    }

    /// Whether the search by this tail finds two fingerprints that differ in these bits.
    #[inline(always)]
    fn finds(&self, difference: F) -> bool {
        difference & self.mask == F::ZERO
    }
}

/// A hash whose first bits are the best: multiplication carries upward only.
#[inline(always)]
fn hash<F: Fingerprint>(value: F) -> u64 {
    // The constants are those of SplitMix64.
    let folded = if F::BITS == 64 {
        value.low_u64()
    } else {
        value.high_u64().wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ value.low_u64()
    };
    (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The two bits of a hash in its word of the filter.
#[inline(always)]
fn filter_bits(hash: u64) -> u64 {
    1 << (hash >> (FILTER_SHIFT - 6) & 63) | 1 << (hash >> (FILTER_SHIFT - 12) & 63)
}

/// The queries of a batch under their design.
#[derive(Debug)]
pub(super) struct QueryIndex<F> {
    pub(super) distance: u32,
    pub(super) head: Head<F>,
    pub(super) tails: Vec<Tail<F>>,
}

impl<F: Fingerprint> QueryIndex<F> {
    pub(super) fn new(queries: &[F], design: &Design, distance: u32) -> Result<Self> {
        let tables = design.tables::<F>(distance)?;
        let tails = tables.tables()[1..].iter().map(|table| Tail::new(queries, table)).collect();
        Ok(QueryIndex { distance, head: Head::new(queries, design), tails })
    }

    /// Whether a tail is the first to find two fingerprints that differ in these bits, which it does find: each
    /// pair is reported once.
    #[inline(always)]
    pub(super) fn finds_first(&self, tail: usize, difference: F) -> bool {
        self.tails[tail].finds(difference)
            && !self.head.finds(difference)
            && !self.tails[..tail].iter().any(|earlier| earlier.finds(difference))
    }
}
