//! Checks that a plan is complete: that its tables find every fingerprint within the distance of any query.

use super::table_plan::TablePlan;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// Maximum number of error patterns (sets of differing bits) that the check tries, which is the number of calls of
/// [`PatternSearch::find`]. The algorithm and this number are part of the format (`format-spec/plan.md`, "Completeness"):
/// all readers reject the same segments. The plans of the catalogue need fewer than 100,000.
const MAX_PATTERNS: u32 = 1_000_000;

/// Group of fingerprint bits that are in the prefixes of the same tables. Whether a table finds a fingerprint
/// depends on the number of differing bits in each group, but not on which bits of a group differ.
struct Atom {
    /// Bit set of the tables whose prefix contains the bits of this group: bit `t` is set for table `t`. Bit 0 is
    /// the least significant.
    tables: u64,
    /// Number of bits in this group.
    bits: u32,
    /// Number of errors (differing bits) in this group, in the pattern that the search tries at the moment.
    errors: u32,
}

/// Fails if there is a pattern of at most `distance` differing bits that no table finds. A table misses a pattern if
/// more bits of the pattern are in the table's prefix than the table's probes flip.
pub(super) fn check<F: Fingerprint>(name: &str, distance: u32, tables: &[TablePlan<F>]) -> Result<()> {
    let mut search = PatternSearch::new(tables);
    let incomplete = |reason| Error::IncompletePlan { plan: name.to_string(), distance, reason };
    match search.find(distance, 0) {
        Some(false) => Ok(()),
        None => Err(incomplete(format!(
            "gave up after {MAX_PATTERNS} error patterns; use fewer or simpler tables"
        ))),
        Some(true) => {
            let masks: Vec<F> = tables.iter().map(TablePlan::prefix_mask).collect();
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

/// Returns the bit set of the tables whose prefix contains the bit `bit`. `masks` has the mask of each table's
/// prefix.
fn tables_of<F: Fingerprint>(masks: &[F], bit: u32) -> u64 {
    let inside = |mask: &F| *mask & F::bit_mask(bit) != F::ZERO;
    masks.iter().enumerate().filter(|(_, mask)| inside(mask)).fold(0, |all, (table, _)| all | 1 << table)
}

/// Search for an error pattern (a set of differing bits) that no table finds.
struct PatternSearch {
    atoms: Vec<Atom>,
    /// For each table, how many differing bits must be added in its prefix so that its probes miss the current
    /// pattern. If the number is 0 or negative, the probes miss the pattern already.
    needed: Vec<i64>,
    /// Number of error patterns (sets of differing bits) tried so far.
    patterns: u32,
}

impl PatternSearch {
    fn new<F: Fingerprint>(tables: &[TablePlan<F>]) -> PatternSearch {
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
        PatternSearch { atoms, needed, patterns: 0 }
    }

    /// Tries to extend the current pattern of errors (differing bits) by at most `left` errors to a pattern that no
    /// table finds. If this is possible, returns `true` and adds the errors to the counts in `self.atoms`, the groups
    /// of bits. No error is added to `self.atoms[i]` if bit i of `forbidden` is set. Returns `None` if
    /// [`MAX_PATTERNS`] patterns have been tried without a result.
    fn find(&mut self, left: u32, forbidden: u128) -> Option<bool> {
        self.patterns += 1;
        if self.patterns > MAX_PATTERNS {
            return None;
        }
        // The first of the tables that need most.
        let most = self.needed.iter().enumerate().rev().max_by_key(|&(_, needed)| needed);
        let Some((table, &needed)) = most else { return Some(true) };
        if needed <= 0 {
            return Some(true);
        }
        // Disjoint prefixes need separate errors. If these are more than `left`, no pattern exists.
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
        // At least one error must be in an atom of this table's prefix. Tries each of these atoms. Later
        // branches do not use the atoms that were tried before, since the earlier branches cover them.
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

    /// Returns which groups of bits (see [`Atom`]) are in a table's prefix, as a bit set: bit i is set if
    /// `atoms[i]` is in the prefix.
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

    /// Creates a table whose prefix consists of the set bits of a mask.
    fn table(mask: u64, flips: u32) -> TablePlan<u64> {
        let inside = |bit: &u8| mask & u64::bit_mask(u32::from(*bit)) != 0;
        let bits = (0..64).filter(inside).chain((0..64).filter(|bit| !inside(bit)));
        TablePlan { permutation: Permutation::new(bits).unwrap(), prefix_bits: mask.count_ones(), flips }
    }

    /// Whether each pattern of at most `distance` differing bits among the first `bits` bits is found by some table.
    /// Tries all these patterns.
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
        /// Checks that `check`, which counts the differing bits in each group of bits, gives the same answer as a
        /// search over all patterns of differing bits. Prefixes are within the first 10 bits, so that the second
        /// search is short.
        #[test]
        fn equals_the_search_over_all_bits(
            prefixes in prop::collection::vec((0_u64..1024, 0_u32..3), 1..6),
            distance in 0_u32..5,
        ) {
            let tables: Vec<_> = prefixes.iter().map(|&(mask, flips)| table(mask << 54, flips)).collect();
            prop_assert_eq!(check("some", distance, &tables).is_ok(), plain(&tables, distance, 10));
        }
    }

    /// The plans in `format-spec/golden/plans.json` have the results and the numbers of calls that the file says.
    #[test]
    fn plans_of_the_format_have_their_results() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/format-spec/golden/plans.json");
        let plans: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let mut results = std::collections::BTreeSet::new();
        for plan in plans.as_array().unwrap() {
            let tables = plan["tables"].as_array().unwrap().iter();
            let number = |value: &serde_json::Value| value.as_u64().unwrap() as u32;
            let tables = tables.map(|table| {
                let prefix = table["prefix"].as_array().unwrap().iter().map(number);
                (prefix.collect::<Vec<_>>(), number(&table["flips"]))
            });
            let tables: Vec<_> = tables.collect();
            let (result, calls) = match plan["bits"].as_u64().unwrap() {
                64 => result_of::<u64>(&tables, number(&plan["distance"])),
                _ => result_of::<u128>(&tables, number(&plan["distance"])),
            };
            assert_eq!(
                (plan["result"].as_str(), &plan["calls"]),
                (Some(result), &calls.into()),
                "{}",
                plan["name"]
            );
            results.insert(result);
        }
        assert_eq!(results.into_iter().collect::<Vec<_>>(), ["complete", "incomplete", "rejected"]);
    }

    /// Returns the result of the check, as `plans.json` names it, and its number of calls. `tables` has the prefix and the flips
    /// of each table.
    fn result_of<F: Fingerprint>(tables: &[(Vec<u32>, u32)], distance: u32) -> (&'static str, u32) {
        let plans = tables.iter().map(|(prefix, flips)| {
            let rest = (0..F::BITS).filter(|bit| !prefix.contains(bit));
            let bits = prefix.iter().copied().chain(rest).map(|bit| bit as u8);
            let permutation = Permutation::new(bits).unwrap();
            TablePlan::<F> { permutation, prefix_bits: prefix.len() as u32, flips: *flips }
        });
        let mut search = PatternSearch::new(&plans.collect::<Vec<_>>());
        let result = match search.find(distance, 0) {
            Some(false) => "complete",
            Some(true) => "incomplete",
            None => "rejected",
        };
        (result, search.patterns)
    }

    #[test]
    fn reported_error_pattern_is_found_by_no_table() {
        let tables = [table(u64::MAX << 32, 0), table(u64::MAX >> 32, 0)];
        assert!(check("halves", 1, &tables).is_ok());
        let error = check("halves", 2, &tables).unwrap_err().to_string();
        assert!(error.contains("errors in bits 0, 32 are found by no table"), "{error}");
    }
}
