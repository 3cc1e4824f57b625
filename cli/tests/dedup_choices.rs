//! `simstore dedup`: cluster shapes, rules for the kept document, text verification, stores and table formats.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{Random, TestFolder, hex_lines, sample};

/// Lines of HEX<TAB>ID: a chain of four fingerprints, each 3 bits from the next, and an unrelated one.
const CHAIN: [&str; 5] = [
    "0000000000000000\ta",
    "0000000000000007\tb",
    "000000000000003f\tc",
    "00000000000001ff\td",
    "ffff000000000000\talone",
];

/// Runs `dedup --clusters -` and returns the members of each cluster by representative.
fn clusters(folder: &TestFolder, args: &[&str]) -> BTreeMap<String, BTreeSet<String>> {
    let table = folder.run(&[&["dedup", "-q", "--clusters", "-"], args].concat()).ok();
    let mut clusters: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for row in table.lines() {
        let fields: Vec<&str> = row.split('\t').collect();
        clusters.entry(fields[2].to_owned()).or_default().insert(fields[0].to_owned());
    }
    clusters
}

/// Converts pairs of (representative, members) to the result type of [`clusters`].
fn expected_clusters(clusters: &[(&str, &[&str])]) -> BTreeMap<String, BTreeSet<String>> {
    let set = |(name, members): &(&str, &[&str])| {
        ((*name).to_owned(), members.iter().map(|&member| member.to_owned()).collect())
    };
    clusters.iter().map(set).collect()
}

#[test]
fn chains_and_stars() {
    let folder = TestFolder::new();
    folder.write("a.tsv", CHAIN.join("\n"));
    assert_eq!(clusters(&folder, &["a.tsv"]), expected_clusters(&[("a", &["a", "b", "c", "d"])]));
    let stars = expected_clusters(&[("a", &["a", "b"]), ("c", &["c", "d"])]);
    assert_eq!(clusters(&folder, &["a.tsv", "--cluster-by", "stars"]), stars);
    let table = folder.run(&["dedup", "a.tsv", "-q", "--cluster-by", "stars", "--clusters", "-"]).ok();
    assert_eq!(table, "a\t1\ta\t0\nb\t1\ta\t3\nc\t2\tc\t0\nd\t2\tc\t3\n");
    let stderr = folder.run(&["dedup", "a.tsv", "-d", "3"]).stderr;
    assert!(stderr.contains("cluster of 4: largest distance 9 bits"), "{stderr}");
}

/// The clusters of `--cluster-by stars` equal those of a plain loop: in order of preference, each unassigned
/// document becomes the representative of all unassigned documents within the distance.
#[test]
fn stars_equal_those_of_the_plain_loop() {
    let folder = TestFolder::new();
    for seed in 0..5 {
        let fingerprints = Random(seed).clustered(600);
        folder.write("a.hex", hex_lines(&fingerprints));
        let mut centre = vec![None; fingerprints.len()];
        for (a, x) in fingerprints.iter().enumerate() {
            if centre[a].is_some() {
                continue;
            }
            for (b, y) in fingerprints.iter().enumerate() {
                if centre[b].is_none() && (x ^ y).count_ones() <= 4 {
                    centre[b] = Some(a);
                }
            }
        }
        let mut expected: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for (document, centre) in centre.iter().enumerate() {
            expected.entry(centre.unwrap().to_string()).or_default().insert(document.to_string());
        }
        expected.retain(|_, members| members.len() > 1);
        assert_eq!(clusters(&folder, &["a.hex", "-d", "4", "--cluster-by", "stars"]), expected);
    }
}

