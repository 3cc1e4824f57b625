//! No files of a package use one another in a ring: a reader of one need not read all.

use std::collections::{BTreeMap, BTreeSet};

use crate::layers::{root, sources};

/// The sources of all packages.
const PACKAGES: [&str; 5] = ["src", "text/src", "corpus/src", "cli/src", "python/src"];

/// Names one below the other, from the root of a package: `crate::a::B` is `a`, `B`.
type Names = Vec<String>;

/// A file of a package.
struct File {
    name: String,
    /// The targets of its `use` items, by their names in this file.
    imports: BTreeMap<String, Names>,
    /// The names that it uses, without names that it only re-exports.
    uses: Vec<Names>,
}

/// The module that a file is.
fn module(file: &str) -> Names {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("mod").map_or(path, |path| path.trim_end_matches('/'));
    path.split('/').filter(|name| !["", "lib", "main"].contains(name)).map(str::to_owned).collect()
}

fn is_of_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// All paths that a source names, of one name or more, as `a::b`.
fn paths(source: &str) -> impl Iterator<Item = Names> {
    let words = source.split(|c: char| !is_of_name(c) && c != ':').filter(|word| !word.is_empty());
    words.map(|word| word.split("::").map(|name| name.trim_matches(':').to_owned()).collect())
}

/// The targets of a `use` item, also of `{a, b::{self, C as D}}`, each with its name in this file.
fn named(tree: &str, above: &[String], found: &mut Vec<(String, Names)>) {
    let (path, list) = tree.split_once('{').map_or((tree, None), |(path, list)| (path, Some(list)));
    let (path, other) = path.split_once(" as ").map_or((path, None), |(path, other)| (path, Some(other)));
    let names = path.split("::").map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
    let mut names: Names = above.iter().cloned().chain(names).collect();
    let Some(list) = list.and_then(|list| list.rsplit_once('}')) else {
        names.pop_if(|name| name == "self" && !above.is_empty());
        let name = other.map(str::trim).or(names.last().map(String::as_str)).unwrap_or_default().to_owned();
        found.push((name, names));
        return;
    };
    let mut depth = 0;
    let is_border = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    list.0
        .split(is_border)
        .filter(|part| !part.trim().is_empty())
        .for_each(|part| named(part, &names, found));
}

/// Whether a line begins a `use` item, and whether that hands on what it names.
fn begins_use(line: &str) -> Option<bool> {
    let line = line.trim_start();
    let all = line.strip_prefix("pub").map(|rest| rest.trim_start_matches(|c| c != ' ').trim_start());
    all.unwrap_or(line).starts_with("use ").then_some(all.is_some())
}

/// Whether a line only declares a module: a function may have the same name.
fn declares_module(line: &str) -> bool {
    line.ends_with(';') && line.split_whitespace().rev().nth(1) == Some("mod")
}

/// Names from the root of the package; `None` for names of other packages.
fn from_root(names: &[String], module: &[String], starts: &BTreeMap<String, Names>) -> Option<Names> {
    let up = names.iter().take_while(|name| *name == "super").count();
    let start = match names.first()?.as_str() {
        "crate" => &[],
        "self" => module,
        "super" => &module[..module.len().saturating_sub(up)],
        first => starts.get(first)?,
    };
    Some([start, &names[up.max(1)..]].concat())
}

