//! Shapes of plans: the blocks of bits in the prefix of each table.
//!
//! Blocks must be disjoint, but need not be contiguous. The named plans have contiguous blocks.

use super::TablePlan;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// Bits of each block; bit 0 is the most significant. The blocks of the first table's prefix have the leading
/// bits, since this table is not permuted.
pub(super) type BitBlocks = Vec<Vec<u8>>;

/// Shape of a plan: the prefix of each table as a set of blocks.
pub(super) struct PlanShape {
    /// Blocks of each table's prefix, as a bit set (bit `i` for block `i`; bit 0 is the least significant),
    /// and the number of flips. The blocks of the first prefix have the lowest numbers.
    tables: Vec<(u64, u32)>,
    /// Number of blocks.
    pub(super) blocks: usize,
}

impl PlanShape {
    /// Creates the shape of tables without flips from sets of blocks. A set has one binary digit per block;
    /// the first block is the leftmost digit.
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

    /// Creates the shape of tables with disjoint prefixes and the fewest flips for a complete plan.
    ///
    /// Let `r_i` be the number of flips of table i. The sum of `r_i + 1` over all tables is k + 1. If every
    /// prefix i had more than `r_i` errors, there would be at least k + 1 errors. So k errors leave at least
    /// one table that finds the fingerprint.
    pub(super) fn disjoint(tables: u32, distance: u32) -> PlanShape {
        let share = |i| (distance + 1) / tables + u32::from(i < (distance + 1) % tables);
        PlanShape { tables: (0..tables).map(|i| (1 << i, share(i) - 1)).collect(), blocks: tables as usize }
    }

    /// Creates the shape of a mixed plan. The first prefix is block 0, with one flip. Each other prefix is
    /// all blocks except block 0 and one other block, without flips.
    pub(super) fn mixed(tables: usize) -> PlanShape {
        let others = (u64::MAX >> (64 - tables)) & !1;
        let without = (1..tables).map(|i| (others & !(1 << i), 0));
        PlanShape { tables: std::iter::once((1, 1)).chain(without).collect(), blocks: tables }
    }

    /// Returns the bits of a table's prefix, in the order of the blocks.
    fn prefix(&self, table: usize, blocks: &BitBlocks) -> Vec<u8> {
        let set = self.tables[table].0;
        let chosen = blocks.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        chosen.flat_map(|(_, bits)| bits).copied().collect()
    }

    /// Creates the tables of this shape with the given bits for each block.
    pub(super) fn tables<F: Fingerprint>(&self, blocks: &BitBlocks) -> Result<Vec<TablePlan<F>>> {
        let flips = self.tables.iter().map(|&(_, flips)| flips);
        flips.enumerate().map(|(i, flips)| table(&self.prefix(i, blocks), flips)).collect()
    }
}

/// Creates a table whose prefix has the given bits in the given order. The other bits follow in ascending
/// order.
pub(super) fn table<F: Fingerprint>(prefix: &[u8], flips: u32) -> Result<TablePlan<F>> {
    let rest = (0..F::BITS as u8).filter(|bit| !prefix.contains(bit));
    let permutation = Permutation::new(prefix.iter().copied().chain(rest))?;
    Ok(TablePlan { permutation, prefix_bits: prefix.len() as u32, flips })
}

/// Cuts a list of bits into `count` contiguous parts of nearly equal length.
pub(super) fn parts(bits: &[u8], count: usize) -> BitBlocks {
    (0..count).map(|i| bits[i * bits.len() / count..(i + 1) * bits.len() / count].to_vec()).collect()
}

pub(super) fn all_bits<F: Fingerprint>() -> Vec<u8> {
    (0..F::BITS as u8).collect()
}
