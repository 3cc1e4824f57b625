//! Tests of the rules of the format: which files a reader must reject, and which problems a full check must find. Each
//! rule has a name in a page of `format-spec/`. Each rule has at least one test case here, a forged store that breaks
//! the rule. The checksums of the forged store are valid, unless the rule is about checksums.

mod blocks;
mod file_frame;
mod forging;
mod log;
mod manifest;
mod prefix_lines;
mod segment_values;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use rayon::prelude::*;
use simstore::batch::BatchMethod;
use simstore::{Codec, Snapshot, Store, StoreOptions};

use self::forging::{Case, disk_of, one_table, whole_store, without_ids};
use crate::structure::root;
use crate::support::seal::{StoreFiles, seal_store};

/// Pages of `format-spec/` about files that the engine does not read. Other packages test their rules: `dedup` tests
/// `part.md` and `stage.md`; `corpus` and `python` test `shards.md`; `text` tests `similar.md` and `signature.md`.
const PAGES_TESTED_ELSEWHERE: [&str; 5] = ["part.md", "shards.md", "similar.md", "signature.md", "stage.md"];

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleKind {
    /// A reader must reject a file that breaks the rule.
    Reject,
    /// A full check must find that a file breaks the rule. A reader that does less than a full check may accept the file.
    Find,
}

/// The valid stores of which most forged stores are changed copies, with their names in `format-spec/golden`.
pub(crate) fn bases() -> [(&'static str, StoreFiles); 2] {
    [("whole", whole_store()), ("without-ids", without_ids())]
}

/// All forged stores, each with the kind of the rule that it breaks.
pub(crate) fn all_cases() -> Vec<(Case, RuleKind)> {
    let rules = rules();
    let kind = |case: &Case| rules[&(case.page.to_owned(), case.rule.to_owned())];
    let with_kind = |case| {
        let kind = kind(&case);
        (case, kind)
    };
    cases().into_iter().map(with_kind).collect()
}

fn cases() -> Vec<Case> {
    let pages = [
        file_frame::page(),
        file_frame::chunked_page(),
        table::page(),
        blocks::page(),
        prefix_lines::page(),
        segment_values::ids(),
        segment_values::names(),
        segment_values::notes(),
        segment_values::tombstones(),
        segment_values::metadata(),
        log::page(),
        manifest::page(),
        manifest::plan_page(),
    ];
    pages.into_iter().flat_map(|page| page.cases).collect()
}

/// Returns the rules in the pages of `format-spec/`. A key has the file name of a page, and the name of a rule.
fn rules() -> BTreeMap<(String, String), RuleKind> {
    let mut rules = BTreeMap::new();
    for entry in fs::read_dir(root().join("format-spec")).unwrap().map(|entry| entry.unwrap()) {
        let page = entry.file_name().into_string().unwrap();
        if !page.ends_with(".md") || PAGES_TESTED_ELSEWHERE.contains(&&*page) {
            continue;
        }
        let mut kind = None;
        for line in fs::read_to_string(entry.path()).unwrap().lines() {
            if line.starts_with('#') {
                let heading = line.to_lowercase();
                kind = match () {
                    () if heading.ends_with("a reader must reject") => Some(RuleKind::Reject),
                    () if heading.ends_with("a full check must find") => Some(RuleKind::Find),
                    () => None,
                };
            }
            if let (Some(kind), Some(rule)) = (kind, line.strip_prefix("- ")) {
                let name = rule.strip_prefix('`').and_then(|rule| rule.split_once("`: "));
                let (name, _) = name.unwrap_or_else(|| panic!("{page}: a rule without a name: {line}"));
                let is_new = rules.insert((page.clone(), name.to_owned()), kind).is_none();
                assert!(is_new, "{page}: two rules have the name {name}");
            }
        }
    }
    rules
}

#[test]
fn each_rule_of_the_pages_has_a_case() {
    let named: BTreeSet<_> = rules().into_keys().collect();
    let tested: BTreeSet<_> =
        cases().iter().map(|case| (case.page.to_owned(), case.rule.to_owned())).collect();
    assert_eq!(named, tested, "the rules of format-spec/ (left) are not those that have a case");
    // Rules outside of lists would not be found.
    for (page, _) in named {
        let text = fs::read_to_string(root().join("format-spec").join(&page)).unwrap();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(!line.contains("full check also"), "{page}: a rule that is not in a list: {line}");
        }
    }
}

