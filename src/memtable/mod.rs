//! The memtable: recent inserts and deletes, in memory, which answers queries itself.
//!
//! One thread writes, any number read, and none waits for another: all is append-only, in arrays that grow by
//! chunks (`growing`), and data is written before the number by which readers find it. Operations are
//! numbered; each pair has the number of the one that inserted it and of the one that deleted it, so that a version,
//! which is a number of operations, always shows the same.

mod bands;
mod by_id;
mod filling;
mod forgotten;
mod growing;
mod marks;
mod pairs;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::bands::Bands;
use self::by_id::ById;
use self::forgotten::Forgotten;
use self::marks::Marks;
use self::pairs::{Pair, Pairs};
use crate::fingerprint::Fingerprint;
use crate::kernels::{Work, dispatch};
use crate::segment::Match;
use crate::wal::Operation;

/// The most chains of a hash table, as a power of two.
const MAX_CHAIN_BITS: u32 = 24;

/// Recent inserts and deletes.
///
/// A delete ends the pair here, and leaves a tombstone, which hides the pair in all older places for good: a pair
/// that is inserted again is a new entry, live here, and its tombstone stays. Names and notes belong to ids; a delete of
/// any pair of an id forgets both, here and in all older places. At most 2^32 - 256 pairs.
pub(crate) struct Memtable<F> {
    pairs: Pairs<F>,
    bands: Bands<F>,
    tombstones: Pairs<F>,
    names: ById<str>,
    notes: ById<[u8]>,
    forgotten: Forgotten,
    marks: Marks,
    distance: u32,
    /// Operations so far. The lock makes sure of one writer at a time.
    operations: Mutex<u64>,
    published: AtomicU64,
}

impl<F: Fingerprint> Memtable<F> {
    /// Made for queries of up to `distance` bits; `bytes` is about how large it is expected to get.
    pub(crate) fn new(distance: u32, bytes: u64) -> Self {
        Memtable::for_pairs(distance, Self::pairs_in(distance, bytes))
    }

    /// How many pairs take so many bytes, about.
    pub(crate) fn pairs_in(distance: u32, bytes: u64) -> u64 {
        bytes / (Pairs::<F>::BYTES + Bands::<F>::bytes_each(distance)) as u64
    }

    /// [`Memtable::new`] for about so many pairs.
    pub(crate) fn for_pairs(distance: u32, expected: u64) -> Self {
        let chain_bits = expected.max(1).ilog2().min(MAX_CHAIN_BITS);
        Memtable {
            pairs: Pairs::new(chain_bits),
            bands: Bands::new(distance, expected),
            tombstones: Pairs::new(chain_bits),
            names: ById::new(chain_bits),
            notes: ById::new(chain_bits),
            forgotten: Forgotten::new(chain_bits),
            marks: Marks::default(),
            distance,
            operations: Mutex::new(0),
            published: AtomicU64::new(0),
        }
    }

    /// A poisoned lock is as good as any: the number in it is always whole.
    fn operations(&self) -> MutexGuard<'_, u64> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does an operation of a log that is being written. Visible once published.
    pub(crate) fn apply(&self, operation: &Operation<'_, F>) {
        let mut number = self.operations();
        *number += 1;
        self.do_one(operation, *number);
    }

    /// Does the operation of this number. An insert of a pair that is live here only gives the name. The writer's only.
    fn do_one(&self, operation: &Operation<'_, F>, number: u64) {
        match *operation {
            Operation::Insert { fingerprint, id, name } => {
                if let Some(pair) = self.push(fingerprint, id, number) {
                    self.bands.insert(fingerprint, pair);
                }
                if let Some(name) = name {
                    self.give_name(id, name, number);
                }
            }
            Operation::Delete { fingerprint, id } => self.end(fingerprint, id, number),
            Operation::Mark { key, value } => self.marks.set(key, value, number),
            Operation::Note { id, note } => {
                self.notes.add(id, note, number, self.forgotten.last(id, number));
            }
        }
    }

