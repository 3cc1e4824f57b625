//! `simstore dedup` by similarity.

use serde_json::json;

use crate::{TestFolder, sample};

/// Returns JSON lines of five pages of 100 words. The pages begin with 0, 0, 4, 9 and 30 words that no other page has. The
/// remaining words are the same in all pages.
fn pages() -> String {
    let page = |id: usize, others: usize| {
        let words: Vec<String> = (0..100)
            .map(|i| if i < others { format!("other{id}x{i}") } else { format!("word{i}") })
            .collect();
        json!({"id": id, "text": words.join(" ")}).to_string() + "\n"
    };
    [0, 0, 4, 9, 30].iter().enumerate().map(|(id, &others)| page(id, others)).collect()
}

#[test]
fn the_default_criterion_is_similarity() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", pages());
    let pairs = "0\t1\t1\n0\t2\t0.9216\n0\t3\t0.8318\n";
    let rounded = |table: &str| {
        let line = |line: &str| {
            let fields: Vec<&str> = line.split('\t').collect();
            let similarity: f64 = fields[2].parse().unwrap();
            format!("{}\t{}\t{}\n", fields[0], fields[1], (similarity * 1e4).round() / 1e4)
        };
        table.lines().map(line).filter(|line| line.starts_with('0')).collect::<String>()
    };
    let by_default = folder.run(&["dedup", "a.jsonl", "--pairs", "-"]);
    assert!(by_default.stderr.contains("similarity >= 0.8"), "{}", by_default.stderr);
    assert_eq!(rounded(&by_default.ok()), pairs);
    assert_eq!(rounded(&folder.run(&["dedup", "a.jsonl", "-q", "-s", "0.8", "--pairs", "-"]).ok()), pairs);
    let few = folder.run(&["dedup", "a.jsonl", "-q", "--similar", "0.9", "--pairs", "-"]).ok();
    assert_eq!(rounded(&few).lines().count(), 2);
    let many = folder.run(&["dedup", "a.jsonl", "-q", "--similar", "0.5", "--pairs", "-"]).ok();
    assert_eq!(rounded(&many).lines().count(), 4);
    // Similarity ignores case, Markdown marks and front matter.
    folder.write(
        "b.jsonl",
        json!({"text": format!("---\nid: 1\n---\n# A Page *of* [words](x)")}).to_string()
            + "\n"
            + &json!({"text": "a page of words"}).to_string(),
    );
    assert_eq!(folder.run(&["dedup", "b.jsonl", "-q", "--pairs", "-"]).ok(), "b.jsonl:1\tb.jsonl:2\t1\n");
}

#[test]
fn tables_clusters_and_the_summary_have_the_similarity() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", pages());
    let objects = folder.run(&["dedup", "a.jsonl", "--json"]).json();
    let [cluster, summary] = &objects[..] else { panic!("{objects:?}") };
    assert_eq!((&cluster["representative"], &cluster["size"]), (&json!(0), &json!(4)));
    assert_eq!(cluster["members"][1]["similarity"], 1.0);
    assert!(cluster["members"][1].get("distance").is_none());
    let lowest = summary["largest"][0]["least_similar"].as_f64().unwrap();
    assert!((0.83..0.84).contains(&lowest), "{lowest}");
    assert_eq!((&summary["kept"], &summary["fingerprints"]), (&json!(2), &json!(4)));
    folder.run(&["dedup", "a.jsonl", "--clusters", "c.csv", "--pairs", "p.jsonl"]).ok();
    assert!(
        folder
            .read("c.csv")
            .starts_with("id,cluster,representative,similarity\n0,1,0,1\n1,1,0,1\n2,1,0,0.92")
    );
    assert!(folder.read("p.jsonl").starts_with("{\"a\":0,\"b\":1,\"similarity\":1.0}\n"));
    let human = folder.run(&["dedup", "a.jsonl"]);
    assert!(
        human.stderr.contains("cluster of 4: lowest similarity to the representative 0.831"),
        "{}",
        human.stderr
    );
    assert_eq!(human.ok(), "cluster 1: 4 documents\n      1  0\n      1  1\n  0.921  2\n  0.831  3\n");
    // With --distance and --verify-text, tables have both the distance and the similarity.
    let both =
        ["dedup", "a.jsonl", "-d", "16", "--verify-text", "0.8", "--clusters", "b.csv", "--pairs", "b.tsv"];
    folder.run(&both).ok();
    assert!(folder.read("b.csv").starts_with("id,cluster,representative,distance,similarity\n0,1,0,0,1\n"));
    assert!(folder.read("b.tsv").starts_with("a\tb\tdistance\tsimilarity\n0\t1\t0\t1\n"));
}

