//! Multi-index hashing (Norouzi, Punjani and Fleet 2012): an index of fingerprints for queries within a Hamming distance.
//!
//! The bits of a fingerprint are divided into contiguous *bands*, each with a hash table. For a query within k bits,
//! each band has a *flip limit*; the limits add up to k + 1. By the pigeonhole principle, a fingerprint within k bits
//! differs from the query in fewer bits than the flip limit in at least one band. So the table of each band is looked
//! up with the query's bits of the band, and with all variants that flip fewer bits than the limit. If the limit is 1,
//! a single lookup suffices.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::append_vec::AppendVec;
use super::pairs::{load, store};
use crate::fingerprint::Fingerprint;
use crate::simd::prefetch;

/// Maximum number of bits of a band that select a bucket of the band's hash table. Also the minimum width of a
/// band in bits: a band of fewer bits would have fewer buckets, each with many more fingerprints. So the number of
/// bands is limited. At a distance that would need more bands, more variants of the query are looked up in each band.
const MAX_BUCKET_BITS: u32 = 16;
/// Number of fingerprints that are compared with a query together. Also the minimum capacity of a node (a part of a
/// bucket of the hash table). With 64-bit fingerprints, a node of this capacity takes two cache lines.
const GROUP_LEN: usize = 10;
/// Maximum capacity of a node (a part of a bucket of the hash table), as a multiple of [`GROUP_LEN`]. Larger nodes
/// are no faster.
const MAX_NODE_GROUPS: usize = 12;
/// Maximum number of bands, reached with fingerprints of 128 bits.
const MAX_BANDS: usize = 8;
/// Number of bucket lookups or inserts that run together, so that their cache misses overlap.
const LOOKUP_BATCH: usize = 32;
/// Largest distance of queries that the index is used for, in bits. Queries with a larger distance scan all pairs.
const MAX_DISTANCE: u32 = 32;
/// Maximum number of bucket lookups of a query. If a query would need more, a scan of all pairs is faster.
const MAX_LOOKUPS: f64 = 16384.0;

/// Approximate cost of a bucket lookup, in nanoseconds.
const LOOKUP_NS: f64 = 30.0;
/// Approximate cost of comparing a fingerprint in a bucket, in nanoseconds.
const BUCKET_ENTRY_NS: f64 = 3.0;
/// Approximate cost of comparing a fingerprint in a scan of all pairs, in nanoseconds.
const SCAN_ENTRY_NS: f64 = 1.5;

/// Hash table of one band: the bits of a fingerprint in this band select its bucket. A bucket is a chain of nodes, newest
/// first.
///
/// The first word of a node has the index of the next node plus one in its upper 32 bits (0 at the end of the chain), and
/// the number of fingerprints in the lower 32 bits. Then come the fingerprints, and then the indexes of the
/// (fingerprint, id) pairs that they belong to, two indexes to a word.
struct BandIndex<F> {
    /// First bit of the band, counted from the most significant bit of a fingerprint.
    start: u32,
    /// Width of the band in bits, at most 64.
    bits: u32,
    /// Base-2 logarithm of the number of buckets.
    bucket_bits: u32,
    /// Newest node of each bucket's chain: the index of the node plus one, or 0 if the bucket is empty.
    buckets: Box<[AtomicU32]>,
    nodes: AppendVec<AtomicU64>,
    /// Number of fingerprints that fit in a node, a multiple of [`GROUP_LEN`].
    node_len: usize,
    fingerprints: std::marker::PhantomData<fn(F)>,
}

impl<F: Fingerprint> BandIndex<F> {
    const FINGERPRINT_CELLS: usize = F::BYTES / 8;

    fn new(start: u32, bits: u32, expected: u64) -> Self {
        // About one node of fingerprints in each bucket.
        let bucket_bits = (expected / 8).max(1).ilog2().min(bits).min(MAX_BUCKET_BITS);
        // Short nodes in long chains would wait for memory at each node; long nodes in short chains would stay empty.
        let groups = ((expected >> bucket_bits) as usize / 3).div_ceil(GROUP_LEN);
        let node = groups.clamp(1, MAX_NODE_GROUPS) * GROUP_LEN;
        BandIndex {
            start,
            bits,
            bucket_bits,
            buckets: (0..1 << bucket_bits).map(|_| AtomicU32::new(0)).collect(),
            nodes: AppendVec::new(1 + node * Self::FINGERPRINT_CELLS + node / 2),
            node_len: node,
            fingerprints: std::marker::PhantomData,
        }
    }

    /// Bits of a fingerprint in this band.
    #[inline(always)]
    fn bits_of(&self, fingerprint: F) -> u64 {
        (fingerprint << self.start >> (F::BITS - self.bits)).low_u64()
    }

