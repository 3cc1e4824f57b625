//! `simstore build`.

use serde_json::json;

use crate::{Random, TestFolder, fields, hex_lines, sample};

#[test]
fn numbers_stay_ids() {
    let folder = TestFolder::new();
    folder
        .write("a.tsv", "0000000000000001\t18446744073709551615\n0000000000000001\t7\nffffffffffffffff\t0\n");
    folder.run(&["build", "store", "a.tsv"]).ok();
    let expected = "0000000000000001\t7\n0000000000000001\t18446744073709551615\nffffffffffffffff\t0\n";
    assert_eq!(folder.run(&["dump", "store"]).ok(), expected);
    let run = folder.run(&["query", "store", "0000000000000001", "--json"]).json();
    assert_eq!(
        run[0],
        json!({"query": "0000000000000001", "fingerprint": "0000000000000001", "distance": 0, "id": 7})
    );
}

#[test]
fn names_are_stored_beside_positions() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000002\tb\n0000000000000001\ta\n0000000000000001\t5\n");
    folder.run(&["build", "store", "a.tsv"]).ok();
    assert_eq!(
        folder.run(&["dump", "store", "--json"]).json(),
        [
            json!({"fingerprint": "0000000000000001", "id": 1, "name": "a"}),
            json!({"fingerprint": "0000000000000001", "id": 2, "name": "5"}),
            json!({"fingerprint": "0000000000000002", "id": 0, "name": "b"}),
        ]
    );
    assert_eq!(
        folder.run(&["dump", "store"]).ok(),
        "0000000000000001\ta\n0000000000000001\t5\n0000000000000002\tb\n"
    );
}

#[test]
fn a_name_after_numbers_is_malformed() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000001\t5\n\n0000000000000002\ta\n0000000000000003\t6\n");
    folder.run(&["build", "store", "a.tsv"]).fails(1, "a.tsv:3: the id `a` is a name");
    folder.run(&["build", "store", "a.tsv"]).fails(1, "--names");
    assert_eq!(folder.names(), ["a.tsv"]);

    let run = folder.run(&["build", "store", "a.tsv", "--skip-bad", "--json"]);
    assert!(
        run.stderr.contains("a.tsv:3:") && run.stderr.contains("skipped 1 invalid line or unreadable file"),
        "{}",
        run.stderr
    );
    let summary = &run.json()[0];
    assert_eq!((&summary["documents"], &summary["bad"]), (&json!(2), &json!(1)));

    folder.run(&["build", "store", "a.tsv", "--names", "--force"]).ok();
    assert_eq!(
        folder.run(&["dump", "store"]).ok(),
        "0000000000000001\t5\n0000000000000002\ta\n0000000000000003\t6\n"
    );
}

#[test]
fn without_ids() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000002\tb\n0000000000000001\t5\n0000000000000001\t5\n");
    folder.run(&["build", "store", "a.tsv", "--no-ids"]).ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000001\n0000000000000002\n");
    assert_eq!(
        folder.run(&["query", "store", "0000000000000001"]).ok(),
        "0\t0000000000000001\n2\t0000000000000002\n"
    );
    let line = &folder.run(&["query", "store", "0000000000000001", "--json"]).json()[0];
    assert_eq!(fields(line), ["distance", "fingerprint", "id", "query"]);
    assert!(line["id"].is_null());
}

#[test]
fn empty_and_short_texts() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"\"}\n{\"id\": 2, \"text\": \"few words\"}\n");
    let run = folder.run(&["build", "store", "a.jsonl"]);
    assert!(run.stderr.contains("1 document has no text"), "{}", run.stderr);
    assert!(run.stderr.contains("1 document is too short"), "{}", run.stderr);
    run.ok();
    let run = folder.run(&["build", "--quiet", "--json", "--force", "store", "a.jsonl"]);
    assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
    let summary = &run.json()[0];
    assert_eq!(
        fields(summary),
        [
            "bad", "bits", "bits_per_fingerprint", "bytes", "codec", "distance", "documents", "empty",
            "fingerprints", "ids", "other_names", "plan", "seconds", "short", "skipped_files", "store",
            "tables"
        ]
    );
    assert_eq!((&summary["empty"], &summary["short"], &summary["ids"]), (&json!(1), &json!(1), &json!(1)));
}

