//! `simstore evaluate`.

use std::io::Write;

use serde_json::{Value, json};

use crate::{Random, TestFolder, fields, sample};

/// Returns a word whose fingerprint differs from the fingerprint of `w0` in `distance` bits.
fn word_at_distance(folder: &TestFolder, distance: u32) -> String {
    let line = |number| json!({"id": format!("w{number}"), "text": format!("w{number}")}).to_string() + "\n";
    folder.write("words.jsonl", (0..200_000).map(line).collect::<String>());
    let fingerprints = folder.run(&["fingerprint", "-q", "--profile", "words-1", "words.jsonl"]).ok();
    let value = |line: &str| u64::from_str_radix(&line[..16], 16).unwrap();
    let first = value(fingerprints.lines().next().unwrap());
    let near = fingerprints.lines().find(|line| (value(line) ^ first).count_ones() == distance).unwrap();
    near[17..].to_owned()
}

/// Returns a JSON line of a labelled pair of texts.
fn pair(a: &str, b: &str, label: &Value) -> String {
    json!({"text_a": a, "text_b": b, "label": label}).to_string() + "\n"
}

const PROFILE_ARGS: [&str; 3] = ["--profile", "words-1", "--json"];

#[test]
fn counts_equal_those_computed_by_hand() {
    let folder = TestFolder::new();
    let near = word_at_distance(&folder, 16);
    let lines = [
        pair("one", "one", &json!(true)),
        pair("two", "three", &json!(false)),
        pair("w0", &near, &json!(1)),
        pair("four", "?!", &json!(0)),
    ];
    folder.write("pairs.jsonl", lines.concat());
    let args = [&["evaluate", "pairs.jsonl", "--documents", "1001"][..], &PROFILE_ARGS].concat();
    let objects = folder.run(&args).json();
    assert_eq!(objects.len(), 17 + 1);
    assert_eq!(
        fields(&objects[0]),
        [
            "alike", "f1", "false_pairs", "false_pairs_at_most", "false_share", "k", "negatives", "paper",
            "positives", "precision", "profile", "random", "recall", "recommended"
        ]
    );
    for (k, object) in (0..).zip(&objects[..17]) {
        let positives = if k == 16 { 2 } else { 1 };
        assert_eq!((&object["k"], &object["profile"]), (&json!(k), &json!("words-1")));
        assert_eq!((&object["positives"], &object["negatives"]), (&json!(positives), &json!(0)));
        assert_eq!(object["recall"], json!(f64::from(positives) / 2.0));
        assert_eq!((&object["paper"], &object["recommended"]), (&json!(k == 3), &json!(false)));
    }
    // The six texts with features form groups of 1, 2, 2 and 1 by pair: `one`; `two`, `three`; `w0`, `near`; `four`.
    // Random pairs are all pairs of texts from different groups.
    let summary = &objects[17];
    assert_eq!(
        fields(summary),
        [
            "alike_from", "bad", "best", "bits", "documents", "empty", "excluded", "f1", "looked_at",
            "negatives", "positives", "profile", "random", "recommended", "too_few_random"
        ]
    );
    for (field, value) in [
        ("positives", json!(2)),
        ("negatives", json!(1)),
        ("random", json!(6 * 5 / 2 - 2)),
        ("excluded", json!(1)),
        ("empty", json!(1)),
        ("best", json!(16)),
        ("recommended", Value::Null),
        ("f1", json!(1.0)),
        ("too_few_random", json!(true)),
    ] {
        assert_eq!(summary[field], value, "{field}");
    }
    // Upper bound by the rule of three: no false pair among 13 means at most 3 / 13 of the 1001 * 1000 / 2 pairs.
    let bound = objects[0]["false_pairs_at_most"].as_f64().unwrap();
    assert!((bound - 3.0 / 13.0 * 500_500.0).abs() < 1e-6 && objects[0]["false_pairs"].is_null());
}

