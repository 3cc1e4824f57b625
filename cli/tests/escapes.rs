//! Escapes of ids, names and paths in lines of text. The table lists each command and option that writes or
//! reads them.
//!
//! | output or input | writes | reads |
//! |---|---|---|
//! | `fingerprint`, `dump` | lines `HEX<TAB>ID` | |
//! | `dedup --output`, `--annotated` of fingerprints | lines `HEX<TAB>ID` | |
//! | `dedup --output`, `--annotated` of text files | lines of paths | |
//! | `dedup --keep-list`, `--remove-list`, `--reasons`, `--clusters`, `--pairs` | columns | |
//! | `query`, `add --if-new`, missing ids that `delete` prints | columns | |
//! | inputs of fingerprints: `build`, `add`, `dedup`, `query`, `delete` | | lines `HEX<TAB>ID` |
//! | `delete --ids` | | names, with `--null` paths too |
//! | `--files-from` | | paths |

use std::collections::BTreeSet;

use simstore_io::escape::parse_listed_name;

use crate::{Random, TestFolder};

/// Returns names with each character from U+0000 to U+00FF, and names that look like escapes.
fn names() -> Vec<String> {
    let mut names: Vec<String> =
        ["", "\\", "\\e", "\\\\", "\\x41", "a\\tb", "C:\\new\\docs", "\r", " ", "\u{2028}", "一", "e\u{301}"]
            .map(str::to_owned)
            .into();
    names.extend((0..=u8::MAX).map(|byte| format!("a{}b", char::from(byte))));
    names
}

fn text(random: &mut Random) -> String {
    (0..40).map(|_| format!("w{} ", random.next() % 100_000)).collect()
}

/// Returns a JSON line of a document.
fn json(id: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id, "text": text }))
}

/// Returns the unescaped values of a tab-separated column, counted from 0. Panics if a value occurs twice.
#[track_caller]
fn column(lines: &str, column: usize) -> BTreeSet<String> {
    let read = |line: &str| parse_listed_name(line.split('\t').nth(column).unwrap().as_bytes()).unwrap();
    let all: Vec<String> = lines.strip_suffix('\n').unwrap().split('\n').map(read).collect();
    let set: BTreeSet<String> = all.iter().cloned().collect();
    assert_eq!(set.len(), all.len());
    set
}

