//! Tests deduplication as a library: its results, and the files left by an interrupted run.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use simstore::any::Width;
use simstore::{Error, Result, Snapshot, Store, StoreOptions, each_width};
use simstore_corpus::{Inputs, Observer, StageProgress};
use simstore_dedup::{
    AddConfig, ClusterBy, ComparisonConfig, DedupConfig, DistanceConfig, KeepRule, Outputs, Report,
    RunObserver, SimilarityConfig,
};
use simstore_io::{Document, DocumentId, DocumentOptions};

use crate::support::inputs::{self, verified};
use crate::support::numbers;
use crate::{Random, TempFolder};

#[path = "../examples/dedup.rs"]
#[allow(dead_code, reason = "its main function takes the arguments of the process")]
mod example;

const ROWS: &str = if cfg!(feature = "parquet") { "clusters.parquet" } else { "clusters.csv" };

fn inputs(path: &Path) -> Inputs {
    Inputs::new(&[path.to_path_buf()], DocumentOptions::default()).unwrap()
}

fn found(report: Result<Report>) -> Report {
    let report = report.unwrap();
    assert_eq!(report.added_before(), None);
    report
}

/// Returns the ids of the members of each cluster, the kept member first.
fn clusters(found: &Report) -> Vec<Vec<String>> {
    let ids = |cluster: Result<simstore_dedup::Cluster<'_>>| {
        let mut members = cluster.unwrap().members;
        members.sort_by_key(|member| !member.is_kept);
        members.iter().map(|member| member.id.text().into_owned()).collect()
    };
    found.clusters().map(ids).collect()
}

/// Returns the paths and contents of the files in a folder and its subfolders, including hidden files.
fn all_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_files(&path));
        } else {
            all.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    all
}

fn stored(store: &Path) -> Vec<(u64, String)> {
    let store = Snapshot::<u64>::open(store).unwrap();
    let name = |id: Option<u64>| store.name(id.unwrap()).unwrap().unwrap();
    let mut all: Vec<_> =
        store.iter().map(|entry| entry.unwrap()).map(|entry| (entry.fingerprint, name(entry.id))).collect();
    all.sort();
    all
}

/// Returns lines of JSON documents. Some of the documents are near-duplicates.
fn documents() -> String {
    let text = |i: usize| {
        let topic = ["rivers of the north", "ships and their sails", "bread and how it is made"][i % 3];
        let end = if i < 15 { String::new() } else { format!(", and number {i} says something of its own") };
        format!("{{\"id\": \"d{i}\", \"text\": \"About {topic} there is much to be told{end}\"}}\n")
    };
    (0..24).map(text).collect()
}

#[test]
fn the_example_deduplicates_a_file() {
    let folder = TempFolder::new();
    let input = Path::new(env!("CARGO_MANIFEST_DIR")).join("../samples/en.jsonl");
    let [unique, rows] = ["unique.jsonl", ROWS].map(|name| folder.0.path().join(name));
    let (kept, documents) = example::run(input.clone(), unique.clone(), rows.clone()).unwrap();
    assert_eq!(documents, 77);
    assert!(kept < 77);
    let lines = fs::read_to_string(&unique).unwrap();
    assert_eq!(lines.lines().count(), kept);
    let all = fs::read_to_string(input).unwrap();
    assert!(lines.lines().all(|line| all.contains(line)));
    // The table of clusters can be read as documents.
    let read = Inputs::new(
        &[rows],
        DocumentOptions { text_fields: vec!["representative".to_owned()], ..DocumentOptions::default() },
    );
    let members: Vec<String> = read.unwrap().documents().map(|row| row.unwrap().id.to_string()).collect();
    let expected: Vec<String> = clusters(&found(simstore_dedup::run(
        &DedupConfig::default(),
        &self::inputs(&unique),
        Outputs::default(),
        &(),
    )))
    .concat();
    assert!(expected.is_empty(), "what is left has duplicates: {expected:?}");
    assert!(members.len() > 77 - kept, "{members:?}");
}

