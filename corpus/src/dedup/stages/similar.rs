//! The row of stages of documents whose texts are compared: sets, candidates, pairs, and what stands for what.
//!
//! Candidates are pairs of sets that [sketches bring together](super::candidates); they are [compared](super::compare) by the features
//! themselves. So what is reported is similar, and how much is found follows from a formula
//! ([`SketchSearch::recall`](simstore_text::SketchSearch::recall)).

use bitvec::vec::BitVec;
use simstore::Result;
use simstore_text::SketchSearch;
use xxhash_rust::xxh3::Xxh3;

use super::super::kept::{Keeping, KeptReader, KeptWriter, Stage, Unsound, check_of};
use super::super::model::{Led, Near, SketchRow, of_similarity};
use super::super::options::ClusterBy;
use super::super::room::Room;
use super::boilerplate::{self, Boilerplate};
use super::candidates::{Found, Joining};
use super::choice;
use super::compare::Compared;
use super::components;
use super::crowd::Crowds;
use super::crowd_pairs;
use super::distinct::Sets;
use super::features::Features;
use super::marks::Marks;
use super::nearest::{self, NearestSets, Tie};
use super::rule::Rule;
use super::stars::{Leaders, stars, stars_of};
use crate::Watch;
use crate::spill::Rows;
use crate::watch::Step;

/// What is to be found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The least similarity.
    pub(crate) least: f64,
    /// The least probability that two documents of that similarity are found.
    pub(crate) recall: f64,
    pub(crate) cluster_by: ClusterBy,
    /// Whether all pairs are to be known.
    pub(crate) pairs: bool,
}

impl Wanted {
    /// Whether all pairs are looked for, and not only what stands for each.
    pub(crate) fn wants_all(&self) -> bool {
        self.pairs || self.cluster_by == ClusterBy::Components
    }
}

/// A search for similar sets.
pub(crate) struct Search<'a> {
    pub(crate) wanted: Wanted,
    /// Of all documents, in order.
    pub(crate) sketches: &'a Rows<SketchRow>,
    pub(crate) sets: &'a Sets,
    /// Sets that are in pairs, but neither stand for others, nor others for them.
    pub(crate) out: &'a Marks,
    /// How many sets the search is made for.
    pub(crate) count: usize,
    /// Where what stages have found is kept.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) room: &'a Room,
    pub(crate) watch: &'a dyn Watch,
}

/// What it has found.
pub(crate) struct Searched {
    pub(crate) leaders: Leaders,
    /// All similar pairs, if they were looked for.
    pub(crate) pairs: Rows<Near>,
    /// For sets that are more similar to another kept set than to what stands for them: that; or if none is kept, the most similar.
    pub(crate) nearest: Rows<Near>,
    /// Pairs of sets that were compared by their features, and those of them that were not similar enough.
    pub(crate) compared: (u64, u64),
    /// Of crowds: their members, and pairs of these whose sketches were looked at.
    pub(crate) crowds: (u64, u64),
    /// Whether duplicates share what stands in all documents, if that was looked at.
    pub(crate) boilerplate: Option<Boilerplate>,
}

impl Searched {
    fn write(&self, kept: &mut KeptWriter) -> Result<()> {
        kept.all(&self.leaders.led)?;
        kept.all(&self.pairs)?;
        kept.all(&self.nearest)?;
        let mut numbers = vec![self.compared.0, self.compared.1, self.crowds.0, self.crowds.1];
        if let Some(Boilerplate { looked_at, mostly }) = self.boilerplate {
            numbers.extend([looked_at as u64, mostly as u64]);
        }
        kept.rows(numbers.len(), numbers.into_iter().map(Ok))
    }
}

