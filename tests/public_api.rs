//! What the engine shows: `tests/data/public-api.txt`. A change of it is seen in review; `UPDATE_API=1` writes it anew.
//!
//! All that is `pub` can be reached from outside: the lint `unreachable_pub` sees to that.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            sources(&path, files);
        } else if !path.ends_with("tests.rs") && !path.components().any(|part| part.as_os_str() == "tests") {
            files.push(path);
        }
    }
}

/// An item without what is behind its name: arguments, types and bodies change more often than what there is.
fn name_of(line: &str) -> String {
    let line = line.trim().trim_start_matches("pub ");
    let end = line.find(['(', '<', ':', '=', ';', '{', ',']).unwrap_or(line.len());
    line[..end].trim().to_string()
}

/// The type of `impl<F: Fingerprint> Trait<F> for Type<F> {`.
fn implementer(line: &str) -> String {
    let mut depth = 0;
    // Where the parameters behind `impl` end.
    let end = line.char_indices().find(|&(at, c)| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        at >= "impl".len() && depth == 0
    });
    let rest = line[end.map_or(0, |(at, _)| at + 1)..].rsplit(" for ").next().unwrap_or_default();
    rest.trim().split(['<', ' ', '{']).next().unwrap_or_default().to_string()
}

/// The public items of a file: those outside of everything, and below each the fields, variants and methods.
fn items(source: &str) -> Vec<String> {
    let mut items = Vec::new();
    // The type that the lines are part of, and whether all of its members are public.
    let mut within: Option<(String, bool)> = None;
    for line in source.lines() {
        if line.starts_with("mod tests") {
            break;
        }
        let depth = line.len() - line.trim_start().len();
        let is_public = line.trim_start().starts_with("pub ");
        if line.starts_with("mod ") {
            within = None;
        } else if depth == 0 && line != "{" && (line.ends_with('{') || line.starts_with("pub trait")) {
            let all = line.starts_with("pub enum") || line.starts_with("pub trait");
            let of = if line.starts_with("impl") { implementer(line) } else { name_of(line) };
            within = Some((of.split(' ').next_back().unwrap_or_default().to_string(), all));
        }
        match &within {
            _ if depth == 0 && is_public && !line.starts_with("pub use") => items.push(name_of(line)),
            Some((of, all)) if depth == 4 => {
                let member = line.trim_start();
                let is_variant = member.starts_with(|c: char| c.is_ascii_uppercase());
                let is_member =
                    *all && (is_variant || member.starts_with("fn ") || member.starts_with("const "));
                if is_public || is_member {
                    items.push(format!("    {of}: {}", name_of(line)));
                }
            }
            // What a macro makes of these lines.
            Some((of, _)) if depth == 8 && is_public && line.ends_with(';') => {
                items.push(format!("    {of}: {}", name_of(line)));
            }
            _ => {}
        }
    }
    items
}

/// The names at the root.
fn front_door(lib: &str) -> Vec<String> {
    let root = lib.split("pub mod raw {").next().unwrap_or_default();
    let mut names = Vec::new();
    for import in root.split("pub use crate::").skip(1) {
        let import = import.split(';').next().unwrap_or_default();
        let last = import.rsplit("::").next().unwrap_or_default();
        names.extend(
            last.split([',', '{', '}']).map(str::trim).filter(|name| !name.is_empty()).map(str::to_string),
        );
    }
    names.sort();
    names
}

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let lib = fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let names = front_door(&lib);
    let mut text = format!("The front door, {} names: {}\n", names.len(), names.join(", "));
    for line in lib.lines().filter(|line| line.starts_with("pub mod ")) {
        text += &format!("{}\n", line.trim_end_matches([';', '{', ' ']));
    }
    let raw = lib.split("pub mod raw {").nth(1).unwrap();
    for line in raw.lines().filter(|line| line.starts_with("    pub use")) {
        text += &format!("{line}\n");
    }
    let mut files = Vec::new();
    sources(&root.join("src"), &mut files);
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for file in files {
        let name = file.strip_prefix(root.join("src")).unwrap().to_string_lossy().into_owned();
        let items = items(&fs::read_to_string(&file).unwrap());
        if name != "lib.rs" && !items.is_empty() {
            parts.push((name, items));
        }
    }
    parts.sort();
    for (name, items) in parts {
        text += &format!("\n{name}\n{}\n", items.join("\n"));
    }
    let written = root.join("tests/data/public-api.txt");
    if std::env::var_os("UPDATE_API").is_some() {
        fs::create_dir_all(written.parent().unwrap()).unwrap();
        fs::write(&written, &text).unwrap();
    }
    let expected = fs::read_to_string(&written).unwrap_or_default();
    for (line, (is, was)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(
            is,
            was,
            "line {} of {}: if it is meant, run with UPDATE_API=1",
            line + 1,
            written.display()
        );
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{}", written.display());
}
