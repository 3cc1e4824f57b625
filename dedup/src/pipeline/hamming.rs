//! The fingerprints of a corpus that are near others, or are there several times, or near something in a store.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use bitvec::vec::BitVec;
use rayon::prelude::*;
use simstore::batch::{BatchMatch, BatchMethod};
use simstore::join::{self, Components, Pair};
use simstore::threads::lock;
use simstore::{Fingerprint, Result, Snapshot};
use xxhash_rust::xxh3::Xxh3;

use crate::checkpoint::stage_results::{Keeping, KeptReader, Stage, Unsound, check_of};
use crate::corpus::Corpus;
use crate::rows::Stored;
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Rows, Sorter};

/// A fingerprint of the corpus, its distance to a stored fingerprint in bits, and the stored fingerprint.
pub(crate) type NearValue<F> = (F, (u32, Stored));

/// A search for near fingerprints.
pub(crate) struct LookedFor<'a, F: Fingerprint> {
    pub(crate) corpus: &'a Corpus,
    pub(crate) distance: u32,
    /// Whether to list all pairs, and not only connections.
    pub(crate) with_pairs: bool,
    /// The stores that are compared with, with their numbers.
    pub(crate) stores: Vec<(u32, &'a Snapshot<F>)>,
    pub(crate) workspace: &'a Workspace,
    pub(crate) step: &'a Step<'a>,
}

/// Fingerprints that are near others, repeated, or near a stored one, ascending; and how they are near.
pub(crate) type NearValues<F> = (Rows<F>, NearPlaces);

/// Near fingerprints. Each has a number, its place among all of them.
pub(crate) struct NearPlaces {
    /// Near ones, `a` < `b`, with their distance in bits, if pairs are listed; in order.
    pub(crate) pairs: Rows<(u32, u32, u32)>,
    /// Connections, if pairs are not listed.
    pub(crate) edges: Rows<(u32, u32)>,
    /// Near stored fingerprints: the place, the distance in bits, and the stored fingerprint; in order.
    pub(crate) stored: Rows<(u32, (u32, Stored))>,
    /// Number of distinct fingerprints.
    pub(crate) distinct: usize,
}

