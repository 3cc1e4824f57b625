//! Tests dense groups, in which most documents are similar to each other. Compares connected components, and the
//! results of `--keep none`, with a plain loop over all pairs. Also checks the number of verified pairs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;
use simstore_corpus::{Inputs, Observer, StageProgress};
use simstore_dedup::{
    ClusterBy, ComparisonConfig, DedupConfig, KeepRule, Outputs, RemovedDocument, Report, Summary,
};
use simstore_io::DocumentOptions;
use simstore_text::{Profile, jaccard};

use crate::beyond_memory::SMALL_MEMORY_BYTES;
use crate::{Random, TempFolder};

/// Returns a mixture of pages: pages of three templates with some words replaced, exact duplicates, and unrelated
/// pages.
fn pages(random: &mut Random, count: usize) -> Vec<String> {
    let templates: Vec<(u64, u64, u64)> =
        (0..3).map(|_| (30 + random.below(70), 1 + random.below(5), [8, 100_000][random.index(2)])).collect();
    let mut pages: Vec<String> = Vec::new();
    for _ in 0..count {
        let page = match random.below(20) {
            0 if !pages.is_empty() => pages[random.index(pages.len())].clone(),
            1 => (0..40).map(|_| format!("alone{} ", random.below(100_000))).collect(),
            _ => {
                let number = random.index(templates.len());
                let (words, others, vocabulary) = templates[number];
                let mut page: Vec<String> = (0..words).map(|word| format!("t{number}w{word}")).collect();
                for _ in 0..random.below(others + 1) {
                    let at = random.index(page.len());
                    page[at] = format!("other{}", random.below(vocabulary));
                }
                page.join(" ")
            }
        };
        pages.push(page);
    }
    pages
}

type PagePairs = Vec<(usize, usize, f64)>;
type PageReasons = BTreeMap<usize, (usize, f64)>;
/// A map from each document in a component to the first document of the component, and a map from each removed document
/// to the document that it duplicates, with their similarity.
type ComponentsAndReasons = (BTreeMap<usize, usize>, PageReasons);

fn run(input: &Path, options: &DedupConfig) -> Report {
    let inputs = Inputs::new(&[input.to_path_buf()], DocumentOptions::default()).unwrap();
    simstore_dedup::run(options, &inputs, Outputs::default(), &()).unwrap()
}

fn components_and_reasons(found: &Report) -> ComponentsAndReasons {
    let mut clusters = BTreeMap::new();
    for cluster in found.clusters() {
        let members = cluster.unwrap().members;
        let first = members.iter().map(|member| member.document).min().unwrap();
        clusters.extend(members.iter().map(|member| (member.document, first)));
    }
    let mut reasons = PageReasons::new();
    let visit = &mut |removed: &RemovedDocument<'_>| {
        reasons.insert(removed.document, (removed.duplicate_of.unwrap(), removed.similarity.unwrap()));
        Ok(())
    };
    found.visit_removed(visit).unwrap();
    (clusters, reasons)
}

/// Computes the expected result from all similar pairs. The first document of each component is kept; if `is_none` is
/// set, no document of a component is kept.
fn expected(pairs: &PagePairs, sets: &[Vec<u64>], is_none: bool) -> ComponentsAndReasons {
    let mut first: Vec<usize> = (0..sets.len()).collect();
    let in_pairs: BTreeSet<usize> = pairs.iter().flat_map(|&(a, b, _)| [a, b]).collect();
    for &(a, b, _) in pairs {
        let (x, y) = (first[a].min(first[b]), first[a].max(first[b]));
        first.iter_mut().filter(|first| **first == y).for_each(|first| *first = x);
    }
    let clusters = in_pairs.iter().map(|&document| (document, first[document])).collect();
    let mut reasons = PageReasons::new();
    if is_none {
        let both = pairs.iter().flat_map(|&(a, b, similarity)| [(a, b, similarity), (b, a, similarity)]);
        for (document, other, similarity) in both {
            let best = reasons.entry(document).or_insert((other, similarity));
            if similarity > best.1 || similarity == best.1 && other < best.0 {
                *best = (other, similarity);
            }
        }
    } else {
        let removed = in_pairs.iter().filter(|&&document| first[document] != document);
        let reason = |&document: &usize| {
            let kept = first[document];
            (document, (kept, jaccard(&sets[document], &sets[kept])))
        };
        reasons.extend(removed.map(reason));
    }
    (clusters, reasons)
}

fn lines(pages: &[String]) -> String {
    pages.iter().map(|page| format!("{}\n", json!({"text": page}))).collect()
}

