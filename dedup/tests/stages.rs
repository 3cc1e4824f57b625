//! Tests that a run that was stopped after any pipeline stage can be resumed from the saved results of the completed
//! stages.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use simstore::{Error, Result};
use simstore_corpus::{Diagnostic, Inputs, Observer, StageProgress};
use simstore_dedup::{
    ClusterBy, ComparisonConfig, DedupConfig, DistanceConfig, KeepRule, Outputs, RunObserver, Summary,
};
use simstore_io::DocumentOptions;
use xxhash_rust::xxh3::xxh3_64;

use crate::beyond_memory::{DiagnosticRecorder, SMALL_MEMORY_BYTES, all_files};
use crate::support::inputs::verified;
use crate::support::numbers;
use crate::{Random, TempFolder};

/// Observer that stops a run as soon as the folder has `stages` stage files.
struct StopAfterStages<'a> {
    folder: &'a Path,
    stages: usize,
    told: DiagnosticRecorder,
}

impl Observer for StopAfterStages<'_> {
    fn progress(&self, _: &StageProgress) -> ControlFlow<()> {
        match stages(self.folder).len() < self.stages {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        }
    }
    fn diagnostic(&self, notice: &Diagnostic<'_>) {
        self.told.diagnostic(notice);
    }
}

fn stages(folder: &Path) -> Vec<PathBuf> {
    let Ok(files) = fs::read_dir(folder) else { return Vec::new() };
    let files = files.map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.to_string_lossy().ends_with(".stage.zst")).collect();
    files.sort();
    files
}

/// Returns lines of JSON documents: unrelated texts, small groups of similar texts, and many texts of one template.
fn documents() -> String {
    let mut random = Random(7);
    let mut lines = String::new();
    for at in 0..3000 {
        let words: Vec<String> = match at % 10 {
            0..2 => (0..40).map(|word| format!("t{}w{word}", random.below(150))).collect(),
            2..5 => {
                let topic = random.below(400);
                let word = |word| match random.below(60) {
                    0 => format!("x{at}"),
                    _ => format!("t{topic}w{word}"),
                };
                (0..40).map(word).collect()
            }
            5 => (0..50)
                .map(|word| if word % 20 == 0 { format!("name{at}") } else { format!("w{word}") })
                .collect(),
            _ => (0..40).map(|_| format!("r{}", random.below(100_000))).collect(),
        };
        lines += &format!(
            "{}\n",
            json!({"id": format!("d{at}"), "text": words.join(" "), "date": random.below(9)})
        );
    }
    lines
}

type StageRunResult = (Summary, std::collections::BTreeMap<PathBuf, Vec<u8>>);

fn run(
    input: &Path,
    out: &Path,
    options: &DedupConfig,
    observer: &dyn RunObserver,
) -> Result<StageRunResult> {
    fs::create_dir_all(out).unwrap();
    let files = Outputs {
        output: Some(out.join("kept")),
        annotated: Some(out.join("annotated")),
        clusters: Some(out.join("clusters.csv")),
        pairs: options.pairs.then(|| out.join("pairs.csv")),
        remove_list: Some(out.join("remove.jsonl")),
        report: Some(out.join("report.html")),
        reasons: true,
        ..Outputs::default()
    };
    let inputs = Inputs::new(&[input.to_path_buf()], DocumentOptions::default()).unwrap();
    let mut totals = numbers(&simstore_dedup::run(options, &inputs, files, observer)?);
    (totals.verified, totals.rejected) = (None, None);
    Ok((totals, all_files(out)))
}