impl<F: Fingerprint> LookedFor<'_, F> {
    /// Compares all fingerprints of the corpus with one another, and with stored ones.
    pub(crate) fn find(&self) -> Result<NearValues<F>> {
        self.step.add(0)?;
        if self.corpus.spilled().is_some() { self.find_on_disk() } else { self.find_in_memory() }
    }

    /// The same, kept for a run that carries on, or by an earlier run.
    pub(crate) fn kept(&self, keeping: &Keeping<'_>) -> Result<NearValues<F>> {
        let mut hash = Xxh3::new();
        self.corpus.visit_fingerprints::<F>(|_, some| {
            self.step.add(0)?;
            check_of(&mut hash, some.iter().copied().map(Ok))
        })?;
        let asked = format!("bits {} distance {} pairs {}", F::BITS, self.distance, self.with_pairs);
        let stage = Stage::new("near", asked, hash.digest());
        let (read, find) = (|kept: &mut KeptReader| self.read(kept), || self.find());
        keeping.kept(&stage, read, find, |(values, near), kept| {
            kept.all(values)?;
            kept.all(&near.pairs)?;
            kept.all(&near.edges)?;
            kept.rows(1, [Ok(near.distinct as u64)].into_iter())
        })
    }

    fn read(&self, kept: &mut KeptReader) -> Result<NearValues<F>, Unsound> {
        let values = kept.rows(self.workspace, |_| true)?;
        self.check(&values)?;
        let is_pair = |a: u32, b: u32| a != b && (a.max(b) as usize) < values.len();
        let pairs = kept
            .rows(self.workspace, |&(a, b, distance)| is_pair(a, b) && a < b && distance <= self.distance)?;
        let mut edges = self.workspace.rows();
        kept.visit(|(a, b): (u32, u32)| match is_pair(a, b) {
            true => Ok(edges.push((a, b))?),
            false => Err(Unsound::Reason("rows that cannot be".to_owned())),
        })?;
        let documents = self.corpus.len() - self.corpus.empty;
        let distinct = match kept.numbers()?[..] {
            [distinct] if (values.len()..=documents).contains(&(distinct as usize)) => distinct as usize,
            _ => return Err(Unsound::Reason("a count that cannot be".to_owned())),
        };
        for pair in pairs.iter()? {
            let (a, b, distance) = pair?;
            if values.get(a as usize)?.distance(values.get(b as usize)?) != distance {
                return Err(Unsound::Reason("a pair of another distance".to_owned()));
            }
        }
        let (edges, stored) = (edges.finish()?, self.workspace.rows().finish()?);
        Ok((values, NearPlaces { pairs, edges, stored, distinct }))
    }

    /// Fails if no document has one of the fingerprints.
    fn check(&self, values: &Rows<F>) -> Result<(), Unsound> {
        let mut is_there: BitVec = BitVec::repeat(false, values.len());
        for row in documents_of(values, self.corpus, self.workspace, self.step)?.iter()? {
            is_there.set(row?.1 as usize, true);
        }
        match is_there.first_zero() {
            Some(place) => {
                let missing = values.get(place)?.to_hex();
                Err(Unsound::Reason(format!("no document has the fingerprint {missing}")))
            }
            None => Ok(()),
        }
    }

    fn find_in_memory(&self) -> Result<NearValues<F>> {
        let &LookedFor { corpus, distance, with_pairs, workspace, step, .. } = self;
        let mut distinct = Vec::with_capacity(corpus.len() - corpus.empty);
        corpus.visit_fingerprints(|_, some| {
            distinct.extend_from_slice(some);
            step.add(0)
        })?;
        join::sort(&mut distinct);
        let mut repeated: Vec<F> = Vec::new();
        join::collapse(&mut distinct, &mut repeated);
        let components = Components::new(if with_pairs { 0 } else { distinct.len() });
        let near = Mutex::new((components, workspace.sorter::<(u32, u32, u32)>()));
        let failed = Mutex::new(None);
        let joined = join::visit_pairs(&distinct, distance, |batch| {
            let (components, pairs) = &mut *lock(&near);
            let taken = batch.iter().try_for_each(|&Pair { a, b, distance }| {
                if with_pairs {
                    return pairs.push((a as u32, b as u32, distance));
                }
                components.connect(a, b);
                Ok(())
            });
            stop_after(taken.and_then(|()| step.add(batch.len() as u64)), &failed)
        });
        told(joined, &failed)?;
        step.add(0)?;
        let (mut components, pairs) = near.into_inner().unwrap_or_else(PoisonError::into_inner);
        let pairs = Rows::sorted(pairs)?;
        let mut stored = workspace.sorter();
        self.look_up(&distinct, &mut stored)?;
        let stored = Rows::sorted(stored)?;

        // From here on, only the few fingerprints that are near others or repeated.
        let place = |value: F| distinct.partition_point(|&other| other < value);
        let mut is_told: BitVec<u64> = BitVec::repeat(false, distinct.len());
        repeated.iter().for_each(|&value| is_told.set(place(value), true));
        for row in stored.iter()? {
            is_told.set(place(row?.0), true);
        }
        for pair in pairs.iter()? {
            let (a, b, _) = pair?;
            is_told.set(a as usize, true);
            is_told.set(b as usize, true);
        }
        if !with_pairs {
            for place in 0..distinct.len() {
                let first = components.first(place);
                if first != place {
                    is_told.set(place, true);
                    is_told.set(first, true);
                }
            }
        }
        let ranks = Ranked::new(is_told);
        let (mut values, mut edges) = (workspace.rows(), workspace.rows());
        for place in ranks.bits.iter_ones() {
            values.push(distinct[place])?;
            if !with_pairs {
                let first = components.first(place);
                if first != place {
                    edges.push((ranks.of(place), ranks.of(first)))?;
                }
            }
        }
        let (values, edges) = (values.finish()?, edges.finish()?);
        let ranked =
            |(a, b, distance): (u32, u32, u32)| (ranks.of(a as usize), ranks.of(b as usize), distance);
        let pairs = workspace.collected(pairs.iter()?.map(|pair| pair.map(ranked)))?;
        let ranked = |(value, how): NearValue<F>| (ranks.of(place(value)), how);
        let stored = workspace.collected(stored.iter()?.map(|row| row.map(ranked)))?;
        Ok((values, NearPlaces { pairs, edges, stored, distinct: distinct.len() }))
    }

    /// Looks distinct fingerprints up in stores. A fingerprint in several segments is found several times.
    pub(crate) fn look_up(&self, distinct: &[F], found: &mut Sorter<NearValue<F>>) -> Result<()> {
        let (found, failed) = (Mutex::new(found), Mutex::new(None));
        for &(store, snapshot) in &self.stores {
            let visited = snapshot.batch_visit(distinct, self.distance, BatchMethod::Auto, |some| {
                let mut found = lock(&found);
                let taken = some.iter().try_for_each(|near: &BatchMatch<F>| {
                    let (fingerprint, id) = (near.found.fingerprint, near.found.id);
                    let stored = Stored { store, id, fingerprint: fingerprint.to_u128() };
                    found.push((distinct[near.query], (near.found.distance, stored)))
                });
                stop_after(taken.and_then(|()| self.step.add(0)), &failed)
            });
            told(visited, &failed)?;
        }
        self.step.add(0)
    }
}

