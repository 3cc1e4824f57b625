//! Connected components of near unique documents, in memory or on disk.

use bitvec::vec::BitVec;
use simstore::Result;
use simstore::join::Components;
use xxhash_rust::xxh3::Xxh3;

use crate::pipeline::representatives::Assignments;
use crate::rows::{PairScore, ScoredPair};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, RowsWriter};

/// Collects edges between unique documents, and finds the connected components.
pub(crate) enum Connector<'a> {
    /// Union-find in memory, with the number of unique documents.
    Memory(Components, usize, &'a Workspace),
    /// List of edges, which may spill to disk. Used if union-find would need more memory than [`Workspace::share`].
    Edges(RowsWriter<(u32, u32)>, &'a Workspace),
}

impl<'a> Connector<'a> {
    /// Creates a collector that has no edges yet. `uniques` is the number of unique documents.
    pub(crate) fn new(uniques: usize, workspace: &'a Workspace) -> Self {
        match uniques as u64 * size_of::<u32>() as u64 > workspace.share() {
            true => Connector::Edges(workspace.rows(), workspace),
            false => Connector::Memory(Components::new(uniques), uniques, workspace),
        }
    }

    pub(crate) fn connect(&mut self, a: u32, b: u32) -> Result<()> {
        match self {
            Connector::Memory(components, ..) => {
                components.connect(a as usize, b as usize);
                Ok(())
            }
            Connector::Edges(edges, _) => edges.push((a, b)),
        }
    }

    /// Whether the edges collected so far connect two documents. Always false for [`Connector::Edges`], which only
    /// lists edges and cannot tell.
    pub(crate) fn are_connected(&mut self, a: u32, b: u32) -> bool {
        match self {
            Connector::Memory(components, ..) => components.first(a as usize) == components.first(b as usize),
            Connector::Edges(..) => false,
        }
    }

    /// Returns rows (document, best document of its component), in order, for all documents that are not the best
    /// document of their component. The best document is the one with the smallest number.
    pub(crate) fn into_firsts(self, stage: &Stage<'_>) -> Result<Rows<(u32, u32)>> {
        let (mut components, uniques, workspace) = match self {
            Connector::Memory(components, uniques, workspace) => (components, uniques, workspace),
            Connector::Edges(edges, workspace) => {
                return components_on_disk(edges.finish()?.iter()?, workspace, stage);
            }
        };
        let firsts = (0..uniques).map(|unique| (unique as u32, components.first(unique) as u32));
        workspace.collected(firsts.filter(|(unique, first)| first != unique).map(Ok))
    }
}

/// Finds the connected components of unique documents. `pairs` has the edges, and `uniques` is the number of unique
/// documents. Returns the rows of [`Connector::into_firsts`].
pub(crate) fn components(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    uniques: usize,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<Rows<(u32, u32)>> {
    let mut connector = Connector::new(uniques, workspace);
    for (at, pair) in pairs.enumerate() {
        let (a, b) = pair?;
        connector.connect(a, b)?;
        if at % 1024 == 0 {
            stage.add(0)?;
        }
    }
    connector.into_firsts(stage)
}

/// Finds the connected components of the edges `pairs` on disk. Returns the rows of [`Connector::into_firsts`].
/// Alternates large-star and small-star rounds until no edge changes (R. Kiveris et al., "Connected Components in
/// `MapReduce` and Beyond", `SoCC` 2014).
fn components_on_disk(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<Rows<(u32, u32)>> {
    let edges = pairs.map(|pair| pair.map(|(a, b)| (a.max(b), a.min(b))));
    let (mut edges, mut check) = (workspace.sorted(edges)?, 0);
    loop {
        stage.add(0)?;
        // Large star: connects the neighbors greater than a document to the least of the document and its neighbors.
        let mut both = workspace.sorter::<(u32, u32)>();
        for edge in edges.iter()? {
            let (a, b) = edge?;
            both.push((a, b))?;
            both.push((b, a))?;
        }
        let mut large = workspace.sorter::<(u32, u32)>();
        visit_stars(RowCursor::new(both.finish()?), |unique, min, other| {
            if other > unique { large.push((other, min)) } else { Ok(()) }
        })?;
        // Small star: connects the smaller neighbors, and the document itself, to the least of them.
        let mut small = workspace.sorter::<(u32, u32)>();
        visit_stars(RowCursor::new(large.finish()?), |unique, min, other| {
            if other == min { small.push((unique, min)) } else { small.push((other, min)) }
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

/// Calls `visitor` for each document and each of its neighbors, with three arguments: the document; the document
/// with the smallest number among the document and all its neighbors; the neighbor. `edges` must be sorted.
fn visit_stars(
    mut edges: RowCursor<impl Iterator<Item = Result<(u32, u32)>>, (u32, u32)>,
    mut visitor: impl FnMut(u32, u32, u32) -> Result<()>,
) -> Result<()> {
    while let Some((unique, first)) = edges.next_row()? {
        // Edges are sorted, so the first neighbor is the least.
        let min = unique.min(first);
        visitor(unique, min, first)?;
        let mut last = first;
        while let Some((_, other)) = edges.next_if(|&(next, _)| next == unique)? {
            if std::mem::replace(&mut last, other) != other {
                visitor(unique, min, other)?;
            }
        }
    }
    Ok(())
}

/// Makes the most preferred document of each component the representative of its other documents. `firsts` has the
/// rows of [`Connector::into_firsts`]. The score of a document and its representative is looked up in
/// `pairs`; `score` computes the score of a pair that is not in `pairs`.
pub(crate) fn assignments(
    firsts: &Rows<(u32, u32)>,
    pairs: &Rows<ScoredPair>,
    uniques: usize,
    workspace: &Workspace,
    score: impl Fn(u32, u32) -> Result<PairScore>,
) -> Result<Assignments> {
    let (mut rows, mut is_represented) = (workspace.rows(), BitVec::repeat(false, uniques));
    let mut pairs = pairs.cursor()?;
    for row in firsts.iter()? {
        let (unique, first) = row?;
        let known = pairs.seek((unique, first), |&(a, b, _)| (a, b))?;
        rows.push(known.map_or_else(|| Ok((unique, first, score(unique, first)?)), Ok)?)?;
        is_represented.set(unique as usize, true);
    }
    Ok(Assignments { rows: rows.finish()?, is_represented })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use simstore_corpus::spill::{MemoryBudget, TemporaryFolder};
    use simstore_io::output::UnfinishedOutputs;

    proptest! {
        #[test]
        fn on_disk_it_is_the_same(edges in prop::collection::vec((0_u32..60, 0_u32..60), 0..120), chain in 0_u32..60) {
            let folder = tempfile::tempdir().unwrap();
            let temporary = TemporaryFolder::new(Some(folder.path()), &UnfinishedOutputs::default(), &()).unwrap();
            let stage = Stage::new(&(), "sets");
            let chain = (1..chain).map(|unique| (unique, unique - 1));
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(a, b)| a != b).chain(chain).collect();
            let find = |memory: u64| {
                let workspace = Workspace { budget: MemoryBudget::new(Some(memory)), temporary: temporary.clone(), parts: None };
                let firsts = components(edges.iter().copied().map(Ok), 60, &workspace, &stage).unwrap();
                firsts.iter().unwrap().collect::<Result<Vec<_>>>().unwrap()
            };
            prop_assert_eq!(find(1 << 30), find(0));
        }
    }
}
