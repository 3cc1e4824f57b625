//! Pairs of a fingerprint and an id, in order of the operations that made them.

use std::sync::atomic::{AtomicU64, Ordering};

use super::growing::{Growing, Heads, mix};
use crate::fingerprint::Fingerprint;
use crate::kernels::prefetch;

/// What `until` is while no operation has ended a pair.
const NEVER: u64 = u64::MAX;

/// A pair, and the operations between which it is there: from `since` on, before `until`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<F> {
    pub(super) fingerprint: F,
    pub(super) id: u64,
    since: u64,
    until: u64,
}

impl<F> Pair<F> {
    #[inline]
    pub(super) fn is_there(&self, version: u64) -> bool {
        self.since <= version && version < self.until
    }
}

/// Pairs in order of `since`, with a hash table of chains, the newest pair first.
pub(super) struct Pairs<F> {
    records: Growing<AtomicU64>,
    heads: Heads,
    /// The operations that ended pairs.
    ends: Growing<AtomicU64>,
    _fingerprints: std::marker::PhantomData<F>,
}

impl<F: Fingerprint> Pairs<F> {
    /// Words of a fingerprint, which a record starts with.
    const WORDS: usize = F::BYTES / 8;
    const ID: usize = Self::WORDS;
    const SINCE: usize = Self::WORDS + 1;
    const UNTIL: usize = Self::WORDS + 2;
    /// One more than the number of the next pair of the chain.
    const NEXT: usize = Self::WORDS + 3;
    const LEN: usize = Self::WORDS + 4;
    /// Memory of a pair, in bytes.
    pub(super) const BYTES: usize = Self::LEN * 8;

