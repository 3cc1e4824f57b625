//! Clustering by stars: every duplicate is directly similar to its representative.
//!
//! One pass visits unique documents in order of preference. The representative of a document is the most
//! preferred representative that is similar to it. If none is similar, the document becomes a representative.
//! So the only state is one bit per unique document.

use std::collections::{BTreeMap, HashMap, HashSet};

use bitvec::vec::BitVec;
use simstore::Result;
use simstore::spill::SortedRecords;

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::dense_groups::{DenseGroups, DenseMember, batches};
use crate::pipeline::prefix_filter::{PrefixIndex, STOP};
use crate::pipeline::verify::{PAIR_BATCH, Verifier};
use crate::rows::{AssignmentRow, Candidate, PairScore, ScoredPair, score_from_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter};

/// Limits of a batch: unique documents, members of dense groups among them (these are compared pairwise), and
/// candidates.
const UNASSIGNED_BATCH: usize = 512;
const DENSE_BATCH: usize = 64;
const CANDIDATE_BATCH: usize = 1 << 16;

/// Assignment of duplicates to representatives.
#[derive(Debug)]
pub(crate) struct Assignments {
    /// Represented unique documents with their representatives, in order.
    pub(crate) rows: Rows<AssignmentRow>,
    /// One bit per unique document: whether another document represents it.
    pub(crate) is_represented: BitVec,
}

/// Assigns representatives from the complete list of near pairs, which must be sorted.
pub(crate) fn assign_from_pairs(
    pairs: impl Iterator<Item = Result<ScoredPair>>,
    uniques: usize,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<Assignments> {
    let (mut rows, mut is_represented) = (workspace.rows(), BitVec::repeat(false, uniques));
    for (at, pair) in pairs.enumerate() {
        let (worse, better, score) = pair?;
        if !is_represented[worse as usize] && !is_represented[better as usize] {
            is_represented.set(worse as usize, true);
            rows.push((worse, better, score))?;
        }
        if at % 1024 == 0 {
            stage.add(0)?;
        }
    }
    Ok(Assignments { rows: rows.finish()?, is_represented })
}

/// Like [`assign_from_pairs`], for sorted pairs in memory: returns the pairs of a represented document and
/// its representative.
pub(crate) fn star_pairs<S: Copy>(pairs: &[(u32, u32, S)]) -> Vec<(u32, u32, S)> {
    let mut is_represented = HashSet::new();
    let is_new = |&&(worse, better, _): &&(u32, u32, S)| {
        !is_represented.contains(&better) && is_represented.insert(worse)
    };
    pairs.iter().filter(is_new).copied().collect()
}

/// Unique document without a representative yet.
struct Unassigned {
    unique: u32,
    /// Whether it is a member of a dense group.
    is_dense: bool,
    /// More preferred candidates, in order of preference.
    better_candidates: Vec<u32>,
}

/// Unique documents that have better candidates or are in dense groups, in order of preference.
struct UnassignedQueue<'a> {
    candidates: RowCursor<RowsIter<'a, Candidate>, Candidate>,
    members: std::iter::Peekable<Box<dyn Iterator<Item = u32> + 'a>>,
}

impl UnassignedQueue<'_> {
    fn next(&mut self) -> Result<Option<Unassigned>> {
        let next_candidate = self.candidates.peek()?.map(|(worse, _)| worse);
        let Some(unique) = next_candidate.into_iter().chain(self.members.peek().copied()).min() else {
            return Ok(None);
        };
        let is_dense = self.members.next_if_eq(&unique).is_some();
        let mut better = Vec::new();
        while let Some((_, one)) = self.candidates.next_if(|&(worse, _)| worse == unique)? {
            better.push(one);
        }
        Ok(Some(Unassigned { unique, is_dense, better_candidates: better }))
    }

    /// Takes the documents of the next batch.
    fn batch(&mut self) -> Result<Vec<Unassigned>> {
        let (mut batch, mut dense_count, mut candidates) = (Vec::new(), 0, 0);
        while batch.len() < UNASSIGNED_BATCH && dense_count < DENSE_BATCH && candidates < CANDIDATE_BATCH {
            let Some(unassigned) = self.next()? else { break };
            candidates += unassigned.better_candidates.len();
            dense_count += usize::from(unassigned.is_dense);
            batch.push(unassigned);
        }
        Ok(batch)
    }
}