#[test]
fn found_pairs_equal_those_of_the_plain_loop() {
    let folder = TempFolder::new();
    let (mut split, mut all, mut listed) = (0, 0, 0);
    for seed in 0..4 {
        let mut random = Random(seed);
        let pages = pages(&mut random, 700);
        let input = folder.file("a.jsonl", lines(&pages));
        let shingles = Profile::shingles();
        let sets: Vec<Vec<u64>> = pages.iter().map(|page| shingles.feature_set(page)).collect();
        for least in [0.6, 0.8, 0.9] {
            let options =
                DedupConfig { comparison: ComparisonConfig::by_similarity(least), ..DedupConfig::default() };
            let with_pairs = run(&input, &DedupConfig { pairs: true, ..options.clone() });
            let mut pairs = PagePairs::new();
            let visited = with_pairs.visit_pairs(&(), &mut |pair| {
                pairs.push((pair.document, pair.other.unwrap(), pair.similarity.unwrap()));
                Ok(())
            });
            visited.unwrap();
            listed += pairs.len();
            // The listed pairs are correct and nearly complete.
            for &(a, b, similarity) in &pairs {
                let real = jaccard(&sets[a], &sets[b]);
                assert!(real >= least && real == similarity);
            }
            let similar = |a: usize, b: usize| jaccard(&sets[a], &sets[b]) >= least;
            all += (0..pages.len()).map(|a| (0..a).filter(|&b| similar(a, b)).count()).sum::<usize>();
            for (keep, is_none) in [(KeepRule::First, false), (KeepRule::None, true)] {
                let expected = expected(&pairs, &sets, is_none);
                let components: BTreeSet<usize> = expected.0.values().copied().collect();
                split += components.len();
                let cluster_by = Some(ClusterBy::Components);
                let options = DedupConfig { keep, cluster_by, ..options.clone() };
                assert_eq!(
                    components_and_reasons(&run(&input, &DedupConfig { pairs: true, ..options.clone() })),
                    expected
                );
                for memory in [None, Some(4 * SMALL_MEMORY_BYTES), Some(SMALL_MEMORY_BYTES)] {
                    let name = format!("kept-{seed}-{least}-{is_none}-{memory:?}");
                    let resume = Some(folder.0.path().join(name).into());
                    // The first run keeps the results of its stages, the next one loads them.
                    for resume in [None, resume.clone(), resume] {
                        let options = DedupConfig { memory, resume, ..options.clone() };
                        assert!(
                            components_and_reasons(&run(&input, &options)) == expected,
                            "{seed} {least} {memory:?}"
                        );
                    }
                }
                for threads in [1, 3, 8] {
                    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                    assert!(
                        pool.install(|| components_and_reasons(&run(&input, &options))) == expected,
                        "{threads} threads"
                    );
                }
            }
        }
    }
    assert!(split > 200, "groups are split: {split}");
    assert!(listed as f64 > 0.99 * all as f64 && all > 100_000, "{listed} of {all}");
}

/// Returns pages of one template, each with another word at one position, as JSON lines. Each page is similar to all
/// others.
fn copies(count: usize) -> String {
    let page = |at: usize| {
        let word = |word| if word == 50 { format!("name{at}") } else { format!("word{word}") };
        (0..100).map(word).collect::<Vec<_>>().join(" ")
    };
    lines(&(0..count).map(page).collect::<Vec<_>>())
}

#[test]
fn pages_of_one_template_are_compared_with_few_others() {
    let folder = TempFolder::new();
    for (keep, kept) in [(KeepRule::First, 1), (KeepRule::None, 0)] {
        for count in [500, 1000, 2000, 4000] {
            let input = folder.file("a.jsonl", copies(count));
            let options = DedupConfig {
                keep: keep.clone(),
                cluster_by: Some(ClusterBy::Components),
                memory: Some(64 << 20),
                ..DedupConfig::default()
            };
            let found = run(&input, &options);
            let &Summary { kept: left, verified: compared, spilled, .. } = found.summary();
            assert_eq!((left, spilled), (kept, None));
            assert!(compared.unwrap() <= 4 * count as u64, "{compared:?} pairs of {count} pages compared");
            let inputs = Inputs::new(std::slice::from_ref(&input), DocumentOptions::default()).unwrap();
            let estimated = simstore_dedup::estimate(&options, &inputs, &()).unwrap().search.unwrap();
            assert!(estimated.candidates <= 4.0 * count as f64, "{estimated:?}");
        }
    }
}

/// The temporary files of a run that records all pairs are about as large as the dry run estimates.
#[test]
fn the_disk_of_listed_pairs_is_estimated() {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", copies(1500));
    let options = DedupConfig { pairs: true, memory: Some(64 << 20), ..DedupConfig::default() };
    let inputs = Inputs::new(std::slice::from_ref(&input), DocumentOptions::default()).unwrap();
    let estimated = simstore_dedup::estimate(&options, &inputs, &()).unwrap().disk_of_temporary as f64;
    let taken = || {
        let most = PeakDiskUse { folder: folder.0.path().join("temporary"), bytes: AtomicU64::new(0) };
        std::fs::create_dir_all(&most.folder).unwrap();
        let temporary = Some(most.folder.clone());
        let options = |pairs| DedupConfig { pairs, temporary_folder: temporary.clone(), ..options.clone() };
        [true, false].map(|pairs| {
            most.bytes.store(0, Ordering::Relaxed);
            simstore_dedup::run(&options(pairs), &inputs, Outputs::default(), &most).unwrap();
            most.bytes.load(Ordering::Relaxed)
        })
    };
    let [with_pairs, without] = taken();
    assert!(
        (0.5..2.0).contains(&(estimated / with_pairs as f64)),
        "{estimated} estimated, {with_pairs} taken"
    );
    assert_eq!(without, 0);
    let without = DedupConfig { pairs: false, ..options };
    assert_eq!(simstore_dedup::estimate(&without, &inputs, &()).unwrap().disk_of_temporary, 0);
}

/// Observer that records the maximum size of the temporary files in bytes.
struct PeakDiskUse {
    folder: PathBuf,
    bytes: AtomicU64,
}

impl Observer for PeakDiskUse {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        let bytes_of = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        let files = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let bytes: u64 =
            files(&self.folder).flat_map(|run| files(&run.path())).map(|file| bytes_of(&file.path())).sum();
        self.bytes.fetch_max(bytes, Ordering::Relaxed);
        ControlFlow::Continue(())
    }
}
