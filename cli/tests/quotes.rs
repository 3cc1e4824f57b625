//! Messages quote at most the beginning of a long name or value.

use crate::{CommandOutput, TestFolder};

/// Length of an overlong argument in bytes: too long for a message, but short enough for the system's argument limit.
const LONG_VALUE_BYTES: usize = 100_000;
/// Maximum length of all messages of a command together, in bytes.
const MESSAGE_BYTES_MAX: usize = 2_000;

/// Asserts that a command fails with a short message that abbreviates a value by `...`.
#[track_caller]
fn assert_short_message(context: &str, run: &CommandOutput) {
    assert!(matches!(run.code, Some(1 | 2)), "{context}: {:?}, {:.300}", run.code, run.stderr);
    assert!(
        run.stderr.len() < MESSAGE_BYTES_MAX,
        "{context}: {} bytes: {:.300}",
        run.stderr.len(),
        run.stderr
    );
    assert!(run.stderr.contains("..."), "{context}: {}", run.stderr);
}

/// Messages about overlong, invalid arguments quote only their beginning.
#[test]
fn values_of_the_command_line() {
    let folder = TestFolder::new();
    let long = "x".repeat(LONG_VALUE_BYTES);
    folder.write(
        "a.jsonl",
        "{\"id\": \"a\", \"text\": \"some words\"}\n{\"id\": \"b\", \"text\": \"some words\"}\n",
    );
    folder.write("a.csv", "id,text\n1,some words\n");
    folder.write("pairs.jsonl", "{\"text_a\": \"a\", \"text_b\": \"b\"}\n");
    folder.run(&["build", "-q", "s", "a.jsonl"]).ok();
    for args in [
        &["dedup", "a.jsonl", "--id-field", "LONG"][..],
        &["dedup", "a.jsonl", "--text-field", "LONG"],
        &["dedup", "a.csv", "--id-field", "LONG"],
        &["dedup", "a.csv", "--text-field", "LONG"],
        &["dedup", "a.jsonl", "--keep", "LONG"],
        &["dedup", "a.jsonl", "--keep", "newest:LONG"],
        &["dedup", "a.jsonl", "--profile", "LONG"],
        &["dedup", "a.jsonl", "--profile", "words-3,LONG"],
        &["dedup", "a.jsonl", "--profile", "words-3,weights=LONG"],
        &["dedup", "a.jsonl", "--profile", "words-3,hash=LONG"],
        &["dedup", "a.jsonl", "--preset", "LONG"],
        &["dedup", "a.jsonl", "--format", "LONG"],
        &["dedup", "a.jsonl", "--encoding", "LONG"],
        &["dedup", "a.jsonl", "--delimiter", "LONG"],
        &["dedup", "a.jsonl", "--memory", "LONG"],
        &["dedup", "a.jsonl", "--similar", "LONG"],
        &["dedup", "a.jsonl", "--distance", "LONG"],
        &["dedup", "a.jsonl", "--LONG"],
        &["dedup", "LONG"],
        &["LONG"],
        &["build", "new", "a.jsonl", "--codec", "LONG"],
        &["build", "new", "a.jsonl", "--plan", "LONG"],
        &["query", "s", "LONG"],
        &["delete", "s", "LONG"],
        &["evaluate", "pairs.jsonl", "--label-field", "LONG", "--positive-from", "1"],
        &["evaluate", "pairs.jsonl", "--text-a", "LONG"],
        &["plan", "--count", "LONG", "--distance", "3"],
        &["compare", "a.jsonl", "--id", "LONG", "--id", "b"],
    ] {
        let with_long: Vec<String> = args.iter().map(|arg| arg.replace("LONG", &long)).collect();
        let borrowed: Vec<&str> = with_long.iter().map(String::as_str).collect();
        assert_short_message(&args.join(" "), &folder.run(&borrowed));
    }
}

/// Messages about overlong, invalid contents of inputs quote only their beginning.
#[test]
fn contents_of_files() {
    let folder = TestFolder::new();
    let long = "x".repeat(20 * LONG_VALUE_BYTES);
    folder.write(
        "some.jsonl",
        "{\"id\": 1, \"text\": \"some words\"}\n{\"id\": 2, \"text\": \"other words\"}\n",
    );
    folder.run(&["build", "-q", "numbers", "some.jsonl"]).ok();
    for (context, name, content) in [
        ("a string in place of an object", "a.jsonl", format!("\"{long}\"\n")),
        ("an element of an array", "a.json", format!("[\"{long}\"]")),
        ("a fingerprint", "a.hex", format!("{long:.60000}\n")),
        ("a table of one column", "a.csv", format!("{long:.60000}\n1\n")),
        (
            "an id in place of a number",
            "numbers.jsonl",
            format!("{{\"id\": \"{long:.60000}\", \"text\": \"a\"}}\n"),
        ),
    ] {
        folder.write(name, content);
        let args: &[&str] = match name {
            "a.hex" => &["dedup", name, "-d", "3"],
            "numbers.jsonl" => &["add", "numbers", name],
            _ => &["dedup", name, "--text-field", "text"],
        };
        assert_short_message(context, &folder.run(args));
    }
    for (context, args, list) in [
        ("a path", &["dedup", "--files-from", "list"][..], format!("{long}\n")),
        ("a pair", &["evaluate", "list"], format!("\"{long}\"\n")),
        (
            "a label",
            &["evaluate", "list"],
            format!("{{\"text_a\": \"a\", \"text_b\": \"b\", \"label\": \"{long}\"}}\n"),
        ),
    ] {
        folder.write("list", list);
        assert_short_message(context, &folder.run(args));
    }
}
