//! Jaccard similarity of two sets.

/// Returns the Jaccard similarity of two sets: the size of their intersection divided by the size of their union. Both slices are
/// ascending, without repeats. Two empty sets have similarity 1.
///
/// ```
/// assert_eq!(simstore_text::jaccard(&[1, 2, 3], &[2, 3, 4]), 0.5);
/// ```
pub fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    jaccard_at_least(a, b, 0.0).unwrap_or_default()
}

/// Number of merge steps between two checks of [`jaccard_at_least`] whether the sets can still reach the minimum similarity.
const MERGE_STEPS: usize = 32;

/// Returns the [`jaccard`](fn@crate::jaccard) similarity of two sets if it is at least `min_similarity`, otherwise `None`. Both
/// slices are ascending, without repeats. The comparison stops as soon as the similarity cannot reach `min_similarity`.
///
/// ```
/// assert_eq!(simstore_text::jaccard_at_least(&[1, 2, 3], &[2, 3, 4], 0.5), Some(0.5));
/// assert_eq!(simstore_text::jaccard_at_least(&[1, 2, 3], &[2, 3, 4], 0.6), None);
/// ```
pub fn jaccard_at_least(a: &[u64], b: &[u64], min_similarity: f64) -> Option<f64> {
    let needed = min_shared_members(a.len(), b.len(), min_similarity);
    let (mut rest, mut others, mut both) = (a, b, 0);
    while !rest.is_empty() && !others.is_empty() {
        let (mut i, mut j) = (0, 0);
        for _ in 0..MERGE_STEPS {
            let (Some(x), Some(y)) = (rest.get(i), others.get(j)) else { break };
            both += usize::from(x == y);
            i += usize::from(x <= y);
            j += usize::from(y <= x);
        }
        (rest, others) = (&rest[i..], &others[j..]);
        if both + rest.len().min(others.len()) < needed {
            return None;
        }
    }
    let all = a.len() + b.len() - both;
    let similarity = if all == 0 { 1.0 } else { both as f64 / all as f64 };
    (similarity >= min_similarity).then_some(similarity)
}

/// Returns how many common members two sets of `a` and `b` members must have for a Jaccard similarity of `min_similarity`. With t
/// for `min_similarity`, this is t (a + b) / (1 + t), rounded up.
pub fn min_shared_members(a: usize, b: usize, min_similarity: f64) -> usize {
    // A rounding error must not increase the number by one.
    (min_similarity * (a + b) as f64 / (1.0 + min_similarity) - 1e-6).ceil().max(0.0) as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn jaccard_is_that_of_sets(a in prop::collection::btree_set(0_u64..30, 0..20), b in prop::collection::btree_set(0_u64..30, 0..20)) {
            let (both, all) = (a.intersection(&b).count(), a.union(&b).count());
            let expected = if all == 0 { 1.0 } else { both as f64 / all as f64 };
            let (a, b): (Vec<u64>, Vec<u64>) = (a.into_iter().collect(), b.into_iter().collect());
            prop_assert_eq!(jaccard(&a, &b), expected);
            for min_similarity in [f64::MIN_POSITIVE, 0.3, expected, 0.5, 0.8, 1.0] {
                prop_assert_eq!(jaccard_at_least(&a, &b, min_similarity), (expected >= min_similarity).then_some(expected));
            }
        }

        #[test]
        fn long_sets_are_compared_to_their_end_where_needed(
            a in prop::collection::btree_set(0_u64..900, 0..800), gone in prop::collection::btree_set(0_u64..900, 0..300),
        ) {
            let b: std::collections::BTreeSet<u64> = a.symmetric_difference(&gone).copied().collect();
            let (both, all) = (a.intersection(&b).count(), a.union(&b).count());
            let similarity = if all == 0 { 1.0 } else { both as f64 / all as f64 };
            let (a, b): (Vec<u64>, Vec<u64>) = (a.into_iter().collect(), b.into_iter().collect());
            prop_assert_eq!(jaccard(&a, &b), similarity);
            for min_similarity in [0.5, 0.7, similarity.max(0.1), 0.8, 0.9] {
                prop_assert_eq!(jaccard_at_least(&a, &b, min_similarity), (similarity >= min_similarity).then_some(similarity));
            }
        }
    }
}
