//! `dedup --output FOLDER/`: copies of the kept text files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::TestFolder;

/// Returns the contents of all files below a folder by path relative to it.
fn files_below(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in folder.read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() {
            files.extend(
                files_below(&entry.path())
                    .into_iter()
                    .map(|(below, bytes)| (format!("{name}/{below}"), bytes)),
            );
        } else {
            files.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    files
}

fn text_folder() -> TestFolder {
    let folder = TestFolder::new();
    fs::create_dir_all(folder.path("texts/deep/er")).unwrap();
    folder.write("texts/a.md", "a page of some words\r\n");
    folder.write("texts/deep/b.md", "a page of some words");
    folder.write("texts/deep/er/c.html", "<p>something else altogether, of other words");
    folder.write(
        "texts/deep/d.txt.zst",
        zstd::encode_all(&b"and a third text, that is compressed"[..], 3).unwrap(),
    );
    folder.write("texts/deep/e.txt", b"\xffno UTF-8, and kept as it is");
    folder.write("texts/picture.png", "no text");
    folder
}

/// Paths of the files that a run keeps, relative to `texts`.
const KEPT: [&str; 4] = ["a.md", "deep/d.txt.zst", "deep/e.txt", "deep/er/c.html"];

/// Returns the original contents of the files that a run keeps, by path.
fn expected_files(folder: &TestFolder) -> BTreeMap<String, Vec<u8>> {
    let read_input = |name: &str| (name.to_owned(), fs::read(folder.path("texts").join(name)).unwrap());
    KEPT.map(read_input).into_iter().collect()
}

#[test]
fn kept_files_are_copied() {
    let folder = text_folder();
    for (input, output) in [
        ("texts", "one/"),
        ("texts/", "./two/"),
        ("./texts", "three/"),
        ("texts/**/*.[mtzh]*", "four/"),
        (folder.path("texts").to_str().unwrap(), folder.path("five/").to_str().unwrap()),
    ] {
        folder.run(&["dedup", "-q", input, "--output", output]).ok();
        assert_eq!(files_below(&folder.path(output)), expected_files(&folder), "{input}");
    }
    // An existing output folder is accepted only if it is empty.
    fs::create_dir(folder.path("six")).unwrap();
    folder.run(&["dedup", "-q", "texts", "-o", "six/"]).ok();
    assert_eq!(files_below(&folder.path("six")), expected_files(&folder));
    folder.run(&["dedup", "-q", "texts", "-o", "six/"]).fails(1, "six/: already exists");
    folder.run(&["dedup", "-q", "texts", "-o", "texts/a.md/"]).fails(1, "texts/a.md/: already exists");
    // Simulates the temporary folder of a killed process.
    fs::create_dir_all(folder.path(".seven.tmp/left")).unwrap();
    folder.write(".seven.tmp/left/a.md", "half");
    folder.run(&["dedup", "-q", "texts", "-o", "seven/"]).ok();
    assert_eq!(files_below(&folder.path("seven")), expected_files(&folder));
    assert_eq!(folder.names(), ["five", "four", "one", "seven", "six", "texts", "three", "two"]);
}

#[test]
fn several_inputs_keep_their_names() {
    let folder = text_folder();
    fs::create_dir(folder.path("more")).unwrap();
    folder.write("more/a.md", "one of another folder and of other words");
    folder.write("single.txt", "a single file, again with words of its own");
    folder.run(&["dedup", "-q", "texts", "more", "single.txt", "-o", "left/"]).ok();
    let names: Vec<String> = files_below(&folder.path("left")).into_keys().collect();
    let kept_texts = KEPT.map(|name| format!("texts/{name}"));
    assert_eq!(names, [&["more/a.md".to_owned(), "single.txt".to_owned()], &kept_texts[..]].concat());
    let run = folder.run(&["dedup", "-q", "texts/a.md", "more/a.md", "-o", "two/"]);
    run.fails(1, "more/a.md: would be written to two/a.md, like another file");
    assert_eq!(folder.names(), ["left", "more", "single.txt", "texts"]);
}

#[test]
fn only_text_files_are_copied() {
    let folder = text_folder();
    folder.write("a.jsonl", "{\"text\": \"one\"}\n");
    folder.write("a.hex", "0000000000000001\n");
    folder
        .run(&["dedup", "a.jsonl", "-o", "left/"])
        .fails(2, "only text files can be copied to a directory, but the inputs are jsonl");
    folder.run(&["dedup", "texts", "a.jsonl", "-o", "left/"]).fails(2, "documents are written in one format");
    folder.run(&["dedup", "a.hex", "-o", "left/"]).fails(2, "but the inputs are fingerprints");
    for option in ["--annotated", "--clusters", "--pairs", "--keep-list", "--remove-list"] {
        folder.run(&["dedup", "texts", option, "left/"]).fails(2, "left/: is a directory");
    }
    let tar = std::process::Command::new("tar")
        .args(["cf", "a.tar", "texts"])
        .current_dir(folder.0.path())
        .status();
    if tar.is_ok_and(|status| status.success()) {
        folder
            .run(&["dedup", "a.tar", "-o", "left/"])
            .fails(1, "only text files outside archives can be copied");
        fs::remove_file(folder.path("a.tar")).unwrap();
    }
    folder.run(&["dedup", "texts", "-o", "none/left/"]).fails(1, "No such file");
    assert_eq!(folder.names(), ["a.hex", "a.jsonl", "texts"]);
}

/// After a run with `--against STORE --add`, the next run copies to its output folder only files that are not in the store.
#[test]
fn a_folder_beside_a_store() {
    let folder = text_folder();
    let args = ["dedup", "-d", "3", "texts", "--against", "seen", "--add", "-o", "new/"];
    folder.run(&args).ok();
    assert_eq!(files_below(&folder.path("new")), expected_files(&folder));
    fs::rename(folder.path("new"), folder.path("old")).unwrap();
    folder.write("texts/f.md", "a page that comes a day later than the others");
    folder.run(&args).ok();
    assert_eq!(files_below(&folder.path("new")).into_keys().collect::<Vec<_>>(), ["f.md"]);
    assert_eq!(folder.names(), ["new", "old", "seen", "texts"]);
}
