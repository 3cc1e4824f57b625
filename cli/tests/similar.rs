//! Stores that find documents by the similarity of their texts (stores of similar documents): `add`, `build`,
//! `query`, `delete`, and `dedup --against --add`.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::TestFolder;

/// Returns a JSON line of a page of `words` words. The first `others` words are unique to it.
fn page(id: &Value, words: usize, others: usize) -> String {
    let word = |i: usize| if i < others { format!("other{id}x{i}") } else { format!("word{i}") };
    let words: Vec<String> = (0..words).map(|i| word(i).replace('"', "")).collect();
    json!({"id": id, "text": words.join(" ")}).to_string() + "\n"
}

#[test]
fn similar_documents_are_not_added() {
    let folder = TestFolder::new();
    let pages = |ids: [Value; 5]| -> String {
        let others = [0, 0, 4, 9, 30];
        ids.iter().zip(others).map(|(id, others)| page(id, 100, others)).collect()
    };
    folder.write("numbers.jsonl", pages([1, 2, 3, 4, 5].map(Value::from)));
    folder.write("names.jsonl", pages(["a", "b", "c", "d", "e"].map(Value::from)));
    let add = ["add", "--similar", "0.8", "--with-texts", "--if-new", "numbers", "numbers.jsonl"];
    assert_eq!(folder.run(&add).ok(), "2\t1\t1\t0\n3\t1\t0.921\t0\n4\t1\t0.831\t0\n");
    // Later runs find the kind of the store in its settings, and resume at the stored position in the input.
    let again = folder.run(&["add", "--if-new", "numbers", "numbers.jsonl"]);
    assert!(again.stderr.contains("5 documents read by an earlier run"), "{}", again.stderr);
    assert_eq!(again.ok(), "");
    let again = folder.run(&["add", "--again", "numbers", "numbers.jsonl"]);
    assert!(again.stderr.contains("3 documents added, 2 documents already stored"), "{}", again.stderr);

    let add = ["add", "-q", "--similar", "0.9", "--if-new", "--json", "names", "names.jsonl"];
    let lines = folder.run(&add).ok();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["duplicate_of"], json!([{"id": 0, "name": "a", "similarity": 1.0, "error": 0.0}]));
    assert_eq!((&lines[1]["id"], &lines[2]["added"]), (&json!("c"), &json!(3)));
}

/// In a store made with `--similar`, an id (number or name) belongs to one text.
#[test]
fn an_id_belongs_to_one_text() {
    let folder = TestFolder::new();
    for (kind, [a, b, c]) in
        [("numbers", [json!(1), json!(2), json!(3)]), ("names", [json!("a"), json!("b"), json!("c")])]
    {
        // If an input has two texts with the same id, the second one is malformed. Repeating the same text is
        // allowed.
        folder
            .write("first.jsonl", page(&a, 50, 0) + &page(&a, 50, 40) + &page(&a, 50, 0) + &page(&b, 60, 0));
        let refused = "is stored with another text; delete that document first";
        for command in [&["build"][..], &["add"], &["add", "--if-new"]] {
            let _ = std::fs::remove_dir_all(folder.path(kind));
            let args = [command, &["--similar", "0.95", kind, "first.jsonl"]].concat();
            folder.run(&args).fails(1, refused);
            let _ = std::fs::remove_dir_all(folder.path(kind));
            let run =
                folder.run(&[command, &["--skip-bad", "--similar", "0.95", kind, "first.jsonl"]].concat());
            assert!(
                run.stderr.contains("skipped 1 invalid document or unreadable file"),
                "{kind} {command:?}: {}",
                run.stderr
            );
            run.ok();
        }
        // A later input with another text for the id is refused too, until the document is deleted.
        folder.write("more.jsonl", page(&a, 50, 0) + &page(&c, 70, 0));
        folder.write("other.jsonl", page(&b, 90, 80));
        assert!(
            folder
                .run(&["add", kind, "more.jsonl"])
                .stderr
                .contains("1 document added, 1 document already stored")
        );
        folder.run(&["add", kind, "other.jsonl"]).fails(1, refused);
        let dedup = ["dedup", "other.jsonl", "--against", kind, "--add", "-s", "0.95", "-o", "kept.jsonl"];
        folder.run(&dedup).fails(1, "is stored with another text (`simstore delete` deletes it)");
        folder.write(
            "two.jsonl",
            page(&json!(format!("{kind} new")), 90, 0) + &page(&json!(format!("{kind} new")), 90, 85),
        );
        let dedup = ["dedup", "two.jsonl", "--against", "made", "--add", "-s", "0.95", "-o", "kept.jsonl"];
        folder.run(&dedup).fails(1, "belongs to two different texts");
        folder.write("ids.txt", format!("{}\n", b.as_str().map_or_else(|| b.to_string(), str::to_owned)));
        folder.run(&["delete", "--ids", "ids.txt", kind]).ok();
        assert!(folder.run(&["add", kind, "other.jsonl"]).stderr.contains("1 document added"));
    }
}