#[test]
fn rules_for_the_kept_document() {
    let folder = TestFolder::new();
    let words = "one two three four five six seven";
    let line = |id: &str, text: &str, date: &str, size: u32| {
        json!({"id": id, "text": text, "date": date, "size": size}).to_string()
    };
    let lines = [
        line("m", words, "2024-05-01", 9),
        line("b", &format!("{words}!!!"), "2026-01-01", 10),
        line("a", words, "2025-01-01", 8),
        line("z", "quite another text", "", 1),
    ];
    folder.write("a.jsonl", lines.join("\n"));
    for (rule, kept) in [
        ("first", "m"),
        ("longest", "b"),
        ("smallest-id", "a"),
        ("newest:date", "b"),
        ("largest:size", "b"),
        ("smallest:size", "a"),
    ] {
        for shape in ["components", "stars"] {
            let args = ["dedup", "a.jsonl", "-q", "--keep", rule, "--cluster-by", shape];
            let run = |more: &[&str]| folder.run(&[&args, more].concat()).ok();
            let list = run(&["--keep-list", "-"]);
            let mut ids: Vec<&str> = list.lines().collect();
            assert_eq!(ids.pop(), Some("z"));
            assert_eq!(ids, [kept], "{rule}");
            let removed = run(&["--remove-list", "-"]);
            assert_eq!(removed.lines().count(), 2);
            assert!(!removed.lines().any(|id| id == kept || id == "z"));
            let object: Value = serde_json::from_str(run(&["--json"]).lines().next().unwrap()).unwrap();
            assert_eq!(object["representative"], kept);
            let output = run(&["--output", "-"]);
            assert_eq!(output.lines().count(), 2);
            assert!(output.contains(&format!("\"id\":\"{kept}\"")));
        }
    }
    // The last document has an empty date, which counts as no date.
    let stderr = folder.run(&["dedup", "a.jsonl", "--keep", "newest:date"]).stderr;
    assert!(stderr.contains("1 document without `date`"), "{stderr}");
    folder
        .run(&["dedup", "a.jsonl", "--keep", "newest:day"])
        .fails(1, "no document has a field `day`; the first has `date`, `id`, `size`, `text`");
    folder.run(&["dedup", "a.jsonl", "--keep", "newest"]).fails(2, "newest:FIELD");
    folder.run(&["dedup", "a.jsonl", "--keep", "smallest"]).fails(2, "smallest:FIELD");
    folder
        .run(&["dedup", "a.jsonl", "--keep", "largest:date"])
        .fails(1, "no document has a number in a field `date`");
    let misspelled: [(&[&str], &str); 10] = [
        (
            &["--keep", "newest:dat"],
            "no document has a field `dat` (did you mean `date`?); the first has `date`, `id`",
        ),
        (&["--keep", "newst:date"], "unknown rule (did you mean `newest:date`?): expected first, longest"),
        (&["--keep", "frist"], "unknown rule (did you mean `first`?): expected first, longest"),
        (&["--text-field", "txet"], "no text field `txet` (did you mean `text`?); the document has"),
        (&["--id-field", "Id"], "no id field `Id` (did you mean `id`?); the document has"),
        (
            &["--profile", "word-3"],
            "unknown text profile `word-3` (did you mean `words-3`?): expected `by-script`",
        ),
        (&["--profile", "words-3,simplifed"], "unknown part `simplifed` (did you mean `simplified`?)"),
        (&["--profile", "pypi-simhahs"], "(did you mean `pypi-simhash`?)"),
        (&["--format", "jsnl"], "jsonl"),
        (&["--encoding", "uft-8"], "(did you mean `utf-8`?)"),
    ];
    for (args, message) in misspelled {
        let run = folder.run(&[&["dedup", "a.jsonl"], args].concat());
        assert!(run.stderr.contains(message), "{args:?}: {}", run.stderr);
    }
    folder.write("a.csv", "id,content\n1,text\n");
    folder
        .run(&["dedup", "a.csv", "--text-field", "contents"])
        .fails(1, "no text column `contents` (did you mean `content`?)");
    folder.run(&["build", "s", "a.jsonl", "--codec", "gapp"]).fails(2, "(did you mean `gap`?)");
    folder.write("a.hex", "0000000000000000\n");
    folder.run(&["dedup", "a.hex", "--keep", "longest"]).fails(2, "the inputs are fingerprints");
}