/// Writes three pairs of texts, which are old and new versions of a page: one pair for page `a`, two pairs for page
/// `b`. Four of the six texts are the same word with different spaces: both texts of `a`, and two texts of `b`.
fn write_template_pairs(folder: &TestFolder) {
    let page = |path: &str, old: &str, new: &str| {
        json!({"path": path, "text_old": old, "text_new": new}).to_string() + "\n"
    };
    let lines = [page("a", "same", "same "), page("b", "same  ", "other"), page("b", "more", "same   ")];
    folder.write("pairs.jsonl", lines.concat());
}

#[test]
fn random_pairs_within_k_are_false_unless_their_texts_are_alike() {
    let folder = TestFolder::new();
    write_template_pairs(&folder);
    let args = [&["evaluate", "pairs.jsonl", "--documents", "3"][..], &PROFILE_ARGS].concat();
    let objects = folder.run(&args).json();
    // Two texts of `a` and four of `b` form 8 random pairs. Both texts of `a` equal two texts of `b`.
    assert_eq!((&objects[0]["random"], &objects[17]["random"]), (&json!(4), &json!(8)));
    assert_eq!((&objects[0]["alike"], &objects[17]["looked_at"]), (&json!(4), &json!(4)));
    assert_eq!((&objects[0]["false_share"], &objects[0]["precision"]), (&json!(0.0), &json!(1.0)));
    // The same words in reverse order have the same fingerprint but no common shingle.
    let backwards = [("same", "a b c d e"), ("more", "e d c b a"), ("other", "a c e b d")]
        .iter()
        .fold(folder.read("pairs.jsonl"), |text, (word, words)| text.replace(word, words));
    folder.write("pairs.jsonl", &backwards);
    let objects = folder.run(&args).json();
    assert_eq!(
        (&objects[0]["random"], &objects[0]["alike"], &objects[17]["looked_at"]),
        (&json!(8), &json!(4), &json!(8))
    );
    assert_eq!(objects[0]["false_share"], json!(0.5));
    // All three positive pairs have distance 0. In a corpus of three documents, each document forms two
    // random pairs, and half of these are false.
    assert_eq!((&objects[0]["recall"], &objects[0]["precision"]), (&json!(1.0), &json!(0.5)));
    let unlike = folder.run(&[&args[..], &["--alike-from", "1"]].concat()).json();
    assert_eq!(unlike[0]["alike"], json!(4));
    let all = folder.run(&[&args[..], &["--alike-from", "0"]].concat()).json();
    assert_eq!(all[0]["alike"], json!(8));
    let by_other_path = [&args[..], &["--path-field", "none"]].concat();
    assert_eq!(folder.run(&by_other_path).json()[17]["random"], json!(12));
}

#[test]
fn a_recommendation_depends_on_the_corpus_and_is_never_bad() {
    let folder = TestFolder::new();
    let page = |path: u32, text: String| {
        json!({"path": path, "text_old": text, "text_new": text}).to_string() + "\n"
    };
    let lines: String = (0..40).map(|path| page(path, format!("w{path} x{path} y{path} z{path}"))).collect();
    folder.write("pairs.jsonl", &lines);
    let run = |documents: &str| {
        let args = ["evaluate", "pairs.jsonl", "--profile", "words-1", "--documents", documents];
        (folder.run(&args).ok(), folder.run(&[&args[..], &["--json"]].concat()).json().pop().unwrap())
    };
    // 780 random pairs are enough for a corpus of 261 documents.
    let (text, summary) = run("261");
    let expected =
        "Recommended for a corpus of 261 documents: k = 0. It has recall 100.00% and precision 100.00%.\n";
    assert!(text.contains(expected) && text.contains("\n0 * "), "{text}");
    assert_eq!((&summary["recommended"], &summary["too_few_random"]), (&json!(0), &json!(false)));
    let (text, summary) = run("262");
    assert!(
        text.contains(
            "No distance is recommended for a corpus of 262 documents: there are too few random pairs"
        ),
        "{text}"
    );
    assert!(text.contains("or --documents 261 or less") && !text.contains(" * "), "{text}");
    assert_eq!((&summary["recommended"], &summary["too_few_random"]), (&Value::Null, &json!(true)));
    // Pages of the same words in different orders: all random pairs have distance 0, but few are similar.
    let orders: String = (0..40)
        .map(|path| {
            let words: Vec<String> =
                (0..30).map(|word| format!("w{}", (word * 7 + path) * (path + 1) % 31)).collect();
            page(path, words.join(" "))
        })
        .collect();
    folder.write("pairs.jsonl", &orders);
    let (text, summary) = run("100");
    assert!(
        text.contains("No distance is good enough for a corpus of 100 documents. The best, k = "),
        "{text}"
    );
    assert!(text.contains("Compare texts instead: simstore dedup --similar 0.8.\n"), "{text}");
    assert!(!text.contains("Recommended") && !text.contains(" * "), "{text}");
    assert_eq!((&summary["recommended"], &summary["too_few_random"]), (&Value::Null, &json!(false)));
    let several =
        ["evaluate", "pairs.jsonl", "--profile", "words-1", "--profile", "words-3", "--documents", "100"];
    let text = folder.run(&several).ok();
    assert!(
        text.contains("words-3 * ")
            && text.contains("words-3: Recommended for a corpus of 100 documents: k = "),
        "{text}"
    );
}

