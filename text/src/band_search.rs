//! Search for similar sets by the bands of their signatures (locality-sensitive hashing), and the recall of such a search.

use crate::minhash::SIGNATURE_BITS;

/// Returns the probability that a given bit differs between the signatures of two sets with this Jaccard similarity: see
/// [`minhash`](fn@crate::minhash).
pub(crate) fn bit_difference_probability(similarity: f64) -> f64 {
    (1.0 - similarity) / 2.0
}

/// Returns P(X <= `distance`), where X has the binomial distribution of `bits` trials with success probability `p`.
fn binomial_cdf(bits: u32, p: f64, distance: u32) -> f64 {
    if distance >= bits { 1.0 } else { binomial_cdfs(bits, p).nth(distance as usize).unwrap_or(1.0) }
}

/// Returns the values of [`binomial_cdf`] for the distances 0 to `bits` - 1.
pub(crate) fn binomial_cdfs(bits: u32, p: f64) -> impl Iterator<Item = f64> {
    // Terms are computed as logarithms, because (1 - p)^bits may underflow.
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

/// Parameters of a search for similar sets by the bands of their [signatures](crate::Signature). A band is one 64-bit word of
/// a signature. Two sets become a candidate pair if both conditions hold:
/// - at least one of the first `bands` bands differs in at most `band_distance` bits;
/// - the whole signatures differ in at most `signature_distance` bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BandSearch {
    /// Number of bands that are searched, from 1 to 8.
    pub bands: usize,
    /// Maximum number of differing bits in a band of 64 bits. A candidate pair has at least one searched band within this distance.
    pub band_distance: u32,
    /// Maximum number of differing bits, out of 512, in the whole signature.
    pub signature_distance: u32,
}

impl BandSearch {
    /// Returns the search by `bands` bands that finds a pair of sets with a Jaccard similarity of `similarity` or more with a
    /// probability of `recall` or more.
    ///
    /// The returned `signature_distance` is exceeded by the signatures of such a pair with a probability of at most
    /// (1 - `recall`) / 10. The returned `band_distance` is the smallest with which the search reaches the recall. Returns `None`
    /// if no band distance up to `max_distance` bits reaches it.
    pub fn new(similarity: f64, recall: f64, bands: usize, max_distance: u32) -> Option<BandSearch> {
        let p = bit_difference_probability(similarity);
        let signature_distance = binomial_cdfs(SIGNATURE_BITS as u32, p)
            .zip(0..)
            .find(|&(found, _)| 1.0 - found <= (1.0 - recall) / 10.0);
        let signature_distance =
            signature_distance.map_or(SIGNATURE_BITS as u32, |(_, signature_distance)| signature_distance);
        let too_far = 1.0 - binomial_cdf(SIGNATURE_BITS as u32, p, signature_distance);
        let mut found = binomial_cdfs(u64::BITS, p).chain([1.0]).zip(0..=max_distance.min(u64::BITS));
        let (_, band_distance) = found.find(|&(found, _)| min_recall(found, bands, too_far) >= recall)?;
        Some(BandSearch { bands, band_distance, signature_distance })
    }

    /// Returns a lower bound of the probability that two sets of this Jaccard similarity become a candidate pair. The bound is
    /// 1 - (1 - P(Bin(64, p) <= `band_distance`))^`bands` - P(Bin(512, p) > `signature_distance`), where p is the probability
    /// that a bit differs. It holds for sets of any sizes.
    ///
    /// ```
    /// use simstore_text::BandSearch;
    ///
    /// let search = BandSearch { bands: 4, band_distance: 6, signature_distance: 69 };
    /// assert!((0.95..0.96).contains(&search.recall(0.8)));
    /// assert!(search.recall(0.9) > 0.9999 && search.recall(0.5) < 0.01);
    /// ```
    pub fn recall(&self, similarity: f64) -> f64 {
        let p = bit_difference_probability(similarity);
        let too_far = 1.0 - binomial_cdf(SIGNATURE_BITS as u32, p, self.signature_distance);
        min_recall(binomial_cdf(u64::BITS, p, self.band_distance), self.bands, too_far)
    }
}

