//! Search by Hamming distance. Finds the *listed* fingerprints of a corpus. A fingerprint is listed if several
//! documents have it, or if it is near another fingerprint of the corpus or near a stored fingerprint.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bitvec::vec::BitVec;
use rayon::prelude::*;
use simstore::batch::{BatchMatch, BatchMethod};
use simstore::join::{self, Components, IndexPair};
use simstore::threads::lock;
use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::stage_results::{
    StageCheckpoints, StageHeader, StageReadError, StageReader, hash_rows,
};
use crate::documents::Corpus;
use crate::rows::StoredRow;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{Rows, Sorter};

/// Fingerprint of the corpus and a stored fingerprint near it: (fingerprint, (distance in bits, stored fingerprint)).
pub(crate) type StoredNeighborRow<F> = (F, (u32, StoredRow));

/// Inputs of a search for near fingerprints.
pub(crate) struct HammingSearch<'a, F: Fingerprint> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) distance: u32,
    /// Whether to return all near pairs. If not, the search returns fewer pairs, called *edges*, which connect the
    /// same components as all near pairs.
    pub(crate) with_pairs: bool,
    /// Reference stores that existed before the run, each with its index among all reference stores of the run.
    pub(crate) stores: Vec<(u32, &'a Snapshot<F>)>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) stage: &'a Stage<'a>,
}

/// Listed fingerprints in ascending order, and their neighbors. A fingerprint is listed if it is repeated in
/// the corpus, near another one of the corpus, or near a stored one.
pub(crate) type NearFingerprints<F> = (Rows<F>, FingerprintNeighbors);

/// Near pairs of fingerprints. Each fingerprint is given by its index in the list of [`NearFingerprints`].
pub(crate) struct FingerprintNeighbors {
    /// All near pairs (`a`, `b`, distance in bits) with `a` < `b`, sorted. Empty if
    /// [`with_pairs`](HammingSearch::with_pairs) is not set.
    pub(crate) pairs: Rows<(u32, u32, u32)>,
    /// Edges with the same connected components as all near pairs. The two ends of an edge are not always near each
    /// other. Empty if [`with_pairs`](HammingSearch::with_pairs) is set.
    pub(crate) edges: Rows<(u32, u32)>,
    /// Pairs of a fingerprint of the corpus and a stored fingerprint near it: (index in the list of
    /// [`NearFingerprints`], (distance in bits, stored fingerprint)), sorted.
    pub(crate) stored: Rows<(u32, (u32, StoredRow))>,
    /// Number of distinct fingerprints in the corpus.
    pub(crate) distinct: usize,
}

