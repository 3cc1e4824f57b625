//! Which probes a table is looked up with.

use super::header::TableHeader;
use crate::fingerprint::Fingerprint;

/// The probes of a table: all ways to flip at most r of the first bits. With r flipped, no other bit of the prefix
/// may differ, and the probe reads the fingerprints that share all of it; with fewer, those that share the first bits.
#[derive(Debug)]
pub(super) struct Flips<F> {
    /// How many first bits may be flipped.
    pub(super) bits: u32,
    /// Those with fewer than r bits flipped, then those with r: both ascending, so that probes that share a block
    /// follow one another.
    pub(super) masks: Vec<F>,
    /// The number of masks with fewer than r bits.
    pub(super) wide: usize,
}

impl<F: Fingerprint> Flips<F> {
    pub(super) fn new(header: &TableHeader<F>) -> Self {
        let (bits, most) = (header.plan.flipped_bits(header.fingerprints), header.plan.flips);
        let mut masks = vec![F::ZERO];
        for _ in 0..most {
            // Each mask with one more bit, after those that it has.
            let fewer = masks.clone();
            masks.extend(fewer.iter().flat_map(|&mask| (0..bits).map(move |bit| mask | F::bit_mask(bit))));
            masks.sort_unstable();
            masks.dedup();
        }
        masks.sort_by_key(|mask| mask.count_ones() == most);
        let wide = masks.partition_point(|mask| mask.count_ones() < most);
        Flips { bits, masks, wide }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.masks.len() * F::BYTES
    }
}
