//! `dedup --sample-pairs`: its output, and the options that it cannot be used with.

use serde_json::{Value, json};

use crate::TestFolder;

/// Creates a folder with six documents: a text, copies of it with 0 to 4 changed words, and an unrelated one.
fn folder() -> TestFolder {
    let folder = TestFolder::new();
    // The text has 40 words, so it has 38 shingles. Each changed word replaces three shingles.
    let text =
        |changed: usize| -> String {
            (0..40)
                .map(|at| {
                    if at % 10 == 5 && at / 10 < changed { format!("new{at} ") } else { format!("word{at} ") }
                })
                .collect()
        };
    let texts = [text(0), text(1), text(2), text(0), text(4), "something else altogether".to_owned()];
    folder.write("a.jsonl", texts.map(|text| json!({"text": text}).to_string()).join("\n"));
    folder
}

/// Runs `dedup --json` with these arguments. Returns the histogram and the sampled pairs.
fn sample(args: &[&str]) -> (Value, Vec<Value>) {
    let mut objects = folder().run(&[&["dedup", "a.jsonl", "--json"], args].concat()).json();
    let pairs = objects.split_off(1);
    (objects.remove(0), pairs)
}

#[test]
fn a_histogram_and_pairs_on_both_sides_of_the_threshold() {
    let (histogram, pairs) = sample(&["--sample-pairs=20"]);
    assert_eq!((&histogram["threshold"], &histogram["documents"]), (&json!(0.8), &json!(6)));
    let bins = histogram["bins"].as_array().unwrap();
    let sum = |field: &str| bins.iter().map(|bin| bin[field].as_u64().unwrap()).sum::<u64>();
    // Four distinct texts have 0, 1, 2 and 4 changed words, so there are six pairs. Jaccard similarities by changed
    // words: 0 and 1: 35/41, 0 and 2: 32/44, 0 and 4: 26/50, 1 and 2: 35/41, 1 and 4: 29/47, 2 and 4: 32/44.
    let jaccards: [f64; 6] = [35.0 / 41.0, 32.0 / 44.0, 26.0 / 50.0, 35.0 / 41.0, 29.0 / 47.0, 32.0 / 44.0];
    assert_eq!(sum("pairs"), jaccards.len() as u64, "{histogram}");
    assert_eq!(sum("duplicates"), 4, "{histogram}");
    let last = bins.last().unwrap();
    assert_eq!((&last["from"], &last["duplicates"], &last["pairs"]), (&json!(1.0), &json!(1), &json!(0)));
    let at_threshold = bins.iter().find(|bin| bin["from"] == json!(0.8)).unwrap();
    assert_eq!(at_threshold["removed_at_most"], json!(3), "{histogram}");
    let mut expected = jaccards.to_vec();
    expected.sort_by(|a, b| b.total_cmp(a));
    let similarities: Vec<f64> = pairs.iter().map(|pair| pair["similarity"].as_f64().unwrap()).collect();
    assert_eq!(similarities, expected);
    assert_eq!(pairs[0]["a"], json!("a.jsonl:1"));
    assert_eq!(pairs[0]["differences"][0]["b"], json!("new5"));
    // A sample of two pairs has one from the nearest non-empty bin on each side of the threshold.
    let (_, pairs) = sample(&["--sample-pairs=2"]);
    let similarities: Vec<f64> = pairs.iter().map(|pair| pair["similarity"].as_f64().unwrap()).collect();
    assert_eq!(similarities, [35.0 / 41.0, 32.0 / 44.0]);
    assert_eq!(sample(&["--sample-pairs"]).1.len(), 6);
    assert_eq!(sample(&["--sample-pairs=0"]).1.len(), 0);
}

#[test]
fn the_text_output_has_the_threshold_and_the_differences() {
    let shown = folder().run(&["dedup", "a.jsonl", "--sample-pairs=2", "--similar", "0.75"]).ok();
    let lines: Vec<&str> = shown.lines().collect();
    let rule =
        lines.iter().position(|line| line.contains("--similar 0.75")).unwrap_or_else(|| panic!("{shown}"));
    assert!(lines[rule - 1].contains("0.75 to 0.80") && lines[rule + 1].contains("0.70 to 0.75"), "{shown}");
    assert!(shown.contains("similarity 0.853: duplicate at 0.75"), "{shown}");
    assert!(shown.contains("similarity 0.727: not a duplicate at 0.75"), "{shown}");
    assert!(shown.contains("[-word") && shown.contains("{+new"), "{shown}");
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let folder = folder();
    folder.write("a.hex", "0000000000000001\n");
    for args in [
        &["a.jsonl", "--sample-pairs", "--distance", "3"][..],
        &["a.jsonl", "--sample-pairs", "--output", "b.jsonl"],
        &["a.jsonl", "--sample-pairs", "--against", "store"],
        &["a.jsonl", "--sample-pairs", "--profile", "words-2"],
        &["a.jsonl", "--sample-pairs", "4"],
        &["a.jsonl", "--sample-pairs=10001"],
        &["a.jsonl", "--sample-pairs=many"],
        &["a.hex", "--sample-pairs"],
    ] {
        let run = folder.run(&[&["dedup"], args].concat());
        assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
        assert!(run.stdout.is_empty(), "{args:?}");
    }
    assert_eq!(folder.names(), ["a.hex", "a.jsonl"]);
    folder.run(&["dedup", "a.jsonl", "--sample-pairs", "4"]).fails(2, "write --sample-pairs=4");
}