/// Reads a whole store, and checks it in full. Returns two lists: the errors from reading, and the problems that the
/// check finds.
fn problems(files: &StoreFiles) -> [Vec<String>; 2] {
    let snapshot = match Snapshot::<u64>::open_on(&disk_of(files).as_fs(), Path::new("store")) {
        Ok(snapshot) => snapshot,
        Err(error) => return [vec![error.to_string()], vec![error.to_string()]],
    };
    let mut read = Vec::new();
    let mut refused = |error: Option<simstore::Error>| read.extend(error.map(|error| error.to_string()));
    refused(snapshot.iter().find_map(Result::err));
    let ids: Vec<u64> = (0..400).chain([1 << 40]).collect();
    refused(snapshot.names_of(&ids).err());
    refused(snapshot.notes_of(&ids).err());
    refused(snapshot.pairs_of_ids(&ids.into_iter().collect()).err());
    for key in ["", "a", "feed", "文"] {
        refused(snapshot.metadata(key).err());
    }
    for method in [BatchMethod::Stream, BatchMethod::LookUp] {
        refused(
            snapshot
                .batch_query_by(&[0x10, 0x13, 0x20, prefix_lines::IN_A_RUN], snapshot.distance(), method)
                .err(),
        );
    }
    // A merge also reads data that look-ups do not read, such as all metadata.
    let disk = disk_of(files);
    let options = StoreOptions { fs: disk.as_fs(), compaction: false, ..StoreOptions::default() };
    refused(Store::<u64>::open(Path::new("store"), options).and_then(|store| store.compact()).err());
    let mut found = Vec::new();
    snapshot.verify(|error| found.push(error.to_string()));
    [read, found]
}

fn sound() -> Vec<StoreFiles> {
    let few = [0x10, 0x20, 0x30, 0x48];
    let tables = Codec::ALL.map(|codec| one_table(codec, None, &few));
    [vec![whole_store(), without_ids()], tables.to_vec(), log::sound(), segment_values::sound(), unusual()]
        .concat()
}

/// Returns stores that no version of the crate writes, and that all readers must accept: the tables of a segment with different
/// codecs and block sizes, and a plan with an unknown name.
fn unusual() -> Vec<StoreFiles> {
    let golden = |name: &str| {
        let entries = fs::read_dir(root().join("format-spec/golden").join(name)).unwrap();
        let files = entries.map(|entry| entry.unwrap().path());
        let files = files.filter(|path| path.extension().is_none_or(|extension| extension != "json"));
        let read = |path: std::path::PathBuf| {
            (path.file_name().unwrap().to_str().unwrap().to_owned(), fs::read(&path).unwrap())
        };
        files.map(read).collect::<StoreFiles>()
    };
    let mut all = Vec::new();
    for codec in Codec::ALL {
        let (mut files, other) = (golden("example-gap"), golden(&format!("example-{codec}")));
        files.insert("000001-01.table".to_owned(), other["000001-01.table"].clone());
        seal_store(&mut files);
        all.push(files);
        let (mut files, other) = (golden(&format!("example-{codec}")), golden("example-gap"));
        files.insert("000001-01.table".to_owned(), other["000001-01.table"].clone());
        seal_store(&mut files);
        all.push(files);
    }
    for name in [b"probe-9", b"unknown", b"mixed-3"] {
        let mut files = golden("example-gap");
        let manifest = files.get_mut("MANIFEST").unwrap();
        let places: Vec<usize> =
            (0..manifest.len() - 7).filter(|&at| manifest[at..].starts_with(b"probe-2")).collect();
        assert_eq!(places.len(), 2);
        places.into_iter().for_each(|at| manifest[at..at + 7].copy_from_slice(name));
        seal_store(&mut files);
        all.push(files);
    }
    all
}

