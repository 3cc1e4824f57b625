//! What belongs together, and which document stands for it.

use rayon::prelude::*;
use simstore::join::Components;
use simstore::{Fingerprint, Result};

use super::against::Stored;
use super::corpus::Corpus;
use super::groups::Groups;
use super::preference::Preference;
use super::similarity::Texts;
use crate::Watch;
use crate::watch::Step;

/// Documents that are counted together: to count each takes time.
const COUNTED: usize = 64;

/// Documents that belong together.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cluster<F> {
    /// In order of input.
    pub(super) members: Vec<usize>,
    /// How similar each is to what stands for the cluster, if that was asked for: from 0 to 1.
    pub(super) similarities: Option<Vec<f32>>,
    pub(super) representative: Representative<F>,
    /// Whether what stands for the cluster is not kept either.
    pub(super) is_dropped: bool,
}

/// What stands for a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Representative<F> {
    Document(usize),
    /// Something that was in a store before: no member is kept.
    Stored(Stored<F>),
}

impl<F: Fingerprint> Cluster<F> {
    /// The fingerprint of what stands for the cluster.
    pub(super) fn centre(&self, corpus: &Corpus<F>) -> F {
        match &self.representative {
            Representative::Document(document) => corpus.fingerprint(*document),
            Representative::Stored(stored) => stored.found.fingerprint,
        }
    }

    /// Whether a member stands for the cluster.
    pub(super) fn is_representative(&self, member: usize) -> bool {
        matches!(self.representative, Representative::Document(document) if document == member)
    }

    /// Whether a member is kept.
    pub(super) fn keeps(&self, member: usize) -> bool {
        !self.is_dropped && self.is_representative(member)
    }

    /// The members that are not kept.
    pub(super) fn removed(&self) -> impl Iterator<Item = usize> + '_ {
        self.members.iter().copied().filter(|&member| !self.keeps(member))
    }

    /// The least similarity of a member to what stands for the cluster, if it is known.
    pub(super) fn least_similar(&self) -> Option<f32> {
        self.similarities.as_ref()?.iter().copied().min_by(f32::total_cmp)
    }

    /// The greatest distance between two members; `None` if there are too many different ones to compare all.
    pub(super) fn spread(&self, corpus: &Corpus<F>) -> Option<u32> {
        /// So many are compared in some tenths of a second.
        const MOST_COMPARED: usize = 1 << 15;
        let mut distinct: Vec<F> = self.members.iter().map(|&member| corpus.fingerprint(member)).collect();
        distinct.par_sort_unstable();
        distinct.dedup();
        if distinct.len() > MOST_COMPARED {
            return None;
        }
        let farthest = |(i, a): (usize, &F)| distinct[i + 1..].iter().map(|b| a.distance(*b)).max();
        distinct.par_iter().enumerate().filter_map(farthest).max().or(Some(0))
    }
}

/// Documents that a chain of near ones connects; by their first documents.
///
/// Near ones are those within the distance and, where texts are at hand, of similar text.
pub(super) fn components<F: Fingerprint>(
    groups: &Groups<F>,
    preference: &Preference,
    texts: Option<&Texts>,
    watch: &dyn Watch,
) -> Result<Vec<Cluster<F>>> {
    let clusters = match texts {
        None => by_key(groups, |_, group| groups.first(group)),
        Some(texts) => {
            let documents = groups.documents();
            let mut components = confirmed(groups, &documents, texts, watch)?;
            by_key(groups, |document, _| components.first(place(&documents, document)))
        }
    };
    let nearest = |members: &[(usize, usize)]| {
        let found = members.iter().filter_map(|&(_, group)| groups.stored(group).first());
        found.map(|(_, stored)| stored).min_by_key(|stored| stored.order()).copied()
    };
    Ok(finish(clusters, preference, nearest))
}