    /// Index of the bucket for a value of the band's bits. If there are as many buckets as values, each value has
    /// its own bucket.
    #[inline(always)]
    fn bucket(&self, bits: u64) -> usize {
        let hash = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) << (64 - self.bits);
        // Two shifts, since `bucket_bits` may be 0 and a shift by 64 overflows.
        (hash >> 1 >> (63 - self.bucket_bits)) as usize
    }

    /// Newest node of a bucket's chain: the index of the node plus one, or 0 if the bucket is empty.
    #[inline(always)]
    fn newest_node(&self, bucket: usize) -> u32 {
        self.buckets[bucket].load(Ordering::Acquire)
    }

    /// Prefetches the first two cache lines of a node (a part of a hash bucket), and returns the 64-bit words of the
    /// node. `node` is the index of the node plus one. If `node` is 0, returns an empty slice.
    #[inline(always)]
    fn prefetch_node(&self, node: u32) -> &[AtomicU64] {
        if node == 0 {
            return &[];
        }
        let node = self.nodes.get(node - 1);
        prefetch(node, 0);
        prefetch(node, 8);
        node
    }

    /// Prefetches the memory in a node (a part of a bucket) where the next fingerprint will be stored. `node` is the
    /// index of the node plus one; 0 does nothing. [`BandIndex::prefetch_node`] must be called before.
    #[inline(always)]
    fn prefetch_node_end(&self, node: u32) {
        if node > 0 {
            let node = self.nodes.get(node - 1);
            let len = (node[0].load(Ordering::Relaxed) & 0xffff_ffff) as usize;
            prefetch(node, 1 + len * Self::FINGERPRINT_CELLS);
            prefetch(node, 1 + self.node_len * Self::FINGERPRINT_CELLS + len / 2);
        }
    }

    /// Adds the fingerprint of a (fingerprint, id) pair to the hash table of this band; `number` is the index of the pair.
    /// Called by one thread at a time.
    #[inline(always)]
    fn insert(&self, fingerprint: F, number: u32) {
        let bucket = self.bucket(self.bits_of(fingerprint));
        let head = self.newest_node(bucket);
        if head > 0 {
            let node = self.nodes.get(head - 1);
            let word = node[0].load(Ordering::Relaxed);
            let len = (word & 0xffff_ffff) as usize;
            if len < self.node_len {
                self.write_entry(node, len, fingerprint, number);
                // The release orders the entry before the length: a reader that sees the length sees the entry.
                node[0].store(word + 1, Ordering::Release);
                return;
            }
        }
        let new = self.nodes.push(|node| {
            self.write_entry(node, 0, fingerprint, number);
            node[0].store(u64::from(head) << 32 | 1, Ordering::Relaxed);
        });
        self.buckets[bucket].store(new + 1, Ordering::Release);
    }

    #[inline]
    fn write_entry(&self, node: &[AtomicU64], at: usize, fingerprint: F, number: u32) {
        store(fingerprint, &node[1 + at * Self::FINGERPRINT_CELLS..]);
        let word = &node[1 + self.node_len * Self::FINGERPRINT_CELLS + at / 2];
        // The other half of the word is the pair number of the entry before this one, or 0.
        let other = word.load(Ordering::Relaxed);
        word.store(other | u64::from(number) << (at % 2 * 32), Ordering::Relaxed);
    }

    /// Like [`BandIndex::insert`], but adds many fingerprints. This is faster, because memory is prefetched for
    /// [`LOOKUP_BATCH`] fingerprints at a time, so that their cache misses overlap.
    fn insert_batch(&self, pairs: &[(F, u32)]) {
        for group in pairs.chunks(LOOKUP_BATCH) {
            let buckets = || group.iter().map(|&(fingerprint, _)| self.bucket(self.bits_of(fingerprint)));
            buckets().for_each(|bucket| prefetch(&self.buckets, bucket));
            buckets().for_each(|bucket| _ = self.prefetch_node(self.newest_node(bucket)));
            buckets().for_each(|bucket| self.prefetch_node_end(self.newest_node(bucket)));
            group.iter().for_each(|&(fingerprint, number)| self.insert(fingerprint, number));
        }
    }

    /// Compares the query with the first `len` fingerprints of a node (a part of a bucket). For each fingerprint
    /// within the distance, calls `visitor` with the XOR of fingerprint and query, and with the index of the
    /// (fingerprint, id) pair that the fingerprint belongs to.
    #[inline(always)]
    fn visit(
        &self,
        node: &[AtomicU64],
        len: usize,
        query: F,
        distance: u32,
        mut visitor: impl FnMut(F, u32),
    ) {
        let (fingerprints, numbers) = node[1..].split_at(self.node_len * Self::FINGERPRINT_CELLS);
        let groups =
            fingerprints.chunks_exact(GROUP_LEN * Self::FINGERPRINT_CELLS).take(len.div_ceil(GROUP_LEN));
        for (first, cells) in (0..).step_by(GROUP_LEN).zip(groups) {
            let difference = |i: usize| query ^ load::<F>(&cells[i * Self::FINGERPRINT_CELLS..]);
            // Compares the whole group, including unused entries, so that no branch depends on their number.
            let is_near = |near, i| near | u32::from(difference(i).count_ones() <= distance) << i;
            let mut near = (0..GROUP_LEN).fold(0, is_near) & ((1 << (len - first).min(GROUP_LEN)) - 1);
            while near > 0 {
                let i = near.trailing_zeros() as usize;
                near &= near - 1;
                let number = numbers[(first + i) / 2].load(Ordering::Relaxed) >> ((first + i) % 2 * 32);
                visitor(difference(i), number as u32);
            }
        }
    }

    fn bytes(&self) -> u64 {
        size_of_val(&*self.buckets) as u64 + self.nodes.bytes()
    }
}