fn read(name: &str, source: &str, modules: &BTreeSet<Names>) -> File {
    let module = module(name);
    let (mut items, mut rest, mut lines) = (Vec::new(), String::new(), source.lines());
    while let Some(line) = lines.next() {
        let Some(is_handed_on) = begins_use(line) else {
            if !declares_module(line) {
                rest += line;
                rest += "\n";
            }
            continue;
        };
        let mut item = line.to_owned();
        while !item.contains(';') {
            item += lines.next().expect("the end of a `use` item");
        }
        items.push((is_handed_on, item.split_once("use ").unwrap().1.split(';').next().unwrap().to_owned()));
    }
    let below = modules.iter().filter(|path| path.len() == module.len() + 1 && path.starts_with(&module));
    let mut starts: BTreeMap<_, _> = below.map(|path| (path.last().unwrap().clone(), path.clone())).collect();
    let (mut imports, mut uses) = (BTreeMap::new(), Vec::new());
    let words: BTreeSet<&str> = rest.split(|c| !is_of_name(c)).collect();
    for (is_handed_on, item) in &items {
        let mut found = Vec::new();
        named(item, &[], &mut found);
        for (name, names) in found {
            let Some(names) = from_root(&names, &module, &starts) else { continue };
            if !is_handed_on || words.contains(name.as_str()) {
                uses.push(names.clone());
            }
            imports.insert(name, names);
        }
    }
    starts.extend(imports.clone());
    uses.extend(
        paths(&rest).filter(|names| names.len() > 1).filter_map(|names| from_root(&names, &module, &starts)),
    );
    File { name: name.to_owned(), imports, uses }
}

/// The file that defines a name, behind re-exports.
fn home<'f>(names: &[String], files: &'f BTreeMap<Names, File>, steps: u32) -> &'f str {
    let known = (0..=names.len()).rev().find(|&length| files.contains_key(&names[..length])).unwrap();
    let file = &files[&names[..known]];
    match names.get(known).and_then(|name| file.imports.get(name)) {
        Some(of) if steps > 0 => home(&[of, &names[known + 1..]].concat(), files, steps - 1),
        _ => &file.name,
    }
}

/// Files in rings, or between two rings, with the files that they use.
fn rings(sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let modules: BTreeSet<Names> = sources.iter().map(|(name, _)| module(name)).collect();
    let files: BTreeMap<Names, File> =
        sources.iter().map(|(name, source)| (module(name), read(name, source, &modules))).collect();
    let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.values() {
        let uses = file.uses.iter().map(|names| home(names, &files, 8)).filter(|used| *used != file.name);
        left.insert(file.name.clone(), uses.map(str::to_owned).collect());
    }
    loop {
        let (before, used): (usize, BTreeSet<String>) =
            (left.len(), left.values().flatten().cloned().collect());
        let there: BTreeSet<String> = left.keys().cloned().collect();
        left.retain(|name, uses| {
            uses.retain(|other| there.contains(other));
            !uses.is_empty() && used.contains(name)
        });
        if left.len() == before {
            return left;
        }
    }
}

#[test]
fn no_files_use_one_another_in_a_ring() {
    for src in PACKAGES {
        let rings = rings(&sources(&root().join(src)));
        assert!(rings.is_empty(), "{src}: {rings:#?}");
    }
}

#[test]
fn rings_are_found() {
    let source = |name: &str, source: &str| (name.to_owned(), source.to_owned());
    let ring = |sources: &[(String, String)]| rings(sources).into_keys().collect::<Vec<_>>();
    let whole = [
        source("lib.rs", "mod a;\nmod b;\npub use crate::a::A;\n"),
        source("a/mod.rs", "mod c;\nmod d;\npub use self::c::{A, other};\npub use self::d::B;\n"),
        source("a/c.rs", "use std::io;\npub struct A;\npub fn other() {}\n"),
        source("a/d.rs", "use crate::{\n    A,\n};\npub struct B(A);\n"),
        source("b.rs", "use crate::a::{self, B as Other};\nfn b() { a::other() }\n"),
    ];
    assert!(ring(&whole).is_empty(), "{:?}", rings(&whole));
    // Through what is handed on, by a path alone, by the folder itself, and by a name of a module.
    for (at, more, expected) in [
        (2, "use crate::a::B;\n", "a/c.rs a/d.rs"),
        (2, "fn f(b: super::d::B) {}\n", "a/c.rs a/d.rs"),
        (1, "pub struct E;\nfn f() { c::other() }\n", "a/c.rs a/mod.rs"),
        (2, "use crate::b;\nfn f() { b::b() }\n", "a/c.rs a/d.rs b.rs"),
    ] {
        let mut sources = whole.clone();
        sources[at].1 += more;
        if at == 1 {
            sources[2].1 += "use super::E;\n";
        }
        assert_eq!(ring(&sources).join(" "), expected, "{more}");
    }
}