#[test]
fn verified_texts_decide_about_duplicates() {
    let folder = TestFolder::new();
    // The fingerprints are equal, because the profile weights words by frequency. The texts share one of five
    // distinct words.
    let often = "common ".repeat(1000);
    let lines = [
        json!({"id": "a", "text": format!("{often} one two")}),
        json!({"id": "b", "text": format!("{often} three four")}),
        json!({"id": "c", "text": format!("{often} one two")}),
    ];
    folder.write("a.jsonl", lines.map(|line| line.to_string()).join("\n"));
    let run = |more: &[&str]| {
        clusters(
            &folder,
            &[&["a.jsonl", "--profile", "words-1", "--verify-profile", "words-1"], more].concat(),
        )
    };
    assert_eq!(run(&[]), expected_clusters(&[("a", &["a", "b", "c"])]));
    for shape in ["components", "stars"] {
        assert_eq!(
            run(&["--verify-text", "0.5", "--cluster-by", shape]),
            expected_clusters(&[("a", &["a", "c"])])
        );
        // One of the five distinct words is in both texts, so the similarity is 0.2.
        assert_eq!(
            run(&["--verify-text", "0.2", "--cluster-by", shape]),
            expected_clusters(&[("a", &["a", "b", "c"])])
        );
        assert_eq!(
            run(&["--verify-text", "0.21", "--cluster-by", shape]),
            expected_clusters(&[("a", &["a", "c"])])
        );
    }
    let pairs = ["dedup", "a.jsonl", "-q", "--profile", "words-1", "--verify-text", "0.5", "--pairs", "-"];
    let run = folder.run(&pairs[..2].iter().chain(&pairs[3..]).copied().collect::<Vec<_>>());
    // Each pair is compared once, although both the clusters and the pairs need its similarity.
    assert!(run.stderr.contains("3 pairs of texts compared; 2 below the threshold"), "{}", run.stderr);
    assert_eq!(run.ok(), "a\tc\t0\t1\n");
    let piped = ["dedup", "-", "-q", "--profile", "words-1", "--verify-text", "0.5", "--pairs", "-"];
    assert_eq!(folder.run_with_input(&piped, folder.read("a.jsonl")).ok(), "a\tc\t0\t1\n");
    folder.run(&["dedup", "a.jsonl", "--verify-text", "1.5"]).fails(2, "from 0 to 1");
}

#[test]
fn tables_by_the_name_of_their_file() {
    let folder = TestFolder::new();
    folder.write("a.tsv", format!("{}\n0000000000000000\t\"quoted\", \\\\\n", CHAIN.join("\n")));
    let run = |file: &str| {
        folder
            .run(&[
                "dedup",
                "a.tsv",
                "-q",
                "-d",
                "0",
                "--clusters",
                file,
                "--pairs",
                &format!("pairs.{file}"),
            ])
            .ok();
        folder.read(file)
    };
    assert_eq!(run("x.csv"), "id,cluster,representative,distance\na,1,a,0\n\"\"\"quoted\"\", \\\",1,a,0\n");
    assert_eq!(
        run("x.tsv"),
        "id\tcluster\trepresentative\tdistance\na\t1\ta\t0\n\"\"\"quoted\"\", \\\"\t1\ta\t0\n"
    );
    assert_eq!(folder.read("pairs.x.csv"), "a,b,distance\na,\"\"\"quoted\"\", \\\",0\n");
    let objects: Vec<Value> =
        run("x.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        objects,
        [
            json!({"id": "a", "cluster": 1, "representative": "a", "distance": 0}),
            json!({"id": "\"quoted\", \\", "cluster": 1, "representative": "a", "distance": 0}),
        ]
    );
    // If the extension names no table format, columns are separated by tabs and backslashes are escaped.
    assert_eq!(run("x"), "a\t1\ta\t0\n\"quoted\", \\\\\t1\ta\t0\n");
    folder.run(&["dedup", "a.tsv", "--pairs", "-", "--clusters", "-"]).fails(2, "only one output");
}

