mod bulk_writer;
mod multi_index;
mod speed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use self::bulk_writer::{assert_same, filled};
use super::*;
use crate::wal;

#[derive(Clone, Debug)]
enum ModelOperation<F> {
    Insert(F, u64, Option<String>),
    Delete(F, u64),
    Note(u64, Vec<u8>),
}

/// The contents of a memtable at one version.
#[derive(Clone, Debug)]
struct MemtableModel<F> {
    live: BTreeSet<(F, u64)>,
    tombstones: BTreeSet<(F, u64)>,
    names: BTreeMap<u64, String>,
    notes: BTreeMap<u64, Vec<u8>>,
}

impl<F: Fingerprint> MemtableModel<F> {
    fn new() -> Self {
        MemtableModel {
            live: BTreeSet::new(),
            tombstones: BTreeSet::new(),
            names: BTreeMap::new(),
            notes: BTreeMap::new(),
        }
    }

    fn apply(&mut self, operation: &ModelOperation<F>) {
        match operation {
            ModelOperation::Insert(fingerprint, id, name) => {
                self.live.insert((*fingerprint, *id));
                if let Some(name) = name {
                    self.names.insert(*id, name.clone());
                }
            }
            ModelOperation::Delete(fingerprint, id) => {
                self.live.remove(&(*fingerprint, *id));
                self.tombstones.insert((*fingerprint, *id));
                self.names.remove(id);
                self.notes.remove(id);
            }
            ModelOperation::Note(id, note) => drop(self.notes.insert(*id, note.clone())),
        }
    }

    fn query(&self, query: F, distance: u32) -> Vec<(F, u64)> {
        self.live.iter().copied().filter(|pair| pair.0.distance(query) <= distance).collect()
    }
}

impl<F: Fingerprint> ModelOperation<F> {
    /// Converts the operation to the form in which it comes from a log.
    fn logged(&self) -> wal::Operation<'_, F> {
        match *self {
            ModelOperation::Insert(fingerprint, id, ref name) => {
                wal::Operation::Insert { fingerprint, id, name: name.as_deref() }
            }
            ModelOperation::Delete(fingerprint, id) => wal::Operation::Delete { fingerprint, id },
            ModelOperation::Note(id, ref note) => wal::Operation::Note { id, note },
        }
    }
}

impl<F: Fingerprint> Memtable<F> {
    fn insert(&self, fingerprint: F, id: u64, name: Option<&str>) {
        self.apply(&wal::Operation::Insert { fingerprint, id, name });
    }

    fn delete(&self, fingerprint: F, id: u64) {
        self.apply(&wal::Operation::Delete { fingerprint, id });
    }
}

/// Returns the pairs of the matches, ascending. Checks their distances.
fn pairs<F: Fingerprint>(query: F, mut matches: Vec<Match<F>>) -> Vec<(F, u64)> {
    matches.sort_by_key(|found| (found.fingerprint, found.id));
    assert!(matches.iter().all(|found| found.distance == query.distance(found.fingerprint)));
    matches.iter().map(|found| (found.fingerprint, found.id.unwrap())).collect()
}

fn query<F: Fingerprint>(memtable: &Memtable<F>, version: u64, query: F, distance: u32) -> Vec<(F, u64)> {
    let (mut matches, mut searched) = (Vec::new(), Vec::new());
    memtable.query(version, query, distance, &mut matches);
    let found = pairs(query, matches);
    // Also searches the index, which a query of few pairs does not use.
    if memtable.index.is_faster_than_scan(distance, u32::MAX) {
        dispatch(MultiIndexSearch { memtable, version, query, distance, matches: &mut searched });
        assert_eq!(pairs(query, searched), found);
    }
    found
}

fn since<F: Fingerprint>(
    memtable: &Memtable<F>,
    since: u64,
    version: u64,
    query: F,
    distance: u32,
) -> Vec<(F, u64)> {
    let mut matches = Vec::new();
    memtable.query_since(since, version, query, distance, &mut matches);
    pairs(query, matches)
}

