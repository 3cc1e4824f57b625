//! The search by similarity in pieces, for programs that spread it over machines.

use std::collections::{HashMap, HashSet};

use simstore::{Error, Result};
use simstore_text::{
    Profile, SKETCHES, SketchSearch, Sketcher, check_recall, check_similarity, jaccard_from,
};

use crate::config::band_choice;
use crate::pipeline::candidate_rule::{are_brought_together, may_be_similar};
use crate::pipeline::representatives::pairs_of_stars;

/// The pieces of the search by similarity of a [run](crate::run()): a program that combines them on several machines finds the same
/// pairs.
///
/// 1. A [`sketcher`](SimilarSearch::sketcher) makes sketches of each text. Texts of one [digest](simstore_text::Sketched::digest)
///    have the same set of features, and are one from here on.
/// 2. By the number of different sets, [`choose`](SimilarSearch::choose) says which of their sketches are joined, each by itself,
///    and within which distance.
/// 3. A pair of sets that the join of a sketch has brought together is a [`candidate`](SimilarSearch::candidate) once.
/// 4. Two sets are similar if they have a [`similarity`](SimilarSearch::similarity).
/// 5. From all similar pairs of a component, [`ComponentStars`] chooses the leaders.
///
/// ```
/// use simstore_dedup::SimilarSearch;
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
        check_similarity(similar)?;
        Ok(SimilarSearch { least: similar })
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
        check_recall(recall)?;
        Ok(band_choice::choose(self.least, recall, distinct)?.search)
    }

    /// Returns the digests of two sets that have to be compared, the lesser first. The join of a sketch has brought them together: both
    /// ways round if they have the same one, else once. Each pair is a candidate of one sketch, and one way round.
    pub fn candidate(
        &self,
        search: &SketchSearch,
        sketch: usize,
        a: SketchedSet<'_>,
        b: SketchedSet<'_>,
    ) -> Option<(u128, u128)> {
        let is_twice = a.sketches[sketch] == b.sketches[sketch] && a.digest >= b.digest;
        let is_candidate = !is_twice
            && are_brought_together(search, a.sketches, b.sketches, sketch)
            && may_be_similar(a.features, b.features, self.least);
        is_candidate.then(|| (a.digest.min(b.digest), a.digest.max(b.digest)))
    }

    /// How similar two sets are, each ascending, if that is as much as is asked for.
    pub fn similarity(&self, a: &[u64], b: &[u64]) -> Option<f64> {
        jaccard_from(a, b, self.least)
    }
}

/// A set of features, as a [candidate](SimilarSearch::candidate).
#[derive(Clone, Copy, Debug)]
pub struct SketchedSet<'a> {
    /// Its [digest](simstore_text::Sketched::digest).
    pub digest: u128,
    /// Its sketches.
    pub sketches: &'a [u64; SKETCHES],
    /// The number of its features.
    pub features: u32,
}

/// Stars, by all pairs of similar sets. A set is a leader, unless a more preferred leader is similar to it: then the most preferred
/// of these leads it. Components, which are sets that chains of similar pairs connect, come one after the other: of each its sets, the
/// most preferred first, then its pairs.
///
/// ```
/// use simstore_dedup::ComponentStars;
///
/// let mut stars = ComponentStars::new(1000);
/// let mut led = Vec::new();
/// for set in [5, 6, 7, 8] {
///     led.extend(stars.push(5, set, None)?);
/// }
/// // 6 is like 5, 7 like 6, 8 like 7: 7 stands for itself, as 6 does not.
/// for (set, other) in [(5, 6), (6, 7), (8, 7)] {
///     led.extend(stars.push(5, set, Some((other, 0.9)))?);
/// }
/// led.extend(stars.finish());
/// let told: Vec<_> = led.iter().map(|led| (led.set, led.leader, led.nearest)).collect();
/// assert_eq!(told, [(6, 5, 5), (8, 7, 7)]);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ComponentStars {
    /// The most pairs of a component.
    most: usize,
    component: Option<u128>,
    sets: Vec<u128>,
    /// Where each of them is.
    places: HashMap<u128, u32>,
    /// The less preferred set, the other, and their similarity.
    pairs: Vec<(u32, u32, f64)>,
}