/// Clusters around their representatives, each of which has all its members near; by their first documents.
///
/// Whatever is near something stored goes to the nearest of that. Then the documents by preference: each that is in
/// no cluster yet takes all near ones that are in none.
pub(super) fn stars<F: Fingerprint>(
    groups: &Groups<F>,
    preference: &Preference,
    texts: Option<&Texts>,
    watch: &dyn Watch,
) -> Result<Vec<Cluster<F>>> {
    let documents = groups.documents();
    let mut ranked = documents.clone();
    ranked.par_sort_unstable_by(|&(a, _), &(b, _)| preference.compare(a, b));
    let near = groups.near();
    // Of each group, what is in no cluster yet.
    let mut left: Vec<Vec<usize>> = (0..groups.len())
        .map(
            |group| if groups.stored(group).is_empty() { groups.members(group).to_vec() } else { Vec::new() },
        )
        .collect();
    let mut centres = vec![None; documents.len()];
    let step = Step::new(watch, "documents in clusters");
    for (at, (centre, group)) in ranked.into_iter().enumerate() {
        if at.is_multiple_of(COUNTED) {
            step.add(if at == 0 { 0 } else { COUNTED as u64 })?;
        }
        let at = place(&documents, centre);
        if centres[at].is_some() || !groups.stored(group).is_empty() {
            continue;
        }
        centres[at] = Some(centre);
        let first = near.partition_point(|&(of, ..)| of < group);
        for &(_, other, _) in near[first..].iter().take_while(|&&(of, ..)| of == group) {
            let mut apart = Vec::new();
            for document in std::mem::take(&mut left[other]) {
                let is_near = document == centre
                    || match texts {
                        Some(texts) => {
                            step.add(0)?;
                            texts.alike(centre, document)?.is_some()
                        }
                        None => true,
                    };
                if is_near {
                    centres[place(&documents, document)] = Some(centre);
                } else {
                    apart.push(document);
                }
            }
            left[other] = apart;
        }
    }
    let stored = |group: usize| groups.stored(group).first().map(|(_, stored)| *stored);
    let clusters = by_key(groups, |document, group| {
        let near = stored(group).map(|near| (near.store, near.found.fingerprint, near.found.id));
        (near, centres[place(&documents, document)])
    });
    // All members of a cluster of something stored have the same nearest one.
    Ok(finish(clusters, preference, |members| stored(members[0].1)))
}

fn place(documents: &[(usize, usize)], document: usize) -> usize {
    documents.partition_point(|&(other, _)| other < document)
}

/// Connects documents of similar text. A pair that is connected already needs no look.
fn confirmed<F: Fingerprint>(
    groups: &Groups<F>,
    documents: &[(usize, usize)],
    texts: &Texts,
    watch: &dyn Watch,
) -> Result<Components> {
    let step = Step::new(watch, "texts compared");
    step.add(0)?;
    let mut components = Components::new(documents.len());
    for (one, other, _) in groups.near().into_iter().filter(|&(one, other, _)| one <= other) {
        for (i, &a) in groups.members(one).iter().enumerate() {
            let others = if one == other { &groups.members(one)[i + 1..] } else { groups.members(other) };
            for &b in others {
                let (x, y) = (place(documents, a), place(documents, b));
                if components.first(x) == components.first(y) {
                    continue;
                }
                step.add(1)?;
                if texts.alike(a, b)?.is_some() {
                    components.connect(x, y);
                }
            }
        }
    }
    Ok(components)
}

/// The documents of equal key, with their groups.
fn by_key<F: Fingerprint, K: Ord + Send>(
    groups: &Groups<F>,
    mut key: impl FnMut(usize, usize) -> K,
) -> Vec<Vec<(usize, usize)>> {
    let keyed =
        groups.documents().into_iter().map(|(document, group)| (key(document, group), document, group));
    let mut keyed: Vec<(K, usize, usize)> = keyed.collect();
    keyed.par_sort_unstable();
    let cluster = |members: &[(K, usize, usize)]| {
        members.iter().map(|&(_, document, group)| (document, group)).collect::<Vec<_>>()
    };
    keyed.chunk_by(|a, b| a.0 == b.0).map(cluster).collect()
}

/// Chooses representatives, and leaves out what is alone.
fn finish<F: Fingerprint>(
    clusters: Vec<Vec<(usize, usize)>>,
    preference: &Preference,
    stored: impl Fn(&[(usize, usize)]) -> Option<Stored<F>> + Sync,
) -> Vec<Cluster<F>> {
    let cluster = |members: Vec<(usize, usize)>| {
        let stored = stored(&members);
        let members: Vec<usize> = members.into_iter().map(|(document, _)| document).collect();
        let representative = match stored {
            Some(found) => Representative::Stored(found),
            None if members.len() < 2 => return None,
            None => Representative::Document(preference.best(&members)?),
        };
        Some(Cluster { members, similarities: None, representative, is_dropped: false })
    };
    let mut clusters: Vec<Cluster<F>> = clusters.into_iter().filter_map(cluster).collect();
    clusters.sort_unstable_by_key(|cluster| cluster.members[0]);
    clusters
}
