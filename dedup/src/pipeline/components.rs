//! Connected components of near sets.

use bitvec::vec::BitVec;
use simstore::Result;
use simstore::join::Components;
use xxhash_rust::xxh3::Xxh3;

use crate::pipeline::representatives::Leaders;
use crate::rows::{Near, Nearness};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows, RowsWriter};

/// Connects sets: in memory, or by edges that may go to disk if the sets are too many for that.
pub(crate) enum Connecting<'a> {
    Memory(Components, usize, &'a Workspace),
    Edges(RowsWriter<(u32, u32)>, &'a Workspace),
}

impl<'a> Connecting<'a> {
    /// So many sets, each by itself.
    pub(crate) fn new(sets: usize, workspace: &'a Workspace) -> Self {
        match sets as u64 * size_of::<u32>() as u64 > workspace.share() {
            true => Connecting::Edges(workspace.rows(), workspace),
            false => Connecting::Memory(Components::new(sets), sets, workspace),
        }
    }

    pub(crate) fn connect(&mut self, a: u32, b: u32) -> Result<()> {
        match self {
            Connecting::Memory(components, ..) => {
                components.connect(a as usize, b as usize);
                Ok(())
            }
            Connecting::Edges(edges, _) => edges.push((a, b)),
        }
    }

    /// Whether two sets are known to be connected.
    pub(crate) fn are_connected(&mut self, a: u32, b: u32) -> bool {
        match self {
            Connecting::Memory(components, ..) => {
                components.first(a as usize) == components.first(b as usize)
            }
            Connecting::Edges(..) => false,
        }
    }

    /// The first set of each set's component, for sets that are in one with a better set; in order.
    pub(crate) fn firsts(self, step: &Step<'_>) -> Result<Rows<(u32, u32)>> {
        let (mut components, sets, workspace) = match self {
            Connecting::Memory(components, sets, workspace) => (components, sets, workspace),
            Connecting::Edges(edges, workspace) => {
                return in_rounds(edges.finish()?.iter()?, workspace, step);
            }
        };
        let firsts = (0..sets).map(|set| (set as u32, components.first(set) as u32));
        workspace.collected(firsts.filter(|(set, first)| first != set).map(Ok))
    }
}

/// The first set of each set's component, for sets that are in one with a better set; in order.
pub(crate) fn components(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    sets: usize,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Rows<(u32, u32)>> {
    let mut connecting = Connecting::new(sets, workspace);
    for (at, pair) in pairs.enumerate() {
        let (a, b) = pair?;
        connecting.connect(a, b)?;
        if at % 1024 == 0 {
            step.add(0)?;
        }
    }
    connecting.firsts(step)
}

/// The same as [`Connecting::firsts`] on disk: in each round, every set is connected to the first of those that it is connected with, and these with that
/// (R. Kiveris et al., "Connected Components in MapReduce and Beyond", SoCC 2014). It ends when nothing changes.
fn in_rounds(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Rows<(u32, u32)>> {
    let edges = pairs.map(|pair| pair.map(|(a, b)| (a.max(b), a.min(b))));
    let (mut edges, mut check) = (workspace.sorted(edges)?, 0);
    loop {
        step.add(0)?;
        // Large stars: of each set and all that it is connected with, the greater ones go to the least.
        let mut both = workspace.sorter::<(u32, u32)>();
        for edge in edges.iter()? {
            let (a, b) = edge?;
            both.push((a, b))?;
            both.push((b, a))?;
        }
        let mut large = workspace.sorter::<(u32, u32)>();
        stars(
            Cursor::new(both.finish()?),
            |set, least, other| {
                if other > set { large.push((other, least)) } else { Ok(()) }
            },
        )?;
        // Small stars: the smaller ones, and the set itself, go to the least.
        let mut small = workspace.sorter::<(u32, u32)>();
        stars(Cursor::new(large.finish()?), |set, least, other| {
            if other == least { small.push((set, least)) } else { small.push((other, least)) }
        })?;
        let (mut rows, mut last, mut hash) = (workspace.rows(), None, Xxh3::new());
        for edge in small.finish()? {
            let edge = edge?;
            if last.replace(edge) != Some(edge) {
                hash.update(&edge.0.to_le_bytes());
                hash.update(&edge.1.to_le_bytes());
                rows.push(edge)?;
            }
        }
        edges = rows.finish()?;
        if std::mem::replace(&mut check, hash.digest()) == hash.digest() {
            return Ok(edges);
        }
    }
}

/// Visits each set of some edges with each of its neighbours once, and with the least of itself and its neighbours.
fn stars(
    mut edges: Cursor<impl Iterator<Item = Result<(u32, u32)>>, (u32, u32)>,
    mut visitor: impl FnMut(u32, u32, u32) -> Result<()>,
) -> Result<()> {
    while let Some((set, first)) = edges.take()? {
        // Edges are in order, so that the first is the least.
        let least = set.min(first);
        visitor(set, least, first)?;
        let mut last = first;
        while let Some((_, other)) = edges.take_if(|&(next, _)| next == set)? {
            if std::mem::replace(&mut last, other) != other {
                visitor(set, least, other)?;
            }
        }
    }
    Ok(())
}

/// Representatives: the first set of each component represents the others. Their nearness is taken from the pairs, or else from `nearness`.
pub(crate) fn leaders(
    firsts: &Rows<(u32, u32)>,
    pairs: &Rows<Near>,
    sets: usize,
    workspace: &Workspace,
    nearness: impl Fn(u32, u32) -> Result<Nearness>,
) -> Result<Leaders> {
    let (mut led, mut is_led) = (workspace.rows(), BitVec::repeat(false, sets));
    let mut pairs = pairs.cursor()?;
    for row in firsts.iter()? {
        let (set, first) = row?;
        let known = pairs.at((set, first), |&(a, b, _)| (a, b))?;
        led.push(known.map_or_else(|| Ok((set, first, nearness(set, first)?)), Ok)?)?;
        is_led.set(set as usize, true);
    }
    Ok(Leaders { led: led.finish()?, is_led })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use simstore_corpus::spill::{Budget, Temporary};
    use simstore_io::output::Unfinished;

    proptest! {
        #[test]
        fn on_disk_it_is_the_same(edges in prop::collection::vec((0_u32..60, 0_u32..60), 0..120), chain in 0_u32..60) {
            let folder = tempfile::tempdir().unwrap();
            let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
            let step = Step::new(&(), "sets");
            let chain = (1..chain).map(|set| (set, set - 1));
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(a, b)| a != b).chain(chain).collect();
            let find = |memory: u64| {
                let workspace = Workspace { budget: Budget::new(Some(memory)), temporary: temporary.clone(), parts: None };
                let firsts = components(edges.iter().copied().map(Ok), 60, &workspace, &step).unwrap();
                firsts.iter().unwrap().collect::<Result<Vec<_>>>().unwrap()
            };
            prop_assert_eq!(find(1 << 30), find(0));
        }
    }
}
