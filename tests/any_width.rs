//! Tests of stores whose fingerprint width is chosen at run time.

use std::collections::HashSet;
use std::ops::ControlFlow;

use simstore::any::{AnyBuilder, AnyFingerprints, AnySnapshot, AnyStore, AnyWidth, Width};
use simstore::error::ErrorCode;
use simstore::progress::ProgressCallback;
use simstore::store::is_store;
use simstore::{BuildOptions, Durability, Fingerprint, Insertion, Snapshot, Store, StoreOptions, each_width};

/// Fingerprints that fit 64 bits, for stores of both widths.
const FINGERPRINTS: [u128; 3] = [0b1111, 0b1110 << 40, u64::MAX as u128];

#[test]
fn each_width_answers_as_its_own_type_does() {
    for bits in [64, 128] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        assert!(!is_store(&path));
        let mut builder = AnyBuilder::create(&path, bits, BuildOptions::default()).unwrap();
        for (id, &fingerprint) in (0..).zip(&FINGERPRINTS) {
            builder.insert_named(fingerprint, id, &format!("document {id}")).unwrap();
        }
        builder.insert(FINGERPRINTS[0], 9).unwrap();
        builder.set_note(9, b"note").unwrap();
        let built = builder.finish().unwrap();
        assert!(is_store(&path));
        let opened = AnySnapshot::open(&path).unwrap();
        for snapshot in [&built, &opened, &opened.refresh().unwrap()] {
            assert_eq!((snapshot.bits(), snapshot.len(), snapshot.distance()), (bits, 3, 3));
            let found = snapshot.query(FINGERPRINTS[0] ^ 1, 3).unwrap();
            assert_eq!(
                found.iter().map(|m| (m.fingerprint, m.distance, m.id)).collect::<Vec<_>>(),
                [(FINGERPRINTS[0], 1, Some(0)), (FINGERPRINTS[0], 1, Some(9))]
            );
            let entries: Vec<_> = snapshot.iter().map(|entry| entry.unwrap()).collect();
            assert_eq!(
                entries.iter().map(|e| (e.fingerprint, e.id.unwrap())).collect::<Vec<_>>(),
                [(FINGERPRINTS[0], 0), (FINGERPRINTS[0], 9), (FINGERPRINTS[1], 1), (FINGERPRINTS[2], 2)]
            );
            assert!(snapshot.contains(FINGERPRINTS[2]).unwrap() && !snapshot.contains(0).unwrap());
            assert!(snapshot.contains_pair(FINGERPRINTS[2], 2).unwrap());
            assert_eq!(snapshot.name(2).unwrap().as_deref(), Some("document 2"));
            assert_eq!(snapshot.note(9).unwrap().as_deref(), Some(&b"note"[..]));
            assert_eq!(snapshot.notes_of(&[2, 9]).unwrap(), [None, Some(b"note".to_vec())]);
            let pairs = snapshot.pairs_of_names(&HashSet::from(["document 1".to_string()])).unwrap();
            assert_eq!((pairs.len(), pairs[0].fingerprint, pairs[0].id), (1, FINGERPRINTS[1], 1));
            let quiet = ProgressCallback::new(|_| ControlFlow::Continue(()));
            assert_eq!(snapshot.verify_with(&quiet, |error| panic!("{error}")).unwrap(), 0);
        }
    }
}

#[test]
fn fingerprints_that_are_too_wide_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (narrow, wide) = (folder.path().join("narrow"), folder.path().join("wide"));
    let too_wide = 1_u128 << 64;
    let store = AnyStore::open(&narrow, None, StoreOptions::default()).unwrap();
    let snapshot = store.snapshot();
    let refused = [
        store.insert(too_wide, 1).map(drop),
        store.insert_named(too_wide, 1, "name").map(drop),
        store.insert_if_new(too_wide, 1).map(drop),
        store.delete(too_wide, 1).map(drop),
        store.delete_all(&[(too_wide, 1)], Durability::Os).map(drop),
        store.query(too_wide, 1).map(drop),
        store.transaction().insert(too_wide, 1),
        store.transaction().delete(too_wide, 1),
        snapshot.query(too_wide, 1).map(drop),
        snapshot.contains(too_wide).map(drop),
        AnyBuilder::create(&wide, 96, BuildOptions::default()).map(drop),
        AnyStore::open(&wide, Some(32), StoreOptions::default()).map(drop),
    ];
    for result in refused {
        assert_eq!(result.unwrap_err().code(), ErrorCode::BadArgument);
    }
    assert!(!is_store(&wide) && store.snapshot().is_empty());
    drop(store);
    let store = AnyStore::open(&wide, Some(128), StoreOptions::default()).unwrap();
    store.insert(too_wide, 1).unwrap();
    drop(store);
    for (path, bits) in [(&narrow, 64), (&wide, 128)] {
        assert_eq!(AnySnapshot::open(path).unwrap().bits(), bits);
        assert_eq!(AnyStore::open(path, None, StoreOptions::default()).unwrap().snapshot().bits(), bits);
        let other = AnyStore::open(path, Some(192 - bits), StoreOptions::default()).unwrap_err();
        assert_eq!(other.code(), ErrorCode::Width);
    }
}