#[test]
fn texts_are_queried_by_similarity() {
    let folder = TestFolder::new();
    folder
        .write("pages.jsonl", (0..6).map(|i| page(&json!(format!("p{i}")), 400, i * 6)).collect::<String>());
    folder.run(&["add", "-q", "--similar", "0.8", "pages", "pages.jsonl"]).ok();
    let text: Vec<String> = (0..400).map(|i| format!("word{i}")).collect();
    folder.write("page.txt", text.join(" "));
    let answer = folder.run(&["query", "pages", "--file", "page.txt"]).ok();
    let rows: Vec<Vec<&str>> = answer.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows[0], ["1", "0", "p0"]);
    assert_eq!(rows.len(), 6);
    for row in &rows[1..] {
        let edits: f64 = row[2][1..].parse::<f64>().unwrap() * 6.0;
        let (similarity, error): (f64, f64) = (row[0].parse().unwrap(), row[1].parse().unwrap());
        assert!(
            error > 0.0 && (similarity - (398.0 - edits) / (398.0 + edits)).abs() < 4.0 * error,
            "{row:?}"
        );
    }
    for option in ["--diff", "--show"] {
        let refused = folder.run(&["query", "pages", option, "--text", "nothing of it"]);
        refused.fails(2, "has no texts; create a store with");
    }
    let json = folder.run(&["query", "pages", "--json", "--text", &text.join(" ")]).ok();
    assert_eq!(json.lines().next().unwrap(), r#"{"similarity":1.0,"error":0.0,"id":0,"name":"p0"}"#);
    assert_eq!(folder.run(&["query", "pages", "--text", "nothing of it"]).ok(), "");
}

#[test]
fn stored_texts_are_shown() {
    let folder = TestFolder::new();
    folder.write(
        "pages.jsonl",
        page(&json!("a"), 100, 0) + &page(&json!("b"), 100, 4) + &page(&json!("c"), 9, 9),
    );
    folder.run(&["add", "-q", "--similar", "0.8", "--with-texts", "pages", "pages.jsonl"]).ok();
    let text: Vec<String> = (0..100).map(|i| format!("word{i}")).collect();
    folder.write("page.txt", text.join(" "));
    assert_eq!(folder.run(&["query", "pages", "--file", "page.txt"]).ok(), "1\t0\ta\n0.921\t0\tb\n");
    let shown = folder.run(&["query", "pages", "--file", "page.txt", "--show"]).ok();
    assert!(shown.starts_with(&format!("1\t0\ta\n{}\n0.921\t0\tb\notherbx0", text.join(" "))), "{shown}");
    let diff = folder.run(&["query", "pages", "--file", "page.txt", "--diff"]).ok();
    assert!(diff.contains("no differences") && diff.contains("{+otherbx0"), "{diff}");
    let json = folder.run(&["query", "pages", "--file", "page.txt", "--show", "--json"]).ok();
    let first: Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(first["text"], json!(text.join(" ")));
    folder.run(&["verify", "pages"]).ok();
}

