//! Deduplication by similarity of more documents than the memory holds: the same, from disk.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use simstore::{Durability, Result, Store, StoreOptions};
use simstore_corpus::Inputs;
use simstore_dedup::{ClusterBy, Compare, DedupConfig, Keep, Outputs, Similar, Summary};
use simstore_io::DocumentOptions;
use simstore_text::{Profile, SimilarDocuments, SimilarSettings};

use crate::beyond_memory::{LITTLE, Told, all_files};
use crate::support::{given, numbers};
use crate::{Folder, Random};

/// Documents that no other is similar to.
const ALONE: usize = 5000;

/// Words of a topic, some of them replaced.
fn words(random: &mut Random, topic: u64, count: u64, others: u64) -> String {
    let word = |at| match random.below(100) < others {
        true => format!("x{}", random.below(100_000)),
        false => format!("t{topic}w{at}"),
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Texts that are alone, and among them crowds, chains, equal ones, small ones and some without words.
fn texts(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<String> = (0..ALONE).map(|at| words(&mut random, at as u64, 60, 90)).collect();
    let mut some = Vec::new();
    // A crowd of more than are paired each with each, and another of one sketch, for they differ little.
    some.extend((0..120).map(|_| words(&mut random, 100_000, 150, 2)));
    some.extend(
        (0..100).map(|_| words(&mut random, 100_001, 1500, 0) + &format!(" end{}", random.below(90))),
    );
    // Chains: a window that moves on.
    let all: Vec<String> = (0..400).map(|at| format!("chain{at}")).collect();
    some.extend((0..40).map(|at| all[at * 6..at * 6 + 120].join(" ")));
    // Small texts: few words, often the same, and sizes around the least one that sketches are joined from.
    some.extend((0..120).map(|_| {
        let (topic, count) = (200_000 + random.below(25), 3 + random.below(12));
        words(&mut random, topic, count, 3)
    }));
    some.extend((0..80).map(|_| {
        let (topic, count) = (300_000 + random.below(8), 28 + random.below(14));
        words(&mut random, topic, count, 1)
    }));
    let equal: Vec<String> = (0..100).map(|_| texts[random.index(ALONE)].clone()).collect();
    some.extend(equal);
    some.extend((0..20).map(|_| String::from("!")));
    for text in some {
        let at = random.index(texts.len());
        texts.insert(at, text);
    }
    texts
}

fn lines(texts: &[String]) -> String {
    let mut random = Random(1);
    let line = |(at, text): (usize, &String)| {
        json!({"id": format!("d{}", at % 5400), "text": text, "date": random.below(9)}).to_string() + "\n"
    };
    texts.iter().enumerate().map(line).collect()
}

type Outcome = (Summary, BTreeMap<PathBuf, Vec<u8>>);

fn run(input: &Path, out: &Path, with_pairs: bool, options: &DedupConfig, watch: &Told) -> Result<Outcome> {
    fs::create_dir_all(out).unwrap();
    let files = Outputs {
        output: Some(out.join("kept")),
        annotated: Some(out.join("annotated")),
        clusters: Some(out.join("clusters.csv")),
        pairs: with_pairs.then(|| out.join("pairs.csv")),
        keep_list: Some(out.join("keep")),
        remove_list: Some(out.join("remove.jsonl")),
        reasons: true,
        ..Outputs::default()
    };
    let inputs = Inputs::new(&[input.to_path_buf()], DocumentOptions::default()).unwrap();
    let mut totals = numbers(&simstore_dedup::run(options, &inputs, files, watch)?);
    // Components take other comparisons when not all is in memory.
    let are_counted = with_pairs || options.keep != Keep::None;
    if !are_counted {
        (totals.compared, totals.unlike) = (None, None);
    }
    Ok((totals, all_files(out)))
}

/// Runs with all the memory, and with little, and finds no difference.
fn check(texts: &[String], with_pairs: bool, options: &DedupConfig) -> Summary {
    let folder = Folder::new();
    let input = folder.file("a.jsonl", lines(texts));
    let temporary = folder.0.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let outcome = |memory: Option<u64>, told: &Told| {
        let out = folder.0.path().join(format!("out-{memory:?}"));
        let options = DedupConfig { memory, temporary: Some(temporary.clone()), ..options.clone() };
        run(&input, &out, with_pairs, &options, told).unwrap()
    };
    let (with_all, with_little) = (Told::default(), Told::default());
    let expected = outcome(None, &with_all);
    let little = outcome(Some(LITTLE), &with_little);
    assert!(!with_all.has_spilled() && with_little.has_spilled());
    assert!(expected.0.clusters > 50 && expected.0.duplicates > 200, "{:?}", expected.0);
    assert_eq!(little.0, expected.0, "{options:?}");
    assert!(little == expected, "{options:?}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    expected.0
}

#[test]
fn stars_are_the_same() {
    let texts = texts(1);
    check(&texts, false, &DedupConfig::default());
    check(
        &texts,
        false,
        &DedupConfig { keep: Keep::Longest, compare: Compare::similar(0.6), ..DedupConfig::default() },
    );
}

#[test]
fn whatever_is_kept_it_is_the_same() {
    let texts = texts(2);
    for keep in [Keep::SmallestId, Keep::Newest("date".to_owned()), Keep::None] {
        check(&texts, false, &DedupConfig { keep, compare: Compare::similar(0.9), ..DedupConfig::default() });
    }
}

#[test]
fn pairs_and_components_are_the_same() {
    let texts = texts(3);
    check(&texts, true, &DedupConfig::default());
    let components = DedupConfig { cluster_by: Some(ClusterBy::Components), ..DedupConfig::default() };
    check(
        &texts,
        true,
        &DedupConfig {
            keep: Keep::Longest,
            compare: Compare::Similar(Similar { recall: Some(0.99), ..Similar::default() }),
            ..components
        },
    );
}

#[test]
fn what_is_similar_to_something_stored_is_the_same() {
    let folder = Folder::new();
    let texts = texts(5);
    let mut random = Random(6);
    // Some of the same, and some that are like them.
    let against: Vec<PathBuf> = ["a", "b"].map(|name| folder.0.path().join(name)).to_vec();
    for store in &against {
        let options = StoreOptions { durability: Durability::Os, ..StoreOptions::default() };
        let store = SimilarDocuments::open(
            store,
            options,
            Profile::shingles(),
            SimilarSettings::new(0.8, 0.95).unwrap(),
        )
        .unwrap();
        for id in 0..120 {
            let mut text = texts[random.index(texts.len())].clone();
            (0..random.below(3)).for_each(|_| text += " more");
            store.add(&text, id, None).unwrap();
        }
    }
    let totals = check(&texts, false, &DedupConfig { against, ..DedupConfig::default() });
    assert!(totals.stored.unwrap() > 100 && totals.estimated.unwrap() > 0, "{totals:?}");
    // A store may look up any number of sketches.
    for sketches in [8, 5, 1] {
        let path = folder.0.path().join(format!("of-{sketches}"));
        let options = StoreOptions {
            distance: Some(12),
            profile: Some(Profile::shingles().to_string()),
            durability: Durability::Os,
            ..StoreOptions::default()
        };
        let store = Store::<u64>::open(&path, options.clone()).unwrap();
        let mark = format!("similar 0.8 recall 0.95 bands {sketches}");
        let mut transaction = store.transaction();
        transaction.mark("similar", mark.as_bytes()).unwrap();
        transaction.commit(Durability::Os).unwrap();
        drop(store);
        let store = SimilarDocuments::open(
            &path,
            options,
            Profile::shingles(),
            SimilarSettings::new(0.8, 0.95).unwrap(),
        )
        .unwrap();
        for id in 0..120 {
            let at = random.index(texts.len());
            let text = texts[at].clone() + " more";
            store.add(&text, id, None).unwrap();
        }
        drop(store);
        let totals = check(&texts, false, &DedupConfig { against: vec![path], ..DedupConfig::default() });
        assert!(totals.stored.unwrap() > 50, "{sketches}: {totals:?}");
    }
}

#[test]
fn texts_may_be_handed_over() {
    let folder = Folder::new();
    let texts = texts(4);
    let run = |memory| {
        let told = Told::default();
        let options =
            DedupConfig { memory, temporary: Some(folder.0.path().to_path_buf()), ..DedupConfig::default() };
        let found =
            simstore_dedup::run(&options, &given::numbered(&texts), Outputs::default(), &told).unwrap();
        assert_eq!(told.has_spilled(), memory.is_some());
        let clusters = found.clusters().map(|cluster| format!("{:?}", cluster.unwrap()));
        (clusters.collect::<Vec<_>>(), numbers(&found))
    };
    assert!(run(Some(LITTLE)) == run(None));
}

/// Each is similar to another.
#[test]
fn however_many_are_similar_to_others_it_is_done() {
    let mut random = Random(8);
    let texts: Vec<String> = (0..6000).map(|at| words(&mut random, at / 2, 40, 1)).collect();
    let run = |memory| {
        let options = DedupConfig { memory, ..DedupConfig::default() };
        let found = simstore_dedup::run(&options, &given::numbered(&texts), Outputs::default(), &()).unwrap();
        let clusters = found.clusters().map(|cluster| format!("{:?}", cluster.unwrap()));
        (clusters.collect::<Vec<_>>(), numbers(&found))
    };
    let expected = run(None);
    assert!(expected.0.len() > 2000 && run(Some(LITTLE)) == expected);
}
