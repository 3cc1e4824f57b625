//! The check that a plan misses no neighbour.

use super::table_plan::TablePlan;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Patterns looked at before the check gives up; the plans of the catalogue take under 100,000.
const MAX_STEPS: u32 = 1_000_000;

/// Bits that belong to the same prefixes: an error in any of them has the same effect.
struct Atom {
    /// Bit `t` is set if the atom lies in the prefix of table `t`.
    tables: u64,
    /// Number of its bits.
    bits: u32,
    /// Number of errors put there.
    errors: u32,
}

/// Looks for a pattern of at most `distance` errors that puts more errors into each table's prefix than its
/// probes flip.
pub(super) fn check<F: Fingerprint>(name: &str, distance: u32, tables: &[TablePlan<F>]) -> Result<()> {
    let masks: Vec<F> = tables.iter().map(TablePlan::prefix_mask).collect();
    let mut atoms: Vec<Atom> = Vec::new();
    for bit in 0..F::BITS {
        let inside = tables_of(&masks, bit);
        match atoms.iter_mut().find(|atom| atom.tables == inside) {
            Some(atom) => atom.bits += 1,
            None => atoms.push(Atom { tables: inside, bits: 1, errors: 0 }),
        }
    }
    let needed = tables.iter().map(|table| i64::from(table.flips) + 1).collect();
    let mut search = Search { atoms, needed, steps: 0 };
    let incomplete = |reason| Error::IncompletePlan { plan: name.to_string(), distance, reason };
    match search.find(distance, 0) {
        Some(false) => Ok(()),
        None => {
            Err(incomplete(format!("gave up after {MAX_STEPS} error patterns; use fewer or simpler tables")))
        }
        Some(true) => {
            let mut left: Vec<(u64, u32)> =
                search.atoms.iter().map(|atom| (atom.tables, atom.errors)).collect();
            let mut bits = Vec::new();
            for bit in 0..F::BITS {
                let inside = tables_of(&masks, bit);
                if let Some(atom) = left.iter_mut().find(|atom| atom.0 == inside && atom.1 > 0) {
                    atom.1 -= 1;
                    bits.push(bit.to_string());
                }
            }
            Err(incomplete(format!("errors in bits {} are found by no table", bits.join(", "))))
        }
    }
}

/// The tables whose prefix has a bit: bit `t` for table `t`.
fn tables_of<F: Fingerprint>(masks: &[F], bit: u32) -> u64 {
    let inside = |mask: &F| *mask & F::bit_mask(bit) != F::ZERO;
    masks.iter().enumerate().filter(|(_, mask)| inside(mask)).fold(0, |all, (table, _)| all | 1 << table)
}

struct Search {
    atoms: Vec<Atom>,
    /// Errors that each table's prefix still needs to be out of reach of its probes; it is if none.
    needed: Vec<i64>,
    steps: u32,
}

impl Search {
    /// Whether `left` more errors, none in the atoms of `forbidden`, put all tables out of reach; `None` if
    /// that takes too long to tell. The errors stay where they are if they do.
    fn find(&mut self, left: u32, forbidden: u128) -> Option<bool> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return None;
        }
        let Some((table, &needed)) = self.needed.iter().enumerate().max_by_key(|&(_, needed)| needed) else {
            return Some(true);
        };
        if needed <= 0 {
            return Some(true);
        }
        // Errors in disjoint prefixes add up: no pattern of `left` errors can serve all of them.
        let mut together = 0;
        let mut used = 0_u128;
        for (other, &needed) in self.needed.iter().enumerate().filter(|&(_, &needed)| needed > 0) {
            let prefix = self.prefix(other);
            if prefix & used == 0 {
                used |= prefix;
                together += needed;
            }
        }
        if needed > i64::from(left) || together > i64::from(left) {
            return Some(false);
        }
        // One of the errors falls into an atom of this table's prefix: try each, and leave those that have
        // been tried to the branches that have them.
        let mut forbidden = forbidden;
        for i in 0..self.atoms.len() {
            let atom = &mut self.atoms[i];
            if atom.tables >> table & 1 == 0 || forbidden >> i & 1 == 1 || atom.errors == atom.bits {
                continue;
            }
            atom.errors += 1;
            self.add(i, -1);
            if self.find(left - 1, forbidden)? {
                return Some(true);
            }
            self.atoms[i].errors -= 1;
            self.add(i, 1);
            forbidden |= 1 << i;
        }
        Some(false)
    }

    fn add(&mut self, atom: usize, change: i64) {
        for (table, needed) in self.needed.iter_mut().enumerate() {
            if self.atoms[atom].tables >> table & 1 == 1 {
                *needed += change;
            }
        }
    }

    /// The atoms of a table's prefix.
    fn prefix(&self, table: usize) -> u128 {
        (self.atoms.iter().enumerate())
            .filter(|(_, atom)| atom.tables >> table & 1 == 1)
            .fold(0, |all, (i, _)| all | 1 << i)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::permutation::Permutation;

    /// A table whose prefix is the bits of a mask.
    fn table(mask: u64, flips: u32) -> TablePlan<u64> {
        let inside = |bit: &u8| mask & u64::bit_mask(u32::from(*bit)) != 0;
        let bits = (0..64).filter(inside).chain((0..64).filter(|bit| !inside(bit)));
        TablePlan { permutation: Permutation::new(bits).unwrap(), prefix_bits: mask.count_ones(), flips }
    }

    /// Every pattern of at most `distance` errors, over all bits one by one.
    fn plain(tables: &[TablePlan<u64>], distance: u32, bits: u32) -> bool {
        fn search(tables: &[TablePlan<u64>], errors: u64, from: u32, left: u32, bits: u32) -> bool {
            let found = tables.iter().any(|t| (errors & t.prefix_mask()).count_ones() <= t.flips);
            found
                && (left == 0
                    || (from..bits)
                        .all(|bit| search(tables, errors | u64::bit_mask(bit), bit + 1, left - 1, bits)))
        }
        search(tables, 0, 0, distance, bits)
    }

    proptest! {
        /// Prefixes within the first 10 bits, so that the plain search is short.
        #[test]
        fn equals_the_search_over_all_bits(
            prefixes in prop::collection::vec((0_u64..1024, 0_u32..3), 1..6),
            distance in 0_u32..5,
        ) {
            let tables: Vec<_> = prefixes.iter().map(|&(mask, flips)| table(mask << 54, flips)).collect();
            prop_assert_eq!(check("some", distance, &tables).is_ok(), plain(&tables, distance, 10));
        }
    }

    #[test]
    fn what_it_reports_is_found_by_no_table() {
        let tables = [table(u64::MAX << 32, 0), table(u64::MAX >> 32, 0)];
        assert!(check("halves", 1, &tables).is_ok());
        let error = check("halves", 2, &tables).unwrap_err().to_string();
        assert!(error.contains("errors in bits 0, 32 are found by no table"), "{error}");
    }
}
