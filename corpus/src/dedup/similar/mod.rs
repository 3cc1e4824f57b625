//! Documents whose texts are as similar as is asked for.
//!
//! Documents of equal sets of features are one [set](sets). Candidates are pairs of sets that [sketches bring
//! together](candidates); they are [compared](compared) by the features themselves. So what is reported is similar, and how much
//! is found follows from a formula ([`SketchSearch::recall`](simstore_text::SketchSearch::recall)).

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use simstore::join::Components;
use simstore::{Fingerprint, Result};

pub use self::boilerplate::Boilerplate;
use self::candidates::Rule;
use self::compared::{Compared, TOGETHER};
pub(super) use self::likely::Likely;
use self::partners::{Partner, Partners};
pub use self::pieces::SimilarSearch;
use self::sets::Sets;
use self::stars::Led;
pub use self::stored::SimilarStores;
pub(super) use self::stored_like::{LikeStored, StoredLike};
use super::clusters::{Cluster, Representative};
use super::feature_sets::FeatureSets;
use super::groups::visit_in_order;
use super::options::ClusterBy;
use super::preference::Preference;
use super::sketches::Sketches;
use crate::Watch;
use crate::watch::Step;

mod boilerplate;
pub(super) mod candidates;
pub(super) mod choice;
mod compared;
mod likely;
mod marks;
pub(super) mod partners;
mod pieces;
mod sets;
mod stars;
mod stored;
mod stored_like;

/// What is to be found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// The least similarity.
    pub(super) least: f64,
    /// The least probability that two documents of that similarity are found.
    pub(super) recall: f64,
    pub(super) cluster_by: ClusterBy,
    /// Whether all pairs are to be known.
    pub(super) pairs: bool,
}

impl Wanted {
    /// Whether all pairs are looked for, and not only what stands for each.
    pub(super) fn wants_all(&self) -> bool {
        self.pairs || self.cluster_by == ClusterBy::Components
    }
}

/// Which documents are similar.
#[derive(Debug)]
pub(super) struct Similar {
    sets: Sets,
    /// Number of different sets, those of documents that were left out too.
    distinct: usize,
    /// What is similar in stores of similar documents, if there are such.
    pub(super) stored: Option<StoredLike>,
    /// All pairs of similar sets, if they were asked for.
    pairs: Vec<(u32, u32, f32)>,
    /// For sets that are more similar to another kept set than to their leader: the most similar kept set.
    nearest: Vec<Led>,
    /// The documents that the sets are of, if these are numbered by themselves.
    documents: Option<Vec<usize>>,
    /// Pairs of sets that were compared by their features, and those of them that were not similar enough.
    pub(super) compared: u64,
    pub(super) unlike: u64,
    /// Whether duplicates share what stands in all documents, if that was looked at.
    pub(super) boilerplate: Option<Boilerplate>,
}