impl Search<'_> {
    /// Searches. `read` reads the features of some documents, which ascend.
    pub(crate) fn run(
        &self,
        is_dropped: bool,
        read: impl FnOnce(&mut dyn Iterator<Item = Result<(u64, u32)>>) -> Result<Features>,
    ) -> Result<Searched> {
        let &Search { wanted, sketches, sets, room, watch, .. } = self;
        let search = choice::choose(wanted.least, wanted.recall, self.count)?.search;
        let rule = Rule { search, least: wanted.least };
        let stages = self.stages(&rule, is_dropped)?;
        if let Some((keeping, [_, last])) = &stages
            && let Some(searched) = keeping.read(last, |kept| self.read(kept))?
        {
            return Ok(searched);
        }
        let Found { candidates, crowded } = match &stages {
            Some((keeping, [first, _])) => self.kept_candidates(rule, keeping, first)?,
            None => self.candidates(rule)?,
        };
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
        let searched = Searched { leaders, pairs, nearest, compared: counts, crowds, boilerplate };
        if let Some((keeping, [_, last])) = &stages {
            keeping.write(last, |kept| searched.write(kept))?;
        }
        Ok(searched)
    }

    /// The stages that are kept: which sets are candidates, and what was found of them.
    fn stages(&self, rule: &Rule, is_dropped: bool) -> Result<Option<(Keeping<'_>, [Stage; 2])>> {
        let Some(keeping) = self.keeping else { return Ok(None) };
        let mut hash = Xxh3::new();
        check_of(&mut hash, self.sketches.iter()?)?;
        check_of(&mut hash, self.sets.all_best().iter()?)?;
        check_of(&mut hash, self.out.marked().map(Ok))?;
        let all = self.wanted.wants_all();
        let SketchSearch { joined, distance, total } = rule.search;
        let joins =
            format!("similar {} all {all} joined {joined} distance {distance} total {total}", rule.least);
        let stars = format!("{joins} {:?} dropped {is_dropped}", self.wanted.cluster_by);
        let check = hash.digest();
        let stages = [Stage::new("candidates", joins, check), Stage::new("leaders", stars, check)];
        Ok(Some((keeping, stages)))
    }

    fn kept_candidates(&self, rule: Rule, keeping: &Keeping<'_>, stage: &Stage) -> Result<Found> {
        let sets = self.sets.len();
        let kept = keeping.read(stage, |kept| {
            let candidates = kept.rows(self.room, |&(a, b)| b < a && (a as usize) < sets)?;
            let crowded = Marks::new(sets);
            for set in kept.rows::<u32>(self.room, |&set| (set as usize) < sets)?.iter()? {
                crowded.set(set?);
            }
            Ok(Found { candidates, crowded })
        })?;
        if let Some(found) = kept {
            return Ok(found);
        }
        let found = self.candidates(rule)?;
        keeping.write(stage, |kept| {
            kept.all(&found.candidates)?;
            kept.rows(found.crowded.count(), found.crowded.marked().map(Ok))
        })?;
        Ok(found)
    }

    /// What was found by an earlier run.
    fn read(&self, kept: &mut KeptReader) -> Result<Searched, Unsound> {
        let sets = self.sets.len();
        let is_pair =
            |&(a, b, nearness): &Near| a != b && (a.max(b) as usize) < sets && nearness <= of_similarity(1.0);
        let is_ordered = |pair: &Near| is_pair(pair) && pair.1 < pair.0;
        let led = kept.rows::<Led>(self.room, is_ordered)?;
        let mut is_led: BitVec = BitVec::repeat(false, sets);
        let cannot_be = || Unsound::Reason("what stands for what cannot be".to_owned());
        for row in led.iter()? {
            if is_led.replace(row?.0 as usize, true) {
                return Err(cannot_be());
            }
        }
        for row in led.iter()? {
            let (set, leader, _) = row?;
            if is_led[leader as usize] || self.out.has(set) || self.out.has(leader) {
                return Err(cannot_be());
            }
        }
        let pairs = kept.rows(self.room, is_ordered)?;
        let nearest = kept.rows(self.room, is_pair)?;
        let mut numbers = Vec::new();
        kept.visit(|number: u64| {
            numbers.push(number);
            Ok(())
        })?;
        let boilerplate = match numbers[..] {
            [_, _, _, _] => None,
            [.., looked_at, mostly] if numbers.len() == 6 => {
                Some(Boilerplate { looked_at: looked_at as usize, mostly: mostly as usize })
            }
            _ => return Err(Unsound::Reason("counts that cannot be".to_owned())),
        };
        let (compared, crowds) = ((numbers[0], numbers[1]), (numbers[2], numbers[3]));
        Ok(Searched { leaders: Leaders { led, is_led }, pairs, nearest, compared, crowds, boilerplate })
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
        Rows::sorted(all)
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
                nearest.push_others(&leaders, left()?)?;
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
