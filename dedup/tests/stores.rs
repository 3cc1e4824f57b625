//! Tests deduplication against several stores of fingerprints. Compares the results with a plain loop.

use std::fs;
use std::path::{Path, PathBuf};

use simstore::{Fingerprint, Result, Store, StoreOptions};
use simstore_dedup::{AddConfig, ClusterBy, DedupConfig, Outputs, Report};
use simstore_io::{DocumentId, IdRef};

use crate::support::inputs;
use crate::{Random, TempFolder};

const DISTANCE: u32 = 3;
const STORES: [&str; 3] = ["a", "b", "c"];

/// Stored fingerprint near a document: (distance in bits, index of the store, id).
type StoredNeighbor = (u32, usize, u64);

fn make<F: Fingerprint>(path: &Path, profile: &str, fingerprints: &[F]) -> PathBuf {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let profile = Some(profile.to_owned());
    let options = StoreOptions { distance: Some(DISTANCE), profile, ..StoreOptions::default() };
    let store = Store::<F>::open(path, options).unwrap();
    let mut load = store.bulk_load().unwrap();
    (0..).zip(fingerprints).for_each(|(id, &fingerprint)| load.insert(fingerprint, id).unwrap());
    load.finish().unwrap();
    path.to_path_buf()
}

fn find(fingerprints: &[u64], options: &DedupConfig) -> Result<Report> {
    let given = (0..).map(DocumentId::Number).zip(fingerprints.iter().copied());
    let report = simstore_dedup::run(options, &inputs::values(given), Outputs::default(), &())?;
    assert_eq!(report.added_before(), None);
    Ok(report)
}

/// Returns random fingerprints. Many of them are near each other, or near fingerprints from other calls.
fn some(random: &mut Random, count: usize) -> Vec<u64> {
    let mut some = || {
        let mut value = Random::hash(random.below(20));
        (0..random.below(3)).for_each(|_| value ^= 1 << random.below(64));
        value
    };
    (0..count).map(|_| some()).collect()
}

/// Returns the stored fingerprints near each document, the nearest first.
fn near_stored(documents: &[u64], stores: &[Vec<u64>]) -> Vec<Vec<StoredNeighbor>> {
    let of_document = |document: &u64| {
        let mut near: Vec<StoredNeighbor> = Vec::new();
        for (at, store) in stores.iter().enumerate() {
            let found = (0..).zip(store).map(|(id, value)| ((value ^ document).count_ones(), at, id));
            near.extend(found.filter(|&(distance, ..)| distance <= DISTANCE));
        }
        near.sort_unstable();
        near
    };
    documents.iter().map(of_document).collect()
}

/// For each document, the representative of its cluster: `Ok` with a document, or `Err` with a stored fingerprint (index
/// of the store, id). `None` for a document in no cluster.
type RepresentativeList = Vec<Option<std::result::Result<usize, (usize, u64)>>>;

fn representatives(found: &Report, documents: usize, paths: &[PathBuf]) -> RepresentativeList {
    let mut representatives = vec![None; documents];
    for cluster in found.clusters() {
        let cluster = cluster.unwrap();
        let DocumentId::Number(id) = cluster.representative else { panic!("{cluster:?}") };
        let store = cluster.store.map(|store| paths.iter().position(|path| path == store).unwrap());
        assert_eq!(cluster.is_stored, store.is_some());
        for member in &cluster.members {
            representatives[member.document] = Some(store.map_or(Ok(id as usize), |store| Err((store, id))));
            assert_eq!(member.is_kept, store.is_none() && id as usize == member.document);
        }
    }
    representatives
}

/// Computes representatives by the definition of stars, by a plain loop. If stored fingerprints are near a document,
/// the nearest stored fingerprint is its representative. All other documents form stars among themselves. `near` has
/// the stored fingerprints near each document.
fn plain_stars(documents: &[u64], near: &[Vec<StoredNeighbor>]) -> RepresentativeList {
    let of_stored = |near: &Vec<StoredNeighbor>| near.first().map(|&(_, store, id)| Err((store, id)));
    let mut representatives: RepresentativeList = near.iter().map(of_stored).collect();
    for (a, x) in documents.iter().enumerate() {
        let taken: Vec<usize> = (a..documents.len())
            .filter(|&b| representatives[b].is_none() && (x ^ documents[b]).count_ones() <= DISTANCE)
            .collect();
        if representatives[a].is_none() && taken.len() > 1 {
            taken.into_iter().for_each(|b| representatives[b] = Some(Ok(a)));
        }
    }
    representatives
}

/// Computes representatives by the definition of components, by a plain loop. Documents near each other, and documents
/// near the same stored fingerprint, are connected. The representative of a component is the stored fingerprint that is
/// nearest to a document of the component. If no stored fingerprint is near, the representative is the first document
/// of the component. `near` has the stored fingerprints near each document.
fn plain_components(documents: &[u64], near: &[Vec<StoredNeighbor>]) -> RepresentativeList {
    let mut first: Vec<usize> = (0..documents.len()).collect();
    for a in 0..documents.len() {
        for b in 0..documents.len() {
            let shares = near[a]
                .iter()
                .any(|&(_, store, id)| near[b].iter().any(|&(_, other, at)| (other, at) == (store, id)));
            let (x, y) = (first[a], first[b]);
            if x != y && (shares || (documents[a] ^ documents[b]).count_ones() <= DISTANCE) {
                first.iter_mut().filter(|first| **first == x.max(y)).for_each(|first| *first = x.min(y));
            }
        }
    }
    let first = &first;
    let of_document = |document: usize| {
        let members = || (0..documents.len()).filter(move |&other| first[other] == first[document]);
        let stored = members().flat_map(|member| near[member].first()).min();
        match stored {
            Some(&(_, store, id)) => Some(Err((store, id))),
            None => (members().count() > 1).then_some(Ok(first[document])),
        }
    };
    (0..documents.len()).map(of_document).collect()
}

