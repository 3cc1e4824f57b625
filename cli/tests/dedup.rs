//! `simstore dedup`.

use serde_json::{Value, json};

use crate::{Random, TestFolder, fields, hex_lines, sample};

#[test]
fn clusters_of_the_samples() {
    let folder = TestFolder::new();
    for (name, documents, similar, near) in [("en.jsonl", 77, 6, 2), ("zh.jsonl", 71, 4, 4)] {
        for (args, clusters) in [(&[][..], similar), (&["--similar", "0.8"], similar), (&["-d", "3"], near)] {
            let run = folder.run(&[&["dedup", &sample(name)], args].concat());
            assert!(run.stderr.contains(&format!("{documents} documents")), "{}", run.stderr);
            assert_eq!(run.ok().matches("cluster ").count(), clusters);
        }
    }
}

#[test]
fn clusters_pairs_and_kept_documents() {
    let folder = TestFolder::new();
    let lines = [
        "0000000000000000\ta",
        "ffffffffffffffff\tfar",
        "0000000000000007\tb",
        "0000000000000000\tc",
        "000000000000003f\tby chain",
        "fffffffffffffffe\tnear far",
        "00ff00ff00ff00ff\talone",
    ];
    folder.write("a.tsv", lines.join("\n"));
    let objects = folder.run(&["dedup", "a.tsv", "--json"]).json();
    let files = folder.run(&["dedup", "a.tsv", "--json", "--output", "kept", "--pairs", "pairs"]).json();
    // With output files, only the summary is printed. Only its elapsed time may differ.
    assert_eq!(files.len(), 1);
    assert_eq!(files[0]["duplicates"], objects[2]["duplicates"]);
    let member = |id: &str, fingerprint: &str, distance: u32| -> Value {
        json!({"id": id, "fingerprint": fingerprint, "distance": distance})
    };
    assert_eq!(
        objects[..2],
        [
            json!({"cluster": 1, "size": 4, "representative": "a", "stored": false, "members": [
                member("a", "0000000000000000", 0),
                member("b", "0000000000000007", 3),
                member("c", "0000000000000000", 0),
                member("by chain", "000000000000003f", 6),
            ]}),
            json!({"cluster": 2, "size": 2, "representative": "far", "stored": false, "members": [
                member("far", "ffffffffffffffff", 0),
                member("near far", "fffffffffffffffe", 1),
            ]}),
        ]
    );
    assert_eq!(
        fields(&objects[2]),
        [
            "bad", "clustered", "clusters", "distance", "documents", "duplicates", "empty", "fingerprints",
            "kept", "largest", "other_names", "replaced", "same_id", "seconds", "short", "skipped_files",
            "text_bytes"
        ]
    );
    assert_eq!(objects[2]["duplicates"], 4);
    assert_eq!(objects[2]["kept"], 3);
    // In the first cluster, the fingerprints 0 and 3f have the largest distance.
    assert_eq!(objects[2]["largest"], json!([{"size": 4, "farthest": 6}, {"size": 2, "farthest": 1}]));
    assert_eq!(objects[2]["fingerprints"], 6);
    assert_eq!(folder.read("kept"), format!("{}\n{}\n{}\n", lines[0], lines[1], lines[6]));
    let pairs: Vec<Value> =
        folder.read("pairs").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let pair = |a: &str, b: &str, distance: u32| json!({"a": a, "b": b, "distance": distance});
    assert_eq!(
        pairs,
        [
            pair("a", "b", 3),
            pair("a", "c", 0),
            pair("far", "near far", 1),
            pair("b", "c", 3),
            pair("b", "by chain", 3),
        ]
    );
    let printed = folder.run(&["dedup", "a.tsv", "--pairs", "-"]).ok();
    assert_eq!(printed, "a\tb\t3\na\tc\t0\nfar\tnear far\t1\nb\tc\t3\nb\tby chain\t3\n");
    assert_eq!(folder.run(&["dedup", "a.tsv", "--output", "-"]).ok(), folder.read("kept"));
    assert_eq!(folder.names(), ["a.tsv", "kept", "pairs"]);
    let human = folder.run(&["dedup", "a.tsv"]).ok();
    assert!(human.starts_with("cluster 1: 4 documents\n   0  a\n   3  b\n"), "{human}");
}

