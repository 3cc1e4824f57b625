//! The search by similarity in pieces, for those who spread it over machines.

use rayon::prelude::*;
use simstore::{Error, Result};
use simstore_text::{Profile, SketchSearch, Sketcher, jaccard};

use super::candidates::{are_brought_together, may_be_similar};
use super::choice::{self, SKETCHES, SMALL};
use super::small::{self, Rarity};

/// The pieces that [`find`](super::super::find) makes its search by similarity of: whoever puts them together on several machines
/// finds the same pairs.
///
/// 1. A [`sketcher`](SimilarSearch::sketcher) makes sketches of each text. Texts of one [digest](simstore_text::Sketched::digest)
///    have the same set of features, and are one from here on.
/// 2. By the number of different sets, [`choose`](SimilarSearch::choose) says which of their sketches are joined, each by itself,
///    and within which distance. Sets that are [small](SimilarSearch::is_small) take no part.
/// 3. A pair of sets that the join of a sketch has brought together is a [candidate](SimilarSearch::is_candidate) once.
/// 4. Of sets of up to [`largest_few`](SimilarSearch::largest_few) features, those that share one of their
///    [rarest](SimilarSearch::rarest) features come together, and [`pair_small`](SimilarSearch::pair_small) finds the pairs of
///    which one is small.
/// 5. Two sets are similar if they have a [`similarity`](SimilarSearch::similarity).
///
/// ```
/// use simstore_corpus::dedup::SimilarSearch;
/// use simstore_text::Profile;
///
/// let search = SimilarSearch::new(0.8)?;
/// let sketcher = search.sketcher(Profile::shingles());
/// assert_eq!((sketcher.sketches(), sketcher.few()), (8, 40));
/// let joined = search.choose(0.95, 1_000_000)?;
/// assert_eq!((joined.joined, joined.distance), (8, 8));
/// assert_eq!(search.similarity(&[1, 2, 3, 4], &[1, 2, 3, 4, 5]), Some(0.8));
/// assert_eq!(search.similarity(&[1, 2, 3], &[2, 3, 4]), None);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarSearch {
    least: f64,
}

impl SimilarSearch {
    /// For sets of this similarity, or a greater one.
    ///
    /// # Errors
    /// [`Error::BadArgument`] unless that is a number above 0, up to 1.
    pub fn new(similar: f64) -> Result<Self> {
        if similar > 0.0 && similar <= 1.0 {
            return Ok(SimilarSearch { least: similar });
        }
        Err(Error::BadArgument("option `similar`: expected a number above 0, up to 1".to_owned()))
    }

    /// Makes the sketches of texts by the features of a profile, and keeps the features of sets that may be similar to small ones.
    pub fn sketcher(&self, profile: Profile) -> Sketcher {
        Sketcher::new(profile, SKETCHES, self.largest_few())
    }

    /// Which sketches are joined, so that sets of just this similarity are found with a probability of `recall` or more: of so many
    /// different sets, for the least work.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if no distance of sketches finds so many, or `recall` is no number between 0 and 1.
    pub fn choose(&self, recall: f64, distinct: usize) -> Result<SketchSearch> {
        if !(recall > 0.0 && recall < 1.0) {
            return Err(Error::BadArgument("option `recall`: expected a number between 0 and 1".to_owned()));
        }
        Ok(choice::choose(self.least, recall, distinct)?.search)
    }

    /// Whether a set of so many features is joined by its features instead of its sketches, which are unreliable.
    pub fn is_small(features: u32) -> bool {
        features < SMALL
    }

    /// The most features of a set that is similar to one that is small.
    pub fn largest_few(&self) -> u32 {
        small::largest(self.least)
    }

    /// Whether two sets are to be compared, each with its sketches and its number of features, that the join of a sketch has brought
    /// together: that of no earlier one has.
    pub fn is_candidate(
        &self,
        search: &SketchSearch,
        sketch: usize,
        (x, a): (&[u64], u32),
        (y, b): (&[u64], u32),
    ) -> bool {
        are_brought_together(search, x, y, sketch) && may_be_similar(a, b, self.least)
    }

    /// The features of a small set, or of one that may be similar to such, by which it is found: a similar set has one of them among
    /// its own. What comes once is left out.
    pub fn rarest(&self, rarity: &Rarity, members: &[u64]) -> impl Iterator<Item = u64> + use<> {
        rarity.rarest(members, self.least)
    }