#[test]
fn a_width_is_chosen_in_one_way() {
    assert_eq!(each_width!(Width::from_bits(64).unwrap(), type F => F::BYTES), 8);
    assert_eq!(each_width!(Width::from_bits(128).unwrap(), type F => F::BYTES), 16);
    let made = AnyWidth::with_bits(128, || Ok("narrow"), || Ok(String::from("wide"))).unwrap();
    assert_eq!((made.bits(), made.width()), (128, Width::Bits128(())));
    assert_eq!(each_width!(&made, one => one.len()), 4);
    for bits in [0, 1, 63, 65, 96, 129, u32::MAX] {
        let refused = Width::from_bits(bits).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::BadArgument);
        assert_eq!(refused.to_string(), format!("option `bits` is {bits}: expected 64 or 128"));
        let unmade: Result<AnyWidth<(), ()>, _> = AnyWidth::with_bits(bits, || panic!(), || panic!());
        assert_eq!(unmade.unwrap_err().to_string(), refused.to_string());
    }
}

#[test]
fn only_what_has_one_width_goes_together() {
    let mut narrow = AnyFingerprints::from(vec![1_u64, 3]);
    let wide = AnyFingerprints::from(vec![u128::MAX]);
    assert_eq!((narrow.len(), narrow.get(1), narrow.get(2), narrow.is_empty()), (2, Some(3), None, false));
    assert_eq!((wide.len(), wide.get(0), wide.bits()), (1, Some(u128::MAX), 128));
    each_width!(narrow.as_mut(), values => values.push(Default::default()));
    let both = narrow.as_ref().zip(narrow.as_ref()).unwrap();
    assert_eq!(each_width!(both, (a, b) => a.len() + b.len()), 6);
    let error = narrow.zip(wide).unwrap_err();
    assert_eq!(error.to_string(), "expected fingerprints of 64 bits, found some of 128");
}

#[test]
fn writes_of_any_width() {
    for bits in [64, 128] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("store");
        let store = AnyStore::open(&path, Some(bits), StoreOptions::default()).unwrap();
        store.insert(0xff, 1).unwrap();
        let Insertion::DuplicateOf(found) = store.insert_if_new(0xfe, 2).unwrap() else { panic!() };
        assert_eq!((found[0].fingerprint, found[0].id), (0xff, Some(1)));
        let mut transaction = store.transaction();
        transaction.insert_named(0xff << 32, 3, "three").unwrap();
        transaction.delete(0xff, 1).unwrap();
        transaction.set_metadata("key", b"value").unwrap();
        transaction.set_note(3, b"note").unwrap();
        assert_eq!(transaction.commit_if_new(Durability::Os).unwrap(), Insertion::Inserted);
        store.insert(0xfe << 32, 5).unwrap();
        assert_eq!(
            store.delete_all(&[(0xfe << 32, 5), (0xfe << 32, 5)], Durability::Os).unwrap(),
            [true, false]
        );
        let mut transaction = store.transaction();
        transaction.insert(0xff << 48, 4).unwrap();
        transaction.commit(Durability::Sync).unwrap();
        assert!(store.delete(0xff << 48, 4).unwrap());
        store.flush().unwrap();
        store.sync().unwrap();
        store.wait_for_background().unwrap();
        assert_eq!(store.query(0xff << 32, 0).unwrap().len(), 1);
        assert_eq!(store.snapshot().metadata("key").unwrap().as_deref(), Some(&b"value"[..]));
        assert_eq!(store.snapshot().note(3).unwrap().as_deref(), Some(&b"note"[..]));
        drop(store);
        let entries = match bits {
            64 => Snapshot::<u64>::open(&path).unwrap().iter().count(),
            _ => Snapshot::<u128>::open(&path).unwrap().iter().count(),
        };
        assert_eq!(entries, 1);
    }
}

/// `commit_if_new` with several inserts stores all fingerprints, or none if any of them is near a stored one.
#[test]
fn several_if_new() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::<u64>::open(&folder.path().join("store"), StoreOptions::default()).unwrap();
    store.insert(0xff << 32, 1).unwrap();
    let commit = |fingerprints: &[u64]| {
        let mut transaction = store.transaction();
        (10..).zip(fingerprints).for_each(|(id, &fingerprint)| transaction.insert(fingerprint, id));
        transaction.commit_if_new(Durability::Os).unwrap()
    };
    let Insertion::DuplicateOf(found) = commit(&[0, 0xff << 32]) else { panic!() };
    assert_eq!(found.iter().map(|m| m.id).collect::<Vec<_>>(), [Some(1)]);
    assert_eq!(store.snapshot().len(), 1);
    assert_eq!(commit(&[0, 0xff << 16]), Insertion::Inserted);
    assert_eq!(commit(&[]), Insertion::Inserted);
    assert_eq!(store.snapshot().len(), 3);
    // Each stored match is reported once, although several inserts are near it.
    let Insertion::DuplicateOf(found) = commit(&[1, 0xff << 32, 0, 0xff << 32]) else { panic!() };
    assert_eq!(
        found.iter().map(|m| (m.distance, m.id)).collect::<Vec<_>>(),
        [(1, Some(10)), (0, Some(1)), (0, Some(10))]
    );
}
