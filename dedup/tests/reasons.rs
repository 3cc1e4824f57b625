//! Tests the reason of each removed document, which is the document that it duplicates. Compares the reasons with a
//! plain loop, also for `--keep none`, which keeps no document of a cluster.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use simstore_corpus::Inputs;
use simstore_dedup::{
    ClusterBy, ComparisonConfig, DedupConfig, DistanceConfig, KeepRule, Outputs, RemovedDocument, Report,
};
use simstore_io::{Document, DocumentId};
use simstore_text::{Profile, jaccard};

use crate::support::inputs::{self, verified};
use crate::{Random, TempFolder};

const DISTANCE: u32 = 3;

/// The rows of `--remove-list --reasons`: a map from each removed document to the document that it duplicates, with the
/// distance or similarity of the two.
type Reasons = BTreeMap<usize, (usize, f64)>;

/// Runs a deduplication, and returns the kept documents and the reasons in the list of removed documents. `how`
/// is the column of the list that is read: `distance` or `similarity`.
fn reasons(inputs: &Inputs, options: &DedupConfig, how: &str) -> (Vec<usize>, Reasons) {
    let folder = TempFolder::new();
    let list = folder.0.path().join("removed.jsonl");
    let files = Outputs { remove_list: Some(list.clone()), reasons: true, ..Outputs::default() };
    let found = simstore_dedup::run(options, inputs, files, &()).unwrap();
    let kept = found.kept().map(|kept| kept.unwrap().document).collect();
    for cluster in found.clusters() {
        let cluster = cluster.unwrap();
        let stands = cluster.document.unwrap();
        let is_kept = options.keep != KeepRule::None;
        assert!(
            cluster.members.iter().all(|member| member.is_kept == (is_kept && member.document == stands))
        );
    }
    let mut visited = Reasons::new();
    let visit = &mut |removed: &RemovedDocument<'_>| {
        // The value as it is printed in the list.
        let near = match how {
            "distance" => removed.distance.unwrap().into(),
            _ => removed.similarity.unwrap().to_string().parse().unwrap(),
        };
        visited.insert(removed.document, (removed.duplicate_of.unwrap(), near));
        Ok(())
    };
    found.visit_removed(visit).unwrap();
    let rows = fs::read_to_string(list).unwrap();
    let mut last = None;
    let row = |row: &str| {
        let row: Value = serde_json::from_str(row).unwrap();
        let id = |name: &str| row[name].as_u64().unwrap() as usize;
        // The list is in input order.
        assert!(last.replace(id("id")) < Some(id("id")));
        (id("id"), (id("duplicate_of"), row[how].as_f64().unwrap()))
    };
    let listed: Reasons = rows.lines().map(row).collect();
    assert_eq!(visited, listed);
    (kept, listed)
}

/// Returns for each document the first document of its connected component.
fn firsts(count: usize, pairs: &[(usize, usize, f64)]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..count).collect();
    for &(a, b, _) in pairs {
        let (x, y) = (first[a].min(first[b]), first[a].max(first[b]));
        first.iter_mut().filter(|first| **first == y).for_each(|first| *first = x);
    }
    first
}

/// Computes the expected reasons. The reason of a removed document is the nearest kept document, or if `kept` is empty,
/// the nearest other document. Ties go to the first document. `pairs` has the near pairs: two documents, and a number
/// that is smaller for nearer pairs.
fn nearest(count: usize, pairs: &[(usize, usize, f64)], kept: &[usize]) -> Reasons {
    let reason = |document: usize| {
        let others = pairs.iter().filter_map(|&(a, b, how)| match (a == document, b == document) {
            (true, _) => Some((b, how)),
            (_, true) => Some((a, how)),
            _ => None,
        });
        let mut others: Vec<(usize, f64)> = others.collect();
        let is_removed = !kept.is_empty() && !kept.contains(&document);
        others.retain(|(other, _)| kept.is_empty() || is_removed && kept.contains(other));
        let nearest = others.into_iter().min_by(|a, b| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0)));
        Some((document, nearest?))
    };
    (0..count).filter_map(reason).collect()
}

