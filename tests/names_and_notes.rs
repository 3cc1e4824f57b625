//! Compares the names and notes of a store with simple maps, after random sequences of inserts, deletes and changes of
//! notes. Flushes, merges and reopening in between must not change any result (`format-spec/contents.md`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use simstore::store::{SalvageOptions, salvage_on};
use simstore::{Durability, Snapshot, Store, StoreOptions};

use crate::support::disk::SimulatedDisk;

/// A write to the store.
#[derive(Clone, Debug)]
enum DocumentWrite {
    Insert { fingerprint: u64, id: u64, name: Option<String> },
    Delete { fingerprint: u64, id: u64 },
    Note { id: u64, note: Vec<u8> },
}

/// The fingerprint of a document in a bulk load, and its name and note if it has them.
type LoadedDocument = (u64, Option<String>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
enum HistoryStep {
    /// A transaction with these writes.
    Commit(Vec<DocumentWrite>),
    /// A bulk load, which becomes one segment. The keys are the ids of the documents.
    Load(BTreeMap<u64, LoadedDocument>),
    /// A call of `delete`, which first checks whether the pair is stored.
    DeleteStored {
        fingerprint: u64,
        id: u64,
    },
    Flush,
    Compact,
    Reopen,
    /// Takes a snapshot. At the end of the test, it must not have changed.
    Keep,
    /// Refreshes a snapshot that was opened by path, without the writer's lock.
    Refresh,
}

const IDS: u64 = 5;

fn name() -> impl Strategy<Value = String> {
    "[ab]{0,2}"
}

fn note() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(0_u8..3, 0..3)
}

fn pair() -> impl Strategy<Value = (u64, u64)> {
    (0_u64..3, 0..IDS)
}

fn write() -> impl Strategy<Value = DocumentWrite> {
    prop_oneof![
        4 => (pair(), prop::option::of(name()))
            .prop_map(|((fingerprint, id), name)| DocumentWrite::Insert { fingerprint, id, name }),
        3 => pair().prop_map(|(fingerprint, id)| DocumentWrite::Delete { fingerprint, id }),
        2 => (0..IDS, note()).prop_map(|(id, note)| DocumentWrite::Note { id, note }),
    ]
}

fn step() -> impl Strategy<Value = HistoryStep> {
    let loaded = (0_u64..3, prop::option::of(name()), prop::option::of(note()));
    prop_oneof![
        8 => prop::collection::vec(write(), 1..4).prop_map(HistoryStep::Commit),
        1 => prop::collection::btree_map(0..IDS, loaded, 1..4).prop_map(HistoryStep::Load),
        2 => pair().prop_map(|(fingerprint, id)| HistoryStep::DeleteStored { fingerprint, id }),
        4 => Just(HistoryStep::Flush),
        1 => Just(HistoryStep::Compact),
        1 => Just(HistoryStep::Reopen),
        1 => Just(HistoryStep::Keep),
        1 => Just(HistoryStep::Refresh),
    ]
}

/// The pairs, names and notes that the store should have.
#[derive(Clone, Debug, Default)]
struct DocumentModel {
    pairs: BTreeSet<(u64, u64)>,
    names: BTreeMap<u64, String>,
    notes: BTreeMap<u64, Vec<u8>>,
}

impl DocumentModel {
    fn apply(&mut self, write: &DocumentWrite) {
        match write {
            DocumentWrite::Insert { fingerprint, id, name } => {
                self.pairs.insert((*fingerprint, *id));
                if let Some(name) = name {
                    self.names.insert(*id, name.clone());
                }
            }
            DocumentWrite::Delete { fingerprint, id } => {
                self.pairs.remove(&(*fingerprint, *id));
                self.names.remove(id);
                self.notes.remove(id);
            }
            DocumentWrite::Note { id, note } => drop(self.notes.insert(*id, note.clone())),
        }
    }

    /// Reads names and notes from a snapshot by each method, and compares the results with the model.
    fn check(&self, snapshot: &Snapshot<u64>) {
        let entries = snapshot.iter().map(|entry| entry.map(|e| (e.fingerprint, e.id.unwrap())).unwrap());
        assert_eq!(entries.collect::<BTreeSet<_>>(), self.pairs);
        let ids: Vec<u64> = (0..=IDS).collect();
        let names: Vec<_> = ids.iter().map(|id| self.names.get(id).cloned()).collect();
        let notes: Vec<_> = ids.iter().map(|id| self.notes.get(id).cloned()).collect();
        assert_eq!(snapshot.names_of(&ids).unwrap(), names);
        assert_eq!(snapshot.notes_of(&ids).unwrap(), notes);
        for ((&id, name), note) in ids.iter().zip(&names).zip(&notes) {
            assert_eq!((&snapshot.name(id).unwrap(), &snapshot.note(id).unwrap()), (name, note), "{id}");
        }
        let named = |pairs: Vec<simstore::store::StoredPair<u64>>| {
            pairs.into_iter().map(|pair| (pair.fingerprint, pair.id, pair.name)).collect::<BTreeSet<_>>()
        };
        let all: BTreeSet<_> =
            self.pairs.iter().map(|&(x, id)| (x, id, self.names.get(&id).cloned())).collect();
        assert_eq!(named(snapshot.pairs_of_ids(&ids.into_iter().collect()).unwrap()), all);
        for wanted in ["", "a", "ab"].map(str::to_owned) {
            let of_name = all.iter().filter(|pair| pair.2.as_ref() == Some(&wanted)).cloned();
            let found = named(snapshot.pairs_of_names(&[wanted.clone()].into()).unwrap());
            assert_eq!(found, of_name.collect(), "{wanted:?}");
        }
    }
}

