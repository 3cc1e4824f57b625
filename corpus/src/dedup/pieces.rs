//! The search by similarity in pieces, for those who spread it over machines.

use simstore::{Error, Result};
use simstore_text::{Profile, SKETCHES, SketchSearch, Sketcher, jaccard_from};

use super::stages::rule::{are_brought_together, may_be_similar};
use super::stages::{choice, pairs_of_stars};

/// The pieces that [`find`](super::find) makes its search by similarity of: whoever puts them together on several machines
/// finds the same pairs.
///
/// 1. A [`sketcher`](SimilarSearch::sketcher) makes sketches of each text. Texts of one [digest](simstore_text::Sketched::digest)
///    have the same set of features, and are one from here on.
/// 2. By the number of different sets, [`choose`](SimilarSearch::choose) says which of their sketches are joined, each by itself,
///    and within which distance.
/// 3. A pair of sets that the join of a sketch has brought together is a [candidate](SimilarSearch::is_candidate) once.
/// 4. Two sets are similar if they have a [`similarity`](SimilarSearch::similarity).
///
/// ```
/// use simstore_corpus::dedup::SimilarSearch;
/// use simstore_text::Profile;
///
/// let search = SimilarSearch::new(0.8)?;
/// let sketcher = search.sketcher(Profile::shingles());
/// assert!(sketcher.sketch("To be, or not to be").is_some());
/// let joined = search.choose(0.95, 1_000_000)?;
/// assert_eq!((joined.joined, joined.distance), (7, 5));
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

    /// Makes the sketches of texts by the features of a profile.
    pub fn sketcher(&self, profile: Profile) -> Sketcher {
        Sketcher::new(profile)
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

    /// Whether two sets are to be compared, each with its sketches and its number of features, that the join of a sketch has brought
    /// together: that of no earlier one has.
    pub fn is_candidate(
        &self,
        search: &SketchSearch,
        sketch: usize,
        (x, a): (&[u64; SKETCHES], u32),
        (y, b): (&[u64; SKETCHES], u32),
    ) -> bool {
        are_brought_together(search, x, y, sketch) && may_be_similar(a, b, self.least)
    }

    /// How similar two sets are, each ascending, if that is as much as is asked for.
    pub fn similarity(&self, a: &[u64], b: &[u64]) -> Option<f32> {
        jaccard_from(a, b, self.least).map(|similarity| similarity as f32)
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
        pairs_of_stars(pairs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for similar in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(SimilarSearch::new(similar).is_err());
        }
        let search = SimilarSearch::new(0.8).unwrap();
        assert!(search.choose(1.0, 10).is_err() && search.choose(0.0, 10).is_err());
    }
}