fn pairs_of(count: usize, near: impl Fn(usize, usize) -> Option<f64>) -> Vec<(usize, usize, f64)> {
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| Some((a, b, near(a, b)?))).collect()
}

#[test]
fn by_distance_the_nearest_is_reported() {
    let mut random = Random(3);
    let mut others = 0;
    for _ in 0..5 {
        let values: Vec<u64> = (0..200)
            .map(|_| {
                let mut value = Random::hash(random.below(100));
                (0..random.below(5)).for_each(|_| value ^= 1 << random.below(64));
                value
            })
            .collect();
        let distance = |a: usize, b: usize| f64::from((values[a] ^ values[b]).count_ones());
        let near = |a, b| Some(distance(a, b)).filter(|&bits| bits <= f64::from(DISTANCE));
        let pairs = pairs_of(values.len(), near);
        let given = || inputs::values((0..).map(DocumentId::Number).zip(values.iter().copied()));
        let options = DedupConfig { keep: KeepRule::None, ..DedupConfig::default() };
        let (kept, told) = reasons(&given(), &options, "distance");
        let expected = nearest(values.len(), &pairs, &[]);
        assert_eq!(told, expected);
        assert!(told.len() > 50 && kept.len() > 20);
        assert!(kept.iter().all(|document| !told.contains_key(document)));
        assert_eq!(kept.len() + told.len(), values.len());
        // The result is the same if all pairs are listed.
        let with_pairs = DedupConfig { pairs: true, ..options };
        assert_eq!(reasons(&given(), &with_pairs, "distance"), (kept, expected));
        // If one document is kept, it is the reason of all others.
        let (kept, told) = reasons(&given(), &DedupConfig::default(), "distance");
        let first = firsts(values.len(), &pairs);
        let removed = (0..values.len()).filter(|&document| first[document] != document);
        let expected: Reasons = removed
            .map(|document| (document, (first[document], distance(document, first[document]))))
            .collect();
        assert_eq!(told, expected);
        assert!(kept.into_iter().all(|document| first[document] == document));
        // In stars, every reason is near the removed document.
        let stars = DedupConfig { cluster_by: Some(ClusterBy::Stars), ..DedupConfig::default() };
        let (kept, told) = reasons(&given(), &stars, "distance");
        assert_eq!(told, nearest(values.len(), &pairs, &kept));
        assert!(told.len() > 30, "{}", told.len());
        // The reason is not always the representative.
        let clusters =
            cluster_from_rows(&simstore_dedup::run(&stars, &given(), Outputs::default(), &()).unwrap());
        others += told.iter().filter(|(document, (of, _))| clusters[document] != *of).count();
    }
    assert!(others > 5, "{others}");
}