    /// Gives an id a name. The writer's only.
    fn give_name(&self, id: u64, name: &str, operation: u64) {
        self.names.add(id, name, operation, self.forgotten.last(id, operation));
    }

    /// Adds a pair, but not to the bands; returns its number, if it was not live here. The writer's only.
    #[inline]
    fn push(&self, fingerprint: F, id: u64, operation: u64) -> Option<u32> {
        let is_live = self.pairs.live(fingerprint, id).is_some();
        (!is_live).then(|| self.pairs.push(fingerprint, id, operation))
    }

    /// Ends a pair, hides it in all older places, and forgets the name and the note of its id. The writer's only.
    fn end(&self, fingerprint: F, id: u64, operation: u64) {
        if let Some(number) = self.pairs.live(fingerprint, id) {
            self.pairs.end(number, operation);
        }
        // One tombstone hides for good.
        if self.tombstones.live(fingerprint, id).is_none() {
            self.tombstones.push(fingerprint, id, operation);
        }
        let last = self.forgotten.last(id, operation);
        let given = self.names.last_given(id).max(self.notes.last_given(id));
        // Older places are forgotten once for all.
        if last == 0 || given > last {
            self.forgotten.add(id, operation);
        }
    }

    /// Makes all operations so far visible at once; returns the version that shows them.
    pub(crate) fn publish(&self) -> u64 {
        let operations = self.operations();
        self.published.store(*operations, Ordering::Release);
        *operations
    }

    /// The newest published version.
    pub(crate) fn version(&self) -> u64 {
        self.published.load(Ordering::Acquire)
    }

    /// Appends a match for each live pair within the distance, unsorted; none twice.
    pub(crate) fn query(&self, version: u64, query: F, distance: u32, matches: &mut Vec<Match<F>>) {
        if self.bands.serves(distance, self.pairs.len()) {
            dispatch(Search { memtable: self, version, query, distance, matches });
        } else {
            self.query_since(0, version, query, distance, matches);
        }
    }

    /// The same among the pairs inserted after the version `since`, at a cost that grows with their number.
    pub(crate) fn query_since(
        &self,
        since: u64,
        version: u64,
        query: F,
        distance: u32,
        matches: &mut Vec<Match<F>>,
    ) {
        dispatch(Scan { memtable: self, since, version, query, distance, matches });
    }

    /// Whether a pair is live (`Some(true)`) or deleted (`Some(false)`) here; `None` if nothing is known here.
    pub(crate) fn state(&self, version: u64, fingerprint: F, id: u64) -> Option<bool> {
        if self.pairs.is_there(version, fingerprint, id) {
            return Some(true);
        }
        self.hides(version, fingerprint, id).then_some(false)
    }

    /// Whether a pair is hidden in older places by a tombstone.
    pub(crate) fn hides(&self, version: u64, fingerprint: F, id: u64) -> bool {
        self.tombstones.is_there(version, fingerprint, id)
    }

    /// Whether a pair with this id was deleted here: names and notes of the id in older places do not count.
    pub(crate) fn forgets(&self, version: u64, id: u64) -> bool {
        self.forgotten.last(id, version) > 0
    }

    /// The newest name of an id here, if no pair of the id was deleted since.
    pub(crate) fn name(&self, version: u64, id: u64) -> Option<String> {
        self.names.find(id, version, self.forgotten.last(id, version)).map(str::to_string)
    }

    /// The newest note of an id here, if no pair of the id was deleted since.
    pub(crate) fn note(&self, version: u64, id: u64) -> Option<Vec<u8>> {
        self.notes.find(id, version, self.forgotten.last(id, version)).map(<[u8]>::to_vec)
    }

    /// The mark kept under a key.
    pub(crate) fn mark(&self, version: u64, key: &str) -> Option<Vec<u8>> {
        self.marks.get(key, version)
    }

    /// All marks, ascending by key.
    pub(crate) fn marks(&self, version: u64) -> Vec<(String, Vec<u8>)> {
        self.marks.all(version)
    }

