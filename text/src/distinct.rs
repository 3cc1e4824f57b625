//! Different hashes of a text.

/// Keeps the first of equal hashes, in their order.
pub(crate) fn keep_first(hashes: &mut Vec<u64>) {
    let slots = (hashes.len() * 2).next_power_of_two();
    // 0 is an empty slot, so that hash is looked after by itself.
    let (mut table, mut has_zero) = (vec![0; slots], false);
    hashes.retain(|&hash| {
        if hash == 0 {
            return !std::mem::replace(&mut has_zero, true);
        }
        let mut slot = (hash >> 32 ^ hash) as usize & (slots - 1);
        while table[slot] != 0 {
            if table[slot] == hash {
                return false;
            }
            slot = (slot + 1) & (slots - 1);
        }
        table[slot] = hash;
        true
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_first_of_each(hashes in prop::collection::vec(prop_oneof![0_u64..20, any::<u64>()], 0..200)) {
            let mut expected: Vec<u64> = Vec::new();
            for &hash in &hashes {
                if !expected.contains(&hash) {
                    expected.push(hash);
                }
            }
            let mut kept = hashes;
            keep_first(&mut kept);
            prop_assert_eq!(kept, expected);
        }
    }
}
