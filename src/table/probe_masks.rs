//! The bit flips of the probes of a table.

use super::header::TableHeader;
use crate::fingerprint::Fingerprint;

/// The masks of the probes of a table: all ways to flip at most r of the first bits. If a mask flips r bits, no other bit of
/// the prefix may differ, so the probe reads the fingerprints that share the whole prefix. If it flips fewer bits, the probe
/// reads the fingerprints that share only the first bits.
#[derive(Debug)]
pub(super) struct ProbeMasks<F> {
    /// Number of first bits that may be flipped.
    pub(super) flipped_bits: u32,
    /// The masks with fewer than r one bits, then the masks with r one bits. Both parts are ascending, so that probes that share
    /// a block are adjacent.
    pub(super) masks: Vec<F>,
    /// Number of masks with fewer than r one bits.
    pub(super) partial_len: usize,
}

impl<F: Fingerprint> ProbeMasks<F> {
    pub(super) fn new(header: &TableHeader<F>) -> Self {
        let (flipped_bits, max_flips) = (header.plan.flipped_bits(header.fingerprints), header.plan.flips);
        let mut masks = vec![F::ZERO];
        for _ in 0..max_flips {
            // Each mask with one more bit set.
            let fewer = masks.clone();
            masks.extend(
                fewer.iter().flat_map(|&mask| (0..flipped_bits).map(move |bit| mask | F::bit_mask(bit))),
            );
            masks.sort_unstable();
            masks.dedup();
        }
        masks.sort_by_key(|mask| mask.count_ones() == max_flips);
        let partial_len = masks.partition_point(|mask| mask.count_ones() < max_flips);
        ProbeMasks { flipped_bits, masks, partial_len }
    }

    /// Bytes in memory.
    pub(super) fn memory(&self) -> usize {
        self.masks.len() * F::BYTES
    }
}
