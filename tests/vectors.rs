//! The test vectors of the format in `format-spec/`: for each golden store its expected contents in JSON, and stores that a
//! reader must reject. The engine, `reader.py` and `vectors.py` agree with them.
//!
//! `UPDATE_GOLDEN=1 cargo test --test engine vectors` writes them anew: the contents as `reader.py` reads them, matches of
//! queries by the plain loop, and the forged stores of `tests/rules/`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use simstore::{Fingerprint, Snapshot};

use crate::independent_writer;
use crate::rules::{self, RuleKind};
use crate::support::random::Random;
use crate::support::spec_folder::{is_update, python, spec};

/// Files of forged stores that are larger than this number of bytes are not in the vectors, to keep these small.
const MAX_FILE_BYTES: usize = 1 << 15;

/// Paths of the golden stores, ascending.
fn golden_stores() -> Vec<PathBuf> {
    let folders = fs::read_dir(spec("golden")).unwrap().map(|entry| entry.unwrap().path());
    let mut stores: Vec<PathBuf> = folders.filter(|path| path.join("MANIFEST").exists()).collect();
    stores.sort();
    assert!(stores.len() > 30);
    stores
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn write_json(path: &Path, value: &Value) {
    fs::write(path, lines_of(value, 0) + "\n").unwrap();
}

/// Formats a JSON value: on one line if it is short or a list of numbers and texts, else with a line for each entry.
fn lines_of(value: &Value, depth: usize) -> String {
    let compact = value.to_string();
    let is_flat = |values: &[Value]| values.iter().all(|value| !value.is_array() && !value.is_object());
    let entries: Vec<String> = match value {
        _ if compact.len() < 140 => return compact,
        Value::Array(values) if is_flat(values) => return compact,
        Value::Array(values) => values.iter().map(|value| lines_of(value, depth + 1)).collect(),
        Value::Object(entries) => entries
            .iter()
            .map(|(key, value)| format!("{}: {}", json!(key), lines_of(value, depth + 1)))
            .collect(),
        _ => return compact,
    };
    let (start, end) = if value.is_array() { ('[', ']') } else { ('{', '}') };
    let indent = " ".repeat(depth + 1);
    format!("{start}\n{indent}{}\n{}{end}", entries.join(&format!(",\n{indent}")), &indent[1..])
}

/// Pairs of an expected store: fingerprints with their ids, or with `None` in a store without ids.
fn expected_pairs<F: Fingerprint>(expected: &Value) -> Vec<(F, Option<u64>)> {
    let pair = |pair: &Value| {
        let fingerprint = F::parse_hex(pair[0].as_str().unwrap()).unwrap();
        (fingerprint, pair.get(1).map(|id| id.as_str().unwrap().parse().unwrap()))
    };
    expected["pairs"].as_array().unwrap().iter().map(pair).collect()
}

/// Returns matches (distance, fingerprint, id) in the form of `expected.json`, ascending.
fn matches_to_json<F: Fingerprint>(mut matches: Vec<(u32, F, Option<u64>)>) -> Value {
    matches.sort_unstable();
    let to_json = |(apart, stored, id): (u32, F, Option<u64>)| match id {
        Some(id) => json!([apart, stored.to_hex(), id.to_string()]),
        None => json!([apart, stored.to_hex()]),
    };
    matches.into_iter().map(to_json).collect()
}

/// Returns queries and their matches by the plain loop: stored fingerprints with changed bits, and a fingerprint that is not
/// near a stored one.
fn queries<F: Fingerprint>(expected: &Value) -> Value {
    let pairs = expected_pairs::<F>(expected);
    let most = expected["distance"].as_u64().unwrap() as u32;
    let mut random = Random(7);
    let mut queries = vec![(random.fingerprint::<F>(), most)];
    for i in 0..8.min(pairs.len()) {
        let (mut query, distance) = (pairs[i * pairs.len() / 8.min(pairs.len())].0, most.min(i as u32));
        for _ in 0..distance {
            query = query ^ F::bit_mask(random.below(u64::from(F::BITS)) as u32);
        }
        queries.push((query, distance));
    }
    let query = |&(query, distance): &(F, u32)| {
        let near = |&(stored, id): &(F, Option<u64>)| {
            let apart = stored.distance(query);
            (apart <= distance).then_some((apart, stored, id))
        };
        let matches = pairs.iter().filter_map(near).collect();
        json!({"fingerprint": query.to_hex(), "distance": distance, "matches": matches_to_json(matches)})
    };
    queries.iter().map(query).collect()
}

/// Writes the expected contents of a golden store.
fn update_contents(store: &Path) {
    let Some(text) = python("reader.py", &["--json", store.to_str().unwrap()]) else { return };
    let mut expected: Value = serde_json::from_str(&text).unwrap();
    expected["queries"] = match expected["bits"].as_u64().unwrap() {
        64 => queries::<u64>(&expected),
        _ => queries::<u128>(&expected),
    };
    write_json(&store.join("expected.json"), &expected);
}

/// Compares a golden store, as the engine reads it, with its expected contents.
fn compare<F: Fingerprint>(path: &Path, expected: &Value) {
    let name = path.file_name().unwrap().to_str().unwrap();
    let store = Snapshot::<F>::open(path).unwrap();
    assert_eq!(store.verify(|error| panic!("{name}: {error}")), 0);
    let settings = json!({
        "bits": F::BITS, "distance": store.distance(), "codec": store.codec().to_string(), "ids": store.keeps_ids(),
        "profile": store.profile(), "plan": store.plan_policy(),
    });
    for (field, value) in settings.as_object().unwrap() {
        assert_eq!(expected[field], *value, "{name}: {field}");
    }
    let found: Vec<_> = store.iter().map(Result::unwrap).map(|entry| (entry.fingerprint, entry.id)).collect();
    assert_eq!(found, expected_pairs::<F>(expected), "{name}");
    let mut ids: Vec<u64> = found.iter().filter_map(|&(_, id)| id).collect();
    ids.extend(0..400);
    ids.sort_unstable();
    ids.dedup();
    let by_id = |values: Vec<Option<String>>| -> Value {
        let named = ids.iter().zip(values).filter_map(|(id, value)| Some((id.to_string(), json!(value?))));
        Value::Object(named.collect())
    };
    assert_eq!(by_id(store.names_of(&ids).unwrap()), expected["names"], "{name}");
    let notes = store.notes_of(&ids).unwrap().into_iter().map(|note| note.map(|note| hex(&note)));
    assert_eq!(by_id(notes.collect()), expected["notes"], "{name}");
    for (key, value) in expected["metadata"].as_object().unwrap() {
        let found = store.metadata(key).unwrap().map(|value| hex(&value));
        assert_eq!(json!(found), *value, "{name}: {key}");
    }
    for (segment, expected) in store.segments().iter().zip(expected["segments"].as_array().unwrap()) {
        assert_eq!(json!(segment.number().to_string()), expected["number"], "{name}");
        assert_eq!(segment.stats().tombstones, expected["tombstones"].as_array().unwrap().len() as u64);
        for (table, expected) in segment.tables().iter().zip(expected["tables"].as_array().unwrap()) {
            compare_table(table, expected, name);
        }
    }
    assert_eq!(store.segments().len(), expected["segments"].as_array().unwrap().len());
    let logs: Vec<Value> = (store.logs().iter())
        .map(|log| json!([log.number.to_string(), log.records, log.torn_bytes, log.is_sealed]))
        .collect();
    let last = expected["logs"].as_array().unwrap().len();
    let expected_logs = expected["logs"].as_array().unwrap().iter().enumerate().map(|(i, log)| {
        // A log before another one is sealed, too.
        let is_sealed = log["closed"].as_bool().unwrap() || i + 1 < last;
        json!([log["number"], log["records"].as_array().unwrap().len(), log["torn_bytes"], is_sealed])
    });
    assert_eq!(logs, expected_logs.collect::<Vec<_>>(), "{name}");
    for query in expected["queries"].as_array().unwrap() {
        let fingerprint = F::parse_hex(query["fingerprint"].as_str().unwrap()).unwrap();
        let matches = store.query(fingerprint, query["distance"].as_u64().unwrap() as u32).unwrap();
        let matches = matches.iter().map(|m| (m.distance, m.fingerprint, m.id)).collect();
        assert_eq!(matches_to_json(matches), query["matches"], "{name}: {query}");
    }
}

fn compare_table<F: Fingerprint>(table: &simstore::raw::Table<F>, expected: &Value, name: &str) {
    let header = table.header();
    let (lines, dividing, key_bits) =
        table.prefix_lines().map_or((0, 0, 0), |lines| (lines.lines, lines.dividing_lines, lines.key_bits));
    let lengths = header.code_lengths().iter().enumerate().filter(|&(_, &length)| length > 0);
    let lengths: serde_json::Map<String, Value> =
        lengths.map(|(symbol, &length)| (symbol.to_string(), json!(length))).collect();
    let mut blocks = Vec::new();
    for block in 0..table.blocks() {
        let mut decoded = Vec::new();
        table.decode_block(block, &mut decoded).unwrap();
        blocks.push(decoded.iter().map(|fingerprint| fingerprint.to_hex()).collect::<Vec<_>>());
    }
    let found = json!({
        "file": table.path().file_name().unwrap().to_str(), "codec": header.codec.to_string(),
        "prefix_bits": header.plan.prefix_bits, "flips": header.plan.flips, "block_size": header.block_size,
        "span": header.span, "permutation": header.plan.permutation.sources(), "code_lengths": lengths,
        "lines": lines, "dividing_lines": dividing, "key_bits": key_bits, "blocks": blocks,
    });
    assert_eq!(found, *expected, "{name}");
}

/// Writes the valid stores of which the rejected ones are changed copies, or compares them with the golden stores.
fn compare_bases() {
    for (name, files) in rules::bases() {
        let folder = spec("golden").join(name);
        if is_update() {
            fs::create_dir_all(&folder).unwrap();
            files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
        }
        for (file, bytes) in files {
            assert!(
                fs::read(folder.join(&file)).unwrap() == bytes,
                "golden/{name}/{file} is written differently now"
            );
        }
    }
}

#[test]
fn golden_stores_have_their_expected_contents() {
    compare_bases();
    ["minimal", "segments"].into_iter().for_each(independent_writer::compare_written);
    for store in golden_stores() {
        if is_update() {
            update_contents(&store);
        }
        let expected = read_json(&store.join("expected.json"));
        match expected["bits"].as_u64().unwrap() {
            64 => compare::<u64>(&store, &expected),
            _ => compare::<u128>(&store, &expected),
        }
    }
}

/// Returns the forged stores of one page of the format as the value of a file in `format-spec/rejected/`. The files of the store
/// that the case has in common with the golden store `base` are left out.
fn rejected() -> BTreeMap<String, Value> {
    let bases: BTreeMap<_, _> = rules::bases().into_iter().collect();
    let mut pages: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (case, kind) in rules::all_cases() {
        if case.files.values().any(|bytes| bytes.len() > MAX_FILE_BYTES) {
            continue;
        }
        let common = |base: &crate::support::seal::StoreFiles| {
            case.files.iter().filter(|(name, bytes)| base.get(*name) == Some(*bytes)).count()
        };
        let base = bases.iter().max_by_key(|(_, files)| common(files)).filter(|(_, files)| common(files) > 1);
        let mut files = serde_json::Map::new();
        for (name, bytes) in &case.files {
            if base.is_none_or(|(_, base)| base.get(name) != Some(bytes)) {
                files.insert(name.clone(), json!(hex(bytes)));
            }
        }
        for name in base.iter().flat_map(|(_, base)| base.keys()) {
            if !case.files.contains_key(name) {
                files.insert(name.clone(), Value::Null);
            }
        }
        let kind = if kind == RuleKind::Reject { "reader" } else { "check" };
        pages.entry(case.page.to_owned()).or_default().push(json!({
            "rule": case.rule, "kind": kind, "variant": case.variant,
            "base": base.map(|(name, _)| name), "files": files,
        }));
    }
    pages.into_iter().map(|(page, cases)| (page.clone(), json!({"page": page, "cases": cases}))).collect()
}

#[test]
fn rejected_stores_are_the_forged_ones() {
    let pages = rejected();
    let path = |page: &str| spec("rejected").join(page.replace(".md", ".json"));
    if is_update() {
        fs::create_dir_all(spec("rejected")).unwrap();
        pages.iter().for_each(|(page, cases)| write_json(&path(page), cases));
    }
    for (page, cases) in &pages {
        assert!(read_json(&path(page)) == *cases, "{}: other cases", path(page).display());
    }
    assert_eq!(fs::read_dir(spec("rejected")).unwrap().count(), pages.len());
}

/// `vectors.py`, which tests any reader program, finds no fault in `reader.py`, and finds the faults of readers that accept
/// everything or nothing.
#[test]
fn the_runner_of_vectors_judges_readers() {
    let reader = spec("reader.py");
    let Some(output) = python("vectors.py", &["python3", "-B", reader.to_str().unwrap(), "--json"]) else {
        return;
    };
    assert!(output.contains("0 failures"), "{output}");
    // Accepts every store, and knows the contents of the golden ones.
    let accepts_all = "import os, sys; path = sys.argv[1] + '/expected.json'
print(open(path).read() if os.path.exists(path) else '{}')";
    let judged = |program: &[&str]| {
        let vectors =
            Command::new("python3").arg("-B").arg(spec("vectors.py")).args(program).output().unwrap();
        assert_eq!(vectors.status.code(), Some(1), "{program:?}");
        String::from_utf8(vectors.stdout).unwrap()
    };
    let said = judged(&["python3", "-c", accepts_all]);
    let cases: usize = rejected().values().map(|page| page["cases"].as_array().unwrap().len()).sum();
    assert_eq!(said.lines().filter(|line| line.ends_with(": accepted")).count(), cases, "{said}");
    assert!(said.contains("ids.md, rule width, variant 65: accepted"), "{said}");
    // Rejects every store.
    let said = judged(&["false"]);
    assert_eq!(
        said.lines().filter(|line| line.starts_with("golden/")).count(),
        golden_stores().len(),
        "{said}"
    );
}