/// A plan of an unknown name stays in the manifest through a flush and a merge.
#[test]
fn an_unknown_plan_stays_in_the_manifest() {
    let files = unusual().pop().unwrap();
    let has_plan = |files: &StoreFiles| files["MANIFEST"].windows(7).any(|bytes| bytes == b"mixed-3");
    assert!(has_plan(&files));
    let disk = disk_of(&files);
    let options = StoreOptions { fs: disk.as_fs(), compaction: false, ..StoreOptions::default() };
    let store = Store::<u64>::open(Path::new("store"), options).unwrap();
    store.insert(0x50, 50).unwrap();
    store.flush().unwrap();
    store.compact().unwrap();
    assert_eq!(store.snapshot().segments().len(), 1);
    drop(store);
    assert!(has_plan(&forging::files_of(&disk)));
}

#[test]
fn forged_stores_are_refused() {
    for (i, files) in sound().iter().enumerate() {
        let [read, found] = problems(files);
        assert!(read.is_empty() && found.is_empty(), "{i}: {read:?} {found:?}");
    }
    let (rules, cases) = (rules(), cases());
    let missed = |case: &Case| {
        let [read, found] = problems(&case.files);
        let kind = rules[&(case.page.to_owned(), case.rule.to_owned())];
        let all = if kind == RuleKind::Reject { &read } else { &found };
        let has_message =
            |all: &[String]| all.iter().any(|problem| problem.replace('`', "").contains(case.message));
        let is_fine = has_message(all) && has_message(&found);
        let Case { page, rule, variant, message, .. } = case;
        (!is_fine).then(|| {
            format!("{page} {rule} ({variant}): {message:?}\n    read: {read:?}\n    check: {found:?}")
        })
    };
    let missed: Vec<String> = cases.par_iter().filter_map(missed).collect();
    assert!(missed.is_empty(), "{} of {}:\n{}", missed.len(), cases.len(), missed.join("\n"));
}

/// Python program that reads paths of stores from standard input. For each store, it prints one line: the problem that
/// `format-spec/reader.py` finds, or nothing.
const DRIVER: &str = "
import sys
sys.path.insert(0, sys.argv[1])
import reader
for path in sys.stdin.read().splitlines():
    try:
        print(reader.Store(path).torn_tail or '')
    except reader.Damaged as error:
        print(error)
";

#[test]
fn the_independent_reader_refuses_them_too() {
    let folder = tempfile::tempdir().unwrap();
    let (sound, cases) = (sound(), cases());
    let mut paths = String::new();
    for (i, files) in sound.iter().chain(cases.iter().map(|case| &case.files)).enumerate() {
        let store = folder.path().join(i.to_string());
        fs::create_dir(&store).unwrap();
        files.iter().for_each(|(name, bytes)| fs::write(store.join(name), bytes).unwrap());
        paths += &format!("{}\n", store.display());
    }
    let reader = Command::new("python3")
        .args(["-B", "-c", DRIVER])
        .arg(root().join("format-spec"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn();
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) if std::env::var_os("CI").is_some() => panic!("python3: {error}"),
        Err(error) => return eprintln!("SKIPPED, the independent reader was not run: python3: {error}"),
    };
    reader.stdin.take().unwrap().write_all(paths.as_bytes()).unwrap();
    let output = reader.wait_with_output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let said: Vec<&str> = said.lines().collect();
    assert!(output.status.success() && said.len() == sound.len() + cases.len(), "{}", said.len());
    assert!(said[..sound.len()].iter().all(|said| said.is_empty()), "{:?}", &said[..sound.len()]);
    let missed = cases.iter().zip(&said[sound.len()..]).filter(|(_, said)| said.is_empty());
    let missed: Vec<String> =
        missed.map(|(case, _)| format!("{} {} ({})", case.page, case.rule, case.variant)).collect();
    assert!(missed.is_empty(), "not found by reader.py:\n{}", missed.join("\n"));
}