/// The bucket lookups that a query makes. All queries within the same distance make the same lookups.
struct SearchPlan {
    /// Flip limit of each band: lookups in the band flip fewer bits than the limit.
    flip_limits: [u32; MAX_BANDS],
    /// The lookups, each as (index of the band, mask of the bits to flip in the query's bits of this band).
    lookups: Box<[(usize, u64)]>,
    /// The lookups are faster than a scan if more than this number of fingerprints is stored.
    min_len: u32,
}

/// An index for queries within a Hamming distance. It stores fingerprints, each with the index of its (fingerprint, id)
/// pair, in a hash table for each band.
pub(super) struct MultiIndex<F> {
    bands: Vec<BandIndex<F>>,
    /// Search plan for each distance, computed by the first query with this distance.
    plans: [OnceLock<SearchPlan>; MAX_DISTANCE as usize + 1],
}

impl<F: Fingerprint> MultiIndex<F> {
    /// Number of bands for searches up to a distance.
    fn band_count(distance: u32) -> u32 {
        distance.saturating_add(1).min(F::BITS / MAX_BUCKET_BITS)
    }

    /// Memory that one fingerprint takes in the hash tables of all bands, in bytes, if the tables' nodes are two
    /// thirds full.
    pub(super) fn bytes_per_fingerprint(distance: u32) -> usize {
        Self::band_count(distance) as usize * (F::BYTES + 4) * 3 / 2
    }

    /// Creates an index for searches up to a distance among about `expected` fingerprints.
    pub(super) fn new(distance: u32, expected: u64) -> Self {
        let number = Self::band_count(distance);
        let band = |i: u32| {
            let start = i * F::BITS / number;
            BandIndex::new(start, ((i + 1) * F::BITS / number - start).min(64), expected)
        };
        MultiIndex { bands: (0..number).map(band).collect(), plans: [const { OnceLock::new() }; _] }
    }

    /// Number of bands.
    pub(super) fn band_len(&self) -> usize {
        self.bands.len()
    }

    /// The bucket lookups of queries with this distance, or `None` if the distance is above [`MAX_DISTANCE`].
    #[inline(always)]
    fn plan(&self, distance: u32) -> Option<&SearchPlan> {
        Some(self.plans.get(distance as usize)?.get_or_init(|| self.new_plan(distance)))
    }

    #[cold]
    fn new_plan(&self, distance: u32) -> SearchPlan {
        let (bands, all) = (self.bands.len() as u32, distance + 1);
        let flip_limits = std::array::from_fn(|i| all / bands + u32::from((i as u32) < all % bands));
        // Number of lookups, and the expected bucket entries that they compare for each stored fingerprint.
        let (mut lookups, mut in_buckets) = (0.0, 0.0);
        for (band, &limit) in self.bands.iter().zip(&flip_limits) {
            // Number of ways to flip 0, 1, 2, ... bits.
            let next = |ways: f64, i: u32| ways * f64::from(band.bits.saturating_sub(i)) / f64::from(i + 1);
            let each = (0..limit).scan(1.0, |ways, i| Some(std::mem::replace(ways, next(*ways, i))));
            let ways: f64 = each.sum();
            lookups += ways;
            in_buckets += ways / band.buckets.len() as f64;
        }
        let gain = SCAN_ENTRY_NS - in_buckets * BUCKET_ENTRY_NS;
        if gain <= 0.0 || lookups > MAX_LOOKUPS {
            return SearchPlan { flip_limits, lookups: Box::default(), min_len: u32::MAX };
        }
        let flipped =
            |(i, band): (usize, &BandIndex<F>)| flips(band.bits, flip_limits[i]).map(move |flip| (i, flip));
        let lookups: Box<[_]> = self.bands.iter().enumerate().flat_map(flipped).collect();
        let min_len = (lookups.len() as f64 * LOOKUP_NS / gain) as u32;
        SearchPlan { flip_limits, lookups, min_len }
    }