#[test]
fn a_codec_for_an_objective() {
    let folder = TestFolder::new();
    // Consecutive numbers: each gap is 1 and takes one bit.
    let rows: String = (0..5000).map(|i| format!("{i:016x}\n")).collect();
    folder.write("a.hex", &rows);
    let build = |more: &[&str]| {
        let arguments =
            [&["build", "--quiet", "--json", "--force", "store", "a.hex", "--codec"], more].concat();
        folder.run(&arguments)
    };
    assert_eq!(build(&["auto"]).json()[0]["codec"], json!("gap"));
    assert_eq!(build(&["auto", "--for", "size"]).json()[0]["codec"], json!("gap"));
    assert_eq!(build(&["auto", "--for", "speed"]).json()[0]["codec"], json!("elias-fano"));
    // Spread evenly over all prefixes.
    let spread: String =
        (0..5000_u64).map(|i| format!("{:016x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    folder.write("a.hex", &spread);
    assert_eq!(build(&["auto", "--for", "speed"]).json()[0]["codec"], json!("prefix-lines"));
    assert_eq!(build(&["gap", "--for", "size"]).code, Some(2));
    assert_eq!(build(&["auto", "--for", "fun"]).code, Some(2));
    assert!(build(&["zip"]).stderr.contains("all-differences or prefix-lines, or auto"));
}

#[test]
fn a_store_is_replaced_only_by_force() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\n");
    folder.write("b.hex", "0000000000000002\n");
    folder.write("bad.hex", "0000000000000002\nx\n");
    folder.run(&["build", "store", "a.hex"]).ok();
    let before = std::fs::read_dir(folder.path("store")).unwrap().count();
    folder.run(&["build", "store", "b.hex"]).fails(1, "--force");
    folder
        .run(&["build", "--force", "store", "bad.hex"])
        .fails(1, "bad.hex:2: `x` is not a 64-bit fingerprint");
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000001\t0\n");
    assert_eq!(std::fs::read_dir(folder.path("store")).unwrap().count(), before);
    folder.run(&["build", "--force", "store", "b.hex"]).ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000002\t0\n");
    folder.run(&["build", "a.hex", "b.hex"]).fails(1, "a.hex: a file is in the way");
}

#[test]
fn inputs_of_one_kind() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\n");
    folder.write("a.jsonl", "{\"text\": \"a\"}\n");
    for inputs in [["a.hex", "a.jsonl"], ["a.jsonl", "a.hex"]] {
        let run = folder.run(&["build", "store", inputs[0], inputs[1]]);
        run.fails(2, "a.jsonl holds documents, a.hex fingerprints");
    }
    folder.run(&["build", "store", "none.jsonl"]).fails(1, "none.jsonl: cannot open");
    folder.run(&["build", "store", "a.hex", "--bits", "128"]).fails(1, "a.hex:1:");
    folder.write("a.u64", [0; 12]);
    folder.run(&["build", "store", "a.u64"]).fails(1, "ends within a fingerprint: 4 of 8 bytes at offset 8");
    folder
        .run(&["build", "store", "a.u64", "--bits", "128"])
        .fails(2, "64-bit fingerprints, not 128-bit ones");
    folder.run(&["build", "none/store", "a.hex"]).fails(1, "none/store: cannot create");
    folder.run(&["build", "store", "a.hex", "--plan", "cover-9"]).fails(2, "no plan `cover-9`");
    folder.run(&["build", "store", "a.hex", "--block-size", "300"]).fails(2, "power of two");
    assert_eq!(folder.names(), ["a.hex", "a.jsonl", "a.u64"]);
}

#[test]
fn from_standard_input() {
    let folder = TestFolder::new();
    let lines = folder.run(&["fingerprint", &sample("zh.jsonl")]).ok();
    assert_eq!(lines.lines().count(), 71);
    folder.run_with_input(&["build", "piped", "-"], &lines).ok();
    folder.run(&["build", "direct", &sample("zh.jsonl")]).ok();
    assert_eq!(folder.run(&["dump", "piped"]).ok(), folder.run(&["dump", "direct"]).ok());
    let text = std::fs::read(sample("zh.jsonl")).unwrap();
    folder.run_with_input(&["build", "documents", "-"], text).ok();
    assert_eq!(folder.run(&["dump", "documents"]).ok(), folder.run(&["dump", "direct"]).ok());
}

#[test]
fn threads_and_memory_do_not_change_the_store() {
    let folder = TestFolder::new();
    folder.write("a.hex", hex_lines(&Random(1).clustered(20_000)));
    folder.run(&["build", "one", "a.hex", "--threads", "1"]).ok();
    folder.run(&["build", "two", "a.hex", "--threads", "2", "--memory", "16M"]).ok();
    assert_eq!(folder.run(&["dump", "one"]).ok(), folder.run(&["dump", "two"]).ok());
    for file in std::fs::read_dir(folder.path("one")).unwrap() {
        let name = file.unwrap().file_name();
        let read = |store| std::fs::read(folder.path(store).join(&name)).unwrap();
        assert!(read("one") == read("two"), "{name:?}");
    }
}

#[test]
fn an_empty_store_is_reported_and_replaces_none() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\n");
    folder.write("empty.hex", "");
    folder.write("empty.jsonl", "{\"id\": 1, \"text\": \"\"}\n");
    folder.run(&["build", "store", "a.hex"]).ok();
    for input in ["empty.hex", "empty.jsonl"] {
        folder
            .run(&["build", "--force", "store", input])
            .fails(1, "store: the inputs have no fingerprints; the existing store is unchanged");
    }
    assert_eq!(folder.run(&["dump", "store"]).ok(), "0000000000000001\t0\n");
    let run = folder.run(&["build", "-q", "new", "empty.hex"]);
    assert!(run.stderr.contains("warning: the inputs have no fingerprints"), "{}", run.stderr);
    run.ok();
    assert_eq!(folder.run(&["dump", "new"]).ok(), "");
}
