//! Text profiles: the profile that a command uses, dictionaries and other files of a profile, and `simstore idf`.

use serde_json::json;

use crate::{TestFolder, fields, sample};

const TEXT: &str =
    "A text of some words, about which it is asked again later on; chars or words, it is found.";

fn with_text() -> TestFolder {
    let folder = TestFolder::new();
    folder.write("a.jsonl", json!({"id": "the text", "text": TEXT}).to_string());
    folder.write("a.txt", TEXT);
    folder
}

#[test]
fn a_store_has_one_profile() {
    let folder = with_text();
    folder.run(&["build", "store", "a.jsonl", "--profile", "chars-4"]).ok();
    let before = folder.run(&["dump", "store"]).ok();
    let message = "the store has profile chars-4, not words-3";
    for command in [
        &["add", "store", "a.jsonl"][..],
        &["delete", "store", "a.jsonl"],
        &["query", "store", "--text", TEXT],
        &["query", "store", "--file", "a.txt"],
        &["dedup", "a.jsonl", "--against", "store"],
    ] {
        folder.run(&[command, &["--profile", "words-3"]].concat()).fails(1, message);
    }
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
    // The store's profile is the default. Naming it, even with its default options, has the same result.
    for profile in [&[][..], &["--profile", "chars-4"], &["--profile", "chars-4,weights=tf,hash=xxh3"]] {
        let matches = folder.run(&[&["query", "store", "--text", TEXT], profile].concat()).ok();
        assert!(matches.starts_with("0\t"), "{matches}");
    }
    folder.run(&["add", "--if-new", "store", "a.jsonl"]).ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), before);
    folder.run(&["delete", "store", "a.jsonl"]).ok();
    assert_eq!(folder.run(&["dump", "store"]).ok(), "");
}

#[test]
fn adding_texts_to_a_store_of_fingerprints_needs_a_profile() {
    let folder = with_text();
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["build", "store", "a.hex"]).ok();
    folder.run(&["add", "store", "a.jsonl"]).fails(2, "give --profile NAME");
    folder.run(&["build", "told", "a.hex", "--profile", "words-3"]).ok();
    assert_eq!(folder.run(&["inspect", "told", "--json"]).json()[0]["profile"], "words-3");
    folder.run(&["add", "told", "a.jsonl", "--profile", "words-2"]).fails(1, "the store has profile words-3");
    let run = folder.run(&["query", "told", "--text", TEXT, "--profile", "words-2"]);
    run.fails(1, "the store has profile words-3, not words-2");
}

#[test]
fn bad_profiles() {
    let folder = with_text();
    let fingerprint = |args: &[&str]| folder.run(&[&["fingerprint", "a.jsonl"], args].concat());
    fingerprint(&["--profile", "letters"]).fails(2, "expected `by-script`, `auto`, `words-1` to `words-8`");
    fingerprint(&["--profile", "words-2,main-text,plain-text"]).fails(2, "exclude each other");
    fingerprint(&["--profile", "words-3,strip-markup"]).fails(2, "use `plain-text`, and create");
    fingerprint(&["--profile", "words-2,weights=idf"]).fails(2, "give the file with --idf");
    fingerprint(&["--dictionary", "none.txt"]).fails(1, "none.txt: cannot read");
    folder.write("words.txt", "word\nanother word and more\n");
    fingerprint(&["--dictionary", "words.txt"]).fails(2, "which `by-script` does not use");
    fingerprint(&["--profile", "auto", "--dictionary", "words.txt"])
        .fails(1, "words.txt:2: invalid line of a dictionary");
    folder.write("idf.txt", "word\n");
    fingerprint(&["--profile", "jieba", "--idf", "idf.txt"])
        .fails(1, "idf.txt:1: invalid line of an IDF table");
    fingerprint(&["--profile", "words-2", "--stop-words", "words.txt"]).fails(2, "needs keywords");
}

#[test]
fn checksums_of_dictionaries_are_verified() {
    let folder = with_text();
    let text = "石墨烯量子点的制备与应用";
    folder.write("zh.jsonl", json!({"id": 1, "text": text}).to_string());
    folder.write("words.txt", "石墨烯量子点\n");
    folder.write("others.txt", "制备与应用\n");
    folder.run(&["build", "store", "zh.jsonl", "--profile", "jieba-20", "--dictionary", "words.txt"]).ok();
    let profile = folder.run(&["inspect", "store", "--json"]).json()[0]["profile"].clone();
    let profile = profile.as_str().unwrap();
    assert!(profile.starts_with("jieba-20,dictionary="), "{profile}");

    let query = |args: &[&str]| folder.run(&[&["query", "store", "--text", text], args].concat());
    assert!(query(&["--dictionary", "words.txt"]).ok().starts_with("0\t"));
    assert!(query(&["--profile", "jieba-20", "--dictionary", "words.txt"]).ok().starts_with("0\t"));
    query(&[]).fails(1, "give the file with --dictionary");
    query(&["--profile", profile]).fails(2, "give the file with --dictionary");
    query(&["--dictionary", "others.txt"]).fails(1, "but others.txt has checksum");
    query(&["--profile", "jieba-20"]).fails(1, &format!("the store has profile {profile}, not jieba-20"));
    let extra = query(&["--dictionary", "words.txt", "--stop-words", "others.txt"]);
    extra.fails(1, &format!("the store has profile {profile}, not jieba-20,dictionary="));
    folder.run(&["add", "store", "zh.jsonl"]).fails(1, "give the file with --dictionary");
    folder.run(&["add", "store", "zh.jsonl", "--dictionary", "words.txt"]).ok();
}

