//! Candidates: pairs of unique documents with near signatures. For each of the first few bands of the signatures, a
//! *join* finds all pairs whose values of the band are near. The whole signatures of these pairs are compared, too.
//!
//! If the signatures are in memory, they are compared as soon as a join finds a pair, and a pair that a join of
//! an earlier band has found is skipped. If the signatures are on disk, they are compared after all joins. If
//! the join of a band is too large for the memory, its rows are divided into *parts*, which are files that are
//! joined one at a time. One division does not bring all near rows together, so the rows are divided in several
//! ways, called *tables*.
//!
//! In a *dense group*, each document is near many others. A pair of documents in dense groups is not a candidate.
//! Instead, a [search by rare features](crate::pipeline::dense_groups) finds the similar pairs of these documents.

use std::iter;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use simstore::join::{self, DenseGroupVisitor, FingerprintPair, IndexPair, JoinParts};
use simstore::threads::lock;
use simstore::{Error, Result};

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::candidate_rule::{CandidateRule, may_be_similar};
use crate::pipeline::counter::SaturatingCounter;
use crate::pipeline::hamming::{first_error, stop_after};
use crate::pipeline::unique_documents::UniqueDocuments;
use crate::rows::{Candidate, SignatureRow};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{Rows, Sorter, SpillWriter};

/// Number of near pairs per document from which a group of documents counts as
/// [dense](crate::pipeline::dense_groups).
const DENSE_PAIRS_PER_MEMBER: usize = 64;
/// Maximum number of candidates of a unique document. A document with more candidates counts as part of a [dense
/// group](crate::pipeline::dense_groups), which is searched in another way.
const MAX_PAIRS_PER_DOCUMENT: u16 = 1024;
/// Maximum number of files into which the values of a band are divided if they exceed the memory. All files are
/// written at the same time.
const MAX_PARTS: u64 = 512;
/// Memory per unique document of the search for near values of a band, in bytes: the value and the index of the
/// document, the start of the rows with each value, the memory of the search itself, and a reserve. The reserve is
/// for files that are larger than average, if the values are divided into files.
const JOINED_BAND_BYTES: u64 = 64;
/// Maximum size of the write buffer of each file into which the values of a band are divided, in bytes.
const MAX_BUFFER_BYTES: u64 = 1 << 18;
/// Minimum size of the write buffer of each file into which the values of a band are divided, in bytes.
const MIN_BUFFER_BYTES: u64 = 1 << 12;
/// Number of pairs that a thread collects before it moves them to the [`PairCollector`].
const PAIR_BATCH: usize = 4096;

/// Search for candidates. For one band of the signatures after the other, finds the pairs of unique documents whose
/// values of this band are near.
pub(crate) struct BandJoin<'a> {
    /// Signatures of all documents, in document order.
    pub(crate) signatures: &'a Rows<SignatureRow>,
    pub(crate) uniques: &'a UniqueDocuments,
    /// Unique documents that take no part in the search.
    pub(crate) excluded: &'a AtomicBitSet,
    pub(crate) rule: CandidateRule,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stage: &'a Stage<'a>,
}

/// Result of the search for candidates in all searched bands.
pub(crate) struct JoinedCandidates {
    /// Candidates, sorted, each pair once. Pairs of two documents in [`dense_members`](Self::dense_members) are left out.
    pub(crate) candidates: Rows<Candidate>,
    /// Unique documents in [dense groups](crate::pipeline::dense_groups), where each document is near many others.
    pub(crate) dense_members: AtomicBitSet,
}