/// A set that is led by another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LedSet {
    /// Digest of the set.
    pub set: u128,
    /// Digest of its leader: the most preferred of the leaders that are similar to it.
    pub leader: u128,
    /// Digest of the most similar of these leaders; of equally similar ones, the most preferred.
    pub nearest: u128,
    /// Similarity to that one.
    pub similarity: f64,
}

impl ComponentStars {
    /// Takes so many pairs of a component, at most.
    pub fn new(most: usize) -> Self {
        ComponentStars { most, component: None, sets: Vec::new(), places: HashMap::new(), pairs: Vec::new() }
    }

    /// Takes a set of a component; or a pair of it, with the other set and their similarity. If the component before is complete now, its
    /// sets that have a leader are returned.
    ///
    /// # Errors
    /// [`Error::Refused`] if the component has too many pairs; [`Error::BadArgument`] for a pair that comes before its sets.
    pub fn push(&mut self, component: u128, set: u128, near: Option<(u128, f64)>) -> Result<Vec<LedSet>> {
        let mut led = Vec::new();
        if self.component != Some(component) {
            led = self.finish();
            self.component = Some(component);
        }
        let Some((other, similarity)) = near else {
            self.places.insert(set, self.sets.len() as u32);
            self.sets.push(set);
            return Ok(led);
        };
        let place = |set: u128| {
            let unknown =
                || Error::BadArgument("a pair came before its sets: expected all sets first".to_owned());
            self.places.get(&set).copied().ok_or_else(unknown)
        };
        let (a, b) = (place(set)?, place(other)?);
        if self.pairs.len() == self.most {
            return Err(Error::Refused(format!(
                "{} distinct texts are connected by more than {} similar pairs, too many for one task: use a greater `similar`, or \
                 remove near-copies first by `distance`",
                self.sets.len(),
                self.most
            )));
        }
        self.pairs.push((a.max(b), a.min(b), similarity));
        Ok(led)
    }

