//! Fingerprints by the bits of one of several bands, so that those near a query are found.
//!
//! With more bands than bits may differ, a fingerprint near a query has all bits of some band in common with it.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::growing::Growing;
use super::pairs::{load, store};
use crate::fingerprint::Fingerprint;
use crate::kernels::prefetch;

/// The most bits that choose a bucket.
const MAX_BUCKET_BITS: u32 = 16;
/// The most bands that are worth it.
const MAX_BANDS: usize = 32;
/// The fewest fingerprints of a node: with 64 bits it then takes two cache lines.
const MIN_NODE: u64 = 10;
/// The most; longer ones gain nothing.
const MAX_NODE: u64 = 128;

/// Some bits of the fingerprints.
struct Band<F> {
    start: u32,
    /// At most 64.
    bits: u32,
    bucket_bits: u32,
    mask: F,
    /// The newest node of each bucket: one more than its number, 0 for none.
    buckets: Box<[AtomicU32]>,
}

impl<F: Fingerprint> Band<F> {
    /// The bucket of a fingerprint: a permutation of the band's bits if there are as many buckets, else a hash.
    #[inline]
    fn bucket(&self, fingerprint: F) -> &AtomicU32 {
        let bits = (fingerprint << self.start >> (F::BITS - self.bits)).low_u64();
        let hash = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) << (64 - self.bits);
        // Two shifts, as there may be one bucket only.
        &self.buckets[(hash >> 1 >> (63 - self.bucket_bits)) as usize]
    }
}

/// Numbered fingerprints in buckets, each a chain of nodes, the newest first.
///
/// A node has a word with one more than the number of the next node and, below, the number of its fingerprints; then
/// the fingerprints; then their numbers, two to a word.
pub(super) struct Bands<F> {
    bands: Vec<Band<F>>,
    nodes: Growing<AtomicU64>,
    /// The most fingerprints of a node, an even number.
    node: usize,
}

impl<F: Fingerprint> Bands<F> {
    const WORDS: usize = F::BYTES / 8;

    /// How many bands searches up to a distance have; none if comparing with all fingerprints is as good.
    fn number(distance: u32) -> u32 {
        let bands = distance.saturating_add(1);
        let narrowest = F::BITS / bands;
        let few = bands as usize <= MAX_BANDS && (narrowest >= 32 || bands * 4 <= 1 << narrowest);
        if few { bands } else { 0 }
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
            let bits = ((i + 1) * F::BITS / number - start).min(64);
            // About a node of fingerprints in each bucket.
            let bucket_bits = (expected / 8).max(1).ilog2().min(bits).min(MAX_BUCKET_BITS);
            let mask = F::prefix_mask(bits) >> start;
            let buckets = (0..1 << bucket_bits).map(|_| AtomicU32::new(0)).collect();
            Band { start, bits, bucket_bits, mask, buckets }
        };
        let bands: Vec<_> = (0..number).map(band).collect();
        // Long chains of short nodes would wait for memory at each; long nodes in short chains would stay empty.
        let fewest = bands.iter().map(|band| band.buckets.len()).min().unwrap_or(1);
        let node = (expected / fewest as u64 / 4).clamp(MIN_NODE, MAX_NODE) as usize / 2 * 2;
        Bands { bands, nodes: Growing::new(1 + node * Self::WORDS + node / 2), node }
    }

    /// Whether [`Bands::search`] finds all within a distance.
    pub(super) fn serves(&self, distance: u32) -> bool {
        (distance as usize) < self.bands.len()
    }

    /// The newest node of a fingerprint's bucket in each band, at most [`MAX_BANDS`]. All are asked for before any is
    /// used, so that the waits for memory overlap.
    #[inline(always)]
    fn heads(&self, bands: &[Band<F>], fingerprint: F) -> [u32; MAX_BANDS] {
        let mut heads = [0; MAX_BANDS];
        for (head, band) in heads.iter_mut().zip(bands) {
            *head = band.bucket(fingerprint).load(Ordering::Acquire);
        }
        for &head in heads.iter().take(bands.len()).filter(|&&head| head > 0) {
            let node = self.nodes.get(head - 1);
            prefetch(node, 0);
            prefetch(node, 8);
        }
        heads
    }

    /// Adds a fingerprint with its number. The writer's only.
    pub(super) fn insert(&self, fingerprint: F, number: u32) {
        let heads = self.heads(&self.bands, fingerprint);
        for (band, head) in self.bands.iter().zip(heads) {
            if head > 0 {
                let node = self.nodes.get(head - 1);
                let word = node[0].load(Ordering::Relaxed);
                let len = (word & 0xffff_ffff) as usize;
                if len < self.node {
                    self.write(node, len, fingerprint, number);
                    // Who sees the length sees what it counts.
                    node[0].store(word + 1, Ordering::Release);
                    continue;
                }
            }
            let new = self.nodes.push(|node| {
                self.write(node, 0, fingerprint, number);
                node[0].store(u64::from(head) << 32 | 1, Ordering::Relaxed);
            });
            band.bucket(fingerprint).store(new + 1, Ordering::Release);
        }
    }

    #[inline]
    fn write(&self, node: &[AtomicU64], at: usize, fingerprint: F, number: u32) {
        store(fingerprint, &node[1 + at * Self::WORDS..]);
        let word = &node[1 + self.node * Self::WORDS + at / 2];
        // What was there is the number before this one, or nothing: cells are empty at first.
        let other = word.load(Ordering::Relaxed);
        word.store(other | u64::from(number) << (at % 2 * 32), Ordering::Relaxed);
    }

    /// Visits each fingerprint within a distance that is served, with its number: each number once, also those
    /// that no version knows yet. Inlined, so that it uses the instructions of its caller.
    #[inline(always)]
    pub(super) fn search(
        &self,
        query: F,
        distance: u32,
        mut visitor: impl FnMut(F, u32) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        // One band more than bits may differ is enough.
        let bands = &self.bands[..=distance as usize];
        for (i, mut next) in self.heads(bands, query).into_iter().enumerate().take(bands.len()) {
            while next > 0 {
                let node = self.nodes.get(next - 1);
                let word = node[0].load(Ordering::Acquire);
                let len = (word & 0xffff_ffff) as usize;
                next = (word >> 32) as u32;
                let (fingerprints, numbers) = node[1..].split_at(self.node * Self::WORDS);
                for (at, cells) in fingerprints.chunks_exact(Self::WORDS).enumerate().take(len) {
                    let fingerprint = load::<F>(cells);
                    let difference = query ^ fingerprint;
                    if difference.count_ones() > distance {
                        continue;
                    }
                    // Only in the first band that they have in common, so that none is found twice.
                    if bands.iter().position(|band| difference & band.mask == F::ZERO) == Some(i) {
                        let number = numbers[at / 2].load(Ordering::Relaxed) >> (at % 2 * 32);
                        visitor(fingerprint, number as u32)?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }

    pub(super) fn bytes(&self) -> u64 {
        let buckets: usize = self.bands.iter().map(|band| size_of_val(&*band.buckets)).sum();
        buckets as u64 + self.nodes.bytes()
    }
}
