//! Distinct hashes of a text.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::simhash::HashedHasher;

/// A set of hashes that grows.
pub(crate) type HashesSeen = HashSet<u64, BuildHasherDefault<HashedHasher>>;

/// A set of hashes that is made anew for each text, in the same memory.
#[derive(Default)]
pub(crate) struct Distinct {
    /// An open table of hashes. 0 is a free slot.
    table: Vec<u64>,
}

impl Distinct {
    /// Keeps the first of equal hashes, in their order.
    pub(crate) fn keep_first(&mut self, hashes: &mut Vec<u64>) {
        let slots = (hashes.len() * 3).next_power_of_two();
        self.table.clear();
        self.table.resize(slots, 0);
        let (table, mut has_zero, mut kept) = (&mut self.table[..], false, 0);
        for at in 0..hashes.len() {
            let hash = hashes[at];
            let is_first = if hash == 0 {
                !std::mem::replace(&mut has_zero, true)
            } else {
                let mut slot = (hash >> 32 ^ hash) as usize & (slots - 1);
                while table[slot] != 0 && table[slot] != hash {
                    slot = (slot + 1) & (slots - 1);
                }
                std::mem::replace(&mut table[slot], hash) == 0
            };
            hashes[kept] = hash;
            kept += usize::from(is_first);
        }
        hashes.truncate(kept);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn first_of_each(hashes in prop::collection::vec(prop_oneof![0_u64..20, any::<u64>()], 0..200)) {
            let mut expected: Vec<u64> = Vec::new();
            for &hash in &hashes {
                if !expected.contains(&hash) {
                    expected.push(hash);
                }
            }
            let mut kept = hashes;
            Distinct::default().keep_first(&mut kept);
            prop_assert_eq!(kept, expected);
        }
    }
}
