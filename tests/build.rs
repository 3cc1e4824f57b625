//! Tests of builds: files left after a failure, a kill or a full disk; replacing a store, locking, and document names.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use simstore::{
    BuildOptions, Builder, Codec, CodecObjective, Error, PlanChoice, Snapshot, Store, StoreOptions,
};

use crate::support::disk::{Failure, Fault, OperationFilter, OperationKind, SimulatedDisk};
use crate::support::random::Random;

fn options() -> BuildOptions {
    BuildOptions { plan: PlanChoice::Named("probe-2".into()), ..BuildOptions::default() }
}

fn fill(builder: &mut Builder<u64>, count: u64) -> Result<(), Error> {
    (0..count).try_for_each(|i| {
        builder.insert_named(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), i, &format!("page {i}"))
    })
}

/// The store's fingerprints, or `None` if it cannot be opened.
fn fingerprints(disk: &SimulatedDisk, path: &Path) -> Option<Vec<u64>> {
    let store = Snapshot::<u64>::open_on(&disk.as_fs(), path).ok()?;
    Some(store.iter().map(|entry| entry.unwrap().fingerprint).collect())
}

fn build_on(disk: &SimulatedDisk, path: &Path, count: u64, replace: bool) -> Result<(), Error> {
    // So little memory that sorted runs are spilled to disk. A failed build must remove them, too.
    let options = BuildOptions { fs: disk.as_fs(), memory: Some(16 << 20), replace, ..options() };
    let mut builder = Builder::create(path, options)?;
    fill(&mut builder, count)?;
    builder.finish().map(|_| ())
}

#[test]
fn a_full_disk_leaves_nothing() {
    let path = Path::new("store");
    let disk = SimulatedDisk::default();
    build_on(&disk, path, 3000, false).unwrap();
    let whole: usize = 3000 * 30;
    let mut succeeded = false;
    for room in (0..whole).step_by(whole / 60).chain([1 << 30]) {
        let disk = SimulatedDisk::default();
        disk.set_free_bytes(Some(room));
        match build_on(&disk, path, 3000, false) {
            Ok(()) => {
                succeeded = true;
                assert_eq!(fingerprints(&disk, path).unwrap().len(), 3000);
            }
            Err(error) => {
                assert!(matches!(error, Error::Io { .. }), "{error}");
                assert_eq!(disk.paths(), Vec::<std::path::PathBuf>::new(), "room for {room}");
            }
        }
    }
    assert!(succeeded);
}

#[test]
fn a_store_that_is_replaced_stays_until_the_new_one_is_complete() {
    let path = Path::new("store");
    let disk = SimulatedDisk::default();
    build_on(&disk, path, 100, false).unwrap();
    assert!(matches!(build_on(&disk, path, 200, false), Err(Error::AlreadyExists { .. })));
    let before = fingerprints(&disk, path).unwrap();
    let files = disk.paths();
    for room in (0..6000).step_by(400) {
        disk.set_free_bytes(Some(room));
        if build_on(&disk, path, 2000, true).is_err() {
            assert_eq!(fingerprints(&disk, path).unwrap(), before);
            assert_eq!(disk.paths(), files, "room for {room}");
        }
    }
    disk.set_free_bytes(None);
    build_on(&disk, path, 2000, true).unwrap();
    assert_eq!(fingerprints(&disk, path).unwrap().len(), 2000);
    assert_eq!(disk.paths().len(), files.len(), "the files of the old store are gone");
}

#[test]
fn files_of_a_killed_build_are_removed_by_the_next_build() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    fs::create_dir(&path).unwrap();
    for name in ["LOCK", "BUILDING", "000001.0.tmp", "000001-01.table", "000001.ids.tmp", "MANIFEST.tmp"] {
        fs::write(path.join(name), "left over").unwrap();
    }
    let error = Snapshot::<u64>::open(&path).unwrap_err().to_string();
    assert!(error.contains("the build of this store was interrupted; run it again"), "{error}");
    let mut builder = Builder::create(&path, options()).unwrap();
    fill(&mut builder, 10).unwrap();
    assert_eq!(builder.finish().unwrap().len(), 10);
    let mut names: Vec<_> =
        fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    let expected = ["000001-00.table", "000001-01.table", "000001.ids", "000001.names", "LOCK", "MANIFEST"];
    assert_eq!(names, expected);
}

