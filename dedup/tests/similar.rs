//! Compares deduplication by similarity with a plain loop over all pairs of texts.

use std::collections::{BTreeMap, BTreeSet};

use simstore_corpus::Inputs;
use simstore_dedup::{ClusterBy, ComparisonConfig, DedupConfig, KeepRule, Outputs, Report, ResumeConfig};
use simstore_io::DocumentOptions;
use simstore_text::{Profile, jaccard};

use crate::support::inputs;
use crate::{Random, TempFolder};

/// Pairs of similar texts: (earlier document, later document, similarity).
type TextPairs = Vec<(usize, usize, f64)>;

fn found(texts: &[String], options: &DedupConfig) -> Report {
    simstore_dedup::run(options, &inputs::numbered(texts), Outputs::default(), &()).unwrap()
}

fn pairs(found: &Report) -> TextPairs {
    let mut pairs = Vec::new();
    let visited = found.visit_pairs(&(), &mut |pair| {
        assert_eq!(pair.distance, None);
        pairs.push((pair.document, pair.other.unwrap(), pair.similarity.unwrap()));
        Ok(())
    });
    visited.unwrap();
    pairs
}

fn sets(texts: &[String]) -> Vec<Vec<u64>> {
    let shingles = Profile::shingles();
    texts.iter().map(|text| shingles.feature_set(text)).collect()
}

/// Returns all pairs of feature sets with a similarity of at least `least`, by a plain loop.
fn all_similar_pairs(sets: &[Vec<u64>], least: f64) -> TextPairs {
    let mut pairs = Vec::new();
    for (a, x) in sets.iter().enumerate() {
        for (b, y) in sets.iter().enumerate().skip(a + 1) {
            let similarity = jaccard(x, y);
            if similarity >= least && !x.is_empty() {
                pairs.push((a, b, similarity));
            }
        }
    }
    pairs
}

/// Returns (member, kept document, their similarity) for all members of clusters.
fn members(found: &Report) -> Vec<(usize, usize, f64)> {
    let mut all = Vec::new();
    for cluster in found.clusters() {
        let cluster = cluster.unwrap();
        let kept = cluster.members.iter().find(|member| member.is_kept).unwrap().document;
        all.extend(cluster.members.iter().map(|member| (member.document, kept, member.similarity.unwrap())));
    }
    all
}

/// Returns `count` texts of words from a small vocabulary. Many of the texts are copies of other texts with some words
/// changed. A new text has a number of words in the range `words`. `word` converts the number of a word to the word.
fn corpus(
    random: &mut Random,
    count: usize,
    words: std::ops::Range<u64>,
    word: impl Fn(u64) -> String,
) -> Vec<String> {
    let mut texts: Vec<Vec<u64>> = Vec::new();
    for _ in 0..count {
        let length = words.start + random.below(words.end - words.start);
        let fresh = |random: &mut Random| (0..length).map(|_| random.below(5000)).collect::<Vec<u64>>();
        let text = if texts.is_empty() || random.below(3) == 0 {
            fresh(random)
        } else {
            let mut text = texts[random.below(texts.len() as u64) as usize].clone();
            for _ in 0..random.below(1 + text.len() as u64 / 12) {
                let at = random.below(text.len() as u64) as usize;
                match random.below(3) {
                    0 if text.len() > 1 => drop(text.remove(at)),
                    1 => text.insert(at, random.below(5000)),
                    _ => text[at] = random.below(5000),
                }
            }
            text
        };
        texts.push(text);
    }
    texts.iter().map(|text| text.iter().map(|&at| word(at)).collect()).collect()
}

fn english(at: u64) -> String {
    format!("word{at} ")
}

fn chinese(at: u64) -> String {
    char::from_u32(0x4e00 + at as u32).unwrap().into()
}