fn run(steps: &[HistoryStep], options: &StoreOptions) {
    let path = Path::new("store");
    let mut store = Store::<u64>::open(path, options.clone()).unwrap();
    let mut reader = Snapshot::<u64>::open_on(&options.fs, path).unwrap();
    let (mut model, mut kept) = (DocumentModel::default(), Vec::new());
    for step in steps {
        match step {
            HistoryStep::Commit(writes) => {
                let mut transaction = store.transaction();
                for write in writes {
                    match write {
                        DocumentWrite::Insert { fingerprint, id, name: Some(name) } => {
                            transaction.insert_named(*fingerprint, *id, name).unwrap();
                        }
                        DocumentWrite::Insert { fingerprint, id, name: None } => {
                            transaction.insert(*fingerprint, *id);
                        }
                        DocumentWrite::Delete { fingerprint, id } => transaction.delete(*fingerprint, *id),
                        DocumentWrite::Note { id, note } => transaction.set_note(*id, note).unwrap(),
                    }
                    model.apply(write);
                }
                transaction.commit(Durability::Os).unwrap();
            }
            HistoryStep::Load(documents) => {
                let mut load = store.bulk_load().unwrap();
                for (&id, (fingerprint, name, note)) in documents {
                    match name {
                        Some(name) => load.insert_named(*fingerprint, id, name).unwrap(),
                        None => load.insert(*fingerprint, id).unwrap(),
                    }
                    model.apply(&DocumentWrite::Insert { fingerprint: *fingerprint, id, name: name.clone() });
                    if let Some(note) = note {
                        load.set_note(id, note).unwrap();
                        model.apply(&DocumentWrite::Note { id, note: note.clone() });
                    }
                }
                load.finish().unwrap();
            }
            &HistoryStep::DeleteStored { fingerprint, id } => {
                let is_stored = model.pairs.contains(&(fingerprint, id));
                assert_eq!(store.delete(fingerprint, id).unwrap(), is_stored);
                if is_stored {
                    model.apply(&DocumentWrite::Delete { fingerprint, id });
                }
            }
            HistoryStep::Flush => store.flush().unwrap(),
            HistoryStep::Compact => store.compact().unwrap(),
            HistoryStep::Reopen => {
                drop(store);
                store = Store::open(path, options.clone()).unwrap();
            }
            HistoryStep::Keep => kept.push((store.snapshot(), model.clone())),
            HistoryStep::Refresh => {
                reader = reader.refresh().unwrap();
                kept.push((reader.clone(), model.clone()));
            }
        }
        model.check(&store.snapshot());
    }
    kept.iter().for_each(|(snapshot, model)| model.check(snapshot));
    model.check(&reader.refresh().unwrap());
    drop(store);
    let read = Snapshot::<u64>::open_on(&options.fs, path).unwrap();
    model.check(&read);
    assert_eq!(read.verify(|error| panic!("{error}")), 0);
    let salvaged = Path::new("salvaged");
    assert!(salvage_on::<u64>(&options.fs, path, salvaged, &SalvageOptions::default()).unwrap().is_whole());
    model.check(&Snapshot::open_on(&options.fs, salvaged).unwrap());
    let store = Store::<u64>::open(path, options.clone()).unwrap();
    store.compact().unwrap();
    model.check(&store.snapshot());
    // A merge of all segments removes outdated names and notes.
    let stats = store.snapshot().stats();
    assert_eq!((stats.names, stats.notes), (model.names.len() as u64, model.notes.len() as u64));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, max_shrink_iters: 500, ..ProptestConfig::default() })]

    #[test]
    fn names_and_notes_as_the_model(
        steps in prop::collection::vec(step(), 1..60),
        memtable in prop::sample::select(&[1_u64, 64 << 20][..]),
        compaction in any::<bool>(),
        fanout in 2_usize..4,
    ) {
        let disk = SimulatedDisk::default();
        let fs = disk.as_fs();
        let options =
            StoreOptions { fs, memtable, compaction, fanout, block_size: Some(256), ..StoreOptions::default() };
        run(&steps, &options);
    }
}

/// A deleted name does not return when its pair is inserted again, with or without a merge between delete and insert.
#[test]
fn a_name_does_not_come_back() {
    for merges in [false, true] {
        let disk = SimulatedDisk::default();
        let options = StoreOptions { fs: disk.as_fs(), compaction: false, ..StoreOptions::default() };
        let store = Store::<u64>::open(Path::new("store"), options).unwrap();
        store.insert_named(7, 1, "old").unwrap();
        store.flush().unwrap();
        assert!(store.delete(7, 1).unwrap());
        if merges {
            store.compact().unwrap();
        }
        store.insert(7, 1).unwrap();
        assert_eq!(store.snapshot().name(1).unwrap(), None, "merges: {merges}");
    }
}
