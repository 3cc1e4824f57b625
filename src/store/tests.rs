use std::path::Path;

use super::*;
use crate::fingerprint::Fingerprint;
use crate::{BuildOptions, PlanChoice};

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
    assert!(matches!(store.query(7, 4), Err(Error::Distance { asked: 4, supported: 3, .. })));
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    assert_eq!(
        store.iter().map(Result::unwrap).map(|e| e.id.unwrap()).collect::<Vec<_>>(),
        [u64::MAX, 1, 2, 0]
    );
    assert_eq!(stored_bits(&path).unwrap(), 64);
    assert!(matches!(Snapshot::<u128>::open(&path), Err(Error::Width { expected: 128, found: 64, .. })));
}
