//! The row of stages of documents whose texts are compared: sets, candidates, pairs, and what stands for what.
//!
//! Candidates are pairs of sets that [sketches bring together](super::candidates); they are [compared](super::compare) by the features
//! themselves. So what is reported is similar, and how much is found follows from a formula
//! ([`SketchSearch::recall`](simstore_text::SketchSearch::recall)).

use simstore::Result;

use super::super::model::{Near, SketchRow};
use super::super::options::ClusterBy;
use super::super::room::Room;
use super::boilerplate::{self, Boilerplate};
use super::candidates::{Found, Joining, Rule};
use super::choice;
use super::compare::Compared;
use super::components;
use super::crowd::Crowds;
use super::crowd_pairs;
use super::distinct::Sets;
use super::features::Features;
use super::marks::Marks;
use super::nearest::{self, NearestSets, Tie};
use super::stars::{Leaders, stars, stars_of};
use crate::Watch;
use crate::spill::Rows;
use crate::watch::Step;

/// What is to be found.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wanted {
    /// The least similarity.
    pub(in super::super) least: f64,
    /// The least probability that two documents of that similarity are found.
    pub(in super::super) recall: f64,
    pub(in super::super) cluster_by: ClusterBy,
    /// Whether all pairs are to be known.
    pub(in super::super) pairs: bool,
}

impl Wanted {
    /// Whether all pairs are looked for, and not only what stands for each.
    pub(in super::super) fn wants_all(&self) -> bool {
        self.pairs || self.cluster_by == ClusterBy::Components
    }
}

/// A search for similar sets.
pub(in super::super) struct Search<'a> {
    pub(in super::super) wanted: Wanted,
    /// Of all documents, in order.
    pub(in super::super) sketches: &'a Rows<SketchRow>,
    pub(in super::super) sets: &'a Sets,
    /// Sets that are in pairs, but neither stand for others, nor others for them.
    pub(in super::super) out: &'a Marks,
    /// How many sets the search is made for.
    pub(in super::super) count: usize,
    pub(in super::super) room: &'a Room,
    pub(in super::super) watch: &'a dyn Watch,
}

/// What it has found.
pub(in super::super) struct Searched {
    pub(in super::super) leaders: Leaders,
    /// All similar pairs, if they were looked for.
    pub(in super::super) pairs: Rows<Near>,
    /// For sets that are more similar to another kept set than to what stands for them: that; or if none is kept, the most similar.
    pub(in super::super) nearest: Rows<Near>,
    /// Pairs of sets that were compared by their features, and those of them that were not similar enough.
    pub(in super::super) compared: (u64, u64),
    /// Of crowds: their members, and pairs of these whose sketches were looked at.
    pub(in super::super) crowds: (u64, u64),
    /// Whether duplicates share what stands in all documents, if that was looked at.
    pub(in super::super) boilerplate: Option<Boilerplate>,
}

