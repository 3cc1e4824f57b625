//! `simstore query`.

use std::io::Read;

use serde_json::json;

use crate::{Random, TestFolder, hex_lines};

/// Returns the expected output of several queries, found by a plain loop over all fingerprints.
fn expected_matches(stored: &[u64], queries: &[u64], distance: u32) -> String {
    let mut lines = String::new();
    for query in queries {
        let mut matches: Vec<(u32, u64, usize)> = (0..)
            .zip(stored)
            .map(|(id, value)| ((value ^ query).count_ones(), *value, id))
            .filter(|&(bits, ..)| bits <= distance)
            .collect();
        matches.sort_unstable();
        for (bits, value, id) in matches {
            lines.push_str(&format!("{query:016x}\t{bits}\t{value:016x}\t{id}\n"));
        }
    }
    lines
}

#[test]
fn finds_what_the_plain_loop_finds() {
    let folder = TestFolder::new();
    let mut random = Random(7);
    let stored = random.clustered(4000);
    let mut queries = random.clustered(200);
    queries.extend(stored.iter().step_by(20).map(|value| value ^ 1 << (random.next() % 64)));
    folder.write("stored.hex", hex_lines(&stored));
    folder.write("queries.hex", hex_lines(&queries));
    for (store_distance, query_distance, codec) in
        [(3, 3, "first-difference"), (3, 1, "gap"), (6, 6, "elias-fano")]
    {
        let (store_distance, query_distance) = (store_distance.to_string(), query_distance.to_string());
        folder
            .run(&["build", "--force", "store", "stored.hex", "-d", &store_distance, "--codec", codec])
            .ok();
        let expected = expected_matches(&stored, &queries, query_distance.parse().unwrap());
        assert!(expected.lines().count() > queries.len() / 2);
        for threads in ["1", "2"] {
            let run =
                folder.run(&["query", "store", "queries.hex", "-d", &query_distance, "--threads", threads]);
            assert!(run.ok() == expected, "distance {query_distance}, {codec}, {threads} threads");
        }
        let piped =
            folder.run_with_input(&["query", "store", "-", "-d", &query_distance], hex_lines(&queries));
        assert!(piped.ok() == expected);
        for method in ["auto", "stream", "look-up"] {
            let args =
                ["query", "store", "queries.hex", "-d", &query_distance, "--batch", "--method", method];
            let run = folder.run(&args);
            assert!(run.stderr.contains("queries: 400, matches: "), "{}", run.stderr);
            assert!(run.ok() == expected, "distance {query_distance}, {codec}, a batch by {method}");
        }
        let json =
            |args: &[&str]| folder.run(&[&["query", "store", "queries.hex", "--json"], args].concat()).ok();
        assert!(json(&[]) == json(&["--batch", "--method", "stream"]));
    }
}

#[test]
fn wide_fingerprints() {
    let folder = TestFolder::new();
    folder.write("a.hex", "000000000000000000000000000000ff\n00000000000000000000000000000000\n");
    folder.run(&["build", "store", "a.hex", "--bits", "128", "-d", "8"]).ok();
    let matches = folder.run(&["query", "store", "00000000000000000000000000000000"]).ok();
    assert_eq!(matches, "0\t00000000000000000000000000000000\t1\n8\t000000000000000000000000000000ff\t0\n");
    folder.run(&["query", "store", "0000000000000000"]).fails(1, "expected 32 hexadecimal digits");
    folder.run(&["dump", "store", "--raw", "-o", "a.u128"]).ok();
    assert_eq!(std::fs::read(folder.path("a.u128")).unwrap()[..17], [[0; 16].as_slice(), &[0xff]].concat());
    folder.run(&["build", "again", "a.u128", "--bits", "128"]).ok();
    folder.run(&["compression", "a.u128", "--bits", "128"]).ok();
}

