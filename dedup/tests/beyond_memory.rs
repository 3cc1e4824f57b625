//! Deduplication of more documents than fit in the memory limit. They are compared on disk, with the same
//! result as in memory.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde_json::Value;
use simstore::Result;
use simstore_corpus::{Diagnostic, Inputs, Observer};
use simstore_dedup::{
    AddConfig, ClusterBy, ComparisonConfig, DedupConfig, DistanceConfig, KeepRule, Outputs, RemovedDocument,
    Summary,
};
use simstore_io::{DocumentId, DocumentOptions};

use crate::support::inputs::{self, verified};
use crate::support::{numbers, page_data};
use crate::{Random, TempFolder};

/// Memory limit in bytes that the documents of these tests exceed.
pub(crate) const SMALL_MEMORY_BYTES: u64 = 400_000;

/// Observer that records all diagnostics.
#[derive(Default)]
pub(crate) struct DiagnosticRecorder(Mutex<Vec<String>>);

impl Observer for DiagnosticRecorder {
    fn diagnostic(&self, notice: &Diagnostic<'_>) {
        if let Diagnostic::Info(said) | Diagnostic::Warning(said) = notice {
            self.0.lock().unwrap().push((*said).to_owned());
        }
    }
}

impl DiagnosticRecorder {
    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn has_spilled(&self) -> bool {
        self.0.lock().unwrap().iter().any(|remark| remark.contains("continuing on disk"))
    }
}

/// Returns a text of random words, which is also added to `before`; sometimes a copy of a text in `before`, or an empty text
/// instead.
fn text(random: &mut Random, before: &mut Vec<String>) -> String {
    match random.below(100) {
        0 | 1 => String::new(),
        2..=4 if !before.is_empty() => before[random.below(before.len() as u64) as usize].clone(),
        _ => {
            let words: Vec<String> = (0..12).map(|_| format!("w{}", random.below(1000))).collect();
            before.push(words.join(" "));
            words.join(" ")
        }
    }
}

/// Returns lines of JSON documents with ids and dates (for `--keep newest`), and some malformed lines. `id` returns
/// the id of the document with an index; `None` if this document has no id.
fn documents(id: impl Fn(&mut Random, usize) -> Option<String>) -> String {
    let (mut random, mut before) = (Random(3), Vec::new());
    let mut lines = String::new();
    for i in 0..9000 {
        if random.below(50) == 0 {
            lines += "{\"text\": \n\n";
        }
        let id = id(&mut random, i).map_or(String::new(), |id| format!("\"id\": {id}, "));
        let text = text(&mut random, &mut before);
        let date = random.below(5);
        writeln!(lines, "{{{id}\"text\": \"{text}\", \"date\": {date}}}").unwrap();
    }
    lines
}

/// Returns the content of all files. A report page is without the number of compared pairs, which depends on the memory,
/// without warnings, and without the paths of stores.
pub(crate) fn all_files(out: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path());
    files
        .filter(|path| path.is_file())
        .map(|path| {
            let content = fs::read(&path).unwrap();
            let is_page = path.extension().is_some_and(|extension| extension == "html");
            (path.file_name().unwrap().into(), if is_page { without_pair_counts(&content) } else { content })
        })
        .collect()
}

fn without_pair_counts(page: &[u8]) -> Vec<u8> {
    let mut data = page_data(std::str::from_utf8(page).unwrap());
    data["rules"].as_array_mut().unwrap().retain(|rule| rule[0] != "compared with the stores");
    (data["warnings"], data["histogram"]["pairs"]) = (Value::Null, Value::Null);
    let is_of_pairs = |count: &Value| {
        let label = count[0].as_str().unwrap();
        label.contains("pairs of texts compared") || label.contains("below the threshold")
    };
    data["counts"].as_array_mut().unwrap().retain(|count| !is_of_pairs(count));
    data.to_string().into_bytes()
}

