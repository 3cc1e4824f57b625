//! `simstore inspect`, `verify` and `dump`, and their errors for a path without a store.

use serde_json::json;
use simstore::{Durability, Store, StoreOptions};

use crate::{Random, TestFolder, fields, hex_lines};

/// Creates a folder with a store of 3000 fingerprints. `args` are further arguments of `build`.
fn with_store(args: &[&str]) -> TestFolder {
    let folder = TestFolder::new();
    folder.write("a.hex", hex_lines(&Random(11).clustered(3000)));
    folder.run(&[&["build", "store", "a.hex"], args].concat()).ok();
    folder
}

#[test]
fn inspect() {
    let folder = with_store(&["--plan", "cover-5", "--block-size", "1024"]);
    let lines = folder.run(&["inspect", "store", "--json"]).json();
    let expected = "\
        bits bits_per_fingerprint block_size by_age bytes codec distance fingerprints floor_bits_per_fingerprint id_bytes \
        ids keeps_ids logs memory memtable_entries metadata metadata_bytes name_bytes names note_bytes notes plan profile recall segments similar span table_bytes tables tombstone_bytes tombstones with_texts";
    assert_eq!(fields(&lines[0]).join(" "), expected);
    let files = std::fs::read_dir(folder.path("store")).unwrap();
    let bytes: u64 = files.map(|file| file.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(lines[0]["bytes"], bytes);
    assert_eq!(lines[0]["ids"], 3000);
    assert_eq!(lines.len(), 6);
    assert_eq!(lines[1]["plan"], "cover-5");
    assert_eq!(lines[5]["table"], 4);
    assert_eq!(lines[5]["permutation"].as_array().unwrap().len(), 64);

    let table = &folder.run(&["inspect", "store", "--table", "2", "--json"]).json()[0];
    let symbols: u64 = table["histogram"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum();
    // The histogram counts one symbol for each fingerprint except the first of each block.
    let blocks = table["blocks"].as_u64().unwrap();
    assert_eq!(symbols, table["fingerprints"].as_u64().unwrap() - blocks);

    let mut values = Vec::new();
    for block in 0..blocks {
        let block = &folder
            .run(&["inspect", "store", "--table", "2", "--block", &block.to_string(), "--json"])
            .json()[0];
        let block_values = block["values"].as_array().unwrap();
        assert_eq!(block["fingerprints"], block_values.len());
        assert_eq!(block["first"], block_values[0]["permuted"]);
        values.extend(block_values.iter().map(|value| value["original"].as_str().unwrap().to_owned()));
    }
    assert_eq!(folder.run(&["dump", "store", "--table", "2"]).ok().lines().collect::<Vec<_>>(), values);

    for args in [&[][..], &["--table", "1"], &["--table", "1", "--block", "0"]] {
        let human = folder.run(&[&["inspect", "store"], args].concat()).ok();
        assert!(args.len() == 4 || human.contains('█'), "{human}");
    }
    folder.run(&["inspect", "store", "--table", "5"]).fails(1, "no table 5");
    folder.run(&["inspect", "store", "--table", "0", "--block", "999"]).fails(1, "no block 999");
    folder.run(&["inspect", "store", "--table", "0", "--segment", "1"]).fails(1, "no segment 1");
}

#[test]
fn inspect_shows_how_all_differences_codes() {
    let folder = with_store(&["--plan", "paper-4", "--codec", "all-differences"]);
    let table = &folder.run(&["inspect", "store", "--table", "1", "--json"]).json()[0];
    assert_eq!((&table["codec"], &table["span"]), (&json!("all-differences"), &json!(32)));
    // Compare each coded fingerprint with its description, and count the symbols (h, differing, is earlier)
    // of all blocks.
    let (mut counted, mut coded, mut restarts) = (std::collections::BTreeMap::new(), 0, 0);
    for block in 0..table["blocks"].as_u64().unwrap() {
        let args = ["inspect", "store", "--table", "1", "--block", &block.to_string()];
        let shown = folder.run(&args).ok();
        let block = &folder.run(&[&args[..], &["--json"]].concat()).json()[0];
        let values = block["values"].as_array().unwrap();
        let lines = shown.lines().skip_while(|line| !line.ends_with("coded")).skip(1);
        let permuted = |i: usize| u64::from_str_radix(values[i]["permuted"].as_str().unwrap(), 16).unwrap();
        for ((i, value), line) in values.iter().enumerate().zip(lines) {
            assert_eq!(value["coded"].is_null(), i % 32 == 0, "{line}");
            if value["coded"].is_null() {
                assert!(line.ends_with("  restart point"), "{line}");
                restarts += 1;
                continue;
            }
            let [h, back] = ["h", "back"].map(|field| value["coded"][field].as_u64().unwrap());
            let other = permuted(i - 1 - back as usize);
            let (difference, expected) = match value["coded"]["differing"].as_u64() {
                None => (permuted(i) - other, format!("  gap {h}")),
                Some(0) => (permuted(i) ^ other, format!("  differs in {h}")),
                Some(more) => (permuted(i) ^ other, format!("  differs in {h} and {more} more")),
            };
            assert_eq!(u64::from(difference.ilog2()), h, "{line}");
            if let Some(more) = value["coded"]["differing"].as_u64() {
                assert_eq!(u64::from(difference.count_ones()), 1 + more, "{line}");
            }
            let expected_end = if back > 0 { format!("{expected}, {back} back") } else { expected };
            assert!(line.ends_with(&expected_end), "{line}");
            let symbol = (h, value["coded"]["differing"].as_u64(), back > 0);
            *counted.entry(symbol).or_insert(0_u64) += 1;
            coded += 1;
        }
    }
    assert_eq!(table["fingerprints"], coded + restarts);
    let symbols = table["symbols"].as_array().unwrap().iter().map(|symbol| {
        let [h, count] = ["h", "count"].map(|field| symbol[field].as_u64().unwrap());
        ((h, symbol["differing"].as_u64(), symbol["earlier"].as_bool().unwrap()), count)
    });
    assert!(symbols.eq(counted.iter().map(|(&symbol, &count)| (symbol, count))));
    let share = |is_counted: &dyn Fn(Option<u64>, bool) -> bool| {
        let symbols = counted.iter().filter(|&(&(_, differing, earlier), _)| is_counted(differing, earlier));
        format!("{:.2}%", symbols.map(|(_, count)| count).sum::<u64>() as f64 * 100.0 / f64::from(coded))
    };
    let expected = format!(
        "  coded by differing bits from the previous fingerprint {}, from an earlier one {}, as a gap {}\n",
        share(&|differing, earlier| differing.is_some() && !earlier),
        share(&|_, earlier| earlier),
        share(&|differing, _| differing.is_none())
    );
    assert!(counted.keys().any(|&(_, _, earlier)| earlier) && counted.keys().any(|key| key.1.is_none()));
    let shown = folder.run(&["inspect", "store", "--table", "1"]).ok();
    assert!(shown.ends_with(&expected) && shown.contains("\n    h    gap     +0 "), "{shown}");
    // The histogram has one line for each h from the highest to the lowest.
    let highest = counted.keys().next_back().unwrap().0;
    let drawn = shown.lines().skip_while(|line| !line.starts_with("    h")).count() - 2;
    assert_eq!(drawn as u64, highest - counted.keys().next().unwrap().0 + 1, "{shown}");
    assert!(shown.contains(&format!("\n  {highest:>3} ")), "{shown}");
    assert!(folder.run(&["inspect", "store"]).ok().ends_with("%\n"));

    // The other Huffman codecs count only h: `differing` is null and `earlier` is false. `elias-fano` has no symbols.
    for (codec, has_symbols) in
        [("first-difference", true), ("gap", true), ("elias-fano", false), ("prefix-lines", false)]
    {
        folder.run(&["build", "store", "a.hex", "--codec", codec, "--force"]).ok();
        let table = &folder.run(&["inspect", "store", "--table", "0", "--json"]).json()[0];
        let symbols = table["symbols"].as_array().unwrap();
        assert_eq!(symbols.is_empty(), !has_symbols, "{codec}");
        assert!(symbols.iter().all(|symbol| symbol["differing"].is_null() && symbol["earlier"] == false));
    }
    folder.write("one.hex", "0000000000000001\n");
    folder.run(&["build", "store", "one.hex", "--codec", "all-differences", "--force"]).ok();
    assert!(folder.run(&["inspect", "store", "--table", "0"]).ok().contains("as a gap 0.00%"));
}

#[test]
fn one_is_no_plural() {
    let folder = TestFolder::new();
    folder.write("a.tsv", "0000000000000001\t7\n");
    folder.run(&["build", "store", "a.tsv", "--plan", "scan"]).ok();
    let shown = folder.run(&["inspect", "store"]).ok();
    assert!(shown.starts_with("store: 1 fingerprint of 64 bits, 1 id, 0 names\n"), "{shown}");
    folder.run(&["inspect", "store", "--table", "1"]).fails(1, "has 1 table,");
    folder.run(&["inspect", "store", "--table", "0", "--block", "1"]).fails(1, "has 1 block,");
    folder.run(&["dump", "store", "--table", "0", "--segment", "1"]).fails(1, "has 1 segment,");
    let shown = folder.run(&["inspect", "store", "--table", "0", "--block", "0"]).ok();
    assert!(shown.contains("  1 fingerprint, "), "{shown}");
    let shown = folder.run(&["compression", "a.tsv"]).ok();
    assert!(shown.starts_with("1 fingerprint, 1 distinct\n"), "{shown}");
}

/// `inspect` shows the similarity and recall of a store made with `--similar`. No command warns that fingerprints of
/// the short texts in this store are unreliable.
#[test]
fn inspect_a_store_of_similar_documents() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", "{\"id\": 1, \"text\": \"a short text of few words\"}\n");
    for (store, args, shown, with_texts) in [
        (
            "texts",
            &["--similar", "0.8", "--with-texts"][..],
            "similarity >= 0.8, recall 0.95, with texts",
            json!(true),
        ),
        (
            "signatures",
            &["--similar", "0.9", "--recall", "0.9"],
            "similarity >= 0.9, recall 0.9, without texts",
            json!(false),
        ),
        ("prints", &["--distance", "3"], "", json!(null)),
    ] {
        let added = folder.run(&[&["add", store, "a.jsonl"], args].concat());
        let object = &folder.run(&["inspect", store, "--json"]).json()[0];
        assert_eq!(object["with_texts"], with_texts, "{store}");
        assert_eq!(object["similar"].is_null(), shown.is_empty(), "{store}");
        assert_eq!(object["recall"].is_null(), shown.is_empty(), "{store}");
        let output = folder.run(&["inspect", store]).ok();
        assert_eq!(output.contains(&format!("{store}: similar documents, ")), !shown.is_empty(), "{output}");
        assert!(output.contains(shown), "{output}");
        let made = match shown.split(", ").next() {
            Some(similarity) if !similarity.is_empty() => {
                format!("new store of similar documents ({similarity})")
            }
            _ => "new store of fingerprints (within 3 bits)".to_owned(),
        };
        assert!(added.stderr.contains(&format!("{store}: {made}, 1 document added")), "{}", added.stderr);
        let deleted = folder.run(&["delete", store, "a.jsonl"]);
        for run in [added, deleted] {
            assert_eq!(
                run.stderr.contains("reliable fingerprint"),
                shown.is_empty(),
                "{store}: {}",
                run.stderr
            );
            run.ok();
        }
    }
    let built = folder.run(&["build", "built", "a.jsonl", "--similar", "0.8"]);
    assert!(!built.stderr.contains("reliable fingerprint"), "{}", built.stderr);
    built.ok();
}

#[test]
fn notes_are_reported() {
    let folder = TestFolder::new();
    let store = Store::<u64>::open(&folder.path("store"), StoreOptions::default()).unwrap();
    let mut transaction = store.transaction();
    transaction.insert(7, 1);
    transaction.set_note(1, &[1, 2, 3]).unwrap();
    transaction.commit(Durability::Sync).unwrap();
    store.flush().unwrap();
    drop(store);
    let described = &folder.run(&["inspect", "store", "--json"]).json()[0];
    let path = folder.path("store");
    let notes = std::fs::read_dir(&path).unwrap().map(|file| file.unwrap().path());
    let notes = notes.into_iter().find(|path| path.extension() == Some("notes".as_ref())).unwrap();
    let bytes = std::fs::metadata(&notes).unwrap().len();
    assert_eq!((&described["notes"], &described["note_bytes"]), (&json!(1), &json!(bytes)));
    let shown = folder.run(&["inspect", "store"]).ok();
    assert!(shown.contains("  notes "), "{shown}");
    let shown = folder.run(&["salvage", "store", "new"]).ok();
    assert!(shown.contains("1 id, 0 names, 1 note; replayed"), "{shown}");
    let mut damaged = std::fs::read(&notes).unwrap();
    damaged[25] ^= 1;
    std::fs::write(&notes, damaged).unwrap();
    let run = folder.run(&["verify", "store"]);
    assert!(run.stdout.contains(".notes: damaged at offset 16"), "{}", run.stdout);
    run.fails(1, "1 problem found");
}

#[test]
fn dump() {
    let folder = with_store(&["--plan", "paper-4"]);
    let mut expected: Vec<(u64, usize)> =
        (0..).zip(Random(11).clustered(3000)).map(|(i, f)| (f, i)).collect();
    expected.sort_unstable();
    let lines: String = expected.iter().map(|(value, id)| format!("{value:016x}\t{id}\n")).collect();
    assert_eq!(folder.run(&["dump", "store"]).ok(), lines);
    assert_eq!(folder.run(&["dump", "store", "-o", "out.tsv"]).ok(), "");
    assert_eq!(folder.read("out.tsv"), lines);
    let first = &folder.run(&["dump", "store", "--json"]).json()[0];
    assert_eq!(first, &json!({"fingerprint": format!("{:016x}", expected[0].0), "id": expected[0].1}));

    expected.dedup_by_key(|(value, _)| *value);
    let raw: Vec<u8> = expected.iter().flat_map(|(value, _)| value.to_le_bytes()).collect();
    folder.run(&["dump", "store", "--raw", "-o", "out.u64"]).ok();
    assert_eq!(std::fs::read(folder.path("out.u64")).unwrap(), raw);
    let sorted: Vec<String> = expected.iter().map(|(value, _)| format!("{value:016x}")).collect();
    for table in 0..3 {
        let dump = |more: &[&str]| {
            folder.run(&[&["dump", "store", "--table", &table.to_string()], more].concat()).ok()
        };
        let (originals, permuted) = (dump(&[]), dump(&["--permuted"]));
        let mut originals: Vec<&str> = originals.lines().collect();
        assert!(permuted.lines().is_sorted());
        assert_eq!(originals.is_sorted(), table == 0);
        originals.sort_unstable();
        assert_eq!(originals, sorted);
    }
}

#[test]
fn verify() {
    let folder = with_store(&["--plan", "paper-4"]);
    assert!(folder.run(&["verify", "store"]).ok().starts_with("ok: "));
    let summary = &folder.run(&["verify", "store", "--json"]).json()[0];
    assert_eq!(fields(summary), ["fingerprints", "ids", "logs", "ok", "problems", "tables"]);
    assert_eq!(summary["ok"], true);

    let table = folder.path("store").join("000001-01.table");
    let mut bytes = std::fs::read(&table).unwrap();
    bytes[1000] ^= 1;
    std::fs::write(&table, bytes).unwrap();
    let run = folder.run(&["verify", "store"]);
    assert!(run.stdout.contains("000001-01.table: damaged at offset"), "{}", run.stdout);
    run.fails(1, "found");
    let run = folder.run(&["verify", "store", "--json"]);
    assert_eq!(run.code, Some(1));
    let lines: Vec<serde_json::Value> =
        run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(fields(&lines[0]), ["file", "offset", "problem"]);
    assert_eq!(lines.last().unwrap()["ok"], false);
    assert_eq!(lines.last().unwrap()["problems"], lines.len() as u64 - 1);

    std::fs::write(&table, "cut").unwrap();
    let run = folder.run(&["verify", "store", "--json"]);
    assert_eq!(run.stdout.lines().count(), 2, "{}", run.stdout);
    run.fails(1, "1 problem found");
    folder.run(&["query", "store", "0000000000000000"]).fails(1, "000001-01.table: damaged at offset");
}

#[test]
fn paths_without_a_store() {
    let folder = TestFolder::new();
    folder.write("file", "no store");
    std::fs::create_dir(folder.path("folder")).unwrap();
    for path in ["file", "folder", "nothing"] {
        for command in ["inspect", "verify", "dump"] {
            folder.run(&[command, path]).fails(1, path);
        }
        folder.run(&["query", path, "0000000000000000"]).fails(1, path);
    }
    folder.run(&["inspect", "folder"]).fails(1, "not a simstore store");
}

#[test]
fn an_empty_store() {
    let folder = TestFolder::new();
    folder.write("a.hex", "");
    folder.run(&["build", "store", "a.hex"]).ok();
    assert_eq!(folder.run(&["query", "store", "0000000000000000"]).ok(), "");
    assert_eq!(folder.run(&["dump", "store"]).ok(), "");
    folder.run(&["inspect", "store"]).ok();
    folder.run(&["inspect", "store", "--table", "0"]).ok();
    folder.run(&["inspect", "store", "--json"]).ok();
    folder.run(&["verify", "store"]).ok();
    folder.run(&["dedup", "a.hex", "--json"]).fails(1, "no documents were read");
    folder.run(&["dedup", "a.hex", "--json", "--allow-empty"]).ok();
}