/// If the manifest of a store is missing, opening the store fails, and so does building a new store in its place.
/// Neither changes a file. The test also checks this while it deletes the other files, one after the other.
#[test]
fn a_store_without_its_manifest_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::create(&path, options()).unwrap();
    fill(&mut builder, 10).unwrap();
    builder.finish().unwrap();
    let store =
        Store::<u64>::open(&path, StoreOptions { compaction: false, ..StoreOptions::default() }).unwrap();
    store.insert(7, 1000).unwrap();
    drop(store);
    fs::remove_file(path.join("MANIFEST")).unwrap();

    let content = || {
        let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        entries.map(|file| (file.clone(), fs::read(file).unwrap())).collect::<BTreeMap<_, _>>()
    };
    let mut left = content();
    assert!(left.len() > 4, "{left:?}");
    // The same without the lock file.
    fs::remove_file(path.join("LOCK")).unwrap();
    left.retain(|file, _| file.file_name().unwrap() != "LOCK");
    while !left.is_empty() {
        let errors = [
            Snapshot::<u64>::open(&path).map(drop).unwrap_err(),
            Store::<u64>::open(&path, StoreOptions::default()).map(drop).unwrap_err(),
            Store::<u64>::open(&path, StoreOptions { create: false, ..StoreOptions::default() })
                .map(drop)
                .unwrap_err(),
            Builder::<u64>::create(&path, options()).map(drop).unwrap_err(),
            Builder::<u64>::create(&path, BuildOptions { replace: true, ..options() }).map(drop).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("`salvage`"), "{error}");
        }
        assert_eq!(content(), left);
        fs::remove_file(left.keys().next().unwrap()).unwrap();
        left = content();
    }
    // If no file of a store is left, a new store is created.
    Store::<u64>::open(&path, StoreOptions::default()).unwrap();
}

#[test]
fn a_marker_beside_a_manifest_goes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::create(&path, options()).unwrap();
    assert!(path.join("BUILDING").exists());
    fill(&mut builder, 10).unwrap();
    builder.finish().unwrap();
    assert!(!path.join("BUILDING").exists());
    fs::write(path.join("BUILDING"), "").unwrap();
    assert_eq!(Store::<u64>::open(&path, StoreOptions::default()).unwrap().snapshot().len(), 10);
    assert!(!path.join("BUILDING").exists());
}

#[test]
fn a_dropped_builder_leaves_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::create(&path, options()).unwrap();
    fill(&mut builder, 10).unwrap();
    drop(builder);
    assert!(!path.exists());
}

#[test]
fn other_folders_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("note.txt");
    fs::write(&note, "mine").unwrap();
    for replace in [false, true] {
        let options = BuildOptions { replace, ..options() };
        for path in [folder.path(), &note] {
            let error = Builder::<u64>::create(path, options.clone()).map(|_| ()).unwrap_err();
            assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
        }
    }
    assert_eq!(fs::read_to_string(&note).unwrap(), "mine");
    for path in [&note, folder.path(), &folder.path().join("missing")] {
        assert!(Snapshot::<u64>::open(path).is_err());
    }
}

#[test]
fn two_builders_do_not_meet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut first = Builder::create(&path, options()).unwrap();
    let second = Builder::<u64>::create(&path, options()).map(|_| ());
    assert!(matches!(second, Err(Error::Locked { is_here: true, .. })));
    fill(&mut first, 10).unwrap();
    assert_eq!(first.finish().unwrap().len(), 10);
}

#[test]
fn impossible_builds_are_refused_before_anything_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let plan = |name: &str| PlanChoice::Named(name.into());
    let cases = [
        BuildOptions { distance: 17, ..BuildOptions::default() },
        BuildOptions { plan: plan("cover-11"), distance: 4, ..BuildOptions::default() },
        BuildOptions { plan: plan("best"), ..BuildOptions::default() },
        BuildOptions { block_size: Some(1000), ..BuildOptions::default() },
        BuildOptions { block_size: Some(128), ..BuildOptions::default() },
    ];
    for options in cases {
        let context = format!("{options:?}");
        assert!(Builder::<u64>::create(&path, options).is_err(), "{context}");
        assert!(!path.exists(), "{context}");
    }
}