/// A malformed document among inputs in memory ends the run with an error. If malformed documents are skipped, it is
/// only counted.
#[test]
fn malformed_documents_in_memory_are_skipped_if_requested() {
    let given = || {
        let document = |(id, text): (u64, &str)| {
            let id = DocumentId::Number(id);
            Ok(Document::new(id, text.to_owned()))
        };
        let bad = || Err(Error::BadInput { path: "-".into(), line: 2, reason: "no text".to_owned() });
        let all = [document((0, "the same")), bad(), bad(), document((3, "the same"))];
        Inputs::from_documents(all)
    };
    let options = DedupConfig::default();
    let ended = simstore_dedup::run(&options, &given(), Outputs::default(), &());
    assert!(matches!(ended, Err(Error::BadInput { line: 2, .. })), "{ended:?}");
    let found = found(simstore_dedup::run(&options, &given().skip_malformed(true), Outputs::default(), &()));
    let totals = found.summary();
    assert_eq!((totals.documents, totals.malformed, totals.kept, totals.clusters), (2, 2, 1, 1));
    let mut totals = totals.clone();
    totals.seconds = 0.25;
    let said = totals.to_string();
    let first = "2 documents (16 bytes of text), 1 distinct text, similarity >= 0.8, 0.2 s\n";
    assert!(said.starts_with(first), "{said}");
    assert!(said.contains("2 documents in 1 cluster; 1 duplicate (50.0%), 1 kept"), "{said}");
}

#[test]
fn files_documents_and_fingerprints_give_the_same() {
    let folder = TempFolder::new();
    let path = folder.file("a.jsonl", documents());
    let texts: Vec<(DocumentId, String)> =
        inputs(&path).documents().map(|document| document.unwrap()).map(|d| (d.id, d.text)).collect();
    for bits in [64, 128] {
        let compare =
            ComparisonConfig::Distance(DistanceConfig { bits: Some(bits), ..DistanceConfig::default() });
        let options = DedupConfig { comparison: compare, pairs: true, ..DedupConfig::default() };
        let of_files = found(simstore_dedup::run(&options, &inputs(&path), Outputs::default(), &()));
        let fingerprints: Vec<(DocumentId, u128)> = of_files
            .kept()
            .map(Result::unwrap)
            .map(|kept| (kept.id, u128::from_str_radix(&kept.fingerprint.unwrap(), 16).unwrap()))
            .collect();
        let expected = clusters(&of_files);
        let digits = of_files.kept().next().unwrap().unwrap().fingerprint.unwrap().len();
        assert_eq!((4 * digits as u32, expected.len()), (bits, 3));
        let of_texts =
            found(simstore_dedup::run(&options, &inputs::texts(texts.clone()), Outputs::default(), &()));
        assert_eq!(clusters(&of_texts), expected);
        let totals = |found: &Report| {
            let mut totals = numbers(found);
            totals.text_bytes = 0;
            totals
        };
        assert_eq!(totals(&of_texts), totals(&of_files));
        let mut pairs = 0;
        of_files
            .visit_pairs(&(), &mut |pair| {
                pairs += 1;
                assert!(pair.document < pair.other.unwrap() && pair.distance.unwrap() <= 3);
                Ok(())
            })
            .unwrap();
        assert!(pairs >= of_files.summary().duplicates);
        // The kept documents have no duplicates.
        let left = match bits {
            64 => inputs::values(fingerprints.into_iter().map(|(id, value)| (id, value as u64))),
            _ => inputs::values(fingerprints),
        };
        let left = found(simstore_dedup::run(&options, &left, Outputs::default(), &()));
        assert_eq!((left.summary().clusters, left.summary().kept), (0, of_files.summary().kept));
    }
}