#[cfg(feature = "parquet")]
#[test]
fn tables_as_parquet() {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;

    let folder = TestFolder::new();
    let read = |file: &str| -> Vec<Vec<Field>> {
        let reader = SerializedFileReader::new(std::fs::File::open(folder.path(file)).unwrap()).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns().into_iter().map(|(_, field)| field).collect()).collect()
    };
    let text = |text: &str| Field::Str(text.to_owned());
    let (number, count) = (Field::ULong, Field::ULong);
    folder.write("a.tsv", CHAIN.join("\n"));
    folder.run(&["dedup", "a.tsv", "--pairs", "p.parquet", "--keep-list", "k.parquet"]).ok();
    assert_eq!(
        read("p.parquet"),
        [["a", "b"], ["b", "c"], ["c", "d"]].map(|[a, b]| vec![text(a), text(b), count(3)])
    );
    assert_eq!(read("k.parquet"), [vec![text("a")], vec![text("alone")]]);
    // Numeric ids stay numeric.
    let fingerprints = Random(1).clustered(100_000);
    folder.write("a.u64", fingerprints.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>());
    folder.run(&["dedup", "a.u64", "--pairs", "p.parquet"]).ok();
    folder.run(&["dedup", "a.u64", "--pairs", "p.tsv"]).ok();
    let expected: Vec<Vec<Field>> = (folder.read("p.tsv").lines().skip(1))
        .map(|row| row.split('\t').map(|value| number(value.parse().unwrap())).collect())
        .collect();
    assert!(expected.len() > 1 << 16);
    assert_eq!(read("p.parquet"), expected);
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_tables_need_the_feature() {
    let folder = TestFolder::new();
    folder.write("a.tsv", CHAIN.join("\n"));
    folder.run(&["dedup", "a.tsv", "--pairs", "p.parquet"]).fails(2, "with the feature `parquet`");
}

#[test]
fn against_a_store() {
    let folder = TestFolder::new();
    folder.write("old.tsv", "0000000000000000\told\nff00000000000000\tother\n");
    folder.run(&["build", "seen", "old.tsv"]).ok();
    folder.write("new.tsv", "000000000000003f\tby chain\n0000000000000007\tnear\n00ff00ff00ff00ff\tx\n00ff00ff00ff00fe\ty\nffff000000000000\tfar\n");
    let args = ["dedup", "new.tsv", "-q", "--against", "seen"];
    let run = |more: &[&str]| folder.run(&[&args, more].concat()).ok();
    // With components, a document that a chain links to a stored document is removed. With stars, only
    // documents within the distance of a stored document are removed.
    assert_eq!(run(&["--keep-list", "-"]), "x\nfar\n");
    assert_eq!(run(&["--keep-list", "-", "--cluster-by", "stars"]), "by chain\nx\nfar\n");
    assert_eq!(
        run(&["--clusters", "-"]),
        "by chain\t1\told\t6\ttrue\nnear\t1\told\t3\ttrue\nx\t2\tx\t0\tfalse\ny\t2\tx\t1\tfalse\n"
    );
    // Pairs with stored documents come last.
    assert_eq!(run(&["--pairs", "-"]), "by chain\tnear\t3\tfalse\nx\ty\t1\tfalse\nnear\told\t3\ttrue\n");
    let objects = folder.run(&["dedup", "new.tsv", "--json", "--against", "seen", "--add"]).json();
    assert_eq!(objects.len(), 3);
    assert_eq!(objects[0]["representative"], "old");
    assert_eq!(objects[0]["stored"], true);
    let summary = objects.last().unwrap();
    assert_eq!((&summary["stored"], &summary["added"], &summary["kept"]), (&json!(2), &json!(2), &json!(2)));
    // The store now has all kept documents, so no document is new.
    assert_eq!(run(&["--keep-list", "-"]), "");
    let stored = folder.run(&["dump", "seen"]).ok();
    assert_eq!(stored.lines().count(), 4, "{stored}");
    assert!(stored.contains("00ff00ff00ff00ff\tx\n"), "{stored}");
    folder.run(&["verify", "seen"]).ok();
    folder.run(&["dedup", "new.tsv", "--against", "none"]).fails(1, "none: no such store");
    folder.run(&["dedup", "new.tsv", "--add"]).fails(2, "--against");
}

