//! Fingerprints by the bits of one of several bands, so that those near a query are found.
//!
//! Each band has a share of the bits that may differ and one more. The shares are all of them together, so that a
//! fingerprint near a query differs in fewer bits than its share in some band; there, the query's bits are flipped in all
//! ways that are fewer than the share. A band whose share is one is looked up as it is.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::growing::Growing;
use super::pairs::{load, store};
use crate::fingerprint::Fingerprint;
use crate::kernels::prefetch;

/// The most bits that choose a bucket, and the fewest of a band: where there are more bits to find than such bands,
/// flipping some is cheaper than narrower bands, whose buckets hold many more.
const BUCKET_BITS: u32 = 16;
/// Fingerprints that are compared together, and the fewest of a node: with 64 bits it then takes two cache lines.
const GROUP: usize = 10;
/// The most groups of a node; longer ones gain nothing.
const MAX_GROUPS: usize = 12;
/// The most bands, at 128 bits.
const MAX_BANDS: usize = 8;
/// How many look-ups wait for memory together.
const AT_ONCE: usize = 32;
/// The largest distance within which it is not compared with all.
const MAX_DISTANCE: u32 = 32;
/// The most look-ups of a search: of so many, all are better compared with.
const MAX_LOOKUPS: f64 = 16384.0;

/// What a look-up costs, in about nanoseconds, ...
const LOOKUP: f64 = 30.0;
/// ... a fingerprint in its bucket, ...
const IN_BUCKET: f64 = 3.0;
/// ... and one of those that are compared in order.
const IN_ORDER: f64 = 1.5;

/// Some bits of the fingerprints, and the fingerprints in buckets by them, each a chain of nodes, the newest first.
///
/// A node has a word with one more than the number of the next node and, below, the number of its fingerprints; then
/// the fingerprints; then their numbers, two to a word.
struct Band<F> {
    start: u32,
    /// At most 64.
    bits: u32,
    bucket_bits: u32,
    /// The newest node of each bucket: one more than its number, 0 for none.
    buckets: Box<[AtomicU32]>,
    nodes: Growing<AtomicU64>,
    /// The most fingerprints of a node, some groups.
    node: usize,
    fingerprints: std::marker::PhantomData<fn(F)>,
}

impl<F: Fingerprint> Band<F> {
    const WORDS: usize = F::BYTES / 8;

    fn new(start: u32, bits: u32, expected: u64) -> Self {
        // About a node of fingerprints in each bucket.
        let bucket_bits = (expected / 8).max(1).ilog2().min(bits).min(BUCKET_BITS);
        // Long chains of short nodes would wait for memory at each; long nodes in short chains would stay empty.
        let groups = ((expected >> bucket_bits) as usize / 3).div_ceil(GROUP);
        let node = groups.clamp(1, MAX_GROUPS) * GROUP;
        Band {
            start,
            bits,
            bucket_bits,
            buckets: (0..1 << bucket_bits).map(|_| AtomicU32::new(0)).collect(),
            nodes: Growing::new(1 + node * Self::WORDS + node / 2),
            node,
            fingerprints: std::marker::PhantomData,
        }
    }

    /// The band's bits of a fingerprint.
    #[inline(always)]
    fn bits_of(&self, fingerprint: F) -> u64 {
        (fingerprint << self.start >> (F::BITS - self.bits)).low_u64()
    }

