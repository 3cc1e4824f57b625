//! The search by similarity as separate steps, for programs that distribute it over several machines.

use std::collections::{HashMap, HashSet};

use simstore::{Error, Result};
use simstore_text::{
    BANDS, BandSearch, MinHasher, Profile, check_recall, check_similarity, jaccard_at_least,
};

use crate::config::band_search_plan;
use crate::pipeline::candidate_rule::{is_first_found_by, may_be_similar};
use crate::pipeline::representatives::star_pairs;

/// The steps of the search by similarity of a [run](crate::run()). A program that combines them on several
/// machines finds the same pairs.
///
/// 1. A [`min_hasher`](SimilarSearch::min_hasher) computes the signature of each text. Texts with equal
///    [digests](simstore_text::Signature::digest) have the same feature set. From here on, all documents with
///    such texts count as one unique document.
/// 2. [`choose`](SimilarSearch::choose) chooses the number of bands to search and a distance, which depend on the
///    number of unique documents. Then the program joins the documents by each of these bands: it finds all pairs
///    of unique documents whose values of the band are within the distance.
/// 3. [`candidate`](SimilarSearch::candidate) selects the candidate pairs among the results of these joins, each
///    pair once.
/// 4. [`similarity`](SimilarSearch::similarity) verifies a candidate.
/// 5. [`ComponentStars`] assigns representatives from all similar pairs of a component.
///
/// ```
/// use simstore_dedup::SimilarSearch;
/// use simstore_text::Profile;
///
/// let search = SimilarSearch::new(0.8)?;
/// let min_hasher = search.min_hasher(Profile::shingles());
/// assert!(min_hasher.signature("To be, or not to be").is_some());
/// let joined = search.choose(0.95, 1_000_000)?;
/// assert_eq!((joined.bands, joined.band_distance), (7, 5));
/// assert_eq!(search.similarity(&[1, 2, 3, 4], &[1, 2, 3, 4, 5]), Some(0.8));
/// assert_eq!(search.similarity(&[1, 2, 3], &[2, 3, 4]), None);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SimilarSearch {
    min_similarity: f64,
}

impl SimilarSearch {
    /// Creates a search for documents with a Jaccard similarity of at least `similar`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] unless `similar` is above 0 and at most 1.
    pub fn new(similar: f64) -> Result<Self> {
        check_similarity(similar)?;
        Ok(SimilarSearch { min_similarity: similar })
    }

    /// Creates a hasher that computes signatures of texts from the features of a profile.
    pub fn min_hasher(&self, profile: Profile) -> MinHasher {
        MinHasher::new(profile)
    }

    /// Chooses the number of bands to search, the maximum distance of two values of a band, and the maximum distance of
    /// two signatures. Of the choices that find a pair with exactly the minimum similarity with a probability of at
    /// least `recall`, takes the one with the least work for `distinct` unique documents.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if no distance reaches the recall, or `recall` is not between 0 and 1.
    pub fn choose(&self, recall: f64, distinct: usize) -> Result<BandSearch> {
        check_recall(recall)?;
        Ok(band_search_plan::plan_band_search(self.min_similarity, recall, distinct)?.search)
    }

    /// Returns the digests of `a` and `b`, the smaller one first, if the two documents are a candidate pair; else
    /// `None`. Call this for all pairs of documents whose values of `band` are within the distance
    /// [`band_distance`](BandSearch::band_distance), for each band of the search. Then each candidate pair is
    /// returned exactly once, even if its values of several bands are near.
    ///
    /// Call this twice for a pair with equal values of the band, with `(a, b)` and with `(b, a)`; call it once for
    /// every other pair.
    pub fn candidate(
        &self,
        search: &BandSearch,
        band: usize,
        a: UniqueDocument<'_>,
        b: UniqueDocument<'_>,
    ) -> Option<(u128, u128)> {
        let is_twice = a.signature[band] == b.signature[band] && a.digest >= b.digest;
        let is_candidate = !is_twice
            && is_first_found_by(search, a.signature, b.signature, band)
            && may_be_similar(a.features, b.features, self.min_similarity);
        is_candidate.then(|| (a.digest.min(b.digest), a.digest.max(b.digest)))
    }

    /// Returns the Jaccard similarity of two ascending lists of features; `None` if it is below the minimum
    /// similarity of the search.
    pub fn similarity(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        jaccard_at_least(a, b, self.min_similarity)
    }
}

/// Digest and signature of a unique document, for [`SimilarSearch::candidate`]. Documents with equal feature sets are
/// treated as one unique document.
#[derive(Clone, Copy, Debug)]
pub struct UniqueDocument<'a> {
    /// [Digest](simstore_text::Signature::digest) of the feature set.
    pub digest: u128,
    /// MinHash signature, as bands of 64 bits.
    pub signature: &'a [u64; BANDS],
    /// Number of distinct features.
    pub features: u32,
}

