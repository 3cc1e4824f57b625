//! Candidates: pairs of sets with near sketches. Some sketches are joined, each by itself; then all sketches of a pair are compared.
//!
//! In memory each pair is found once, by the first sketch whose join finds it. Beyond memory, one sketch after the other is joined. If a
//! join is still too large, it is divided into the parts of a table, files that are joined one at a time. All sketches of the pairs
//! are compared when all joins are done.
//!
//! A *crowd* is a group where each set is near many others. It gives no candidates. Its members are marked, and their similar
//! pairs are found by their features.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use simstore::join::{self, Crowds, NearPair, Pair, Parts};
use simstore::threads::lock;
use simstore::{Error, Result};

use crate::pipeline::bit_set::Marks;
use crate::pipeline::candidate_rule::{Rule, may_be_similar};
use crate::pipeline::counter::Counter;
use crate::pipeline::exact::Sets;
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
        let (pairs, crowded) = (Mutex::new(self.workspace.sorter()), Marks::new(self.sets.len()));
        let counts = (0..self.sets.len()).map(|_| Counter::default()).collect();
        let found = Collected { pairs, crowded, counts, failed: Mutex::new(None) };
        let is_in_memory = match (self.sketches.in_memory(), self.sets.all_best().in_memory()) {
            (Some(rows), Some(best)) => {
                let sets = (0..best.len() as u32).filter(|&set| !self.out.has(set)).collect::<Vec<_>>();
                for sketch in 0..self.rule.search.joined {
                    self.join(
                        &Block { sets: &sets, words: Words::All { rows, best } },
                        None,
                        sketch,
                        &found,
                    )?;
                }
                true
            }
            _ => {
                self.find_on_disk(&found)?;
                false
            }
        };
        let Collected { pairs, crowded, .. } = found;
        let candidates = Rows::sorted(pairs.into_inner().unwrap_or_else(PoisonError::into_inner))?;
        let candidates = match is_in_memory && crowded.count() == 0 {
            true => candidates,
            false => self.looked_at(&candidates, &crowded, is_in_memory)?,
        };
        Ok(Found { candidates, crowded })
    }

    fn find_on_disk(&self, found: &Collected) -> Result<()> {
        let numbers = self.sets_by_best()?;
        let memory = self.workspace.budget.bytes / 2;
        let parts = parts_for(numbers.len() as u64 * BYTES_OF_ONE, memory, self.workspace)?;
        let parts = Parts::<u64>::with_parts(self.rule.search.distance, parts as usize)?;
        let most = (memory / size_of::<(u32, u64)>() as u64).max(1 << 12);
        for sketch in 0..self.rule.search.joined {
            for table in 0..parts.tables() {
                let part = Some((&parts, table)).filter(|(parts, _)| parts.parts() > 1);
                for rows in self.parts(&numbers, part, sketch)? {
                    if rows.len() as u64 > most {
                        // So many have much in common: they are looked for as a crowd is.
                        for row in rows.iter()? {
                            found.crowded.set(row?.0);
                        }
                        continue;
                    }
                    let (mut sets, mut words) =
                        (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
                    for row in rows.iter()? {
                        let (set, word) = row?;
                        sets.push(set);
                        words.push(word);
                    }
                    drop(rows);
                    self.join(&Block { sets: &sets, words: Words::One(&words) }, part, sketch, found)?;
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
    ) -> Result<Vec<Rows<(u32, u64)>>> {
        let Some((parts, table)) = part else {
            let mut all = Vec::with_capacity(numbers.len());
            self.visit(numbers, |set, row| {
                all.push((set, row.words[sketch]));
                Ok(())
            })?;
            return Ok(vec![Rows::Memory(all)]);
        };
        let mut files = create_parts(self.workspace, parts.parts())?;
        self.visit(numbers, |set, row| {
            let word = row.words[sketch];
            files[parts.part(table, word)].push_record((set, word))
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
            if was_done {
                candidates.push(pair)?;
                continue;
            }
            let (one, other) = (row(a)?, row(b)?);
            if self.rule.holds(&one.words, &other.words)
                && may_be_similar(one.features, other.features, self.rule.least)
            {
                candidates.push(pair)?;
            }
        }
        candidates.finish()
    }

    /// The best document of each set that is not left out, and the set, by document.
    fn sets_by_best(&self) -> Result<Rows<(u32, u32)>> {
        let mut numbers = self.workspace.sorter();
        for (set, best) in (0..).zip(self.sets.all_best().iter()?) {
            if !self.out.has(set) {
                numbers.push((best?, set))?;
            }
        }
        Rows::sorted(numbers)
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

    /// Joins a sketch of some sets, of a part of a table or of all.
    fn join(
        &self,
        block: &Block<'_>,
        part: Option<(&Parts<u64>, usize)>,
        sketch: usize,
        found: &Collected,
    ) -> Result<()> {
        self.step.add(0)?;
        let mut ordered: Vec<(u64, u32)> =
            (0..block.sets.len() as u32).into_par_iter().map(|at| (block.word(at, sketch), at)).collect();
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
        let pairing = Pairing { joining: self, block, sketch, found };
        // Equal sketches are in one part of each table, and count in the first.
        if part.is_none_or(|(_, table)| table == 0) {
            (0..values.len()).into_par_iter().filter(|&at| of_value(at).len() > 1).try_for_each(|at| {
                let mut pairs = Vec::new();
                pairing.pair_up(of_value(at), None, &mut pairs);
                pairing.hand_over(&mut pairs, true)
            })?;
        }
        let mark = |some: &[u64]| some.iter().for_each(|value| pairing.mark(of_value(place(value))));
        let crowds = Crowds { enough: CROWD, visitor: &mark };
        let visit = |some: &mut dyn Iterator<Item = (usize, usize)>| {
            let mut pairs = Vec::new();
            for (a, b) in some {
                pairing.pair_up(of_value(a), Some(of_value(b)), &mut pairs);
                if pairing.hand_over(&mut pairs, false).is_err() {
                    return ControlFlow::Break(());
                }
            }
            match pairing.hand_over(&mut pairs, true) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        };
        let joined = match part {
            None => join::visit_pairs_but_crowds(&values, self.rule.search.distance, crowds, |some| {
                visit(&mut some.iter().map(|&Pair { a, b, .. }| (a, b)))
            }),
            Some((parts, table)) => parts.join_but_crowds(table, &values, crowds, |some| {
                visit(&mut some.iter().map(|NearPair { a, b, .. }| (place(a), place(b))))
            }),
        };
        // Why it was stopped says more than that it was.
        match found.failed() {
            Some(error) => Err(error),
            None => joined,
        }
    }
}

/// Some sets, and their sketches.
struct Block<'a> {
    sets: &'a [u32],
    words: Words<'a>,
}

enum Words<'a> {
    /// All sketches of all documents, and the best document of each set.
    All { rows: &'a [SketchRow], best: &'a [u32] },
    /// The sketch that is joined, of each of the sets.
    One(&'a [u64]),
}

impl Block<'_> {
    #[inline]
    fn word(&self, at: u32, sketch: usize) -> u64 {
        match self.words {
            Words::All { rows, best } => rows[best[self.sets[at as usize] as usize] as usize].words[sketch],
            Words::One(words) => words[at as usize],
        }
    }

    /// Whether two sets are a new candidate, as far as the sketches in memory tell.
    #[inline]
    fn is_new(&self, one: u32, other: u32, sketch: usize, rule: &Rule) -> bool {
        let Words::All { rows, best } = self.words else { return true };
        let row = |at: u32| &rows[best[self.sets[at as usize] as usize] as usize];
        rule.is_new(row(one), row(other), sketch)
    }

    #[inline]
    fn set(&self, at: u32) -> u32 {
        self.sets[at as usize]
    }
}

/// Takes pairs from several threads.
struct Collected {
    pairs: Mutex<Sorter<Candidate>>,
    crowded: Marks,
    /// In how many pairs each set is.
    counts: Vec<Counter>,
    /// Why it was stopped.
    failed: Mutex<Option<Error>>,
}

impl Collected {
    /// Counts one more pair of a set; marks the set if it is in too many pairs. All pairs of a set that is not marked are counted, so the
    /// order of the threads does not matter.
    fn count(&self, set: u32) {
        if self.counts[set as usize].add(MOST_PAIRS) == MOST_PAIRS {
            self.crowded.set(set);
        }
    }

    fn failed(&self) -> Option<Error> {
        lock(&self.failed).take()
    }
}

/// Pairs sets that have, or may have, near sketches.
struct Pairing<'a> {
    joining: &'a Joining<'a>,
    block: &'a Block<'a>,
    sketch: usize,
    found: &'a Collected,
}

impl Pairing<'_> {
    fn mark(&self, some: &[(u64, u32)]) {
        some.iter().for_each(|&(_, at)| self.found.crowded.set(self.block.set(at)));
        // Whether to go on is asked anyway.
        let _ = self.joining.step.add(some.len() as u64);
    }

    /// Pairs the sets of one value with one another, or with the sets of another value.
    fn pair_up(&self, some: &[(u64, u32)], others: Option<&[(u64, u32)]>, pairs: &mut Vec<Candidate>) {
        if some.len() > CROWD || others.is_some_and(|others| others.len() > CROWD) {
            self.mark(some);
            self.mark(others.unwrap_or_default());
            return;
        }
        let (crowded, rule) = (&self.found.crowded, &self.joining.rule);
        for (at, &(_, one)) in some.iter().enumerate() {
            for &(_, other) in others.unwrap_or(&some[at + 1..]) {
                let (a, b) = (self.block.set(one), self.block.set(other));
                let is_left_out = || crowded.has(a) && crowded.has(b);
                if self.block.is_new(one, other, self.sketch, rule) && !is_left_out() {
                    self.found.count(a);
                    self.found.count(b);
                    pairs.push((a.max(b), a.min(b)));
                }
            }
        }
    }

    /// Hands over what was found, if it is much or all.
    fn hand_over(&self, pairs: &mut Vec<Candidate>, is_all: bool) -> Result<()> {
        if !is_all && pairs.len() < MUCH {
            return Ok(());
        }
        let count = pairs.len() as u64;
        let mut all = lock(&self.found.pairs);
        let pushed = pairs.drain(..).try_for_each(|pair| all.push(pair));
        drop(all);
        pushed.and_then(|()| self.joining.step.add(count)).map_err(|error| {
            lock(&self.found.failed).get_or_insert(error);
            Error::Cancelled
        })
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