impl Similar {
    /// Finds what is similar among all but those that are `out`, and makes clusters of it. Documents that are similar to no other
    /// may be missing: `distinct` is the number of different sets with them, and with those that are out.
    /// `read` reads the features of some documents, which ascend.
    pub(super) fn find<F: Fingerprint>(
        wanted: Wanted,
        sketches: &Sketches,
        out: &HashSet<usize>,
        preference: &Preference<'_>,
        distinct: Option<usize>,
        read: impl FnOnce(Vec<usize>) -> Result<FeatureSets>,
        watch: &dyn Watch,
    ) -> Result<(Similar, Vec<Cluster<F>>)> {
        let step = Step::new(watch, "candidates");
        step.add(0)?;
        let all = wanted.wants_all();
        // All pairs are of all documents: those that are out, too.
        let sets = if all {
            Sets::new(sketches, &HashSet::new(), preference)
        } else {
            Sets::new(sketches, out, preference)
        };
        let distinct = match distinct {
            Some(distinct) => distinct,
            None if all || out.is_empty() => sets.len(),
            None => Sets::new(sketches, &HashSet::new(), preference).len(),
        };
        // Equal documents are out together.
        let is_out = |set: u32| all && out.contains(&sets.best(set as usize));
        let search = choice::choose(wanted.least, wanted.recall, distinct)?.search;
        let partners = Partners::new(all, sets.len());
        let rule = Rule { sets: &sets, sketches, search, least: wanted.least };
        candidates::join(&rule, &partners, &step)?;
        let (candidates, crowded, paired) = partners.finish();
        drop(step);

        // Of documents on disk only those that may be similar are here: they tell nothing of all.
        let is_whole = sets.len() == distinct && !candidates.is_empty();
        let sample = if is_whole { boilerplate::sample(&sets, sketches) } else { Vec::new() };
        sample.iter().for_each(|&set| paired.set(set));
        let features = read(Compared::wanted(&sets, &paired))?;
        let compared = Compared {
            sets: &sets,
            sketches,
            features,
            least: wanted.least,
            compared: AtomicU64::new(0),
            unlike: AtomicU64::new(0),
        };
        let step = Step::new(watch, "texts compared");
        let (pairs, led, nearest) = if all {
            let pairs = similar_pairs(&candidates, &compared, &step)?;
            let left: Vec<Led> =
                pairs.iter().copied().filter(|&(a, b, _)| !is_out(a) && !is_out(b)).collect();
            let (led, nearest) = match wanted.cluster_by {
                ClusterBy::Stars => {
                    let led = stars_of(&left);
                    let nearest = stars::nearest(&left, &led, &sets);
                    (led, nearest)
                }
                // One of a component is kept.
                ClusterBy::Components => (components_of(&left, sets.len(), &compared)?, Vec::new()),
            };
            (pairs, led, nearest)
        } else {
            let led = stars::stars(&candidates, &crowded, &rule, &compared, &step)?;
            let similar = stars::similar_to_others(&candidates, &led, &compared, &step)?;
            let nearest = stars::nearest(&similar, &led, &sets);
            (Vec::new(), led, nearest)
        };
        let counts = [&compared.compared, &compared.unlike].map(|count| count.load(Ordering::Relaxed));
        let boilerplate = boilerplate::boilerplate(&sample, &led, &compared)?;
        let clusters = clusters_of(led, &sets, is_out);
        let [compared, unlike] = counts;
        let similar = Similar {
            sets,
            distinct,
            stored: None,
            pairs,
            nearest,
            documents: None,
            compared,
            unlike,
            boilerplate,
        };
        Ok((similar, clusters))
    }

    /// Says which documents the sets are of, where these were numbered by themselves.
    pub(super) fn set_documents(&mut self, documents: Vec<usize>) {
        self.documents = Some(documents);
    }

    /// Number of different sets.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// Visits all pairs of similar documents `a` < `b` with their similarity, in order of `a`, then of `b`. There are only those
    /// of equal sets if pairs were not asked for.
    pub(super) fn visit_pairs(&self, mut visitor: impl FnMut(usize, usize, f32) -> Result<()>) -> Result<()> {
        let of = |at: usize| self.documents.as_ref().map_or(at, |documents| documents[at]);
        let visitor = |a, b, similarity| visitor(of(a), of(b), similarity);
        let mut near: Vec<(usize, usize, f32)> = Vec::new();
        for &(worse, better, similarity) in &self.pairs {
            let (a, b) = (worse as usize, better as usize);
            near.extend([(a, b, similarity), (b, a, similarity)]);
        }
        let mut told: Vec<usize> = near.iter().map(|&(set, ..)| set).collect();
        told.extend((0..self.sets.len()).filter(|&set| self.sets.documents(set).len() > 1));
        told.sort_unstable();
        told.dedup();
        near.extend(told.iter().map(|&set| (set, set, 1.0)));
        near.sort_unstable_by_key(|&(set, other, _)| (set, other));
        let of_set =
            |&set: &usize| self.sets.documents(set).iter().map(move |&document| (document as usize, set));
        let mut documents: Vec<(usize, usize)> = told.iter().flat_map(of_set).collect();
        documents.sort_unstable();
        let members = |set, members: &mut Vec<usize>| {
            members.extend(self.sets.documents(set).iter().map(|&document| document as usize));
        };
        visit_in_order(&documents, &near, members, visitor)
    }
}

impl Similar {
    /// For documents, ascending, whose most similar kept document is not the leader of their cluster: that document, and the
    /// similarity. If none is kept, the most similar other document.
    pub(super) fn nearest(&self, is_dropped: bool) -> Vec<(usize, usize, f32)> {
        let of = |at: u32| self.documents.as_ref().map_or(at as usize, |documents| documents[at as usize]);
        let documents = |set: u32| self.sets.documents(set as usize);
        let mut nearest: Vec<(usize, usize, f32)> = Vec::new();
        if !is_dropped {
            for &(set, other, similarity) in &self.nearest {
                let best = self.sets.best(other as usize) as u32;
                nearest.extend(documents(set).iter().map(|&document| (of(document), of(best), similarity)));
            }
            nearest.sort_unstable_by_key(|&(document, ..)| document);
            return nearest;
        }
        // Of each set the most similar one, with its first document.
        let mut similar: HashMap<u32, (f32, Reverse<u32>)> = HashMap::new();
        for &(a, b, similarity) in &self.pairs {
            for (set, other) in [(a, b), (b, a)] {
                let found = (similarity, Reverse(self.sets.first(other)));
                let best = similar.entry(set).or_insert(found);
                *best = if found > *best { found } else { *best };
            }
        }
        for set in 0..self.sets.len() as u32 {
            // Nothing is as similar as those of the same set: the first of them, and of that one the second.
            let mut firsts: Vec<u32> = documents(set).to_vec();
            firsts.sort_unstable();
            for &document in documents(set) {
                let same = firsts.iter().take(2).find(|&&other| other != document);
                let best = match (same, similar.get(&set)) {
                    (Some(&same), _) => (same, 1.0),
                    (None, Some(&(similarity, Reverse(other)))) => (other, similarity),
                    (None, None) => continue,
                };
                nearest.push((of(document), of(best.0), best.1));
            }
        }
        nearest.sort_unstable_by_key(|&(document, ..)| document);
        nearest
    }
}