impl BandJoin<'_> {
    pub(crate) fn find(&self) -> Result<JoinedCandidates> {
        let counts = (0..self.uniques.len()).map(|_| SaturatingCounter::default()).collect();
        let (pairs, dense_members) =
            (Mutex::new(self.workspace.sorter()), AtomicBitSet::new(self.uniques.len()));
        let found = PairCollector { pairs, dense_members, counts };
        let in_memory = self.in_memory();
        match in_memory {
            Some((rows, best)) => {
                let uniques = (0..best.len() as u32)
                    .filter(|&unique| !self.excluded.contains(unique))
                    .collect::<Vec<_>>();
                for band in 0..self.rule.search.bands {
                    let row = |&unique: &u32| (rows[best[unique as usize] as usize].bands[band], unique);
                    self.join(uniques.par_iter().map(row).collect(), None, band, &found)?;
                }
            }
            None => self.find_on_disk(&found)?,
        }
        let PairCollector { pairs, dense_members, .. } = found;
        let candidates = Rows::from_sorter(pairs.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        let candidates = match in_memory.is_some() && dense_members.count() == 0 {
            true => candidates,
            false => self.filter_pairs(&candidates, &dense_members, in_memory.is_some())?,
        };
        Ok(JoinedCandidates { candidates, dense_members })
    }

    /// Returns the signatures of all documents, and the most preferred document of each unique document. Returns
    /// `None` if one of these two lists is on disk.
    #[inline]
    fn in_memory(&self) -> Option<(&[SignatureRow], &[u32])> {
        self.signatures.as_slice().zip(self.uniques.best_documents().as_slice())
    }

    /// Whether two unique documents with near values of band number `band` form a candidate pair, and no band before
    /// `band` is near. Always true if the signatures are on disk, because [`filter_pairs`](Self::filter_pairs)
    /// compares them later.
    #[inline]
    fn is_new(&self, a: u32, b: u32, band: usize) -> bool {
        let Some((rows, best)) = self.in_memory() else { return true };
        let row = |unique: u32| &rows[best[unique as usize] as usize];
        self.rule.is_new(row(a), row(b), band)
    }

    fn find_on_disk(&self, found: &PairCollector) -> Result<()> {
        let bests = self.uniques_by_best()?;
        let memory = self.workspace.budget.bytes / 2;
        let parts = parts_for(bests.len() as u64 * JOINED_BAND_BYTES, memory, self.workspace)?;
        let parts = JoinParts::<u64>::with_parts(self.rule.search.band_distance, parts as usize)?;
        let max_rows = (memory / size_of::<(u64, u32)>() as u64).max(1 << 12);
        for band in 0..self.rule.search.bands {
            for table in 0..parts.table_count() {
                let part = Some((&parts, table)).filter(|(parts, _)| parts.part_count() > 1);
                for rows in self.parts(&bests, part, band)? {
                    if rows.len() as u64 > max_rows {
                        // A part that is too large for the memory has very many near bands: treat it as a
                        // dense group.
                        for row in rows.iter()? {
                            found.dense_members.set(row?.1);
                        }
                        continue;
                    }
                    let mut ordered = Vec::with_capacity(rows.len());
                    rows.iter()?.try_for_each(|row| row.map(|row| ordered.push(row)))?;
                    drop(rows);
                    self.join(ordered, part, band, found)?;
                }
                if part.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Returns rows (value of band number `band`, unique document). `bests` has pairs (most preferred document, unique
    /// document); the band is taken from the signature of the preferred document. If `part` is `None`, all rows are
    /// together in memory. Otherwise they are divided into files. [`JoinParts`] knows several ways to divide them,
    /// called *tables*; `part` has the number of the table to use.
    fn parts(
        &self,
        bests: &Rows<(u32, u32)>,
        part: Option<(&JoinParts<u64>, usize)>,
        band: usize,
    ) -> Result<Vec<Rows<(u64, u32)>>> {
        let Some((parts, table)) = part else {
            let mut all = Vec::with_capacity(bests.len());
            self.visit(bests, |unique, row| {
                all.push((row.bands[band], unique));
                Ok(())
            })?;
            return Ok(vec![Rows::Memory(all)]);
        };
        let mut files = create_parts(self.workspace, parts.part_count())?;
        self.visit(bests, |unique, row| {
            let word = row.bands[band];
            files[parts.part(table, word)].push_record((word, unique))
        })?;
        files.into_iter().map(|file| Ok(Rows::from_file(file.finish()?))).collect()
    }

    /// Removes repeated pairs, and pairs of two documents in `dense_members`. (Such a pair was collected before both
    /// documents were known to be in a dense group.) Also removes pairs whose signatures are too far apart, unless
    /// `is_checked` says that the signatures were compared before.
    fn filter_pairs(
        &self,
        pairs: &Rows<Candidate>,
        dense_members: &AtomicBitSet,
        is_checked: bool,
    ) -> Result<Rows<Candidate>> {
        let (mut candidates, mut last) = (self.workspace.rows(), None);
        let row = |unique: u32| self.signatures.get(self.uniques.best_document(unique)? as usize);
        for (at, pair) in pairs.iter()?.enumerate() {
            let pair @ (a, b) = pair?;
            if at % (1 << 12) == 0 {
                self.stage.add(0)?;
            }
            // Several bands may have found the same pair.
            if last.replace(pair) == Some(pair) || dense_members.contains(a) && dense_members.contains(b) {
                continue;
            }
            let is_near = is_checked || {
                let (one, other) = (row(a)?, row(b)?);
                self.rule.accepts(&one.bands, &other.bands)
                    && may_be_similar(one.features, other.features, self.rule.min_similarity)
            };
            if is_near {
                candidates.push(pair)?;
            }
        }
        candidates.finish()
    }

    /// Returns sorted rows (most preferred document, unique document) for all unique documents that are not
    /// excluded.
    fn uniques_by_best(&self) -> Result<Rows<(u32, u32)>> {
        let bests = (0..)
            .zip(self.uniques.best_documents().iter()?)
            .filter(|&(unique, _)| !self.excluded.contains(unique));
        self.workspace.sorted(bests.map(|(unique, best)| Ok((best?, unique))))
    }

    /// Visits the unique documents in `bests`, each with the signature of its most preferred document. `bests` has
    /// the rows of [`uniques_by_best`](Self::uniques_by_best).
    fn visit(
        &self,
        bests: &Rows<(u32, u32)>,
        mut visitor: impl FnMut(u32, &SignatureRow) -> Result<()>,
    ) -> Result<()> {
        let mut bests = bests.cursor()?;
        for (at, row) in self.signatures.iter()?.enumerate() {
            if at % (1 << 14) == 0 {
                self.stage.add(0)?;
            }
            let row = row?;
            if let Some((_, unique)) = bests.next_if(|&(best, _)| best == row.document)? {
                visitor(unique, &row)?;
            }
        }
        Ok(())
    }

    /// Adds the candidates with near values of band number `band` to `found`. `ordered` has rows (value of the band,
    /// unique document) in any order; this function sorts them. If the rows are divided into files, `ordered` has the
    /// rows of one file, and `part` says how they are divided: [`JoinParts`] knows several ways, called *tables*, and
    /// the second value is the number of the table.
    fn join(
        &self,
        mut ordered: Vec<(u64, u32)>,
        part: Option<(&JoinParts<u64>, usize)>,
        band: usize,
        found: &PairCollector,
    ) -> Result<()> {
        self.stage.add(0)?;
        ordered.par_sort_unstable();
        let (mut values, mut starts) = (Vec::new(), Vec::new());
        for (at, &(value, _)) in ordered.iter().enumerate() {
            if values.last() != Some(&value) {
                values.push(value);
                starts.push(at as u32);
            }
        }
        starts.push(ordered.len() as u32);
        let rows_with_value = |at: usize| &ordered[starts[at] as usize..starts[at + 1] as usize];
        let index = |value: &u64| values.partition_point(|other| other < value);
        // Equal values are in the same part of every table; their pairs are reported only by the first table.
        if part.is_none_or(|(_, table)| table == 0) {
            (0..values.len())
                .into_par_iter()
                .filter(|&at| rows_with_value(at).len() > 1)
                .try_for_each(|at| self.add_pairs(iter::once((rows_with_value(at), None)), band, found))?;
        }
        let mark = |batch: &[u64]| {
            batch.iter().for_each(|value| self.mark_dense(rows_with_value(index(value)), found));
        };
        let groups = DenseGroupVisitor { pairs_per_member: DENSE_PAIRS_PER_MEMBER, visitor: &mark };
        let failed = Mutex::new(None);
        let joined = match part {
            None => {
                join::visit_pairs_except_dense(&values, self.rule.search.band_distance, groups, |batch| {
                    let pairs = batch
                        .iter()
                        .map(|&IndexPair { a, b, .. }| (rows_with_value(a), Some(rows_with_value(b))));
                    stop_after(self.add_pairs(pairs, band, found), &failed)
                })
            }
            Some((parts, table)) => parts.join_except_dense(table, &values, groups, |batch| {
                let get = |value: &u64| rows_with_value(index(value));
                let pairs = batch.iter().map(|FingerprintPair { a, b, .. }| (get(a), Some(get(b))));
                stop_after(self.add_pairs(pairs, band, found), &failed)
            }),
        };
        first_error(joined, &failed)
    }

    /// Adds candidates to `found`. Each item of `values` has the rows with one value of the band, and
    /// optionally the rows with a second, near value. If there is a second value, each row with the first value is
    /// paired with each row with the second. Otherwise the rows with the first value are paired with each other. If
    /// a value has too many rows, no pairs are added; the documents of the rows are marked as part of a [dense
    /// group](crate::pipeline::dense_groups) instead.
    fn add_pairs<'v>(
        &self,
        values: impl Iterator<Item = (&'v [(u64, u32)], Option<&'v [(u64, u32)]>)>,
        band: usize,
        found: &PairCollector,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        for (entries, others) in values {
            if entries.len() > DENSE_PAIRS_PER_MEMBER
                || others.is_some_and(|others| others.len() > DENSE_PAIRS_PER_MEMBER)
            {
                self.mark_dense(entries, found);
                self.mark_dense(others.unwrap_or_default(), found);
                continue;
            }
            for (at, &(_, a)) in entries.iter().enumerate() {
                for &(_, b) in others.unwrap_or(&entries[at + 1..]) {
                    let is_dense_pair = || found.dense_members.contains(a) && found.dense_members.contains(b);
                    if self.is_new(a, b, band) && !is_dense_pair() {
                        found.count(a);
                        found.count(b);
                        pairs.push((a.max(b), a.min(b)));
                    }
                }
            }
            if pairs.len() >= PAIR_BATCH {
                self.flush(&mut pairs, found)?;
            }
        }
        self.flush(&mut pairs, found)
    }

    fn mark_dense(&self, batch: &[(u64, u32)], found: &PairCollector) {
        batch.iter().for_each(|&(_, unique)| found.dense_members.set(unique));
        // The next call of `stage.add` reports the cancellation again.
        let _ = self.stage.add(batch.len() as u64);
    }

    /// Moves the pairs that a thread has collected to the collector `found`, which all threads share.
    fn flush(&self, pairs: &mut Vec<Candidate>, found: &PairCollector) -> Result<()> {
        let count = pairs.len() as u64;
        let mut all = lock(&found.pairs);
        pairs.drain(..).try_for_each(|pair| all.push(pair))?;
        drop(all);
        self.stage.add(count)
    }
}

/// Collector of the candidates that several threads find.
struct PairCollector {
    pairs: Mutex<Sorter<Candidate>>,
    dense_members: AtomicBitSet,
    /// Number of collected pairs of each unique document, up to [`MAX_PAIRS_PER_DOCUMENT`].
    counts: Vec<SaturatingCounter>,
}

impl PairCollector {
    /// Counts one more pair of a unique document. If the document now has more than [`MAX_PAIRS_PER_DOCUMENT`]
    /// pairs, marks it as part of a [dense group](crate::pipeline::dense_groups). Counts are exact up to this limit,
    /// so the result does not depend on the order of the threads.
    fn count(&self, unique: u32) {
        if self.counts[unique as usize].add(MAX_PAIRS_PER_DOCUMENT) == MAX_PAIRS_PER_DOCUMENT {
            self.dense_members.set(unique);
        }
    }
}

/// Returns the number of files into which the values of a band are divided, so that near values can be searched in
/// one file at a time. The number is a power of two. A search in all values takes `whole` bytes of memory, and a
/// search in one file must take at most `memory` bytes. Returns an error if that needs more than [`MAX_PARTS`]
/// files.
fn parts_for(whole: u64, memory: u64, workspace: &Workspace) -> Result<u64> {
    let parts = whole.div_ceil(memory.max(1)).max(1).next_power_of_two();
    if parts > MAX_PARTS {
        let min_bytes = workspace.budget.bytes + 2 * whole.div_ceil(MAX_PARTS).saturating_sub(memory);
        return Err(Error::Refused(format!(
            "comparing the documents, in {MAX_PARTS} parts, needs {}",
            workspace.budget.shortage_message(min_bytes)
        )));
    }
    Ok(parts)
}

/// Creates `parts` temporary files, into which the values of a band will be divided.
fn create_parts(workspace: &Workspace, parts: usize) -> Result<Vec<SpillWriter>> {
    let buffer = (workspace.share() / parts as u64).clamp(MIN_BUFFER_BYTES, MAX_BUFFER_BYTES);
    (0..parts)
        .map(|_| SpillWriter::create_with_buffer(workspace.temporary.clone(), buffer as usize))
        .collect()
}
