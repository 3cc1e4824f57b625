//! Shapes of plans. A fingerprint is cut into *bit blocks*. The shape tells which bit blocks are in the prefix of
//! each table.
//!
//! Bit blocks must be disjoint. The bits of a bit block need not be contiguous, but in the named plans they are.

use super::TablePlan;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// The bit blocks into which a fingerprint is cut, each as a list of bit positions (0 is the most significant). The
/// first bit blocks are the prefix of the plan's first table. They have the leading bits of a fingerprint, since
/// the first table is not permuted.
pub(super) type BitBlocks = Vec<Vec<u8>>;

/// Shape of a plan: for each table, which bit blocks are in its prefix. A bit block is a part of the bits of a
/// fingerprint.
pub(super) struct PlanShape {
    /// For each table, a bit set of the bit blocks in its prefix, and the maximum number of prefix bits that its
    /// probes flip. Bit `i` of the set, counted from the least significant, is set if bit block `i` is in the prefix.
    /// The bit blocks in the first table's prefix have the lowest indexes.
    tables: Vec<(u64, u32)>,
    /// Number of bit blocks into which a fingerprint is cut.
    pub(super) blocks: usize,
}

impl PlanShape {
    /// Creates the shape of a plan whose probes flip no bits of a prefix. `blocks` is the number of bit blocks.
    /// `prefixes` has for each table the set of the bit blocks in its prefix. A set has one binary digit per bit
    /// block; the leftmost digit is for the first bit block.
    pub(super) fn from_sets(blocks: u32, prefixes: &[u64]) -> PlanShape {
        // The blocks of the first prefix come first, so that the first table is not permuted.
        let mut order: Vec<u32> = (0..blocks).collect();
        order.sort_by_key(|block| prefixes[0] >> (blocks - 1 - block) & 1 == 0);
        let number = |set: u64| {
            let chosen = order.iter().enumerate().filter(|(_, block)| set >> (blocks - 1 - *block) & 1 == 1);
            chosen.fold(0, |all, (i, _)| all | 1 << i)
        };
        PlanShape { tables: prefixes.iter().map(|&set| (number(set), 0)).collect(), blocks: blocks as usize }
    }

    /// Creates the shape of a plan with disjoint prefixes. The probes of the tables flip as few bits as necessary
    /// to find all neighbours within the distance.
    ///
    /// Let k be the distance, and `r_i` the number of flips of table i. The sum of `r_i + 1` over all tables is
    /// k + 1. If two fingerprints differed in more than `r_i` bits of every prefix i, they would differ in at
    /// least k + 1 bits. So at least one table finds each neighbour.
    pub(super) fn disjoint(tables: u32, distance: u32) -> PlanShape {
        let share = |i| (distance + 1) / tables + u32::from(i < (distance + 1) % tables);
        PlanShape { tables: (0..tables).map(|i| (1 << i, share(i) - 1)).collect(), blocks: tables as usize }
    }

    /// Creates the shape of a `mixed` plan. The prefix of the first table is bit block 0, in which probes flip up to
    /// one bit. The prefix of each other table is all bit blocks except bit block 0 and one other, and no bits are
    /// flipped in it.
    pub(super) fn mixed(tables: usize) -> PlanShape {
        let others = (u64::MAX >> (64 - tables)) & !1;
        let without = (1..tables).map(|i| (others & !(1 << i), 0));
        PlanShape { tables: std::iter::once((1, 1)).chain(without).collect(), blocks: tables }
    }

    /// Returns the bit positions in a table's prefix, one bit block after the other. `blocks` lists the bit positions
    /// of each bit block.
    fn prefix(&self, table: usize, blocks: &BitBlocks) -> Vec<u8> {
        let set = self.tables[table].0;
        let chosen = blocks.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        chosen.flat_map(|(_, bits)| bits).copied().collect()
    }

    /// Creates the tables of a plan of this shape. `blocks` lists the bit positions of each bit block.
    pub(super) fn tables<F: Fingerprint>(&self, blocks: &BitBlocks) -> Result<Vec<TablePlan<F>>> {
        let flips = self.tables.iter().map(|&(_, flips)| flips);
        flips.enumerate().map(|(i, flips)| table(&self.prefix(i, blocks), flips)).collect()
    }
}

/// Creates the plan of a table whose prefix has the bits `prefix`, in this order. In the permutation, the other bits
/// follow in ascending order. `flips` is the maximum number of prefix bits that a probe flips.
pub(super) fn table<F: Fingerprint>(prefix: &[u8], flips: u32) -> Result<TablePlan<F>> {
    let rest = (0..F::BITS as u8).filter(|bit| !prefix.contains(bit));
    let permutation = Permutation::new(prefix.iter().copied().chain(rest))?;
    Ok(TablePlan { permutation, prefix_bits: prefix.len() as u32, flips })
}

/// Cuts a list of bit positions into `count` contiguous bit blocks with nearly equal numbers of bits.
pub(super) fn parts(bits: &[u8], count: usize) -> BitBlocks {
    (0..count).map(|i| bits[i * bits.len() / count..(i + 1) * bits.len() / count].to_vec()).collect()
}

pub(super) fn all_bits<F: Fingerprint>() -> Vec<u8> {
    (0..F::BITS as u8).collect()
}