    /// The pairs of sets, of which one is small, that are similar and that this feature is to find: it is the rarest that both have.
    /// The sets are all that have it among their [rarest](SimilarSearch::rarest), each ascending. Pairs `a < b` are by position, in
    /// order.
    pub fn pair_small(&self, rarity: &Rarity, feature: u64, sets: &[&[u64]]) -> Vec<(usize, usize, f32)> {
        let of_set = |a: usize| {
            sets[a + 1..].iter().zip(a + 1..).filter_map(move |(y, b)| {
                let x = sets[a];
                let is_found =
                    small::are_similar(x, y, self.least) && rarity.rarest_of_both(x, y) == Some(feature);
                is_found.then(|| (a, b, jaccard(x, y) as f32))
            })
        };
        (0..sets.len()).into_par_iter().flat_map_iter(of_set).collect()
    }

    /// How similar two sets are, each ascending, if that is as much as is asked for.
    pub fn similarity(&self, a: &[u64], b: &[u64]) -> Option<f32> {
        let similarity = jaccard(a, b);
        (similarity >= self.least).then_some(similarity as f32)
    }

    /// What stands for what, by all pairs of similar sets. Sets are numbered by preference, the most preferred first; a pair is the
    /// less preferred one, the other, and their similarity; pairs are in order. Each set stands for itself, unless one that does
    /// is similar to it; of several, it is the most preferred. There is a row for each set that another stands for.
    ///
    /// ```
    /// use simstore_corpus::dedup::SimilarSearch;
    ///
    /// // 1 is like 0, 2 like 1, 3 like 2: 2 stands for itself, as 1 does not.
    /// let pairs = [(1, 0, 0.9), (2, 1, 0.9), (3, 2, 0.8)];
    /// assert_eq!(SimilarSearch::stars(&pairs), [(1, 0, 0.9), (3, 2, 0.8)]);
    /// ```
    pub fn stars(pairs: &[(u32, u32, f32)]) -> Vec<(u32, u32, f32)> {
        super::stars_of(pairs)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::random::random;

    /// Each pair is found by one feature, and no pair is missed.
    #[test]
    fn small_sets_are_paired_once() {
        let mut state = 5;
        let mut sets: Vec<Vec<u64>> = Vec::new();
        for _ in 0..300 {
            let mut set: Vec<u64> = match sets.len() {
                0 => Vec::new(),
                count => sets[random(&mut state) as usize % count].clone(),
            };
            let size = 1 + random(&mut state) as usize % 40;
            set.truncate(size);
            while set.len() < size {
                set.push(random(&mut state) % 2000);
            }
            set.sort_unstable();
            set.dedup();
            sets.push(set);
        }
        for least in [0.3, 0.5, 0.8, 1.0] {
            let search = SimilarSearch::new(least).unwrap();
            let mut rarity = Rarity::of(sets.len() as u64);
            sets.iter().for_each(|set| rarity.add(set));
            let mut having: HashMap<u64, Vec<usize>> = HashMap::new();
            for (at, set) in sets.iter().enumerate() {
                search.rarest(&rarity, set).for_each(|feature| having.entry(feature).or_default().push(at));
            }
            let mut found = Vec::new();
            for (feature, having) in having {
                let members: Vec<&[u64]> = having.iter().map(|&at| &sets[at][..]).collect();
                let pairs = search.pair_small(&rarity, feature, &members);
                found.extend(pairs.into_iter().map(|(a, b, similarity)| (having[a], having[b], similarity)));
            }
            found.sort_by_key(|&(a, b, _)| (a, b));
            let mut expected = Vec::new();
            for (a, x) in sets.iter().enumerate() {
                for (b, y) in sets.iter().enumerate().skip(a + 1) {
                    let similarity =
                        search.similarity(x, y).filter(|_| x.len().min(y.len()) < SMALL as usize);
                    expected.extend(similarity.map(|similarity| (a, b, similarity)));
                }
            }
            assert!(!expected.is_empty());
            assert_eq!(found, expected, "{least}");
        }
    }

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for similar in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(SimilarSearch::new(similar).is_err());
        }
        let search = SimilarSearch::new(0.8).unwrap();
        assert!(search.choose(1.0, 10).is_err() && search.choose(0.0, 10).is_err());
    }
}
