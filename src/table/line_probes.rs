//! The probes of a table with prefix lines.

use crate::fingerprint::Fingerprint;
use crate::plan::TablePlan;
use crate::prefix_lines::{LineShape, MAX_LOW_BITS};

/// The probes of a table with prefix lines.
#[derive(Debug)]
pub(super) struct LineProbes {
    /// Differences between the query's bucket and the bucket of each probe, ordered by [`BucketMask::flips`].
    masks: Vec<BucketMask>,
    /// Bits of the low byte that belong to the prefix of the plan. In the other bits, a fingerprint may differ from the query.
    pub(super) low_mask: u8,
    /// Maximum number of differing bits in the plan's prefix.
    pub(super) flips: u32,
}

/// Difference between the bucket of the query and the bucket of a probe: the differing bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct BucketMask {
    pub(super) bits: u32,
    /// Number of these bits that belong to the prefix of the plan.
    pub(super) flips: u32,
}

impl LineProbes {
    /// Returns the probes of a table, or `None` if it is faster to search the table by blocks.
    pub(super) fn new<F: Fingerprint>(plan: &TablePlan<F>, shape: LineShape) -> Option<LineProbes> {
        plan.line_probes(shape)?;
        let bucket_bits = shape.bucket_bits();
        // A prefix that is shorter than a bucket's number leaves some bits of the bucket open.
        let open_bits = bucket_bits.saturating_sub(plan.prefix_bits);
        let open = 1_u64 << open_bits;
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
        let masks = flipped.iter().flat_map(|&mask| {
            (0..open as u32).map(move |low| BucketMask { bits: mask | low, flips: mask.count_ones() })
        });
        let low_bits = plan.prefix_bits.saturating_sub(bucket_bits).min(MAX_LOW_BITS);
        let low_mask = (0xff00_u16 >> low_bits) as u8;
        Some(LineProbes { masks: masks.collect(), low_mask, flips: plan.flips })
    }

    /// Masks with at most `flips` differing bits in the plan's prefix.
    pub(super) fn masks_up_to(&self, flips: u32) -> &[BucketMask] {
        if flips == self.flips {
            return &self.masks;
        }
        &self.masks[..self.masks.partition_point(|mask| mask.flips <= flips)]
    }

    /// Memory of the masks in bytes.
    pub(super) fn memory(&self) -> usize {
        size_of_val(&self.masks[..])
    }
}
