//! `simstore dedup`: several documents with the same id.

use serde_json::json;

use crate::TestFolder;

/// Three documents with the id 1, two of them with equal texts, and one document with another id.
const LINES: [&str; 4] = [
    "{\"id\": 1, \"text\": \"one two three four\"}",
    "{\"id\": 2, \"text\": \"quite another text\"}",
    "{\"id\": \"1\", \"text\": \"one two three four\"}",
    "{\"id\": 1, \"text\": \"seven eight nine ten\"}",
];

#[test]
fn several_documents_may_have_one_id() {
    let folder = TestFolder::new();
    // Blank lines count as lines.
    folder.write("a.jsonl", LINES.join("\n\n"));
    let run = folder.run(&["dedup", "a.jsonl", "-q", "--output", "-"]);
    assert_eq!(run.stderr.matches("3 documents have duplicate ids").count(), 1, "{}", run.stderr);
    assert_eq!(run.ok(), [LINES[0], LINES[1], LINES[3], ""].join("\n"));
    // If ids repeat, lists also give the place (FILE:LINE), which identifies the document.
    let run = |more: &[&str]| folder.run(&[&["dedup", "a.jsonl", "-q"], more].concat()).ok();
    assert_eq!(run(&["--remove-list", "-"]), "1\ta.jsonl:5\n");
    assert_eq!(run(&["--keep-list", "-"]), "1\ta.jsonl:1\n2\ta.jsonl:3\n1\ta.jsonl:7\n");
    run(&["--remove-list", "r.csv", "--pairs", "p.csv", "--clusters", "c.csv"]);
    assert_eq!(folder.read("r.csv"), "id,place\n1,a.jsonl:5\n");
    assert_eq!(folder.read("p.csv"), "a,b,similarity,a_place,b_place\n1,1,1,a.jsonl:1,a.jsonl:5\n");
    assert_eq!(
        folder.read("c.csv"),
        "id,cluster,representative,similarity,place,representative_place\n\
         1,1,1,1,a.jsonl:1,a.jsonl:1\n1,1,1,1,a.jsonl:5,a.jsonl:1\n"
    );
    assert_eq!(run(&[]), "cluster 1: 2 documents\n      1  1  (a.jsonl:1)\n      1  1  (a.jsonl:5)\n");
    let objects = folder.run(&["dedup", "a.jsonl", "--json"]).json();
    assert_eq!(
        (&objects[0]["place"], &objects[0]["members"][1]["place"]),
        (&json!("a.jsonl:1"), &json!("a.jsonl:5"))
    );
    assert_eq!(
        (&objects[1]["same_id"], &objects[1]["bad"], &objects[1]["kept"]),
        (&json!(3), &json!(0), &json!(3))
    );
}

#[test]
fn one_id_in_several_files() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES[1]);
    folder.write("b.jsonl", LINES[..2].join("\n"));
    let run = folder.run(&["dedup", "a.jsonl", "b.jsonl", "--remove-list", "-"]);
    assert!(run.stderr.contains("2 documents have duplicate ids"), "{}", run.stderr);
    assert_eq!(run.ok(), "2\tb.jsonl:2\n");
    // If an input has no ids, positions serve as ids.
    folder.write("a.u64", [0; 8].repeat(3));
    folder.write("b.tsv", "00000000000000ff\t1\n");
    assert_eq!(
        folder.run(&["dedup", "a.u64", "b.tsv", "-q", "--remove-list", "-"]).ok(),
        "1\ta.u64:2\n2\ta.u64:3\n"
    );
}

/// For documents with the same id, runs with `--resume` or `--shard` give the same result as a plain run.
#[test]
fn one_id_twice_in_parts() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", LINES.join("\n"));
    let args = ["dedup", "a.jsonl", "--skip-bad", "--remove-list", "-"];
    let plain = folder.run(&args).ok();
    assert_eq!(plain, "1\ta.jsonl:3\n");
    for _ in 0..2 {
        assert_eq!(folder.run(&[&args[..], &["--resume", "work"]].concat()).ok(), plain);
    }
    folder.run(&["dedup", "a.jsonl", "--resume", "shards", "--shard", "1/1"]).ok();
    assert_eq!(folder.run(&["dedup", "a.jsonl", "--resume", "shards", "--remove-list", "-"]).ok(), plain);
}

#[test]
fn the_largest_number_is_an_id() {
    let folder = TestFolder::new();
    let last = u64::MAX;
    folder.write(
        "a.hex",
        format!("c0ffee0123456789\t{last}\nc0ffee0123456789\tname\nc0ffee0123456789\t{last}\n"),
    );
    folder.write("b.hex", format!("c0ffee0123456789\t{last}\n"));
    assert_eq!(folder.run(&["dedup", "b.hex", "--keep-list", "-"]).ok(), format!("{last}\n"));
    assert_eq!(folder.run(&["dedup", "a.hex", "-q", "--keep-list", "-"]).ok(), format!("{last}\ta.hex:1\n"));
    // A store accepts the largest number as an id.
    folder.run(&["dedup", "b.hex", "--against", "s", "--add"]).ok();
    assert_eq!(folder.run(&["dump", "s"]).ok(), format!("c0ffee0123456789\t{last}\n"));
}