/// Assigns representatives by stars, from all similar pairs of unique documents. A document is represented by
/// the most preferred representative that is similar to it. If no representative is similar to it, the document
/// is a representative itself.
///
/// The calls of [`push`](ComponentStars::push) must be grouped by connected component. For each component,
/// first push all members, the most preferred one first. Then push the similar pairs of the component.
///
/// ```
/// use simstore_dedup::ComponentStars;
///
/// let mut stars = ComponentStars::new(1000);
/// let mut assignments = Vec::new();
/// for member in [5, 6, 7, 8] {
///     assignments.extend(stars.push(5, member, None)?);
/// }
/// // 6 is similar to 5, 7 to 6, and 8 to 7. So 7 is a representative: 6 is none, since 5 represents it.
/// for (member, other) in [(5, 6), (6, 7), (8, 7)] {
///     assignments.extend(stars.push(5, member, Some((other, 0.9)))?);
/// }
/// assignments.extend(stars.finish());
/// let found: Vec<_> =
///     assignments.iter().map(|found| (found.member, found.representative, found.nearest)).collect();
/// assert_eq!(found, [(6, 5, 5), (8, 7, 7)]);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComponentStars {
    /// Maximum number of similar pairs of a component.
    max_pairs: usize,
    component: Option<u128>,
    members: Vec<u128>,
    /// Index in `members` of each member, by the digest of the member.
    indexes: HashMap<u128, u32>,
    /// Similar pairs: (less preferred document, more preferred document, similarity). The documents are given by
    /// their indexes in `members`.
    pairs: Vec<(u32, u32, f64)>,
}

/// Assignment of a unique document, the member, to its representative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Assignment {
    /// Digest of the document that gets a representative.
    pub member: u128,
    /// Digest of the most preferred representative that is similar to the member.
    pub representative: u128,
    /// Digest of the representative that is most similar to the member; ties go to the most preferred one.
    pub nearest: u128,
    /// Jaccard similarity of `member` and `nearest`.
    pub similarity: f64,
}

impl ComponentStars {
    /// Creates a `ComponentStars` without members. It accepts up to `max_pairs` similar pairs per component.
    pub fn new(max_pairs: usize) -> Self {
        ComponentStars {
            max_pairs,
            component: None,
            members: Vec::new(),
            indexes: HashMap::new(),
            pairs: Vec::new(),
        }
    }

    /// If `pair` is `None`, adds `member` to the component. If `pair` is another member and a similarity, adds
    /// the similar pair of `member` and this other member. The first call for a new component returns the
    /// assignments of the previous component; all other calls return an empty list.
    ///
    /// # Errors
    /// [`Error::Refused`] if the component has too many pairs; [`Error::BadArgument`] if a pair comes before
    /// its members.
    pub fn push(
        &mut self,
        component: u128,
        member: u128,
        pair: Option<(u128, f64)>,
    ) -> Result<Vec<Assignment>> {
        let mut assignments = Vec::new();
        if self.component != Some(component) {
            assignments = self.finish();
            self.component = Some(component);
        }
        let Some((other, similarity)) = pair else {
            self.indexes.insert(member, self.members.len() as u32);
            self.members.push(member);
            return Ok(assignments);
        };
        let index = |member: u128| {
            let unknown =
                || Error::BadArgument("a pair came before its sets: expected all sets first".to_owned());
            self.indexes.get(&member).copied().ok_or_else(unknown)
        };
        let (a, b) = (index(member)?, index(other)?);
        if self.pairs.len() == self.max_pairs {
            return Err(Error::Refused(format!(
                "{} distinct texts are connected by more than {} similar pairs, too many for one task: use a greater `similar`, or \
                 remove near-copies first by `distance`",
                self.members.len(),
                self.max_pairs
            )));
        }
        self.pairs.push((a.max(b), a.min(b), similarity));
        Ok(assignments)
    }

    /// Returns the assignments of the last component.
    pub fn finish(&mut self) -> Vec<Assignment> {
        let (members, mut pairs) = (std::mem::take(&mut self.members), std::mem::take(&mut self.pairs));
        self.indexes.clear();
        pairs.sort_unstable_by_key(|&(worse, better, _)| (worse, better));
        let stars = star_pairs(&pairs);
        let is_represented: HashSet<u32> = stars.iter().map(|&(member, ..)| member).collect();
        let mut nearest: HashMap<u32, (f64, u32)> = HashMap::new();
        for &(a, b, similarity) in &pairs {
            let (member, representative) = match (is_represented.contains(&a), is_represented.contains(&b)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => continue,
            };
            let so_far = nearest.entry(member).or_insert((similarity, representative));
            if similarity > so_far.0 || similarity == so_far.0 && representative < so_far.1 {
                *so_far = (similarity, representative);
            }
        }
        let digest = |index: u32| members[index as usize];
        let assignments = stars.iter().map(|&(member, representative, similarity)| {
            let (similarity, nearest) = nearest.get(&member).copied().unwrap_or((similarity, representative));
            Assignment {
                member: digest(member),
                representative: digest(representative),
                nearest: digest(nearest),
                similarity,
            }
        });
        assignments.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simstore_corpus::random::splitmix64;

    #[test]
    fn impossible_searches_are_refused() {
        for similar in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(SimilarSearch::new(similar).is_err());
        }
        let search = SimilarSearch::new(0.8).unwrap();
        assert!(search.choose(1.0, 10).is_err() && search.choose(0.0, 10).is_err());
    }