    /// Whether a search within a distance is faster than a scan of `len` fingerprints.
    #[inline]
    pub(super) fn is_faster_than_scan(&self, distance: u32, len: u32) -> bool {
        self.plan(distance).is_some_and(|plan| plan.min_len < len)
    }

    /// Adds the fingerprint of a (fingerprint, id) pair to all bands; `number` is the index of the pair. Called by one
    /// thread at a time.
    pub(super) fn insert(&self, fingerprint: F, number: u32) {
        for band in &self.bands {
            let _ = band.prefetch_node(band.newest_node(band.bucket(band.bits_of(fingerprint))));
        }
        self.bands.iter().for_each(|band| band.insert(fingerprint, number));
    }

    /// Adds many fingerprints to one band; [`MultiIndex::insert`] adds one to all bands. Different threads may fill
    /// different bands at the same time.
    pub(super) fn insert_into_band(&self, band: usize, pairs: &[(F, u32)]) {
        self.bands[band].insert_batch(pairs);
    }

    /// Visits each fingerprint within a distance of the query, with the index of its (fingerprint, id) pair. Each pair is
    /// visited once; pairs that are not published yet are visited too. Callers must check
    /// [`MultiIndex::is_faster_than_scan`] first: at a distance for which a scan is always faster, this function visits
    /// nothing. Inlined, so that it uses the CPU features that its caller is compiled for.
    #[inline(always)]
    pub(super) fn search(&self, query: F, distance: u32, mut visitor: impl FnMut(F, u32)) {
        let Some(plan) = self.plan(distance) else { return };
        for lookups in plan.lookups.chunks(LOOKUP_BATCH) {
            let mut buckets = [0; LOOKUP_BATCH];
            for (bucket, &(band, flip)) in buckets.iter_mut().zip(lookups) {
                let band = &self.bands[band];
                *bucket = band.bucket(band.bits_of(query) ^ flip);
                prefetch(&band.buckets, *bucket);
            }
            // Visits one node of each bucket in turn, so that the memory waits overlap.
            let mut nodes: [&[AtomicU64]; LOOKUP_BATCH] = [&[]; LOOKUP_BATCH];
            for ((node, &bucket), &(band, _)) in nodes.iter_mut().zip(&buckets).zip(lookups) {
                *node = self.bands[band].prefetch_node(self.bands[band].newest_node(bucket));
            }
            let mut left = true;
            while std::mem::take(&mut left) {
                for (node, &(i, flip)) in nodes.iter_mut().zip(lookups).filter(|(node, _)| !node.is_empty()) {
                    let (band, visited) = (&self.bands[i], *node);
                    let word = visited[0].load(Ordering::Acquire);
                    *node = band.prefetch_node((word >> 32) as u32);
                    left |= !node.is_empty();
                    let len = (word & 0xffff_ffff) as usize;
                    band.visit(visited, len, query, distance, |difference, number| {
                        // Other fingerprints in the bucket belong to other lookups, or to none. Only the first band that
                        // finds a fingerprint reports it, so that none is reported twice.
                        let is_first = || !self.is_found_by(&self.bands[..i], difference, &plan.flip_limits);
                        if band.bits_of(difference) == flip && is_first() {
                            visitor(query ^ difference, number);
                        }
                    });
                }
            }
        }
    }

    /// Whether a lookup in any of `bands` finds a fingerprint whose XOR with the query is `difference`.
    #[inline(always)]
    fn is_found_by(&self, bands: &[BandIndex<F>], difference: F, flip_limits: &[u32; MAX_BANDS]) -> bool {
        bands.iter().zip(flip_limits).any(|(band, &limit)| band.bits_of(difference).count_ones() < limit)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bands.iter().map(BandIndex::bytes).sum()
    }
}

/// Masks of all ways to flip fewer than `limit` of the lowest `bits` bits.
#[inline(always)]
pub(super) fn flips(bits: u32, limit: u32) -> impl Iterator<Item = u64> {
    (0..limit.min(bits + 1).min(u64::BITS)).flat_map(move |ones| {
        // All numbers with `ones` one bits, ascending (Gosper's hack).
        std::iter::successors(Some((1_u64 << ones) - 1), move |&flip| {
            let lowest = flip & flip.wrapping_neg();
            let carried = flip.checked_add(lowest).filter(|_| lowest > 0)?;
            let next = carried | (carried ^ flip) >> 2 >> lowest.trailing_zeros();
            (next.checked_shr(bits).unwrap_or(0) == 0).then_some(next)
        })
    })
}