#[test]
fn deleting_a_document_deletes_all_its_data() {
    let folder = TestFolder::new();
    folder.write("one.jsonl", page(&json!(7), 60, 0));
    folder.write("other.jsonl", page(&json!(7), 10, 10));
    folder.write("small.jsonl", page(&json!(8), 12, 0));
    folder.run(&["add", "-q", "--similar", "0.8", "pages", "one.jsonl", "small.jsonl"]).ok();
    let refused = folder.run(&["add", "pages", "other.jsonl"]);
    assert!(refused.stderr.contains("the id 7 is stored with another text"), "{}", refused.stderr);
    let none = folder.run(&["delete", "pages", "other.jsonl"]);
    assert!(none.stderr.contains("0 documents deleted, 1 not in the store"), "{}", none.stderr);
    let one = folder.run(&["delete", "pages", "one.jsonl"]);
    assert!(one.stderr.contains("1 document deleted, 0 not in the store"), "{}", one.stderr);
    folder.run(&["add", "-q", "pages", "other.jsonl"]).ok();
    folder.run(&["delete", "pages", "--id", "7", "--id", "8"]).ok();
    assert_eq!(folder.run(&["dump", "pages"]).ok(), "");
    folder.run(&["add", "-q", "pages", "one.jsonl", "--again"]).ok();
    assert_eq!(folder.run(&["dump", "pages"]).ok().lines().count(), 2);
    folder.run(&["verify", "pages"]).ok();
}

#[test]
fn impossible_commands_on_stores_of_similar_documents_are_refused() {
    let folder = TestFolder::new();
    folder.write("one.jsonl", page(&json!(7), 60, 0));
    folder.write("a.hex", "0000000000000000\t7\n");
    folder.run(&["add", "-q", "--similar", "0.8", "pages", "one.jsonl"]).ok();
    let cases: [(&[&str], i32, &str); 6] = [
        (&["add", "--similar", "0.8", "new", "a.hex"], 2, "--similar needs documents"),
        (&["add", "--similar", "0.9", "pages", "one.jsonl"], 1, "not similarity >= 0.9, recall 0.95"),
        (&["add", "--similar", "0.3", "new", "one.jsonl"], 2, "--similar 0."),
        (&["add", "--similar", "1.3", "new", "one.jsonl"], 2, "expected a number above 0"),
        (&["add", "--same-id", "replace", "pages", "one.jsonl"], 2, "delete the document first"),
        (&["delete", "pages", "a.hex"], 2, "not by fingerprint"),
    ];
    for (args, code, expected) in cases {
        let run = folder.run(args);
        assert!(
            run.code == Some(code) && run.stderr.contains(expected),
            "{args:?}: {} {:?}",
            run.stderr,
            run.code
        );
    }
    assert!(!folder.path("new").exists());
}

#[test]
fn new_documents_are_compared_with_a_store_and_with_one_another() {
    for with_texts in [false, true] {
        new_documents_are_compared(with_texts);
    }
}

fn new_documents_are_compared(with_texts: bool) {
    let folder = TestFolder::new();
    let stored = page(&json!("long"), 400, 0) + &page(&json!("small"), 20, 0);
    folder.write("stored.jsonl", stored);
    let texts: &[&str] = if with_texts { &["--with-texts"] } else { &[] };
    folder.run(&[&["add", "-q", "--similar", "0.8", "pages", "stored.jsonl"], texts].concat()).ok();
    let new: String =
        [("a", 400, 10), ("b", 20, 1), ("c", 400, 200), ("d", 20, 10), ("e", 400, 0), ("f", 10, 10)]
            .map(|(id, words, others)| page(&json!(id), words, others))
            .concat();
    folder
        .write("new.jsonl", new.clone() + &page(&json!("f"), 10, 10).replace("\"id\":\"f\"", "\"id\":\"g\""));
    let run = folder
        .run(&["dedup", "new.jsonl", "--against", "pages", "--keep-list", "-", "--clusters", "clusters.tsv"]);
    assert!(
        run.stderr.contains("3 documents are near-duplicates of documents in the store"),
        "{}",
        run.stderr
    );
    let estimated = "2 of these by an estimated similarity (standard error at most 0.0";
    assert_eq!(run.stderr.contains(estimated), !with_texts, "{}", run.stderr);
    assert_eq!(run.stderr.contains("estimated"), !with_texts, "{}", run.stderr);
    assert_eq!(run.ok(), "c\nd\nf\n");
    let clusters = folder.read("clusters.tsv");
    let rows: Vec<Vec<&str>> = clusters.lines().map(|line| line.split('\t').collect()).collect();
    let row_of = |id: &str| rows.iter().find(|row| row[0] == id).unwrap()[2..].to_vec();
    let exact: &[&str] = if with_texts { &["long", "1", "true"] } else { &["long", "1", "0", "true"] };
    assert_eq!(row_of("e"), exact);
    assert_eq!(
        (row_of("a")[0], row_of("b")[0], row_of("g")),
        ("long", "small", if with_texts { vec!["f", "1", "false"] } else { vec!["f", "1", "0", "false"] })
    );
    let more = folder
        .run(&["dedup", "new.jsonl", "--against", "pages", "-s", "0.99", "-q", "--keep-list", "-"])
        .ok();
    assert_eq!(more, "a\nb\nc\nd\nf\n");
}