#[test]
fn by_similarity_all_that_has_a_similar_one_goes() {
    let mut random = Random(5);
    // Texts are so small that the search misses no pair.
    let mut texts: Vec<String> = (0..120)
        .map(|_| {
            let topic = random.below(40);
            let word = |i: u64| match random.below(40) {
                0 => format!("other{}", random.below(1000)),
                _ => format!("word{topic}x{i}"),
            };
            (0..24).map(word).collect::<Vec<_>>().join(" ")
        })
        .collect();
    // Groups of three texts: the first one represents the second one, which is more similar to the third one.
    // The first and the third one are not similar.
    for topic in 0..4 {
        let ends = [("a", "a"), ("a", "b"), ("b", "b")];
        texts.extend(ends.map(|(start, end)| {
            let word = |i: usize| match i {
                0 | 1 => format!("{start}{topic}x{i}"),
                21.. => format!("{end}{topic}x{i}"),
                _ => format!("same{topic}x{i}"),
            };
            (0..24).map(word).collect::<Vec<_>>().join(" ")
        }));
    }
    let shingles = Profile::shingles();
    let sets: Vec<Vec<u64>> = texts.iter().map(|text| shingles.feature_set(text)).collect();
    let similarity = |a: usize, b: usize| jaccard(&sets[a], &sets[b]);
    let near = |a, b| Some(similarity(a, b)).filter(|_| jaccard(&sets[a], &sets[b]) >= 0.7);
    let pairs = pairs_of(texts.len(), near);
    let given = || inputs::numbered(&texts);
    let similar = DedupConfig { comparison: ComparisonConfig::by_similarity(0.7), ..DedupConfig::default() };
    let options = DedupConfig { keep: KeepRule::None, ..similar.clone() };
    let (kept, told) = reasons(&given(), &options, "similarity");
    let minus = |told: Reasons| -> Reasons {
        told.into_iter().map(|(document, (of, how))| (document, (of, -how))).collect()
    };
    let pairs: Vec<(usize, usize, f64)> =
        pairs.iter().map(|&(a, b, similarity)| (a, b, -similarity)).collect();
    let expected = nearest(texts.len(), &pairs, &[]);
    assert_eq!(minus(told), expected);
    assert!(expected.len() > 30 && kept.len() + expected.len() == texts.len(), "{}", expected.len());
    // If one document is kept, the reason is the most similar kept document, also if all pairs are listed.
    let (kept, told) = reasons(&given(), &similar, "similarity");
    assert_eq!(minus(told.clone()), nearest(texts.len(), &pairs, &kept));
    assert_eq!(kept.len() + told.len(), texts.len());
    let with_pairs = DedupConfig { pairs: true, ..similar.clone() };
    assert_eq!(reasons(&given(), &with_pairs, "similarity"), (kept, told.clone()));
    // By distance with verification, the reason is the most similar text.
    let profile = Profile::default();
    let fingerprints: Vec<u64> =
        texts.iter().map(|text| profile.fingerprint::<u64>(text).unwrap().fingerprint).collect();
    let are_near = |a: usize, b: usize| (fingerprints[a] ^ fingerprints[b]).count_ones() <= 16;
    let both: Vec<(usize, usize, f64)> = pairs.iter().copied().filter(|&(a, b, _)| are_near(a, b)).collect();
    for (keep, cluster_by) in [(KeepRule::First, ClusterBy::Stars), (KeepRule::None, ClusterBy::Components)] {
        let is_none = keep == KeepRule::None;
        let by_both = DedupConfig {
            comparison: verified(16, 0.7),
            keep,
            cluster_by: Some(cluster_by),
            ..DedupConfig::default()
        };
        let (kept, told) = reasons(&given(), &by_both, "similarity");
        let kept = if is_none { &[] } else { &kept[..] };
        assert_eq!(minus(told), nearest(texts.len(), &both, kept));
        assert!(both.len() > 30);
    }
    // The reason is not always the representative.
    let clusters =
        cluster_from_rows(&simstore_dedup::run(&similar, &given(), Outputs::default(), &()).unwrap());
    let others = told.iter().filter(|(document, (of, _))| clusters[document] != *of).count();
    assert!(others > 2, "{others}");
}

