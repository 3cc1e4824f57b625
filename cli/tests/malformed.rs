//! Malformed input: all commands skip and count it in the same way, and a dry run predicts the failure.

use crate::{TestFolder, sample};

const TEXT: &str = "some words of a text that is long enough to be compared";

/// Four JSON lines: the second and third document have no text field, and the text of the fourth is null.
fn rows() -> String {
    format!(
        "{{\"id\": 1, \"text\": \"{TEXT}\"}}\n{{\"id\": 2}}\n{{\"id\": 3, \"txt\": \"{TEXT}\"}}\n{{\"id\": 4, \"text\": null}}\n"
    )
}

#[test]
fn each_row_without_a_text_field_is_skipped_and_counted() {
    let folder = TestFolder::new();
    folder.write("a.jsonl", rows());
    let message =
        "simstore: a.jsonl:2: no text field `text`; the document has `id`: select another with --text-field";
    for command in ["dedup", "fingerprint", "build s", "add s", "dedup --dry-run", "dedup --resume work"] {
        let args: Vec<&str> = command.split(' ').chain(["a.jsonl"]).collect();
        folder.run(&args).fails(1, message);
    }
    let outputs = ["-o", "o", "--bad", "bad.csv", "--json"];
    for more in [&[][..], &["-d", "3"], &["--resume", "work"]] {
        let run = folder.run(&[&["dedup", "a.jsonl", "--skip-bad"], &outputs[..], more].concat());
        let summary = run.json().pop().unwrap();
        assert_eq!([&summary["documents"], &summary["bad"], &summary["empty"]], [2, 2, 1], "{more:?}");
        let kept = rows().lines().filter(|line| !line.contains(": 2") && !line.contains(": 3")).count();
        assert_eq!((folder.read("o").lines().count(), kept), (2, 2), "{more:?}");
        assert!(!folder.read("o").contains("\"id\": 2") && !folder.read("o").contains("\"id\": 3"));
        let bad = folder.read("bad.csv");
        assert!(
            bad.contains("a.jsonl,2,") && bad.contains("a.jsonl,3,") && bad.lines().count() == 3,
            "{bad}"
        );
    }
    // The same holds for a JSON array, and for a file where no row has the field.
    folder.write("a.json", "[{\"text\": \"one text\"}, {\"id\": 2}, {\"id\": 3}]");
    folder.write("none.jsonl", "{\"id\": 1}\n".repeat(1500));
    for (file, documents, bad) in [("a.json", 1, 2), ("none.jsonl", 0, 1500)] {
        let args = [
            "dedup", "-q", file, "--skip-bad", "--allow-empty", "-o", "o", "--force", "--json", "--format",
            "jsonl",
        ];
        let summary = folder.run(&args).json().pop().unwrap();
        assert_eq!([&summary["documents"], &summary["bad"]], [documents, bad], "{file}");
        assert_eq!(folder.read("o").lines().count(), documents, "{file}");
    }
    // A CSV row with too few cells is malformed.
    folder.write("a.csv", format!("id,text\n1,{TEXT}\n2\n3,\n"));
    let args = ["dedup", "-q", "a.csv", "--skip-bad", "-o", "o.csv", "--json"];
    let summary = folder.run(&args).json().pop().unwrap();
    assert_eq!([&summary["documents"], &summary["bad"], &summary["empty"]], [2, 1, 1]);
    assert_eq!(folder.read("o.csv").lines().count(), 3);
}

