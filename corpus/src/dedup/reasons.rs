//! What each document that is taken out is a duplicate of: the kept document that is most similar to it, of those that are as similar as
//! was asked for.
//!
//! A chain may connect a document with a kept one that is not: then it is still the kept one that is told. If none is kept, the most
//! similar of all others is told. What is near something in a store is told with the nearest of that.

use std::collections::HashSet;

use simstore::{Fingerprint, Result};

use super::clusters::Representative;
use super::groups::Groups;
use super::nearness::{How, Nearness};
use super::rows::Results;
use super::similarity::Texts;
use super::written::Clustered;
use crate::Watch;
use crate::watch::Step;

/// Finds what documents are duplicates of, where that is not what stands for their cluster.
pub(super) enum Reasons<'a, F: Fingerprint> {
    Distance(ByDistance<'a, F>),
    /// Documents, ascending, each with another, and how similar they are.
    Similarity(Vec<(usize, usize, f32)>),
}

/// Where fingerprints are compared.
pub(super) struct ByDistance<'a, F> {
    groups: &'a Groups<F>,
    texts: Option<&'a Texts>,
    /// Pairs of groups in both directions, as far as they are needed.
    near: Vec<(usize, usize, u32)>,
    /// Documents, ascending, with their groups.
    documents: Vec<(usize, usize)>,
    /// The kept documents of groups, ascending; `None` if none is kept.
    kept: Option<Vec<(usize, usize)>>,
}

impl<'a, F: Fingerprint> Reasons<'a, F> {
    pub(super) fn new(found: &Results<'a, F>, watch: &dyn Watch) -> Result<Self> {
        let is_dropped = found.clusters.iter().any(|cluster| cluster.is_dropped);
        let (groups, texts) = match found.nearness {
            Nearness::Similarity(similar) => return Ok(Reasons::Similarity(similar.nearest(is_dropped))),
            Nearness::Distance { groups, texts } => (groups, texts.as_ref()),
        };
        let near = match (groups.has_pairs(), is_dropped) {
            (true, _) => groups.near(),
            (false, true) => groups.nearest(found.corpus, &Step::new(watch, "nearest documents"))?,
            // One of what chains connect is kept.
            (false, false) => Vec::new(),
        };
        let documents = groups.documents();
        let kept = || {
            let clustered = Clustered::new(found.clusters);
            let removed: HashSet<usize> = clustered.removed().collect();
            // Those in no cluster, too: what was near them may be in those of others.
            let of_groups = documents.iter().map(|&(document, group)| (group, document));
            let mut kept: Vec<(usize, usize)> =
                of_groups.filter(|(_, document)| !removed.contains(document)).collect();
            kept.sort_unstable();
            kept
        };
        let kept = (!is_dropped).then(|| if near.is_empty() { Vec::new() } else { kept() });
        Ok(Reasons::Distance(ByDistance { groups, texts, near, documents, kept }))
    }

    /// What a document is a duplicate of; `None` if it is what stands for its cluster.
    pub(super) fn of(&self, document: usize) -> Result<Option<(Representative<F>, How)>> {
        match self {
            Reasons::Distance(by_distance) => by_distance.of(document),
            Reasons::Similarity(nearest) => {
                let at = nearest.binary_search_by_key(&document, |&(document, ..)| document);
                Ok(at.ok().map(|at| {
                    let (_, other, similarity) = nearest[at];
                    let how = How { similarity: Some(similarity), ..How::default() };
                    (Representative::Document(other), how)
                }))
            }
        }
    }
}

impl<F: Fingerprint> ByDistance<'_, F> {
    fn of(&self, document: usize) -> Result<Option<(Representative<F>, How)>> {
        let Some(group) = group_of(&self.documents, document) else { return Ok(None) };
        if let Some((_, stored)) = self.groups.stored(group).first() {
            let how = How { distance: Some(stored.found.distance), ..How::default() };
            return Ok(Some((Representative::Stored(*stored), how)));
        }
        let mut best: Option<(usize, How)> = None;
        let first = self.near.partition_point(|&(of, ..)| of < group);
        for &(_, other, distance) in self.near[first..].iter().take_while(|&&(of, ..)| of == group) {
            // Without texts, the first of a group is as near as all of them.
            let most = if self.texts.is_some() { usize::MAX } else { 1 };
            for other in self.candidates(other).filter(|&other| other != document).take(most) {
                let similarity = match self.texts {
                    None => None,
                    Some(texts) => match texts.similar(document, other)? {
                        Some(similarity) => Some(similarity as f32),
                        None => continue,
                    },
                };
                let how = How { distance: Some(distance), similarity, error: None };
                if best.is_none_or(|best| is_nearer((other, how), best)) {
                    best = Some((other, how));
                }
            }
        }
        Ok(best.map(|(other, how)| (Representative::Document(other), how)))
    }

    /// Documents of a group that may be told: the kept ones or, if none is kept, all of them.
    fn candidates(&self, group: usize) -> impl Iterator<Item = usize> {
        let (kept, all) = match &self.kept {
            Some(kept) => {
                let start = kept.partition_point(|&(of, _)| of < group);
                let of_group = kept[start..].iter().take_while(move |&&(of, _)| of == group);
                (Some(of_group.map(|&(_, document)| document)), None)
            }
            None => (None, Some(self.groups.members(group).iter().copied())),
        };
        kept.into_iter().flatten().chain(all.into_iter().flatten())
    }
}

/// Whether a document is nearer than another: by its text, or else by its fingerprint; of equally near ones, the first is.
fn is_nearer((document, how): (usize, How), (other, of_other): (usize, How)) -> bool {
    let order = match (how.similarity, of_other.similarity) {
        (Some(similarity), Some(of_other)) => of_other.total_cmp(&similarity),
        _ => how.distance.cmp(&of_other.distance),
    };
    order.then(document.cmp(&other)).is_lt()
}

/// The group of a document, of some that ascend.
fn group_of(documents: &[(usize, usize)], document: usize) -> Option<usize> {
    let at = documents.binary_search_by_key(&document, |&(document, _)| document);
    at.ok().map(|at| documents[at].1)
}
