//! Search by Hamming distance for a corpus on disk. To find the near pairs, the fingerprints are divided into files
//! that are small enough for the memory. Each *table* divides them in another way, so that two near fingerprints are
//! in the same file of at least one table. The search processes one table after the other.

use std::sync::{Mutex, PoisonError};

use simstore::join::{DistinctOnDisk, FingerprintPair, Forest, JoinOnDisk};
use simstore::threads::lock;
use simstore::{Fingerprint, Result};

use crate::pipeline::hamming::{
    FingerprintNeighbors, HammingSearch, NearFingerprints, StoredNeighborRow, first_error, stop_after,
};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Rows, Sorter};

/// Number of equal shares into which the memory budget is divided. One share is for fingerprints that are looked
/// up, or for near pairs that are found. The other shares are for the search for near pairs.
const BUDGET_SHARES: u64 = 4;
/// Number of fingerprints in a block of [`FingerprintPositions`].
const POSITION_BLOCK: usize = 256;

/// Collector of near pairs. If all pairs are requested, the collector sorts them. Otherwise it adds the pairs to a
/// forest, which keeps only edges that connect components. When the forest is large, its edges are moved to the list
/// `edges`, which can be on disk, and the forest starts empty again.
struct JoinCollector<F> {
    forest: Forest<F>,
    edges: Sorter<(F, F)>,
    pairs: Sorter<(F, F, u32)>,
}

impl<F: Fingerprint> JoinCollector<F> {
    fn add_pairs(
        &mut self,
        batch: &[FingerprintPair<F>],
        with_pairs: bool,
        workspace: &Workspace,
    ) -> Result<()> {
        if with_pairs {
            let pair = |&FingerprintPair { a, b, distance }: &FingerprintPair<F>| (a, b, distance);
            return batch.iter().try_for_each(|found| self.pairs.push(pair(found)));
        }
        self.forest.connect_pairs(batch);
        if self.forest.memory() > workspace.share() { self.flush_forest() } else { Ok(()) }
    }

    /// Moves the edges of the forest to the list `edges`, and empties the forest.
    fn flush_forest(&mut self) -> Result<()> {
        let edges = std::mem::take(&mut self.forest).into_edges().into_iter();
        self.forest = Forest::new();
        edges.into_iter().try_for_each(|(a, b)| self.edges.push((a, b)))
    }
}