/// If a removed document is equally similar to two kept documents, its reason is the kept document that comes first
/// in the input, even if the other kept document has an earlier exact duplicate.
#[test]
fn of_equally_similar_kept_documents_the_first_in_the_input_is_reported() {
    const TOPICS: u64 = 40;
    let mut random = Random(16);
    let mut documents = Vec::new();
    for topic in 0..TOPICS {
        for (number, ends) in [("a", "a"), ("a", "b"), ("b", "b")].into_iter().enumerate() {
            let word = |at: usize| match at {
                0..3 => format!("{}{topic}x{at}", ends.0),
                21.. => format!("{}{topic}x{at}", ends.1),
                _ => format!("same{topic}x{at}"),
            };
            let text = (0..24).map(word).collect::<Vec<_>>().join(" ");
            for _ in 0..1 + random.below(3) {
                // Documents with the second text are older than all others.
                let date = if number == 1 { 0 } else { 1 + random.below(1000) };
                documents.push((random.next(), text.clone(), date));
            }
        }
    }
    documents.sort_unstable();
    let profile = Profile::shingles();
    let sets: Vec<Vec<u64>> = documents.iter().map(|(_, text, _)| profile.feature_set(text)).collect();
    let near = |a: usize, b: usize| Some(jaccard(&sets[a], &sets[b])).filter(|&similarity| similarity >= 0.7);
    let pairs = pairs_of(documents.len(), |a, b| Some(-near(a, b)?));
    let given = || {
        let document = |(at, (_, text, date)): (u64, &(u64, String, u64))| {
            let document = Document::new(DocumentId::Number(at), text.clone());
            Ok(Document { extra: Some(date.to_string()), ..document })
        };
        Inputs::from_documents((0..).zip(&documents).map(document).collect::<Vec<_>>())
    };
    for pairs_too in [false, true] {
        let options = DedupConfig {
            comparison: ComparisonConfig::by_similarity(0.7),
            keep: KeepRule::Newest("date".to_owned()),
            pairs: pairs_too,
            ..DedupConfig::default()
        };
        let (kept, told) = reasons(&given(), &options, "similarity");
        assert_eq!(kept.len(), 2 * TOPICS as usize);
        let expected = nearest(documents.len(), &pairs, &kept);
        let of_expected = |told: &Reasons| told.iter().map(|(&at, &(of, _))| (at, of)).collect::<Vec<_>>();
        assert_eq!(of_expected(&told), of_expected(&expected));
        // Only the kept document counts for a tie, not an earlier exact duplicate of it.
        let first = |document: usize| sets.iter().position(|set| *set == sets[document]);
        let others = told.iter().filter(|&(&document, &(of, near))| {
            let as_near = |&other: &usize| jaccard(&sets[document], &sets[other]) == near;
            kept.iter().filter(|other| as_near(other)).any(|&other| first(other) < first(of))
        });
        assert!(others.count() > 10);
    }
}

/// Returns a map from each document that is in a cluster to its representative.
fn cluster_from_rows(report: &Report) -> BTreeMap<usize, usize> {
    let clusters: Vec<_> = report.clusters().map(Result::unwrap).collect();
    let of_cluster = |cluster: &simstore_dedup::Cluster<'_>| {
        let stands = cluster.document.unwrap();
        cluster.members.iter().map(move |member| (member.document, stands)).collect::<Vec<_>>()
    };
    clusters.iter().flat_map(of_cluster).collect()
}

#[test]
fn options_excluded_by_keeping_none_are_refused() {
    let one = || inputs::numbered(&["one".to_owned()]);
    let stars =
        DedupConfig { keep: KeepRule::None, cluster_by: Some(ClusterBy::Stars), ..DedupConfig::default() };
    let said = simstore_dedup::run(&stars, &one(), Outputs::default(), &()).unwrap_err().to_string();
    assert!(said.contains("leave out option `cluster_by`"), "{said}");
    for (bits, distance, expected) in [
        (64, 17, "distance 17 is too large: at most 16 for 64-bit fingerprints"),
        (128, 33, "distance 33 is too large: at most 32 for 128-bit fingerprints"),
    ] {
        let compare = ComparisonConfig::Distance(DistanceConfig {
            max_distance: Some(distance),
            bits: Some(bits),
            ..DistanceConfig::default()
        });
        let config = DedupConfig { comparison: compare, ..DedupConfig::default() };
        let said = simstore_dedup::run(&config, &one(), Outputs::default(), &()).unwrap_err().to_string();
        assert_eq!(said, expected);
    }
    let files = Outputs { reasons: true, ..Outputs::default() };
    let said = simstore_dedup::run(&DedupConfig::default(), &one(), files, &()).unwrap_err().to_string();
    assert!(said.contains("option `reasons` needs option `remove_list`"), "{said}");
}