/// Deduplicates texts, and checks properties that the result must have for any texts. Returns the share of the similar
/// pairs that was found, and the number of all similar pairs.
fn check(texts: &[String], least: f64) -> (f64, usize) {
    let sets = sets(texts);
    let options = DedupConfig {
        comparison: ComparisonConfig::by_similarity(least),
        pairs: true,
        ..DedupConfig::default()
    };
    let expected = all_similar_pairs(&sets, least);
    let with_pairs = found(texts, &options);
    let got = pairs(&with_pairs);
    assert!(got.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)), "in order, each once");
    let all: BTreeSet<(usize, usize)> = expected.iter().map(|&(a, b, _)| (a, b)).collect();
    for &(a, b, similarity) in &got {
        assert!(
            all.contains(&(a, b)),
            "{a} and {b} are reported, and {} similar",
            jaccard(&sets[a], &sets[b])
        );
        assert_eq!(similarity, jaccard(&sets[a], &sets[b]));
    }
    // No pair of equal texts is missed.
    let got: BTreeSet<(usize, usize)> = got.iter().map(|&(a, b, _)| (a, b)).collect();
    for &(a, b) in all.difference(&got) {
        assert!(sets[a] != sets[b], "{a} and {b} are equal and missed");
    }
    for cluster_by in [ClusterBy::Stars, ClusterBy::Components] {
        let mut clusters = Vec::new();
        for pairs in [true, false] {
            let options = DedupConfig { cluster_by: Some(cluster_by), pairs, ..options.clone() };
            let found = found(texts, &options);
            let members = members(&found);
            let distinct: BTreeSet<usize> = members.iter().map(|&(document, ..)| document).collect();
            assert_eq!(distinct.len(), members.len(), "each is in one cluster");
            for &(document, kept, similarity) in &members {
                let real = jaccard(&sets[document], &sets[kept]);
                assert_eq!(similarity, real);
                // A removed text is similar to its representative.
                assert!(cluster_by == ClusterBy::Components || real >= least, "{document} {kept}: {real}");
            }
            let removed = members.iter().filter(|(document, kept, _)| document != kept).count();
            assert_eq!(found.summary().kept, texts.len() - removed);
            clusters.push(members);
        }
        assert_eq!(clusters[0], clusters[1], "pairs change nothing");
        if cluster_by == ClusterBy::Components {
            let kept: BTreeMap<usize, usize> =
                clusters[0].iter().map(|&(document, kept, _)| (document, kept)).collect();
            for (a, b) in &got {
                assert!(kept.contains_key(a) && kept.get(a) == kept.get(b), "{a} and {b} are connected");
            }
        }
        if cluster_by == ClusterBy::Stars {
            let removed: BTreeSet<usize> = clusters[0]
                .iter()
                .filter(|(document, kept, _)| document != kept)
                .map(|&(document, ..)| document)
                .collect();
            for &(a, b) in &got {
                assert!(removed.contains(&a) || removed.contains(&b), "{a} and {b} are both kept");
            }
        }
    }
    (got.len() as f64 / expected.len().max(1) as f64, expected.len())
}

#[test]
fn reported_pairs_are_similar_and_nearly_all_are_reported() {
    let mut random = Random(13);
    let (mut of_all, mut count) = (0.0, 0);
    for (words, texts) in [(1..4, 150), (2..30, 200), (20..60, 200), (60..200, 250)] {
        for least in [0.6, 0.8, 0.95] {
            for word in [english, chinese] {
                let (share, pairs) = check(&corpus(&mut random, texts, words.clone(), word), least);
                (of_all, count) = (of_all + share * pairs as f64, count + pairs);
            }
        }
    }
    assert!(count > 10_000, "{count}");
    assert!(of_all / count as f64 > 0.97, "{}", of_all / count as f64);
}

#[test]
fn adversaries() {
    let repeat = |text: &str, count: usize| vec![text.to_owned(); count];
    check(&[], 0.8);
    check(&repeat("", 3), 0.8);
    check(&repeat("one", 1), 0.8);
    check(&repeat("one", 300), 0.8);
    check(&repeat("to be or not to be that is the question", 100), 1.0);
    let long: String = (0..200).map(english).collect();
    check(&repeat(&long, 50), 0.8);
    // Hundreds of similar texts that differ only in the last word.
    let crowd: Vec<String> = (0..300).map(|i| format!("{long}{}", english(1000 + i))).collect();
    let (share, pairs) = check(&crowd, 0.8);
    assert_eq!((share, pairs), (1.0, 300 * 299 / 2));
    // Like these, with few words.
    let short: String = (0..20).map(english).collect();
    check(&(0..300).map(|i| format!("{short}{}", english(1000 + i))).collect::<Vec<_>>(), 0.8);
    // Chain: neighbors are similar, but the ends share no words.
    let chain: Vec<String> = (0..200).map(|i| (i * 3..i * 3 + 60).map(english).collect()).collect();
    let (_, pairs) = check(&chain, 0.8);
    assert!(pairs >= 199);
}

#[test]
fn a_crowd_around_several_that_are_kept() {
    let mut random = Random(5);
    // Similarities are around 0.8, so many texts that would be preferred are not kept themselves.
    let base: Vec<u64> = (0..100).collect();
    let text = |random: &mut Random| {
        let mut words = base.clone();
        for _ in 0..1 + random.below(3) {
            let at = random.below(100) as usize;
            words[at] = 1000 + random.below(100_000);
        }
        words.into_iter().map(english).collect::<String>()
    };
    let texts: Vec<String> = (0..400).map(|_| text(&mut random)).collect();
    let (_, pairs) = check(&texts, 0.8);
    assert!(pairs > 1000 && pairs < 400 * 399 / 2, "{pairs}");
}

