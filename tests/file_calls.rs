//! A table of the source files with calls that open, remove or rename a file, and a test that no such file is missing.
//! Each row says why these calls neither block on a named pipe nor remove a file of another program.

use std::collections::BTreeMap;

use crate::structure::{PACKAGES, root, sources};

const OPEN_CALLS: [&str; 7] = [
    "File::open(", "File::create(", "File::create_new(", "File::options()", "OpenOptions::new()",
    "fs::read(", "fs::read_to_string(",
];
const CHANGE_CALLS: [&str; 6] =
    ["fs::remove_file(", "fs::remove_dir(", "fs::remove_dir_all(", "fs::rename(", "fs::copy(", "fs::write("];

/// All source files that open, remove, rename, copy or write files. Each row has the path of a source file, the number of
/// its calls that open or read files, the number of its calls that remove, rename, copy or write files, and the reason why
/// all these calls are safe.
const FILE_CALLS: &[(&str, usize, usize, &str)] = &[
    ("src/fs.rs", 7, 4, "regular files of a store; folders, to sync them; /proc"),
    ("src/options.rs", 1, 0, "/proc"),
    ("text/src/resources.rs", 1, 0, "an input, which may be a pipe"),
    ("server/src/access_token.rs", 1, 0, "a token, which may come from a pipe"),
    ("cli/src/inputs.rs", 1, 0, "an input, which may be a pipe"),
    ("io/src/bytes/input.rs", 1, 0, "an input, which may be a pipe"),
    ("io/src/bytes/read_once.rs", 1, 0, "an input, which may be a pipe"),
    ("io/src/bytes/section/boundaries.rs", 1, 0, "an input of a known size: no pipe"),
    ("io/src/bytes/section/stream.rs", 1, 0, "an input of a known size: no pipe"),
    ("dedup/src/estimate/mod.rs", 1, 0, "/proc"),
    ("dedup/src/checkpoint/parts/remove_parts.rs", 0, 1, "a part, which is read before"),
    ("dedup/src/checkpoint/parts/part_inputs.rs", 1, 0, "an input, after pipes are refused"),
    ("io/src/formats/archive.rs", 2, 0, "an input, after a zip file in a pipe is refused"),
    ("io/src/formats/detect.rs", 2, 0, "an input, after its kind is known"),
    ("io/src/formats/parquet.rs", 1, 0, "an input, after Parquet in a pipe is refused"),
    ("io/src/output/output_folder.rs", 4, 2, "locked hidden files; its own new files; folders"),
    ("io/src/output/temporary_file.rs", 3, 1, "locked hidden files; outputs, also pipes"),
    ("io/src/output/temporary_path.rs", 1, 2, "hidden files and folders under a lock; folders, to sync them"),
    (
        "io/src/output/unfinished_outputs.rs",
        0,
        2,
        "hidden files and folders of this job, and its temporary folders",
    ),
    ("corpus/src/shards/folder.rs", 0, 2, "shards by their names, in a folder that holds nothing else"),
    ("corpus/src/spill/memory_budget.rs", 1, 0, "/proc and /sys"),
    (
        "corpus/src/spill/temporary_folder.rs",
        2,
        3,
        "temporary folders by their names, whose lock is a regular file",
    ),
    ("corpus/src/spill/rows.rs", 1, 0, "a temporary file in a new folder"),
];

/// Returns how many times a source text calls functions with these names.
fn count(source: &str, names: &[&str]) -> usize {
    let is_name = |at: usize| !source[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    names.iter().flat_map(|name| source.match_indices(name)).filter(|&(at, _)| is_name(at)).count()
}

#[test]
fn each_place_is_in_the_table() {
    // A call of a function that is imported by its own name would not be counted.
    let imports_function = |line: &&str| {
        let names = line.trim_start().strip_prefix("use std::fs::").unwrap_or_default();
        let mut names = names.split(|c: char| !c.is_alphanumeric() && c != '_');
        names.any(|name| name != "self" && name.starts_with(char::is_lowercase))
    };
    let mut found = BTreeMap::new();
    for package in PACKAGES {
        for (name, source) in sources(&root().join(package)) {
            let import = source.lines().find(imports_function);
            assert_eq!(import, None, "{package}/{name}: import `std::fs` instead");
            let counts = (count(&source, &OPEN_CALLS), count(&source, &CHANGE_CALLS));
            if counts != (0, 0) {
                found.insert(format!("{package}/{name}"), counts);
            }
        }
    }
    let table = FILE_CALLS.iter().map(|&(name, opens, changes, _)| (name.to_owned(), (opens, changes)));
    assert_eq!(found, table.collect::<BTreeMap<_, _>>());
}