fn cases() -> Vec<(usize, DedupConfig)> {
    let components = Some(ClusterBy::Components);
    let longest = DedupConfig { keep: KeepRule::Longest, ..DedupConfig::default() };
    vec![
        (2, DedupConfig::default()),
        (2, DedupConfig { comparison: ComparisonConfig::by_similarity(0.6), ..longest.clone() }),
        (2, DedupConfig { pairs: true, cluster_by: components, ..DedupConfig::default() }),
        (
            2,
            DedupConfig {
                keep: KeepRule::None,
                comparison: ComparisonConfig::by_similarity(0.7),
                ..DedupConfig::default()
            },
        ),
        (1, DedupConfig { comparison: ComparisonConfig::by_distance(3), ..DedupConfig::default() }),
        (
            1,
            DedupConfig {
                comparison: ComparisonConfig::by_distance(5),
                cluster_by: Some(ClusterBy::Stars),
                ..longest
            },
        ),
        (1, DedupConfig { comparison: verified(6, 0.4), pairs: true, ..DedupConfig::default() }),
        (
            1,
            DedupConfig {
                comparison: ComparisonConfig::Distance(DistanceConfig {
                    max_distance: Some(2),
                    bits: Some(128),
                    ..DistanceConfig::default()
                }),
                pairs: true,
                ..DedupConfig::default()
            },
        ),
    ]
}

#[test]
fn a_run_that_is_stopped_after_a_stage_carries_on() {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", documents());
    for (number, (count, options)) in cases().into_iter().enumerate() {
        let path = |name: String| folder.0.path().join(format!("{number}-{name}"));
        let expected = run(&input, &path("plain".to_owned()), &options, &()).unwrap();
        assert!(expected.0.clusters > 20, "{options:?}: {:?}", expected.0);
        for memory in [None, Some(SMALL_MEMORY_BYTES)] {
            for after in 1..=count {
                let kept = path(format!("kept-{memory:?}-{after}"));
                let temporary = Some(folder.0.path().to_path_buf());
                let options = DedupConfig {
                    memory,
                    temporary_folder: temporary,
                    resume: Some(kept.clone().into()),
                    ..options.clone()
                };
                let out = path(format!("out-{memory:?}-{after}"));
                let stops =
                    StopAfterStages { folder: &kept, stages: after, told: DiagnosticRecorder::default() };
                let stopped = run(&input, &out, &options, &stops);
                assert!(matches!(stopped, Err(Error::Cancelled)), "{after}: {options:?}");
                assert_eq!(stages(&kept).len(), after, "{options:?}");
                let told = DiagnosticRecorder::default();
                let carried_on = run(&input, &out, &options, &told).unwrap();
                assert!(carried_on == expected, "{after}: {options:?}");
                assert_eq!(stages(&kept).len(), count, "{options:?}");
                let taken = told.all().iter().filter(|said| said.contains(": reusing ")).count();
                assert_eq!(taken, 1, "{:?}", told.all());
            }
        }
    }
}

/// Changes the decompressed content of a stage file, and writes the file again with a valid checksum.
fn forge(stage: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = zstd::decode_all(&fs::read(stage).unwrap()[..]).unwrap();
    change(&mut bytes);
    let frame = zstd::encode_all(&bytes[..], 1).unwrap();
    let seal = [&[0x50, 0x2a, 0x4d, 0x18, 8, 0, 0, 0], &xxh3_64(&frame).to_le_bytes()[..]].concat();
    fs::write(stage, [frame, seal].concat()).unwrap();
}

#[test]
fn impossible_stage_results_are_reported_and_made_again() {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", documents());
    for (number, (_, options)) in cases().into_iter().enumerate() {
        let kept = folder.0.path().join(format!("kept-{number}"));
        let options = DedupConfig { resume: Some(kept.clone().into()), ..options };
        let out = folder.0.path().join(format!("out-{number}"));
        let expected = run(&input, &out, &options, &()).unwrap();
        let mut random = Random(number as u64);
        let damages: [fn(&mut Vec<u8>, u64); 5] = [
            |bytes, _| bytes.truncate(bytes.len() - 3),
            |bytes, _| bytes.push(7),
            |bytes, at| bytes.truncate(at as usize % bytes.len()),
            |bytes, _| {
                let rows = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 9;
                bytes[rows..rows + 8].fill(0xff);
            },
            |bytes, _| {
                let count = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
                bytes[count..count + 8].fill(0xff);
            },
        ];
        for damage in damages {
            for stage in stages(&kept) {
                let at = random.next();
                forge(&stage, |bytes| damage(bytes, at));
            }
            let told = DiagnosticRecorder::default();
            assert!(run(&input, &out, &options, &told).unwrap() == expected, "{options:?}");
            assert!(told.all().iter().any(|said| said.contains("computing it again")), "{:?}", told.all());
        }
        // A wrong checksum.
        for stage in stages(&kept) {
            let mut bytes = fs::read(&stage).unwrap();
            let at = random.index(bytes.len());
            bytes[at] ^= 1;
            fs::write(&stage, bytes).unwrap();
        }
        assert!(run(&input, &out, &options, &()).unwrap() == expected, "{options:?}");
        // Other documents have other stage files.
        let other = folder.file("a.jsonl", documents().replace("d2999", "d2998"));
        let other = Inputs::new(&[other], DocumentOptions::default()).unwrap();
        simstore_dedup::run(&options, &other, Outputs::default(), &()).unwrap();
        folder.file("a.jsonl", documents());
    }
}

