//! Asserts that the files of a package have no import cycles. So the files have an order, and each can be understood by
//! reading only files before it. Cargo ensures the same for packages.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Item, ItemMod, ItemUse, UseTree, Visibility};

use crate::structure::{ModulePath, PACKAGES, root, rust_files};

/// A source file, with the paths of the items that it imports and uses.
struct ParsedSource {
    name: String,
    /// Full paths of the items that `use` imports. The key is the name of the item in this file.
    imports: BTreeMap<String, ModulePath>,
    /// Full paths of the items that the file uses. Items that it only re-exports are left out.
    uses: Vec<ModulePath>,
}

/// Returns the path of the module that a file contains.
fn module(file: &str) -> ModulePath {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("mod").map_or(path, |path| path.trim_end_matches('/'));
    path.split('/').filter(|name| !["", "lib", "main"].contains(name)).map(str::to_owned).collect()
}

/// Collects what the code of a source file refers to, without its tests: the items that `use` imports, and the paths of
/// items (such as `crate::error::Error`) elsewhere in the code.
#[derive(Default)]
struct PathCollector {
    /// One tuple for each item that a `use` imports: its name in the file, its path, and whether it is re-exported.
    imports: Vec<(String, ModulePath, bool)>,
    paths: Vec<ModulePath>,
}

/// Whether an item is compiled only in tests, as with `#[cfg(test)]` and `#[cfg(all(test, unix))]`.
fn is_test(attributes: &[syn::Attribute]) -> bool {
    let is_test = |attribute: &syn::Attribute| {
        let list = attribute.meta.require_list();
        list.is_ok_and(|list| {
            list.tokens.to_string().split(|c: char| !c.is_alphanumeric()).any(|word| word == "test")
        })
    };
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && is_test(attribute))
}

impl PathCollector {
    fn import(&mut self, tree: &UseTree, mut above: ModulePath, is_public: bool) {
        match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                self.import(&path.tree, above, is_public);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(tree, above.clone(), is_public));
            }
            UseTree::Name(name) if name.ident == "self" => {
                self.imports.push((above.last().cloned().unwrap_or_default(), above, is_public));
            }
            UseTree::Name(name) => {
                above.push(name.ident.to_string());
                self.imports.push((name.ident.to_string(), above, is_public));
            }
            UseTree::Rename(rename) => {
                above.push(rename.ident.to_string());
                self.imports.push((rename.rename.to_string(), above, is_public));
            }
            UseTree::Glob(_) => self.imports.push((String::new(), above, is_public)),
        }
    }
}

