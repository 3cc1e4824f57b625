//! Tests of the golden stores in `format-spec/golden`: the engine writes the same bytes again, and the engine and the
//! independent reader `format-spec/reader.py` read the expected contents.
//!
//! `UPDATE_GOLDEN=1 cargo test --test engine golden::` replaces the golden stores with newly written ones.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use simstore::{
    BuildOptions, Builder, Codec, Durability, Fingerprint, PlanChoice, Snapshot, Store, StoreOptions,
};

use crate::support::random::Random;
use crate::support::samples::{SampleDocument, build, documents};

/// A golden store: its name, and the options and documents that it is built from.
struct GoldenStore<F> {
    name: &'static str,
    options: BuildOptions,
    documents: Vec<SampleDocument<F>>,
}

fn options(codec: Codec, plan: &str, block_size: u32) -> BuildOptions {
    let plan = PlanChoice::Named(plan.to_string());
    BuildOptions { codec, plan, block_size: Some(block_size), ..BuildOptions::default() }
}

/// Returns documents with random and clustered fingerprints. Some fingerprints have several ids, and one fingerprint
/// has more than a hundred.
fn mixed<F: Fingerprint>(seed: u64, count: usize) -> Vec<SampleDocument<F>> {
    let mut random = Random(seed);
    let mut fingerprints: Vec<F> = (0..count / 2).map(|_| random.fingerprint()).collect();
    fingerprints.extend(random.clustered::<F>(count / 2));
    let again: Vec<F> = fingerprints.iter().step_by(7).copied().collect();
    fingerprints.extend(again);
    fingerprints.extend([fingerprints[3]; 100]);
    documents(&mut random, &fingerprints)
}

fn unnamed<F: Fingerprint>(fingerprints: impl IntoIterator<Item = F>) -> Vec<SampleDocument<F>> {
    (1..).zip(fingerprints).map(|(id, fingerprint)| (fingerprint, id, None)).collect()
}

/// Returns fingerprints of which many have the same prefix, and others near prefixes: their prefix lines are divided, some of
/// the dividing lines too, and some lines are runs.
fn dense() -> Vec<u64> {
    let mut random = Random(11);
    let mut all: Vec<u64> = (0..200).map(|_| random.fingerprint()).collect();
    let start = random.fingerprint::<u64>();
    all.extend((0..90).map(|i| start ^ i));
    all.extend((0..300).map(|i| start.wrapping_add(i << 46)));
    all.extend((0..120).map(|i| start.wrapping_add(i << 50) ^ random.below(1 << 30)));
    all
}

fn golden_64() -> Vec<GoldenStore<u64>> {
    let mut random = Random(64);
    let mut all = vec![
        GoldenStore {
            name: "first-difference-64",
            options: BuildOptions {
                profile: "words-2".into(),
                ..options(Codec::FirstDifference, "probe-2", 256)
            },
            documents: mixed(1, 200),
        },
        GoldenStore {
            name: "gap-64",
            options: options(Codec::Gap, "paper-4", 256),
            documents: mixed(2, 200),
        },
        GoldenStore {
            name: "elias-fano-64",
            options: options(Codec::EliasFano, "probe-2", 256),
            documents: mixed(3, 200),
        },
        GoldenStore {
            name: "all-differences-64",
            options: options(Codec::AllDifferences, "probe-2", 512),
            documents: mixed(7, 400),
        },
        GoldenStore {
            name: "prefix-lines-64",
            options: options(Codec::PrefixLines, "probe-2", 512),
            documents: mixed(9, 400),
        },
        GoldenStore {
            name: "prefix-lines-divided",
            options: options(Codec::PrefixLines, "probe-2", 256),
            documents: unnamed(dense()),
        },
        GoldenStore {
            name: "no-ids",
            options: BuildOptions { ids: false, ..options(Codec::FirstDifference, "cover-5", 512) },
            documents: unnamed((0..150).map(|_| random.fingerprint())),
        },
        GoldenStore {
            name: "no-flips",
            options: BuildOptions { distance: 0, ..options(Codec::Gap, "probe-1", 4096) },
            documents: unnamed((0..300).map(|_| random.fingerprint())),
        },
        GoldenStore {
            name: "consecutive",
            options: options(Codec::Gap, "scan", 256),
            documents: (0x0123_4567_89ab_c000..)
                .take(3000)
                .map(|fingerprint| (fingerprint, 7, None))
                .collect(),
        },
    ];
    for (codec, name) in [
        (Codec::FirstDifference, "example-first-difference"),
        (Codec::Gap, "example-gap"),
        (Codec::EliasFano, "example-elias-fano"),
        (Codec::AllDifferences, "example-all-differences"),
        (Codec::PrefixLines, "example-prefix-lines"),
    ] {
        let page = |fingerprint, id, name: &str| (fingerprint, id, Some(name.to_string()));
        let mut documents = vec![page(0x10, 1, "a/1.html"), page(0x13, 2, "a/2.html"), page(0x20, 7, "文")];
        documents.extend([(0x21, 8, None), (0x13, 300, None)]);
        all.push(GoldenStore { name, options: options(codec, "probe-2", 256), documents });
    }
    for (codec, [empty, single, extremes]) in [
        (Codec::FirstDifference, ["empty", "single", "extremes"]),
        (Codec::EliasFano, ["empty-elias-fano", "single-elias-fano", "extremes-elias-fano"]),
        (
            Codec::AllDifferences,
            ["empty-all-differences", "single-all-differences", "extremes-all-differences"],
        ),
        (Codec::PrefixLines, ["empty-prefix-lines", "single-prefix-lines", "extremes-prefix-lines"]),
    ] {
        let options = options(codec, "probe-2", 1024);
        let named = (0x0123_4567_89ab_cdef, 42, Some("the only document".to_string()));
        let ends = vec![(0, 0, None), (u64::MAX, 1, None), (u64::MAX, u64::MAX, Some("last".to_string()))];
        all.extend([
            GoldenStore { name: empty, options: options.clone(), documents: Vec::new() },
            GoldenStore { name: single, options: options.clone(), documents: vec![named] },
            GoldenStore { name: extremes, options, documents: ends },
        ]);
    }
    all
}

