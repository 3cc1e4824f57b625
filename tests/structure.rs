//! Asserts facts about the source code that ARCHITECTURE.md and CONTRIBUTING.md state, such as the dependencies of
//! packages, the files with unsafe code, and the only module with disk access.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Source folders of all packages.
pub(crate) const PACKAGES: [&str; 8] =
    ["src", "text/src", "io/src", "corpus/src", "dedup/src", "server/src", "cli/src", "python/src"];

/// The only files that may have `unsafe` code, except in the package `benches/rivals`.
const UNSAFE_FILES: [&str; 6] = [
    "src/file_bytes.rs",
    "src/simd.rs",
    "src/simd/matching_bytes.rs",
    "src/simd/span_groups.rs",
    "src/simd/word_group.rs",
    "tests/corruption.rs",
];

/// Dependencies of the engine, without dev-dependencies.
const ENGINE_DEPENDENCIES: [&str; 7] =
    ["bitvec", "byteorder", "crc32fast", "memmap2", "rayon", "strsim", "thiserror"];

/// Module names from the root of a package: `["a", "b"]` is `crate::a::b`.
pub(crate) type ModulePath = Vec<String>;

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the texts between backticks in a cell of a Markdown table.
fn words(cell: &str) -> Vec<String> {
    cell.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// Returns the rows of a table in ARCHITECTURE.md, each as a list of its cells. `head` is the start of the table's header
/// line.
fn table(head: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with(head)).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let cells = |row: &str| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect();
    let rows: Vec<Vec<String>> = rows.map(cells).collect();
    assert!(rows.len() > 1, "ARCHITECTURE.md has no table `{head}`");
    rows
}

/// All Rust files below a folder.
pub(crate) fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let (mut folders, mut files) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// Returns the files in the folder `src` of a package, without files of tests. Each item is the relative path of a
/// file, and its code without comments and test modules.
pub(crate) fn sources(src: &Path) -> Vec<(String, String)> {
    let mut sources = Vec::new();
    for path in rust_files(src) {
        let name = path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
        if name.split('/').any(|part| part == "tests" || part == "tests.rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let text = text.split("\nmod tests {").next().unwrap();
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        sources.push((name, text.lines().filter(is_code).map(|line| format!("{line}\n")).collect()));
    }
    assert!(sources.len() > 3, "few files below {}", src.display());
    sources
}

/// Returns the names of the dependencies in the text of a `Cargo.toml`, without dev-dependencies.
fn dependencies(manifest: &str) -> Vec<&str> {
    let mut dependencies = Vec::new();
    let mut inside = false;
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            let section = section.trim_end_matches(']');
            assert!(!section.ends_with("build-dependencies"), "[{section}]");
            // A section of one system is `target.'cfg(...)'.dependencies`.
            inside = section.rsplit('.').next() == Some("dependencies") && !section.starts_with("workspace");
        } else if inside && !line.starts_with('#') && !line.is_empty() {
            dependencies.push(line.split(['.', ' ', '=']).next().unwrap());
        }
    }
    dependencies
}

#[test]
fn the_table_of_packages() {
    let packages = table("| package |");
    let workspace = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let members = workspace.lines().find(|line| line.starts_with("members")).unwrap();
    let members = members
        .split('"')
        .skip(1)
        .step_by(2)
        .filter(|member| !member.starts_with("benches/") && *member != "fuzz");
    let members: Vec<&str> = members.chain(["."]).collect();
    let folders: Vec<String> = packages.iter().map(|row| words(&row[1])[0].clone()).collect();
    let sorted = |names: &[&str]| {
        names.iter().map(|name| name.trim_end_matches('/').to_owned()).collect::<BTreeSet<_>>()
    };
    let named: Vec<&str> = folders.iter().map(String::as_str).collect();
    assert_eq!(
        sorted(&named),
        sorted(&members),
        "the packages in ARCHITECTURE.md are not those of the workspace"
    );
    let names: Vec<String> = packages.iter().map(|row| words(&row[0])[0].clone()).collect();
    for (at, folder) in folders.iter().enumerate() {
        let manifest = fs::read_to_string(root().join(folder).join("Cargo.toml")).unwrap();
        assert!(manifest.contains(&format!("name = \"{}\"\n", names[at])), "{folder}: not `{}`", names[at]);
        let depends_on = dependencies(&manifest).into_iter().filter(|name| name.starts_with("simstore"));
        let depends_on: BTreeSet<&str> = depends_on.collect();
        let described: Vec<String> = words(&packages[at][3]);
        assert_eq!(depends_on, described.iter().map(String::as_str).collect(), "{folder}: dependencies");
    }
    let engine = dependencies(&workspace);
    assert_eq!(engine, ENGINE_DEPENDENCIES, "the engine's dependencies");
    assert!(!workspace.contains("[features]"), "the engine has no features to choose");
}