impl<F: Fingerprint> HammingSearch<'_, F> {
    /// Compares all fingerprints of the corpus with each other and with the stored fingerprints.
    pub(crate) fn find(&self) -> Result<NearFingerprints<F>> {
        self.stage.add(0)?;
        if self.corpus.spilled().is_some() { self.find_on_disk() } else { self.find_in_memory() }
    }

    /// Loads the result that an earlier run has saved. If there is none, finds the result and saves it. Must not be
    /// called in a run with reference stores, because the stores may change between runs.
    pub(crate) fn find_or_load(&self, checkpoints: &StageCheckpoints<'_>) -> Result<NearFingerprints<F>> {
        let mut hash = Xxh3::new();
        self.corpus.visit_fingerprints::<F>(|_, batch| {
            self.stage.add(0)?;
            hash_rows(&mut hash, batch.iter().copied().map(Ok))
        })?;
        let options = format!("bits {} distance {} pairs {}", F::BITS, self.distance, self.with_pairs);
        let stage = StageHeader::new("near", options, hash.digest());
        let (read, find) = (|kept: &mut StageReader| self.read(kept), || self.find());
        checkpoints.load_or_compute(&stage, read, find, |(values, near), kept| {
            kept.write_rows(values)?;
            kept.write_rows(&near.pairs)?;
            kept.write_rows(&near.edges)?;
            kept.rows(1, [Ok(near.distinct as u64)].into_iter())
        })
    }

    fn read(&self, kept: &mut StageReader) -> Result<NearFingerprints<F>, StageReadError> {
        let values = kept.rows(self.workspace, |_| true)?;
        self.check(&values)?;
        let is_pair = |a: u32, b: u32| a != b && (a.max(b) as usize) < values.len();
        let pairs = kept
            .rows(self.workspace, |&(a, b, distance)| is_pair(a, b) && a < b && distance <= self.distance)?;
        let mut edges = self.workspace.rows();
        kept.visit(|(a, b): (u32, u32)| match is_pair(a, b) {
            true => Ok(edges.push((a, b))?),
            false => Err(StageReadError::Invalid("rows that cannot be".to_owned())),
        })?;
        let documents = self.corpus.len() - self.corpus.empty;
        let distinct = match kept.numbers()?[..] {
            [distinct] if (values.len()..=documents).contains(&(distinct as usize)) => distinct as usize,
            _ => return Err(StageReadError::Invalid("a count that cannot be".to_owned())),
        };
        for pair in pairs.iter()? {
            let (a, b, distance) = pair?;
            if values.get(a as usize)?.distance(values.get(b as usize)?) != distance {
                return Err(StageReadError::Invalid("a pair of another distance".to_owned()));
            }
        }
        let (edges, stored) = (edges.finish()?, self.workspace.rows().finish()?);
        Ok((values, FingerprintNeighbors { pairs, edges, stored, distinct }))
    }

    /// Checks that each fingerprint in `values`, loaded from an earlier run, belongs to a document of the corpus.
    fn check(&self, values: &Rows<F>) -> Result<(), StageReadError> {
        let mut has_document: BitVec = BitVec::repeat(false, values.len());
        for row in documents_with(values, self.corpus, self.workspace, self.stage)?.iter()? {
            has_document.set(row?.1 as usize, true);
        }
        match has_document.first_zero() {
            Some(index) => {
                let missing = values.get(index)?.to_hex();
                Err(StageReadError::Invalid(format!("no document has the fingerprint {missing}")))
            }
            None => Ok(()),
        }
    }

    fn find_in_memory(&self) -> Result<NearFingerprints<F>> {
        let &HammingSearch { corpus, distance, with_pairs, workspace, stage, .. } = self;
        let mut distinct = Vec::with_capacity(corpus.len() - corpus.empty);
        corpus.visit_fingerprints(|_, batch| {
            distinct.extend_from_slice(batch);
            stage.add(0)
        })?;
        join::sort(&mut distinct);
        let mut repeated: Vec<F> = Vec::new();
        join::collapse(&mut distinct, &mut repeated);
        let components = Components::new(if with_pairs { 0 } else { distinct.len() });
        let near = Mutex::new((components, workspace.sorter::<(u32, u32, u32)>()));
        let failed = Mutex::new(None);
        let joined = join::visit_pairs(&distinct, distance, |batch| {
            let (components, pairs) = &mut *lock(&near);
            let result = batch.iter().try_for_each(|&IndexPair { a, b, distance }| {
                if with_pairs {
                    return pairs.push((a as u32, b as u32, distance));
                }
                components.connect(a, b);
                Ok(())
            });
            stop_after(result.and_then(|()| stage.add(batch.len() as u64)), &failed)
        });
        first_error(joined, &failed)?;
        stage.add(0)?;
        let (mut components, pairs) = near.into_inner().unwrap_or_else(PoisonError::into_inner);
        let pairs = Rows::from_sorter(pairs)?;
        let mut stored = workspace.sorter();
        self.look_up(&distinct, &mut stored)?;
        let stored = Rows::from_sorter(stored)?;

        // Renumber: from here on, an index counts only the fingerprints that are listed.
        let index = |value: F| distinct.partition_point(|&other| other < value);
        let mut is_listed: BitVec<u64> = BitVec::repeat(false, distinct.len());
        repeated.iter().for_each(|&value| is_listed.set(index(value), true));
        for row in stored.iter()? {
            is_listed.set(index(row?.0), true);
        }
        for pair in pairs.iter()? {
            let (a, b, _) = pair?;
            is_listed.set(a as usize, true);
            is_listed.set(b as usize, true);
        }
        if !with_pairs {
            for index in 0..distinct.len() {
                let first = components.first(index);
                if first != index {
                    is_listed.set(index, true);
                    is_listed.set(first, true);
                }
            }
        }
        let ranks = RankedBits::new(is_listed);
        let (mut values, mut edges) = (workspace.rows(), workspace.rows());
        for index in ranks.bits.iter_ones() {
            values.push(distinct[index])?;
            if !with_pairs {
                let first = components.first(index);
                if first != index {
                    edges.push((ranks.rank(index), ranks.rank(first)))?;
                }
            }
        }
        let (values, edges) = (values.finish()?, edges.finish()?);
        let ranked =
            |(a, b, distance): (u32, u32, u32)| (ranks.rank(a as usize), ranks.rank(b as usize), distance);
        let pairs = workspace.collected(pairs.iter()?.map(|pair| pair.map(ranked)))?;
        let ranked = |(value, neighbor): StoredNeighborRow<F>| (ranks.rank(index(value)), neighbor);
        let stored = workspace.collected(stored.iter()?.map(|row| row.map(ranked)))?;
        Ok((values, FingerprintNeighbors { pairs, edges, stored, distinct: distinct.len() }))
    }

    /// Looks up the distinct fingerprints of the corpus in the stores, and adds near stored fingerprints to
    /// `found`. A stored fingerprint that is in several segments of its store is added several times.
    pub(crate) fn look_up(&self, distinct: &[F], found: &mut Sorter<StoredNeighborRow<F>>) -> Result<()> {
        let (found, failed) = (Mutex::new(found), Mutex::new(None));
        for &(store, snapshot) in &self.stores {
            let visited = snapshot.batch_visit(distinct, self.distance, BatchMethod::Auto, |batch| {
                let mut found = lock(&found);
                let result = batch.iter().try_for_each(|near: &BatchMatch<F>| {
                    let (fingerprint, id) = (near.found.fingerprint, near.found.id);
                    let stored = StoredRow { store, id, fingerprint: fingerprint.to_u128() };
                    found.push((distinct[near.query], (near.found.distance, stored)))
                });
                stop_after(result.and_then(|()| self.stage.add(0)), &failed)
            });
            first_error(visited, &failed)?;
        }
        self.stage.add(0)
    }
}