    /// The largest id that was inserted, deleted or not; takes time in proportion to the pairs.
    pub(crate) fn highest_id(&self, version: u64) -> Option<u64> {
        self.pairs.highest_id(version)
    }

    /// The distance that queries are answered for without comparing with all, in bits.
    pub(crate) fn distance(&self) -> u32 {
        self.distance
    }

    /// Live pairs, ascending.
    pub(crate) fn entries(&self, version: u64) -> Vec<(F, u64)> {
        self.pairs.sorted(version)
    }

    /// Calls `visitor` with live pairs, in the order of their inserts.
    pub(crate) fn visit(&self, version: u64, mut visitor: impl FnMut(F, u64)) {
        self.pairs.iter(version).for_each(|pair| visitor(pair.fingerprint, pair.id));
    }

    /// Tombstones, ascending.
    pub(crate) fn tombstones(&self, version: u64) -> Vec<(F, u64)> {
        self.tombstones.sorted(version)
    }

    /// The name of each id that has one here, ascending by id.
    pub(crate) fn names(&self, version: u64) -> Vec<(u64, &str)> {
        self.names.sorted(version, |id| self.forgotten.last(id, version))
    }

    /// Calls `visitor` with ids and the names that they were given, in that order: an id may come again.
    pub(crate) fn visit_names(&self, version: u64, visitor: impl FnMut(u64, &str)) {
        self.names.visit(version, visitor);
    }

    /// The note of each id that has one here, ascending by id.
    pub(crate) fn notes(&self, version: u64) -> Vec<(u64, &[u8])> {
        self.notes.sorted(version, |id| self.forgotten.last(id, version))
    }

    /// How many notes were given.
    pub(crate) fn notes_len(&self) -> u64 {
        self.notes.len()
    }

    /// How many names were given.
    pub(crate) fn names_len(&self) -> u64 {
        self.names.len()
    }

    /// How many pairs were inserted, deleted or not, published or not.
    pub(crate) fn inserted(&self) -> u64 {
        u64::from(self.pairs.len())
    }

    /// Number of live pairs.
    pub(crate) fn len(&self, version: u64) -> u64 {
        self.pairs.count(version)
    }

    /// Whether there is a tombstone, published or not.
    pub(crate) fn has_tombstones(&self) -> bool {
        !self.tombstones.is_empty()
    }

    /// Memory, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.pairs.bytes()
            + self.bands.bytes()
            + self.tombstones.bytes()
            + self.names.bytes()
            + self.notes.bytes()
            + self.forgotten.bytes()
            + self.marks.bytes()
    }
}

/// [`Memtable::query`] by bands.
struct Search<'a, F> {
    memtable: &'a Memtable<F>,
    version: u64,
    query: F,
    distance: u32,
    matches: &'a mut Vec<Match<F>>,
}

impl<F: Fingerprint> Work for Search<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Search { memtable, version, query, distance, matches } = self;
        memtable.bands.search(query, distance, |fingerprint, number| {
            let pair = memtable.pairs.get(number);
            if pair.is_there(version) {
                matches.push(Match { fingerprint, distance: query.distance(fingerprint), id: Some(pair.id) });
            }
        });
    }
}

/// [`Memtable::query_since`].
struct Scan<'a, F> {
    memtable: &'a Memtable<F>,
    since: u64,
    version: u64,
    query: F,
    distance: u32,
    matches: &'a mut Vec<Match<F>>,
}

impl<F: Fingerprint> Work for Scan<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Scan { memtable, since, version, query, distance, matches } = self;
        memtable.pairs.scan(since, version, query, distance, |Pair { fingerprint, id, .. }| {
            matches.push(Match { fingerprint, distance: query.distance(fingerprint), id: Some(id) });
        });
    }
}

impl<F> std::fmt::Debug for Memtable<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Memtable").field("published", &self.published).finish_non_exhaustive()
    }
}