#[test]
fn matches_in_several_stores_equal_those_of_the_plain_loop() {
    let folder = TempFolder::new();
    for seed in 0..4 {
        let mut random = Random(seed);
        let documents = some(&mut random, 150);
        // Each store has about ten fingerprints near documents, often the same ones.
        let stores: Vec<Vec<u64>> = STORES.map(|_| some(&mut random, 12)).to_vec();
        let out = folder.0.path().join(seed.to_string());
        let paths: Vec<PathBuf> =
            stores.iter().zip(STORES).map(|(store, name)| make(&out.join(name), "", store)).collect();
        let near = near_stored(&documents, &stores);
        assert!(near.iter().filter(|near| near.iter().any(|&(_, store, _)| store != near[0].1)).count() > 5);
        let options = |cluster_by| DedupConfig {
            against: paths.clone(),
            cluster_by: Some(cluster_by),
            pairs: true,
            ..DedupConfig::default()
        };
        let stars = find(&documents, &options(ClusterBy::Stars)).unwrap();
        assert_eq!(representatives(&stars, documents.len(), &paths), plain_stars(&documents, &near));
        let components = find(&documents, &options(ClusterBy::Components)).unwrap();
        assert_eq!(
            representatives(&components, documents.len(), &paths),
            plain_components(&documents, &near)
        );
        let mut pairs = vec![Vec::new(); documents.len()];
        let visited = stars.visit_pairs(&(), &mut |pair| {
            if let (None, IdRef::Number(id)) = (pair.other, pair.other_id) {
                let store = paths.iter().position(|path| Some(&**path) == pair.store).unwrap();
                pairs[pair.document].push((pair.distance.unwrap(), store, id));
            }
            Ok(())
        });
        visited.unwrap();
        assert_eq!(pairs, near);
    }
}

#[test]
fn kept_documents_are_added_to_the_first_store() {
    let folder = TempFolder::new();
    let [new, old] = ["new", "old"].map(|name| folder.0.path().join(name));
    make::<u64>(&old, "", &[0, u64::MAX]);
    let options = DedupConfig {
        against: vec![new.clone(), old.clone()],
        add: Some(AddConfig::default()),
        ..DedupConfig::default()
    };
    let documents = [1, 0xff00, 0xff01, 0xff_0000];
    find(&documents, &options).unwrap();
    let held = |path: &Path| {
        let store = Store::<u64>::open(path, StoreOptions::default()).unwrap();
        let snapshot = store.snapshot();
        snapshot.iter().map(|entry| entry.unwrap().fingerprint).collect::<Vec<u64>>()
    };
    assert_eq!((held(&new), held(&old)), (vec![0xff00, 0xff_0000], vec![0, u64::MAX]));
    // With the stores swapped, new documents are added to the other store.
    let options = DedupConfig { against: vec![old.clone(), new.clone()], ..options };
    find(&[0xff00, 7 << 40 | 7], &options).unwrap();
    assert_eq!((held(&new).len(), held(&old).len()), (2, 3));
}

#[test]
fn stores_that_do_not_go_together_are_refused() {
    let folder = TempFolder::new();
    let path = |name: &str| folder.0.path().join(name);
    make::<u64>(&path("plain"), "", &[1]);
    make::<u64>(&path("words"), "words-3", &[1]);
    make::<u64>(&path("chars"), "chars-4", &[1]);
    make::<u128>(&path("wide"), "", &[1]);
    fs::create_dir(path("folder")).unwrap();
    let refused = |names: &[&str], add: bool| {
        let against = names.iter().map(|name| path(name)).collect();
        find(&[1], &DedupConfig { against, add: add.then(AddConfig::default), ..DedupConfig::default() })
            .unwrap_err()
            .to_string()
    };
    for (names, add, message) in [
        (&["plain", "wide"][..], false, "wide: has 128-bit fingerprints, "),
        (&["plain", "words", "chars"], false, "chars: has profile chars-4, "),
        (&["plain", "none"], true, "none: no such store"),
        (&["none", "plain"], false, "none: no such store"),
        (&["plain", "words", "folder/../plain"], false, "folder/../plain: given as two stores"),
        (&["none", "plain", "folder/../none"], true, "no such store"),
    ] {
        let said = refused(names, add);
        assert!(said.contains(message), "{said}");
    }
    // A store without a profile is compatible with any other. The default distance is the smallest of the
    // stores' distances.
    let against = ["plain", "words"].map(path).to_vec();
    let found = find(&[1], &DedupConfig { against, ..DedupConfig::default() }).unwrap();
    assert_eq!(found.summary().criterion, simstore_dedup::Criterion::Distance(DISTANCE));
    assert_eq!(found.summary().stored, Some(1));
}
