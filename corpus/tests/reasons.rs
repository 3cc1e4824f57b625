//! What removed documents are duplicates of, and clusters of which none is kept, beside the plain loop.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;
use simstore_corpus::DocumentId;
use simstore_corpus::dedup::{self, Answer, ClusterBy, Files, Found, Keep, Options, Removed, Source};
use simstore_text::{Profile, jaccard};

use crate::{Folder, Random};

const DISTANCE: u32 = 3;

/// The rows of `--remove-list --reasons` by their documents: what each is a duplicate of, and how near.
type Reasons = BTreeMap<usize, (usize, f64)>;

/// Runs to the end, and reads the list.
fn reasons(source: Source<'_>, options: &Options, how: &str) -> (Vec<usize>, Reasons) {
    let folder = Folder::new();
    let list = folder.0.path().join("removed.jsonl");
    let files = Files { remove_list: Some(list.clone()), reasons: true, ..Files::default() };
    let found: Found = match dedup::find(source, options, files, &()).unwrap() {
        Answer::Found(found) => found,
        Answer::AddedBefore(before) => panic!("{before:?}"),
    };
    let kept = found.kept().map(|kept| kept.unwrap().document).collect();
    for cluster in found.clusters() {
        let cluster = cluster.unwrap();
        let stands = cluster.document.unwrap();
        let is_kept = options.keep != Keep::None;
        assert!(
            cluster.members.iter().all(|member| member.is_kept == (is_kept && member.document == stands))
        );
    }
    let mut visited = Reasons::new();
    let visit = &mut |removed: &Removed<'_>| {
        let near = removed.distance.map(f64::from);
        // As it is written.
        let how = near.unwrap_or_else(|| removed.similarity.unwrap().to_string().parse().unwrap());
        visited.insert(removed.document, (removed.duplicate_of.unwrap(), how));
        Ok(())
    };
    found.visit_removed(visit).unwrap();
    found.finish(&()).unwrap();
    let rows = fs::read_to_string(list).unwrap();
    let mut last = None;
    let row = |row: &str| {
        let row: Value = serde_json::from_str(row).unwrap();
        let id = |name: &str| row[name].as_u64().unwrap() as usize;
        // In order of input.
        assert!(last.replace(id("id")) < Some(id("id")));
        (id("id"), (id("duplicate_of"), row[how].as_f64().unwrap()))
    };
    let listed: Reasons = rows.lines().map(row).collect();
    assert_eq!(visited, listed);
    (kept, listed)
}

/// The first of what a chain of pairs connects, of each.
fn firsts(count: usize, pairs: &[(usize, usize, f64)]) -> Vec<usize> {
    let mut first: Vec<usize> = (0..count).collect();
    for &(a, b, _) in pairs {
        let (x, y) = (first[a].min(first[b]), first[a].max(first[b]));
        first.iter_mut().filter(|first| **first == y).for_each(|first| *first = x);
    }
    first
}

/// What is to be told if none is kept: what stands for each, and of that the nearest other, the first of several. `how` is less for
/// what is nearer.
fn of_none(count: usize, pairs: &[(usize, usize, f64)], how: impl Fn(usize, usize) -> f64) -> Reasons {
    let first = firsts(count, pairs);
    let is_near = |document: usize| pairs.iter().any(|&(a, b, _)| a == document || b == document);
    let reason = |document: usize| {
        let others = (0..count).filter(|&other| first[other] == first[document] && other != document);
        let of = match first[document] {
            stands if stands == document => {
                others.min_by(|&a, &b| how(document, a).total_cmp(&how(document, b))).unwrap()
            }
            stands => stands,
        };
        (document, (of, how(document, of)))
    };
    (0..count).filter(|&document| is_near(document)).map(reason).collect()
}

fn pairs_of(count: usize, near: impl Fn(usize, usize) -> Option<f64>) -> Vec<(usize, usize, f64)> {
    let pairs = (0..count).flat_map(|a| (a + 1..count).map(move |b| (a, b)));
    pairs.filter_map(|(a, b)| Some((a, b, near(a, b)?))).collect()
}