#[test]
fn a_histogram_of_other_pairs_is_reported_and_made_again() {
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", documents());
    let kept = folder.0.path().join("kept");
    let options = DedupConfig { resume: Some(kept.clone().into()), ..DedupConfig::default() };
    let out = folder.0.path().join("out");
    let expected = run(&input, &out, &options, &()).unwrap();
    let mut forged = 0;
    for stage in stages(&kept) {
        forge(&stage, |bytes| {
            let header = bytes.iter().position(|&byte| byte == b'\n').unwrap();
            if String::from_utf8_lossy(&bytes[..header]).contains("\"representatives\"") {
                // The low byte of the last count.
                let last = bytes.len() - 8;
                bytes[last] ^= 1;
                forged += 1;
            }
        });
    }
    assert_eq!(forged, 1);
    let told = DiagnosticRecorder::default();
    assert!(run(&input, &out, &options, &told).unwrap() == expected);
    assert!(told.all().iter().any(|said| said.contains("a histogram that cannot be")), "{:?}", told.all());
}

/// The examples in `format-spec/stage.md` and `format-spec/part.md` are the files that a run writes for the documents there.
#[test]
fn the_pages_show_written_files() {
    let page = |name: &str| {
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../format-spec").join(name)).unwrap()
    };
    let blocks = |page: &str| -> Vec<String> {
        let blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
        blocks.map(str::to_owned).collect()
    };
    let stage_page = page("stage.md");
    let [documents, candidates, representatives] = &blocks(&stage_page)[..] else { panic!("three blocks") };
    let folder = TempFolder::new();
    let input = folder.file("a.jsonl", documents.clone());
    let inputs = Inputs::new(std::slice::from_ref(&input), DocumentOptions::default()).unwrap();
    let kept = folder.0.path().join("kept");
    let options = DedupConfig { resume: Some(kept.clone().into()), ..DedupConfig::default() };
    simstore_dedup::run(&options, &inputs, Outputs::default(), &()).unwrap();
    let decompressed = |path: &Path| zstd::decode_all(&fs::read(path).unwrap()[..]).unwrap();

    let quoted: Vec<Vec<u8>> = (stage_page.split("```text\n").skip(1))
        .map(|rest| {
            let lines = rest.split("```").next().unwrap().lines();
            let bytes = lines.flat_map(|line| line.split_once(" | ").unwrap().0.split_whitespace());
            bytes.map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect()
        })
        .collect();
    let mut expected: Vec<Vec<u8>> = [candidates, representatives]
        .into_iter()
        .zip(&quoted)
        .map(|(header, tables)| [header.as_bytes(), tables].concat())
        .collect();
    let mut found: Vec<Vec<u8>> = stages(&kept).iter().map(|path| decompressed(path)).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);

    let part = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
    let part = part.into_iter().find(|path| path.to_string_lossy().ends_with(".part.zst")).unwrap();
    // The path and the time of the file differ.
    let path = serde_json::to_string(&input.to_str().unwrap()).unwrap();
    let part = String::from_utf8(decompressed(&part)).unwrap().replace(&path, "\"a.jsonl\"");
    let without_time = |part: &str| -> Vec<String> {
        part.lines().filter(|line| !line.starts_with("{\"modified\"")).map(str::to_owned).collect()
    };
    assert_eq!(without_time(&part), without_time(&blocks(&page("part.md"))[0]));
}
