//! `simstore compare`.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::{TestFolder, sample};

const ID_A: &str = "docs/dmx/multiply-dmx.md";
const ID_B: &str = "docs/dmx/subtract-dmx.md";

fn compare(folder: &TestFolder, args: &[&str]) -> Value {
    serde_json::from_str(&folder.run(&[&["compare", "--json"], args].concat()).ok()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// `compare` prints the same similarity and distance as `dedup`.
#[test]
fn the_similarity_and_the_distance_equal_those_of_dedup() {
    let folder = TestFolder::new();
    let (en, zh) = (sample("en.jsonl"), sample("zh.jsonl"));
    for (option, threshold, field) in [("--similar", "0.6", "similarity"), ("--distance", "8", "distance")] {
        let tables = folder.run(&["dedup", "-q", &en, &zh, option, threshold, "--pairs", "-", "--json"]).ok();
        let pairs: Vec<Value> = tables.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let pairs: Vec<&Value> = pairs.iter().filter(|pair| pair.get("a").is_some()).collect();
        assert!(pairs.len() > 5);
        for pair in pairs.iter().step_by(pairs.len().div_ceil(6)) {
            let comparison =
                compare(&folder, &[&en, &zh, "--id", text(&pair["a"]), "--id", text(&pair["b"])]);
            assert_eq!(comparison[field], pair[field], "{pair}");
            assert_eq!((&comparison["a"]["id"], &comparison["b"]["id"]), (&pair["a"], &pair["b"]));
        }
    }
}

/// Without the reported differences, both texts are equal except for white space.
#[test]
fn texts_without_their_differences_are_equal() {
    let folder = TestFolder::new();
    let texts: HashMap<String, String> = sample_texts("zh.jsonl");
    let comparison = compare(&folder, &[&sample("zh.jsonl"), "--id", ID_A, "--id", ID_B]);
    let differences = comparison["differences"].as_array().unwrap();
    assert!(differences.len() > 3);
    let rest = |side: &str, id: &str| {
        let (mut rest, mut kept) = (texts[id].as_str(), String::new());
        for difference in differences {
            let piece = text(&difference[side]);
            let line = difference[&format!("line_{side}")].as_u64().unwrap() as usize;
            // Skip to the first occurrence of the difference at or after its line.
            let done = texts[id].len() - rest.len();
            let start: usize = texts[id].split_inclusive('\n').take(line - 1).map(str::len).sum();
            let from = start.saturating_sub(done);
            let at = from + rest[from..].find(piece).unwrap();
            kept.push_str(&rest[..at]);
            rest = &rest[at + piece.len()..];
        }
        kept.push_str(rest);
        kept.split_whitespace().collect::<String>()
    };
    assert_eq!(rest("a", ID_A), rest("b", ID_B));
}

/// Returns the texts of a sample file by id.
fn sample_texts(name: &str) -> HashMap<String, String> {
    let lines = std::fs::read_to_string(sample(name)).unwrap();
    let rows = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    rows.map(|row| (text(&row["id"]).to_owned(), text(&row["text"]).to_owned())).collect()
}

#[test]
fn two_files_side_by_side() {
    let folder = TestFolder::new();
    let words: Vec<String> = (0..60).map(|at| format!("w{at}")).collect();
    let (mut a, mut b) = (words.clone(), words.clone());
    a[20] = "here".to_owned();
    b[20] = "there and\nback".to_owned();
    b[50].push_str(" [x]");
    folder.write("a.md", a.join(" "));
    folder.write("b.md", b.join(" "));
    let shown = folder.run(&["compare", "a.md", "b.md"]).ok();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].starts_with("A: a.md  (a.md:1, 58 shingles)"), "{shown}");
    assert!(lines[1].starts_with("B: b.md  (b.md:1, 61 shingles)"), "{shown}");
    // The changed word removes three shingles and adds five; the added word removes two and adds three.
    assert_eq!(lines[2], "similarity 0.803: 53 of 66 distinct shingles in both");
    assert!(lines[3].starts_with("distance ") && lines[3].ends_with(" of 64 bits"), "{shown}");
    let a = "w14 w15 w16 w17 w18 w19 [-here-] w21 w22 w23 w24 w25 w26";
    let b = "w14 w15 w16 w17 w18 w19 {+there and back+} w21 w22 w23";
    assert_eq!(lines[4..7], ["", &columns("A, line 1", "B, line 1"), &columns(a, b)], "{shown}");
    assert_eq!(lines[7], columns("", "w24 w25 w26"));
    let b = "w45 w46 w47 w48 w49 w50 {+[x]+} w51 w52 w53 w54 w55 w56";
    assert_eq!(
        lines[8..],
        [
            "",
            &columns("A, line 1", "B, line 2"),
            &columns("w45 w46 w47 w48 w49 w50 w51 w52 w53 w54 w55 w56", b)
        ]
    );
}

/// Returns an output line of two columns, the left one padded to 57 characters.
fn columns(left: &str, right: &str) -> String {
    format!("{left:57}  |  {right}").trim_end().to_owned()
}