#[test]
fn similar_is_listed_beside_the_distances() {
    let folder = TestFolder::new();
    let pairs = sample("pairs.jsonl");
    let labelled = ["evaluate", &pairs, "--label-field", "jaccard3", "--positive-from", "0.8", "--similar"];
    let text = folder.run(&[&labelled[..], &["0.8", "--similar", "0.95"]].concat()).ok();
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("similar 0.")).collect();
    assert!(rows.len() == 2 && rows[0].starts_with("similar 0.8 ") && rows[0].ends_with(" 0"), "{text}");
    let objects = folder.run(&[&labelled[..], &["0.8", "--json"]].concat()).json();
    assert_eq!(
        fields(&objects[17]),
        ["excluded", "f1", "negatives", "positives", "precision", "recall", "similar"]
    );
    // The label is the Jaccard similarity of word 3-grams. It treats markup otherwise than `--similar`, so
    // the recall may be below 1.
    assert!(objects[17]["recall"].as_f64().unwrap() >= 0.9, "{:?}", objects[17]);
    assert_eq!((&objects[17]["similar"], &objects[18]["alike_from"]), (&json!(0.8), &json!(0.8)));
    let several =
        [&labelled[..], &["0.9", "--profile", "words-1", "--profile", "words-2", "--markdown"]].concat();
    let markdown = folder.run(&several).ok();
    assert!(markdown.lines().nth(4).unwrap().starts_with("| similar 0.9 | - | "), "{markdown}");
    folder
        .run(&[&labelled[..], &["0.7"]].concat())
        .fails(1, "--similar 0.7 is below --alike-from 0.8: its pairs would count as false");
    folder.run(&[&labelled[..], &["0.7", "--alike-from", "0.7"]].concat()).ok();
    folder.run(&[&labelled[..], &["1.1"]].concat()).fails(1, "--similar is 1.1: expected 0 to 1");
}

#[test]
fn the_pairs_of_the_samples() {
    let folder = TestFolder::new();
    let pairs = sample("pairs.jsonl");
    let text = folder.run(&["evaluate", &pairs]).ok();
    assert!(
        text.starts_with(
            "by-script,plain-text,simplified, 64 bits: 40 positive pairs, 0 negative pairs, 3,120 random pairs\n"
        ),
        "{text}"
    );
    assert_eq!(text.lines().filter(|line| line.contains("paper")).count(), 1);
    assert!(text.lines().any(|line| line.starts_with("3 ") && line.contains(" paper ")), "{text}");
    assert!(
        text.contains("too few random pairs to estimate") && text.contains("simstore dedup --similar 0.8"),
        "{text}"
    );
    let enough = folder.run(&["evaluate", &pairs, "--documents", "1000"]).ok();
    assert!(enough.contains("Recommended for a corpus of 1,000 documents: k = "), "{enough}");
    assert!(
        enough.contains("Precision, F1 and false pairs are predicted for a corpus of 1,000 documents"),
        "{enough}"
    );
    assert!(enough.contains(" random pairs within 16 bits were compared"), "{enough}");
    let labelled = ["evaluate", &pairs, "--label-field", "jaccard3", "--positive-from", "0.8"];
    let text = folder.run(&labelled).ok();
    assert!(text.contains("30 positive pairs, 10 negative pairs"), "{text}");
    assert!(text.lines().nth(2).unwrap().contains("negatives"), "{text}");
    assert!(text.lines().take(20).all(|line| line.chars().count() <= 100), "{text}");
    // The paper's k = 3 is for 64 bits, so 128 bits have no row marked `paper`.
    let wide = folder.run(&["evaluate", &pairs, "--bits", "128"]).ok();
    assert!(wide.contains("by-script,plain-text,simplified, 128 bits") && !wide.contains("paper"), "{wide}");
}