/// State of the pass over all unique documents.
struct StarPass<'a> {
    verifier: &'a Verifier<'a>,
    stage: &'a Stage<'a>,
    is_represented: BitVec,
    /// Scores of the batch's candidates; `None` for rejected pairs. They are verified in advance on all
    /// cores, although some turn out not to be needed.
    verified: HashMap<Candidate, Option<PairScore>>,
}

/// Assigns representatives from candidates and dense groups: each document gets the most preferred
/// representative that is similar enough.
pub(crate) fn assign_stars(
    candidates: &Rows<Candidate>,
    dense_members: &AtomicBitSet,
    groups: Option<&DenseGroups<'_>>,
    verifier: &Verifier<'_>,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<Assignments> {
    let uniques = verifier.uniques.len();
    let mut pass = StarPass {
        verifier,
        stage,
        is_represented: BitVec::repeat(false, uniques),
        verified: HashMap::new(),
    };
    let members: Box<dyn Iterator<Item = u32>> = Box::new(dense_members.ones());
    let mut queue = UnassignedQueue { candidates: candidates.cursor()?, members: members.peekable() };
    let mut dense_pass = groups.map(|groups| DensePass::new(groups, workspace));
    let mut rows = workspace.rows();
    loop {
        let batch = queue.batch()?;
        if batch.is_empty() {
            return Ok(Assignments { rows: rows.finish()?, is_represented: pass.is_represented });
        }
        stage.add(0)?;
        if let Some(dense_pass) = &mut dense_pass {
            dense_pass.start_batch(
                batch.iter().filter(|unassigned| unassigned.is_dense).map(|unassigned| unassigned.unique),
                dense_members,
                stage,
            )?;
        }
        pass.verify_candidates(&batch)?;
        for unassigned in &batch {
            let dense_representative = dense_pass
                .as_mut()
                .filter(|_| unassigned.is_dense)
                .and_then(|dense_pass| dense_pass.representative(unassigned.unique));
            let representative = match pass.representative(unassigned)? {
                Some(representative) => Some(
                    dense_representative.filter(|other| other.1 < representative.1).unwrap_or(representative),
                ),
                None => dense_representative,
            };
            match (representative, &mut dense_pass) {
                (Some(representative), _) => {
                    pass.is_represented.set(unassigned.unique as usize, true);
                    rows.push(representative)?;
                }
                (None, Some(dense_pass)) if unassigned.is_dense => {
                    dense_pass.add_representative(unassigned.unique);
                }
                (None, _) => {}
            }
        }
    }
}

impl StarPass<'_> {
    /// Verifies the candidates of a batch. The most preferred candidate of each document often represents it,
    /// so it is verified first. The other candidates are verified only if the first one is rejected.
    fn verify_candidates(&mut self, batch: &[Unassigned]) -> Result<()> {
        self.verified.clear();
        let firsts: Vec<Candidate> =
            batch.iter().filter_map(|unassigned| self.open_candidates(unassigned).next()).collect();
        self.verify(&firsts)?;
        let is_found = |unassigned: &&Unassigned| {
            self.open_candidates(unassigned).next().is_some_and(|first| self.verified[&first].is_some())
        };
        let left = batch.iter().filter(|unassigned| !is_found(unassigned));
        let others: Vec<Candidate> =
            left.flat_map(|unassigned| self.open_candidates(unassigned).skip(1)).collect();
        self.verify(&others)
    }

    /// Pairs of a document and each of its candidates that is a representative so far.
    fn open_candidates<'o>(
        &self,
        unassigned: &'o Unassigned,
    ) -> impl Iterator<Item = Candidate> + use<'o, '_> {
        let better = unassigned.better_candidates.iter().filter(|&&better| !self.is_represented[better as usize]);
        better.map(|&better| (unassigned.unique, better))
    }

    fn verify(&mut self, pairs: &[Candidate]) -> Result<()> {
        for batch in pairs.chunks(PAIR_BATCH) {
            self.stage.add(batch.len() as u64)?;
            self.verified.extend(batch.iter().copied().zip(self.verifier.verify_batch(batch)?));
        }
        Ok(())
    }

    /// Returns the most preferred representative among the candidates of a document.
    fn representative(&self, unassigned: &Unassigned) -> Result<Option<AssignmentRow>> {
        for pair in self.open_candidates(unassigned) {
            let similarity = match self.verified.get(&pair) {
                Some(&similarity) => similarity,
                None => {
                    self.stage.add(1)?;
                    self.verifier.verify(pair.0, pair.1)?
                }
            };
            if let Some(similarity) = similarity {
                return Ok(Some((pair.0, pair.1, similarity)));
            }
        }
        Ok(None)
    }
}

