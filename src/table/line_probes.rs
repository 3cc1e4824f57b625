//! The probes of a table with prefix lines.

use crate::fingerprint::Fingerprint;
use crate::plan::TablePlan;
use crate::prefix_lines::{LineShape, MAX_LOW_BITS};

/// The probes of a table with prefix lines.
#[derive(Debug)]
pub(super) struct LineProbes {
    /// Differences between the query's bucket and the bucket of each probe, as masks of the differing bits.
    masks: Vec<u32>,
    /// Ends of parts of `masks`: before the end with the index i are the masks with at most i differing bits in the plan's
    /// prefix.
    ends: Vec<usize>,
    /// Bits of the low byte that belong to the prefix of the plan. In the other bits, a fingerprint may differ from the query.
    pub(super) low_mask: u8,
}

impl LineProbes {
    /// Returns the probes of a table, or `None` if it is faster to search the table by blocks.
    pub(super) fn new<F: Fingerprint>(plan: &TablePlan<F>, shape: LineShape) -> Option<LineProbes> {
        plan.line_probes(shape)?;
        let bucket_bits = shape.bucket_bits();
        // A prefix that is shorter than a bucket's number leaves some bits of the bucket open.
        let open_bits = bucket_bits.saturating_sub(plan.prefix_bits);
        let mut flipped: Vec<u32> = vec![0];
        for _ in 0..plan.flips {
            let fewer = flipped.clone();
            let one_more =
                fewer.iter().flat_map(|&mask| (open_bits..bucket_bits).map(move |bit| mask | 1_u32 << bit));
            flipped.extend(one_more);
            flipped.sort_unstable();
            flipped.dedup();
        }
        flipped.sort_by_key(|mask| mask.count_ones());
        let open = 1_u32 << open_bits;
        let ends = (0..=plan.flips)
            .map(|flips| flipped.partition_point(|mask| mask.count_ones() <= flips) << open_bits)
            .collect();
        let masks = flipped.iter().flat_map(|&mask| (0..open).map(move |low| mask | low)).collect();
        let low_bits = plan.prefix_bits.saturating_sub(bucket_bits).min(MAX_LOW_BITS);
        let low_mask = (0xff00_u16 >> low_bits) as u8;
        Some(LineProbes { masks, ends, low_mask })
    }

    /// Maximum number of differing bits in the plan's prefix.
    pub(super) fn flips(&self) -> u32 {
        self.ends.len() as u32 - 1
    }

    /// Masks with exactly `flips` differing bits in the plan's prefix. `flips` is at most [`LineProbes::flips`].
    pub(super) fn masks(&self, flips: u32) -> &[u32] {
        let start = if flips == 0 { 0 } else { self.ends[flips as usize - 1] };
        &self.masks[start..self.ends[flips as usize]]
    }

    /// Memory of the masks in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.masks[..])
    }
}
