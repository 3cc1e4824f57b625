//! Tests of adding documents to a store: positions in files from which a later call continues, and cancelled jobs.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use simstore::{Entry, Error, Match, Result, Snapshot, Store, StoreOptions};
use simstore_corpus::add::{AddOptions, AddResult, DuplicateObserver, SameIdPolicy, add};
use simstore_corpus::{IdScheme, Inputs, Item, Observer, StageProgress};
use simstore_io::DocumentOptions;
use simstore_text::Profile;

use crate::TempFolder;

/// Cancels the job at one progress report. The first field is the number of this report, counted from 1. The second field
/// is the number of reports so far.
struct CancelAtReport(u64, AtomicU64);

impl Observer for CancelAtReport {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        if self.1.fetch_add(1, Ordering::Relaxed) + 1 == self.0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// Records the ids of reported duplicates, and returns an error at duplicate number `fails_at`, counted from 1.
#[derive(Default)]
struct DuplicateRecorder {
    fails_at: usize,
    ids: Vec<String>,
    flushed: usize,
}

impl DuplicateObserver<u64> for DuplicateRecorder {
    fn near_duplicate(&mut self, item: &Item<u64>, earlier: &[Match<u64>], _: &Snapshot<u64>) -> Result<()> {
        assert!(!earlier.is_empty());
        self.ids.push(item.id.to_string());
        if self.ids.len() == self.fails_at { Err(Error::Cancelled) } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.flushed = self.ids.len();
        Ok(())
    }
}

fn inputs(path: &Path) -> Inputs {
    Inputs::new(&[path.to_path_buf()], DocumentOptions::default()).unwrap()
}

fn add_to(
    path: &Path,
    documents: &Path,
    options: &AddOptions,
    duplicate_observer: &mut impl DuplicateObserver<u64>,
    observer: &dyn Observer,
) -> Result<AddResult> {
    let store = Store::<u64>::open(path, StoreOptions::default())?;
    add(&store, &inputs(documents), &Profile::default(), options, duplicate_observer, observer)
}

/// Returns the fingerprint, id and name of each pair in a store, in ascending order. Panics if the store is damaged.
fn contents(path: &Path) -> Vec<(u64, u64, Option<String>)> {
    let store = Snapshot::<u64>::open(path).unwrap();
    store.verify(|damage| panic!("{damage}"));
    let pair =
        |entry: Entry<u64>| (entry.fingerprint, entry.id.unwrap(), store.name(entry.id.unwrap()).unwrap());
    let mut all: Vec<_> = store.iter().map(|entry| pair(entry.unwrap())).collect();
    all.sort();
    all
}

/// Makes three files: documents with names, fingerprints with ids, and fingerprints without ids.
fn files(folder: &TempFolder) -> [PathBuf; 3] {
    let lines: String =
        (0..5000).map(|i| format!("{{\"id\": \"page {i}\", \"text\": \"text {i}\"}}\n")).collect();
    let pairs: String = (0..5000_u64).map(|i| format!("{:016x}\t{}\n", i * i * i, 7 * i)).collect();
    let raw: Vec<u8> = (0..5000_u64).flat_map(|i| ((i << 32) | i).to_le_bytes()).collect();
    [folder.file("a.jsonl", lines), folder.file("b.hex", pairs), folder.file("c.u64", raw)]
}

#[test]
fn stopped_anywhere_it_carries_on() {
    let folder = TempFolder::new();
    let same_id = [SameIdPolicy::KeepBoth, SameIdPolicy::Replace];
    for (file, same_id) in files(&folder).iter().flat_map(|file| same_id.map(|same_id| (file, same_id))) {
        let options = AddOptions { same_id, ..AddOptions::default() };
        let (whole, cut) = (folder.0.path().join("whole"), folder.0.path().join("cut"));
        let all = add_to(&whole, file, &options, &mut (), &()).unwrap();
        assert_eq!((all.counts.read, all.previously_read), (5000, 0));
        let expected = contents(&whole);
        let mut previously_read = Vec::new();
        for cancels_at in [1, 2, 3, 4] {
            let stopped =
                add_to(&cut, file, &options, &mut (), &CancelAtReport(cancels_at, AtomicU64::new(0)));
            assert!(matches!(stopped, Err(Error::Cancelled)), "{cancels_at}: {stopped:?}");
            let before = contents(&cut);
            assert!(before.iter().all(|pair| expected.binary_search(pair).is_ok()), "{cancels_at}");
            let rest = add_to(&cut, file, &options, &mut (), &()).unwrap();
            assert_eq!(
                (rest.counts.read, rest.added),
                (5000, all.added - before.len() as u64),
                "{cancels_at}"
            );
            assert_eq!(contents(&cut), expected, "{cancels_at}");
            previously_read.push(rest.previously_read);
            std::fs::remove_dir_all(&cut).unwrap();
        }
        // Documents stored before the cancellation are not lost. Documents are stored as soon as the first ones have fingerprints.
        let is_taken = file.extension().unwrap() == "jsonl" || previously_read[3] >= 3 * 64;
        assert!(previously_read[0] == 0 && is_taken, "{previously_read:?}");
        std::fs::remove_dir_all(&whole).unwrap();
    }
}

#[test]
fn unreported_documents_are_reported_again() {
    let folder = TempFolder::new();
    // Each fingerprint has a second one that differs in one bit.
    let pairs: String =
        (0..400_u64).map(|i| format!("{:016x}\t{i}\n", ((i / 2 * 0x0123_4567) << 20) | (i % 2))).collect();
    let file = folder.file("a.hex", pairs);
    let path = folder.0.path().join("store");
    let options = AddOptions { if_new: true, ..AddOptions::default() };
    let mut all = DuplicateRecorder::default();
    let added = add_to(&path, &file, &options, &mut all, &()).unwrap();
    assert_eq!((added.added, added.duplicates, all.ids.len(), all.flushed), (200, 200, 200, 200));
    let expected = contents(&path);
    for fails_at in [1, 2, 77, 200] {
        std::fs::remove_dir_all(&path).unwrap();
        let mut first = DuplicateRecorder { fails_at, ..DuplicateRecorder::default() };
        let stopped = add_to(&path, &file, &options, &mut first, &());
        assert!(matches!(stopped, Err(Error::Cancelled)));
        let mut second = DuplicateRecorder::default();
        add_to(&path, &file, &options, &mut second, &()).unwrap();
        first.ids.truncate(first.flushed);
        assert_eq!([first.ids, second.ids].concat(), all.ids, "{fails_at}");
        assert_eq!(contents(&path), expected, "{fails_at}");
    }
}

#[test]
fn stored_documents_are_not_added_again() {
    let folder = TempFolder::new();
    let path = folder.0.path().join("store");
    let options = AddOptions::default();
    let add = |text: &str, options: &AddOptions| {
        let file = folder.file("a.hex", text);
        add_to(&path, &file, options, &mut (), &()).unwrap()
    };
    let (one, two, other) = ("0000000000000001\ta\n", "0000000000000002\tb\n", "0000000000000003\ta\n");
    assert_eq!(add(one, &options).added, 1);
    let grown = add(&format!("{one}{two}"), &options);
    assert_eq!((grown.counts.read, grown.added, grown.previously_read, grown.changed_files), (2, 1, 1, 0));
    let again = add(&format!("{one}{two}"), &AddOptions { reread: true, ..options });
    assert_eq!((again.added, again.already_stored, again.previously_read), (0, 2, 0));
    let changed = add(&format!("{other}{two}"), &AddOptions { same_id: SameIdPolicy::Replace, ..options });
    assert_eq!(
        (changed.added, changed.replaced, changed.already_stored, changed.changed_files),
        (1, 1, 1, 1)
    );
    let names: Vec<_> =
        contents(&path).into_iter().map(|(fingerprint, _, name)| (fingerprint, name.unwrap())).collect();
    assert_eq!(names, [(2, "b".to_owned()), (3, "a".to_owned())]);
    let store = Snapshot::<u64>::open(&path).unwrap();
    assert_eq!(IdScheme::from_store(&store), (IdScheme::Names, Some(3)));
}