    /// With 2^`bits` chains.
    pub(super) fn new(bits: u32) -> Self {
        Pairs {
            records: Growing::new(Self::LEN),
            heads: Heads::new(bits),
            ends: Growing::new(1),
            _fingerprints: std::marker::PhantomData,
        }
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Pair<F> {
        Self::read(self.records.get(number))
    }

    #[inline(always)]
    fn read(cells: &[AtomicU64]) -> Pair<F> {
        Pair {
            fingerprint: load(cells),
            id: cells[Self::ID].load(Ordering::Relaxed),
            since: cells[Self::SINCE].load(Ordering::Relaxed),
            // The end of a version's pair was there when the version was published.
            until: cells[Self::UNTIL].load(Ordering::Acquire),
        }
    }

    /// Appends a pair, and returns its number. The writer's only, and so are the next two.
    pub(super) fn push(&self, fingerprint: F, id: u64, since: u64) -> u32 {
        let hash = hash(fingerprint, id);
        let next = self.heads.get(hash);
        let number = self.records.push(|cells| {
            store(fingerprint, cells);
            cells[Self::ID].store(id, Ordering::Relaxed);
            cells[Self::SINCE].store(since, Ordering::Relaxed);
            cells[Self::UNTIL].store(NEVER, Ordering::Relaxed);
            cells[Self::NEXT].store(u64::from(next), Ordering::Relaxed);
        });
        self.heads.set(hash, number + 1);
        number
    }

    /// The number of a pair that no operation has ended.
    pub(super) fn live(&self, fingerprint: F, id: u64) -> Option<u32> {
        // An older record of the same pair has ended.
        self.chain(fingerprint, id).next().filter(|&number| self.get(number).until == NEVER)
    }

    /// Ends a pair that no operation has ended.
    pub(super) fn end(&self, number: u32, until: u64) {
        self.ends.push(|cells| cells[0].store(until, Ordering::Relaxed));
        self.records.get(number)[Self::UNTIL].store(until, Ordering::Release);
    }

    /// Asks for the memory in which pairs are looked for: that of many at once.
    pub(super) fn ask_for(&self, pairs: &(impl Iterator<Item = (F, u64)> + Clone)) {
        let hashes = || pairs.clone().map(|(fingerprint, id)| hash(fingerprint, id));
        let ask_for = |record: u32| {
            if record > 0 {
                let cells = self.records.get(record - 1);
                prefetch(cells, 0);
                prefetch(cells, Self::NEXT);
            }
        };
        hashes().for_each(|hash| self.heads.ask_for(hash));
        hashes().for_each(|hash| ask_for(self.heads.get(hash)));
        for head in hashes().map(|hash| self.heads.get(hash)).filter(|&head| head > 0) {
            ask_for(self.records.get(head - 1)[Self::NEXT].load(Ordering::Relaxed) as u32);
        }
    }

    /// How many there are, ended or not, published or not.
    pub(super) fn len(&self) -> u32 {
        self.records.len()
    }

    /// Numbers of the records of a pair, the newest first.
    fn chain(&self, fingerprint: F, id: u64) -> impl Iterator<Item = u32> {
        let mut next = self.heads.get(hash(fingerprint, id));
        std::iter::from_fn(move || {
            while next > 0 {
                let number = next - 1;
                let cells = self.records.get(number);
                next = cells[Self::NEXT].load(Ordering::Relaxed) as u32;
                if cells[Self::ID].load(Ordering::Relaxed) == id && load::<F>(cells) == fingerprint {
                    return Some(number);
                }
            }
            None
        })
    }

    /// Whether a pair is there.
    pub(super) fn is_there(&self, version: u64, fingerprint: F, id: u64) -> bool {
        // The newest that the version knows; older ones ended before it started.
        let mut known = self.chain(fingerprint, id).map(|number| self.get(number));
        known.find(|pair| pair.since <= version).is_some_and(|pair| version < pair.until)
    }

    /// The pairs that are there, in order of their start.
    pub(super) fn iter(&self, version: u64) -> impl Iterator<Item = Pair<F>> {
        (0..self.started_by(version))
            .map(|number| self.get(number))
            .filter(move |pair| pair.is_there(version))
    }

    /// Visits those that started after the version `after` and are within a distance of a query. Inlined, so that it uses the instructions of its
    /// caller.
    #[inline(always)]
    pub(super) fn scan(
        &self,
        after: u64,
        version: u64,
        query: F,
        distance: u32,
        mut visitor: impl FnMut(Pair<F>),
    ) {
        for run in self.records.runs(self.started_by(after), self.started_by(version)) {
            for cells in run.chunks_exact(Self::LEN) {
                if load::<F>(cells).distance(query) <= distance {
                    let pair = Self::read(cells);
                    if pair.is_there(version) {
                        visitor(pair);
                    }
                }
            }
        }
    }

    /// Number of pairs, ended or not, that a version knows.
    fn started_by(&self, version: u64) -> u32 {
        self.records.partition_point(|cells| cells[Self::SINCE].load(Ordering::Relaxed) <= version)
    }

    /// The largest id of all pairs that a version knows, ended or not.
    pub(super) fn highest_id(&self, version: u64) -> Option<u64> {
        (0..self.started_by(version)).map(|number| self.get(number).id).max()
    }

    /// Number of pairs that are there.
    pub(super) fn count(&self, version: u64) -> u64 {
        let ended = self.ends.partition_point(|cells| cells[0].load(Ordering::Relaxed) <= version);
        u64::from(self.started_by(version) - ended)
    }

    /// The pairs that are there, ascending.
    pub(super) fn sorted(&self, version: u64) -> Vec<(F, u64)> {
        let mut pairs: Vec<_> = self.iter(version).map(|pair| (pair.fingerprint, pair.id)).collect();
        pairs.sort_unstable();
        pairs
    }

    /// Whether none was ever there.
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn bytes(&self) -> u64 {
        self.records.bytes() + self.heads.bytes() + self.ends.bytes()
    }
}

fn hash<F: Fingerprint>(fingerprint: F, id: u64) -> u64 {
    // The halves of 64 bits are the same: one of them is turned, so that they do not cancel out.
    let folded = mix(fingerprint.high_u64()) ^ fingerprint.low_u64().rotate_left(17);
    mix(folded.wrapping_add(mix(!id)))
}

/// Reads a fingerprint from the first cells.
#[inline]
pub(super) fn load<F: Fingerprint>(cells: &[AtomicU64]) -> F {
    let low = F::from_u64(cells[0].load(Ordering::Relaxed));
    // Shifted in two steps: by 64 at once is too far for 64 bits, for which this is never done.
    if F::BYTES == 8 {
        low
    } else {
        F::from_u64(cells[1].load(Ordering::Relaxed)) << 32 << (F::BITS - 96) | low
    }
}

/// Writes a fingerprint to the first cells.
#[inline]
pub(super) fn store<F: Fingerprint>(fingerprint: F, cells: &[AtomicU64]) {
    cells[0].store(fingerprint.low_u64(), Ordering::Relaxed);
    if F::BYTES > 8 {
        cells[1].store(fingerprint.high_u64(), Ordering::Relaxed);
    }
}