/// Generates fingerprints: a few bases, including all zeros and all ones, with up to three bits flipped.
fn fingerprint<F: Fingerprint>() -> impl Strategy<Value = F> {
    let few = prop::sample::select(vec![0, u128::MAX, 0x0123_4567_89ab_cdef_0246_8ace_1357_9bdf]);
    let bits = prop::collection::vec(0..F::BITS, 0..4);
    (few, bits).prop_map(|(base, bits)| {
        bits.into_iter().fold(F::from_u128(base), |fingerprint, bit| fingerprint ^ F::bit_mask(bit))
    })
}

fn operation<F: Fingerprint>() -> impl Strategy<Value = (ModelOperation<F>, bool)> {
    let id = prop_oneof![0_u64..4, Just(u64::MAX)];
    let name = prop::option::of("[ab]{0,1}");
    (0..4, fingerprint(), id, name, prop::bool::weighted(0.3)).prop_map(
        |(kind, fingerprint, id, name, publish)| {
            let operation = match kind {
                0 => ModelOperation::Delete(fingerprint, id),
                1 => ModelOperation::Note(id, name.unwrap_or_default().into_bytes()),
                _ => ModelOperation::Insert(fingerprint, id, name),
            };
            (operation, publish)
        },
    )
}

fn same_as_model<F: Fingerprint>(
    distance: u32,
    bytes: u64,
    operations: &[(ModelOperation<F>, bool)],
    queries: &[F],
) {
    let memtable = Memtable::new(distance, bytes);
    let mut model = MemtableModel::new();
    let mut versions = vec![(0, model.clone())];
    for (operation, publish) in operations {
        memtable.apply(&operation.logged());
        model.apply(operation);
        assert_eq!(memtable.version(), versions.last().unwrap().0);
        if *publish {
            versions.push((memtable.publish(), model.clone()));
        }
    }
    assert_eq!(memtable.has_tombstones(), !model.tombstones.is_empty());
    let ids = [0, 1, 2, 3, 4, u64::MAX];
    for (version, model) in &versions {
        assert_eq!(memtable.entries(*version), model.live.iter().copied().collect::<Vec<_>>());
        assert_eq!(memtable.tombstones(*version), model.tombstones.iter().copied().collect::<Vec<_>>());
        assert!(
            memtable.names(*version).into_iter().eq(model.names.iter().map(|(&id, name)| (id, &name[..])))
        );
        assert!(
            memtable.notes(*version).into_iter().eq(model.notes.iter().map(|(&id, note)| (id, &note[..])))
        );
        assert_eq!(memtable.len(*version), model.live.len() as u64);
        for id in ids {
            assert_eq!(memtable.note(*version, id), model.notes.get(&id).cloned());
            assert_eq!(memtable.name(*version, id), model.names.get(&id).cloned());
            let is_deleted = model.tombstones.iter().any(|pair| pair.1 == id);
            assert_eq!(memtable.has_forgotten(*version, id), is_deleted);
        }
        for &one in queries {
            for query_distance in [0, 1, distance / 2, distance, distance + 2] {
                assert_eq!(query(&memtable, *version, one, query_distance), model.query(one, query_distance));
            }
            for id in ids {
                let hidden = model.tombstones.contains(&(one, id));
                let state =
                    if model.live.contains(&(one, id)) { Some(true) } else { hidden.then_some(false) };
                assert_eq!(memtable.state(*version, one, id), state);
                assert_eq!(memtable.has_tombstone(*version, one, id), hidden);
            }
        }
    }
    since_as_model(&memtable, operations, &versions, queries);
    memtable.publish();
    let filled = filled(distance, bytes, operations);
    for &(version, _) in &versions {
        assert_same(&memtable, &filled, version, queries);
    }
}