#[test]
fn fingerprints_are_compared_as_by_the_plain_loop() {
    let mut random = Random(7);
    let values: Vec<u128> =
        (0..300).map(|_| u128::from(random.below(4)) << 90 | 1 << random.below(40)).collect();
    let given = || (0..).map(DocumentId::Number).zip(values.clone());
    let within = |most, bits| {
        ComparisonConfig::Distance(DistanceConfig {
            max_distance: Some(most),
            bits: Some(bits),
            ..DistanceConfig::default()
        })
    };
    let options = DedupConfig { comparison: within(2, 128), pairs: true, ..DedupConfig::default() };
    let of_values = found(simstore_dedup::run(&options, &inputs::values(given()), Outputs::default(), &()));
    let mut expected = Vec::new();
    for (a, x) in values.iter().enumerate() {
        for (b, y) in values.iter().enumerate().skip(a + 1) {
            let distance = (x ^ y).count_ones();
            if distance <= 2 {
                expected.push((a, Some(b), Some(distance)));
            }
        }
    }
    let mut pairs = Vec::new();
    let visited = of_values.visit_pairs(&(), &mut |pair| {
        pairs.push((pair.document, pair.other, pair.distance));
        Ok(())
    });
    visited.unwrap();
    assert!(expected.len() > 300);
    assert_eq!(pairs, expected);
    // A visitor can stop the visit.
    let stopped = of_values.visit_pairs(&(), &mut |_| Err(Error::Cancelled));
    assert!(matches!(stopped, Err(Error::Cancelled)));
    let narrow = DedupConfig { comparison: within(2, 64), ..options };
    let refused =
        simstore_dedup::run(&narrow, &inputs::values(given()), Outputs::default(), &()).unwrap_err();
    assert!(refused.to_string().contains("have 128 bits, not 64"), "{refused}");
}

#[test]
fn impossible_options_are_refused_and_named() {
    let one = || inputs::numbered(&["one".to_owned()]);
    let files = || Outputs { output: Some("never-written".into()), ..Outputs::default() };
    let options = DedupConfig::default;
    let by = |compare| DedupConfig { comparison: compare, ..options() };
    let similar = |similar| by(ComparisonConfig::by_similarity(similar));
    let cases: [(DedupConfig, Outputs, &str); 9] = [
        (similar(0.0), Outputs::default(), "above 0, up to 1"),
        (similar(f64::NAN), Outputs::default(), "above 0, up to 1"),
        (similar(0.2), Outputs::default(), "option `similar` 0.43 or more"),
        (
            by(ComparisonConfig::Similarity(SimilarityConfig {
                recall: Some(1.0),
                ..SimilarityConfig::default()
            })),
            Outputs::default(),
            "between 0 and 1",
        ),
        (
            DedupConfig { resume: Some(PathBuf::from("never-made").into()), ..options() },
            Outputs::default(),
            "`resume` needs",
        ),
        (options(), files(), "option `output` needs files"),
        (
            DedupConfig { add: Some(AddConfig::default()), ..options() },
            Outputs::default(),
            "option `add` needs option `against`",
        ),
        (
            by(ComparisonConfig::Distance(DistanceConfig { bits: Some(65), ..DistanceConfig::default() })),
            Outputs::default(),
            "option `bits` is 65",
        ),
        (by(verified(3, 1.5)), Outputs::default(), "from 0 to 1"),
    ];
    for (options, files, message) in cases {
        let error = simstore_dedup::run(&options, &one(), files, &()).unwrap_err();
        assert!(matches!(error, Error::BadArgument(_)), "{error:?}");
        assert!(error.to_string().contains(message) && !error.to_string().contains("--"), "{error}");
    }
    let missing = DedupConfig { keep: KeepRule::Newest("date".to_owned()), ..options() };
    let error = simstore_dedup::run(&missing, &one(), Outputs::default(), &()).unwrap_err();
    assert!(matches!(&error, Error::Refused(reason) if reason.starts_with("option `keep`")), "{error:?}");
    assert!(!Path::new("never-written").exists() && !Path::new("never-made").exists());
}

#[test]
fn dropped_files_leave_nothing() {
    let folder = TempFolder::new();
    let path = folder.file("a.jsonl", documents());
    let before = all_files(folder.0.path());
    let files = || Outputs {
        output: Some(folder.0.path().join("kept.jsonl")),
        pairs: Some(folder.0.path().join("pairs.csv")),
        ..Outputs::default()
    };
    let observer = CancelWhenWritten {
        folder: folder.0.path(),
        before: before.len(),
        is_written: AtomicBool::new(false),
    };
    let ended = simstore_dedup::run(&DedupConfig::default(), &inputs(&path), files(), &observer);
    assert!(matches!(ended, Err(Error::Cancelled)) && observer.is_written.into_inner(), "{ended:?}");
    assert_eq!(all_files(folder.0.path()), before);
    found(simstore_dedup::run(&DedupConfig::default(), &inputs(&path), files(), &()));
    assert_eq!(all_files(folder.0.path()).len(), before.len() + 2);
}