impl<F: Fingerprint> HammingSearch<'_, F> {
    pub(crate) fn find_on_disk(&self) -> Result<NearFingerprints<F>> {
        let &HammingSearch { corpus, distance, workspace, stage, .. } = self;
        let memory = workspace.budget.bytes;
        let count = (corpus.len() - corpus.empty) as u64;
        // Two tables are on disk at the same time: the first one and the current one.
        workspace.temporary.expect_bytes(workspace.temporary.counts.on_disk() + 2 * count * F::BYTES as u64);
        let join_memory = memory / BUDGET_SHARES * (BUDGET_SHARES - 1);
        let parts = JoinOnDisk::choose_parts(count, distance, join_memory)?;
        let mut join = JoinOnDisk::create(workspace.temporary.clone(), parts, join_memory)?;
        corpus.visit_fingerprints(|_, batch| {
            stage.add(0)?;
            join.push(batch)
        })?;
        let mut values = workspace.sorter::<F>();
        let mut distinct = join.collapse(|_, batch| {
            batch.iter().try_for_each(|&value| values.push(value))?;
            stage.add(0)
        })?;
        let stored = self.look_up_on_disk(&distinct)?;
        let JoinCollector { edges, pairs, .. } = self.join(&mut distinct)?;
        let count = distinct.count() as usize;
        drop(distinct);

        let (edges, pairs) = (Rows::from_sorter(edges)?, Rows::from_sorter(pairs)?);
        for row in stored.iter()? {
            values.push(row?.0)?;
        }
        for row in edges.iter()? {
            let (a, b) = row?;
            values.push(a)?;
            values.push(b)?;
        }
        for row in pairs.iter()? {
            let (a, b, _) = row?;
            values.push(a)?;
            values.push(b)?;
        }
        let mut last = None;
        let mut is_new = |&value: &F| last.replace(value) != Some(value);
        let distinct = values.finish()?.filter(|value| value.as_ref().map_or(true, &mut is_new));
        let values = workspace.collected(distinct)?;
        let positions = FingerprintPositions::new(&values)?;
        let (mut near, mut connected, mut stored_rows) =
            (workspace.rows(), workspace.rows(), workspace.rows());
        // Rows are sorted by value, and positions ascend with the values. So the converted rows are sorted, too.
        for row in pairs.iter()? {
            let (a, b, distance) = row?;
            near.push((positions.position(a)?, positions.position(b)?, distance))?;
        }
        for row in edges.iter()? {
            let (a, b) = row?;
            connected.push((positions.position(b)?, positions.position(a)?))?;
        }
        for row in stored.iter()? {
            let (value, neighbor) = row?;
            stored_rows.push((positions.position(value)?, neighbor))?;
        }
        let (pairs, edges, stored) = (near.finish()?, connected.finish()?, stored_rows.finish()?);
        Ok((values, FingerprintNeighbors { pairs, edges, stored, distinct: count }))
    }

    /// Looks up the distinct fingerprints of the corpus in the stores, in batches that fit in memory. Returns
    /// the near stored fingerprints.
    fn look_up_on_disk(&self, distinct: &DistinctOnDisk<F>) -> Result<Rows<StoredNeighborRow<F>>> {
        /// Memory for the look-up of one fingerprint, in bytes per bit of the maximum distance.
        const QUERY_BYTES: u64 = 30;
        let mut found = self.workspace.sorter();
        if self.stores.is_empty() {
            return Rows::from_sorter(found);
        }
        let memory = self.workspace.budget.bytes / BUDGET_SHARES;
        let max_queries = (memory / (QUERY_BYTES * u64::from(self.distance.max(1)))).max(1 << 16) as usize;
        let mut queries = Vec::new();
        distinct.visit(|batch| {
            queries.extend_from_slice(batch);
            if queries.len() >= max_queries {
                self.look_up(&queries, &mut found)?;
                queries.clear();
            }
            Ok(())
        })?;
        self.look_up(&queries, &mut found)?;
        Rows::from_sorter(found)
    }

    /// Finds the near pairs of the distinct fingerprints. Several *tables* divide the fingerprints into files, each
    /// table in another way, so two near fingerprints are in the same file of at least one table. Searches one table
    /// after the other.
    fn join(&self, distinct: &mut DistinctOnDisk<F>) -> Result<JoinCollector<F>> {
        let &HammingSearch { with_pairs, workspace, stage, .. } = self;
        let (edges, pairs) = (workspace.sorter(), workspace.sorter());
        let found = Mutex::new(JoinCollector { forest: Forest::new(), edges, pairs });
        let failed = Mutex::new(None);
        for table in 0..distinct.parts().table_count() {
            stage.add(0)?;
            let joined = distinct.join(table, |batch| {
                let result = lock(&found).add_pairs(batch, with_pairs, workspace);
                stop_after(result.and_then(|()| stage.add(batch.len() as u64)), &failed)
            });
            first_error(joined, &failed)?;
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.flush_forest()?;
        Ok(found)
    }
}

/// Finds the positions of fingerprints in a sorted list on disk. The list is divided into blocks, and the first
/// fingerprint of each block is in memory.
struct FingerprintPositions<'a, F> {
    all: &'a Rows<F>,
    block_starts: Vec<F>,
}

impl<'a, F: Fingerprint> FingerprintPositions<'a, F> {
    fn new(all: &'a Rows<F>) -> Result<Self> {
        let mut block_starts = Vec::new();
        for (at, value) in all.iter()?.enumerate() {
            if at % POSITION_BLOCK == 0 {
                block_starts.push(value?);
            }
        }
        Ok(FingerprintPositions { all, block_starts })
    }

    /// Returns the position of the fingerprint `value`, which must be in the list.
    fn position(&self, value: F) -> Result<u32> {
        let block = self.block_starts.partition_point(|&first| first <= value).saturating_sub(1);
        let rest_of_block = block * POSITION_BLOCK + 1..((block + 1) * POSITION_BLOCK).min(self.all.len());
        Ok(self.all.partition_point_in(rest_of_block, |&other| other <= value)? as u32 - 1)
    }
}
