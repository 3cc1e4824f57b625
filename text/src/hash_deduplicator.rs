//! Removal of repeated hashes from a list.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use crate::simhash::PrehashedHasher;

/// A set of 64-bit hashes. Its hasher only multiplies these hashes by a constant, instead of hashing them again.
pub(crate) type PrehashedSet = HashSet<u64, BuildHasherDefault<PrehashedHasher>>;

/// Removes repeated hashes from lists. The memory of its hash table is reused for the next list.
#[derive(Default)]
pub(crate) struct HashDeduplicator {
    /// The distinct non-zero hashes of the current list, in a hash table with open addressing. 0 marks a free slot.
    table: Vec<u64>,
}

impl HashDeduplicator {
    /// Keeps the first occurrence of each hash, and removes the others. The order of the remaining hashes is kept.
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
            HashDeduplicator::default().keep_first(&mut kept);
            prop_assert_eq!(kept, expected);
        }
    }
}