/// A pair of similar texts is found even if one of the two shares many words with all texts of a dense group (many texts
/// that are all similar to each other), without being similar to them.
#[test]
fn documents_skipped_by_a_dense_group_are_compared() {
    const CROWD: usize = 300;
    const OTHERS: usize = 2000;
    let folder = TempFolder::new();
    let words = |range: std::ops::Range<u64>| range.map(english).collect::<String>();
    // The group has other first words than the text, and each member has one word of its own.
    let crowd = (0..CROWD as u64).map(|i| words(20_000..20_114) + &words(114..1000) + &english(30_000 + i));
    // The text without its last words.
    let one = words(0..810);
    // Many unrelated texts, too many for the smallest memory limit.
    let others = (0..OTHERS as u64).map(|i| english(50_000 + i));
    let texts: Vec<String> = crowd.chain([one, words(0..1000)]).chain(others).collect();
    let sets = sets(&texts);
    assert!((0..CROWD).all(|i| jaccard(&sets[i], &sets[CROWD + 1]) < 0.8));
    assert!(jaccard(&sets[CROWD], &sets[CROWD + 1]) > 0.8);
    let lines: String = texts.iter().map(|text| format!("{{\"text\": \"{text}\"}}\n")).collect();
    let path = folder.file("a.jsonl", lines);
    let of_texts = members(&found(&texts, &DedupConfig::default()));
    assert!(of_texts.iter().any(|&(document, kept, _)| (document, kept) == (CROWD + 1, CROWD)));
    assert_eq!(of_texts.iter().filter(|(document, kept, _)| document == kept).count(), 2);
    for memory in [None, Some(1 << 20), Some(200 << 10)] {
        let inputs = Inputs::new(std::slice::from_ref(&path), DocumentOptions::default()).unwrap();
        let options = DedupConfig { memory, ..DedupConfig::default() };
        let of_files = simstore_dedup::run(&options, &inputs, Outputs::default(), &()).unwrap();
        assert!(members(&of_files) == of_texts, "{memory:?}");
        assert_eq!(of_files.summary().kept, OTHERS + 2);
        assert_eq!(of_files.summary().spilled.is_some(), memory == Some(200 << 10));
    }
}

#[test]
fn real_texts_and_short_chinese_ones() {
    for name in ["en.jsonl", "zh.jsonl"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples").join(name);
        let inputs = Inputs::new(&[path], DocumentOptions::default()).unwrap();
        let texts: Vec<String> = inputs.documents().map(|document| document.unwrap().text).collect();
        let (share, pairs) = check(&texts, 0.7);
        assert!(share > 0.95 && pairs > 5, "{name}: {share} of {pairs}");
        // Each line is a text.
        let lines: Vec<String> = texts
            .iter()
            .flat_map(|text| text.lines())
            .map(str::to_owned)
            .filter(|line| line.len() > 20)
            .collect();
        check(&lines[..lines.len().min(1200)], 0.8);
    }
}

#[test]
fn files_and_documents_give_the_same_and_keep_what_the_rule_says() {
    let folder = TempFolder::new();
    let texts = corpus(&mut Random(3), 120, 30..90, english);
    let lines: String = texts
        .iter()
        .enumerate()
        .map(|(i, text)| format!("{{\"id\": {i}, \"text\": \"{text}\"}}\n"))
        .collect();
    let path = folder.file("a.jsonl", lines);
    for keep in [KeepRule::First, KeepRule::Longest] {
        for resume in [None, Some(folder.0.path().join("parts")), Some(folder.0.path().join("parts"))] {
            let options = DedupConfig { keep: keep.clone(), pairs: true, ..DedupConfig::default() };
            let of_texts = found(&texts, &options);
            let inputs = Inputs::new(std::slice::from_ref(&path), DocumentOptions::default()).unwrap();
            let options = DedupConfig { resume: resume.map(ResumeConfig::from), ..options };
            let of_files = simstore_dedup::run(&options, &inputs, Outputs::default(), &()).unwrap();
            assert_eq!((pairs(&of_files), members(&of_files)), (pairs(&of_texts), members(&of_texts)));
            assert!(of_files.summary().duplicates > 20);
        }
    }
    let longest = found(&texts, &DedupConfig { keep: KeepRule::Longest, ..DedupConfig::default() });
    for (document, kept, _) in members(&longest) {
        assert!(texts[kept].len() >= texts[document].len());
    }
}

#[test]
fn texts_without_words_are_similar_to_equal_ones_alone() {
    let mut random = Random(12);
    let some =
        ["!", "?!", "?! ", "\t?!", "!!", "\u{1f600}", "\u{1f600}\u{1f600}", "", " ", "\n", "one two three"];
    let texts: Vec<String> = (0..200).map(|_| some[random.index(some.len())].to_owned()).collect();
    check(&texts, 0.8);
    let options = DedupConfig { pairs: true, ..DedupConfig::default() };
    let mut expected = Vec::new();
    for (a, x) in texts.iter().enumerate() {
        for (b, y) in texts.iter().enumerate().skip(a + 1) {
            if x.trim() == y.trim() && !x.trim().is_empty() {
                expected.push((a, b, 1.0));
            }
        }
    }
    let found = found(&texts, &options);
    assert_eq!(pairs(&found), expected);
    assert_eq!(found.summary().empty, texts.iter().filter(|text| text.trim().is_empty()).count() as u64);
}