#[test]
fn by_distance_all_that_has_a_near_duplicate_goes() {
    let mut random = Random(3);
    for _ in 0..5 {
        let values: Vec<u64> = (0..200)
            .map(|_| {
                let mut value = Random::of(random.below(100));
                (0..random.below(5)).for_each(|_| value ^= 1 << random.below(64));
                value
            })
            .collect();
        let distance = |a: usize, b: usize| f64::from((values[a] ^ values[b]).count_ones());
        let near = |a, b| Some(distance(a, b)).filter(|&bits| bits <= f64::from(DISTANCE));
        let pairs = pairs_of(values.len(), near);
        let given = || {
            Source::fingerprints((0..).map(DocumentId::Number).zip(values.iter().map(|&value| value.into())))
        };
        let options = Options { keep: Keep::None, ..Options::default() };
        let (kept, told) = reasons(given(), &options, "distance");
        let expected = of_none(values.len(), &pairs, distance);
        assert_eq!(told, expected);
        assert!(told.len() > 50 && kept.len() > 20);
        assert!(kept.iter().all(|document| !told.contains_key(document)));
        assert_eq!(kept.len() + told.len(), values.len());
        // If one is kept, the others are told with it.
        let (kept, told) = reasons(given(), &Options::default(), "distance");
        let first = firsts(values.len(), &pairs);
        let removed = (0..values.len()).filter(|&document| first[document] != document);
        let expected: Reasons = removed
            .map(|document| (document, (first[document], distance(document, first[document]))))
            .collect();
        assert_eq!(told, expected);
        assert!(kept.into_iter().all(|document| first[document] == document));
        // In stars what is told is near.
        let stars = Options { cluster_by: Some(ClusterBy::Stars), ..Options::default() };
        let (_, told) = reasons(given(), &stars, "distance");
        assert!(told.values().all(|&(_, bits)| bits <= f64::from(DISTANCE)));
        assert!(told.len() > 30, "{}", told.len());
    }
}

#[test]
fn by_similarity_all_that_has_a_similar_one_goes() {
    let mut random = Random(5);
    // Small ones, of which none is missed.
    let texts: Vec<String> = (0..120)
        .map(|_| {
            let topic = random.below(40);
            let word = |i: u64| match random.below(40) {
                0 => format!("other{}", random.below(1000)),
                _ => format!("word{topic}x{i}"),
            };
            (0..24).map(word).collect::<Vec<_>>().join(" ")
        })
        .collect();
    let shingles = Profile::shingles();
    let sets: Vec<Vec<u64>> = texts.iter().map(|text| shingles.feature_set(text)).collect();
    let similarity = |a: usize, b: usize| jaccard(&sets[a], &sets[b]) as f32;
    let near = |a, b| Some(f64::from(similarity(a, b))).filter(|_| jaccard(&sets[a], &sets[b]) >= 0.7);
    let pairs = pairs_of(texts.len(), near);
    let given = || Source::documents((0..).map(DocumentId::Number).zip(texts.iter().cloned()));
    let similar = Options { similar: Some(0.7), ..Options::default() };
    let options = Options { keep: Keep::None, ..similar.clone() };
    let (kept, told) = reasons(given(), &options, "similarity");
    let told: Reasons = told.into_iter().map(|(document, (of, how))| (document, (of, -how))).collect();
    let minus = |a, b| -similarity(a, b).to_string().parse::<f64>().unwrap();
    assert_eq!(told, of_none(texts.len(), &pairs, minus));
    assert!(told.len() > 30 && kept.len() + told.len() == texts.len(), "{} {}", told.len(), kept.len());
    // If one is kept, what goes is as similar to it as was asked for.
    let (kept, told) = reasons(given(), &similar, "similarity");
    for (document, (of, how)) in &told {
        assert!(*how >= 0.7 && kept.contains(of) && *how == -minus(*document, *of));
    }
    assert_eq!(kept.len() + told.len(), texts.len());
}

#[test]
fn what_does_not_go_with_keeping_none_is_refused() {
    let one = || Source::documents([(DocumentId::Number(0), "one".to_owned())]);
    let stars = Options { keep: Keep::None, cluster_by: Some(ClusterBy::Stars), ..Options::default() };
    let said = dedup::find(one(), &stars, Files::default(), &()).unwrap_err().to_string();
    assert!(said.contains("leave out option `cluster_by`"), "{said}");
    let files = Files { reasons: true, ..Files::default() };
    let said = dedup::find(one(), &Options::default(), files, &()).unwrap_err().to_string();
    assert!(said.contains("option `reasons` needs option `remove_list`"), "{said}");
}