    /// The bucket of a band's bits: a permutation of them if there are as many buckets, else a hash.
    #[inline(always)]
    fn bucket(&self, bits: u64) -> usize {
        let hash = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) << (64 - self.bits);
        // Two shifts, as there may be one bucket only.
        (hash >> 1 >> (63 - self.bucket_bits)) as usize
    }

    /// The newest node of a bucket, as buckets have it.
    #[inline(always)]
    fn newest(&self, bucket: usize) -> u32 {
        self.buckets[bucket].load(Ordering::Acquire)
    }

    /// Asks for what a look-up reads of a node, as buckets have it; returns it, empty if there is none.
    #[inline(always)]
    fn ask_for(&self, node: u32) -> &[AtomicU64] {
        if node == 0 {
            return &[];
        }
        let node = self.nodes.get(node - 1);
        prefetch(node, 0);
        prefetch(node, 8);
        node
    }

    /// Asks for where the next fingerprint of a node goes, which has been asked for.
    #[inline(always)]
    fn ask_for_end(&self, node: u32) {
        if node > 0 {
            let node = self.nodes.get(node - 1);
            let len = (node[0].load(Ordering::Relaxed) & 0xffff_ffff) as usize;
            prefetch(node, 1 + len * Self::WORDS);
            prefetch(node, 1 + self.node * Self::WORDS + len / 2);
        }
    }

    /// Adds a fingerprint with its number. One thread at a time.
    #[inline(always)]
    fn insert(&self, fingerprint: F, number: u32) {
        let bucket = self.bucket(self.bits_of(fingerprint));
        let head = self.newest(bucket);
        if head > 0 {
            let node = self.nodes.get(head - 1);
            let word = node[0].load(Ordering::Relaxed);
            let len = (word & 0xffff_ffff) as usize;
            if len < self.node {
                self.write(node, len, fingerprint, number);
                // Who sees the length sees what it counts.
                node[0].store(word + 1, Ordering::Release);
                return;
            }
        }
        let new = self.nodes.push(|node| {
            self.write(node, 0, fingerprint, number);
            node[0].store(u64::from(head) << 32 | 1, Ordering::Relaxed);
        });
        self.buckets[bucket].store(new + 1, Ordering::Release);
    }

    #[inline]
    fn write(&self, node: &[AtomicU64], at: usize, fingerprint: F, number: u32) {
        store(fingerprint, &node[1 + at * Self::WORDS..]);
        let word = &node[1 + self.node * Self::WORDS + at / 2];
        // What was there is the number before this one, or nothing: cells are empty at first.
        let other = word.load(Ordering::Relaxed);
        word.store(other | u64::from(number) << (at % 2 * 32), Ordering::Relaxed);
    }

    /// Adds many fingerprints with their numbers: all of a group wait for memory together. One thread at a time.
    fn fill(&self, pairs: &[(F, u32)]) {
        for group in pairs.chunks(AT_ONCE) {
            let buckets = || group.iter().map(|&(fingerprint, _)| self.bucket(self.bits_of(fingerprint)));
            buckets().for_each(|bucket| prefetch(&self.buckets, bucket));
            buckets().for_each(|bucket| _ = self.ask_for(self.newest(bucket)));
            buckets().for_each(|bucket| self.ask_for_end(self.newest(bucket)));
            group.iter().for_each(|&(fingerprint, number)| self.insert(fingerprint, number));
        }
    }

    /// Visits those of the first fingerprints of a node that are within a distance: how each differs, and its number.
    #[inline(always)]
    fn visit(
        &self,
        node: &[AtomicU64],
        len: usize,
        query: F,
        distance: u32,
        mut visitor: impl FnMut(F, u32),
    ) {
        let (fingerprints, numbers) = node[1..].split_at(self.node * Self::WORDS);
        let groups = fingerprints.chunks_exact(GROUP * Self::WORDS).take(len.div_ceil(GROUP));
        for (first, cells) in (0..).step_by(GROUP).zip(groups) {
            let difference = |i: usize| query ^ load::<F>(&cells[i * Self::WORDS..]);
            // All of a group, those too that are not there yet: no branch depends on how many there are.
            let is_near = |near, i| near | u32::from(difference(i).count_ones() <= distance) << i;
            let mut near = (0..GROUP).fold(0, is_near) & ((1 << (len - first).min(GROUP)) - 1);
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

/// How fingerprints within a distance are found.
struct Search {
    /// In how many bits, fewer than this, they differ in some band.
    shares: [u32; MAX_BANDS],
    /// The look-ups: the band, and which of its bits are flipped.
    lookups: Box<[(usize, u64)]>,
    /// Among how many fingerprints this takes less than comparing with all.
    least: u32,
}

/// Numbered fingerprints in the buckets of all bands.
pub(super) struct Bands<F> {
    bands: Vec<Band<F>>,
    /// By distance, made when first asked for.
    searches: [OnceLock<Search>; MAX_DISTANCE as usize + 1],
}

impl<F: Fingerprint> Bands<F> {
    /// How many bands serve searches up to a distance.
    fn number(distance: u32) -> u32 {
        distance.saturating_add(1).min(F::BITS / BUCKET_BITS)
    }

    /// Memory of a fingerprint in all bands, in bytes, at two thirds of the room in nodes.
    pub(super) fn bytes_each(distance: u32) -> usize {
        Self::number(distance) as usize * (F::BYTES + 4) * 3 / 2
    }

    /// For searches up to a distance among about so many fingerprints.
    pub(super) fn new(distance: u32, expected: u64) -> Self {
        let number = Self::number(distance);
        let band = |i: u32| {
            let start = i * F::BITS / number;
            Band::new(start, ((i + 1) * F::BITS / number - start).min(64), expected)
        };
        Bands { bands: (0..number).map(band).collect(), searches: [const { OnceLock::new() }; _] }
    }

    /// How many bands there are.
    pub(super) fn len(&self) -> usize {
        self.bands.len()
    }

    /// The search within a distance; none within one that is too large.
    #[inline(always)]
    fn search_for(&self, distance: u32) -> Option<&Search> {
        Some(self.searches.get(distance as usize)?.get_or_init(|| self.new_search(distance)))
    }

    #[cold]
    fn new_search(&self, distance: u32) -> Search {
        let (bands, all) = (self.bands.len() as u32, distance + 1);
        let shares = std::array::from_fn(|i| all / bands + u32::from((i as u32) < all % bands));
        // Look-ups, and what they cost among so many that each look-up meets one.
        let (mut lookups, mut in_buckets) = (0.0, 0.0);
        for (band, &share) in self.bands.iter().zip(&shares) {
            // The ways to flip none, one, two, ...
            let next = |ways: f64, i: u32| ways * f64::from(band.bits.saturating_sub(i)) / f64::from(i + 1);
            let each = (0..share).scan(1.0, |ways, i| Some(std::mem::replace(ways, next(*ways, i))));
            let ways: f64 = each.sum();
            lookups += ways;
            in_buckets += ways / band.buckets.len() as f64;
        }
        let gain = IN_ORDER - in_buckets * IN_BUCKET;
        if gain <= 0.0 || lookups > MAX_LOOKUPS {
            return Search { shares, lookups: Box::default(), least: u32::MAX };
        }
        let flipped = |(i, band): (usize, &Band<F>)| flips(band.bits, shares[i]).map(move |flip| (i, flip));
        let lookups: Box<[_]> = self.bands.iter().enumerate().flat_map(flipped).collect();
        let least = (lookups.len() as f64 * LOOKUP / gain) as u32;
        Search { shares, lookups, least }
    }

    /// Whether a search within a distance takes less than comparing with all of so many.
    #[inline]
    pub(super) fn serves(&self, distance: u32, len: u32) -> bool {
        self.search_for(distance).is_some_and(|search| search.least < len)
    }

    /// Adds a fingerprint with its number. The writer's only.
    pub(super) fn insert(&self, fingerprint: F, number: u32) {
        for band in &self.bands {
            let _ = band.ask_for(band.newest(band.bucket(band.bits_of(fingerprint))));
        }
        self.bands.iter().for_each(|band| band.insert(fingerprint, number));
    }

    /// Adds many fingerprints to one band, as [`Bands::insert`] does to all. Different threads may fill different bands.
    pub(super) fn fill(&self, band: usize, pairs: &[(F, u32)]) {
        self.bands[band].fill(pairs);
    }

    /// Visits each fingerprint within a distance that is [served](Bands::serves), with its number: each number once, also
    /// those that no version knows yet. Inlined, so that it uses the instructions of its caller.
    #[inline(always)]
    pub(super) fn search(&self, query: F, distance: u32, mut visitor: impl FnMut(F, u32)) {
        let Some(search) = self.search_for(distance) else { return };
        for lookups in search.lookups.chunks(AT_ONCE) {
            let mut buckets = [0; AT_ONCE];
            for (bucket, &(band, flip)) in buckets.iter_mut().zip(lookups) {
                let band = &self.bands[band];
                *bucket = band.bucket(band.bits_of(query) ^ flip);
                prefetch(&band.buckets, *bucket);
            }
            // The nodes of each bucket one after the other, those of all buckets in turn: the waits for memory overlap.
            let mut nodes: [&[AtomicU64]; AT_ONCE] = [&[]; AT_ONCE];
            for ((node, &bucket), &(band, _)) in nodes.iter_mut().zip(&buckets).zip(lookups) {
                *node = self.bands[band].ask_for(self.bands[band].newest(bucket));
            }
            let mut left = true;
            while std::mem::take(&mut left) {
                for (node, &(i, flip)) in nodes.iter_mut().zip(lookups).filter(|(node, _)| !node.is_empty()) {
                    let (band, visited) = (&self.bands[i], *node);
                    let word = visited[0].load(Ordering::Acquire);
                    *node = band.ask_for((word >> 32) as u32);
                    left |= !node.is_empty();
                    let len = (word & 0xffff_ffff) as usize;
                    band.visit(visited, len, query, distance, |difference, number| {
                        // What else is in the bucket belongs to another look-up, or to none; and only the first band of
                        // those that find a fingerprint counts, so that none is found twice.
                        let is_first = || !self.finds(&self.bands[..i], difference, &search.shares);
                        if band.bits_of(difference) == flip && is_first() {
                            visitor(query ^ difference, number);
                        }
                    });
                }
            }
        }
    }

    /// Whether one of the first bands finds a fingerprint that differs like this.
    #[inline(always)]
    fn finds(&self, bands: &[Band<F>], difference: F, shares: &[u32; MAX_BANDS]) -> bool {
        bands.iter().zip(shares).any(|(band, &share)| band.bits_of(difference).count_ones() < share)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bands.iter().map(Band::bytes).sum()
    }
}

/// All ways to flip fewer than `share` of some bits.
#[inline(always)]
pub(super) fn flips(bits: u32, share: u32) -> impl Iterator<Item = u64> {
    (0..share.min(bits + 1).min(u64::BITS)).flat_map(move |ones| {
        // The numbers with so many ones, ascending: of each the next.
        std::iter::successors(Some((1_u64 << ones) - 1), move |&flip| {
            let lowest = flip & flip.wrapping_neg();
            let carried = flip.checked_add(lowest).filter(|_| lowest > 0)?;
            let next = carried | (carried ^ flip) >> 2 >> lowest.trailing_zeros();
            (next.checked_shr(bits).unwrap_or(0) == 0).then_some(next)
        })
    })
}