#[test]
fn build_creates_a_store_of_similar_documents() {
    let folder = TestFolder::new();
    folder.write(
        "pages.jsonl",
        page(&json!("a"), 100, 0) + &page(&json!("b"), 100, 4) + &page(&json!("c"), 9, 9),
    );
    folder.write("a.hex", "0000000000000000\n");
    let build = ["build", "--similar", "0.8", "--with-texts", "pages", "pages.jsonl"];
    let built = folder.run(&build);
    let made = "pages: 3 documents, similarity >= 0.8, recall 0.95, with texts, ";
    assert!(built.stderr.contains(made), "{}", built.stderr);
    assert!(folder.names().iter().all(|name| !name.starts_with('.')), "{:?}", folder.names());
    folder.run(&build).fails(1, "a store already exists");
    folder.run(&["build", "--similar", "0.8", "other", "a.hex"]).fails(2, "--similar needs documents");
    folder
        .run(&["build", "--similar", "0.8", "-d", "3", "other", "pages.jsonl"])
        .fails(2, "cannot be used with");
    folder.write("bad.jsonl", "{\"id\": 1, \"text\": \"one two three\"}\n{");
    folder.run(&["build", "--similar", "0.8", "other", "bad.jsonl"]).fails(1, "bad.jsonl:2");
    assert!(
        folder.names().iter().all(|name| !name.starts_with('.') && name != "other"),
        "{:?}",
        folder.names()
    );
    let text: Vec<String> = (0..100).map(|i| format!("word{i}")).collect();
    assert_eq!(folder.run(&["query", "pages", "--text", &text.join(" ")]).ok(), "1\t0\ta\n0.921\t0\tb\n");
    folder.run(&["verify", "pages"]).ok();
}

/// The next build removes the temporary folder of a killed build, but refuses to run beside a running one.
#[test]
fn temporary_folders_of_killed_builds_are_removed() {
    let folder = TestFolder::new();
    let pages: String = (0..2000).map(|i| page(&json!(i), 100, i)).collect();
    folder.write("pages.jsonl", &pages);
    let build = ["build", "--similar", "0.8", "--profile", "words-2", "pages"];
    let mut killed = Command::new(env!("CARGO_BIN_EXE_simstore"))
        .args(build)
        .arg("-")
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = killed.stdin.take().unwrap();
    stdin.write_all(pages.as_bytes()).unwrap();
    stdin.flush().unwrap();
    let has_hidden = || folder.names().iter().any(|name| name == ".pages.tmp");
    while !has_hidden() {
        assert!(killed.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(10));
    }
    let again = [&build[..], &["pages.jsonl"]].concat();
    folder.run(&again).fails(1, "another simstore process is writing it");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert!(has_hidden());
    folder.run(&again).ok();
    assert_eq!(folder.names(), ["pages", "pages.jsonl"]);
    folder.run(&["verify", "pages"]).ok();
}