#[test]
fn names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store");
    let mut builder = Builder::create(&path, options()).unwrap();
    let long = "x".repeat(65536);
    let names = ["", "a/b", "a/bc", "é", "日本語", &long, "a"];
    for (i, name) in names.iter().enumerate() {
        builder.insert_named(i as u64, i as u64 * 1000, name).unwrap();
    }
    let again = builder.insert_named(9, 6000, "late");
    assert!(matches!(again, Err(Error::OutOfOrder { .. })), "{again:?}");
    assert!(builder.insert_named(9, 7000, &"x".repeat(65537)).is_err());
    builder.insert(77, 8000).unwrap();
    let store = builder.finish().unwrap();
    for (i, name) in names.iter().enumerate() {
        assert_eq!(store.name(i as u64 * 1000).unwrap().as_deref(), Some(*name));
    }
    for id in [1, 999, 1001, 8000, u64::MAX] {
        assert_eq!(store.name(id).unwrap(), None);
    }
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    assert_eq!(store.stats().names, 7);
}

#[test]
fn reads_are_concurrent() {
    fn shared<T: Send + Sync>(_: &T) {}
    let folder = tempfile::tempdir().unwrap();
    for codec in Codec::ALL {
        let path = folder.path().join(codec.name());
        let mut builder = Builder::create(&path, BuildOptions { codec, ..options() }).unwrap();
        fill(&mut builder, 20_000).unwrap();
        let store = builder.finish().unwrap();
        shared(&store);
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let store = &store;
                scope.spawn(move || {
                    for i in (thread..20_000_u64).step_by(17) {
                        let found = store.query(i.wrapping_mul(0x9e37_79b9_7f4a_7c15), 0).unwrap();
                        assert_eq!(found.iter().map(|m| m.id).collect::<Vec<_>>(), [Some(i)]);
                    }
                });
            }
        });
    }
}

#[test]
fn a_store_that_another_build_finishes_meanwhile_is_left_alone() {
    let path = Path::new("store");
    let disk = SimulatedDisk::default();
    disk.set_hook(|disk, kind| {
        // The nested build locks, too, but then the store exists, so the hook builds only once.
        if kind == OperationKind::Lock && fingerprints(disk, Path::new("store")).is_none() {
            build_on(disk, Path::new("store"), 70, false).unwrap();
        }
    });
    let error = build_on(&disk, path, 5, false).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    assert_eq!(fingerprints(&disk, path).unwrap().len(), 70);
}

/// Lets the next `syncs` folder syncs succeed, and makes all later ones fail.
fn fail_syncs_after(disk: &SimulatedDisk, syncs: usize) {
    let counted = OperationFilter::Kind(OperationKind::SyncDir);
    disk.plan(Fault { counted, n: disk.count(counted) + syncs, lasting: true, failure: Failure::IoError });
}

#[test]
fn whichever_folder_sync_fails_there_is_a_whole_store() {
    let path = Path::new("store");
    for syncs in 0..4 {
        let disk = SimulatedDisk::default();
        build_on(&disk, path, 100, false).unwrap();
        fail_syncs_after(&disk, syncs);
        let built = build_on(&disk, path, 200, true);
        let found = fingerprints(&disk, path).unwrap().len();
        match built {
            Ok(()) => assert_eq!(found, 200),
            Err(_) => assert!(found == 100 || found == 200, "{syncs}"),
        }
        // A new store is complete, or no file of it exists.
        let disk = SimulatedDisk::default();
        fail_syncs_after(&disk, syncs);
        let built = build_on(&disk, path, 200, false);
        match fingerprints(&disk, path) {
            Some(found) => assert_eq!(found.len(), 200),
            None => assert!(built.is_err() && disk.paths().is_empty(), "{syncs}: {:?}", disk.paths()),
        }
    }
}

#[test]
fn files_that_only_look_like_ours_are_left_alone() {
    for replace in [false, true] {
        for (name, content) in
            [("000001.ids", "precious"), ("20240101.backup.tmp", "precious"), ("MANIFEST", "a list of files")]
        {
            let disk = SimulatedDisk::default();
            simstore::fs::Fs::create_dir(&disk, Path::new("store")).unwrap();
            disk.write_file(&format!("store/{name}"), content.as_bytes());
            let before = disk.paths();
            let error = build_on(&disk, Path::new("store"), 5, replace).unwrap_err();
            assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
            assert_eq!(disk.paths(), before, "{name}");
        }
    }
}