/// Asserts that [`Memtable::query_since`] returns the same pairs as the model, for each query and many pairs of
/// versions.
fn since_as_model<F: Fingerprint>(
    memtable: &Memtable<F>,
    operations: &[(ModelOperation<F>, bool)],
    versions: &[(u64, MemtableModel<F>)],
    queries: &[F],
) {
    for (old, _) in versions.iter().step_by(3) {
        for (version, model) in versions.iter().step_by(2) {
            // Version at which each live pair was inserted.
            let mut inserted = BTreeMap::new();
            for (number, (operation, _)) in (1..=*version).zip(operations) {
                match operation {
                    ModelOperation::Insert(fingerprint, id, _) => {
                        inserted.entry((*fingerprint, *id)).or_insert(number);
                    }
                    ModelOperation::Delete(fingerprint, id) => {
                        inserted.remove(&(*fingerprint, *id));
                    }
                    ModelOperation::Note(..) => {}
                }
            }
            for &one in queries {
                let mut expected = model.query(one, 2);
                expected.retain(|pair| inserted[pair] > *old);
                assert_eq!(since(memtable, *old, *version, one, 2), expected);
            }
        }
    }
}

fn operations<F: Fingerprint>() -> impl Strategy<Value = Vec<(ModelOperation<F>, bool)>> {
    prop::collection::vec(operation(), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn same_as_model_64(
        operations in operations::<u64>(),
        queries in prop::collection::vec(fingerprint(), 1..8),
        distance in prop::sample::select(vec![0, 1, 3, 6, 9, 16]),
        bytes in prop::sample::select(vec![0, 5_000, 1 << 22]),
    ) {
        same_as_model(distance, bytes, &operations, &queries);
    }

    #[test]
    fn same_as_model_128(
        operations in operations::<u128>(),
        queries in prop::collection::vec(fingerprint(), 1..8),
        distance in prop::sample::select(vec![0, 1, 3, 16, 32]),
        bytes in prop::sample::select(vec![0, 5_000, 1 << 22]),
    ) {
        same_as_model(distance, bytes, &operations, &queries);
    }
}

/// Returns a pseudorandom value that depends only on `number`.
fn random(number: u64) -> u64 {
    append_vec::mix(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

#[test]
fn every_neighbour_is_found() {
    fn check<F: Fingerprint>(distance: u32, bytes: u64) {
        let memtable = Memtable::<F>::new(distance, bytes);
        let one = F::from_u128(0x0f1e_2d3c_4b5a_6978_8796_a5b4_c3d2_e1f0);
        memtable.insert(one, u64::MAX, None);
        // Flips the maximum number of bits: adjacent ones, and spread out.
        for start in 0..F::BITS {
            let row =
                |step: u32| (0..distance).fold(one, |x, i| x ^ F::bit_mask((start + i * step) % F::BITS));
            memtable.insert(row(1), u64::from(start), None);
            memtable.insert(row((F::BITS / (distance + 1)) | 1), u64::from(start), None);
            memtable.insert(row(1) ^ F::bit_mask((start + distance) % F::BITS), 1000, None);
        }
        let version = memtable.publish();
        let expected: Vec<_> =
            memtable.entries(version).into_iter().filter(|pair| pair.0.distance(one) <= distance).collect();
        assert!(expected.len() > distance as usize);
        assert_eq!(query(&memtable, version, one, distance), expected);
    }
    for bytes in [0, 1 << 26] {
        for distance in 0..=16 {
            check::<u64>(distance, bytes);
        }
        for distance in 0..=32 {
            check::<u128>(distance, bytes);
        }
    }
}

#[test]
fn all_equal_takes_no_longer() {
    for fingerprint in [0, u64::MAX] {
        let memtable = Memtable::new(3, 1 << 20);
        // If each insert scanned a bucket, this would take minutes.
        for id in 0..200_000 {
            memtable.insert(fingerprint, id, None);
            memtable.insert(fingerprint, id, None);
        }
        // Deletes and inserts the same pair again and again.
        for _ in 0..100_000 {
            memtable.delete(fingerprint, 7);
            memtable.insert(fingerprint, 7, Some("seven"));
        }
        let version = memtable.publish();
        assert_eq!(memtable.len(version), 200_000);
        assert_eq!(query(&memtable, version, fingerprint ^ 5, 3).len(), 200_000);
        let found = |x| !query(&memtable, version, x, 0).is_empty();
        assert!(found(fingerprint) && !found(!fingerprint));
        assert_eq!(memtable.names(version), [(7, "seven")]);
        assert_eq!(memtable.tombstones(version), [(fingerprint, 7)]);
    }
}

#[test]
fn nothing_shows_before_it_is_published() {
    let memtable = Memtable::new(3, 0);
    memtable.insert(1_u64, 1, Some("one"));
    memtable.delete(2, 2);
    assert_eq!(memtable.version(), 0);
    assert_eq!((memtable.len(0), memtable.name(0, 1), memtable.state(0, 1, 1)), (0, None, None));
    assert!(!memtable.has_tombstone(0, 2, 2) && query(&memtable, 0, 1, 3).is_empty());
    let version = memtable.publish();
    assert_eq!(memtable.publish(), version);
    assert_eq!(memtable.state(version, 1, 1), Some(true));
    assert_eq!(memtable.state(version, 2, 2), Some(false));
    assert_eq!(query(&memtable, version, 0, 3), [(1, 1)]);
}

#[test]
fn readers_see_whole_versions() {
    const ROUNDS: u64 = 2000;
    // Round r inserts r with an id of its own and a neighbour of 0, and deletes the previous round's neighbour.
    let neighbour = |round: u64| 1_u64 << (round % 64);
    let memtable = Memtable::new(3, 1 << 16);
    let done = AtomicBool::new(false);
    let check = |version: u64| {
        assert_eq!(version % 3, 0);
        let rounds = version / 3;
        assert_eq!(memtable.len(version), rounds + u64::from(rounds > 0));
        let far: u64 = random(rounds / 2);
        let found = query(&memtable, version, far, 0);
        assert_eq!(found, if rounds > 0 { vec![(far, rounds / 2)] } else { vec![] });
        let last = rounds.checked_sub(1).map(|last| (neighbour(last), last));
        assert_eq!(query(&memtable, version, 0, 3), last.into_iter().collect::<Vec<_>>());
        assert_eq!(
            since(&memtable, version.saturating_sub(3), version, 0, 3),
            query(&memtable, version, 0, 3)
        );
        // The delete in round 6 removes the name of round 5.
        assert_eq!(memtable.name(version, 5).is_some(), rounds == 6);
        if let Some((_, id)) = last {
            assert_eq!(memtable.name(version, id).as_deref(), Some("name"));
        }
        if let Some(last) = rounds.checked_sub(2) {
            assert_eq!(memtable.state(version, neighbour(last), last), Some(false));
        }
        memtable.tombstones(version).len() as u64 + u64::from(rounds > 0)
    };
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut old = 0;
                while !done.load(Ordering::Acquire) {
                    let version = memtable.version();
                    assert!(version >= old);
                    for version in [version, old, version / 6 * 3] {
                        assert_eq!(check(version), version / 3);
                    }
                    old = version;
                }
            });
        }
        for round in 0..ROUNDS {
            memtable.insert(random(round), round, Some("name"));
            memtable.insert(neighbour(round), round, None);
            match round.checked_sub(1) {
                Some(last) => memtable.delete(neighbour(last), last),
                None => memtable.insert(neighbour(0), 0, None),
            }
            memtable.publish();
        }
        done.store(true, Ordering::Release);
    });
    for version in (0..=ROUNDS * 3).step_by(300) {
        assert_eq!(check(version), version / 3);
    }
}
