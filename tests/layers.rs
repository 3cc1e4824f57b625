//! A module imports only from the layers below it.

use std::fs;
use std::path::Path;

/// From the ground up; modules on one line may not import one another.
const LAYERS: &[&[&str]] = &[
    &["error", "kernels", "progress"],
    &["fingerprint", "map", "threads"],
    &["format", "fs", "permutation", "bits"],
    &["huffman", "radix"],
    &["sort"],
    &["codec"],
    &["plan"],
    &["table", "manifest", "options", "wal", "compaction"],
    &["segment"],
    &["memtable"],
    &["store", "join"],
    &["batch"],
];

fn layer(module: &str) -> usize {
    let place = LAYERS.iter().position(|layer| layer.contains(&module));
    place.unwrap_or_else(|| panic!("`{module}` has no layer: give it one in tests/layers.rs"))
}

fn check(file: &Path, module: &str) {
    let source = fs::read_to_string(file).unwrap();
    // What only tests import is no dependency of the module.
    let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    for import in source.split("crate::").skip(1) {
        let name: String = import.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect();
        if name.is_empty() || name == module {
            continue;
        }
        assert!(layer(&name) < layer(module), "{}: `{module}` imports `{name}`", file.display());
    }
}

#[test]
fn modules_import_downwards() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut seen = 0;
    for entry in fs::read_dir(src).unwrap().map(|entry| entry.unwrap().path()) {
        let module = entry.file_stem().unwrap().to_string_lossy().into_owned();
        if entry.is_dir() {
            let mut folders = vec![entry];
            while let Some(folder) = folders.pop() {
                for file in fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()) {
                    if file.file_stem().unwrap() == "tests" {
                        continue;
                    }
                    if file.is_dir() {
                        folders.push(file);
                    } else {
                        check(&file, &module);
                        seen += 1;
                    }
                }
            }
        } else if entry.extension().is_some_and(|extension| extension == "rs") && module != "lib" {
            check(&entry, &module);
            seen += 1;
        }
    }
    assert!(seen > 20, "only {seen} files were found");
}

/// What changes the disk goes through `fs`, so that the same code runs on a disk that fails.
#[test]
fn the_disk_is_reached_through_fs_alone() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut folders = vec![src.clone()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            let name = entry.strip_prefix(&src).unwrap().to_string_lossy().into_owned();
            if ["fs.rs", "map.rs"].contains(&&*name) || name.ends_with("tests.rs") {
                continue;
            }
            if entry.is_dir() {
                folders.extend((!name.ends_with("tests")).then_some(entry));
                continue;
            }
            let source = fs::read_to_string(&entry).unwrap();
            let source = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for word in ["std::fs", " File::open", " File::create", "OpenOptions::"] {
                assert!(!source.contains(word), "{name}: `{word}`");
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "only {seen} files were found");
}