/// A dry run fails with the same message as the run, if the failure is in the first documents.
#[test]
fn a_dry_run_fails_as_the_run_does() {
    let folder = TestFolder::new();
    folder.write("id.jsonl", format!("{{\"text\": \"{TEXT}\"}}\n"));
    folder.write("no.jsonl", format!("{}no JSON\n", rows().lines().next().unwrap().to_owned() + "\n"));
    folder.write("a.hex", "0000000000000001\nno hexadecimal\n");
    folder.write("column.csv", "id,body\n1,a\n");
    for args in [&["id.jsonl", "--id-field", "url"][..], &["no.jsonl"], &["a.hex"], &["column.csv"]] {
        let run = folder.run(&[&["dedup"], args].concat());
        let dry = folder.run(&[&["dedup", "--dry-run"], args].concat());
        assert_eq!((run.code, dry.code), (Some(1), Some(1)), "{args:?}");
        let first = |text: &str| text.lines().last().unwrap().to_owned();
        assert_eq!(first(&dry.stderr), first(&run.stderr), "{args:?}");
        let skipped = folder.run(&[&["dedup", "--dry-run", "--skip-bad"], args].concat());
        assert_eq!(skipped.code, Some(0), "{args:?}: {}", skipped.stderr);
    }
}

/// The files of a folder of source code have unknown extensions and are skipped. The message says how to read them.
#[test]
fn a_folder_of_source_code_needs_a_format_or_a_glob() {
    let folder = TestFolder::new();
    std::fs::create_dir(folder.path("src")).unwrap();
    for name in ["a.rs", "b.rs"] {
        folder.write(&format!("src/{name}"), "fn main() { let x = 1; println!(\"{}\", x + 2 * x); }\n");
    }
    let run = folder.run(&["dedup", "src"]);
    assert!(
        run.stderr.contains("skipped 2 files with unknown extensions: --format text reads them"),
        "{}",
        run.stderr
    );
    run.fails(1, "no documents were read, 2 files of other kinds skipped");
    for input in [&["src", "--format", "text"][..], &["src/*.rs"]] {
        let run = folder.run(&[&["dedup", "--remove-list", "gone"], input].concat());
        assert!(run.stderr.contains("comparing 2 files of source code by identifiers"), "{}", run.stderr);
        run.ok();
        assert_eq!(folder.read("gone"), "src/b.rs\n", "{input:?}");
    }
}

/// For documents, `add --if-new` creates a store only if `--similar` or `--distance` says which kind of store.
#[test]
fn add_if_new_creates_no_store_of_an_unknown_kind() {
    let folder = TestFolder::new();
    let en = sample("en.jsonl");
    let run = folder.run(&["add", "--if-new", "s", &en]);
    run.fails(
        2,
        "s: no such store: --similar 0.8 creates a store of similar documents, --distance 3 a store",
    );
    assert!(folder.names().is_empty());
    folder.run(&["add", "-q", "--if-new", "--similar", "0.8", "similar", &en]).ok();
    folder.run(&["add", "-q", "--if-new", "--distance", "3", "prints", &en]).ok();
    for store in ["similar", "prints"] {
        folder.run(&["add", "-q", "--if-new", store, &en]).ok();
    }
    folder.write("a.hex", "0000000000000001\n");
    folder.run(&["add", "-q", "--if-new", "hex", "a.hex"]).ok();
}

/// The run that creates a store writes tables with the same columns as later runs.
#[test]
fn tables_have_the_same_columns_in_every_run_with_a_store() {
    let folder = TestFolder::new();
    let en = sample("en.jsonl");
    for options in [&[][..], &["--with-texts"], &["-d", "3"]] {
        let columns = || {
            let tables = ["--clusters", "c.csv", "--pairs", "p.csv", "--remove-list", "r.csv", "--reasons"];
            let args =
                [&["dedup", "--json", "--against", "s", "--add", "--again", &en], &tables[..], options];
            let summary = folder.run(&args.concat()).json().pop().unwrap();
            let fields: Vec<String> = crate::fields(&summary).into_iter().map(str::to_owned).collect();
            let head = |name: &str| folder.read(name).lines().next().unwrap().to_owned();
            (["c.csv", "p.csv", "r.csv"].map(head), fields)
        };
        let first = columns();
        assert!(first.0.iter().all(|head| head.contains("stored")), "{options:?}: {first:?}");
        assert_eq!(columns(), first, "{options:?}");
        std::fs::remove_dir_all(folder.path("s")).unwrap();
    }
}