#[test]
fn kept_lines_are_the_lines_of_the_input() {
    let folder = TestFolder::new();
    let lines = [
        r#"{"text": "one two three four", "id":  1, "more": [1, 2]}"#,
        r#"{ "id": 2, "text": "" }"#,
        r#"{"text": "one two three four", "id": 3}"#,
        "not JSON",
        r#"{"id": 5, "text": "\u4e00 entirely other words"}"#,
        r#"{"id": 6, "text": "!"}"#,
    ];
    folder.write("a.jsonl", lines.join("\n"));
    folder.run(&["dedup", "a.jsonl", "--output", "kept"]).fails(1, "a.jsonl:4:");
    assert_eq!(folder.names(), ["a.jsonl"]);
    folder.run(&["dedup", "a.jsonl", "--output", "kept", "--skip-bad"]).ok();
    let expected = [lines[0], lines[1], lines[4], lines[5]].map(|line| format!("{line}\n")).concat();
    assert_eq!(folder.read("kept"), expected);
    folder.run_with_input(&["dedup", "-", "--output", "piped", "--skip-bad"], lines.join("\n")).ok();
    assert_eq!(folder.read("piped"), expected);
    // The kept documents have no duplicates.
    folder.run(&["dedup", "kept", "--output", "again.jsonl"]).fails(0, "0 duplicates");
    assert_eq!(folder.read("again.jsonl"), expected);
    // A failed run creates no file and leaves an existing output unchanged.
    let names = folder.names();
    folder.run(&["dedup", "kept", "--output", "none/kept"]).fails(1, "none/kept: cannot write");
    folder.run(&["dedup", "a.jsonl", "--output", "kept", "--pairs", "pairs"]).fails(1, "a.jsonl:4:");
    assert_eq!((folder.names(), folder.read("kept")), (names, expected));
}

#[test]
fn equal_texts_without_words_are_duplicates() {
    let folder = TestFolder::new();
    let texts = ["!!!", "???", "!!!", "", " ", "", "!!! ", "\u{1f600}", "\u{1f600}"];
    let lines: Vec<String> = texts.iter().map(|text| json!({"text": text}).to_string()).collect();
    folder.write("a.jsonl", lines.join("\n"));
    let shard = ["dedup", "a.jsonl", "--resume", "parts", "--shard", "1/1"];
    folder.run(&shard).ok();
    for more in [
        &[][..],
        &["--resume", "parts"],
        &["--cluster-by", "components"],
        &["--profile", "chars-4", "-s", "1"],
    ] {
        let args = [&["dedup", "a.jsonl", "--remove-list", "-", "--json"], more].concat();
        let removed: Vec<String> = folder
            .run(&args)
            .ok()
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(removed, ["a.jsonl:3", "a.jsonl:7", "a.jsonl:9"], "{more:?}");
    }
    folder.run(&["dedup", "a.jsonl"]).fails(0, "3 documents have no text");
    folder.run(&["dedup", "a.jsonl", "--distance", "3"]).fails(0, "9 documents have no text");
    // Stored documents are compared in the same way.
    folder.run(&["dedup", "a.jsonl", "--output", "kept.jsonl"]).ok();
    folder.run(&["add", "seen", "--similar", "0.8", "kept.jsonl"]).ok();
    folder.run(&["dedup", "a.jsonl", "--against", "seen", "--output", "new"]).ok();
    assert_eq!(folder.read("new"), [3, 4, 5].map(|at| format!("{}\n", lines[at])).concat());
    assert!(folder.run(&["query", "seen", "--text", "???"]).ok().starts_with("1\t0"));
    assert_eq!(folder.run(&["query", "seen", "--text", "?"]).ok(), "");
    for (name, text) in [("a.txt", "!!!"), ("b.txt", "!!!\n"), ("c.txt", "???")] {
        folder.write(name, text);
    }
    let similarity =
        |other: &str| folder.run(&["compare", "a.txt", other, "--json"]).json()[0]["similarity"].clone();
    assert_eq!((similarity("b.txt"), similarity("c.txt")), (json!(1.0), json!(0.0)));
}

#[test]
fn kept_text_files_are_listed() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("pages")).unwrap();
    folder.write("pages/a.md", "some words of a page");
    folder.write("pages/b.txt", "some words of a page");
    folder.write("pages/c.md", "other things");
    assert_eq!(folder.run(&["dedup", "pages", "--output", "-"]).ok(), "pages/a.md\npages/c.md\n");
}

#[test]
fn the_number_of_threads_does_not_change_the_output() {
    let folder = TestFolder::new();
    let fingerprints = Random(3).clustered(3000);
    folder.write("a.hex", hex_lines(&fingerprints));
    let run = |threads: &str, distance: &str| {
        let args = ["dedup", "a.hex", "-q", "-d", distance, "--pairs", "pairs", "--output", "kept"];
        folder.run(&[&args, &["--threads", threads][..]].concat()).ok();
        let clusters = folder.run(&["dedup", "a.hex", "-q", "-d", distance, "--threads", threads]).ok();
        (clusters, folder.read("pairs"), folder.read("kept"))
    };
    for distance in [0, 3, 8] {
        let (clusters, pairs, kept) = run("1", &distance.to_string());
        for threads in ["2", "5"] {
            assert_eq!(run(threads, &distance.to_string()), (clusters.clone(), pairs.clone(), kept.clone()));
        }
    }
}

