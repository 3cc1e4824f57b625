//! The same of a corpus on disk: the join goes through files, one table after the other.

use std::sync::{Mutex, PoisonError};

use simstore::join::{DistinctOnDisk, Forest, JoinOnDisk, NearPair};
use simstore::threads::lock;
use simstore::{Fingerprint, Result};

use crate::pipeline::hamming::{LookedFor, NearPlaces, NearValue, NearValues, stop_after, told};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Rows, Sorter};

/// Shares of the memory: one is for the queries of a batch, or the pairs found; the others are for the join.
const SHARES: u64 = 4;
/// Number of values in a block. The first value of each block is in memory.
const BLOCK: usize = 256;

/// Pairs that a join has found.
struct Found<F> {
    forest: Forest<F>,
    edges: Sorter<(F, F)>,
    pairs: Sorter<(F, F, u32)>,
}

impl<F: Fingerprint> Found<F> {
    fn take(&mut self, some: &[NearPair<F>], with_pairs: bool, workspace: &Workspace) -> Result<()> {
        if with_pairs {
            let pair = |&NearPair { a, b, distance }: &NearPair<F>| (a, b, distance);
            return some.iter().try_for_each(|found| self.pairs.push(pair(found)));
        }
        self.forest.connect_pairs(some);
        if self.forest.memory() > workspace.share() { self.cut() } else { Ok(()) }
    }

    /// Puts what is connected among the edges.
    fn cut(&mut self) -> Result<()> {
        let edges = std::mem::take(&mut self.forest).into_edges().into_iter();
        self.forest = Forest::new();
        edges.into_iter().try_for_each(|(a, b)| self.edges.push((a, b)))
    }
}

impl<F: Fingerprint> LookedFor<'_, F> {
    pub(crate) fn find_on_disk(&self) -> Result<NearValues<F>> {
        let &LookedFor { corpus, distance, workspace, step, .. } = self;
        let memory = workspace.budget.bytes;
        let count = (corpus.len() - corpus.empty) as u64;
        // Files of the first table, and of another one.
        workspace.temporary.expect(workspace.temporary.counts.held() + 2 * count * F::BYTES as u64);
        let of_join = memory / SHARES * (SHARES - 1);
        let parts = JoinOnDisk::choose_parts(count, distance, of_join)?;
        let mut join = JoinOnDisk::create(workspace.temporary.clone(), parts, of_join)?;
        corpus.visit_fingerprints(|_, some| {
            step.add(0)?;
            join.push(some)
        })?;
        let mut values = workspace.sorter::<F>();
        let mut distinct = join.collapse(|_, some| {
            some.iter().try_for_each(|&value| values.push(value))?;
            step.add(0)
        })?;
        let stored = self.look_up_on_disk(&distinct)?;
        let Found { edges, pairs, .. } = self.join(&mut distinct)?;
        let count = distinct.count() as usize;
        drop(distinct);

        let (edges, pairs) = (Rows::sorted(edges)?, Rows::sorted(pairs)?);
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
        let places = Places::new(&values)?;
        let (mut near, mut connected, mut by_place) = (workspace.rows(), workspace.rows(), workspace.rows());
        // Values are in order, and so are their places.
        for row in pairs.iter()? {
            let (a, b, distance) = row?;
            near.push((places.of(a)?, places.of(b)?, distance))?;
        }
        for row in edges.iter()? {
            let (a, b) = row?;
            connected.push((places.of(b)?, places.of(a)?))?;
        }
        for row in stored.iter()? {
            let (value, how) = row?;
            by_place.push((places.of(value)?, how))?;
        }
        let (pairs, edges, stored) = (near.finish()?, connected.finish()?, by_place.finish()?);
        Ok((values, NearPlaces { pairs, edges, stored, distinct: count }))
    }

    /// Looks distinct fingerprints up in stores, as many at a time as fit the memory.
    fn look_up_on_disk(&self, distinct: &DistinctOnDisk<F>) -> Result<Rows<NearValue<F>>> {
        /// Most bytes of memory of a batch for a query and each bit of the distance.
        const BYTES_OF_A_QUERY: u64 = 30;
        let mut found = self.workspace.sorter();
        if self.stores.is_empty() {
            return Rows::sorted(found);
        }
        let memory = self.workspace.budget.bytes / SHARES;
        let most = (memory / (BYTES_OF_A_QUERY * u64::from(self.distance.max(1)))).max(1 << 16) as usize;
        let mut queries = Vec::new();
        distinct.visit(|some| {
            queries.extend_from_slice(some);
            if queries.len() >= most {
                self.look_up(&queries, &mut found)?;
                queries.clear();
            }
            Ok(())
        })?;
        self.look_up(&queries, &mut found)?;
        Rows::sorted(found)
    }

    /// Joins one table after the other.
    fn join(&self, distinct: &mut DistinctOnDisk<F>) -> Result<Found<F>> {
        let &LookedFor { with_pairs, workspace, step, .. } = self;
        let (edges, pairs) = (workspace.sorter(), workspace.sorter());
        let found = Mutex::new(Found { forest: Forest::new(), edges, pairs });
        let failed = Mutex::new(None);
        for table in 0..distinct.parts().tables() {
            step.add(0)?;
            let joined = distinct.join(table, |some| {
                let taken = lock(&found).take(some, with_pairs, workspace);
                stop_after(taken.and_then(|()| step.add(some.len() as u64)), &failed)
            });
            told(joined, &failed)?;
        }
        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.cut()?;
        Ok(found)
    }
}

/// Finds the places of values among all values. Some values are in memory.
struct Places<'a, F> {
    all: &'a Rows<F>,
    some: Vec<F>,
}

impl<'a, F: Fingerprint> Places<'a, F> {
    fn new(all: &'a Rows<F>) -> Result<Self> {
        let mut some = Vec::new();
        for (at, value) in all.iter()?.enumerate() {
            if at % BLOCK == 0 {
                some.push(value?);
            }
        }
        Ok(Places { all, some })
    }

    /// The place of a value, which is there.
    fn of(&self, value: F) -> Result<u32> {
        let block = self.some.partition_point(|&first| first <= value).saturating_sub(1);
        let behind = block * BLOCK + 1..((block + 1) * BLOCK).min(self.all.len());
        Ok(self.all.partition_point_in(behind, |&other| other <= value)? as u32 - 1)
    }
}
