//! Deduplication by similarity of more documents than fit in the memory limit. They are compared on disk, with
//! the same result as in memory.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use simstore::{Durability, Result, Store, StoreOptions};
use simstore_corpus::Inputs;
use simstore_dedup::{
    ClusterBy, ComparisonConfig, DedupConfig, KeepRule, Outputs, SimilarityConfig, Summary,
};
use simstore_io::DocumentOptions;
use simstore_text::{Profile, SimilarDocuments, SimilarSettings};

use crate::beyond_memory::{DiagnosticRecorder, SMALL_MEMORY_BYTES, all_files};
use crate::support::{inputs, numbers};
use crate::{Random, TempFolder};

/// Number of documents that are not similar to any other document.
const UNRELATED_DOCUMENTS: usize = 5000;

/// Returns a text of the `count` words of a topic. Each word is replaced by a random word with a probability of
/// `others` percent.
fn words(random: &mut Random, topic: u64, count: u64, others: u64) -> String {
    let word = |at| match random.below(100) < others {
        true => format!("x{}", random.below(100_000)),
        false => format!("t{topic}w{at}"),
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// Returns unrelated texts, mixed with dense groups, chains of similar texts, exact duplicates, small texts,
/// and texts without words.
fn texts(seed: u64) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<String> =
        (0..UNRELATED_DOCUMENTS).map(|at| words(&mut random, at as u64, 60, 90)).collect();
    let mut some = Vec::new();
    // A group that is too large for a list of its pairs, and a group of so similar texts that they share one band.
    some.extend((0..120).map(|_| words(&mut random, 100_000, 150, 2)));
    some.extend(
        (0..100).map(|_| words(&mut random, 100_001, 1500, 0) + &format!(" end{}", random.below(90))),
    );
    // Chains: a window that moves over a long text.
    let all: Vec<String> = (0..400).map(|at| format!("chain{at}")).collect();
    some.extend((0..40).map(|at| all[at * 6..at * 6 + 120].join(" ")));
    // Small texts of few words, often the same words, with sizes around the minimum size for a join of bands.
    some.extend((0..120).map(|_| {
        let (topic, count) = (200_000 + random.below(25), 3 + random.below(12));
        words(&mut random, topic, count, 3)
    }));
    some.extend((0..80).map(|_| {
        let (topic, count) = (300_000 + random.below(8), 28 + random.below(14));
        words(&mut random, topic, count, 1)
    }));
    let equal: Vec<String> = (0..100).map(|_| texts[random.index(UNRELATED_DOCUMENTS)].clone()).collect();
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

type SimilarRunResult = (Summary, BTreeMap<PathBuf, Vec<u8>>);

fn run(
    input: &Path,
    out: &Path,
    with_pairs: bool,
    options: &DedupConfig,
    observer: &DiagnosticRecorder,
) -> Result<SimilarRunResult> {
    fs::create_dir_all(out).unwrap();
    let files = Outputs {
        output: Some(out.join("kept")),
        annotated: Some(out.join("annotated")),
        clusters: Some(out.join("clusters.csv")),
        pairs: with_pairs.then(|| out.join("pairs.csv")),
        keep_list: Some(out.join("keep")),
        remove_list: Some(out.join("remove.jsonl")),
        report: Some(out.join("report.html")),
        reasons: true,
        ..Outputs::default()
    };
    let inputs = Inputs::new(&[input.to_path_buf()], DocumentOptions::default()).unwrap();
    let mut totals = numbers(&simstore_dedup::run(options, &inputs, files, observer)?);
    // Components verify other pairs if the rows are on disk.
    let are_counted = with_pairs || options.keep != KeepRule::None;
    if !are_counted {
        (totals.verified, totals.rejected) = (None, None);
    }
    Ok((totals, all_files(out)))
}

/// Checks that a run with little memory gives the same result as a run with much memory. Returns their summary, which is
/// the same.
fn check(texts: &[String], with_pairs: bool, options: &DedupConfig) -> Summary {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", lines(texts));
    let temporary = folder.0.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let outcome = |memory: Option<u64>, told: &DiagnosticRecorder| {
        let out = folder.0.path().join(format!("out-{memory:?}"));
        let options = DedupConfig { memory, temporary_folder: Some(temporary.clone()), ..options.clone() };
        run(&input, &out, with_pairs, &options, told).unwrap()
    };
    let (with_all, with_little) = (DiagnosticRecorder::default(), DiagnosticRecorder::default());
    let expected = outcome(None, &with_all);
    let little = outcome(Some(SMALL_MEMORY_BYTES), &with_little);
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
        &DedupConfig {
            keep: KeepRule::Longest,
            comparison: ComparisonConfig::by_similarity(0.6),
            ..DedupConfig::default()
        },
    );
}

#[test]
fn whatever_is_kept_it_is_the_same() {
    let texts = texts(2);
    for keep in [KeepRule::SmallestId, KeepRule::Newest("date".to_owned()), KeepRule::None] {
        check(
            &texts,
            false,
            &DedupConfig { keep, comparison: ComparisonConfig::by_similarity(0.9), ..DedupConfig::default() },
        );
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
            keep: KeepRule::Longest,
            comparison: ComparisonConfig::Similarity(SimilarityConfig {
                recall: Some(0.99),
                ..SimilarityConfig::default()
            }),
            ..components
        },
    );
}

