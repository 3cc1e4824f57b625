//! Candidates: pairs of sets with near sketches. Some sketches are joined, each by itself; then all sketches of a pair are compared.
//!
//! In memory each pair is found once, by the first sketch whose join finds it. Beyond memory, one sketch after the other is joined. If a
//! join is still too large, it is divided into the parts of a table, files that are joined one at a time. All sketches of the pairs
//! are compared when all joins are done.
//!
//! A *crowd* is a group where each set is near many others. It gives no candidates. Its members are marked, and their similar
//! pairs are found by their features.

use std::iter;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use simstore::join::{self, Crowds, NearPair, Pair, Parts};
use simstore::threads::lock;
use simstore::{Error, Result};

use crate::pipeline::bit_set::Marks;
use crate::pipeline::candidate_rule::{Rule, may_be_similar};
use crate::pipeline::counter::Counter;
use crate::pipeline::exact::Sets;
use crate::pipeline::hamming::{stop_after, told};
use crate::rows::{Candidate, SketchRow};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Rows, Sorter, SpillWriter};

/// A group is a crowd that gives so many pairs for each of its members; and so is a set that is in so many in all.
const CROWD: usize = 64;
const MOST_PAIRS: u16 = 1024;
/// Files that are written at the same time.
const MOST_PARTS: u64 = 512;
/// Bytes of memory for a sketch that is joined: the sketch and its set, sorted; the start of each value; the memory of the join; and
/// a reserve for parts that are larger than others.
const BYTES_OF_ONE: u64 = 64;
/// Bytes that are read at once of a part, and written.
const BUFFER: u64 = 1 << 18;
const SMALL_BUFFER: u64 = 1 << 12;
/// Pairs that are handed over together.
const MUCH: usize = 4096;

/// Join of the sketches of some sets.
pub(crate) struct Joining<'a> {
    /// Of all documents, in order.
    pub(crate) sketches: &'a Rows<SketchRow>,
    pub(crate) sets: &'a Sets,
    /// Sets that are left out.
    pub(crate) out: &'a Marks,
    pub(crate) rule: Rule,
    pub(crate) workspace: &'a Workspace,
    pub(crate) step: &'a Step<'a>,
}

/// Result of the joins.
pub(crate) struct Found {
    /// In order, each once.
    pub(crate) candidates: Rows<Candidate>,
    /// The members of crowds: pairs of two of them are not among the candidates.
    pub(crate) crowded: Marks,
}

