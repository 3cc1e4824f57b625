//! The masks of a table's probes: which bits each probe flips in the query's prefix.

use super::header::TableHeader;
use crate::fingerprint::Fingerprint;

/// The masks of the probes of a table: all ways to flip at most r of the first [`flipped_bits`](ProbeMasks::flipped_bits) bits
/// of the query's prefix, where r is the number of flips of the plan.
///
/// A probe whose mask flips r bits looks for fingerprints with the whole flipped prefix, because no other bit of the prefix
/// may differ. A probe whose mask flips fewer bits looks for all fingerprints with the first `flipped_bits` bits of the
/// flipped prefix.
#[derive(Debug)]
pub(super) struct ProbeMasks<F> {
    /// Number of leading bits of the query that the masks may flip.
    pub(super) flipped_bits: u32,
    /// The masks that flip fewer bits than the plan allows, then the masks that flip as many as it allows. Each of the
    /// two parts is ascending, so that probes of the same block are adjacent.
    pub(super) masks: Vec<F>,
    /// Number of masks at the start of `masks` that flip fewer than the maximum number of bits.
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

    /// Memory of the masks in bytes.
    pub(super) fn memory(&self) -> usize {
        self.masks.len() * F::BYTES
    }
}