/// The first run of `dedup --against STORE --add` creates the store, and can be repeated with the same options. An
/// option that later runs refuse is refused by the first run too.
#[test]
fn the_first_run_accepts_the_same_options_as_later_runs() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", page(&json!(1), 60, 0) + &page(&json!(2), 60, 60));
    for options in [&["--verify-profile", "words-2"][..], &["--profile", "words-2", "--similar", "0.8"], &[]]
    {
        let store = format!("store{}", options.len());
        let args =
            [&["dedup", "a.jsonl", "--against", &store, "--add", "--output", "left.jsonl"][..], options]
                .concat();
        assert!(folder.run(&args).stderr.contains("2 documents added"), "{options:?}");
        let again = folder.run(&args);
        assert!(
            again.code == Some(0) && again.stderr.contains("this run has already added"),
            "{options:?}: {}",
            again.stderr
        );
    }
    let none = ["dedup", "a.jsonl", "--against", "none", "--add", "--keep", "none"];
    folder.run(&none).fails(2, "run with --keep none and --output first");
    // The first store may be new if the second one exists.
    let both = ["dedup", "a.jsonl", "--against", "new", "--against", "store0", "--add"];
    let stderr = folder.run(&both).stderr;
    assert!(
        stderr.contains("2 documents are near-duplicates") && stderr.contains("0 documents added"),
        "{stderr}"
    );
    // Simulates a store whose creation was interrupted before the settings of similar documents were stored.
    folder.write("empty.tsv", "");
    let half = ["build", "half", "-d", "8", "--codec", "elias-fano", "--plan", "probe-3", "empty.tsv"];
    let shingles = ["--profile", "words-3,segmented,plain-text,simplified,weights=none"];
    folder.run(&[&half[..], &shingles].concat());
    if folder.path("half").exists() {
        let healed = folder.run(&["dedup", "a.jsonl", "--against", "half", "--add", "--similar", "0.8"]);
        assert!(healed.stderr.contains("2 documents added"), "{}", healed.stderr);
    }
    // A new store for source code gets the profile for code.
    folder.write("one.py", "def f(a, b):\n    return a + b\n");
    folder.run(&["dedup", "one.py", "--against", "code", "--add"]).ok();
    assert!(folder.run(&["inspect", "code"]).ok().contains("code-7"));
}

/// `dedup --against --add` compares new documents with a store, creates the store if it is missing, and adds the
/// kept documents. Later runs find these documents in the store.
#[test]
fn new_documents_are_added_in_one_command() {
    for with_texts in [false, true] {
        let folder = TestFolder::new();
        let day = |day: usize| -> String {
            // Each day has ten pages, and one of them occurs twice. From the second day on, five pages are
            // slightly changed versions of pages of the day before.
            let pages = (day * 5..day * 5 + 10).map(|at| {
                let text: Vec<String> = (0..100).map(|i| format!("p{at}word{i}")).collect();
                json!({"id": day * 100 + at, "text": text.join(" ") + &" more".repeat(day)}).to_string()
                    + "\n"
            });
            let pages: Vec<String> = pages.collect();
            pages.concat() + &pages[9].replacen(&format!(":{}", day * 100 + day * 5 + 9), ":999999", 1)
        };
        let add = |day_number: usize, name: &str| {
            folder.write(name, day(day_number));
            let texts: &[&str] = if with_texts && day_number == 0 { &["--with-texts"] } else { &[] };
            let args = [
                "dedup", name, "--against", "seen", "--add", "--output", "new.jsonl", "--pairs", "pairs.tsv",
            ];
            folder.run(&[&args[..], texts].concat())
        };
        let first = add(0, "0.jsonl");
        assert!(first.stderr.contains("10 documents added to the store"), "{}", first.stderr);
        assert_eq!(folder.read("new.jsonl").lines().count(), 10);
        for number in 1..4 {
            let next = add(number, &format!("{number}.jsonl"));
            assert!(
                next.stderr.contains("5 documents are near-duplicates of documents in"),
                "{}",
                next.stderr
            );
            assert!(next.stderr.contains("5 documents added to the store"), "{}", next.stderr);
            assert_eq!(next.stderr.contains("estimated"), !with_texts, "{}", next.stderr);
            assert_eq!(folder.read("new.jsonl").lines().count(), 5);
            let pairs = folder.read("pairs.tsv");
            let rows: Vec<Vec<&str>> = pairs.lines().map(|line| line.split('\t').collect()).collect();
            let columns: &[&str] = if with_texts {
                &["a", "b", "similarity", "stored"]
            } else {
                &["a", "b", "similarity", "error", "stored"]
            };
            assert_eq!(rows[0], columns);
            // The header, the page that occurs twice, and five stored pages.
            assert_eq!((rows.len(), rows.iter().filter(|row| row.last() == Some(&"true")).count()), (7, 5));
        }
        // Repeating the run changes nothing. With --again, all documents are already stored.
        let again = add(3, "3.jsonl");
        assert!(again.stderr.contains("added") && again.code == Some(0), "{}", again.stderr);
        let args = ["dedup", "3.jsonl", "--against", "seen", "--add", "--again"];
        let again = folder.run(&args);
        assert!(again.stderr.contains("0 documents added to the store"), "{}", again.stderr);
        folder.run(&["verify", "seen"]).ok();
        let text: Vec<String> = (0..100).map(|i| format!("p12word{i}")).collect();
        let matches = folder.run(&["query", "seen", "--text", &text.join(" ")]).ok();
        assert_eq!(matches.lines().count(), 1, "{matches}");
        assert_eq!(folder.run(&["inspect", "seen", "--json"]).json()[0]["fingerprints"], json!(25 * 2));
        // An id belongs to one text.
        folder.write("other.jsonl", page(&json!(4), 50, 50));
        folder
            .run(&["dedup", "other.jsonl", "--against", "seen", "--add"])
            .fails(1, "the id 4 is stored with another text");
        folder.write("twice.jsonl", page(&json!(77_777), 50, 50) + &page(&json!(77_777), 40, 20));
        folder
            .run(&["dedup", "twice.jsonl", "--against", "seen", "--add"])
            .fails(1, "belongs to two different texts");
        assert_eq!(folder.run(&["inspect", "seen", "--json"]).json()[0]["fingerprints"], json!(25 * 2));
    }
}

