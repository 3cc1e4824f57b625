//! How similar two sets are, and how surely sketches find those that are.

use crate::sketch::POSITIONS;

/// The Jaccard similarity of two ascending sets: the share of all members that are in both; 1 for two empty sets.
///
/// ```
/// assert_eq!(simstore_text::jaccard(&[1, 2, 3], &[2, 3, 4]), 0.5);
/// ```
pub fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    jaccard_from(a, b, 0.0).unwrap_or_default()
}

/// Members after which it is looked at whether the rest can suffice.
const STEPS: usize = 32;

/// The [`jaccard`] similarity of two ascending sets, if it is at least this. Ends early if it cannot be.
///
/// ```
/// assert_eq!(simstore_text::jaccard_from(&[1, 2, 3], &[2, 3, 4], 0.5), Some(0.5));
/// assert_eq!(simstore_text::jaccard_from(&[1, 2, 3], &[2, 3, 4], 0.6), None);
/// ```
pub fn jaccard_from(a: &[u64], b: &[u64], least: f64) -> Option<f64> {
    let needed = shared_members(a.len(), b.len(), least);
    let (mut rest, mut others, mut both) = (a, b, 0);
    while !rest.is_empty() && !others.is_empty() {
        let (mut i, mut j) = (0, 0);
        for _ in 0..STEPS {
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
    (similarity >= least).then_some(similarity)
}

/// The least number of members that sets of so many share, if they have this similarity t: t (a + b) / (1 + t), rounded up.
pub fn shared_members(a: usize, b: usize, least: f64) -> usize {
    // A rounding error must not make it one too many.
    (least * (a + b) as f64 / (1.0 + least) - 1e-6).ceil().max(0.0) as usize
}

/// The probability that one bit of a sketch differs for two sets of a Jaccard similarity: see [`sketch`](fn@crate::sketch).
pub(crate) fn differs(similarity: f64) -> f64 {
    (1.0 - similarity) / 2.0
}

/// The probability that of `bits` bits, of which each differs with probability `p`, at most `distance` differ.
fn at_most(bits: u32, p: f64, distance: u32) -> f64 {
    if distance >= bits { 1.0 } else { at_most_each(bits, p).nth(distance as usize).unwrap_or(1.0) }
}

/// The same for each distance from 0 to less than `bits`.
pub(crate) fn at_most_each(bits: u32, p: f64) -> impl Iterator<Item = f64> {
    // By logarithms: (1 - p)^bits may be too small for a number.
    let mut term = f64::from(bits) * (1.0 - p).ln();
    let mut sum = 0.0;
    (0..bits).map(move |i| {
        if p <= 0.0 {
            return 1.0;
        }
        sum += term.exp();
        term += (f64::from(bits - i) / f64::from(i + 1)).ln() + p.ln() - (1.0 - p).ln();
        f64::min(sum, 1.0)
    })
}

/// How sets are found by their [sketches](fn@crate::sketch): two are looked at if one of the first `joined` sketches differs in at
/// most `distance` bits, and all sketches together in at most `total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchSearch {
    /// How many sketches are joined.
    pub joined: usize,
    /// In bits of 64.
    pub distance: u32,
    /// In bits of all sketches, which are 512.
    pub total: u32,
}

impl SketchSearch {
    /// A search by so many sketches that finds sets of this similarity, or a greater one, with probability `recall` or more.
    /// The distance is the least that does; the total costs a tenth of the pairs that may be missed. `None` if no distance up to
    /// `most` bits does.
    pub fn new(similarity: f64, recall: f64, joined: usize, most: u32) -> Option<SketchSearch> {
        let p = differs(similarity);
        let total = at_most_each(POSITIONS as u32, p)
            .zip(0..)
            .find(|&(found, _)| 1.0 - found <= (1.0 - recall) / 10.0);
        let total = total.map_or(POSITIONS as u32, |(_, total)| total);
        let too_far = 1.0 - at_most(POSITIONS as u32, p, total);
        let mut found = at_most_each(u64::BITS, p).chain([1.0]).zip(0..=most.min(u64::BITS));
        let (_, distance) = found.find(|&(found, _)| recall_of(found, joined, too_far) >= recall)?;
        Some(SketchSearch { joined, distance, total })
    }

    /// The probability that two sets of a Jaccard similarity are looked at: 1 - (1 - P(Bin(64, p) <= distance))^joined, where
    /// p is the probability that a bit differs; less the probability that the total is too large. It holds for sets of any sizes.
    ///
    /// ```
    /// use simstore_text::SketchSearch;
    ///
    /// let search = SketchSearch { joined: 4, distance: 6, total: 69 };
    /// assert!((0.95..0.96).contains(&search.recall(0.8)));
    /// assert!(search.recall(0.9) > 0.9999 && search.recall(0.5) < 0.01);
    /// ```
    pub fn recall(&self, similarity: f64) -> f64 {
        let p = differs(similarity);
        let too_far = 1.0 - at_most(POSITIONS as u32, p, self.total);
        recall_of(at_most(u64::BITS, p, self.distance), self.joined, too_far)
    }
}

/// The probability that one of the joined sketches is within the distance, each with probability `found`, and all are not too far.
fn recall_of(found: f64, joined: usize, too_far: f64) -> f64 {
    let missed = (1.0 - found).powi(joined as i32);
    (1.0 - missed - too_far).max(0.0)
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
            for least in [f64::MIN_POSITIVE, 0.3, expected, 0.5, 0.8, 1.0] {
                prop_assert_eq!(jaccard_from(&a, &b, least), (expected >= least).then_some(expected));
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
            for least in [0.5, 0.7, similarity.max(0.1), 0.8, 0.9] {
                prop_assert_eq!(jaccard_from(&a, &b, least), (similarity >= least).then_some(similarity));
            }
        }
    }

    #[test]
    fn the_search_is_the_first_that_finds_enough() {
        for similarity in [0.3, 0.46, 0.5, 0.8, 0.95, 1.0] {
            for (recall, joined) in [(0.95, 8), (0.5, 1), (0.999, 4)] {
                let bits = POSITIONS as u32;
                let p = differs(similarity);
                let total = (0..bits).find(|&total| 1.0 - at_most(bits, p, total) <= (1.0 - recall) / 10.0);
                let search = |distance| SketchSearch { joined, distance, total: total.unwrap_or(bits) };
                for most in [0, 16, 64, 100] {
                    let plain =
                        (0..=most.min(64)).map(search).find(|search| search.recall(similarity) >= recall);
                    assert_eq!(SketchSearch::new(similarity, recall, joined, most), plain);
                }
            }
        }
    }

    #[test]
    fn figures_of_the_binomial() {
        assert!((at_most(64, 0.5, 31) + at_most(64, 0.5, 32) - 1.0).abs() < 1e-9);
        assert!((at_most(2, 0.25, 0) - 0.5625).abs() < 1e-12);
        assert_eq!(at_most(1024, 0.0, 0), 1.0);
        assert!((at_most(1024, 0.5, 512) - 0.5).abs() < 0.02);
    }

    #[test]
    fn the_searches_of_the_design() {
        for (similarity, joined, distance) in
            [(0.7, 4, 10), (0.7, 8, 8), (0.8, 4, 6), (0.8, 8, 5), (0.9, 4, 3), (0.9, 8, 2)]
        {
            let search = SketchSearch::new(similarity, 0.95, joined, 16).unwrap();
            assert_eq!(search.distance, distance, "{similarity} {joined}");
        }
        let search = SketchSearch { joined: 4, distance: 0, total: 0 };
        assert_eq!((search.recall(1.0), search.recall(-1.0)), (1.0, 0.0));
    }

    #[test]
    fn a_search_is_the_least_that_finds_enough() {
        for similarity in [0.3, 0.5, 0.7, 0.8, 0.95, 1.0] {
            for joined in [1, 3, 8] {
                let search = SketchSearch::new(similarity, 0.95, joined, 64).unwrap();
                assert!(search.recall(similarity) >= 0.95 && search.recall(similarity * 1.01) >= 0.95);
                if search.distance > 0 {
                    let less = SketchSearch { distance: search.distance - 1, ..search };
                    assert!(less.recall(similarity) < 0.95);
                }
            }
        }
        assert_eq!(SketchSearch::new(0.3, 0.95, 1, 16), None);
    }

    /// Sets of any sizes with a known share in common are found as often as is promised.
    #[test]
    fn recall_is_what_is_promised() {
        for (a, b, both) in [(5_u32, 5, 4), (9, 9, 8), (30, 30, 27), (100, 90, 85), (1000, 1000, 824)] {
            let similarity = f64::from(both) / f64::from(a + b - both);
            let search = SketchSearch::new(similarity, 0.95, 4, 20).unwrap();
            let (mut found, trials, mut state) = (0, 2000, 7_u64);
            for _ in 0..trials {
                let mut draw = || {
                    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    xxhash_rust::xxh3::xxh3_64(&state.to_le_bytes())
                };
                let common: Vec<u64> = (0..both).map(|_| draw()).collect();
                let [x, y] = [a, b].map(|size| {
                    let mut set = common.clone();
                    set.extend((both..size).map(|_| draw()));
                    crate::sketch(&set)
                });
                let distances: Vec<u32> = x.iter().zip(y).map(|(x, y)| (x ^ y).count_ones()).collect();
                let is_near = distances[..search.joined].iter().any(|&distance| distance <= search.distance);
                found += u32::from(is_near && distances.iter().sum::<u32>() <= search.total);
            }
            let (recall, promised) = (f64::from(found) / f64::from(trials), search.recall(similarity));
            let deviation = (promised * (1.0 - promised) / f64::from(trials)).sqrt();
            assert!(recall > promised - 4.0 * deviation, "{a} {b} {both}: {recall} of {promised}");
        }
    }
}