fn stored(store: &Path) -> Vec<(u64, u64, Option<String>)> {
    let store = simstore::Snapshot::<u64>::open(store).unwrap();
    let entries = store.iter().map(|entry| entry.unwrap());
    let mut all: Vec<_> = entries
        .map(|entry| {
            let id = entry.id.unwrap();
            (entry.fingerprint, id, store.name(id).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// Result of a run: summary, kept documents, output files, and the content of the store as (fingerprint, id, name).
type MemoryRunResult =
    (Summary, Vec<String>, BTreeMap<PathBuf, Vec<u8>>, Option<Vec<(u64, u64, Option<String>)>>);

fn run(
    input: &Path,
    out: &Path,
    options: &DedupConfig,
    observer: &DiagnosticRecorder,
) -> Result<MemoryRunResult> {
    fs::create_dir_all(out).unwrap();
    let files = Outputs {
        output: Some(out.join("kept")),
        annotated: Some(out.join("annotated")),
        clusters: Some(out.join("clusters.csv")),
        pairs: Some(out.join("pairs.csv")),
        keep_list: Some(out.join("keep")),
        remove_list: Some(out.join("remove.jsonl")),
        report: Some(out.join("report.html")),
        ..Outputs::default()
    };
    let inputs =
        Inputs::new(&[input.to_path_buf()], DocumentOptions::default()).unwrap().skip_malformed(true);
    let found = simstore_dedup::run(options, &inputs, files, observer)?;
    let kept = found.kept().map(|kept| format!("{:?}", kept.unwrap())).collect();
    let totals = numbers(&found);
    let store = options.against.first().map(|store| stored(store));
    Ok((totals, kept, all_files(out), store))
}

/// Checks that a run with little memory gives the same result as a run with much memory. The input file has this name
/// and this content. If `add` is set, the runs add documents to a store.
fn check(name: &str, content: impl AsRef<[u8]>, options: &DedupConfig, add: bool) {
    let folder = TempFolder::new();
    let input = folder.file(name, content);
    let temporary = folder.0.path().join("temporary");
    fs::create_dir(&temporary).unwrap();
    let outcome = |memory: Option<u64>, told: &DiagnosticRecorder| {
        let out = folder.0.path().join(format!("out-{memory:?}"));
        let against = if add { vec![out.join("store")] } else { Vec::new() };
        let add = add.then(AddConfig::default);
        let options = DedupConfig {
            memory,
            temporary_folder: Some(temporary.clone()),
            against,
            add,
            ..options.clone()
        };
        run(&input, &out, &options, told).unwrap()
    };
    let (with_all, with_little) = (DiagnosticRecorder::default(), DiagnosticRecorder::default());
    let expected = outcome(None, &with_all);
    let little = outcome(Some(SMALL_MEMORY_BYTES), &with_little);
    assert!(!with_all.has_spilled() && with_little.has_spilled(), "{:?}", with_little.0);
    assert!(expected.0.clusters > 10 && expected.2.len() == 7);
    assert_eq!(little.0, expected.0, "{options:?}");
    assert!(little == expected, "{options:?}");
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
}

#[test]
fn documents_are_found_and_written_the_same() {
    let options = || DedupConfig { comparison: ComparisonConfig::by_distance(2), ..DedupConfig::default() };
    let keep = |keep| DedupConfig { keep, ..options() };
    let names = documents(|_, i| Some(format!("\"d{i}\"")));
    check("a.jsonl", &names, &keep(KeepRule::Longest), false);
    check("a.jsonl", &names, &options(), true);
    let numbers = documents(|_, i| Some((i * 7).to_string()));
    check("a.jsonl", &numbers, &keep(KeepRule::SmallestId), true);
    check("a.jsonl", documents(|_, _| None), &keep(KeepRule::Newest("date".to_owned())), false);
    // Repeated ids, and numbers mixed with names.
    let mixed = |random: &mut Random, i: usize| match (random.below(3), i) {
        (0, _) => Some(random.below(500).to_string()),
        (1, 4000..) => Some(format!("\"{}\"", random.below(500))),
        _ => None,
    };
    let wide = ComparisonConfig::Distance(DistanceConfig {
        max_distance: Some(2),
        bits: Some(128),
        ..DistanceConfig::default()
    });
    check("a.jsonl", documents(mixed), &DedupConfig { comparison: wide, ..options() }, false);
}

#[test]
fn texts_are_compared_the_same() {
    let names = documents(|_, i| Some(format!("\"d{i}\"")));
    let options = DedupConfig { comparison: verified(3, 0.5), ..DedupConfig::default() };
    check("a.jsonl", &names, &options, false);
    check(
        "a.jsonl",
        &names,
        &DedupConfig { cluster_by: Some(simstore_dedup::ClusterBy::Stars), ..options },
        false,
    );
}

#[test]
fn fingerprints_are_found_and_written_the_same() {
    let mut random = Random(9);
    let mut values: Vec<u64> = Vec::new();
    for _ in 0..20_000 {
        let value = match random.below(50) {
            0 if !values.is_empty() => values[random.below(values.len() as u64) as usize] ^ random.below(3),
            _ => random.next(),
        };
        values.push(value);
    }
    let options = DedupConfig { comparison: ComparisonConfig::by_distance(1), ..DedupConfig::default() };
    let raw: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    check("a.u64", raw, &options, false);
    let lines = |id: &dyn Fn(usize) -> String| -> String {
        values.iter().enumerate().map(|(i, value)| format!("{value:016x}{}\n", id(i))).collect()
    };
    check("a.hex", lines(&|_| String::new()), &options, false);
    check("a.tsv", lines(&|i| format!("\tx{}", i / 2)), &options, false);
    check("a.tsv", lines(&|i| format!("\t{}", 100_000 - i)), &options, true);
}

#[test]
fn documents_in_memory_may_be_too_many_too() {
    let folder = TempFolder::new();
    let given = || {
        let value = |i: u64| Random(i % 19_500).next();
        (0..20_000).map(move |i| (DocumentId::Number(i % 15_000), value(i)))
    };
    let run = |memory| {
        let told = DiagnosticRecorder::default();
        let temporary = Some(folder.0.path().to_path_buf());
        let options = DedupConfig {
            comparison: ComparisonConfig::by_distance(1),
            memory,
            temporary_folder: temporary,
            ..DedupConfig::default()
        };
        let found =
            simstore_dedup::run(&options, &inputs::values(given()), Outputs::default(), &told).unwrap();
        assert_eq!(told.has_spilled(), memory.is_some());
        let clusters: Vec<String> =
            found.clusters().map(|cluster| format!("{:?}", cluster.unwrap())).collect();
        (clusters, found.summary().repeated_ids)
    };
    assert!(run(Some(SMALL_MEMORY_BYTES)) == run(None));
}

/// If 20,000 documents have only 60 distinct fingerprints, all near each other, a run with little memory gives the
/// same result as a run with much memory.
#[test]
fn however_many_are_near_others_it_is_done() {
    for cluster_by in [ClusterBy::Components, ClusterBy::Stars] {
        let run = |memory| {
            let given = (0..20_000).map(|i| (DocumentId::Number(i), 1_u64 << (i % 60)));
            let options = DedupConfig {
                comparison: ComparisonConfig::by_distance(2),
                memory,
                cluster_by: Some(cluster_by),
                ..DedupConfig::default()
            };
            let found =
                simstore_dedup::run(&options, &inputs::values(given), Outputs::default(), &()).unwrap();
            let mut removed = Vec::new();
            let visit = &mut |one: &RemovedDocument<'_>| {
                removed.push((one.document, one.duplicate_of, one.distance));
                Ok(())
            };
            found.visit_removed(visit).unwrap();
            assert_eq!(found.summary().duplicates, 19_999);
            removed
        };
        assert!(run(Some(SMALL_MEMORY_BYTES)) == run(None));
    }
}