#[test]
fn lines_of_several_queries_begin_with_the_query() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\nf000000000000000\n");
    folder.run(&["build", "store", "a.hex"]).ok();
    let query = |args: &[&str]| folder.run(&[&["query", "store"], args].concat());
    assert_eq!(query(&["0000000000000000"]).ok(), "1\t0000000000000001\t0\n");
    let both = "0000000000000000\t1\t0000000000000001\t0\nF000000000000000\t0\tf000000000000000\t1\n";
    assert_eq!(query(&["0000000000000000", "F000000000000000"]).ok(), both.to_lowercase());
    assert_eq!(query(&["00ff00ff00ff00ff"]).ok(), "");
    folder.write("q", "0000000000000000\tmine\n");
    assert_eq!(query(&["q"]).ok(), "0000000000000000\t1\t0000000000000001\t0\n");
    folder.write("q", "0000000000000000\nzz\n");
    query(&["q"]).fails(1, "q:2:");
    assert_eq!(query(&["q", "--skip-bad"]).ok(), "0000000000000000\t1\t0000000000000001\t0\n");
    query(&["123"]).fails(1, "123: neither a fingerprint (16 hexadecimal digits) nor a file");
    query(&["00000000000000000000000000000000"]).fails(1, "expected 16 hexadecimal digits");
    query(&["0000000000000000", "-d", "4"]).fails(1, "raise it with `simstore compact --distance 4`");
    query(&["-", "--file", "-"]).fails(2, "only once");
}

#[test]
fn texts_are_fingerprinted_as_the_documents_were() {
    let folder = TestFolder::new();
    let text = "A text of some words, about which it is asked again later on; chars or words, it is found.";
    folder.write("a.jsonl", json!({"id": "the text", "text": text}).to_string());
    folder.write("a.txt", text);
    for profile in ["auto", "chars-4", "words-1,plain-text"] {
        folder.run(&["build", "--force", "store", "a.jsonl", "--profile", profile]).ok();
        for args in [["--text", text], ["--file", "a.txt"]] {
            let matches = folder.run(&["query", "store", args[0], args[1]]).ok();
            assert!(matches.starts_with("0\t") && matches.ends_with("\tthe text\n"), "{profile}: {matches}");
        }
        let matches = folder.run_with_input(&["query", "store", "--file", "-", "--json"], text).json();
        assert_eq!((&matches[0]["name"], &matches[0]["id"]), (&json!("the text"), &json!(0)));
    }
    folder
        .run(&["query", "store", "--text", "?!"])
        .fails(1, "the text has no fingerprint, because it has no letters or digits");
    folder.run(&["query", "store", "--file", "none.txt"]).fails(1, "none.txt: cannot open");
}

#[test]
fn a_text_may_begin_with_a_hyphen() {
    let folder = TestFolder::new();
    let texts = [
        "- an item of a list, and more",
        "---\ntitle: front matter\n---\nthen text",
        "-273.15 degrees it is",
    ];
    let lines: String = texts.map(|text| format!("{}\n", json!({"text": text, "id": text}))).concat();
    folder.write("a.jsonl", lines);
    folder.run(&["build", "store", "a.jsonl"]).ok();
    for text in texts {
        assert!(folder.run(&["query", "store", "--text", text]).ok().starts_with("0\t"), "{text}");
        assert!(
            folder
                .run(&["query", "store", &format!("--text={text}"), "--json"])
                .ok()
                .contains("\"distance\":0")
        );
    }
}

#[test]
fn an_output_closed_early_is_no_error() {
    let folder = TestFolder::new();
    let store = vec![0; 50_000];
    folder.write("a.hex", hex_lines(&store));
    folder.run(&["build", "store", "a.hex"]).ok();
    for args in [&["dump", "store"][..], &["query", "store", "0000000000000000"], &["dedup", "a.hex"]] {
        let mut child = folder.command(args).spawn().unwrap();
        let mut start = [0; 10];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut start).unwrap();
        drop(stdout);
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "{stderr}");
        assert!(!stderr.contains("simstore:") && !stderr.contains("panicked"), "{stderr}");
    }
}

#[test]
fn a_store_without_a_profile() {
    let folder = TestFolder::new();
    let text = "In the beginning was the word, and many other words came after it, one by one";
    folder.write("a.jsonl", format!("{{\"id\": 1, \"text\": \"{text}\"}}\n"));
    let lines = folder.run(&["fingerprint", "--profile", "chars-3", "a.jsonl"]).ok();
    folder.write("a.hex", lines);
    folder.run(&["build", "store", "a.hex"]).ok();
    let run = folder.run(&["query", "store", "--text", text]);
    assert!(
        run.stderr.contains("the store has no text profile; using `by-script,plain-text,simplified`"),
        "{}",
        run.stderr
    );
    assert_eq!(run.ok(), "");
    let run = folder.run(&["query", "store", "--text", text, "--profile", "chars-3"]);
    assert!(!run.stderr.contains("has no text profile"), "{}", run.stderr);
    assert!(run.ok().starts_with("0\t"));
    let stored = folder.run(&["dump", "store"]).ok();
    assert_eq!(folder.run(&["query", "store", &stored[..16]]).stderr, "");
}