    #[test]
    fn each_pair_is_a_candidate_of_the_first_sketch_that_brings_it_together() {
        let rule = SimilarSearch::new(0.5).unwrap();
        let search = BandSearch { bands: 3, band_distance: 1, signature_distance: 9 };
        let mut state = 5;
        let mut below = |limit| splitmix64(&mut state) % limit;
        // Few bits, so that bands are often equal or near.
        let members: Vec<(u128, [u64; BANDS], u32)> = (0..60)
            .map(|digest| (digest, std::array::from_fn(|_| below(8)), (below(9) + 1) as u32))
            .collect();
        let document = |at: usize| {
            let (digest, signature, features) = &members[at];
            UniqueDocument { digest: *digest, signature, features: *features }
        };
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for a in 0..members.len() {
            for b in 0..members.len() {
                let distance = |band: usize| (members[a].1[band] ^ members[b].1[band]).count_ones();
                let is_near = |&band: &usize| distance(band) <= search.band_distance;
                // Like a join: gives equal bands in both orders and with themselves, others once.
                for band in (0..search.bands).filter(is_near).filter(|&band| distance(band) == 0 || a > b) {
                    found.extend(rule.candidate(&search, band, document(a), document(b)));
                }
                let (few, many) = (members[a].2.min(members[b].2), members[a].2.max(members[b].2));
                let is_candidate = (0..search.bands).any(|band| is_near(&band))
                    && (0..BANDS).map(distance).sum::<u32>() <= search.signature_distance
                    && 2 * few >= many;
                if a < b && is_candidate {
                    expected.push((members[a].0, members[b].0));
                }
            }
        }
        found.sort_unstable();
        assert!(expected.len() > 20, "{}", expected.len());
        assert_eq!(found, expected);
    }

    #[test]
    fn stars_of_components_are_those_of_the_plain_loop() {
        let mut state = 6;
        let mut below = |limit| splitmix64(&mut state) % limit;
        let mut stars = ComponentStars::new(usize::MAX);
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for component in 0..200 {
            let members: Vec<u128> = (0..u128::from(below(7))).map(|at| component * 100 + 10 - at).collect();
            let mut similar = HashMap::new();
            for (better, &one) in members.iter().enumerate() {
                found.extend(stars.push(component, one, None).unwrap());
                for &other in &members[better + 1..] {
                    if below(2) == 0 {
                        similar.insert((one, other), below(20) as f64);
                    }
                }
            }
            for (&(one, other), &similarity) in &similar {
                let (member, other) = if below(2) == 0 { (one, other) } else { (other, one) };
                found.extend(stars.push(component, member, Some((other, similarity))).unwrap());
            }
            let (mut alone, mut assignments): (Vec<u128>, Vec<(u128, u128)>) = (Vec::new(), Vec::new());
            for &member in &members {
                match alone.iter().find(|&&one| similar.contains_key(&(one, member))) {
                    Some(&representative) => assignments.push((member, representative)),
                    None => alone.push(member),
                }
            }
            for (member, representative) in assignments {
                let similarity_to =
                    |one: u128| similar.get(&(one, member)).or_else(|| similar.get(&(member, one))).copied();
                let mut candidates: Vec<(f64, u128)> =
                    alone.iter().filter_map(|&one| Some((similarity_to(one)?, one))).collect();
                // The sort is stable, so the most preferred of equally similar representatives comes first.
                candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
                let (similarity, nearest) = candidates[0];
                expected.push(Assignment { member, representative, nearest, similarity });
            }
        }
        found.extend(stars.finish());
        assert!(expected.len() > 100, "{}", expected.len());
        assert!(
            expected.iter().filter(|assignments| assignments.representative != assignments.nearest).count()
                > 20
        );
        assert_eq!(found, expected);
    }

    #[test]
    fn too_many_pairs_and_pairs_without_their_sets_are_refused() {
        let mut stars = ComponentStars::new(1);
        stars.push(0, 1, None).unwrap();
        assert!(matches!(stars.push(0, 1, Some((2, 0.9))), Err(Error::BadArgument(_))));
        stars.push(0, 2, None).unwrap();
        stars.push(0, 1, Some((2, 0.9))).unwrap();
        let refused = stars.push(0, 1, Some((2, 0.9))).unwrap_err().to_string();
        assert!(
            refused.contains("2 distinct texts") && refused.contains("more than 1 similar pairs"),
            "{refused}"
        );
        // Members of the previous component are unknown afterwards.
        assert_eq!(
            stars.push(3, 3, None).unwrap(),
            [Assignment { member: 2, representative: 1, nearest: 1, similarity: 0.9 }]
        );
        assert!(stars.push(3, 3, Some((1, 0.9))).is_err());
    }
}