/// Each output writes the similarity as a 64-bit float. A 32-bit float would print 0.9 as 0.8999999761581421.
#[test]
fn a_similarity_is_written_in_full_precision() {
    let folder = TestFolder::new();
    let text = "a1 a2 a3 a4 a5 a6 a7 a8 a9 b1 b2 b3";
    let texts = [text, &text[..text.len() - 3]];
    folder.write("a.jsonl", texts.map(|text| json!({"text": text}).to_string()).join("\n"));
    let run = |args: &[&str]| folder.run(&[&["dedup", "a.jsonl", "-q", "-s", "0.9"], args].concat()).ok();
    let ids = "a.jsonl:1\ta.jsonl:2";
    assert_eq!(run(&["--pairs", "-"]), format!("{ids}\t0.9\n"));
    assert_eq!(run(&["--remove-list", "-", "--reasons"]), "a.jsonl:2\ta.jsonl:1\t0.9\n");
    assert!(run(&["--json"]).contains(r#""similarity":0.9}"#), "{}", run(&["--json"]));
    run(&["--clusters", "clusters.csv"]);
    assert!(folder.read("clusters.csv").ends_with(",0.9\n"), "{}", folder.read("clusters.csv"));
    let compared = folder.run(&["compare", "a.jsonl", "--json"]).ok();
    assert!(compared.contains(r#""similarity":0.9,"#), "{compared}");
}

#[test]
fn short_texts_are_compared_by_content() {
    let folder = TestFolder::new();
    let texts = [
        "道可道非常道",
        "道可道，非常道。",
        "名可名非常名",
        "道可道非常道名",
        "上善若水",
        "上善若水水善利万物",
        "",
    ];
    folder.write("a.jsonl", texts.map(|text| json!({"text": text}).to_string()).join("\n"));
    let run = folder.run(&["dedup", "a.jsonl", "--pairs", "-"]);
    assert!(
        !run.stderr.contains("reliable fingerprint") && run.stderr.contains("1 document has no text"),
        "{}",
        run.stderr
    );
    assert_eq!(run.ok(), "a.jsonl:1\ta.jsonl:2\t1\na.jsonl:1\ta.jsonl:4\t0.8\na.jsonl:2\ta.jsonl:4\t0.8\n");
}

#[test]
fn a_dry_run_describes_the_candidate_search() {
    let folder = TestFolder::new();
    let output = folder.run(&["dedup", &sample("en.jsonl"), "--dry-run"]).ok();
    assert!(
        output.contains("search: candidates differ in at most") && output.contains("at similarity 0.8"),
        "{output}"
    );
    let object =
        &folder.run(&["dedup", &sample("en.jsonl"), "--dry-run", "--json", "--recall", "0.99"]).json()[0];
    assert!(object["search"]["recall"].as_f64().unwrap() >= 0.99, "{object}");
    let by_distance =
        &folder.run(&["dedup", &sample("en.jsonl"), "--dry-run", "--json", "-d", "3"]).json()[0];
    assert!(by_distance.get("search").is_none(), "{by_distance}");
}

#[test]
fn the_help_fits_two_screens() {
    let folder = TestFolder::new();
    let mut command = folder.command(&["dedup", "--help"]);
    command.env("COLUMNS", "100");
    let help = crate::CommandOutput::new(command.output().unwrap()).ok();
    assert!(help.lines().count() <= 108, "{} lines\n{help}", help.lines().count());
}

#[test]
fn source_code_is_compared_with_its_punctuation() {
    let folder = TestFolder::new();
    folder.write("plus.c", "int f(int a, int b) {\n  return a + b; // C++\n}\n");
    folder.write("minus.c", "int f(int a, int b) {\n  return a - b; // C#\n}\n");
    folder.write("same.c", "int f(int a,int b)\n{ return a + b;\n// C++\n}\n");
    let duplicates = |args: &[&str]| {
        let run = folder.run(&[&["dedup", "--remove-list", "-", "--similar", "1"], args].concat());
        let stderr = run.stderr.clone();
        (run.ok(), stderr)
    };
    let files = ["minus.c", "plus.c", "same.c"];
    // File extensions select the comparison as source code, and a message reports it.
    let (removed, stderr) = duplicates(&files);
    assert_eq!(removed, "same.c\n");
    assert!(
        stderr.contains("comparing 3 files of source code by identifiers, numbers and symbols")
            && stderr.contains("--verify-profile words-3"),
        "{stderr}"
    );
    // If other texts are among the inputs, all files are compared as texts, unless the profile `code` is requested.
    folder.write("page.md", "A page");
    let mixed = ["minus.c", "plus.c", "same.c", "page.md"];
    let (removed, stderr) = duplicates(&mixed);
    assert_eq!(removed, "plus.c\nsame.c\n");
    assert!(
        stderr.contains("3 files of 4 are source code") && stderr.contains("--verify-profile code"),
        "{stderr}"
    );
    for option in ["--profile", "--verify-profile"] {
        let (removed, stderr) = duplicates(&[&[option, "code"], &mixed[..]].concat());
        assert_eq!(removed, "same.c\n", "{option}");
        assert!(!stderr.contains("source code"), "{stderr}");
    }
    let (removed, stderr) = duplicates(&[&["--verify-profile", "words-3"], &files[..]].concat());
    assert_eq!(removed, "plus.c\nsame.c\n");
    assert!(!stderr.contains("source code"), "{stderr}");
    let dry = folder.run(&[&["dedup", "--dry-run"], &files[..]].concat());
    assert!(dry.stderr.contains("source code"), "{}", dry.stderr);
    dry.ok();
    // A shard and the run that joins the shards select the same profile, so the part is reused.
    let parts = ["dedup", "--similar", "1", "--resume", "parts", "minus.c", "plus.c", "same.c"];
    folder.run(&[&parts[..], &["--shard", "1/1"]].concat()).ok();
    let joined = folder.run(&[&parts[..], &["--remove-list", "-"]].concat());
    assert!(joined.stderr.contains("0 parts processed, 1 reused"), "{}", joined.stderr);
    assert_eq!(joined.ok(), "same.c\n");
}

#[test]
fn boilerplate_is_reported() {
    let folder = TestFolder::new();
    let words = |name: &str, count: usize| -> String {
        (0..count).map(|i| format!("{name}{i}")).collect::<Vec<_>>().join(" ")
    };
    let (frame, others) = (words("menu", 340), words("other", 340));
    let mut pages = String::new();
    for page in 0..40 {
        let html = format!("<nav>{frame}</nav><p>{}</p>", words(&format!("page{page}x"), 25));
        pages += &(json!({"id": page, "text": html}).to_string() + "\n");
    }
    folder.write("framed.jsonl", &pages);
    let run = folder.run(&["dedup", "--json", "--output", "left.jsonl", "framed.jsonl"]);
    assert_eq!(run.json()[0]["boilerplate"], json!({"looked_at": 39, "mostly": 39}));
    let run = folder.run(&["dedup", "--remove-list", "gone", "framed.jsonl"]);
    assert!(
        run.stderr.contains(
            "39 of 39 duplicates checked match the kept document mainly in boilerplate (text in 9 of 10 documents)"
        ) && run.stderr.contains("--verify-profile main-text"),
        "{}",
        run.stderr
    );
    run.ok();
    let run =
        folder.run(&["dedup", "--verify-profile", "main-text", "--remove-list", "gone", "framed.jsonl"]);
    assert!(run.stderr.contains("0 duplicates") && !run.stderr.contains("9 of 10"), "{}", run.stderr);
    run.ok();
    // Two sites, each with its own navigation text: no navigation text is in nine of ten pages.
    let two = pages.replace("page", "article").replace(&frame, &others);
    folder.write("two.jsonl", pages + &two);
    let run = folder.run(&["dedup", "--remove-list", "gone", "two.jsonl"]);
    assert!(run.stderr.contains("78 duplicates") && !run.stderr.contains("9 of 10"), "{}", run.stderr);
    run.ok();
}