#[test]
fn documents_similar_to_stored_ones_are_the_same() {
    let folder = TempFolder::new();
    let texts = texts(5);
    let mut random = Random(6);
    // Some equal texts, and some similar ones.
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
    // A store can join any number of bands.
    for bands in [8, 5, 1] {
        let path = folder.0.path().join(format!("of-{bands}"));
        let options = StoreOptions {
            distance: Some(12),
            profile: Some(Profile::shingles().to_string()),
            durability: Durability::Os,
            ..StoreOptions::default()
        };
        let store = Store::<u64>::open(&path, options.clone()).unwrap();
        let settings = format!("similar 0.8 recall 0.95 bands {bands}");
        let mut transaction = store.transaction();
        transaction.set_metadata("similar", settings.as_bytes()).unwrap();
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
        assert!(totals.stored.unwrap() > 50, "{bands}: {totals:?}");
    }
}

#[test]
fn texts_may_be_handed_over() {
    let folder = TempFolder::new();
    let texts = texts(4);
    let run = |memory| {
        let told = DiagnosticRecorder::default();
        let options = DedupConfig {
            memory,
            temporary_folder: Some(folder.0.path().to_path_buf()),
            ..DedupConfig::default()
        };
        let found =
            simstore_dedup::run(&options, &inputs::numbered(&texts), Outputs::default(), &told).unwrap();
        assert_eq!(told.has_spilled(), memory.is_some());
        let clusters = found.clusters().map(|cluster| format!("{:?}", cluster.unwrap()));
        (clusters.collect::<Vec<_>>(), numbers(&found))
    };
    assert!(run(Some(SMALL_MEMORY_BYTES)) == run(None));
}

/// If every document is similar to another one, a run with little memory gives the same result as a run with much
/// memory.
#[test]
fn however_many_are_similar_to_others_it_is_done() {
    let mut random = Random(8);
    let texts: Vec<String> = (0..6000).map(|at| words(&mut random, at / 2, 40, 1)).collect();
    let run = |memory| {
        let options = DedupConfig { memory, ..DedupConfig::default() };
        let found =
            simstore_dedup::run(&options, &inputs::numbered(&texts), Outputs::default(), &()).unwrap();
        let clusters = found.clusters().map(|cluster| format!("{:?}", cluster.unwrap()));
        (clusters.collect::<Vec<_>>(), numbers(&found))
    };
    let expected = run(None);
    assert!(expected.0.len() > 2000 && run(Some(SMALL_MEMORY_BYTES)) == expected);
}