#[test]
fn markdown_and_comparison() {
    let folder = TestFolder::new();
    let pairs = sample("pairs.jsonl");
    let one = folder.run(&["evaluate", &pairs, "--markdown"]).ok();
    let rows: Vec<&str> = one.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 17);
    assert!(rows.iter().all(|row| row.matches('|').count() == 8), "{one}");
    assert!(rows[1].chars().all(|c| "|-:".contains(c)), "{one}");
    let several = ["evaluate", &pairs, "--profile", "words-2", "--profile", "chars-4,plain-text"];
    let markdown = folder.run(&[&several[..], &["--markdown"]].concat()).ok();
    let rows: Vec<&str> = markdown.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows.len(), 2 + 2);
    assert!(rows[2].starts_with("| words-2") && rows[3].starts_with("| chars-4,plain-text"), "{markdown}");
    let text = folder.run(&several).ok();
    assert!(text.lines().nth(1).unwrap().starts_with("words-2 "), "{text}");
    // Several profiles together give the same figures as each profile alone.
    let together = folder.run(&[&several[..], &["--json"]].concat()).json();
    let alone = folder.run(&["evaluate", &pairs, "--profile", "words-2", "--json"]).json();
    assert_eq!(together.len(), 2 * 17 + 2);
    assert_eq!((&together[..17], &together[34]), (&alone[..17], &alone[17]));
}

#[test]
fn threads_and_compression_do_not_change_the_output() {
    let folder = TestFolder::new();
    let pairs = std::fs::read(sample("pairs.jsonl")).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&pairs).unwrap();
    folder.write("pairs.jsonl.gz", gzip.finish().unwrap());
    let run = |threads: &str| {
        let args = ["evaluate", "pairs.jsonl.gz", "--json", "--svg", "curve.svg", "--threads", threads];
        (folder.run(&args).ok(), folder.read("curve.svg"))
    };
    let first = run("1");
    assert_eq!(run("3"), first);
    let piped = ["evaluate", "-", "--json", "--svg", "curve.svg"];
    assert_eq!(folder.run_with_input(&piped, &pairs).ok(), first.0);
    assert_eq!(folder.run(&["evaluate", "pairs.jsonl.gz", "--svg", "-"]).ok(), first.1);
}

#[test]
fn a_failed_run_leaves_the_old_picture() {
    let folder = TestFolder::new();
    folder.write("curve.svg", "old");
    folder.write("empty.jsonl", "");
    folder.write("bad.jsonl", "no JSON\n");
    for args in [&["empty.jsonl"][..], &["bad.jsonl"], &["bad.jsonl", "--skip-bad"], &["missing.jsonl"]] {
        let run = folder.run(&[&["evaluate", "--svg", "curve.svg"], args].concat());
        assert_eq!(
            (run.code, folder.read("curve.svg").as_str()),
            (Some(1), "old"),
            "{args:?}: {}",
            run.stderr
        );
        assert_eq!(folder.names(), ["bad.jsonl", "curve.svg", "empty.jsonl"], "{args:?}");
    }
}