/// Goes on unless something has failed, which is kept.
pub(crate) fn stop_after(result: Result<()>, failed: &Mutex<Option<simstore::Error>>) -> ControlFlow<()> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            lock(failed).get_or_insert(error);
            ControlFlow::Break(())
        }
    }
}

/// Why something was stopped says more than that it was.
pub(crate) fn told(result: Result<()>, failed: &Mutex<Option<simstore::Error>>) -> Result<()> {
    match lock(failed).take() {
        Some(error) => Err(error),
        None => result,
    }
}

/// Bits, and how many are set before each.
struct Ranked {
    bits: BitVec<u64>,
    before: Vec<u32>,
}

impl Ranked {
    fn new(bits: BitVec<u64>) -> Ranked {
        let mut count = 0;
        let before = bits.as_raw_slice().iter().map(|word| {
            count += word.count_ones();
            count - word.count_ones()
        });
        Ranked { before: before.collect(), bits }
    }

    fn of(&self, place: usize) -> u32 {
        let word = self.bits.as_raw_slice()[place / 64];
        self.before[place / 64] + (word & ((1 << (place % 64)) - 1)).count_ones()
    }
}

/// Fingerprints that are looked up by one thread, at least.
const MIN_LOOKED_UP: usize = 1 << 12;

/// The documents of each of some ascending fingerprints, by document: each with the place of its fingerprint.
pub(crate) fn documents_of<F: Fingerprint>(
    values: &Rows<F>,
    corpus: &Corpus,
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Rows<(u64, u32)>> {
    let mut found = workspace.sorter();
    let most = usize::try_from(workspace.share()).unwrap_or(usize::MAX) / (F::BYTES + 2);
    let (mut rows, mut first) = (values.iter()?, 0);
    loop {
        let some: Vec<F> = rows.by_ref().take(most.max(1024)).collect::<Result<_>>()?;
        if some.is_empty() {
            return Rows::sorted(found);
        }
        Places::of(&some).visit(corpus, |document, place| {
            step.add(0)?;
            found.push((document, first + place))
        })?;
        first += some.len() as u32;
    }
}

/// An index of ascending fingerprints.
struct Places<'v, F> {
    values: &'v [F],
    /// Most documents have no such fingerprint: a bit for each of many hashes tells so at once.
    hashes: BitVec,
}

impl<'v, F: Fingerprint> Places<'v, F> {
    fn of(values: &'v [F]) -> Self {
        let bits = (values.len() * 16).max(64).ilog2();
        let mut places = Places { values, hashes: BitVec::repeat(false, 1 << bits) };
        for &value in values {
            let hash = places.hash(value);
            places.hashes.set(hash, true);
        }
        places
    }

    fn hash(&self, value: F) -> usize {
        let folded = value.low_u64() ^ value.high_u64().rotate_left(32);
        (folded.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.hashes.len().ilog2())) as usize
    }

    /// The documents of a corpus that have one of the values, in order, with the place of the value.
    fn visit(&self, corpus: &Corpus, mut visitor: impl FnMut(u64, u32) -> Result<()>) -> Result<()> {
        corpus.visit_fingerprints::<F>(|first, some| {
            let found: Vec<(u64, u32)> = (some.par_iter().with_min_len(MIN_LOOKED_UP).enumerate())
                .filter(|&(_, &value)| self.hashes[self.hash(value)])
                .filter_map(|(at, value)| {
                    Some(((first + at) as u64, self.values.binary_search(value).ok()? as u32))
                })
                .collect();
            found.into_iter().try_for_each(|(document, place)| visitor(document, place))
        })
    }
}