impl Search<'_> {
    /// Searches. `read` reads the features of some documents, which ascend.
    pub(in super::super) fn run(
        &self,
        is_dropped: bool,
        read: impl FnOnce(&mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features>,
    ) -> Result<Searched> {
        let &Search { wanted, sketches, sets, room, watch, .. } = self;
        let search = choice::choose(wanted.least, wanted.recall, self.count)?.search;
        let rule = Rule { search, least: wanted.least };
        let Found { candidates, crowded } = self.candidates(rule)?;
        let is_any = candidates.len() > 0 || crowded.count() > 0;
        let sample = if is_any { boilerplate::sample(sets, sketches)? } else { Vec::new() };
        let features = self.features(&candidates, &crowded, &sample, read)?;
        let compared = Compared::new(sets, &features, wanted.least);
        let step = Step::new(watch, "texts compared");
        let crowds = match crowded.count() {
            0 => None,
            _ => Some(Crowds::new(&compared, sketches, rule, &crowded, room, &step)?),
        };
        let (leaders, pairs, nearest) = if wanted.wants_all() {
            let pairs = self.all_pairs(&candidates, &crowded, crowds.as_ref(), &compared, &step)?;
            let (leaders, nearest) = self.of_all_pairs(&pairs, is_dropped, &compared, &step)?;
            (leaders, pairs, nearest)
        } else {
            let leaders = stars(&candidates, &crowded, crowds.as_ref(), &compared, room, &step)?;
            let mut nearest = NearestSets::new(sets, Tie::SimilarThenFirst, room);
            nearest::compare_with_others(
                &candidates,
                &crowded,
                &leaders,
                &compared,
                &mut nearest,
                room,
                &step,
            )?;
            if let Some(crowds) = &crowds {
                crowd_pairs::visit_nearest(crowds, &crowded, &leaders, &step, |pair| nearest.push(pair))?;
            }
            let nearest = nearest.nearer_than_leaders(&leaders, room)?;
            (leaders, room.rows().finish()?, nearest)
        };
        let counts = compared.counts();
        let crowds = (crowded.count() as u64, crowds.as_ref().map_or(0, Crowds::looked_at));
        let boilerplate = boilerplate::boilerplate(&sample, &leaders.led, &compared, sketches)?;
        Ok(Searched { leaders, pairs, nearest, compared: counts, crowds, boilerplate })
    }

    fn candidates(&self, rule: Rule) -> Result<Found> {
        let &Search { wanted, sketches, sets, out, room, watch, .. } = self;
        let step = Step::new(watch, "candidates");
        step.add(0)?;
        // All pairs are of all documents: those that are out, too.
        let none = Marks::new(sets.len());
        let out = if wanted.wants_all() { &none } else { out };
        Joining { sketches, sets, out, rule, room, step: &step }.find()
    }

    /// Reads the features of all sets that may be compared.
    fn features(
        &self,
        candidates: &Rows<(u32, u32)>,
        crowded: &Marks,
        sample: &[u32],
        read: impl FnOnce(&mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features>,
    ) -> Result<Features> {
        let wanted = Marks::new(self.sets.len());
        sample.iter().for_each(|&set| wanted.set(set));
        crowded.marked().for_each(|set| wanted.set(set));
        for pair in candidates.iter()? {
            let (a, b) = pair?;
            wanted.set(a);
            wanted.set(b);
        }
        let mut documents = self.room.sorter();
        for set in wanted.marked() {
            documents.push(self.sets.best(set)?)?;
        }
        drop(wanted);
        read(&mut documents.finish()?.map(|document| document.map(|document| (document.into(), document))))
    }

    fn all_pairs(
        &self,
        candidates: &Rows<(u32, u32)>,
        crowded: &Marks,
        crowds: Option<&Crowds<'_>>,
        compared: &Compared<'_>,
        step: &Step<'_>,
    ) -> Result<Rows<Near>> {
        let pairs = compared.similar_pairs(candidates, crowded, self.room, step)?;
        let Some(crowds) = crowds else { return Ok(pairs) };
        let mut all = self.room.sorter();
        pairs.iter()?.try_for_each(|pair| all.push(pair?))?;
        crowd_pairs::visit_pairs(crowds, crowded, step, |pair| all.push(pair))?;
        all.rows()
    }

    /// What stands for what by all pairs, and what sets are nearest to.
    fn of_all_pairs(
        &self,
        pairs: &Rows<Near>,
        is_dropped: bool,
        compared: &Compared<'_>,
        step: &Step<'_>,
    ) -> Result<(Leaders, Rows<Near>)> {
        let &Search { wanted, sets, out, room, .. } = self;
        let is_left = |&(a, b, _): &Near| !out.has(a) && !out.has(b);
        let left = || Ok(pairs.iter()?.filter(move |pair| pair.as_ref().map_or(true, is_left)));
        let mut nearest = NearestSets::new(sets, Tie::SimilarThenFirst, room);
        let leaders = match wanted.cluster_by {
            ClusterBy::Stars => {
                let leaders = stars_of(left()?, sets.len(), room, step)?;
                for pair in left()? {
                    let (a, b, nearness) = pair?;
                    let oriented = nearest::oriented(&leaders, (a, b));
                    oriented.map_or(Ok(()), |(set, other)| nearest.push((set, other, nearness)))?;
                }
                leaders
            }
            ClusterBy::Components => {
                let edges = left()?.map(|pair| pair.map(|(a, b, _)| (a, b)));
                let firsts = components::components(edges, sets.len(), room, step)?;
                components::leaders(&firsts, pairs, sets.len(), room, |a, b| compared.similarity(a, b))?
            }
        };
        if is_dropped {
            nearest::push_both(&mut nearest, pairs)?;
            return Ok((leaders, nearest.of_all(room)?));
        }
        let nearest = nearest.nearer_than_leaders(&leaders, room)?;
        Ok((leaders, nearest))
    }
}
