//! `simstore fingerprint`, `plan` and `compression`.

use serde_json::json;

use crate::{Random, TestFolder, fields, sample};

#[test]
fn lines_of_fingerprints() {
    let folder = TestFolder::new();
    folder.write(
        "a.jsonl",
        "{\"url\": \"u\", \"title\": \"A rose\", \"body\": \"is a rose\"}\n{\"url\": \"v\", \"body\": 7}\n",
    );
    let args =
        ["fingerprint", "a.jsonl", "--id-field", "url", "--text-field", "title", "--text-field", "body"];
    folder.run(&args).fails(1, "a.jsonl:2: the text field `body` is not a string");
    let line = folder.run(&[&args, &["--skip-bad"][..]].concat()).ok();
    assert!(line.len() == 19 && line.ends_with("\tu\n"), "{line}");
    let wide = folder.run(&[&args, &["--skip-bad", "--bits", "128"][..]].concat()).ok();
    assert_eq!(wide.len(), 35);
    let object = &folder.run(&[&args, &["--skip-bad", "--json"][..]].concat()).json()[0];
    assert_eq!(fields(object), ["features", "fingerprint", "id"]);
    assert_eq!((&object["id"], &object["features"]), (&json!("u"), &json!(3)));
}

#[test]
fn a_broken_line_on_standard_input() {
    let folder = TestFolder::new();
    folder.run_with_input(&["fingerprint", "-"], "{\"text\": \"a\"}\n{").fails(1, "-:2:");
}

#[test]
fn plans() {
    let folder = TestFolder::new();
    let plans = folder.run(&["plan", "--count", "8e9", "--distance", "3", "--json"]).json();
    assert_eq!(
        fields(&plans[0]),
        [
            "auto", "bytes", "bytes_per_fingerprint", "candidates", "flips", "nanoseconds", "paper", "plan",
            "prefix_bits_max", "prefix_bits_min", "probes", "reads", "tables"
        ]
    );
    assert_eq!(plans.iter().filter(|plan| plan["auto"] == true).count(), 1);
    let paper: Vec<&str> = plans
        .iter()
        .filter(|plan| plan["paper"] == true)
        .map(|plan| plan["plan"].as_str().unwrap())
        .collect();
    assert_eq!(paper, ["paper-4", "paper-10", "paper-16", "paper-20"]);
    let table = folder.run(&["plan", "--count", "1_000_000", "-d", "32", "--bits", "128"]).ok();
    assert!(table.starts_with("1,000,000 fingerprints of 128 bits, distance 32"), "{table}");
    for medium in ["memory", "ssd", "disk"] {
        for codec in ["first-difference", "gap", "elias-fano", "all-differences", "prefix-lines"] {
            folder.run(&["plan", "--count", "1", "--medium", medium, "--codec", codec]).ok();
        }
    }
}

#[test]
fn compression_of_random_fingerprints() {
    let folder = TestFolder::new();
    let mut random = Random(5);
    let raw: Vec<u8> = (0..50_000).flat_map(|_| random.next().to_le_bytes()).collect();
    folder.write("a.u64", [&raw[..], &raw[..800]].concat());
    let rows = folder.run(&["compression", "a.u64", "--json", "--level", "3"]).json();
    assert_eq!(
        fields(&rows[0]),
        ["bits_per_fingerprint", "bytes", "distinct", "fingerprints", "method", "ratio_to_floor"]
    );
    assert_eq!((&rows[0]["fingerprints"], &rows[0]["distinct"]), (&json!(50_100), &json!(50_000)));
    let bits = |method: &str| {
        let row = rows.iter().find(|row| row["method"] == method).unwrap();
        row["bits_per_fingerprint"].as_f64().unwrap()
    };
    // Rows are sorted by size. The first one is the lower bound for random fingerprints, which no method reaches.
    assert_eq!(rows[0]["method"], "lower bound (random)");
    let over = |method: &str| bits(method) - bits("lower bound (random)");
    assert!((0.0..0.15).contains(&over("Rice-coded gaps")), "{}", over("Rice-coded gaps"));
    assert!((0.3..0.7).contains(&over("Elias-Fano")), "{}", over("Elias-Fano"));
    for method in [
        "simstore gap",
        "simstore first-difference",
        "simstore elias-fano",
        "simstore all-differences",
        "simstore prefix-lines",
        "zstd -3",
    ] {
        assert!(bits(method) > bits("lower bound (random)") && bits(method) < 66.0, "{method}");
    }
    assert_eq!(bits("raw"), 64.0);
    folder.write("none.hex", "");
    folder.run(&["compression", "none.hex"]).fails(1, "no fingerprint");
    folder.run(&["compression", &sample("zh.jsonl")]).ok();
}
