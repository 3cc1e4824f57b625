//! The reason of each removed document: the most similar kept document, if it is similar enough.
//!
//! If a chain alone connects a removed document with a kept one, the reason is that kept document, however similar. If none is kept, the
//! reason is the most similar other document.

use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::components;
use crate::pipeline::exact::Sets;
use crate::pipeline::representatives::{Leaders, stars_of};
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
    workspace: &'a Workspace,
}

impl<'a> NearestSets<'a> {
    pub(crate) fn new(sets: &'a Sets, tie: Tie, workspace: &'a Workspace) -> Self {
        NearestSets { sets, tie, rows: workspace.sorter(), workspace }
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

    /// Returns representatives by all near pairs, and the nearest sets. With `edges`, connected sets have one representative. Sets that are
    /// `out` neither represent others nor are represented.
    pub(crate) fn with_leaders(
        mut self,
        pairs: &Rows<Near>,
        edges: Option<impl Iterator<Item = Result<(u32, u32)>>>,
        out: &Marks,
        compared: Option<&Compared<'_>>,
        keeps_none: bool,
        step: &Step<'_>,
    ) -> Result<(Leaders, Rows<Near>)> {
        let (sets, workspace) = (self.sets.len(), self.workspace);
        let is_left = |a, b| !out.has(a) && !out.has(b);
        let leaders = match edges {
            None => {
                let is_left = |pair: &Result<Near>| pair.as_ref().map_or(true, |&(a, b, _)| is_left(a, b));
                let leaders = stars_of(pairs.iter()?.filter(is_left), sets, workspace, step)?;
                self.push_others(&leaders, pairs.iter()?.filter(is_left))?;
                leaders
            }
            Some(edges) => {
                let edges = edges.filter(|edge| edge.as_ref().map_or(true, |&(a, b)| is_left(a, b)));
                let firsts = components::components(edges, sets, workspace, step)?;
                let nearness = |a, b| compared.map_or(Ok(0), |compared| compared.similarity(a, b));
                components::leaders(&firsts, pairs, sets, workspace, nearness)?
            }
        };
        let nearest = if keeps_none {
            pairs.iter()?.try_for_each(|pair| self.push_both(pair?))?;
            self.of_all()?
        } else {
            self.nearer_than_leaders(&leaders)?
        };
        Ok((leaders, nearest))
    }

    /// The nearest set of each represented set, where it is nearer than the representative; in order.
    pub(crate) fn nearer_than_leaders(self, leaders: &Leaders) -> Result<Rows<Near>> {
        let NearestSets { sets, tie, rows, workspace } = self;
        let (mut nearest, mut rows) = (workspace.rows(), Cursor::new(rows.finish()?));
        for led in leaders.led.iter()? {
            let (set, leader, nearness) = led?;
            if let Some(((_, key), (document, other))) = rows.at(set, |row| row.0.0)?
                && (key, document) < (tie.order(nearness), sets.best(leader)?)
            {
                nearest.push((set, other, tie.order(key)))?;
            }
        }
        nearest.finish()
    }

    /// The nearest of each set that has one, in order.
    pub(crate) fn of_all(self) -> Result<Rows<Near>> {
        let NearestSets { tie, rows, workspace, .. } = self;
        let mut last = None;
        let rows = rows.finish()?.map(|row| row.map(|((set, key), (_, other))| (set, other, tie.order(key))));
        let mut is_first = |&(set, ..): &Near| last.replace(set) != Some(set);
        workspace.collected(rows.filter(|row| row.as_ref().map_or(true, &mut is_first)))
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
            let leader = led.at(set, |row| row.0)?;
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

/// The nearest document of each document, in order: the best of the nearest set. If no document is kept, `equal` is the nearness of equal
/// documents, and documents of one set are nearest to one another.
pub(crate) fn of_documents(
    nearest: &Rows<Near>,
    sets: &Sets,
    equal: Option<Nearness>,
    workspace: &Workspace,
) -> Result<Rows<Nearest>> {
    let (mut rows, mut nearest) = (workspace.sorter(), nearest.cursor()?);
    // The first document of a set, and whether the next one is the second.
    let (mut last, mut is_second) = (None, false);
    for row in sets.iter()? {
        let (set, document) = row?;
        let Some(equal) = equal.filter(|_| sets.is_several(set)) else {
            if let Some((_, other, nearness)) = nearest.at(set, |row| row.0)? {
                rows.push((document, sets.best(other)?, nearness))?;
            }
            continue;
        };
        // None being kept, documents are preferred in order of input: the first of a set comes first.
        let Some((_, first)) = last.filter(|&(of, _)| of == set) else {
            (last, is_second) = (Some((set, document)), true);
            continue;
        };
        if std::mem::take(&mut is_second) {
            rows.push((first, document, equal))?;
        }
        rows.push((document, first, equal))?;
    }
    Rows::sorted(rows)
}
