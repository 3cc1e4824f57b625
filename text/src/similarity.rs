//! How similar two sets are, and how surely sketches find those that are.

use std::f64::consts::PI;

/// The Jaccard similarity of two ascending sets: the share of all members that are in both; 1 for two empty sets.
///
/// ```
/// assert_eq!(simstore_text::jaccard(&[1, 2, 3], &[2, 3, 4]), 0.5);
/// ```
pub fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    let all = a.len() + b.len() - both;
    if all == 0 { 1.0 } else { both as f64 / all as f64 }
}

/// The probability that one bit of a sketch differs for two sets of a Jaccard similarity, at most.
///
/// Sets of a and b members of which i are in both have the cosine i / sqrt(a b), which is least for a = b: then it is c =
/// 2 J / (1 + J). A bit differs with probability acos(c) / pi (M. Charikar, "Similarity estimation techniques from rounding
/// algorithms", STOC 2002).
fn differs(similarity: f64) -> f64 {
    let cosine = 2.0 * similarity / (1.0 + similarity);
    cosine.clamp(-1.0, 1.0).acos() / PI
}

/// The probability that of `bits` bits, of which each differs with probability `p`, at most `distance` differ.
fn at_most(bits: u32, p: f64, distance: u32) -> f64 {
    if distance >= bits { 1.0 } else { at_most_each(bits, p).nth(distance as usize).unwrap_or(1.0) }
}

/// The same for each distance from 0 to less than `bits`.
fn at_most_each(bits: u32, p: f64) -> impl Iterator<Item = f64> {
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

/// How sets are found by their sketches: two are looked at if one of the first `joined` sketches differs in at most
/// `distance` bits, and all sketches together in at most `total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SketchSearch {
    /// Number of sketches of a set.
    pub sketches: usize,
    /// How many of them are joined.
    pub joined: usize,
    /// In bits of 64.
    pub distance: u32,
    /// In bits of all sketches.
    pub total: u32,
}

impl SketchSearch {
    /// A search by so many sketches that finds sets of this similarity, or a greater one, with probability `recall` or more.
    /// The distance is the least that does; the total costs a tenth of what may be missed. `None` if no distance up to
    /// `most` bits does.
    pub fn new(
        similarity: f64,
        recall: f64,
        sketches: usize,
        joined: usize,
        most: u32,
    ) -> Option<SketchSearch> {
        let p = differs(similarity);
        let bits = u64::BITS * sketches as u32;
        let total = at_most_each(bits, p).zip(0..).find(|&(found, _)| 1.0 - found <= (1.0 - recall) / 10.0);
        let total = total.map_or(bits, |(_, total)| total);
        let too_far = 1.0 - at_most(bits, p, total);
        let mut found = at_most_each(u64::BITS, p).chain([1.0]).zip(0..=most.min(u64::BITS));
        let (_, distance) = found.find(|&(found, _)| recall_of(found, joined, too_far) >= recall)?;
        Some(SketchSearch { sketches, joined, distance, total })
    }

    /// The probability that two sets of a Jaccard similarity are looked at: 1 - (1 - P(Bin(64, p) <= distance))^joined, where
    /// p is the probability that a bit differs; less the probability that the total is too large.
    ///
    /// It holds for sets of some 30 members and more, whose counts are about normally distributed.
    ///
    /// ```
    /// use simstore_text::SketchSearch;
    ///
    /// let search = SketchSearch { sketches: 4, joined: 4, distance: 10, total: 64 };
    /// assert!((0.97..0.99).contains(&search.recall(0.8)));
    /// assert!(search.recall(0.9) > 0.9999 && search.recall(0.5) < 0.1);
    /// ```
    pub fn recall(&self, similarity: f64) -> f64 {
        let p = differs(similarity);
        let too_far = 1.0 - at_most(u64::BITS * self.sketches as u32, p, self.total);
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
        }
    }

    #[test]
    fn the_search_is_the_first_that_finds_enough() {
        for similarity in [0.3, 0.46, 0.5, 0.8, 0.95, 1.0] {
            for (recall, sketches, joined) in [(0.95, 8, 8), (0.5, 8, 1), (0.999, 16, 4)] {
                let bits = 64 * sketches as u32;
                let p = differs(similarity);
                let total = (0..bits).find(|&total| 1.0 - at_most(bits, p, total) <= (1.0 - recall) / 10.0);
                let search =
                    |distance| SketchSearch { sketches, joined, distance, total: total.unwrap_or(bits) };
                for most in [0, 16, 64, 100] {
                    let plain =
                        (0..=most.min(64)).map(search).find(|search| search.recall(similarity) >= recall);
                    assert_eq!(SketchSearch::new(similarity, recall, sketches, joined, most), plain);
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
    fn recall_of_the_design() {
        for (sketches, distance, expected) in [(1, 16, 0.987), (2, 12, 0.973), (4, 10, 0.980), (8, 8, 0.969)]
        {
            let total = u64::BITS * sketches as u32;
            let recall = SketchSearch { sketches, joined: sketches, distance, total }.recall(0.8);
            assert!((recall - expected).abs() < 0.002, "{sketches} {distance}: {recall}");
        }
        let search = SketchSearch { sketches: 4, joined: 4, distance: 0, total: 0 };
        assert_eq!((search.recall(1.0), search.recall(0.0)), (1.0, 0.0));
    }

    #[test]
    fn a_search_is_the_least_that_finds_enough() {
        for similarity in [0.3, 0.5, 0.7, 0.8, 0.95, 1.0] {
            for joined in [1, 4, 8] {
                let search = SketchSearch::new(similarity, 0.95, 8, joined, 64).unwrap();
                assert!(search.recall(similarity) >= 0.95 && search.recall(similarity * 1.01) >= 0.95);
                if search.distance > 0 {
                    let less = SketchSearch { distance: search.distance - 1, ..search };
                    assert!(less.recall(similarity) < 0.95);
                }
            }
        }
        assert_eq!(SketchSearch::new(0.5, 0.95, 8, 1, 16), None);
    }

    /// Sets of equal size with a known share in common are found as often as is promised.
    #[test]
    fn recall_is_what_is_promised() {
        for (members, similarity) in [(30, 0.8), (100, 0.8), (1000, 0.7)] {
            let search = SketchSearch::new(similarity, 0.95, 8, 4, 20).unwrap();
            // |A and B| = 2 J / (1 + J) |A|
            let both = (2.0 * similarity / (1.0 + similarity) * f64::from(members)).round() as u32;
            let real = f64::from(both) / f64::from(2 * members - both);
            let (mut found, trials, mut state) = (0, 2000, 7_u64);
            for _ in 0..trials {
                let mut draw = || {
                    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    xxhash_rust::xxh3::xxh3_64(&state.to_le_bytes())
                };
                let common: Vec<u64> = (0..both).map(|_| draw()).collect();
                let [a, b] = [0, 1].map(|_| {
                    let mut set = common.clone();
                    set.extend((both..members).map(|_| draw()));
                    let mut sketches = [0; 8];
                    crate::sketch(&set, &mut sketches);
                    sketches
                });
                let distances: Vec<u32> = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).collect();
                let is_near = distances[..search.joined].iter().any(|&distance| distance <= search.distance);
                found += u32::from(is_near && distances.iter().sum::<u32>() <= search.total);
            }
            let (recall, promised) = (f64::from(found) / f64::from(trials), search.recall(real));
            let deviation = (promised * (1.0 - promised) / f64::from(trials)).sqrt();
            assert!(recall > promised - 4.0 * deviation, "{members} {similarity}: {recall} of {promised}");
        }
    }
}