#[test]
fn fingerprints_of_a_source() {
    let sorted: Vec<u64> = (0..20_000).map(|i: u64| i * i * 0x1_0000_0001).collect();
    for plan in ["probe-1", "probe-2", "cover-5"] {
        for codec in Codec::ALL {
            let build = |values: &'static [u64], ids| {
                let plan = PlanChoice::Named(plan.into());
                let fs = SimulatedDisk::default().as_fs();
                let options = BuildOptions { plan, codec, ids, fs, ..BuildOptions::default() };
                let builder = Builder::<u64>::create(Path::new("store"), options)?;
                builder.finish_sorted(move |write| values.chunks(777).try_for_each(write))
            };
            let values: &'static [u64] = sorted.clone().leak();
            let store = build(values, false).unwrap();
            assert_eq!(store.verify(|error| panic!("{error}")), 0);
            let listed: Vec<u64> = store.iter().map(|entry| entry.unwrap().fingerprint).collect();
            assert_eq!(listed, sorted);
            assert!(build(&[], false).unwrap().is_empty());
            assert!(matches!(build(&[1, 5, 3], false), Err(Error::OutOfOrder { .. })));
            assert!(matches!(build(&[1], true), Err(Error::BadArgument(_))));
        }
    }
    let options = BuildOptions { ids: false, fs: SimulatedDisk::default().as_fs(), ..options() };
    let mut builder = Builder::<u64>::create(Path::new("store"), options.clone()).unwrap();
    builder.insert(1, 0).unwrap();
    assert!(matches!(builder.finish_sorted(|write| write(&[2])), Err(Error::BadArgument(_))));
    // A source that returns different fingerprints each time it is called.
    let options = BuildOptions { ids: false, fs: SimulatedDisk::default().as_fs(), ..options };
    let builder = Builder::<u64>::create(Path::new("store"), options).unwrap();
    let calls = AtomicU64::new(0);
    let error = builder
        .finish_sorted(move |write| {
            (0..=calls.fetch_add(1, Ordering::Relaxed)).try_for_each(|value| write(&[value]))
        })
        .unwrap_err();
    assert!(matches!(error, Error::BadArgument(_)), "{error}");
}

/// With each codec objective (size or speed), the builder chooses the expected codec: for random fingerprints, and for
/// fingerprints of many revisions of the same documents.
#[test]
fn a_codec_for_a_purpose() {
    let mut random = Random(5);
    let spread: Vec<u64> = (0..30_000).map(|_| random.fingerprint()).collect();
    // Revisions of documents: each fingerprint differs in a few bits from an earlier one.
    let mut revised: Vec<u64> = (0..1000).map(|_| random.fingerprint()).collect();
    for _ in 0..20_000 {
        let before = revised[random.below(revised.len() as u64) as usize];
        revised.push((0..random.below(3)).fold(before, |x, _| x ^ 1 << random.below(64)));
    }
    let codec = |fingerprints: &[u64], codec_for, span| {
        let fs = SimulatedDisk::default().as_fs();
        let options = BuildOptions { codec_objective: codec_for, span, fs, ..BuildOptions::default() };
        let mut builder = Builder::<u64>::create(Path::new("store"), options).unwrap();
        (0..).zip(fingerprints).try_for_each(|(id, &fingerprint)| builder.insert(fingerprint, id)).unwrap();
        let store = builder.finish().unwrap();
        assert_eq!(store.verify(|error| panic!("{error}")), 0);
        let tables = store.segments().iter().flat_map(|segment| segment.tables());
        assert!(tables.map(|table| table.header().codec).all(|codec| codec == store.codec()));
        store.codec()
    };
    assert_eq!(codec(&spread, None, None), Codec::FirstDifference);
    assert_eq!(codec(&spread, Some(CodecObjective::Size), None), Codec::Gap);
    assert_eq!(codec(&revised, Some(CodecObjective::Size), None), Codec::AllDifferences);
    assert_eq!(codec(&spread, Some(CodecObjective::Speed), None), Codec::PrefixLines);
    // Revisions fill some prefix lines, which are then divided: each query reads more lines.
    assert_eq!(codec(&revised, Some(CodecObjective::Speed), None), Codec::EliasFano);
    // If a span is set, only codecs with spans are considered.
    assert_eq!(codec(&spread, Some(CodecObjective::Size), Some(16)), Codec::Gap);
    assert_eq!(codec(&spread, Some(CodecObjective::Speed), Some(16)), Codec::Gap);
    codec(&[], Some(CodecObjective::Size), None);
}