/// Returns a lower bound of the probability that two sets become a candidate pair. `band_match` is the probability that a single
/// band of the two signatures differs in at most the band distance. `too_far` is the probability that the whole signatures differ
/// in more than the signature distance.
fn min_recall(band_match: f64, bands: usize, too_far: f64) -> f64 {
    let missed = (1.0 - band_match).powi(bands as i32);
    (1.0 - missed - too_far).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_is_the_first_that_finds_enough() {
        for similarity in [0.3, 0.46, 0.5, 0.8, 0.95, 1.0] {
            for (recall, bands) in [(0.95, 8), (0.5, 1), (0.999, 4)] {
                let bits = SIGNATURE_BITS as u32;
                let p = bit_difference_probability(similarity);
                let signature_distance = (0..bits).find(|&signature_distance| {
                    1.0 - binomial_cdf(bits, p, signature_distance) <= (1.0 - recall) / 10.0
                });
                let search = |distance| BandSearch {
                    bands,
                    band_distance: distance,
                    signature_distance: signature_distance.unwrap_or(bits),
                };
                for max_distance in [0, 16, 64, 100] {
                    let plain = (0..=max_distance.min(64))
                        .map(search)
                        .find(|search| search.recall(similarity) >= recall);
                    assert_eq!(BandSearch::new(similarity, recall, bands, max_distance), plain);
                }
            }
        }
    }

    #[test]
    fn figures_of_the_binomial() {
        assert!((binomial_cdf(64, 0.5, 31) + binomial_cdf(64, 0.5, 32) - 1.0).abs() < 1e-9);
        assert!((binomial_cdf(2, 0.25, 0) - 0.5625).abs() < 1e-12);
        assert_eq!(binomial_cdf(1024, 0.0, 0), 1.0);
        assert!((binomial_cdf(1024, 0.5, 512) - 0.5).abs() < 0.02);
    }

    #[test]
    fn the_searches_of_the_design() {
        for (similarity, bands, distance) in
            [(0.7, 4, 10), (0.7, 8, 8), (0.8, 4, 6), (0.8, 8, 5), (0.9, 4, 3), (0.9, 8, 2)]
        {
            let search = BandSearch::new(similarity, 0.95, bands, 16).unwrap();
            assert_eq!(search.band_distance, distance, "{similarity} {bands}");
        }
        let search = BandSearch { bands: 4, band_distance: 0, signature_distance: 0 };
        assert_eq!((search.recall(1.0), search.recall(-1.0)), (1.0, 0.0));
    }

    #[test]
    fn a_search_is_the_least_that_finds_enough() {
        for similarity in [0.3, 0.5, 0.7, 0.8, 0.95, 1.0] {
            for bands in [1, 3, 8] {
                let search = BandSearch::new(similarity, 0.95, bands, 64).unwrap();
                assert!(search.recall(similarity) >= 0.95 && search.recall(similarity * 1.01) >= 0.95);
                if search.band_distance > 0 {
                    let less = BandSearch { band_distance: search.band_distance - 1, ..search };
                    assert!(less.recall(similarity) < 0.95);
                }
            }
        }
        assert_eq!(BandSearch::new(0.3, 0.95, 1, 16), None);
    }

    /// Pairs of sets with a known similarity are found at least as often as the computed recall promises.
    #[test]
    fn recall_is_as_promised() {
        for (a, b, both) in [(5_u32, 5, 4), (9, 9, 8), (30, 30, 27), (100, 90, 85), (1000, 1000, 824)] {
            let similarity = f64::from(both) / f64::from(a + b - both);
            let search = BandSearch::new(similarity, 0.95, 4, 20).unwrap();
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
                    crate::minhash(&set)
                });
                let distances: Vec<u32> = x.iter().zip(y).map(|(x, y)| (x ^ y).count_ones()).collect();
                let is_near =
                    distances[..search.bands].iter().any(|&distance| distance <= search.band_distance);
                found += u32::from(is_near && distances.iter().sum::<u32>() <= search.signature_distance);
            }
            let (recall, promised) = (f64::from(found) / f64::from(trials), search.recall(similarity));
            let deviation = (promised * (1.0 - promised) / f64::from(trials)).sqrt();
            assert!(recall > promised - 4.0 * deviation, "{a} {b} {both}: {recall} of {promised}");
        }
    }
}
