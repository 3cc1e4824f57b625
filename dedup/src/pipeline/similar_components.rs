//! Connected components of similar documents, without a list of all similar pairs.
//!
//! A dense group of n members can have about n² similar pairs. About n of these pairs suffice to find the same
//! components, so only such pairs are searched for.

use simstore::Result;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::components::{self, Connector};
use crate::pipeline::dense_groups::DenseGroups;
use crate::pipeline::removal_reasons::{NearestOrder, NearestSearch};
use crate::pipeline::representatives::Assignments;
use crate::pipeline::verify::{PAIR_BATCH, Verifier};
use crate::pipeline::{dense_components, dense_pairs};
use crate::rows::{Candidate, ScoredPair};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Number of candidates in a batch. Of each batch, first one candidate of each document is verified. Then the other
/// candidates are verified, without those whose two documents are already in the same component.
const CANDIDATE_BATCH: usize = 1 << 12;

/// Search for the connected components of similar documents, from candidates and [dense groups](DenseGroups).
pub(crate) struct ComponentSearch<'a> {
    pub(crate) candidates: &'a Rows<Candidate>,
    pub(crate) dense_members: &'a AtomicBitSet,
    pub(crate) groups: Option<&'a DenseGroups<'a>>,
    pub(crate) verifier: &'a Verifier<'a>,
    /// Unique documents that are kept out of all components, because a stored document is similar to them.
    pub(crate) excluded: &'a AtomicBitSet,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stage: &'a Stage<'a>,
}

impl ComponentSearch<'_> {
    /// Returns the connected components of similar documents, as assignments to one representative per component.
    /// Does not verify a candidate pair whose documents are already in the same component.
    ///
    /// The field `candidates` must not contain documents of the field `excluded`.
    pub(crate) fn components(&self) -> Result<Assignments> {
        let mut connector = Connector::new(self.verifier.uniques.len(), self.workspace);
        let mut candidates = self.candidates.iter()?;
        loop {
            let batch: Vec<Candidate> = candidates.by_ref().take(CANDIDATE_BATCH).collect::<Result<_>>()?;
            if batch.is_empty() {
                return self.connect_dense(connector);
            }
            self.stage.add(batch.len() as u64)?;
            let mut last = None;
            let is_first = |&(unique, _): &Candidate| last.replace(unique) != Some(unique);
            let (firsts, others): (Vec<Candidate>, Vec<Candidate>) = batch.into_iter().partition(is_first);
            for mut pairs in [firsts, others] {
                pairs.retain(|&(a, b)| !connector.are_connected(a, b));
                for batch in pairs.chunks(PAIR_BATCH) {
                    self.stage.add(0)?;
                    let similar = batch.iter().zip(self.verifier.verify_batch(batch)?);
                    let mut similar = similar.filter(|(_, score)| score.is_some());
                    similar.try_for_each(|(&(a, b), _)| connector.connect(a, b))?;
                }
            }
        }
    }

    /// Returns the connected components of similar documents, and the most similar other document of each document.
    /// Verifies all candidates, unlike [`components`](ComponentSearch::components).
    pub(crate) fn components_and_nearest(&self) -> Result<(Assignments, Rows<ScoredPair>)> {
        let &ComponentSearch { candidates, dense_members, verifier, workspace, stage, .. } = self;
        let mut connector = Connector::new(verifier.uniques.len(), workspace);
        let mut nearest = NearestSearch::new(verifier.uniques, NearestOrder::MostSimilarFirst, workspace);
        verifier.visit_similar(candidates, stage, |pair| {
            if !self.excluded.contains(pair.0) && !self.excluded.contains(pair.1) {
                connector.connect(pair.0, pair.1)?;
            }
            nearest.push_both(pair)
        })?;
        if let Some(groups) = self.groups {
            dense_pairs::visit_most_similar(groups, dense_members, stage, |pair| nearest.push(pair))?;
        }
        Ok((self.connect_dense(connector)?, nearest.into_nearest()?))
    }

    /// Adds edges between similar documents of [dense groups](DenseGroups) to `connector`. Returns the components of
    /// all edges.
    fn connect_dense(&self, mut connector: Connector<'_>) -> Result<Assignments> {
        let &ComponentSearch { dense_members, verifier, excluded, workspace, stage, .. } = self;
        if let Some(groups) = self.groups {
            let members = || dense_members.ones().filter(|&unique| !excluded.contains(unique));
            dense_components::visit_edges(groups, members, stage, |a, b| connector.connect(a, b))?;
        }
        let firsts = connector.into_firsts(stage)?;
        let none = workspace.rows().finish()?;
        components::assignments(&firsts, &none, verifier.uniques.len(), workspace, |a, b| {
            verifier.exact_score(a, b)
        })
    }
}
