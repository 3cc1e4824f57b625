//! Stores that `format-spec/writer.py` writes, an independent writer: the engine takes them over, and two of them are golden stores.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use simstore::{Codec, Durability, Fingerprint, Snapshot, Store, StoreOptions};

use crate::support::random::Random;
use crate::support::spec_folder::{is_update, python, spec};

/// The stores that `writer.py` writes are stores for the engine: it opens, verifies, queries, adds to and compacts them.
#[test]
fn the_engine_takes_over_stores_of_the_independent_writer() {
    let folder = tempfile::tempdir().unwrap();
    written_stores::<u64>(folder.path());
    written_stores::<u128>(folder.path());
}

/// Writes a golden store of `writer.py` again from its input, and compares it with the kept files.
pub(crate) fn compare_written(store: &str) {
    let folder = tempfile::tempdir().unwrap();
    let (kept, written) = (spec("golden").join(store), folder.path().join(store));
    let input = kept.join("input.json");
    let Some(_) = python("writer.py", &[written.to_str().unwrap(), input.to_str().unwrap()]) else { return };
    let names = |path: &Path| -> Vec<String> {
        let names =
            fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.filter(|name| !name.ends_with(".json") && name != "LOCK").collect();
        names.sort();
        names
    };
    if is_update() {
        for name in names(&written) {
            fs::copy(written.join(&name), kept.join(&name)).unwrap();
        }
    }
    assert_eq!(names(&written), names(&kept));
    for name in names(&written) {
        let bytes = fs::read(kept.join(&name)).unwrap();
        assert!(
            fs::read(written.join(&name)).unwrap() == bytes,
            "golden/{store}/{name} is written differently now"
        );
    }
}

fn written_stores<F: Fingerprint>(folder: &Path) {
    let mut random = Random(u64::from(F::BITS) + 3);
    for (number, codec) in Codec::ALL.into_iter().enumerate() {
        let mut pairs: Vec<(F, u64)> = (0..600).map(|i| (random.fingerprint::<F>(), i)).collect();
        pairs.extend(random.clustered::<F>(600).into_iter().zip(600..));
        let often = pairs[7].0;
        pairs.extend((0..200).map(|i| (often, 5000 + i)));
        let (old, new) = pairs.split_at(900);
        let as_json = |pairs: &[(F, u64)]| -> Value {
            pairs.iter().map(|(fingerprint, id)| json!([fingerprint.to_hex(), id.to_string()])).collect()
        };
        let (deleted, logged) = (old[3], (random.fingerprint::<F>(), 9000));
        let input = json!({
            "bits": F::BITS, "distance": 3, "codec": codec.to_string(), "ids": true, "profile": "", "plan": "auto",
            "block_size": 512,
            "segments": [
                {"pairs": as_json(old), "names": {"0": "zero", "3": "three", "5": "五"}, "notes": {"5": "0501"},
                 "metadata": {"key": "01"}, "tombstones": []},
                {"pairs": as_json(new), "names": {}, "notes": {}, "metadata": {"key": "02"}, "tombstones": as_json(&[deleted])},
            ],
            "logs": [[[["insert", logged.0.to_hex(), logged.1.to_string(), "logged"], ["note", "9000", "aa"]]]],
        });
        let (path, file) = (folder.join(format!("{}-{number}", F::BITS)), folder.join("input.json"));
        fs::write(&file, input.to_string()).unwrap();
        let arguments = [path.to_str().unwrap(), file.to_str().unwrap()];
        let Some(_) = python("writer.py", &arguments) else { return };
        let mut expected: Vec<(F, u64)> = pairs.iter().copied().filter(|pair| *pair != deleted).collect();
        expected.push(logged);
        expected.sort_unstable();
        let check = |store: &Snapshot<F>, expected: &[(F, u64)]| {
            assert_eq!(store.verify(|error| panic!("{codec}: {error}")), 0);
            let found: Vec<_> = store
                .iter()
                .map(Result::unwrap)
                .map(|entry| (entry.fingerprint, entry.id.unwrap()))
                .collect();
            assert!(found == expected, "{codec}");
            for &(fingerprint, _) in expected.iter().step_by(41) {
                let query = fingerprint ^ F::bit_mask(1) ^ F::bit_mask(40);
                let near = expected.iter().filter(|(stored, _)| stored.distance(query) <= 3).count();
                assert_eq!(store.query(query, 3).unwrap().len(), near, "{codec}");
            }
            let names = store.names_of(&[0, 3, 5, 9000]).unwrap();
            let names: Vec<Option<&str>> = names.iter().map(Option::as_deref).collect();
            assert_eq!(names, [Some("zero"), None, Some("五"), Some("logged")], "{codec}");
            assert_eq!(store.notes_of(&[5, 9000]).unwrap(), [Some(vec![5, 1]), Some(vec![0xaa])], "{codec}");
            assert_eq!(store.metadata("key").unwrap(), Some(vec![2]), "{codec}");
        };
        check(&Snapshot::open(&path).unwrap(), &expected);
        let store =
            Store::<F>::open(&path, StoreOptions { compaction: false, ..StoreOptions::default() }).unwrap();
        let mut transaction = store.transaction();
        transaction.insert(F::MAX, 9001);
        transaction.commit(Durability::Sync).unwrap();
        expected.push((F::MAX, 9001));
        expected.sort_unstable();
        check(&store.snapshot(), &expected);
        store.compact().unwrap();
        check(&store.snapshot(), &expected);
        assert_eq!(store.snapshot().segments().len(), 1, "{codec}");
    }
}