/// Asserts that start and end tags match, quotes are balanced, and only the entities `amp`, `lt` and `gt` occur.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert!(!text.contains('>') && tag.matches('"').count() % 2 == 0, "{part}");
        for entity in text.split('&').skip(1) {
            assert!(
                ["amp;", "lt;", "gt;"].iter().any(|entity_name| entity.starts_with(entity_name)),
                "{part}"
            );
        }
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{svg}");
        } else if !tag.ends_with('/') {
            open.push(tag.split(' ').next().unwrap());
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_curve_of_every_k() {
    let folder = TestFolder::new();
    let pairs = sample("pairs.jsonl");
    let args = ["evaluate", &pairs, "--svg", "a.svg", "--profile", "auto", "--profile", "chars-3"];
    folder.run(&args).ok();
    let svg = folder.read("a.svg");
    assert_well_formed(&svg);
    for k in 0..=16 {
        assert_eq!(svg.matches(&format!(">{k}</text>")).count(), 2, "{k}");
        for name in ["recall", "precision", "F1"] {
            assert_eq!(svg.matches(&format!("<title>k = {k}: {name} ")).count(), 2, "{k} {name}");
        }
    }
    assert_eq!(svg.matches("k = 3, the paper's").count(), 2);
    assert!(svg.contains(">auto<title>auto</title>") && svg.contains("prefers-color-scheme: dark"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"));
    assert_eq!(folder.names(), ["a.svg"]);
}

#[test]
fn bad_pairs() {
    let folder = TestFolder::new();
    let good = pair("a rose is a rose", "a rose is the rose", &json!(1));
    for (name, line, message) in [
        ("broken", "{\"text_a\": \"x\n".to_owned(), "pairs.jsonl:2: invalid JSON object: EOF"),
        ("field", "{\"text_a\": \"x\", \"label\": 1}\n".to_owned(), "pairs.jsonl:2: no text field `text_b`"),
        ("label", pair("x", "y", &json!("yes")), "pairs.jsonl:2: the label field `label` is \"yes\""),
        (
            "unlabelled",
            "{\"text_a\": \"x\", \"text_b\": \"y\"}\n".to_owned(),
            "pairs.jsonl:2: some pairs have",
        ),
    ] {
        folder.write("pairs.jsonl", [good.clone(), line, good.replace("the", "his")].concat());
        folder.run(&["evaluate", "pairs.jsonl", "--svg", "a.svg"]).fails(1, message);
        assert_eq!(folder.names(), ["pairs.jsonl"], "{name}");
        let run = folder.run(&["evaluate", "pairs.jsonl", "--skip-bad", "--json"]);
        assert!(
            run.stderr.contains(message) && run.stderr.contains("skipped 1 invalid line"),
            "{}",
            run.stderr
        );
        let summary = run.json().pop().unwrap();
        assert_eq!((&summary["bad"], &summary["positives"]), (&json!(1), &json!(2)), "{name}");
    }
    folder.write("pairs.jsonl", "");
    folder.run(&["evaluate", "pairs.jsonl"]).fails(1, "0 pairs read, but none is positive");
    folder.write("pairs.jsonl", pair("a", "b", &json!(false)));
    folder.run(&["evaluate", "pairs.jsonl"]).fails(1, "1 pair read, but none is positive");
    folder.write("pairs.jsonl", pair("?", "b", &json!(true)));
    folder.run(&["evaluate", "pairs.jsonl"]).fails(1, "no positive pair has features in both texts");
    folder.write("pairs.hex", "0000000000000001\n");
    folder.run(&["evaluate", "pairs.hex"]).fails(1, "invalid JSON object");
    folder.run(&["evaluate", "none.jsonl"]).fails(1, "none.jsonl");
    folder.run(&["evaluate", "pairs.jsonl", "--json", "--markdown"]).fails(2, "cannot be used with");
}

#[test]
fn nothing_panics_on_odd_lines() {
    let folder = TestFolder::new();
    let mut random = Random(11);
    let whole = pair("one two three", "one two four", &json!(1));
    let mut lines: Vec<u8> = Vec::new();
    for _ in 0..500 {
        let mut line = whole.clone().into_bytes();
        for _ in 0..1 + random.next() % 4 {
            let at = random.next() as usize % line.len();
            line[at] = random.next() as u8;
        }
        lines.extend(line);
        lines.push(b'\n');
    }
    lines.extend(whole.into_bytes());
    folder.write("pairs.jsonl", lines);
    let run = folder.run(&["evaluate", "pairs.jsonl", "--skip-bad"]);
    assert!(run.stderr.contains(" invalid line"), "{}", run.stderr);
    run.ok();
}