#[test]
fn unsafe_code_is_in_few_files() {
    let mut found = Vec::new();
    for folder in table("| package |").iter().map(|row| words(&row[1])[0].clone()) {
        for part in ["src", "tests", "benches", "examples"] {
            let part = root().join(&folder).join(part);
            for path in part.is_dir().then(|| rust_files(&part)).into_iter().flatten() {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
                let is_unsafe = |line: &str| {
                    let mut words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '"');
                    words.any(|word| word == "unsafe")
                };
                let name =
                    path.strip_prefix(root()).unwrap().to_str().unwrap().trim_start_matches("./").to_owned();
                if !name.starts_with("benches/rivals") && code.into_iter().any(is_unsafe) {
                    found.push(name);
                }
            }
        }
    }
    found.sort();
    assert_eq!(found, UNSAFE_FILES);
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let rule =
        text.split("- **").find(|rule| rule.starts_with("Unsafe**")).expect("the rule of CONTRIBUTING.md");
    let mut named = words(rule);
    named.retain(|file| file != "tests/structure.rs");
    named.sort();
    assert_eq!(named, UNSAFE_FILES, "CONTRIBUTING.md names other files (left)");
    for package in ["text", "io", "corpus", "dedup", "server", "cli"] {
        let file = format!("{package}/src/lib.rs");
        let text = fs::read_to_string(root().join(&file)).unwrap();
        assert!(text.contains("#![forbid(unsafe_code)]"), "{file} allows more");
    }
}

/// Each file in CONTRIBUTING.md's table of tests exists, and the table lists all test files of the libraries.
#[test]
fn tests_are_where_contributing_says() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let rows = text.lines().skip_while(|line| !line.starts_with("| behaviour |")).skip(2);
    let mut named = BTreeSet::new();
    for row in rows.take_while(|line| line.starts_with('|')) {
        let mut folder = PathBuf::new();
        for file in words(row.rsplit(" | ").next().unwrap()).iter().filter(|file| file.contains(['.', '/'])) {
            // A name without a folder is in the folder of the previous file.
            let path = if file.contains('/') { PathBuf::from(file) } else { folder.join(file) };
            folder = if file.ends_with('/') { path.clone() } else { path.parent().unwrap().to_path_buf() };
            assert!(
                file.contains('*') || root().join(&path).exists(),
                "CONTRIBUTING.md: no {}",
                path.display()
            );
            named.insert(path);
        }
    }
    for folder in ["tests", "text/tests", "io/tests", "corpus/tests", "dedup/tests", "server/tests"] {
        for entry in fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().file_name()) {
            let path = Path::new(folder).join(entry);
            let is_test =
                path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("main.rs");
            assert!(
                !is_test || named.contains(&path),
                "CONTRIBUTING.md does not say what {} tests",
                path.display()
            );
        }
    }
}

/// Returns the name of the type that a line of code defines, or `None` if the type is private or the line defines no type.
fn visible_type(line: &str) -> Option<&str> {
    let item = line.trim_start().strip_prefix("pub")?;
    let item = item.strip_prefix('(').map_or(Some(item), |rest| Some(rest.split_once(')')?.1))?;
    let item = item.strip_prefix(' ')?;
    let item = item.strip_prefix("unsafe ").unwrap_or(item);
    let (_, name) = item
        .split_once(' ')
        .filter(|(kind, _)| ["enum", "struct", "trait", "type", "union"].contains(kind))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// No two types in the workspace have the same name, except private types.
#[test]
fn types_have_distinct_names() {
    assert_eq!(visible_type("    pub(in crate::a) trait Name<'a>: Sync {"), Some("Name"));
    assert_eq!(visible_type("pub type Result<T> ="), Some("Result"));
    assert_eq!((visible_type("struct Private;"), visible_type("    pub fn name() {")), (None, None));
    let mut places: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in PACKAGES {
        for (file, source) in sources(&root().join(package)) {
            for name in source.lines().filter_map(visible_type) {
                places.entry(name.to_owned()).or_default().push(format!("{package}/{file}"));
            }
        }
    }
    assert!(places.len() > 300, "only {} types", places.len());
    places.retain(|_, places| places.len() > 1);
    assert!(places.is_empty(), "types with one name: {places:#?}");
}

/// The engine accesses the disk only through its module `fs`, so that tests can run it on a simulated disk.
#[test]
fn the_disk_is_reached_through_fs_alone() {
    for (file, source) in sources(&root().join("src")) {
        for word in ["std::fs", " File::open", " File::create", "OpenOptions::"] {
            let may = ["fs.rs", "file_bytes.rs"].contains(&&*file);
            assert!(may || !source.contains(word), "src/{file}: `{word}`");
        }
    }
}