/// Member of a dense group, and its representative in the index, if any.
type DenseAnswer = (DenseMember, Option<AssignmentRow>);

/// Representatives within dense groups: members are searched in an index of representatives, one batch after
/// the other.
struct DensePass<'a> {
    groups: &'a DenseGroups<'a>,
    /// Assignment of duplicates to representatives.
    index: PrefixIndex<'a>,
    /// Members of the current batch.
    members: BTreeMap<u32, DenseAnswer>,
    /// Representatives of the current batch.
    representatives: Vec<u32>,
    /// Assignments to representatives of earlier indexes, which were dropped when they were full; in order.
    from_full_indexes: RowCursor<SortedRecords<AssignmentRow>, AssignmentRow>,
    workspace: &'a Workspace,
}

impl<'a> DensePass<'a> {
    fn new(groups: &'a DenseGroups<'a>, workspace: &'a Workspace) -> Self {
        let none = SortedRecords::Memory(Vec::new().into_iter());
        DensePass {
            groups,
            index: PrefixIndex::new(groups),
            members: BTreeMap::new(),
            representatives: Vec::new(),
            from_full_indexes: RowCursor::new(none),
            workspace,
        }
    }

    /// Starts a batch: searches the index for representatives of the next members, in order.
    fn start_batch(
        &mut self,
        uniques: impl Iterator<Item = u32>,
        dense_members: &AtomicBitSet,
        stage: &Stage<'_>,
    ) -> Result<()> {
        let last = self.members.last_key_value().map(|(&unique, _)| unique);
        for unique in std::mem::take(&mut self.representatives) {
            if let Some((member, _)) = self.members.get(&unique) {
                self.index.add(member, |_, _| {});
            }
        }
        self.members.clear();
        if let Some(last) = last.filter(|_| self.index.is_full()) {
            self.flush_index(last, dense_members, stage)?;
        }
        self.members =
            self.search(uniques)?.into_iter().map(|answered| (answered.0.unique, answered)).collect();
        Ok(())
    }

    /// Searches all indexes so far for a representative of each of `uniques`, in order. Those of earlier
    /// indexes are preferred.
    fn search(&mut self, uniques: impl Iterator<Item = u32>) -> Result<Vec<DenseAnswer>> {
        let min_score = score_from_similarity(self.groups.rule.min_similarity);
        let found = self.index.search(uniques.map(|unique| (unique, min_score)).collect(), |_| STOP)?;
        let preferred = |(member, mut representative): (DenseMember, Vec<AssignmentRow>)| {
            let earlier = self.from_full_indexes.seek(member.unique, |row| row.0)?;
            Ok((member, earlier.or_else(|| representative.pop())))
        };
        found.into_iter().map(preferred).collect()
    }

    /// Searches the full index for representatives of all members after `last`, then replaces it by an empty index.
    fn flush_index(&mut self, last: u32, dense_members: &AtomicBitSet, stage: &Stage<'_>) -> Result<()> {
        let mut found = self.workspace.sorter();
        for batch in
            batches(dense_members.ones().skip_while(|&unique| unique <= last), UNASSIGNED_BATCH, stage)
        {
            for (_, representative) in self.search(batch?.into_iter())? {
                representative.map_or(Ok(()), |representative| found.push(representative))?;
            }
        }
        self.index = PrefixIndex::new(self.groups);
        self.from_full_indexes = RowCursor::new(found.finish()?);
        Ok(())
    }

    /// Returns the representative of a member of the batch: from the indexes, or else from the batch itself.
    fn representative(&mut self, unique: u32) -> Option<AssignmentRow> {
        let (member, representative) = self.members.get(&unique)?;
        if representative.is_some() {
            return *representative;
        }
        self.representatives.iter().find_map(|better| {
            let (other, _) = self.members.get(better)?;
            Some((unique, *better, self.groups.verify(member, other)?))
        })
    }

    /// Records that a member of the batch is a representative.
    fn add_representative(&mut self, unique: u32) {
        self.representatives.push(unique);
    }
}
