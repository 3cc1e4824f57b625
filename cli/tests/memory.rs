//! Commands in a limited address space. Memory use depends on the data kept, not on sizes that the input claims.

use std::io::Write;

use crate::{CommandOutput, TestFolder};

/// Limit of a command's address space, in KiB. The limit is enough for the program, its threads, and a few copies of the
/// longest document in these tests. A command that parsed one of the inputs in full would need much more.
const ADDRESS_SPACE_KIB: u64 = 200_000;
/// Number of repetitions in the inputs: of a value in a JSON array, or of a column name in a CSV header.
const VALUE_COUNT: usize = 6_000_000;

/// Runs a bash line in an address space of [`ADDRESS_SPACE_KIB`]. `$simstore` is the binary.
fn run_with_little_memory(folder: &TestFolder, line: &str) -> CommandOutput {
    // glibc reserves an arena of 64 MiB for each thread by default.
    folder.bash(&format!(
        "export MALLOC_ARENA_MAX=1 RAYON_NUM_THREADS=1; ulimit -v {ADDRESS_SPACE_KIB}; exec {line}"
    ))
}

/// Writes a zstd file of `first`, `times` repetitions of `repeated`, and `last`.
fn write_compressed(folder: &TestFolder, name: &str, first: &str, repeated: &str, times: usize, last: &str) {
    let file = std::fs::File::create(folder.path(name)).unwrap();
    let mut zstd = zstd::Encoder::new(file, 1).unwrap();
    zstd.write_all(first.as_bytes()).unwrap();
    let many = repeated.repeat(1000);
    (0..times / 1000).for_each(|_| zstd.write_all(many.as_bytes()).unwrap());
    zstd.write_all(last.as_bytes()).unwrap();
    zstd.finish().unwrap();
}

#[test]
fn headers_of_very_many_columns() {
    let folder = TestFolder::new();
    write_compressed(&folder, "c.csv.zst", "id,text", ",", VALUE_COUNT, "\n1,one\n");
    run_with_little_memory(&folder, "$simstore --threads 1 fingerprint c.csv.zst")
        .fails(1, "c.csv.zst:1: the header has more than 100,000 columns, the maximum of a table");
}

#[test]
fn values_of_unused_json_fields() {
    let folder = TestFolder::new();
    write_compressed(
        &folder,
        "a.jsonl.zst",
        "{\"id\": 1, \"text\": \"some words\", \"n\": [0",
        ",0",
        VALUE_COUNT,
        "]}\n",
    );
    let line = |more: &str| format!("$simstore --threads 1 fingerprint a.jsonl.zst {more}");
    assert!(run_with_little_memory(&folder, &line("")).ok().ends_with("\t1\n"));
    // If the requested field is not a string, the error says so. If it does not exist, the error lists all fields.
    run_with_little_memory(&folder, &line("--text-field n"))
        .fails(1, "a.jsonl.zst:1: the text field `n` is not a string");
    run_with_little_memory(&folder, &line("--text-field x"))
        .fails(1, "no text field `x`; the document has `id`, `n`, `text`");
    run_with_little_memory(&folder, &line("--id-field n")).fails(1, "the id field `n` is neither a string");
    run_with_little_memory(&folder, &line("--id-field x.y"))
        .fails(1, "no id field `x.y`; the document has `id`, `n`, `text`");
}

#[test]
fn elements_of_an_array() {
    let folder = TestFolder::new();
    write_compressed(
        &folder,
        "a.json.zst",
        "[{\"id\": 1, \"text\": [0",
        ",0",
        VALUE_COUNT,
        "]},\n{\"id\": 2, \"text\": \"two\"}]",
    );
    let run = run_with_little_memory(&folder, "$simstore --threads 1 fingerprint --skip-bad a.json.zst");
    assert!(run.stderr.contains("a.json.zst:1: the text field `text` is not a string"), "{}", run.stderr);
    assert!(run.ok().ends_with("\t2\n"));
}

#[test]
fn a_line_that_is_too_long_for_the_memory() {
    let folder = TestFolder::new();
    write_compressed(
        &folder,
        "a.jsonl.zst",
        "{\"id\": 1, \"text\": \"",
        "word ",
        2_000_000,
        "\"}\n{\"text\": \"some words\"}\n",
    );
    let line = "$simstore --threads 1 dedup --memory 100M a.jsonl.zst";
    let message = "a.jsonl.zst:1: longer than the limit of 6553600 bytes for one document, with 100.0 MiB of memory; \
                raise --memory";
    run_with_little_memory(&folder, line).fails(1, message);
    let skipped = run_with_little_memory(&folder, &format!("{line} --skip-bad --keep-list kept"));
    assert!(skipped.stderr.contains(message), "{}", skipped.stderr);
    assert!(skipped.stderr.contains("skipped 1 invalid document or unreadable file"), "{}", skipped.stderr);
    skipped.ok();
    assert_eq!(folder.read("kept"), "a.jsonl.zst:2\n");
}

/// If documents of an input are skipped for lack of memory, `--resume` does not keep the result of this input,
/// because a later run may have enough memory.
#[test]
fn a_part_without_a_too_long_document_is_not_kept() {
    let folder = TestFolder::new();
    let long = format!("{{\"id\": 1, \"text\": \"{}\"}}\n", "word ".repeat(1_400_000));
    folder.write("a.jsonl", long + "{\"id\": 2, \"text\": \"some words\"}\n");
    let args = ["dedup", "a.jsonl", "--skip-bad", "--resume", "work", "--keep-list", "kept"];
    let little = folder.run(&[&args[..], &["--memory", "100M"]].concat());
    let message = "a.jsonl: not kept for later runs, because documents were skipped for lack of memory";
    assert!(little.stderr.contains(message), "{}", little.stderr);
    little.ok();
    assert_eq!(folder.read("kept"), "2\n");
    for parts in ["1 part processed, 0 reused", "0 parts processed, 1 reused"] {
        let more = folder.run(&[&args[..], &["--memory", "200M"]].concat());
        assert!(more.stderr.contains(parts), "{}", more.stderr);
        more.ok();
        assert_eq!(folder.read("kept"), "1\n2\n");
    }
}
