//! The stages for documents whose texts are compared: sets, candidates, pairs, representatives.
//!
//! Candidates are pairs of sets that [sketches bring together](crate::pipeline::candidates); they are [compared](crate::pipeline::verify) by the features
//! themselves. So what is reported is similar, and how much is found follows from a formula
//! ([`SketchSearch::recall`](simstore_text::SketchSearch::recall)).

use bitvec::vec::BitVec;
use simstore::Result;
use simstore_text::SketchSearch;
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::stage_results::{Keeping, KeptReader, KeptWriter, Stage, Unsound, check_of};
use crate::config::ClusterBy;
use crate::config::band_choice;
use crate::pipeline::bit_set::Marks;
use crate::pipeline::boilerplate::{self, Boilerplate};
use crate::pipeline::candidate_rule::Rule;
use crate::pipeline::candidates::{Found, Joining};
use crate::pipeline::dense_groups::Crowds;
use crate::pipeline::dense_pairs;
use crate::pipeline::exact::Sets;
use crate::pipeline::features::FeatureSource;
use crate::pipeline::nearest::{self, NearestSets, Tie};
use crate::pipeline::representatives::{Leaders, stars};
use crate::pipeline::similar_components::Similar;
use crate::pipeline::verify::Compared;
use crate::rows::{Led, Near, SketchRow, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::Watch;
use simstore_corpus::spill::Rows;

/// The question.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// The least similarity.
    pub(crate) least: f64,
    /// The least probability that two documents of that similarity are found.
    pub(crate) recall: f64,
    pub(crate) cluster_by: ClusterBy,
    /// Whether to list all similar pairs.
    pub(crate) pairs: bool,
    /// Whether no document of a cluster is kept.
    pub(crate) keeps_none: bool,
}

impl Wanted {
    /// Whether documents that are similar to a stored one are compared with others, too.
    fn compares_all(&self) -> bool {
        self.pairs || self.keeps_none
    }
}

/// A search for similar sets.
pub(crate) struct Search<'a> {
    pub(crate) wanted: Wanted,
    /// Of all documents, in order.
    pub(crate) sketches: &'a Rows<SketchRow>,
    pub(crate) sets: &'a Sets,
    /// Sets that are similar to a stored document: they are in pairs, but neither represent others nor are represented.
    pub(crate) out: &'a Marks,
    /// How many sets the search is made for.
    pub(crate) count: usize,
    pub(crate) source: FeatureSource<'a>,
    /// Where what stages have found is kept.
    pub(crate) keeping: Option<Keeping<'a>>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

/// Result of a search.
pub(crate) struct Searched {
    pub(crate) leaders: Leaders,
    /// All similar pairs, if they were looked for.
    pub(crate) pairs: Rows<Near>,
    /// The most similar kept set of each represented set, where that is not its representative. If none is kept, the most similar other
    /// set of each set.
    pub(crate) nearest: Rows<Near>,
    /// Number of pairs of sets whose features were compared, and of pairs that were not similar enough.
    pub(crate) compared: (u64, u64),
    /// Of crowds: their members, and pairs of these whose sketches were looked at.
    pub(crate) crowds: (u64, u64),
    /// Whether duplicates share text that all documents have, if that was examined.
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
    /// Finds candidates and compares them, or returns what an earlier run has kept.
    pub(crate) fn run(&self) -> Result<Searched> {
        let search = band_choice::choose(self.wanted.least, self.wanted.recall, self.count)?.search;
        let rule = Rule { search, least: self.wanted.least };
        let Some((keeping, [first, last])) = self.stages(&rule)? else {
            return self.compare(rule, self.candidates(rule)?);
        };
        let make = || self.compare(rule, self.kept_candidates(rule, &keeping, &first)?);
        keeping.kept(&last, |kept| self.read(kept), make, Searched::write)
    }