/// Observer that cancels a run after its output files were written, before they are renamed to their final names.
struct CancelWhenWritten<'a> {
    folder: &'a Path,
    /// Number of files in the folder before the run.
    before: usize,
    is_written: AtomicBool,
}

impl RunObserver for CancelWhenWritten<'_> {
    fn observer(&self) -> &dyn Observer {
        &()
    }

    fn before_writing(&self, _: &Report) -> Result<()> {
        assert!(!self.is_written.load(Ordering::Relaxed));
        Ok(())
    }

    fn before_publishing(&self, _: &Report) -> Result<()> {
        assert!(all_files(self.folder).len() > self.before);
        self.is_written.store(true, Ordering::Relaxed);
        Err(Error::Cancelled)
    }
}

/// Observer that cancels a run when `progress` is called for the `at`-th time.
struct StopAtCall {
    at: u64,
    calls: AtomicU64,
}

impl Observer for StopAtCall {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        match self.calls.fetch_add(1, Ordering::Relaxed) + 1 {
            calls if calls == self.at => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}

fn run(input: &Path, folder: &Path, options: &DedupConfig, observer: &dyn RunObserver) -> Result<()> {
    let files = Outputs {
        output: Some(folder.join("kept.jsonl.gz")),
        annotated: Some(folder.join("annotated.jsonl")),
        clusters: Some(folder.join(ROWS)),
        pairs: Some(folder.join("pairs.csv")),
        keep_list: Some(folder.join("keep")),
        remove_list: Some(folder.join("remove")),
        ..Outputs::default()
    };
    let report = simstore_dedup::run(options, &inputs(input), files, observer)?;
    assert_eq!(report.added_before(), None);
    Ok(())
}

/// Stops a run at its first call of the observer, another run at its second call, and so on. Checks that a stopped run
/// leaves no files, and that the same run without a stop then gives the expected files. Expects more than `least`
/// calls in a run.
fn stop_everywhere(options: impl Fn(&Path) -> DedupConfig, least: u64) {
    let folder = TempFolder::new();
    let input = folder.file("in/a.jsonl", documents());
    let first = folder.file("in/first.jsonl", "{\"id\": \"s\", \"text\": \"About ships and their sails\"}\n");
    let prepare = |at: &str| {
        let out = folder.0.path().join(at);
        fs::create_dir_all(&out).unwrap();
        let options = options(&out);
        if options.add.is_some() {
            let compare = options.comparison.clone();
            let add = DedupConfig {
                against: options.against,
                add: Some(AddConfig::default()),
                comparison: compare,
                ..DedupConfig::default()
            };
            found(simstore_dedup::run(&add, &inputs(&first), Outputs::default(), &()));
        }
        out
    };
    let results = |out: &Path| {
        let files = all_files(out).into_iter().filter(|(path, _)| path.parent() == Some(out));
        let files: BTreeMap<_, _> =
            files.map(|(path, bytes)| (path.file_name().unwrap().to_owned(), bytes)).collect();
        let store = options(out).against.first().map(|store| stored(store));
        (files, store)
    };
    let undisturbed = prepare("undisturbed");
    let empty = results(&undisturbed);
    run(&input, &undisturbed, &options(&undisturbed), &()).unwrap();
    let expected = results(&undisturbed);
    assert_eq!(expected.0.len(), 6);
    for at in 1.. {
        let out = prepare(&format!("stopped-{at}"));
        let options = options(&out);
        let stopped = run(&input, &out, &options, &StopAtCall { at, calls: AtomicU64::new(0) });
        let Err(error) = stopped else {
            assert!(at > least, "asked only {at} times");
            assert_eq!(results(&out), expected);
            return;
        };
        assert!(matches!(error, Error::Cancelled), "{at}: {error}");
        assert_eq!(results(&out), empty, "stopped at {at}");
        let hidden: Vec<_> = all_files(&out)
            .into_keys()
            .filter(|path| path.file_name().unwrap().to_string_lossy().starts_with('.'))
            .collect();
        assert!(hidden.is_empty(), "stopped at {at}: {hidden:?}");
        run(&input, &out, &options, &()).unwrap();
        assert_eq!(results(&out), expected, "after it was stopped at {at}");
    }
}

#[test]
fn a_run_that_adds_to_a_store_can_be_stopped_everywhere() {
    let options = |out: &Path| DedupConfig {
        against: vec![out.join("store")],
        add: Some(AddConfig::default()),
        comparison: ComparisonConfig::by_distance(3),
        ..DedupConfig::default()
    };
    stop_everywhere(options, 8);
}

#[test]
fn a_run_that_compares_texts_can_be_stopped_everywhere() {
    let options = |out: &Path| DedupConfig {
        cluster_by: Some(ClusterBy::Stars),
        resume: Some(out.join("parts").into()),
        comparison: verified(8, 0.5),
        ..DedupConfig::default()
    };
    stop_everywhere(options, 10);
}

#[test]
fn a_run_by_similarity_can_be_stopped_everywhere() {
    let options =
        |out: &Path| DedupConfig { resume: Some(out.join("parts").into()), ..DedupConfig::default() };
    stop_everywhere(options, 10);
}

#[test]
fn the_same_run_adds_once() {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", documents());
    let out = folder.0.path();
    let options = DedupConfig {
        against: vec![out.join("store")],
        add: Some(AddConfig::default()),
        comparison: ComparisonConfig::by_distance(3),
        ..DedupConfig::default()
    };
    run(&input, out, &options, &()).unwrap();
    let before = (stored(&out.join("store")), fs::read(out.join("keep")).unwrap());
    let files = Outputs { keep_list: Some(out.join("keep")), ..Outputs::default() };
    let again = simstore_dedup::run(&options, &inputs(&input), files, &()).unwrap();
    assert_eq!((again.counts().read, again.added_before()), (24, Some(before.0.len() as u64)));
    assert_eq!((again.clusters().count(), again.kept().count()), (0, 0));
    assert_eq!((stored(&out.join("store")), fs::read(out.join("keep")).unwrap()), before);
}

/// Observer that calls a function after the output files of a run were written, before they are renamed to their final
/// names.
struct WriteHook<F>(F);

impl<F: Fn() -> Result<()>> RunObserver for WriteHook<F> {
    fn observer(&self) -> &dyn Observer {
        &()
    }