/// Converts the result of a visitor to control flow. On success, the operation that calls the visitor continues.
/// After an error, the operation stops, and the first error is stored in `failed`.
pub(crate) fn stop_after(result: Result<()>, failed: &Mutex<Option<simstore::Error>>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            lock(failed).get_or_insert(error);
            ControlFlow::Break(())
        }
    }
}

/// Returns the error that [`stop_after`] has stored in `failed`. If there is none, returns `result`, which is the
/// result of the operation that [`stop_after`] can stop.
pub(crate) fn first_error(result: Result<()>, failed: &Mutex<Option<simstore::Error>>) -> Result<()> {
    match lock(failed).take() {
        Some(error) => Err(error),
        None => result,
    }
}

/// Bit vector with constant-time rank queries.
struct RankedBits {
    bits: BitVec<u64>,
    /// Number of ones in `bits` before each 64-bit word.
    before: Vec<u32>,
}

impl RankedBits {
    fn new(bits: BitVec<u64>) -> RankedBits {
        let mut count = 0;
        let before = bits.as_raw_slice().iter().map(|word| {
            count += word.count_ones();
            count - word.count_ones()
        });
        RankedBits { before: before.collect(), bits }
    }

    /// Number of ones in `bits` before `index`.
    fn rank(&self, index: usize) -> u32 {
        let word = self.bits.as_raw_slice()[index / 64];
        self.before[index / 64] + (word & ((1 << (index % 64)) - 1)).count_ones()
    }
}

/// Minimum number of fingerprints that one thread looks up at a time.
const MIN_LOOKED_UP: usize = 1 << 12;

/// Returns rows (document, index of its fingerprint in `values`) for all documents whose fingerprint is in
/// `values`, in document order. `values` must be ascending.
pub(crate) fn documents_with<F: Fingerprint>(
    values: &Rows<F>,
    corpus: &Corpus,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<Rows<(u64, u32)>> {
    let mut found = workspace.sorter();
    let max_values = usize::try_from(workspace.share()).unwrap_or(usize::MAX) / (F::BYTES + 2);
    let (mut rows, mut first) = (values.iter()?, 0);
    loop {
        let batch: Vec<F> = rows.by_ref().take(max_values.max(1024)).collect::<Result<_>>()?;
        if batch.is_empty() {
            return Rows::from_sorter(found);
        }
        FingerprintFilter::new(&batch).visit(corpus, |document, index| {
            stage.add(0)?;
            found.push((document, first + index))
        })?;
        first += batch.len() as u32;
    }
}

/// Look-up of fingerprints in an ascending list. A filter of hashes rejects most fingerprints that are not in
/// the list, so that few fingerprints need a binary search.
struct FingerprintFilter<'v, F> {
    values: &'v [F],
    /// One bit per hash: whether a fingerprint in `values` has this hash. The number of bits is a power of two.
    hashes: BitVec,
}

impl<'v, F: Fingerprint> FingerprintFilter<'v, F> {
    fn new(values: &'v [F]) -> Self {
        let bits = (values.len() * 16).max(64).ilog2();
        let mut filter = FingerprintFilter { values, hashes: BitVec::repeat(false, 1 << bits) };
        for &value in values {
            let hash = filter.hash(value);
            filter.hashes.set(hash, true);
        }
        filter
    }

    fn hash(&self, value: F) -> usize {
        let folded = value.low_u64() ^ value.high_u64().rotate_left(32);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.hashes.len().ilog2())) as usize
    }

    /// Visits (document, index of its fingerprint in `values`) for all documents whose fingerprint is in
    /// `values`, in document order.
    fn visit(&self, corpus: &Corpus, mut visitor: impl FnMut(u64, u32) -> Result<()>) -> Result<()> {
        corpus.visit_fingerprints::<F>(|first, batch| {
            let found: Vec<(u64, u32)> = (batch.par_iter().with_min_len(MIN_LOOKED_UP).enumerate())
                .filter(|&(_, &value)| self.hashes[self.hash(value)])
                .filter_map(|(at, value)| {
                    Some(((first + at) as u64, self.values.binary_search(value).ok()? as u32))
                })
                .collect();
            found.into_iter().try_for_each(|(document, index)| visitor(document, index))
        })
    }
}