fn golden_128() -> Vec<GoldenStore<u128>> {
    let golden = |name, codec, plan, seed| {
        let options = options(codec, plan, 512);
        GoldenStore { name, options, documents: mixed(seed, 120) }
    };
    vec![
        golden("first-difference-128", Codec::FirstDifference, "probe-3", 4),
        golden("gap-128", Codec::Gap, "probe-2", 5),
        golden("elias-fano-128", Codec::EliasFano, "probe-1", 6),
        golden("all-differences-128", Codec::AllDifferences, "probe-2", 8),
        golden("prefix-lines-128", Codec::PrefixLines, "probe-3", 10),
        GoldenStore {
            name: "extremes-128",
            options: options(Codec::Gap, "probe-2", 512),
            documents: unnamed([0, 1, u128::MAX >> 1, u128::MAX]),
        },
    ]
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/golden")
}

/// Reads the files of a store, except its lock file and the expected contents. The key is the name of the file.
fn files(store: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(store).unwrap().map(|entry| entry.unwrap());
    let named =
        entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()));
    named.filter(|(name, _)| name != "LOCK" && !name.ends_with(".json")).collect()
}

fn compare_files<F: Fingerprint>(golden: &[GoldenStore<F>]) {
    for golden in golden {
        let fresh = tempfile::tempdir().unwrap();
        let store = fresh.path().join("store");
        build(Builder::create(&store, golden.options.clone()).unwrap(), &golden.documents);
        compare_store(golden.name, &store);
    }
}

/// Compares the files of a store with the files of the golden store `golden`. If `UPDATE_GOLDEN` is set, first
/// replaces the golden files with the files of the store.
fn compare_store(golden: &str, store: &Path) {
    let kept = folder().join(golden);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(&kept).unwrap();
        files(&kept).keys().for_each(|name| fs::remove_file(kept.join(name)).unwrap());
        for (name, bytes) in files(store) {
            fs::write(kept.join(name), bytes).unwrap();
        }
    }
    let (expected, found) = (files(&kept), files(store));
    let names: Vec<_> = expected.keys().collect();
    assert_eq!(found.keys().collect::<Vec<_>>(), names, "{golden}");
    for (name, bytes) in &expected {
        assert!(*bytes == found[name], "{golden}/{name} is written differently now");
    }
}

