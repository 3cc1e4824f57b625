//! Shapes: which blocks of bits the prefix of each table consists of, whatever bits the blocks have.
//!
//! Any bits will do for the blocks, as long as no bit is in two of them: plans with names have contiguous ones.

use super::TablePlan;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// The bits of each block. The blocks of the first table's prefix have the leading bits, as this table is not
/// permuted.
pub(super) type Blocks = Vec<Vec<u8>>;

/// Tables as sets of blocks.
pub(super) struct Shape {
    /// The blocks of each prefix (bit `i` is set for block `i`), and the flips. Those of the first prefix have the
    /// lowest numbers.
    tables: Vec<(u64, u32)>,
    /// Number of blocks.
    pub(super) blocks: usize,
}

impl Shape {
    /// Tables without flips whose prefixes are sets of blocks, one binary digit a block, the first block leftmost.
    pub(super) fn of_sets(blocks: u32, prefixes: &[u64]) -> Shape {
        // Any numbering of the blocks will do: this one leaves the first table as it is.
        let mut order: Vec<u32> = (0..blocks).collect();
        order.sort_by_key(|block| prefixes[0] >> (blocks - 1 - block) & 1 == 0);
        let number = |set: u64| {
            let chosen = order.iter().enumerate().filter(|(_, block)| set >> (blocks - 1 - *block) & 1 == 1);
            chosen.fold(0, |all, (i, _)| all | 1 << i)
        };
        Shape { tables: prefixes.iter().map(|&set| (number(set), 0)).collect(), blocks: blocks as usize }
    }

    /// Disjoint prefixes, and as many flips as it takes: k errors cannot put more than r_i into each prefix i
    /// when the r_i + 1 add up to more than k.
    pub(super) fn of_probes(tables: u32, distance: u32) -> Shape {
        let share = |i| (distance + 1) / tables + u32::from(i < (distance + 1) % tables);
        Shape { tables: (0..tables).map(|i| (1 << i, share(i) - 1)).collect(), blocks: tables as usize }
    }

    /// A block that may be flipped in one bit, and all others but each of `tables` - 1 of them.
    pub(super) fn mixed(tables: usize) -> Shape {
        let others = (u64::MAX >> (64 - tables)) & !1;
        let without = (1..tables).map(|i| (others & !(1 << i), 0));
        Shape { tables: std::iter::once((1, 1)).chain(without).collect(), blocks: tables }
    }

    /// The bits of a table's prefix.
    fn prefix(&self, table: usize, blocks: &Blocks) -> Vec<u8> {
        let set = self.tables[table].0;
        let chosen = blocks.iter().enumerate().filter(|(i, _)| set >> i & 1 == 1);
        chosen.flat_map(|(_, bits)| bits).copied().collect()
    }

    /// The tables, with the bits of each prefix in the order of the blocks.
    pub(super) fn tables<F: Fingerprint>(&self, blocks: &Blocks) -> Result<Vec<TablePlan<F>>> {
        let flips = self.tables.iter().map(|&(_, flips)| flips);
        flips.enumerate().map(|(i, flips)| table(&self.prefix(i, blocks), flips)).collect()
    }
}

/// A table with a prefix of these bits, in this order; then the others, ascending.
pub(super) fn table<F: Fingerprint>(prefix: &[u8], flips: u32) -> Result<TablePlan<F>> {
    let rest = (0..F::BITS as u8).filter(|bit| !prefix.contains(bit));
    let permutation = Permutation::new(prefix.iter().copied().chain(rest))?;
    Ok(TablePlan { permutation, prefix_bits: prefix.len() as u32, flips })
}

/// Nearly equal parts of some bits.
pub(super) fn parts(bits: &[u8], count: usize) -> Blocks {
    (0..count).map(|i| bits[i * bits.len() / count..(i + 1) * bits.len() / count].to_vec()).collect()
}

pub(super) fn all_bits<F: Fingerprint>() -> Vec<u8> {
    (0..F::BITS as u8).collect()
}
