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

/// Maximum number of unique documents in a batch. Representatives are assigned to one batch after the other.
const UNASSIGNED_BATCH: usize = 512;
/// Maximum number of documents of [dense groups](DenseGroups) in a batch of unique documents. The number is
/// small, because these documents are compared with each other.
const DENSE_BATCH: usize = 64;
/// Number of candidates at which a batch of unique documents ends.
const CANDIDATE_BATCH: usize = 1 << 16;

/// Assignment of represented documents to the documents that represent them in their clusters.
#[derive(Debug)]
pub(crate) struct Assignments {
    /// Represented unique documents, each with its representative, in order of the represented documents.
    pub(crate) rows: Rows<AssignmentRow>,
    /// One bit per unique document: whether another document represents it.
    pub(crate) is_represented: BitVec,
}

/// Assigns to each unique document the most preferred representative near it. If no representative is near, the
/// document becomes a representative. `pairs` must contain all near pairs, sorted.
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

/// Assigns representatives like [`assign_from_pairs`], but in memory. Returns the near pairs that consist of a
/// represented document and its representative. `pairs` must contain all near pairs, sorted.
pub(crate) fn star_pairs<S: Copy>(pairs: &[(u32, u32, S)]) -> Vec<(u32, u32, S)> {
    let mut is_represented = HashSet::new();
    let is_new = |&&(worse, better, _): &&(u32, u32, S)| {
        !is_represented.contains(&better) && is_represented.insert(worse)
    };
    pairs.iter().filter(is_new).copied().collect()
}

/// Unique document that has not been assigned a representative yet.
struct Unassigned {
    unique: u32,
    /// Whether the document is in a [dense group](DenseGroups).
    is_dense: bool,
    /// Documents that form a candidate pair with this document and are preferred to it, the most preferred first.
    better_candidates: Vec<u32>,
}

/// Queue of the unique documents that may get a representative, in order of preference. A document may get one if
/// it forms a candidate pair with a more preferred document, or is in a [dense group](DenseGroups).
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

    /// Removes the next batch of documents from the queue, and returns it. If the queue is empty, returns an empty
    /// batch.
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

/// State of the pass over all unique documents that assigns representatives.
struct StarPass<'a> {
    verifier: &'a Verifier<'a>,
    stage: &'a Stage<'a>,
    is_represented: BitVec,
    /// Scores of candidates in the current batch of documents; `None` for a rejected pair. These candidates are
    /// verified in advance, on all cores, so some of the scores are not needed in the end.
    verified: HashMap<Candidate, Option<PairScore>>,
}

/// Assigns to each unique document the most preferred representative that is similar enough, from candidates and
/// from pairs within [dense groups](DenseGroups).
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
    /// Verifies candidates of a batch of documents in advance. First verifies the pair of each document with the
    /// most preferred of its [`better_candidates`](Unassigned::better_candidates), which often becomes its
    /// representative. Verifies the other pairs of the document only if the first pair is rejected.
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

    /// Returns pairs of a document and a document that may become its representative: one of its
    /// [`better_candidates`](Unassigned::better_candidates) that no other document represents. The most preferred
    /// document comes first.
    fn open_candidates<'o>(
        &self,
        unassigned: &'o Unassigned,
    ) -> impl Iterator<Item = Candidate> + use<'o, '_> {
        let better =
            unassigned.better_candidates.iter().filter(|&&better| !self.is_represented[better as usize]);
        better.map(|&better| (unassigned.unique, better))
    }

    fn verify(&mut self, pairs: &[Candidate]) -> Result<()> {
        for batch in pairs.chunks(PAIR_BATCH) {
            self.stage.add(batch.len() as u64)?;
            self.verified.extend(batch.iter().copied().zip(self.verifier.verify_batch(batch)?));
        }
        Ok(())
    }

    /// Returns the most preferred representative that is similar to a document, from the document's
    /// [`better_candidates`](Unassigned::better_candidates); `None` if none is similar. Does not search
    /// [dense groups](DenseGroups).
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

/// Document of a [dense group](DenseGroups), and the representative that a search in the index of representatives
/// has found for it, if any.
type DenseAnswer = (DenseMember, Option<AssignmentRow>);

/// Search for representatives within [dense groups](DenseGroups), for one batch of documents (*members*) after
/// the other. An index holds the representatives of earlier batches.
struct DensePass<'a> {
    groups: &'a DenseGroups<'a>,
    /// Index of the representatives of earlier batches.
    index: PrefixIndex<'a>,
    /// Members of the current batch, by unique document.
    members: BTreeMap<u32, DenseAnswer>,
    /// Members of the current batch that are representatives. They are not in the index yet.
    representatives: Vec<u32>,
    /// Representatives that were found in full indexes, for members of later batches, in order of these members. When
    /// the index is full, it is searched for representatives of all later members, and replaced by an empty index.
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

    /// Starts the next batch, which consists of the unique documents `uniques`. Adds the representatives of the
    /// previous batch to the index, then searches the index for representatives of the new documents. `dense_members`
    /// has the documents of all batches.
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

    /// Searches the index for a representative of each document in `uniques`. If an earlier index, replaced when it was
    /// full, had a representative of the document, returns that one. Calls must be in ascending order of documents.
    fn search(&mut self, uniques: impl Iterator<Item = u32>) -> Result<Vec<DenseAnswer>> {
        let min_score = score_from_similarity(self.groups.rule.min_similarity);
        let found = self.index.search(uniques.map(|unique| (unique, min_score)).collect(), |_| STOP)?;
        let preferred = |(member, mut representative): (DenseMember, Vec<AssignmentRow>)| {
            let earlier = self.from_full_indexes.seek(member.unique, |row| row.0)?;
            Ok((member, earlier.or_else(|| representative.pop())))
        };
        found.into_iter().map(preferred).collect()
    }

    /// Replaces the index, which is full, by an empty one. Before that, searches the full index for representatives
    /// of all documents with numbers greater than `last`, and keeps the results for the later batches.
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

    /// Returns the representative of a member of the current batch: the one that was found in an index, or else the
    /// first similar representative in the batch itself. `None` if no representative is similar.
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

    /// Records that a member of the current batch is a representative.
    fn add_representative(&mut self, unique: u32) {
        self.representatives.push(unique);
    }
}