    /// Compares the features of candidates.
    fn compare(&self, rule: Rule, Found { candidates, crowded }: Found) -> Result<Searched> {
        let &Search { wanted, sketches, sets, workspace, watch, .. } = self;
        let is_any = !candidates.is_empty() || crowded.count() > 0;
        let sample = if is_any { boilerplate::sample(sets, sketches)? } else { Vec::new() };
        let read;
        let features = match self.source {
            FeatureSource::Taken(features) => features,
            FeatureSource::Documents(documents) => {
                read = documents.features(self.compared_documents(&candidates, &crowded, &sample)?)?;
                &read
            }
        };
        let compared = Compared::new(sets, features, wanted.least);
        let step = Step::new(watch, "texts compared");
        let crowds = match crowded.count() {
            0 => None,
            _ => Some(Crowds::new(&compared, sketches, rule, &crowded, workspace, &step)?),
        };
        let similar = Similar {
            candidates: &candidates,
            crowded: &crowded,
            crowds: crowds.as_ref(),
            compared: &compared,
            out: self.out,
            workspace,
            step: &step,
        };
        let none = || workspace.rows().finish();
        let (leaders, pairs, nearest) = match (wanted.pairs, wanted.cluster_by) {
            (true, _) => {
                let pairs = self.all_pairs(&similar)?;
                let edges = pairs.iter()?.map(|pair| pair.map(|(a, b, _)| (a, b)));
                let edges = (wanted.cluster_by == ClusterBy::Components).then_some(edges);
                let nearest = NearestSets::new(sets, Tie::SimilarThenBest, workspace);
                let (out, compared, keeps_none) = (self.out, Some(&compared), wanted.keeps_none);
                let (leaders, nearest) =
                    nearest.with_leaders(&pairs, edges, out, compared, keeps_none, &step)?;
                (leaders, pairs, nearest)
            }
            (false, ClusterBy::Components) if wanted.keeps_none => {
                let (leaders, nearest) = similar.components_and_nearest()?;
                (leaders, none()?, nearest)
            }
            (false, ClusterBy::Components) => (similar.components()?, none()?, none()?),
            (false, ClusterBy::Stars) => {
                let leaders = stars(&candidates, &crowded, crowds.as_ref(), &compared, workspace, &step)?;
                let mut nearest = NearestSets::new(sets, Tie::SimilarThenBest, workspace);
                nearest::compare_with_others(
                    &candidates, &leaders, &compared, &mut nearest, workspace, &step,
                )?;
                if let Some(crowds) = &crowds {
                    dense_pairs::visit_nearest(crowds, &crowded, &leaders, &step, |pair| nearest.push(pair))?;
                }
                let nearest = nearest.nearer_than_leaders(&leaders)?;
                (leaders, none()?, nearest)
            }
        };
        let counts = compared.counts();
        let crowds = (crowded.count() as u64, crowds.as_ref().map_or(0, Crowds::looked_at));
        let boilerplate = boilerplate::boilerplate(&sample, &leaders.led, &compared, sketches)?;
        Ok(Searched { leaders, pairs, nearest, compared: counts, crowds, boilerplate })
    }

    /// The stages that are kept: candidates, and representatives.
    fn stages(&self, rule: &Rule) -> Result<Option<(Keeping<'_>, [Stage; 2])>> {
        let Some(keeping) = self.keeping else { return Ok(None) };
        let mut hash = Xxh3::new();
        check_of(&mut hash, self.sketches.iter()?)?;
        check_of(&mut hash, self.sets.all_best().iter()?)?;
        check_of(&mut hash, self.out.marked().map(Ok))?;
        let all = self.wanted.compares_all();
        let SketchSearch { joined, distance, total } = rule.search;
        let joins =
            format!("similar {} all {all} joined {joined} distance {distance} total {total}", rule.least);
        let Wanted { cluster_by, pairs, keeps_none, .. } = self.wanted;
        let stars = format!("{joins} {cluster_by:?} dropped {keeps_none} pairs {pairs} ties kept");
        let check = hash.digest();
        let stages = [Stage::new("candidates", joins, check), Stage::new("leaders", stars, check)];
        Ok(Some((keeping, stages)))
    }