#[test]
fn a_store_of_source_code_compares_punctuation() {
    let folder = TestFolder::new();
    folder.write("plus.rs", "fn f(a: i32, b: i32) -> i32 { a + b }");
    folder.write("minus.rs", "fn f(a: i32, b: i32) -> i32 { a - b }");
    let add = folder.run(&["add", "--similar", "1", "--if-new", "code", "plus.rs", "minus.rs"]);
    assert!(add.stderr.contains("--profile words-3"), "{}", add.stderr);
    assert_eq!(add.ok(), "");
    assert!(folder.run(&["inspect", "code"]).ok().contains("code-7,weights=none"));
    let add = folder.run(&["add", "--similar", "1", "--if-new", "code", "plus.rs"]);
    assert!(!add.stderr.contains("source code"), "{}", add.stderr);
    add.ok();
}

#[test]
fn a_store_keeps_the_profile_that_it_was_made_with() {
    let folder = TestFolder::new();
    let page = |id: u64, name: &str| {
        let text = format!(
            "{name}\n\nคำสั่งนี้เป็นอีกชื่อหนึ่งของ {name}\n\nอ่านหน้าของคำสั่งนั้นพร้อมตัวเลือกและตัวอย่างทั้งหมด: help {name}"
        );
        json!({"id": id, "text": text}).to_string()
    };
    folder.write("first.jsonl", page(1, "gunzip"));
    folder.write("then.jsonl", page(2, "clojure"));
    // A store made before Thai text was segmented into words.
    let former = ["--profile", "words-3,plain-text,simplified,weights=none"];
    let add = |store: &str, file: &str, options: &[&str]| {
        folder.run(&[&["add", "--similar", "0.7", "--if-new", store, file], options].concat()).ok()
    };
    assert_eq!(add("former", "first.jsonl", &former), "");
    assert!(add("former", "then.jsonl", &[]).starts_with("2\t1\t"));
    assert_eq!(add("now", "first.jsonl", &[]), "");
    assert_eq!(add("now", "then.jsonl", &[]), "");
    folder.write("third.jsonl", page(3, "python"));
    let against = |store: &str| {
        folder.run(&["dedup", "-q", "--against", store, "third.jsonl", "--remove-list", "-"]).ok()
    };
    assert_eq!((&*against("former"), &*against("now")), ("3\n", ""));
    let refused = [
        "add",
        "--similar",
        "0.7",
        "former",
        "third.jsonl",
        "--profile",
        "words-3,segmented,plain-text,simplified,weights=none",
    ];
    folder.run(&refused).fails(1, "the store has profile words-3,plain-text,simplified,weights=none");
}