impl<'a> Visit<'a> for PathCollector {
    fn visit_item_mod(&mut self, item: &'a ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'a ItemUse) {
        self.import(&item.tree, Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    /// Collects paths in the arguments of a macro call from the text of the arguments, because `syn` does not parse
    /// them.
    fn visit_macro(&mut self, item: &'a syn::Macro) {
        let text = item.tokens.to_string().replace(" :: ", "::").replace(":: ", "::");
        let words = text.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
        let words = words.map(|word| word.trim_matches(':')).filter(|word| !word.is_empty());
        self.paths.extend(words.map(|word| word.split("::").map(str::to_owned).collect::<ModulePath>()));
    }
}

/// Resolves the path `names`, as written in `module`, to a path from the root of the package. `starts` has the resolved
/// paths of the names that are visible in the module. Returns `None` for a path into another package.
fn from_root(
    names: &[String],
    module: &[String],
    starts: &BTreeMap<String, ModulePath>,
) -> Option<ModulePath> {
    let up = names.iter().take_while(|name| *name == "super").count();
    let start = match names.first()?.as_str() {
        "crate" => &[],
        "self" => module,
        "super" => &module[..module.len().saturating_sub(up)],
        first => starts.get(first)?,
    };
    Some([start, &names[up.max(1)..]].concat())
}

fn read(name: &str, source: &str) -> ParsedSource {
    let module = module(name);
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut collector = PathCollector::default();
    collector.visit_file(&file);
    let below = file.items.iter().filter_map(|item| match item {
        Item::Mod(item) if item.content.is_none() && !is_test(&item.attrs) => Some(item.ident.to_string()),
        _ => None,
    });
    let mut starts: BTreeMap<String, ModulePath> =
        below.map(|name| (name.clone(), [&module[..], &[name]].concat())).collect();
    let (mut imports, mut uses) = (BTreeMap::new(), Vec::new());
    let words: BTreeSet<&String> = collector.paths.iter().flatten().collect();
    for (name, names, is_public) in &collector.imports {
        let Some(names) = from_root(names, &module, &starts) else { continue };
        if !is_public || words.contains(name) {
            uses.push(names.clone());
        }
        imports.insert(name.clone(), names);
    }
    starts.extend(imports.clone());
    let paths = collector.paths.iter().filter(|names| names.len() > 1);
    uses.extend(paths.filter_map(|names| from_root(names, &module, &starts)));
    ParsedSource { name: name.to_owned(), imports, uses }
}

/// Returns the name of the file that defines the item with the path `names`. Follows at most `steps` re-exports.
fn defining_file<'f>(names: &[String], files: &'f BTreeMap<ModulePath, ParsedSource>, steps: u32) -> &'f str {
    let length = (0..=names.len()).rev().find(|&end| files.contains_key(&names[..end])).unwrap();
    let file = &files[&names[..length]];
    match names.get(length).and_then(|name| file.imports.get(name)) {
        Some(target) if steps > 0 => {
            defining_file(&[target, &names[length + 1..]].concat(), files, steps - 1)
        }
        _ => &file.name,
    }
}

/// Returns the files in import cycles, and the files on import paths from one cycle to another. The key is a file; the
/// value is the set of those returned files that it imports.
fn rings(sources: &[(String, String)]) -> BTreeMap<String, BTreeSet<String>> {
    let files: BTreeMap<ModulePath, ParsedSource> =
        sources.iter().map(|(name, source)| (module(name), read(name, source))).collect();
    let mut left: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files.values() {
        let uses =
            file.uses.iter().map(|names| defining_file(names, &files, 8)).filter(|used| *used != file.name);
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

/// Returns the files of a package, without files of tests. Each item is the path of a file below `src`, and its
/// contents.
fn sources(src: &Path) -> Vec<(String, String)> {
    let name = |path: &Path| path.strip_prefix(src).unwrap().to_str().unwrap().to_owned();
    let is_test = |name: &str| name.split('/').any(|part| part == "tests" || part == "tests.rs");
    let files = rust_files(src).into_iter().map(|path| (name(&path), path));
    files
        .filter(|(name, _)| !is_test(name))
        .map(|(name, path)| (name, fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn no_files_import_one_another_in_a_ring() {
    for src in PACKAGES {
        let sources = sources(&root().join(src));
        assert!(sources.len() > 3, "{src}: few files");
        let rings = rings(&sources);
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
    // Cycles through a re-export, a path without `use`, the module of the folder, an imported module, and a macro.
    for (at, more, expected) in [
        (2, "use crate::a::B;\n", "a/c.rs a/d.rs"),
        (2, "fn f(b: super::d::B) {}\n", "a/c.rs a/d.rs"),
        (1, "pub struct E;\nfn f() { c::other() }\n", "a/c.rs a/mod.rs"),
        (2, "use crate::b;\nfn f() { b::b() }\n", "a/c.rs a/d.rs b.rs"),
        (2, "fn f() { assert!(1 == super::d::B::len()) }\n", "a/c.rs a/d.rs"),
    ] {
        let mut sources = whole.clone();
        sources[at].1 += more;
        if at == 1 {
            sources[2].1 += "use super::E;\n";
        }
        assert_eq!(ring(&sources).join(" "), expected, "{more}");
    }
    // Test modules may use any file.
    let mut tested = whole.clone();
    tested[2].1 += "#[cfg(test)]\nmod tests {\n    use crate::b;\n}\n";
    assert!(ring(&tested).is_empty(), "{:?}", rings(&tested));
}