fn store_names(folder: &TestFolder, store: &str) -> BTreeSet<String> {
    let entries = folder.run(&["dump", store, "--json"]).json();
    entries.iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn ids_survive_every_output_and_input() {
    let (folder, names, mut random) = (TestFolder::new(), names(), Random(12));
    let expected: BTreeSet<String> = names.iter().cloned().collect();
    let different: String = names.iter().map(|name| json(name, &text(&mut random))).collect();
    folder.write("a.jsonl", different);
    let same = text(&mut random);
    folder.write("first.jsonl", json("first", &same));
    folder.write("same.jsonl", names.iter().map(|name| json(name, &same)).collect::<String>());

    // Commands and options that write names.
    folder.write("a.hex", folder.run(&["fingerprint", "-q", "a.jsonl"]).ok());
    folder.run(&["build", "-q", "s", "a.jsonl"]).ok();
    folder.write("dumped.hex", folder.run(&["dump", "s"]).ok());
    folder.write("found", folder.run(&["query", "-q", "s", "--distance", "0", "a.hex"]).ok());
    folder.run(&["dedup", "-q", "-d", "0", "a.hex", "-o", "left.hex", "--annotated", "annotated"]).ok();
    folder.run(&["dedup", "-q", "a.jsonl", "--keep-list", "kept"]).ok();
    let removed = ["dedup", "-q", "first.jsonl", "same.jsonl", "--remove-list", "gone", "--pairs", "pairs"];
    folder.run(&removed).ok();
    let reasons = ["dedup", "-q", "first.jsonl", "same.jsonl", "--remove-list", "reasons", "--reasons"];
    folder.run(&reasons).ok();
    folder.run(&["dedup", "-q", "same.jsonl", "--clusters", "clusters"]).ok();
    folder.run(&["build", "-q", "other", "first.jsonl"]).ok();
    let missing = folder.run(&["delete", "-q", "other", "--ids", "kept"]);
    assert_eq!(missing.code, Some(1), "{}", missing.stderr);
    folder.write("missing", missing.stdout);
    folder.write("duplicates", folder.run(&["add", "-q", "other", "--if-new", "same.jsonl"]).ok());
    folder.run(&["add", "-q", "similar", "--similar", "0.8", "--with-texts", "same.jsonl"]).ok();
    folder.write("like", folder.run(&["query", "-q", "similar", "--text", &same]).ok());
    for (place, at) in [
        ("a.hex", 1),
        ("dumped.hex", 1),
        ("found", 3),
        ("left.hex", 1),
        ("annotated", 1),
        ("kept", 0),
        ("gone", 0),
        ("reasons", 0),
        ("clusters", 0),
        ("missing", 0),
        ("duplicates", 0),
        ("like", 2),
    ] {
        assert_eq!(column(&folder.read(place), at), expected, "{place}");
    }
    let pairs = folder.read("pairs");
    let first_pairs: String =
        pairs.lines().filter(|line| line.starts_with("first\t")).map(|line| format!("{line}\n")).collect();
    assert_eq!(column(&first_pairs, 1), expected);

    // Commands and options that read names.
    for lines in ["a.hex", "dumped.hex", "left.hex"] {
        folder.run(&["build", "-q", "--force", "built", lines]).ok();
        assert_eq!(store_names(&folder, "built"), expected, "{lines}");
    }
    folder.run(&["add", "-q", "added", "dumped.hex"]).ok();
    assert_eq!(store_names(&folder, "added"), expected);
    folder.run(&["delete", "-q", "added", "dumped.hex"]).ok();
    assert_eq!(folder.run(&["dump", "added"]).ok(), "");
    folder.run(&["dedup", "-q", "-d", "0", "dumped.hex", "--keep-list", "kept-of-hex"]).ok();
    assert_eq!(column(&folder.read("kept-of-hex"), 0), expected);
    for list in ["kept", "gone", "missing"] {
        folder.run(&["build", "-q", "--force", "built", "a.jsonl"]).ok();
        folder.run(&["delete", "-q", "built", "--ids", list]).ok();
        assert_eq!(folder.run(&["dump", "built"]).ok(), "", "{list}");
    }
}

/// A list with zero bytes as terminators holds all ids except those that contain a zero byte.
#[test]
fn ids_survive_lists_terminated_by_zero_bytes() {
    let (folder, mut random) = (TestFolder::new(), Random(13));
    let names: Vec<String> =
        names().into_iter().filter(|name| !name.is_empty() && !name.contains('\0')).collect();
    let documents: String = names.iter().map(|name| json(name, &text(&mut random))).collect();
    folder.write("a.jsonl", documents);
    folder.run(&["dedup", "-q", "a.jsonl", "--null", "--keep-list", "kept"]).ok();
    let list: String = names.iter().map(|name| format!("{name}\0")).collect();
    assert_eq!(folder.read("kept"), list);
    folder.run(&["build", "-q", "s", "a.jsonl"]).ok();
    folder.run(&["delete", "-q", "s", "--null", "--ids", "kept"]).ok();
    assert_eq!(folder.run(&["dump", "s"]).ok(), "");
    folder.write("zero.jsonl", json("a\0b", "a text of some words"));
    let run = folder.run(&["dedup", "-q", "zero.jsonl", "--null", "--keep-list", "-"]);
    run.fails(1, "the id `a\\u{0}b` contains a zero byte");
}

#[test]
fn unknown_escapes_are_refused_with_advice() {
    let folder = TestFolder::new();
    folder.write("a.hex", "0000000000000001\tC:\\docs\n");
    folder.run(&["build", "s", "a.hex"]).fails(1, "a.hex:1: unknown escape `\\d`");
    folder.run(&["build", "s", "a.hex"]).fails(1, "write a backslash in a name as `\\\\`");
    folder.write("list", "a.jsonl\nb\\\n");
    folder.run(&["dedup", "--files-from", "list"]).fails(1, "list:2: unknown escape `\\`");
    folder.write("a.hex", "0000000000000001\ta\n");
    folder.run(&["build", "-q", "s", "a.hex"]).ok();
    let run = folder.run(&["delete", "s", "--ids", "list"]);
    run.fails(1, "list:2: unknown escape `\\`: write a backslash in a name as `\\\\`; use --null");
}

/// Paths with any byte that a file name can contain are the same after a list of paths is written and read.
#[test]
#[cfg(target_os = "linux")]
fn paths_survive_every_list() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    let (folder, mut random) = (TestFolder::new(), Random(14));
    std::fs::create_dir(folder.path("d")).unwrap();
    let bytes = (1..=u8::MAX).filter(|&byte| byte != b'/').map(|byte| vec![b'a', byte, b'b']);
    let more = [&b"\\x41"[..], b"\\\\x41", b"\\", b"\\e", b"\\\xff", b"a\\tb", b"x\\u{41}", b" ", b"- "];
    let mut paths: Vec<Vec<u8>> =
        bytes.chain(more.map(<[u8]>::to_vec)).map(|name| [&b"d/"[..], &name, b".txt"].concat()).collect();
    paths.sort();
    for path in &paths {
        std::fs::write(folder.0.path().join(OsStr::from_bytes(path)), text(&mut random)).unwrap();
    }
    let ids = |args: &[&str]| -> BTreeSet<String> {
        let objects = folder.run(&[&["fingerprint", "-q", "--json"], args].concat()).json();
        objects.iter().map(|object| object["id"].as_str().unwrap().to_owned()).collect()
    };
    let expected = ids(&["d"]);
    assert_eq!(expected.len(), paths.len());

    let outputs = ["--keep-list", "kept", "-o", "left", "--annotated", "annotated"];
    folder.run(&[&["dedup", "-q", "d"], &outputs[..]].concat()).ok();
    let zeros = ["--null", "--keep-list", "kept0", "-o", "left0"];
    folder.run(&[&["dedup", "-q", "d"], &zeros[..]].concat()).ok();
    for list in ["kept", "left", "annotated"] {
        assert_eq!(column(&folder.read(list), 0), expected, "{list}");
    }
    let list: Vec<u8> = paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect();
    for name in ["kept0", "left0"] {
        let read = std::fs::read(folder.path(name)).unwrap();
        let entries =
            |list: &[u8]| list.split(|&byte| byte == 0).map(<[u8]>::to_vec).collect::<BTreeSet<_>>();
        assert_eq!(entries(&read), entries(&list), "{name}");
    }
    for args in [&["kept"][..], &["left"], &["kept0", "--null"], &["left0", "--null"]] {
        assert_eq!(ids(&[&["--files-from"], args].concat()), expected, "{args:?}");
        folder.run(&["build", "-q", "--force", "s", "d"]).ok();
        assert_eq!(store_names(&folder, "s"), expected);
        folder.run(&[&["delete", "-q", "s", "--ids"], args].concat()).ok();
        assert_eq!(folder.run(&["dump", "s"]).ok(), "", "{args:?}");
    }
    // If a list entry equals the id of one document and the path of another, it means the path.
    folder.write("d/\\x41.jsonl", json("d/\\x41.txt", "another text of other words"));
    folder.run(&["build", "-q", "--force", "s", "d"]).ok();
    folder.run(&["delete", "-q", "s", "--null", "--ids", "kept0"]).ok();
    assert_eq!(store_names(&folder, "s"), BTreeSet::from(["d/\\x41.txt".to_owned()]));
}
