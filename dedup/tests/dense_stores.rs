//! Deduplicates against stores of similar documents, for input documents with many candidates among the stored
//! documents. Compares the results with a plain loop over all pairs of an input document and a stored document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::json;
use simstore::{Durability, StoreOptions};
use simstore_corpus::Inputs;
use simstore_dedup::{DedupConfig, Outputs, RemovedDocument, Report, SimilarStores};
use simstore_io::{DocumentId, DocumentOptions};
use simstore_text::{
    EstimateLimit, Profile, Signature, SimilarDocument, SimilarDocuments, SimilarSettings, jaccard,
};

use crate::beyond_memory::SMALL_MEMORY_BYTES;
use crate::{Random, TempFolder};

const MIN_SIMILARITY: f64 = 0.8;

fn settings(has_texts: bool) -> SimilarSettings {
    let settings = SimilarSettings::new(MIN_SIMILARITY, 0.95).unwrap();
    if has_texts { settings.with_texts() } else { settings }
}

/// Creates a store of similar documents with these texts. The id of a text is its index. If `has_texts` is set,
/// the store keeps the texts.
fn store(path: &Path, texts: &[String], has_texts: bool) {
    let options = StoreOptions { durability: Durability::Os, ..StoreOptions::default() };
    let store = SimilarDocuments::open(path, options, Profile::shingles(), settings(has_texts)).unwrap();
    for (id, text) in (0..).zip(texts) {
        store.insert(&store.prepare(text).unwrap().unwrap(), id, None).unwrap();
    }
}

fn run(texts: &[String], folder: &TempFolder, options: &DedupConfig) -> Report {
    let lines: String = texts.iter().map(|text| format!("{}\n", json!({"text": text}))).collect();
    let inputs = Inputs::new(&[folder.file("new.jsonl", lines)], DocumentOptions::default()).unwrap();
    simstore_dedup::run(options, &inputs, Outputs::default(), &()).unwrap()
}

/// For each input document that is near a stored document, its most similar stored document: path of the store, id,
/// and similarity.
type NearestStored = BTreeMap<usize, (PathBuf, DocumentId, f64)>;

fn nearest(found: &Report, only: &Path) -> NearestStored {
    let mut nearest = NearestStored::new();
    let visit = &mut |removed: &RemovedDocument<'_>| {
        if removed.duplicate_of.is_none() {
            let store = removed.store.unwrap_or(only).to_path_buf();
            let found = (store, removed.duplicate_of_id.clone(), removed.similarity.unwrap());
            nearest.insert(removed.document, found);
        }
        Ok(())
    };
    found.visit_removed(visit).unwrap();
    nearest
}

/// Feature set and MinHash signature of a text.
type HashedText = (Vec<u64>, Signature);

fn hash_text(text: &str) -> HashedText {
    let features = Profile::shingles().feature_set(text);
    let sketched = Signature::new(&features).unwrap();
    (features, sketched)
}

/// Computes the expected result by a plain loop. Each of `stores` has a path, documents, and a flag: whether
/// the store keeps texts.
fn expected(texts: &[HashedText], stores: &[(PathBuf, Vec<HashedText>, bool)]) -> NearestStored {
    let mut nearest = NearestStored::new();
    for (document, (features, sketched)) in texts.iter().enumerate() {
        let (mut similar, mut near) = (Vec::new(), 0);
        for (store, (_, stored, has_texts)) in stores.iter().enumerate() {
            let settings = settings(*has_texts);
            for (id, (of_stored, other)) in stored.iter().enumerate() {
                let bits = |at: usize| (sketched.bands[at] ^ other.bands[at]).count_ones();
                if (0..settings.bands()).all(|at| bits(at) > settings.band_distance()) {
                    continue;
                }
                if *has_texts {
                    let similarity = jaccard(features, of_stored);
                    if sketched.distance(other) <= settings.signature_distance()
                        && similarity >= MIN_SIMILARITY
                    {
                        similar.push((similarity, store, id, None));
                    }
                } else {
                    near += u64::from(sketched.is_near(other, MIN_SIMILARITY));
                    similar.push((sketched.estimate(other).similarity, store, id, Some(other)));
                }
            }
        }
        let limit = EstimateLimit::new(MIN_SIMILARITY, near);
        similar.retain(|(.., other)| other.is_none_or(|other| limit.accepts(sketched, other)));
        similar.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        if let Some(&(similarity, store, id, _)) = similar.first() {
            let id = DocumentId::Number(id as u64);
            nearest.insert(document, (stores[store].0.clone(), id, similarity));
        }
    }
    nearest
}