impl Joining<'_> {
    pub(crate) fn find(&self) -> Result<Found> {
        let counts = (0..self.sets.len()).map(|_| Counter::default()).collect();
        let (pairs, crowded) = (Mutex::new(self.workspace.sorter()), Marks::new(self.sets.len()));
        let found = Collected { pairs, crowded, counts };
        let in_memory = self.in_memory();
        match in_memory {
            Some((rows, best)) => {
                let sets = (0..best.len() as u32).filter(|&set| !self.out.has(set)).collect::<Vec<_>>();
                for sketch in 0..self.rule.search.joined {
                    let row = |&set: &u32| (rows[best[set as usize] as usize].words[sketch], set);
                    self.join(sets.par_iter().map(row).collect(), None, sketch, &found)?;
                }
            }
            None => self.find_on_disk(&found)?,
        }
        let Collected { pairs, crowded, .. } = found;
        let candidates = Rows::sorted(pairs.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        let candidates = match in_memory.is_some() && crowded.count() == 0 {
            true => candidates,
            false => self.looked_at(&candidates, &crowded, in_memory.is_some())?,
        };
        Ok(Found { candidates, crowded })
    }

    /// All sketches of all documents, and the best document of each set, if these are in memory.
    #[inline]
    fn in_memory(&self) -> Option<(&[SketchRow], &[u32])> {
        self.sketches.in_memory().zip(self.sets.all_best().in_memory())
    }

    /// Whether two sets are a new candidate, as far as the sketches in memory tell.
    #[inline]
    fn is_new(&self, a: u32, b: u32, sketch: usize) -> bool {
        let Some((rows, best)) = self.in_memory() else { return true };
        let row = |set: u32| &rows[best[set as usize] as usize];
        self.rule.is_new(row(a), row(b), sketch)
    }

    fn find_on_disk(&self, found: &Collected) -> Result<()> {
        let numbers = self.sets_by_best()?;
        let memory = self.workspace.budget.bytes / 2;
        let parts = parts_for(numbers.len() as u64 * BYTES_OF_ONE, memory, self.workspace)?;
        let parts = Parts::<u64>::with_parts(self.rule.search.distance, parts as usize)?;
        let most = (memory / size_of::<(u64, u32)>() as u64).max(1 << 12);
        for sketch in 0..self.rule.search.joined {
            for table in 0..parts.tables() {
                let part = Some((&parts, table)).filter(|(parts, _)| parts.parts() > 1);
                for rows in self.parts(&numbers, part, sketch)? {
                    if rows.len() as u64 > most {
                        // So many have much in common: they are looked for as a crowd is.
                        for row in rows.iter()? {
                            found.crowded.set(row?.1);
                        }
                        continue;
                    }
                    let mut ordered = Vec::with_capacity(rows.len());
                    rows.iter()?.try_for_each(|row| row.map(|row| ordered.push(row)))?;
                    drop(rows);
                    self.join(ordered, part, sketch, found)?;
                }
                if part.is_none() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// One sketch of each set, with the number of the set: divided into the parts of a table, or all together.
    fn parts(
        &self,
        numbers: &Rows<(u32, u32)>,
        part: Option<(&Parts<u64>, usize)>,
        sketch: usize,
    ) -> Result<Vec<Rows<(u64, u32)>>> {
        let Some((parts, table)) = part else {
            let mut all = Vec::with_capacity(numbers.len());
            self.visit(numbers, |set, row| {
                all.push((row.words[sketch], set));
                Ok(())
            })?;
            return Ok(vec![Rows::Memory(all)]);
        };
        let mut files = create_parts(self.workspace, parts.parts())?;
        self.visit(numbers, |set, row| {
            let word = row.words[sketch];
            files[parts.part(table, word)].push_record((word, set))
        })?;
        files.into_iter().map(|file| Ok(Rows::of_file(file.finish()?))).collect()
    }

    /// Drops candidates whose sketches are too far apart, unless that was done before. Drops pairs of two members of crowds: some were
    /// taken before both members were marked.
    fn looked_at(&self, pairs: &Rows<Candidate>, crowded: &Marks, was_done: bool) -> Result<Rows<Candidate>> {
        let (mut candidates, mut last) = (self.workspace.rows(), None);
        let row = |set: u32| self.sketches.get(self.sets.best(set)? as usize);
        for (at, pair) in pairs.iter()?.enumerate() {
            let pair @ (a, b) = pair?;
            if at % (1 << 12) == 0 {
                self.step.add(0)?;
            }
            // Several sketches may have brought them together.
            if last.replace(pair) == Some(pair) || crowded.has(a) && crowded.has(b) {
                continue;
            }
            let is_near = was_done || {
                let (one, other) = (row(a)?, row(b)?);
                self.rule.holds(&one.words, &other.words)
                    && may_be_similar(one.features, other.features, self.rule.least)
            };
            if is_near {
                candidates.push(pair)?;
            }
        }
        candidates.finish()
    }

    /// The best document of each set that is not left out, and the set, by document.
    fn sets_by_best(&self) -> Result<Rows<(u32, u32)>> {
        let numbers = (0..).zip(self.sets.all_best().iter()?).filter(|&(set, _)| !self.out.has(set));
        self.workspace.sorted(numbers.map(|(set, best)| Ok((best?, set))))
    }

    /// Visits the rows of all sets, with their numbers.
    fn visit(
        &self,
        numbers: &Rows<(u32, u32)>,
        mut visitor: impl FnMut(u32, &SketchRow) -> Result<()>,
    ) -> Result<()> {
        let mut numbers = numbers.cursor()?;
        for (at, row) in self.sketches.iter()?.enumerate() {
            if at % (1 << 14) == 0 {
                self.step.add(0)?;
            }
            let row = row?;
            if let Some((_, set)) = numbers.take_if(|&(best, _)| best == row.number)? {
                visitor(set, &row)?;
            }
        }
        Ok(())
    }

    /// Joins a sketch of some sets, of a part of a table or of all. `ordered` has the sketch and the number of each set, in any order.
    fn join(
        &self,
        mut ordered: Vec<(u64, u32)>,
        part: Option<(&Parts<u64>, usize)>,
        sketch: usize,
        found: &Collected,
    ) -> Result<()> {
        self.step.add(0)?;
        ordered.par_sort_unstable();
        let (mut values, mut starts) = (Vec::new(), Vec::new());
        for (at, &(value, _)) in ordered.iter().enumerate() {
            if values.last() != Some(&value) {
                values.push(value);
                starts.push(at as u32);
            }
        }
        starts.push(ordered.len() as u32);
        let of_value = |at: usize| &ordered[starts[at] as usize..starts[at + 1] as usize];
        let place = |value: &u64| values.partition_point(|other| other < value);
        // Equal sketches are in one part of each table, and count in the first.
        if part.is_none_or(|(_, table)| table == 0) {
            (0..values.len())
                .into_par_iter()
                .filter(|&at| of_value(at).len() > 1)
                .try_for_each(|at| self.pair_up(iter::once((of_value(at), None)), sketch, found))?;
        }
        let mark = |some: &[u64]| some.iter().for_each(|value| self.mark(of_value(place(value)), found));
        let crowds = Crowds { enough: CROWD, visitor: &mark };
        let failed = Mutex::new(None);
        let joined = match part {
            None => join::visit_pairs_but_crowds(&values, self.rule.search.distance, crowds, |some| {
                let pairs = some.iter().map(|&Pair { a, b, .. }| (of_value(a), Some(of_value(b))));
                stop_after(self.pair_up(pairs, sketch, found), &failed)
            }),
            Some((parts, table)) => parts.join_but_crowds(table, &values, crowds, |some| {
                let of = |value: &u64| of_value(place(value));
                let pairs = some.iter().map(|NearPair { a, b, .. }| (of(a), Some(of(b))));
                stop_after(self.pair_up(pairs, sketch, found), &failed)
            }),
        };
        told(joined, &failed)
    }

    /// Pairs the sets of one value with one another, or with the sets of another value, and hands the pairs over.
    fn pair_up<'v>(
        &self,
        values: impl Iterator<Item = (&'v [(u64, u32)], Option<&'v [(u64, u32)]>)>,
        sketch: usize,
        found: &Collected,
    ) -> Result<()> {
        let mut pairs = Vec::new();
        for (some, others) in values {
            if some.len() > CROWD || others.is_some_and(|others| others.len() > CROWD) {
                self.mark(some, found);
                self.mark(others.unwrap_or_default(), found);
                continue;
            }
            for (at, &(_, a)) in some.iter().enumerate() {
                for &(_, b) in others.unwrap_or(&some[at + 1..]) {
                    let is_left_out = || found.crowded.has(a) && found.crowded.has(b);
                    if self.is_new(a, b, sketch) && !is_left_out() {
                        found.count(a);
                        found.count(b);
                        pairs.push((a.max(b), a.min(b)));
                    }
                }
            }
            if pairs.len() >= MUCH {
                self.hand_over(&mut pairs, found)?;
            }
        }
        self.hand_over(&mut pairs, found)
    }

    fn mark(&self, some: &[(u64, u32)], found: &Collected) {
        some.iter().for_each(|&(_, set)| found.crowded.set(set));
        // Whether to go on is asked anyway.
        let _ = self.step.add(some.len() as u64);
    }

    /// Hands over the pairs that were found.
    fn hand_over(&self, pairs: &mut Vec<Candidate>, found: &Collected) -> Result<()> {
        let count = pairs.len() as u64;
        let mut all = lock(&found.pairs);
        pairs.drain(..).try_for_each(|pair| all.push(pair))?;
        drop(all);
        self.step.add(count)
    }
}

/// Takes pairs from several threads.
struct Collected {
    pairs: Mutex<Sorter<Candidate>>,
    crowded: Marks,
    /// In how many pairs each set is.
    counts: Vec<Counter>,
}

impl Collected {
    /// Counts one more pair of a set; marks the set if it is in too many pairs. All pairs of a set that is not marked are counted, so the
    /// order of the threads does not matter.
    fn count(&self, set: u32) {
        if self.counts[set as usize].add(MOST_PAIRS) == MOST_PAIRS {
            self.crowded.set(set);
        }
    }
}

/// How many parts there have to be, so that each takes at most so much memory, of the whole.
fn parts_for(whole: u64, memory: u64, workspace: &Workspace) -> Result<u64> {
    let parts = whole.div_ceil(memory.max(1)).max(1).next_power_of_two();
    if parts > MOST_PARTS {
        let least = workspace.budget.bytes + 2 * whole.div_ceil(MOST_PARTS).saturating_sub(memory);
        return Err(Error::Refused(format!(
            "comparing the documents, in {MOST_PARTS} parts, needs {}",
            workspace.budget.too_little_for(least)
        )));
    }
    Ok(parts)
}

/// Opens the files of some parts.
fn create_parts(workspace: &Workspace, parts: usize) -> Result<Vec<SpillWriter>> {
    let buffer = (workspace.share() / parts as u64).clamp(SMALL_BUFFER, BUFFER);
    (0..parts).map(|_| SpillWriter::create_with(workspace.temporary.clone(), buffer as usize)).collect()
}
