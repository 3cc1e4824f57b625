//! The reason of each removed document: the most similar kept document, if it is similar enough.
//!
//! If a chain alone connects a removed document with a kept one, the reason is that kept document, however similar. If none is kept, the
//! reason is the most similar other document.

use simstore::Result;

use crate::pipeline::exact::Sets;
use crate::pipeline::representatives::Leaders;
use crate::pipeline::verify::{Compared, TOGETHER};
use crate::rows::{Candidate, Near, Nearness};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows, Sorter};

/// A document, another that it is nearest to, and how near they are.
pub(crate) type Nearest = (u32, u32, Nearness);

/// Order of sets by nearness. Of equally near sets, the one whose best document comes first in the input is first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tie {
    /// The greatest similarity first.
    SimilarThenBest,
    /// The smallest distance first.
    NearThenBest,
}

impl Tie {
    /// Converts a nearness to a sort key, and back.
    fn order(self, nearness: Nearness) -> Nearness {
        if self == Tie::NearThenBest { nearness } else { !nearness }
    }
}

/// The nearest other set of each set.
pub(crate) struct NearestSets<'a> {
    sets: &'a Sets,
    tie: Tie,
    rows: Sorter<((u32, Nearness), (u32, u32))>,
}

impl<'a> NearestSets<'a> {
    pub(crate) fn new(sets: &'a Sets, tie: Tie, workspace: &Workspace) -> Self {
        NearestSets { sets, tie, rows: workspace.sorter() }
    }

    /// Takes another set that is near one.
    pub(crate) fn push(&mut self, (set, other, nearness): Near) -> Result<()> {
        let key = (set, self.tie.order(nearness));
        self.rows.push((key, (self.sets.best(other)?, other)))
    }

    /// Takes two near sets, each as near the other.
    pub(crate) fn push_both(&mut self, (a, b, nearness): Near) -> Result<()> {
        self.push((a, b, nearness))?;
        self.push((b, a, nearness))
    }

    /// Takes near pairs of a represented set and a representative; skips other pairs.
    pub(crate) fn push_others(
        &mut self,
        leaders: &Leaders,
        pairs: impl Iterator<Item = Result<Near>>,
    ) -> Result<()> {
        for pair in pairs {
            let (a, b, nearness) = pair?;
            if let Some((set, other)) = oriented(leaders, (a, b)) {
                self.push((set, other, nearness))?;
            }
        }
        Ok(())
    }

    /// The nearest set of each represented set, where it is nearer than the representative; in order.
    pub(crate) fn nearer_than_leaders(self, leaders: &Leaders, workspace: &Workspace) -> Result<Rows<Near>> {
        let NearestSets { sets, tie, rows } = self;
        let (mut nearest, mut rows) = (workspace.rows(), Cursor::new(rows.finish()?));
        for led in leaders.led.iter()? {
            let (set, leader, nearness) = led?;
            while rows.take_if(|&((next, _), _)| next < set)?.is_some() {}
            let Some(((_, key), (document, other))) = rows.take_if(|&((next, _), _)| next == set)? else {
                continue;
            };
            if (key, document) < (tie.order(nearness), sets.best(leader)?) {
                nearest.push((set, other, tie.order(key)))?;
            }
        }
        nearest.finish()
    }

    /// The nearest of each set that has one, in order.
    pub(crate) fn of_all(self, workspace: &Workspace) -> Result<Rows<Near>> {
        let NearestSets { tie, rows, .. } = self;
        let mut nearest = workspace.rows();
        let mut last = None;
        for row in rows.finish()? {
            let ((set, key), (_, other)) = row?;
            if last.replace(set) != Some(set) {
                nearest.push((set, other, tie.order(key)))?;
            }
        }
        nearest.finish()
    }
}

/// A pair of a represented set and a representative, in this order; `None` for other pairs.
fn oriented(leaders: &Leaders, (a, b): Candidate) -> Option<Candidate> {
    match (leaders.is_led[a as usize], leaders.is_led[b as usize]) {
        (true, false) => Some((a, b)),
        (false, true) => Some((b, a)),
        _ => None,
    }
}

/// Compares represented sets with representatives that are candidates, and takes similar ones.
pub(crate) fn compare_with_others(
    candidates: &Rows<Candidate>,
    leaders: &Leaders,
    compared: &Compared<'_>,
    nearest: &mut NearestSets<'_>,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<()> {
    let mut pairs = workspace.sorter::<Candidate>();
    for pair in candidates.iter()? {
        oriented(leaders, pair?).map_or(Ok(()), |pair| pairs.push(pair))?;
    }
    let (mut led, mut some) = (leaders.led.cursor()?, Vec::new());
    let mut rows = pairs.finish()?;
    loop {
        some.clear();
        while some.len() < TOGETHER
            && let Some(pair) = rows.next()
        {
            let (set, other) = pair?;
            while led.take_if(|&(next, ..)| next < set)?.is_some() {}
            let leader = led.peek()?.filter(|&(next, ..)| next == set);
            if leader.is_none_or(|(_, leader, _)| leader != other) {
                some.push((set, other));
            }
        }
        if some.is_empty() {
            return Ok(());
        }
        step.add(some.len() as u64)?;
        for (&(set, other), nearness) in some.iter().zip(compared.alike_each(&some)?) {
            nearness.map_or(Ok(()), |nearness| nearest.push((set, other, nearness)))?;
        }
    }
}

/// The same for documents, in order: each document of such a set, and the best of the other.
pub(crate) fn of_documents(
    nearest: &Rows<Near>,
    sets: &Sets,
    workspace: &Workspace,
) -> Result<Rows<Nearest>> {
    let mut rows = workspace.sorter();
    let mut nearest = nearest.cursor()?;
    sets.visit(|set, document| {
        while nearest.take_if(|&(next, ..)| next < set)?.is_some() {}
        match nearest.peek()? {
            Some((next, other, nearness)) if next == set => {
                rows.push((document, sets.best(other)?, nearness))
            }
            _ => Ok(()),
        }
    })?;
    Rows::sorted(rows)
}

/// The same if none is kept: for each document the nearest other one. Documents of one set are nearest to one another.
pub(crate) fn of_all_documents(
    nearest: &Rows<Near>,
    sets: &Sets,
    equal: Nearness,
    workspace: &Workspace,
) -> Result<Rows<Nearest>> {
    let (mut rows, mut nearest) = (workspace.sorter(), nearest.cursor()?);
    let mut last: Option<(u32, u32)> = None;
    let mut alone = |rows: &mut Sorter<Nearest>, set: u32, document: u32| {
        while nearest.take_if(|&(next, ..)| next < set)?.is_some() {}
        match nearest.peek()? {
            Some((next, other, nearness)) if next == set => {
                rows.push((document, sets.best(other)?, nearness))
            }
            _ => Ok(()),
        }
    };
    // None being kept, documents are preferred in order of input: the first of a set comes first.
    let mut is_second = false;
    sets.visit(|set, document| match last {
        Some((of, first)) if of == set => {
            if std::mem::take(&mut is_second) {
                rows.push((first, document, equal))?;
            }
            rows.push((document, first, equal))
        }
        _ => {
            last = Some((set, document));
            is_second = true;
            if sets.is_several(set) { Ok(()) } else { alone(&mut rows, set, document) }
        }
    })?;
    Rows::sorted(rows)
}