/// The pairs that are similar, of candidates.
fn similar_pairs(
    candidates: &[Partner],
    compared: &Compared<'_>,
    step: &Step<'_>,
) -> Result<Vec<(u32, u32, f32)>> {
    let mut pairs = Vec::new();
    for some in candidates.chunks(TOGETHER) {
        let similar = some.iter().zip(compared.alike_each(some)?);
        pairs.extend(similar.filter_map(|(&(a, b), similarity)| Some((a, b, similarity?))));
        step.add(some.len() as u64)?;
    }
    Ok(pairs)
}

/// The sets that another stands for, by all pairs of similar ones.
fn stars_of(pairs: &[(u32, u32, f32)]) -> Vec<Led> {
    let mut leads = std::collections::HashSet::new();
    let mut led = Vec::new();
    for of_set in pairs.chunk_by(|a, b| a.0 == b.0) {
        if let Some(&pair) = of_set.iter().find(|(_, better, _)| !leads.contains(better)) {
            leads.insert(pair.0);
            led.push(pair);
        }
    }
    led
}

/// The sets that are connected to a more preferred one, with the most preferred of them.
fn components_of(pairs: &[(u32, u32, f32)], count: usize, compared: &Compared<'_>) -> Result<Vec<Led>> {
    let mut components = Components::new(count);
    pairs.iter().for_each(|&(a, b, _)| components.connect(a as usize, b as usize));
    let mut led = Vec::new();
    // Those too that are preferred to all their partners, and connected to a more preferred one by them.
    for set in 0..count as u32 {
        let first = components.first(set as usize) as u32;
        if first == set {
            continue;
        }
        let similarity = match pairs.binary_search_by_key(&(set, first), |&(a, b, _)| (a, b)) {
            Ok(at) => pairs[at].2,
            Err(_) => compared.similarity(set, first)? as f32,
        };
        led.push((set, first, similarity));
    }
    Ok(led)
}

/// Clusters of what stands for what, and of equal documents; by their first documents.
fn clusters_of<F: Fingerprint>(
    mut led: Vec<Led>,
    sets: &Sets,
    is_out: impl Fn(u32) -> bool,
) -> Vec<Cluster<F>> {
    let mut is_led = vec![false; sets.len()];
    led.iter().for_each(|&(set, ..)| is_led[set as usize] = true);
    // What stands for others stands for itself too.
    let mut leaders: Vec<u32> = led.iter().map(|&(_, leader, _)| leader).collect();
    let several =
        |set: &u32| !is_led[*set as usize] && !is_out(*set) && sets.documents(*set as usize).len() > 1;
    leaders.extend((0..sets.len() as u32).filter(several));
    leaders.sort_unstable();
    leaders.dedup();
    led.extend(leaders.into_iter().map(|set| (set, set, 1.0)));
    led.sort_unstable_by_key(|&(set, leader, _)| (leader, set));
    let cluster = |of_leader: &[Led]| {
        let of_set = |&(set, _, similarity): &Led| {
            sets.documents(set as usize).iter().map(move |&document| (document as usize, similarity))
        };
        let mut members: Vec<(usize, f32)> = of_leader.iter().flat_map(of_set).collect();
        members.sort_unstable_by_key(|&(document, _)| document);
        let (members, similarities) = members.into_iter().unzip();
        let representative = Representative::Document(sets.best(of_leader[0].1 as usize));
        Cluster { members, similarities: Some(similarities), representative, is_dropped: false }
    };
    let mut clusters: Vec<Cluster<F>> = led.chunk_by(|a, b| a.1 == b.1).map(cluster).collect();
    clusters.sort_unstable_by_key(|cluster| cluster.members[0]);
    clusters
}