fn raw_bytes(fingerprints: &[u64]) -> Vec<u8> {
    fingerprints.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[test]
fn raw_files_and_lines_give_the_same_results() {
    let folder = TestFolder::new();
    // More fingerprints than fit into the read buffer.
    let fingerprints = Random(4).clustered(20_000);
    folder.write("a.u64", raw_bytes(&fingerprints));
    folder.write("a.hex", hex_lines(&fingerprints));
    let run = |input: &str| {
        folder.run(&["dedup", input, "-q", "--pairs", "pairs", "--output", "kept"]).ok();
        let clusters = folder.run(&["dedup", input, "-q"]).ok();
        (clusters, folder.read("pairs"), folder.read("kept"))
    };
    let from_lines = run("a.hex");
    assert!(from_lines.0.contains("cluster 100:"));
    assert_eq!(run("a.u64"), from_lines);
    let wide: Vec<u8> = fingerprints.iter().flat_map(|&value| u128::from(value).to_le_bytes()).collect();
    folder.write("a.u128", wide);
    assert_eq!(folder.run(&["dedup", "a.u128", "-q", "--bits", "128"]).ok(), from_lines.0);
}

/// A document without an id is named by its position among all inputs, including documents with ids.
#[test]
fn ids_of_mixed_inputs() {
    let folder = TestFolder::new();
    folder.write("a.u64", raw_bytes(&[0, 1 << 8, 1 << 16]));
    folder.write("b.tsv", "0000000000000001\nbad\n0000000000000002\tname\n0000000000000004\t007\n");
    folder.write("c.u64", [raw_bytes(&[8, 16]), vec![1, 2, 3]].concat());
    folder.write("d.tsv", "0000000000000020\t4000000000\n0000000000000040\n");
    let pairs = |inputs: &[&str]| {
        let args = [&["dedup", "-q", "--skip-bad", "-d", "1", "--pairs", "-"], inputs].concat();
        let lines = folder.run(&args).ok();
        lines.lines().map(|line| line.split('\t').nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["a.u64", "b.tsv", "c.u64", "d.tsv"];
    assert_eq!(pairs(&all), ["1", "2", "3", "name", "007", "7", "8", "4000000000", "11"]);
    assert_eq!(pairs(&["a.u64", "c.u64"]), ["1", "2", "3", "4"]);
    assert_eq!(pairs(&["a.u64", "d.tsv"]), ["1", "2", "4000000000", "4"]);
    folder.run(&["dedup", "c.u64"]).fails(1, "c.u64:3: the file ends within a fingerprint: 3 of 8 bytes");
}

/// Each document is either kept, removed or malformed, and the counts agree with the output files.
#[test]
fn every_document_is_accounted_for() {
    let words = ["", "!", "one two three", "one two three four", "five six seven", "eight"];
    let mut random = Random(11);
    for round in 0..6 {
        let folder = TestFolder::new();
        let (mut lines, mut bad) = (Vec::new(), 0);
        for _ in 0..200 {
            let text = words[(random.next() % 6) as usize];
            lines.push(match random.next() % 10 {
                0 => {
                    bad += 1;
                    "{\"id\": 1, \"text\": ".to_owned()
                }
                // Many documents have the id of another document, or no id.
                1 => format!("{{\"text\": \"{text}\"}}"),
                id => format!("{{\"id\": {id}, \"text\": \"{text}\"}}"),
            });
        }
        let half = lines.len() / 2;
        folder.write("a.jsonl", lines[..half].join("\n"));
        folder.write("b.jsonl", lines[half..].join("\r\n"));
        let mut args =
            vec!["dedup", "a.jsonl", "b.jsonl", "--skip-bad", "--json", "-o", "kept", "--annotated", "all"];
        args.extend(["--remove-list", "removed", "--keep-list", "list", "--pairs", "pairs"]);
        if round % 2 == 1 {
            args.extend(["--verify-text", "0.9", "--cluster-by", "stars"]);
        }
        let summary = &folder.run(&args).json()[0];
        let count = |name: &str| folder.read(name).lines().count();
        let count_of = |name: &str| summary[name].as_u64().unwrap() as usize;
        assert_eq!(count_of("documents") + count_of("bad"), lines.len());
        assert_eq!(count_of("bad"), bad);
        assert_eq!(count_of("kept") + count_of("duplicates"), count_of("documents"));
        assert_eq!((count("kept"), count("list")), (count_of("kept"), count_of("kept")));
        assert_eq!((count("removed"), count("all")), (count_of("duplicates"), count_of("documents")));
        // Each listed place (FILE:LINE) is the line of its document.
        let place =
            |line: &str| serde_json::from_str::<Value>(line).unwrap()["place"].as_str().unwrap().to_owned();
        let line_at = |place: &str| {
            let (file, line) = place.split_once(':').unwrap();
            lines[line.parse::<usize>().unwrap() - 1 + if file == "a.jsonl" { 0 } else { half }].clone()
        };
        let kept: Vec<String> = folder.read("list").lines().map(|line| line_at(&place(line))).collect();
        let written: Vec<String> = folder.read("kept").lines().map(str::to_owned).collect();
        assert_eq!(kept, written);
        let mut all: Vec<String> = folder.read("removed").lines().map(|line| line_at(&place(line))).collect();
        all.extend(kept);
        all.sort();
        let mut expected: Vec<String> = lines.into_iter().filter(|line| line.ends_with('}')).collect();
        expected.sort();
        assert_eq!(all, expected);
    }
}
