mod checkpoint;
mod damaged_store;
mod flush;
mod log_tail;
mod merge;
mod notes;
mod open_retrying;
mod recovery;
mod throttled_fs;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

use super::shared_state::SharedState;
use super::writer::StoreWriter;
use super::*;
use crate::fingerprint::Fingerprint;
use crate::fs::Disk;
use crate::manifest::Manifest;
use crate::threads::lock;
use crate::{BuildOptions, Durability, PlanChoice, StoreOptions};

/// A store without background threads. Tests call the functions for flushes and merges themselves.
struct ManualStore {
    shared: Arc<SharedState<u64>>,
    writer: StoreWriter<u64>,
    torn_tail: Option<Error>,
    _folder: TempDir,
}

/// Returns options for a store with a small memtable (1 MiB).
fn small() -> StoreOptions {
    StoreOptions { memtable: 1 << 20, ..StoreOptions::default() }
}

impl ManualStore {
    fn new(options: StoreOptions) -> ManualStore {
        ManualStore::open(tempfile::tempdir().unwrap(), options).unwrap()
    }

    fn open(folder: TempDir, options: StoreOptions) -> Result<ManualStore> {
        let path = folder.path().join("store");
        let opened = open::open::<u64>(&path, &options)?;
        let distance = opened.view.manifest.settings.distance;
        let pool = crate::threads::pool("test")?;
        let options = StoreOptions { fs: opened.fs, ..options };
        let shared = Arc::new(SharedState::new(path, options, opened.view, opened.next_number, pool));
        let writer = StoreWriter::new(shared.clone(), opened.log, distance);
        Ok(ManualStore { shared, writer, torn_tail: opened.torn_tail, _folder: folder })
    }

    /// Opens the store again without closing it first, as after a crash.
    fn reopen(self) -> Result<ManualStore> {
        let ManualStore { shared, writer, _folder: folder, .. } = self;
        drop((shared, writer));
        ManualStore::open(folder, small())
    }

    fn path(&self) -> &Path {
        &self.shared.path
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    fn try_commit(&self, write: impl FnOnce(&mut Transaction<'_, u64>)) -> Result<()> {
        let mut transaction = Transaction::new(&self.writer);
        write(&mut transaction);
        transaction.commit(Durability::Os)
    }

    /// Commits one transaction, which the log stores as one record. `write` adds the operations.
    fn commit(&self, write: impl FnOnce(&mut Transaction<'_, u64>)) {
        self.try_commit(write).unwrap();
    }

    /// Writes all memtables as segments.
    fn flush(&self) -> Result<()> {
        self.writer.freeze()?;
        while self.shared.view().memtables.len() > 1 {
            self.shared.in_pool(|| super::flush::flush(&self.shared))?;
        }
        Ok(())
    }

    fn commit_and_flush(&self, write: impl FnOnce(&mut Transaction<'_, u64>)) {
        self.commit(write);
        self.flush().unwrap();
    }

    fn snapshot(&self) -> Snapshot<u64> {
        self.shared.snapshot()
    }

    fn pairs(&self) -> Vec<(u64, u64)> {
        self.snapshot().iter().map(|entry| entry.map(|e| (e.fingerprint, e.id.unwrap())).unwrap()).collect()
    }

    /// Reads the manifest from the disk.
    fn manifest(&self) -> Manifest {
        Manifest::load(&Disk::default(), self.path()).unwrap()
    }

    /// Returns the file number, the number of pairs and the number of tombstones of each segment in the manifest on the disk.
    fn segments(&self) -> Vec<(u64, u64, u64)> {
        self.manifest().segments.iter().map(|entry| (entry.number, entry.ids, entry.tombstones)).collect()
    }

    /// Returns the file names in the folder that end in `ending`, sorted.
    fn files(&self, ending: &str) -> Vec<String> {
        let names = std::fs::read_dir(self.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(ending)).collect();
        names.sort();
        names
    }
}

fn build<F: Fingerprint>(path: &Path, entries: &[(F, u64)], options: BuildOptions) -> Snapshot<F> {
    let mut builder = Builder::create(path, options).unwrap();
    entries.iter().for_each(|&(fingerprint, id)| builder.insert(fingerprint, id).unwrap());
    builder.finish().unwrap()
}

#[test]
fn a_small_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s");
    let entries = [(7_u64, 1), (7, 2), (7, 2), (6, u64::MAX), (u64::MAX, 0)];
    let options = BuildOptions { plan: PlanChoice::Named("paper-4".into()), ..BuildOptions::default() };
    let store = build(&path, &entries, options);
    assert_eq!((store.len(), store.stats().ids), (3, 4));
    let ids: Vec<_> = store.query(7, 3).unwrap().iter().map(|m| (m.distance, m.id)).collect();
    assert_eq!(ids, [(0, Some(1)), (0, Some(2)), (1, Some(u64::MAX))]);
    assert!(store.contains(6).unwrap() && !store.contains(5).unwrap());
    assert!(matches!(store.query(7, 4), Err(Error::Distance { requested: 4, supported: 3, .. })));
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    assert_eq!(
        store.iter().map(Result::unwrap).map(|e| e.id.unwrap()).collect::<Vec<_>>(),
        [u64::MAX, 1, 2, 0]
    );
    assert_eq!(stored_bits(&path).unwrap(), 64);
    assert!(matches!(Snapshot::<u128>::open(&path), Err(Error::Width { expected: 128, found: 64, .. })));
}