/// Writes a store with three segments and a log. The second segment has a tombstone and metadata; the third has only
/// metadata.
fn write_live(path: &Path) {
    let plan = PlanChoice::Named("probe-2".to_string());
    let options = StoreOptions {
        codec: Some(Codec::Gap),
        plan: Some(plan),
        block_size: Some(256),
        compaction: false,
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(path, options).unwrap();
    let mut batch = store.transaction();
    (0..4_u64).for_each(|i| batch.insert_named(0x10 + i, i, &format!("page {i}")).unwrap());
    batch.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.insert(0x20, 7);
    batch.delete(0x11, 1);
    batch.set_metadata("feed", &[0x2c, 1]).unwrap();
    batch.set_metadata("文", &[]).unwrap();
    batch.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.set_metadata("feed", &[0x2d, 1]).unwrap();
    batch.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.delete(0x12, 2);
    batch.set_metadata("tail", b"\t").unwrap();
    batch.commit(Durability::Sync).unwrap();
}

/// Writes a store with two segments and a log, all with notes. Each document of the first segment has two fingerprints; the
/// second segment deletes one of these documents and replaces the note of another.
fn write_notes(path: &Path) {
    let options = StoreOptions {
        codec: Some(Codec::Gap),
        plan: Some(PlanChoice::Named("probe-2".to_string())),
        block_size: Some(256),
        compaction: false,
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(path, options).unwrap();
    let mut batch = store.transaction();
    for (id, note) in [(1, &[0xa1, 0xa2, 0xa3][..]), (2, &[0xb1]), (300, &[])] {
        batch.insert(id << 8, id);
        batch.insert(id << 32, id);
        batch.set_note(id, note).unwrap();
    }
    batch.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    (0..2).for_each(|i| batch.delete(1 << [8, 32][i], 1));
    batch.set_note(2, &[0xb2, 0xb3]).unwrap();
    batch.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.insert_named(0x40, 4, "four").unwrap();
    batch.set_note(4, &[0xd1, 0xd2]).unwrap();
    batch.commit(Durability::Sync).unwrap();
}

#[test]
fn a_golden_store_with_notes() {
    let fresh = tempfile::tempdir().unwrap();
    write_notes(&fresh.path().join("store"));
    compare_store("notes-64", &fresh.path().join("store"));
    let kept = folder().join("notes-64");
    let store = Snapshot::<u64>::open(&kept).unwrap();
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    let notes = store.notes_of(&[0, 2, 4, 300]).unwrap();
    assert_eq!(notes, [None, Some(vec![0xb2, 0xb3]), Some(vec![0xd1, 0xd2]), Some(vec![])]);
    assert_eq!((store.stats().segments, store.stats().notes), (2, 5));
    let Some(output) = run_reader(&["--notes".as_ref(), &kept]) else { return };
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "2\tb2b3\n4\td1d2\n300\t\n");
    let output = run_reader(&[&kept]).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 5);
}

#[test]
fn a_live_golden_store() {
    let fresh = tempfile::tempdir().unwrap();
    write_live(&fresh.path().join("store"));
    compare_store("live-64", &fresh.path().join("store"));
    let kept = folder().join("live-64");
    let store = Snapshot::<u64>::open(&kept).unwrap();
    assert_eq!(store.verify(|error| panic!("{error}")), 0);
    let found: Vec<_> = store.iter().map(Result::unwrap).map(|e| (e.fingerprint, e.id.unwrap())).collect();
    assert_eq!(found, [(0x10, 0), (0x13, 3), (0x20, 7)]);
    let expected =
        [("feed", Some(vec![0x2d, 1])), ("文", Some(vec![])), ("tail", Some(vec![9])), ("x", None)];
    expected.into_iter().for_each(|(key, value)| assert_eq!(store.metadata(key).unwrap(), value, "{key}"));
    assert_eq!((store.stats().segments, store.stats().metadata), (3, 3));
    let Some(output) = run_reader(&[&kept]) else { return };
    let expected = "0000000000000010\t0\tpage 0\n0000000000000013\t3\tpage 3\n0000000000000020\t7\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
    let output = run_reader(&["--metadata".as_ref(), &kept]).unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "feed\t2d01\ntail\t09\n文\t\n");
}

/// Contents of a store: pairs of fingerprint and id, and the names of those ids that have one.
type StoreContents<'a, F> = (BTreeSet<(F, Option<u64>)>, BTreeMap<u64, &'a str>);

/// Returns the expected contents of a store of these documents. If `ids` is false, the store keeps no ids.
fn contents<F: Fingerprint>(documents: &[SampleDocument<F>], ids: bool) -> StoreContents<'_, F> {
    let entries = documents.iter().map(|(fingerprint, id, _)| (*fingerprint, ids.then_some(*id)));
    let names = documents.iter().filter_map(|(_, id, name)| Some((*id, name.as_deref()?)));
    (entries.collect(), names.collect())
}

