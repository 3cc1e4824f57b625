//! Components of similar sets, and the set that each one is most similar to, without a list of all similar pairs.
//!
//! All similar pairs of a crowd are as many as its members squared. Components need a few of them, which connect the same sets.

use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::components::{self, Connecting};
use crate::pipeline::dense_groups::Crowds;
use crate::pipeline::nearest::{NearestSets, Tie};
use crate::pipeline::representatives::Leaders;
use crate::pipeline::verify::{Compared, TOGETHER};
use crate::pipeline::{dense_components, dense_pairs};
use crate::rows::{Candidate, Near};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::Rows;

/// Candidates that are taken together. The first one of each set is compared before the others, which it mostly connects.
const SOME: usize = 1 << 12;

/// Sets that may be similar.
pub(crate) struct Similar<'a> {
    pub(crate) candidates: &'a Rows<Candidate>,
    pub(crate) crowded: &'a Marks,
    pub(crate) crowds: Option<&'a Crowds<'a>>,
    pub(crate) compared: &'a Compared<'a>,
    /// Sets that are in no component.
    pub(crate) out: &'a Marks,
    pub(crate) workspace: &'a Workspace,
    pub(crate) step: &'a Step<'a>,
}

impl Similar<'_> {
    /// Components of all similar sets, if those that are out are no candidates. Only sets that are not connected yet are compared.
    pub(crate) fn components(&self) -> Result<Leaders> {
        let mut connecting = Connecting::new(self.compared.sets.len(), self.workspace);
        let mut candidates = self.candidates.iter()?;
        loop {
            let some: Vec<Candidate> = candidates.by_ref().take(SOME).collect::<Result<_>>()?;
            if some.is_empty() {
                return self.leaders(connecting);
            }
            self.step.add(some.len() as u64)?;
            let mut last = None;
            let is_first = |&(set, _): &Candidate| last.replace(set) != Some(set);
            let (firsts, others): (Vec<Candidate>, Vec<Candidate>) = some.into_iter().partition(is_first);
            for mut pairs in [firsts, others] {
                pairs.retain(|&(a, b)| !connecting.are_connected(a, b));
                for some in pairs.chunks(TOGETHER) {
                    self.step.add(0)?;
                    let similar = some.iter().zip(self.compared.alike_each(some)?);
                    let mut similar = similar.filter(|(_, nearness)| nearness.is_some());
                    similar.try_for_each(|(&(a, b), _)| connecting.connect(a, b))?;
                }
            }
        }
    }

    /// The same, and for each set that is similar to another the most similar one.
    pub(crate) fn components_and_nearest(&self) -> Result<(Leaders, Rows<Near>)> {
        let &Similar { candidates, crowded, compared, workspace, step, .. } = self;
        let mut connecting = Connecting::new(compared.sets.len(), workspace);
        let mut nearest = NearestSets::new(compared.sets, Tie::SimilarThenBest, workspace);
        compared.visit_similar(candidates, step, |pair| {
            if !self.out.has(pair.0) && !self.out.has(pair.1) {
                connecting.connect(pair.0, pair.1)?;
            }
            nearest.push_both(pair)
        })?;
        if let Some(crowds) = self.crowds {
            dense_pairs::visit_most_similar(crowds, crowded, step, |pair| nearest.push(pair))?;
        }
        Ok((self.leaders(connecting)?, nearest.of_all()?))
    }

    /// Connects members of crowds, too.
    fn leaders(&self, mut connecting: Connecting<'_>) -> Result<Leaders> {
        let &Similar { crowded, compared, out, workspace, step, .. } = self;
        if let Some(crowds) = self.crowds {
            let members = || crowded.marked().filter(|&set| !out.has(set));
            dense_components::visit_edges(crowds, members, step, |a, b| connecting.connect(a, b))?;
        }
        let firsts = connecting.firsts(step)?;
        let none = workspace.rows().finish()?;
        components::leaders(&firsts, &none, compared.sets.len(), workspace, |a, b| compared.similarity(a, b))
    }
}