#[test]
fn inverse_document_frequencies() {
    let folder = TestFolder::new();
    folder.write(
        "a.jsonl",
        "{\"id\": 1, \"text\": \"a rose\"}\n{\"id\": 2, \"text\": \"a tree\"}\n{\"id\": 3, \"text\": 5}\n{\"id\": 4, \"text\": \"a rose\"}\n",
    );
    folder.run(&["idf", "a.jsonl", "--profile", "words-1"]).fails(1, "a.jsonl:3:");
    let args = ["idf", "a.jsonl", "--profile", "words-1", "--skip-bad"];
    let table = folder.run(&args).ok();
    assert_eq!(table, "a\t0.6931\nrose\t0.9163\n");
    let rows = folder.run(&[&args[..], &["--json", "--min-documents", "1"]].concat()).json();
    assert_eq!(fields(&rows[2]), ["documents", "feature", "idf"]);
    assert_eq!(rows[2], json!({"feature": "tree", "documents": 1, "idf": 1.3863}));
    // The number of threads does not change the table.
    let one = folder.run(&["idf", &sample("zh.jsonl"), "--threads", "1"]).ok();
    assert_eq!(folder.run(&["idf", &sample("zh.jsonl"), "--threads", "3"]).ok(), one);

    folder.write("idf.tsv", table);
    let weighted =
        ["fingerprint", "a.jsonl", "--skip-bad", "--profile", "words-1,weights=idf", "--idf", "idf.tsv"];
    let plain = folder.run(&["fingerprint", "a.jsonl", "--skip-bad", "--profile", "words-1"]).ok();
    assert_ne!(folder.run(&weighted).ok(), plain);
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["idf", "a.hex"]).fails(2, "the inputs are fingerprints");
}

#[test]
fn presets() {
    let folder = with_text();
    // Computed by `Simhash(text).value` of the PyPI package simhash 2.1.2.
    let expected = "4d2535c9fe77b86e\tthe text\n";
    assert_eq!(folder.run(&["fingerprint", "a.jsonl", "--preset", "pypi-simhash"]).ok(), expected);
    assert_eq!(folder.run(&["fingerprint", "a.jsonl", "--profile", "pypi-simhash"]).ok(), expected);

    let wide = ["--preset", "string-hash-128"];
    for command in [&["fingerprint", "a.jsonl"][..], &["build", "store", "a.jsonl"], &["dedup", "a.jsonl"]] {
        folder.run(&[command, &wide].concat()).fails(2, "give --bits 128");
    }
    folder.run(&[&["build", "store", "a.jsonl", "--bits", "128"], &wide[..]].concat()).ok();
    let matches = folder.run(&["query", "store", "--text", TEXT]).ok();
    assert!(matches.starts_with("0\t"), "{matches}");
    folder.run(&["query", "store", "--text", TEXT, "--preset", "string-hash-64"]).fails(1, "string-hash-128");

    folder.run(&["fingerprint", "a.jsonl", "--preset", "simhash"]).fails(2, "possible values: pypi-simhash");
    folder
        .run(&["fingerprint", "a.jsonl", "--preset", "pypi-simhash", "--profile", "auto"])
        .fails(2, "--profile");
    folder
        .run(&["fingerprint", "a.jsonl", "--profile", "pypi-simhash,html-text"])
        .fails(2, "takes no options");
}

#[test]
fn each_part_of_a_profile_name_is_explained_and_valid() {
    let folder = with_text();
    let parts = folder.run(&["profiles", "--json"]).json();
    let text = folder.run(&["profiles"]).ok();
    assert!(
        text.starts_with("Default profile of fingerprints: by-script,plain-text,simplified. Default profile for text similarity: words-3,"),
        "{text}"
    );
    for object in &parts {
        assert_eq!(fields(object), ["group", "meaning", "part"]);
        let [group, part] = ["group", "part"].map(|field| object[field].as_str().unwrap());
        assert!(text.contains(group) && text.contains(&format!("\n  {part} ")), "{object}");
        let part = part.replace("-N", "-7").replace("HASH", "md5");
        let name = match group.split(' ').next().unwrap() {
            "Tokenizers" | "Presets:" => part,
            "Options" if part.ends_with("=CHECKSUM") => continue,
            _ if part == "main-text" => "words-2,main-text".to_owned(),
            "Weights" if part == "weights=idf" => "jieba,weights=idf".to_owned(),
            "Options" => format!("auto,{part}"),
            _ => format!("words-2,{part}"),
        };
        let bits = if name == "string-hash-128" { "128" } else { "64" };
        folder.run(&["fingerprint", "a.jsonl", "--profile", &name, "--bits", bits]).ok();
    }
}

/// An error message about an unknown profile lists valid names. `simstore profiles` explains all of these names.
#[test]
fn the_table_explains_profiles() {
    let folder = TestFolder::new();
    let table = folder.run(&["profiles"]).ok();
    let help = folder.run(&["fingerprint", "--help"]).ok();
    folder.write("x.jsonl", "");
    let mut explained = 0;
    for wrong in ["nothing", "auto,nothing", "auto,weights=x", "auto,hash=x"] {
        let run = folder.run(&["fingerprint", "x.jsonl", "--profile", wrong]);
        assert_eq!(run.code, Some(2));
        for name in run.stderr.split('`').skip(1).step_by(2) {
            let name = name.split(['-', '=']).next().unwrap();
            if !["nothing", "x", "auto,nothing", "auto,weights", "auto,hash", "weights", "hash"]
                .contains(&name)
            {
                assert!(table.contains(name), "{name}: {}", run.stderr);
                explained += 1;
            }
        }
    }
    assert!(explained > 25 && help.contains("`simstore profiles`"), "{explained}");
    for field in ["WARC-Record-ID", "WARC-Target-URI", "pages.zip/a/b.txt", "--delimiter"] {
        assert!(help.contains(field), "{field}");
    }
}