#[test]
fn the_nearest_stored_document_is_that_of_the_plain_loop() {
    let folder = TempFolder::new();
    let mut random = Random(8);
    let page = |random: &mut Random| {
        let template = random.below(3);
        let mut words: Vec<String> = (0..40 + 20 * template).map(|at| format!("t{template}w{at}")).collect();
        for _ in 0..random.below(3 + template) {
            let at = random.index(words.len());
            words[at] = format!("other{}", random.below(40));
        }
        words.join(" ")
    };
    let mut some = |count: usize| (0..count).map(|_| page(&mut random)).collect::<Vec<_>>();
    let (texts, of_texts, of_bands) = (some(250), some(200), some(150));
    let paths = ["texts", "bands"].map(|name| folder.0.path().join(name));
    store(&paths[0], &of_texts, true);
    store(&paths[1], &of_bands, false);
    let made_of = |texts: &[String]| texts.iter().map(|text| hash_text(text)).collect::<Vec<_>>();
    let stores =
        [(paths[0].clone(), made_of(&of_texts), true), (paths[1].clone(), made_of(&of_bands), false)];
    let hash_text = made_of(&texts);
    for some in [&stores[..1], &stores[1..], &stores[..]] {
        let against: Vec<PathBuf> = some.iter().map(|(path, ..)| path.clone()).collect();
        let expected = expected(&hash_text, some);
        assert!(expected.len() > 20, "{}", expected.len());
        for memory in [None, Some(SMALL_MEMORY_BYTES)] {
            for pairs in [false, true] {
                let options =
                    DedupConfig { against: against.clone(), memory, pairs, ..DedupConfig::default() };
                let found = run(&texts, &folder, &options);
                assert_eq!(nearest(&found, &against[0]), expected, "{against:?} {memory:?}");
            }
        }
        let borrowed: Vec<Option<&str>> = texts.iter().map(|text| Some(&text[..])).collect();
        let found =
            SimilarStores::open(&against, Some(MIN_SIMILARITY)).unwrap().most_similar(&borrowed).unwrap();
        let named = |(store, found): (usize, SimilarDocument)| {
            (against[store].clone(), DocumentId::Number(found.id), found.estimate.similarity)
        };
        let found = found.into_iter().enumerate().filter_map(|(at, found)| Some((at, named(found?))));
        assert_eq!(found.collect::<NearestStored>(), expected, "{against:?}");
    }
}

/// Returns one page for each number. All pages have the same words, except that some are replaced by a name with the
/// number. Any two pages have a similarity of 0.788.
fn parked(numbers: std::ops::Range<usize>) -> Vec<String> {
    let page = |number: usize| {
        let word = |at| if at % 23 == 15 { format!("name{number}") } else { format!("word{at}") };
        (0..78).map(word).collect::<Vec<_>>().join(" ")
    };
    numbers.map(page).collect()
}

#[test]
fn pages_just_below_the_threshold_are_kept() {
    const PAGES: usize = 3000;
    const EQUAL: usize = 20;
    let folder = TempFolder::new();
    let stored = parked(0..PAGES);
    let mut texts = parked(PAGES..2 * PAGES);
    // If the greatest estimate decided, most pages would be similar to a stored page.
    let some: Vec<HashedText> = stored[..300].iter().map(|text| hash_text(text)).collect();
    let reaches = |text: &&String| {
        let (_, sketched) = hash_text(text);
        some.iter().any(|(_, stored)| stored.estimate(&sketched).similarity >= MIN_SIMILARITY)
    };
    assert!(texts.iter().take(20).filter(reaches).count() > 15);
    texts.extend_from_slice(&stored[..EQUAL]);
    for has_texts in [true, false] {
        let path = folder.0.path().join(format!("stored-{has_texts}"));
        store(&path, &stored, has_texts);
        let options = DedupConfig { against: vec![path], memory: Some(64 << 20), ..DedupConfig::default() };
        let found = run(&texts, &folder, &options);
        let totals = found.summary();
        let wrong = totals.duplicates - EQUAL;
        assert!(wrong <= if has_texts { 0 } else { 3 }, "{has_texts}: {wrong} wrong");
        assert_eq!((totals.spilled, totals.stored), (None, Some(totals.duplicates)));
        // A dry run counts candidates in the store, too.
        let inputs = Inputs::new(&[folder.0.path().join("new.jsonl")], DocumentOptions::default()).unwrap();
        let search = simstore_dedup::estimate(&options, &inputs, &()).unwrap().search.unwrap();
        let pairs = search.stored_candidates.unwrap();
        assert!(
            (0.5..1.1).contains(&(pairs / (PAGES * PAGES) as f64)) && search.dense_documents > 2000,
            "{search:?}"
        );
    }
}

/// If a store keeps no texts, the summary says that similarities are estimates.
#[test]
fn estimates_are_named_as_such() {
    let folder = TempFolder::new();
    let stored = parked(0..1);
    for has_texts in [true, false] {
        let path = folder.0.path().join(format!("stored-{has_texts}"));
        store(&path, &stored, has_texts);
        let options = DedupConfig { against: vec![path], ..DedupConfig::default() };
        let found = run(&[stored[0].clone() + " more"], &folder, &options);
        let totals = found.summary();
        assert_eq!((totals.stored, totals.largest[0].is_estimated), (Some(1), !has_texts));
        let said = totals.to_string();
        assert_eq!(
            said.contains("lowest estimated similarity to the representative 0.9"),
            !has_texts,
            "{said}"
        );
    }
}