    fn kept_candidates(&self, rule: Rule, keeping: &Keeping<'_>, stage: &Stage) -> Result<Found> {
        let sets = self.sets.len();
        let read = |kept: &mut KeptReader| {
            let candidates = kept.rows(self.workspace, |&(a, b)| b < a && (a as usize) < sets)?;
            let crowded = Marks::new(sets);
            for set in kept.rows::<u32>(self.workspace, |&set| (set as usize) < sets)?.iter()? {
                crowded.set(set?);
            }
            for pair in candidates.iter()? {
                let (a, b) = pair?;
                if crowded.has(a) && crowded.has(b) {
                    return Err(Unsound::Reason("candidates that are two sets of crowds".to_owned()));
                }
            }
            Ok(Found { candidates, crowded })
        };
        let make = || self.candidates(rule);
        keeping.kept(stage, read, make, |found, kept| {
            kept.all(&found.candidates)?;
            kept.rows(found.crowded.count(), found.crowded.marked().map(Ok))
        })
    }

    /// Result of an earlier run.
    fn read(&self, kept: &mut KeptReader) -> Result<Searched, Unsound> {
        let sets = self.sets.len();
        let is_pair =
            |&(a, b, nearness): &Near| a != b && (a.max(b) as usize) < sets && nearness <= of_similarity(1.0);
        let is_ordered = |pair: &Near| is_pair(pair) && pair.1 < pair.0;
        let led = kept.rows::<Led>(self.workspace, is_ordered)?;
        let mut is_led: BitVec = BitVec::repeat(false, sets);
        let cannot_be = || Unsound::Reason("representatives that cannot be".to_owned());
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
        let pairs = kept.rows(self.workspace, is_ordered)?;
        let nearest = kept.rows(self.workspace, is_pair)?;
        let numbers = kept.numbers()?;
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
        let &Search { wanted, sketches, sets, out, workspace, watch, .. } = self;
        let step = Step::new(watch, "candidates");
        step.add(0)?;
        let none = Marks::new(sets.len());
        let out = if wanted.compares_all() { &none } else { out };
        Joining { sketches, sets, out, rule, workspace, step: &step }.find()
    }

    /// The best documents of all sets that may be compared, ascending, each as a place in the corpus and as a number.
    fn compared_documents(
        &self,
        candidates: &Rows<(u32, u32)>,
        crowded: &Marks,
        sample: &[u32],
    ) -> Result<impl Iterator<Item = Result<(u64, u32)>> + use<>> {
        let wanted = Marks::new(self.sets.len());
        sample.iter().for_each(|&set| wanted.set(set));
        crowded.marked().for_each(|set| wanted.set(set));
        for pair in candidates.iter()? {
            let (a, b) = pair?;
            wanted.set(a);
            wanted.set(b);
        }
        let mut documents = self.workspace.sorter();
        for set in wanted.marked() {
            documents.push(self.sets.best(set)?)?;
        }
        Ok(documents.finish()?.map(|document| document.map(|document| (document.into(), document))))
    }

    /// All similar pairs.
    fn all_pairs(&self, similar: &Similar<'_>) -> Result<Rows<Near>> {
        let &Similar { candidates, crowded, compared, step, .. } = similar;
        let pairs = compared.similar_pairs(candidates, self.workspace, step)?;
        let Some(crowds) = similar.crowds else { return Ok(pairs) };
        let mut all = self.workspace.sorter();
        pairs.iter()?.try_for_each(|pair| all.push(pair?))?;
        dense_pairs::visit_pairs(crowds, crowded, step, |pair| all.push(pair))?;
        Rows::sorted(all)
    }
}