    /// Returns the sets of the last component that have a leader.
    pub fn finish(&mut self) -> Vec<LedSet> {
        let (sets, mut pairs) = (std::mem::take(&mut self.sets), std::mem::take(&mut self.pairs));
        self.places.clear();
        pairs.sort_unstable_by_key(|&(worse, better, _)| (worse, better));
        let stars = pairs_of_stars(&pairs);
        let is_led: HashSet<u32> = stars.iter().map(|&(set, ..)| set).collect();
        let mut nearest: HashMap<u32, (f64, u32)> = HashMap::new();
        for &(a, b, similarity) in &pairs {
            let (set, leader) = match (is_led.contains(&a), is_led.contains(&b)) {
                (true, false) => (a, b),
                (false, true) => (b, a),
                _ => continue,
            };
            let so_far = nearest.entry(set).or_insert((similarity, leader));
            if similarity > so_far.0 || similarity == so_far.0 && leader < so_far.1 {
                *so_far = (similarity, leader);
            }
        }
        let digest = |place: u32| sets[place as usize];
        let led = stars.iter().map(|&(set, leader, similarity)| {
            let (similarity, nearest) = nearest.get(&set).copied().unwrap_or((similarity, leader));
            LedSet { set: digest(set), leader: digest(leader), nearest: digest(nearest), similarity }
        });
        led.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use simstore_corpus::random::random;

    #[test]
    fn what_cannot_be_asked_for_is_refused() {
        for similar in [0.0, -1.0, 1.1, f64::NAN] {
            assert!(SimilarSearch::new(similar).is_err());
        }
        let search = SimilarSearch::new(0.8).unwrap();
        assert!(search.choose(1.0, 10).is_err() && search.choose(0.0, 10).is_err());
    }

    #[test]
    fn each_pair_is_a_candidate_of_the_first_sketch_that_brings_it_together() {
        let rule = SimilarSearch::new(0.5).unwrap();
        let search = SketchSearch { joined: 3, distance: 1, total: 9 };
        let mut state = 5;
        let mut below = |limit| random(&mut state) % limit;
        // Few bits, so that sketches are often equal, or near.
        let sets: Vec<(u128, [u64; SKETCHES], u32)> = (0..60)
            .map(|digest| (digest, std::array::from_fn(|_| below(8)), (below(9) + 1) as u32))
            .collect();
        let of = |at: usize| {
            let (digest, sketches, features) = &sets[at];
            SketchedSet { digest: *digest, sketches, features: *features }
        };
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for a in 0..sets.len() {
            for b in 0..sets.len() {
                let distance = |sketch: usize| (sets[a].1[sketch] ^ sets[b].1[sketch]).count_ones();
                let is_near = |&sketch: &usize| distance(sketch) <= search.distance;
                // As a join does: equal ones both ways round and with themselves, others once.
                for sketch in
                    (0..search.joined).filter(is_near).filter(|&sketch| distance(sketch) == 0 || a > b)
                {
                    found.extend(rule.candidate(&search, sketch, of(a), of(b)));
                }
                let (few, many) = (sets[a].2.min(sets[b].2), sets[a].2.max(sets[b].2));
                let is_candidate = (0..search.joined).any(|sketch| is_near(&sketch))
                    && (0..SKETCHES).map(distance).sum::<u32>() <= search.total
                    && 2 * few >= many;
                if a < b && is_candidate {
                    expected.push((sets[a].0, sets[b].0));
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
        let mut below = |limit| random(&mut state) % limit;
        let mut stars = ComponentStars::new(usize::MAX);
        let (mut found, mut expected) = (Vec::new(), Vec::new());
        for component in 0..200 {
            let sets: Vec<u128> = (0..u128::from(below(7))).map(|at| component * 100 + 10 - at).collect();
            let mut similar = HashMap::new();
            for (better, &one) in sets.iter().enumerate() {
                found.extend(stars.push(component, one, None).unwrap());
                for &other in &sets[better + 1..] {
                    if below(2) == 0 {
                        similar.insert((one, other), below(20) as f64);
                    }
                }
            }
            for (&(one, other), &similarity) in &similar {
                let (set, other) = if below(2) == 0 { (one, other) } else { (other, one) };
                found.extend(stars.push(component, set, Some((other, similarity))).unwrap());
            }
            let (mut alone, mut led): (Vec<u128>, Vec<(u128, u128)>) = (Vec::new(), Vec::new());
            for &set in &sets {
                match alone.iter().find(|&&one| similar.contains_key(&(one, set))) {
                    Some(&leader) => led.push((set, leader)),
                    None => alone.push(set),
                }
            }
            for (set, leader) in led {
                let how = |one: u128| similar.get(&(one, set)).or_else(|| similar.get(&(set, one))).copied();
                let mut of_leaders: Vec<(f64, u128)> =
                    alone.iter().filter_map(|&one| Some((how(one)?, one))).collect();
                // The first of equally similar ones stays the first, which is the most preferred.
                of_leaders.sort_by(|a, b| b.0.total_cmp(&a.0));
                let (similarity, nearest) = of_leaders[0];
                expected.push(LedSet { set, leader, nearest, similarity });
            }
        }
        found.extend(stars.finish());
        assert!(expected.len() > 100, "{}", expected.len());
        assert!(expected.iter().filter(|led| led.leader != led.nearest).count() > 20);
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
        // Sets of another component are forgotten.
        assert_eq!(
            stars.push(3, 3, None).unwrap(),
            [LedSet { set: 2, leader: 1, nearest: 1, similarity: 0.9 }]
        );
        assert!(stars.push(3, 3, Some((1, 0.9))).is_err());
    }
}
