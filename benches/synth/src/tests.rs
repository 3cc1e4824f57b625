//! Tests that the store has the requested fingerprints, and that copies of documents have the stated similarity.

use std::collections::HashMap;
use std::fs;

use clap::CommandFactory;
use simstore::Snapshot;
use simstore_text::Profile;

use super::*;
use crate::documents::RandomDocument;

impl RandomDocuments {
    /// Returns documents with the default settings of the command `documents`, except count and seed.
    fn new(count: u64, seed: u64) -> Self {
        RandomDocuments { count, seed, words: 60, copies: 0.1, similarity: (0.7, 1.0) }
    }
}

fn generate_all(documents: &RandomDocuments) -> Vec<RandomDocument> {
    let mut all = Vec::new();
    documents
        .visit(&mut |document| {
            all.push(document.clone());
            Ok(())
        })
        .unwrap();
    all
}

fn jaccard(a: &[u64], b: &[u64]) -> f64 {
    let shared = a.iter().filter(|element| b.binary_search(element).is_ok()).count();
    shared as f64 / (a.len() + b.len() - shared) as f64
}

#[test]
fn copies_are_as_similar_as_they_say_and_as_was_wanted() {
    let shingles: Profile = "words-3,plain-text,simplified,weights=none".parse().unwrap();
    for (count, words, similarity, off) in
        [(2000, 60, (0.7, 1.0), 0.02), (2000, 8, (0.0, 1.0), 0.15), (200, 400, (0.2, 0.9), 0.005)]
    {
        let documents = RandomDocuments { copies: 0.4, words, similarity, ..RandomDocuments::new(count, 7) };
        let all = generate_all(&documents);
        let sets: HashMap<u64, Vec<u64>> =
            all.iter().map(|document| (document.id, shingles.feature_set(&document.text))).collect();
        let mut similarities = Vec::new();
        for (document, id) in all.iter().zip(0..) {
            assert_eq!(document.id, id);
            let words = document.text.split(' ').count() as u32;
            let Some(copy) = document.copy else {
                assert!((documents.words / 2..=documents.words * 3 / 2).contains(&words), "{words}");
                continue;
            };
            assert!(copy.original < id && all[copy.original as usize].copy.is_none());
            assert_eq!(copy.similarity, jaccard(&sets[&id], &sets[&copy.original]), "{document:?}");
            similarities.push(copy.similarity);
        }
        assert!((similarities.len() as f64 / count as f64 - 0.4).abs() < 0.1, "{}", similarities.len());
        // Each similarity is as likely as the others.
        let (least, most) = similarity;
        let lower_half = similarities.iter().filter(|&&similarity| similarity < (least + most) / 2.0).count()
            as f64
            / similarities.len() as f64;
        assert!((lower_half - 0.5).abs() < 0.15, "{lower_half}");
        let wrong: Vec<_> = similarities
            .iter()
            .filter(|&similarity| !(least - off..=most + off).contains(similarity))
            .collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        // Documents that are no copies are not similar.
        for (a, b) in all.iter().zip(&all[1..]).filter(|(a, b)| a.copy.is_none() && b.copy.is_none()) {
            assert!(jaccard(&sets[&a.id], &sets[&b.id]) < 0.4);
        }
    }
}

#[test]
fn a_document_follows_from_the_seed_and_its_number() {
    let documents = RandomDocuments::new(20_000, 7);
    let all = generate_all(&documents);
    assert_eq!(all, generate_all(&documents));
    assert_eq!(all[..9000], generate_all(&RandomDocuments { count: 9000, ..documents })[..]);
    let others = generate_all(&RandomDocuments { seed: 8, ..documents });
    assert!(all.iter().zip(&others).all(|(a, b)| a.text != b.text));
    // The text is the same on every machine.
    assert_eq!(all[0].text.get(..40), Some("Cito siki reto na miyato ru la rilo gudi"));
}

#[test]
fn arguments_are_checked() {
    Synth::command().debug_assert();
    assert_eq!((parse_count("100k"), parse_range("0.8")), (Ok(100_000), Ok((0.8, 0.8))));
    assert!(parse_count("0").is_err() && parse_range("alike").is_err());
    let documents = RandomDocuments::new(5, 1);
    for (wrong, option) in [
        (RandomDocuments { words: 7, ..documents }, "--words"),
        (RandomDocuments { copies: 1.0, ..documents }, "--copies"),
        (RandomDocuments { similarity: (0.9, 0.8), ..documents }, "--similarity"),
    ] {
        let error = wrong.visit(&mut |_| Ok(())).unwrap_err().to_string();
        assert!(error.contains(&format!("give {option} from ")), "{error}");
    }
}

#[test]
fn a_store_like_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let written = |name: &str, seed: &str, codec: Codec| {
        let (store, queries) = (folder.path().join(name), folder.path().join("queries.u64"));
        let paths = [&store, &queries].map(|path| path.to_str().unwrap());
        let args = ["synth", "fingerprints", paths[0], "--count", "100k", "--queries", "1k"];
        let more = ["--queries-file", paths[1], "--seed", seed, "--codec", codec.name()];
        let command = Synth::parse_from(args.iter().chain(&more)).command;
        let SynthCommand::Fingerprints(args) = command else { panic!() };
        write_store(&args).unwrap();
        let store = Snapshot::<u64>::open(&store).unwrap();
        assert_eq!((store.len(), store.verify(|error| panic!("{error}"))), (100_000, 0));
        assert_eq!(store.segments()[0].plan().name(), "probe-1");
        let queries = fs::read(queries).unwrap();
        let queries = queries.chunks(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
        let found = queries.filter(|&query| !store.query(query, 3).unwrap().is_empty()).count();
        assert_eq!(found, 500);
        store.iter().map(|entry| entry.unwrap().fingerprint).collect::<Vec<_>>()
    };
    let first = written("first-difference", "1", Codec::FirstDifference);
    assert!(first == written("elias-fano", "1", Codec::EliasFano));
    assert!(first != written("another seed", "2", Codec::Gap));
}

#[test]
fn documents_are_lines_of_json() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    let documents = RandomDocuments { copies: 0.5, similarity: (0.8, 1.0), ..RandomDocuments::new(2000, 1) };
    write_documents(&path, &documents).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2000);
    let copies: Vec<f64> = lines.iter().filter_map(|line| line.get("similarity")?.as_f64()).collect();
    assert!((900..1100).contains(&copies.len()), "{}", copies.len());
    assert!(copies.iter().all(|similarity| (0.78..=1.0).contains(similarity)));
}
