//! Finds similar pairs within dense groups. In a *dense group*, each document (*member*) is near many others. One
//! search finds all pairs, one finds pairs of a document and a representative, and one finds, for each member, the
//! most similar other member.

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::dense_groups::{DenseGroups, DenseMember, batches};
use crate::pipeline::prefix_filter::{PrefixIndex, UNCHANGED};
use crate::pipeline::representatives::Assignments;
use crate::rows::{PairScore, ScoredPair, score_from_similarity};
use simstore_corpus::Stage;

/// Number of documents for which similar documents are searched at the same time, on all cores.
const MEMBER_BATCH: usize = 64;

/// Visits all similar pairs of documents in [dense groups](DenseGroups). The first document of a pair is the less
/// preferred one.
pub(crate) fn visit_pairs(
    groups: &DenseGroups<'_>,
    dense_members: &AtomicBitSet,
    stage: &Stage<'_>,
    mut visitor: impl FnMut(ScoredPair) -> Result<()>,
) -> Result<()> {
    let min_score = score_from_similarity(groups.rule.min_similarity);
    let mut index = PrefixIndex::new(groups);
    for batch in batches(dense_members.ones().map(|unique| (unique, min_score)), MEMBER_BATCH, stage) {
        let batch = batch?;
        let last = batch.last().copied();
        let members = search_batch(batch, &index, &mut visitor)?;
        // Members of the same batch are not in the index yet.
        for (at, one) in members.iter().enumerate() {
            for other in &members[..at] {
                groups
                    .verify(one, other)
                    .map_or(Ok(()), |score| visitor((one.unique, other.unique, score)))?;
            }
            index.add(one, |_, _| {});
        }
        if index.is_full() {
            let after =
                dense_members.ones().map(|unique| (unique, min_score)).skip_while(|&one| Some(one) <= last);
            for batch in batches(after, MEMBER_BATCH, stage) {
                search_batch(batch?, &index, &mut visitor)?;
            }
            index = PrefixIndex::new(groups);
        }
    }
    Ok(())
}

/// Visits pairs of a represented document and a representative, both in [dense groups](DenseGroups). Visits a pair
/// only if the two are at least as similar as the represented document and its own representative.
pub(crate) fn visit_nearer_representatives(
    groups: &DenseGroups<'_>,
    dense_members: &AtomicBitSet,
    assignments: &Assignments,
    stage: &Stage<'_>,
    mut visitor: impl FnMut(ScoredPair) -> Result<()>,
) -> Result<()> {
    let mut representatives =
        dense_members.ones().filter(|&unique| !assignments.is_represented[unique as usize]).peekable();
    while representatives.peek().is_some() {
        let index = fill_index(groups, &mut representatives, stage)?;
        let represented = assignments.rows.iter()?.filter_map(|row| match row {
            Ok((unique, _, score)) => dense_members.contains(unique).then_some(Ok((unique, score))),
            Err(error) => Some(Err(error)),
        });
        for batch in batches(represented, MEMBER_BATCH, stage) {
            search_batch(batch?.into_iter().collect::<Result<_>>()?, &index, &mut visitor)?;
        }
    }
    Ok(())
}

/// For each document in [dense groups](DenseGroups), visits its pair with the most similar other document of these
/// groups. If several others are equally similar, visits the pair with the first one. If an index of all documents
/// exceeds the memory, the documents are indexed in several portions, one after the other. Then visits, for each
/// document, its pair with the most similar document of each portion.
pub(crate) fn visit_most_similar(
    groups: &DenseGroups<'_>,
    dense_members: &AtomicBitSet,
    stage: &Stage<'_>,
    mut visitor: impl FnMut(ScoredPair) -> Result<()>,
) -> Result<()> {
    let min_score = score_from_similarity(groups.rule.min_similarity);
    let mut members = dense_members.ones().peekable();
    while members.peek().is_some() {
        let index = fill_index(groups, &mut members, stage)?;
        for batch in batches(dense_members.ones().map(|unique| (unique, min_score)), MEMBER_BATCH, stage) {
            let found = index.search(batch?, |score| score + 1)?;
            found.into_iter().filter_map(|(_, mut found)| found.pop()).try_for_each(&mut visitor)?;
        }
    }
    Ok(())
}

/// Creates an index of the next documents from `uniques`, as many as the memory limit of an index allows.
fn fill_index<'a>(
    groups: &'a DenseGroups<'a>,
    uniques: &mut impl Iterator<Item = u32>,
    stage: &Stage<'_>,
) -> Result<PrefixIndex<'a>> {
    let mut index = PrefixIndex::new(groups);
    let mut uniques = batches(uniques, MEMBER_BATCH, stage);
    while !index.is_full()
        && let Some(batch) = uniques.next()
    {
        let members: Vec<DenseMember> =
            batch?.into_par_iter().map(|unique| groups.read_member(unique)).collect::<Result<_>>()?;
        members.iter().for_each(|one| index.add(one, |_, _| {}));
    }
    Ok(index)
}

/// Searches the index for documents similar to the documents in `batch`, whose items are (unique document, minimum
/// score). Visits all pairs with at least the minimum score. Returns the documents of `batch` with their features.
fn search_batch(
    batch: Vec<(u32, PairScore)>,
    index: &PrefixIndex<'_>,
    visitor: &mut impl FnMut(ScoredPair) -> Result<()>,
) -> Result<Vec<DenseMember>> {
    let found = index.search(batch, |_| UNCHANGED)?;
    found
        .into_iter()
        .map(|(member, pairs)| {
            pairs.into_iter().try_for_each(&mut *visitor)?;
            Ok(member)
        })
        .collect()
}