    fn before_publishing(&self, _: &Report) -> Result<()> {
        self.0()
    }
}

/// If another run creates the store during a run, the run fails and adds nothing, because its documents were not
/// compared with the documents of the other run.
#[test]
fn a_store_that_another_run_has_made_is_not_added_to() {
    for compare in [ComparisonConfig::by_distance(3), DedupConfig::default().comparison] {
        let folder = TempFolder::new();
        let input = folder.file("a.jsonl", documents());
        let store = folder.0.path().join("store");
        let options = DedupConfig {
            against: vec![store.clone()],
            add: Some(AddConfig::default()),
            comparison: compare,
            ..DedupConfig::default()
        };
        let list = |name: &str| folder.0.path().join(name);
        let run = |name: &str, observer: &dyn RunObserver| {
            let files = Outputs { keep_list: Some(list(name)), ..Outputs::default() };
            simstore_dedup::run(&options, &inputs(&input), files, observer)
        };
        let first = WriteHook(|| run("first", &()).map(drop));
        let error = run("second", &first).unwrap_err().to_string();
        let before = stored(&store);
        assert!(!before.is_empty());
        assert!(error.contains("another run created this store"), "{error}");
        assert_eq!(stored(&store), before);
        assert!(list("first").exists() && !list("second").exists());
    }
}

/// If a run was killed before it renamed its output from a hidden name to the final name, the next run renames the output
/// before it lists its inputs, so that the output can be one of the inputs.
#[test]
fn files_of_an_interrupted_run_get_their_names_before_inputs_are_listed() {
    let folder = TempFolder::new();
    let input = folder.file("in/a.jsonl", documents());
    let (top, store) = (input.parent().unwrap(), folder.0.path().join("store"));
    let config = DedupConfig {
        against: vec![store.clone()],
        add: Some(AddConfig::default()),
        ..DedupConfig::default()
    };
    let kept = top.join("kept.jsonl");
    let outputs = Outputs { output: Some(kept.clone()), ..Outputs::default() };
    found(simstore_dedup::run(&config, &inputs(&input), outputs, &()));
    let mark = Snapshot::<u64>::open(&store).unwrap().metadata("dedup").unwrap().unwrap();
    let mark: serde_json::Value = serde_json::from_slice(&mark).unwrap();
    let hidden = top.join(format!(".kept.jsonl.{}.new", mark["run"].as_str().unwrap()));
    fs::rename(&kept, &hidden).unwrap();
    let list = folder.0.path().join("list");
    let outputs = Outputs { keep_list: Some(list.clone()), ..Outputs::default() };
    let next = found(simstore_dedup::run(&config, &inputs(top), outputs, &()));
    assert!(kept.exists() && !hidden.exists() && list.exists());
    // All documents are stored, so the documents of both files are duplicates.
    assert_eq!((next.counts().read, next.summary().kept), (24 + mark["added"].as_u64().unwrap(), 0));
}

/// The hash that identifies a run is the same as in earlier versions. Stores keep the hash of the last run that
/// added documents, so that a later version recognizes this run and does not repeat it.
#[test]
fn runs_are_identified_as_by_earlier_versions() {
    for (bits, expected) in [(64, "a901452fbc4f3d08"), (128, "899ba0a10d13944b")] {
        let folder = TempFolder::new();
        let config = DedupConfig {
            comparison: ComparisonConfig::Distance(DistanceConfig {
                max_distance: Some(3),
                bits: Some(bits),
                ..DistanceConfig::default()
            }),
            against: vec![folder.0.path().join("store")],
            add: Some(AddConfig::default()),
            ..DedupConfig::default()
        };
        let texts = ["To be, or not to be", "that is the question", "", "To be, or not to be!"];
        let texts = (0..).map(DocumentId::Number).zip(texts.map(str::to_owned));
        let report = found(simstore_dedup::run(&config, &inputs::texts(texts), Outputs::default(), &()));
        let store = &config.against[0];
        let other = || inputs::texts([(DocumentId::Number(9), "something else altogether".to_owned())]);
        // A report does not keep a store open for writing, also if the store existed before.
        let again = DedupConfig { add: None, ..config.clone() };
        let more = DedupConfig { against: vec![folder.0.path().join("more")], ..config.clone() };
        for _ in 0..2 {
            let held = found(simstore_dedup::run(&more, &other(), Outputs::default(), &()));
            each_width!(Width::from_bits(bits).unwrap(), type F => {
                drop(Store::<F>::open(&more.against[0], StoreOptions::default()).unwrap());
            });
            drop(held);
        }
        assert_eq!(found(simstore_dedup::run(&again, &other(), Outputs::default(), &())).summary().kept, 1);
        let mark = each_width!(Width::from_bits(bits).unwrap(), type F => {
            drop(Store::<F>::open(store, StoreOptions::default()).unwrap());
            Snapshot::<F>::open(store).unwrap().metadata("dedup").unwrap().unwrap()
        });
        let mark: serde_json::Value = serde_json::from_slice(&mark).unwrap();
        assert_eq!((mark["run"].as_str(), report.summary().kept), (Some(expected), 3), "{bits}");
    }
}

/// Documents without text are all kept, because they have no fingerprint and so no near-duplicates.
#[test]
fn documents_without_text_match_nothing() {
    // By similarity, punctuation is compared, too.
    for (compare, empty) in [(ComparisonConfig::by_distance(3), 3), (ComparisonConfig::by_similarity(0.8), 2)]
    {
        let texts = ["", "some words of a text", "...", "", "other words"].map(str::to_owned);
        let texts = inputs::texts((0..).map(DocumentId::Number).zip(texts));
        let config = DedupConfig { comparison: compare, ..DedupConfig::default() };
        let report = found(simstore_dedup::run(&config, &texts, Outputs::default(), &()));
        let summary = report.summary();
        assert_eq!((summary.empty, summary.clusters, summary.kept), (empty, 0, 5), "{config:?}");
        let without: Vec<usize> = report
            .kept()
            .map(Result::unwrap)
            .filter_map(|kept| kept.fingerprint.is_none().then_some(kept.document))
            .collect();
        let is_by_distance = matches!(config.comparison, ComparisonConfig::Distance(_));
        assert!(!is_by_distance || without == [0, 2, 3], "{without:?}");
    }
}