/// Deduplicating a corpus in several runs with a store keeps the same documents as a single run.
#[test]
fn several_runs_with_a_store_equal_one_run() {
    let folder = TestFolder::new();
    let corpus = std::fs::read_to_string(sample("en.jsonl")).unwrap();
    let lines: Vec<&str> = corpus.lines().collect();
    let mut kept = String::new();
    for (i, part) in lines.chunks(20).enumerate() {
        folder.write("part.jsonl", part.join("\n"));
        let run = folder.run(&[
            "dedup", "part.jsonl", "-d", "3", "--against", "seen", "--add", "--cluster-by", "stars",
            "--keep-list", "-",
        ]);
        assert!(run.stderr.contains("added to the store"), "{i}: {}", run.stderr);
        kept += &run.ok();
    }
    let in_one_run = folder
        .run(&["dedup", &sample("en.jsonl"), "-q", "-d", "3", "--cluster-by", "stars", "--keep-list", "-"])
        .ok();
    assert_eq!(kept, in_one_run);
    let profile = folder.run(&["dedup", "part.jsonl", "--against", "seen", "--profile", "chars-4"]);
    profile.fails(1, "the store has profile by-script,plain-text,simplified, not chars-4");
}

#[test]
fn exact_finds_equal_texts_alone() {
    let folder = TestFolder::new();
    let texts = [
        "C++ is old", "C# is old", "c++ is old", "caf\u{e9}", "cafe\u{301}", "C++ is old", " ", "  ", "", "",
    ];
    let lines: Vec<String> =
        (0..).zip(texts).map(|(id, text)| json!({"id": id, "text": text}).to_string()).collect();
    folder.write("a.jsonl", lines.join("\n"));
    let kept =
        |args: &[&str]| folder.run(&[&["dedup", "a.jsonl", "--keep-list", "-", "-q"], args].concat()).ok();
    assert_eq!(kept(&["--exact"]), "0\n1\n2\n3\n6\n7\n8\n9\n");
    // Comparison by similarity ignores punctuation and case.
    assert_eq!(kept(&["--similar", "1"]), "0\n3\n6\n7\n8\n9\n");
    let pairs = folder.run(&["dedup", "a.jsonl", "--exact", "--pairs", "-", "-q"]).ok();
    assert_eq!(pairs.lines().count(), 2, "{pairs}");
    for (option, value) in [("--similar", "1"), ("-d", "3"), ("--verify-text", "0.9")] {
        folder.run(&["dedup", "a.jsonl", "--exact", option, value]).fails(2, "cannot be used with");
    }
    folder.run(&["dedup", "a.jsonl", "--exact", "--profile", "words-2"]).fails(2, "leave out --profile");
}

#[test]
fn documents_that_lose_most_words_are_reported() {
    let folder = TestFolder::new();
    let link = "[two words](https://example.org/a/b/c \"a title of many words\") and [one](https://example.org/d/e/f/g)";
    let lines = [
        json!({"id": 1, "text": link}),
        json!({"id": 2, "text": format!("<p>{link}</p>")}),
        json!({"id": 3, "text": "if x <b and then c> d"}),
    ];
    folder.write("a.jsonl", lines.map(|line| line.to_string()).join("\n"));
    for command in [&["dedup", "a.jsonl"][..], &["dedup", "-d", "3", "a.jsonl"], &["fingerprint", "a.jsonl"]]
    {
        let run = folder.run(command);
        let message = "cleaning removed more than half of the words of 1 document that is not HTML";
        assert!(run.stderr.contains(message), "{}", run.stderr);
    }
}
