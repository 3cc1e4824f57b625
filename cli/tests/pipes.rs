//! Pipes as inputs, which can be read only once, and as outputs that are closed early.

use crate::{TestFolder, sample};

#[test]
fn pipes_are_read_completely() {
    let folder = TestFolder::new();
    let expected = folder.run(&["fingerprint", &sample("en.jsonl")]).ok();
    for line in [
        r#"$simstore fingerprint <(cat "$en")"#,
        r#"$simstore fingerprint <(gzip -c "$en")"#,
        r#"cat "$en" | $simstore fingerprint /dev/stdin"#,
        r#"mkfifo a.dat && (cat "$en" > a.dat & $simstore fingerprint a.dat)"#,
        r#"mkfifo a.jsonl && (cat "$en" > a.jsonl & $simstore fingerprint a.jsonl)"#,
    ] {
        assert!(folder.bash(line).ok() == expected, "{line}");
    }
    folder.bash(r#"$simstore build piped <($simstore fingerprint "$en")"#).ok();
    folder.run(&["build", "direct", &sample("en.jsonl")]).ok();
    assert_eq!(folder.run(&["dump", "piped"]).ok(), folder.run(&["dump", "direct"]).ok());
    folder.bash("mkfifo twice && $simstore fingerprint twice twice").fails(2, "twice can be read only once");
}

#[test]
fn kept_documents_of_a_pipe_are_written() {
    let folder = TestFolder::new();
    let expected = folder.run(&["dedup", &sample("en.jsonl"), "--output", "-"]).ok();
    assert!(folder.bash(r#"$simstore dedup --output - <(cat "$en")"#).ok() == expected);
}

#[test]
fn a_pipe_may_deliver_a_few_bytes_at_a_time() {
    let folder = TestFolder::new();
    for (start, rest) in [
        ("00000000", "00000001"),
        (r"\n", "0000000000000001"),
        (r"\xef\xbb\xbf", "0000000000000001"),
        (r" \r\n", "0000000000000001"),
    ] {
        let input = format!("(printf '{start}'; sleep 0.2; echo {rest})");
        folder.bash(&format!("rm -rf s; {input} | $simstore build -q s -")).ok();
        assert_eq!(folder.run(&["dump", "s"]).ok(), "0000000000000001\t0\n", "{start}");
    }
    let line =
        r#"(printf '\n{'; sleep 0.2; echo '"id": 7, "text": "some words"}') | $simstore fingerprint -q -"#;
    assert!(folder.bash(line).ok().ends_with("\t7\n"));
}

/// If the reader closes standard output early, the other outputs are still written.
#[test]
fn other_outputs_are_written_if_standard_output_is_closed() {
    let folder = TestFolder::new();
    let line: String =
        (0..20_000).map(|i| format!("{{\"id\": {i}, \"text\": \"document {i} of {}\"}}\n", i / 2)).collect();
    folder.write("a.jsonl", line);
    folder
        .run(&["dedup", "-q", "-d", "0", "a.jsonl", "--remove-list", "expected", "--keep-list", "kept"])
        .ok();
    let line = r#"set -o pipefail; $simstore dedup -q -d 0 a.jsonl -o - --remove-list rl.txt | head -c 100"#;
    let run = folder.bash(line);
    assert!(run.stderr.contains("standard output was closed early"), "{}", run.stderr);
    assert_eq!(run.ok().len(), 100);
    assert!(folder.read("rl.txt") == folder.read("expected"));
    // Without other outputs, no message is printed.
    let alone = folder.bash(r#"set -o pipefail; $simstore dedup -q -d 0 a.jsonl -o - | head -c 100"#);
    assert!(!alone.stderr.contains("standard output"), "{}", alone.stderr);
    assert_eq!(alone.ok().len(), 100);
}
