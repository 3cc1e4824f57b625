//! Linear scan, with the processor's instructions for counting bits if available.
//!
//! The only `unsafe` is the call of a function compiled for processor features that were just detected.

/// Number of fingerprints in a chunk. Most chunks have no match, so the scan first computes only the smallest distance of
/// the chunk's fingerprints to the query. It looks for matches only if this distance is small enough.
const CHUNK_LEN: usize = 512;

/// Appends the positions of the fingerprints within `distance` bits of the query.
pub(crate) fn find_near(fingerprints: &[u64], query: u64, distance: u32, positions: &mut Vec<usize>) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
            #[expect(unsafe_code, reason = "a function for a feature that was found at run time")]
            // SAFETY: the processor has both features.
            return unsafe { find_near_avx512(fingerprints, query, distance, positions) };
        }
        if is_x86_feature_detected!("popcnt") {
            #[expect(unsafe_code, reason = "a function for a feature that was found at run time")]
            // SAFETY: the processor has the feature.
            return unsafe { find_near_popcnt(fingerprints, query, distance, positions) };
        }
    }
    find_near_portable(fingerprints, query, distance, positions);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn find_near_avx512(fingerprints: &[u64], query: u64, distance: u32, positions: &mut Vec<usize>) {
    find_near_portable(fingerprints, query, distance, positions);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn find_near_popcnt(fingerprints: &[u64], query: u64, distance: u32, positions: &mut Vec<usize>) {
    find_near_portable(fingerprints, query, distance, positions);
}

/// Portable version of [`find_near`]. The functions that are compiled for special processor features inline it, so its code
/// uses these features too.
#[inline(always)]
fn find_near_portable(fingerprints: &[u64], query: u64, distance: u32, positions: &mut Vec<usize>) {
    let distance = u64::from(distance);
    for (chunk, start) in fingerprints.chunks(CHUNK_LEN).zip((0..).step_by(CHUNK_LEN)) {
        // The loop has no branch, so the compiler vectorises it.
        let least = chunk.iter().fold(u64::MAX, |least, x| least.min(u64::from((x ^ query).count_ones())));
        if least <= distance {
            let hits =
                chunk.iter().enumerate().filter(|(_, x)| u64::from((*x ^ query).count_ones()) <= distance);
            positions.extend(hits.map(|(i, _)| start + i));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::random;

    #[test]
    fn all_versions_find_the_same() {
        let mut state = 7;
        let mut fingerprints: Vec<u64> = (0..5 * CHUNK_LEN as u64 / 2).map(|_| random(&mut state)).collect();
        let query = random(&mut state);
        for (i, place) in [0, 1, CHUNK_LEN - 1, CHUNK_LEN, 2 * CHUNK_LEN + 17, fingerprints.len() - 1]
            .into_iter()
            .enumerate()
        {
            fingerprints[place] = query ^ ((1 << i) - 1);
        }
        let (mut fast, mut plain) = (Vec::new(), Vec::new());
        find_near(&fingerprints, query, 3, &mut fast);
        find_near_portable(&fingerprints, query, 3, &mut plain);
        assert_eq!(fast, [0, 1, CHUNK_LEN - 1, CHUNK_LEN]);
        assert_eq!(fast, plain);
    }
}