fn check_contents<F: Fingerprint>(store: &Path, golden: &GoldenStore<F>) {
    let name = golden.name;
    let store = Snapshot::<F>::open(store).unwrap();
    assert_eq!(store.verify(|error| panic!("{name}: {error}")), 0);
    let (entries, names) = contents(&golden.documents, golden.options.ids);
    let found: Vec<_> = store.iter().map(Result::unwrap).map(|e| (e.fingerprint, e.id)).collect();
    assert_eq!(found, entries.iter().copied().collect::<Vec<_>>(), "{name}");
    for (_, id, _) in &golden.documents {
        let expected = names.get(id).map(|name| name.to_string());
        assert_eq!(store.name(*id).unwrap(), expected, "{name}: {id}");
    }
    assert_eq!(store.stats().names, names.len() as u64, "{name}");
    let settings = (golden.options.distance, golden.options.codec, &golden.options.profile[..]);
    assert_eq!((store.distance(), store.codec(), store.profile()), settings, "{name}");
    for &(fingerprint, ..) in golden.documents.iter().step_by(11 + golden.documents.len() / 100) {
        let query = fingerprint ^ F::bit_mask(5) ^ F::bit_mask(F::BITS - 1);
        let distance = golden.options.distance;
        let mut expected: Vec<_> = (entries.iter())
            .map(|&(stored, id)| (stored.distance(query), stored, id))
            .filter(|&(apart, ..)| apart <= distance)
            .collect();
        expected.sort_unstable();
        let matches = store.query(query, distance).unwrap();
        let found: Vec<_> = matches.iter().map(|m| (m.distance, m.fingerprint, m.id)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

/// Runs the independent reader `reader.py` and returns its output. If Python is missing, panics on CI, and returns
/// `None` on other machines.
fn run_reader(arguments: &[&Path]) -> Option<Output> {
    let reader = Path::new(env!("CARGO_MANIFEST_DIR")).join("format-spec/reader.py");
    match Command::new("python3").arg(reader).args(arguments).output() {
        Ok(output) => Some(output),
        Err(error) if std::env::var_os("CI").is_some() => panic!("python3: {error}"),
        Err(error) => {
            eprintln!("SKIPPED, the independent reader was not run: python3: {error}");
            None
        }
    }
}

/// Returns the expected output of `reader.py` for a store of these documents. If `ids` is false, the store keeps no ids.
fn lines<F: Fingerprint>(documents: &[SampleDocument<F>], ids: bool) -> String {
    let (entries, names) = contents(documents, ids);
    let mut text = String::new();
    for (fingerprint, id) in entries {
        text += &fingerprint.to_hex();
        if let Some(id) = id {
            text += &format!("\t{id}");
            text.extend(names.get(&id).map(|name| format!("\t{name}")));
        }
        text.push('\n');
    }
    text
}

fn check_reader<F: Fingerprint>(store: &Path, golden: &GoldenStore<F>) {
    let Some(output) = run_reader(&[store]) else { return };
    let problem = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {problem}", golden.name);
    let found = String::from_utf8(output.stdout).unwrap();
    assert!(found == lines(&golden.documents, golden.options.ids), "{}: other contents", golden.name);
}

fn check_golden<F: Fingerprint>(golden: &[GoldenStore<F>]) {
    compare_files(golden);
    for golden in golden {
        let store = folder().join(golden.name);
        check_contents(&store, golden);
        check_reader(&store, golden);
    }
}

/// The pages of `format-spec/` quote golden files correctly. A quote is a fenced code block with the first line
/// `golden/STORE/FILE`. Its other lines are `OFFSET  BYTES | MEANING`, with offset and bytes in hexadecimal, or `...` for
/// omitted bytes.
#[test]
fn the_pages_quote_golden_files() {
    for page in [
        "README.md", "manifest.md", "table.md", "blocks.md", "prefix-lines.md", "ids.md", "names.md",
        "notes.md", "metadata.md", "tombstones.md", "log.md", "similar.md",
    ] {
        let text = fs::read_to_string(folder().parent().unwrap().join(page)).unwrap();
        let examples: Vec<&str> = text.split("```").skip(1).step_by(2).map(str::trim).collect();
        let examples = examples.iter().filter(|example| example.starts_with("golden/"));
        let mut quoted = 0;
        for example in examples {
            let mut lines = example.lines();
            let name = lines.next().unwrap();
            let bytes = fs::read(folder().parent().unwrap().join(name)).unwrap();
            let mut expected = None;
            for line in lines {
                if line == "..." {
                    expected = None;
                    continue;
                }
                let (place, _) = line.split_once(" | ").unwrap();
                let (offset, hex) = place.split_once("  ").unwrap();
                let offset = usize::from_str_radix(offset, 16).unwrap();
                assert!(expected.is_none_or(|expected| expected == offset), "{page}: {line}");
                let hex = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap());
                let hex: Vec<u8> = hex.collect();
                assert_eq!(bytes[offset..offset + hex.len()], hex, "{page}: {line}");
                expected = Some(offset + hex.len());
                quoted += hex.len();
            }
        }
        assert!(quoted > 40 || page == "README.md", "{page} quotes no golden file");
    }
}

#[test]
fn golden_stores_of_64_bits() {
    check_golden(&golden_64());
}

#[test]
fn golden_stores_of_128_bits() {
    check_golden(&golden_128());
}

/// Builds a store from the options and documents of a golden store, and checks that the engine and
/// `format-spec/reader.py` read the right contents.
fn check_fresh<F: Fingerprint>(golden: &GoldenStore<F>) {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store");
    build(Builder::create(&store, golden.options.clone()).unwrap(), &golden.documents);
    check_contents(&store, golden);
    check_reader(&store, golden);
}

/// Builds stores with these table plans, and checks that the engine and `format-spec/reader.py` read the right contents.
/// The stores are larger than the golden stores: they have `count` random or clustered fingerprints, names in several
/// chunks, and a name of maximum length.
fn fresh<F: Fingerprint>(plans: &[&str], count: usize) {
    let mut random = Random(u64::from(F::BITS));
    for codec in Codec::ALL {
        for (i, plan) in plans.iter().enumerate() {
            let mut fingerprints: Vec<F> = (0..count).map(|_| random.fingerprint()).collect();
            if i % 2 == 1 {
                fingerprints = random.clustered(count);
            }
            let block_size = [256, 1024, 4096][random.below(3) as usize];
            let mut documents = documents(&mut random, &fingerprints);
            documents.push((F::MAX, u64::MAX, Some("长".repeat(21845) + "x")));
            check_fresh(&GoldenStore { name: "fresh", options: options(codec, plan, block_size), documents });
        }
    }
}

#[test]
fn fresh_stores_of_64_bits() {
    fresh::<u64>(&["probe-2", "cover-5", "scan", "probe-3"], 1500);
}

#[test]
fn fresh_stores_of_128_bits() {
    fresh::<u128>(&["probe-3", "probe-2"], 1200);
}

/// The engine and `format-spec/reader.py` read blocks with the maximum number of fingerprints.
#[test]
fn the_largest_blocks() {
    for codec in [Codec::Gap, Codec::EliasFano] {
        let options = BuildOptions { ids: false, ..options(codec, "scan", 65536) };
        let documents = unnamed((0..u64::from(u16::MAX) + 1000).map(|i| i << 40 | i));
        check_fresh(&GoldenStore { name: "large blocks", options: options.clone(), documents });
        let documents = unnamed(u64::MAX - u64::from(u16::MAX) - 1000..=u64::MAX);
        check_fresh(&GoldenStore { name: "full blocks", options, documents });
    }
}

#[test]
fn the_reader_prints_tables_and_refuses_damage() {
    let store = folder().join("gap-64");
    let Some(output) = run_reader(&["--table".as_ref(), &store.join("000001-01.table")]) else { return };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("codec: gap\n"), "{text}");
    let table = simstore::raw::Table::<u64>::open(
        "golden".as_ref(),
        fs::read(store.join("000001-01.table")).unwrap().into(),
    );
    let permuted: Vec<String> = table.unwrap().scan().map(|x| x.unwrap().to_hex()).collect();
    assert!(text.ends_with(&format!("\n{}\n", permuted.join("\n"))));

    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(9);
    for (name, bytes) in files(&store) {
        let other = |bytes: &[u8]| {
            for (name, bytes) in files(&store) {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
            fs::write(folder.path().join(&name), bytes).unwrap();
            let output = run_reader(&[folder.path()]).unwrap();
            let problem = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{name}: {problem}");
            assert!(problem.contains(&name) && problem.lines().count() == 1, "{problem}");
        };
        other(&bytes[..random.below(bytes.len() as u64) as usize]);
        for _ in 0..3 {
            let mut damaged = bytes.clone();
            damaged[random.below(bytes.len() as u64) as usize] ^= 1 << random.below(8);
            other(&damaged);
        }
    }
}
