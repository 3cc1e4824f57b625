//! Random documents, and what their copies are said to be.

use std::collections::HashMap;

use simstore_corpus::synth::{RandomDocument, RandomDocuments};
use simstore_text::Profile;

fn made(documents: &RandomDocuments) -> Vec<RandomDocument> {
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
    let shingles: Profile = "words-3,strip-markup,simplified,weights=none".parse().unwrap();
    for (count, words, similarity, off) in
        [(2000, 60, (0.7, 1.0), 0.02), (2000, 8, (0.0, 1.0), 0.15), (200, 400, (0.2, 0.9), 0.005)]
    {
        let documents = RandomDocuments { copies: 0.4, words, similarity, ..RandomDocuments::new(count, 7) };
        let all = made(&documents);
        let sets: HashMap<u64, Vec<u64>> =
            all.iter().map(|document| (document.id, shingles.feature_set(&document.text))).collect();
        let mut said = Vec::new();
        for (document, id) in all.iter().zip(0..) {
            assert_eq!(document.id, id);
            let words = document.text.split(' ').count() as u32;
            let Some(copy) = document.copy else {
                assert!((documents.words / 2..=documents.words * 3 / 2).contains(&words), "{words}");
                continue;
            };
            assert!(copy.of < id && all[copy.of as usize].copy.is_none());
            assert_eq!(copy.similarity, jaccard(&sets[&id], &sets[&copy.of]), "{document:?}");
            said.push(copy.similarity);
        }
        assert!((said.len() as f64 / count as f64 - 0.4).abs() < 0.1, "{}", said.len());
        // Each similarity is as likely as the others.
        let (least, most) = similarity;
        let lower_half =
            said.iter().filter(|&&said| said < (least + most) / 2.0).count() as f64 / said.len() as f64;
        assert!((lower_half - 0.5).abs() < 0.15, "{lower_half}");
        let wrong: Vec<_> = said.iter().filter(|&said| !(least - off..=most + off).contains(said)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        // Others are not.
        for (a, b) in all.iter().zip(&all[1..]).filter(|(a, b)| a.copy.is_none() && b.copy.is_none()) {
            assert!(jaccard(&sets[&a.id], &sets[&b.id]) < 0.4);
        }
    }
}

#[test]
fn a_document_follows_from_the_seed_and_its_number() {
    let documents = RandomDocuments::new(20_000, 7);
    let all = made(&documents);
    assert_eq!(all, made(&documents));
    assert_eq!(all[..9000], made(&RandomDocuments { count: 9000, ..documents })[..]);
    let others = made(&RandomDocuments { seed: 8, ..documents });
    assert!(all.iter().zip(&others).all(|(a, b)| a.text != b.text));
    // The same on every machine.
    assert_eq!(all[0].text.get(..40), Some("Cito siki reto na miyato ru la rilo gudi"));
}
