//! Tests of stores with the smallest and the largest ids and file numbers.

use simstore::{BuildOptions, Builder, Snapshot, Store, StoreOptions};

/// A store remembers the highest id that was ever used, even after all its pairs are deleted, flushed, merged or
/// salvaged. So no id is given to a second document.
#[test]
fn no_id_is_given_twice() {
    let folder = tempfile::tempdir().unwrap();
    for highest in [0, 7, u64::MAX] {
        let path = folder.path().join(format!("{highest}"));
        let open = || Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        let check = |context: &str| {
            let stored = Snapshot::<u64>::open(&path).unwrap().highest_id();
            assert_eq!(stored, Some(highest), "{highest}, {context}");
        };
        let store = open();
        assert_eq!(store.snapshot().highest_id(), None);
        store.insert(5, highest).unwrap();
        assert!(store.delete(5, highest).unwrap());
        check("deleted before it was in a segment");
        store.flush().unwrap();
        check("flushed, which leaves no segment");
        drop(store);
        let store = open();
        check("opened again");
        let mut load = store.bulk_load().unwrap();
        load.insert(6, highest).unwrap();
        load.finish().unwrap();
        assert!(store.delete(6, highest).unwrap());
        store.compact().unwrap();
        assert_eq!((store.snapshot().segments().len(), store.snapshot().len()), (0, 0));
        drop(store);
        drop(open());
        check("merged away");
        let salvaged = folder.path().join(format!("{highest} salvaged"));
        simstore::store::salvage::<u64>(&path, &salvaged, &Default::default()).unwrap();
        assert_eq!(Snapshot::<u64>::open(&salvaged).unwrap().highest_id(), Some(highest), "salvaged");
    }
    let built = folder.path().join("built");
    let mut builder = Builder::<u64>::create(&built, BuildOptions::default()).unwrap();
    builder.insert(3, 0).unwrap();
    assert_eq!(builder.finish().unwrap().highest_id(), Some(0));
}

/// A manifest may record a next file number that is far above the numbers of all existing files. Even so, opening the
/// store takes no longer.
#[test]
fn numbers_far_apart_take_no_time() {
    let folder = tempfile::tempdir().unwrap();
    for next in [1_u64 << 40, 1 << 48] {
        let path = folder.path().join(format!("{next}"));
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        store.insert(5, 1).unwrap();
        store.flush().unwrap();
        drop(store);
        let manifest = path.join("MANIFEST");
        let mut bytes = std::fs::read(&manifest).unwrap();
        bytes[24..32].copy_from_slice(&next.to_le_bytes());
        let end = bytes.len() - 12;
        let crc = crc32fast::hash(&bytes[..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
        std::fs::write(&manifest, bytes).unwrap();
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        store.insert(6, 2).unwrap();
        let compacted = store.compact();
        // 2^48 is a valid next number in a manifest, but no file can have it.
        assert_eq!(compacted.is_ok(), next < 1 << 48, "{compacted:?}");
        drop(store);
        assert_eq!(Snapshot::<u64>::open(&path).unwrap().iter().count(), 2);
    }
}