/// Wide characters count as two columns. Control characters are escaped.
#[test]
fn wide_and_control_characters_keep_the_columns_aligned() {
    let folder = TestFolder::new();
    let long = "x".repeat(200);
    let text = "数据库的名称".repeat(20);
    folder.write("a.txt", format!("{text}一{text}\n\u{1b}[2J"));
    folder.write("b.txt", format!("{text}二{text} {long}"));
    let shown = folder.run(&["compare", "a.txt", "b.txt"]).ok();
    assert!(shown.contains("[-一-]") && shown.contains("{+二+}") && shown.contains("\\u{1b}"), "{shown}");
    assert!(!shown.contains('\u{1b}'));
    let display_width = |text: &str| text.chars().map(|c| if c >= '\u{1100}' { 2 } else { 1 }).sum::<usize>();
    let rows: Vec<&str> = shown.lines().skip(4).filter(|line| line.contains("  |")).collect();
    assert!(rows.len() > 5);
    for row in rows {
        let (left, right) = row.split_once("  |").unwrap();
        assert_eq!(display_width(left), 57, "{row}");
        assert!(display_width(right.trim()) <= 57, "{row}");
    }
}

#[test]
fn equal_texts_and_no_texts() {
    let folder = TestFolder::new();
    folder.write("a.txt", "To be, or not to be");
    folder.write("b.txt", "To be,\n\nor not  to be\n");
    folder.write("empty.txt", "");
    let shown = folder.run(&["compare", "a.txt", "b.txt"]).ok();
    assert!(
        shown.contains("similarity 1: ") && shown.ends_with("no differences except white space\n"),
        "{shown}"
    );
    let comparison = compare(&folder, &["a.txt", "empty.txt"]);
    assert_eq!((&comparison["distance"], &comparison["similarity"]), (&Value::Null, &json!(0.0)));
    assert_eq!(
        comparison["differences"],
        json!([{"line_a": 1, "a": "To be, or not to be", "line_b": 1, "b": ""}])
    );
    assert!(folder.run(&["compare", "a.txt", "empty.txt"]).ok().contains("no distance: "));
}

#[test]
fn which_documents_are_compared() {
    let folder = TestFolder::new();
    let lines =
        "{\"id\": 1, \"text\": \"one\"}\n{\"id\": 2, \"text\": \"two\"}\n{\"id\": 1, \"text\": \"three\"}\n";
    folder.write("some.jsonl", lines);
    let places = |args: &[&str]| {
        let comparison = compare(&folder, &[&["some.jsonl"], args].concat());
        [comparison["a"]["place"].clone(), comparison["b"]["place"].clone()]
    };
    assert_eq!(places(&["--id", "2", "--id", "1"]), ["some.jsonl:2", "some.jsonl:1"]);
    // Two documents have the same id.
    assert_eq!(places(&["--id", "1", "--id", "1"]), ["some.jsonl:1", "some.jsonl:3"]);
    let fails = |args: &[&str], code, message| {
        folder.run(&[&["compare"], args].concat()).fails(code, message);
    };
    fails(
        &["some.jsonl"],
        1,
        "the inputs hold more than two documents; compare needs exactly two: select them with --id A --id B",
    );
    fails(&["some.jsonl", "--id", "1"], 2, "compare needs --id exactly twice, found 1");
    fails(&["some.jsonl", "--id", "1", "--id", "7"], 1, "ids not found in 3 documents: 7");
    folder.write("one.txt", "one");
    fails(&["one.txt"], 1, "the inputs hold 1 document");
    folder.write("a.hex", "0000000000000001\n");
    fails(&["a.hex"], 2, "compare needs documents, but the inputs are fingerprints");
    folder.write("bad.jsonl", format!("{{\"id\": 0, \"text\": \"\"}}\n{{\n{lines}"));
    fails(&["bad.jsonl", "--id", "1", "--id", "2"], 1, "bad.jsonl:2");
    let run = folder.run(&["compare", "bad.jsonl", "--skip-bad", "--id", "1", "--id", "2"]);
    assert!(run.stderr.contains("bad.jsonl:2") && run.code == Some(0), "{}", run.stderr);
}

/// `compare` and `dedup` compare source code in the same way: punctuation counts.
#[test]
fn source_code_is_compared_as_dedup_does() {
    let folder = TestFolder::new();
    folder.write("a.c", "int a = b - c;");
    folder.write("b.c", "int a = b + c;");
    let similarity = |more: &[&str]| {
        let comparison = folder.run(&[&["compare", "--json", "a.c", "b.c"], more].concat()).json();
        comparison[0]["similarity"].as_f64().unwrap()
    };
    assert_eq!(similarity(&[]), 0.0);
    assert_eq!(similarity(&["--verify-profile", "words-3"]), 1.0);
    let run = folder.run(&["compare", "a.c", "b.c"]);
    assert!(run.stderr.contains("comparing 2 files of source code by"), "{}", run.stderr);
}
