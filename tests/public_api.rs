//! Compares the public API of each library with the list in `tests/data/api/`, so that reviews show each change.
//! `UPDATE_API=1` rewrites the lists.
//!
//! The lists omit items marked `#[doc(hidden)]`: they are public only for other packages of this project.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::{Attribute, Fields, ImplItem, Item, TraitItem, UseTree, Visibility};

use crate::structure::{ModulePath, root, rust_files};

const LIBRARIES: [(&str, &str); 6] = [
    ("simstore", "src"),
    ("simstore-text", "text/src"),
    ("simstore-io", "io/src"),
    ("simstore-corpus", "corpus/src"),
    ("simstore-dedup", "dedup/src"),
    ("simstore-server", "server/src"),
];

/// Parsed sources of a library.
struct LibrarySources {
    /// Items of each module.
    modules: BTreeMap<ModulePath, Vec<Item>>,
    /// Public methods and constants of each type. A key is the name of the type's top-level module, and the name of
    /// the type.
    members: BTreeMap<(String, String), BTreeSet<String>>,
}

fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

fn is_hidden(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let hidden =
            |list: &syn::MetaList| attribute.path().is_ident("doc") && list.tokens.to_string() == "hidden";
        attribute.meta.require_list().is_ok_and(hidden)
    })
}

impl LibrarySources {
    fn read(src: &Path) -> LibrarySources {
        let mut library = LibrarySources { modules: BTreeMap::new(), members: BTreeMap::new() };
        for path in rust_files(src) {
            let name = path.strip_prefix(src).unwrap().with_extension("");
            let mut names: ModulePath = name.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            names.pop_if(|name| name == "mod" || name == "lib");
            let source = fs::read_to_string(&path).unwrap();
            let file = syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            library.add(names, file.items);
        }
        library
    }

    fn add(&mut self, module: ModulePath, mut items: Vec<Item>) {
        for item in &mut items {
            match item {
                Item::Mod(item) => {
                    if let Some((_, items)) = item.content.take() {
                        self.add([&module[..], &[item.ident.to_string()]].concat(), items);
                    }
                }
                Item::Impl(item) if item.trait_.is_none() => self.add_members(&module, item),
                _ => {}
            }
        }
        self.modules.insert(module, items);
    }

    fn add_members(&mut self, module: &[String], item: &syn::ItemImpl) {
        let syn::Type::Path(path) = &*item.self_ty else { return };
        let name = path.path.segments.last().unwrap().ident.to_string();
        let top = module.first().cloned().unwrap_or_default();
        let members = self.members.entry((top, name)).or_default();
        members.extend(item.items.iter().flat_map(|item| match item {
            ImplItem::Fn(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                vec![format!("fn {}", item.sig.ident)]
            }
            ImplItem::Const(item) if is_public(&item.vis) => vec![format!("const {}", item.ident)],
            // Methods that the macro `forward!` declares.
            ImplItem::Macro(item) => {
                let words: Vec<String> =
                    item.mac.tokens.clone().into_iter().map(|word| word.to_string()).collect();
                words.windows(2).filter(|two| two[0] == "fn").map(|two| format!("fn {}", two[1])).collect()
            }
            _ => Vec::new(),
        }));
    }

    /// Adds to the list the public items of a module, with their public fields, variants and methods.
    fn list(&self, module: &[String], list: &mut BTreeSet<String>) {
        for item in &self.modules[module] {
            match item {
                Item::Mod(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    self.list(&[module, &[item.ident.to_string()]].concat(), list);
                }
                Item::Use(item) if is_public(&item.vis) && !is_hidden(&item.attrs) => {
                    self.list_use(&item.tree, Vec::new(), module, list);
                }
                item => self.list_item(module, item, module, None, list),
            }
        }
    }

    /// Adds to the list the items that a public `use` in `module` re-exports. `tree` is the `use` or a part of it;
    /// `above` is the path before this part.
    fn list_use(
        &self,
        tree: &UseTree,
        mut above: ModulePath,
        module: &[String],
        list: &mut BTreeSet<String>,
    ) {
        let (name, alias) = match tree {
            UseTree::Path(path) => {
                above.push(path.ident.to_string());
                return self.list_use(&path.tree, above, module, list);
            }
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.list_use(tree, above.clone(), module, list));
                return;
            }
            UseTree::Name(name) => (name.ident.to_string(), None),
            UseTree::Rename(rename) => (rename.ident.to_string(), Some(rename.rename.to_string())),
            UseTree::Glob(_) => panic!("a public glob import in {module:?}"),
        };
        let from = match above.first().map(String::as_str) {
            Some("crate") => above[1..].to_vec(),
            Some("self") => [module, &above[1..]].concat(),
            Some(_) => [module, &above[..]].concat(),
            None => return,
        };
        let inner = [&from[..], std::slice::from_ref(&name)].concat();
        if self.modules.contains_key(&inner) {
            return self.list(&inner, list);
        }
        let Some(items) = self.modules.get(&from) else { panic!("{module:?}: no module {from:?}") };
        let before = list.len();
        for item in items {
            match item {
                Item::Use(item) => self.list_reexport(&item.tree, &name, &from, module, list),
                item => self.list_item(&from, item, module, Some((&name, alias.as_deref())), list),
            }
        }
        assert!(list.len() > before || !list.is_empty(), "{module:?}: {name} is not in {from:?}");
    }

    /// Adds to the list an item that is re-exported twice: the module `from` re-exports it, and `module` re-exports it
    /// from there. `tree` is a `use` in the module `from`. If `tree` does not import the item `name`, nothing is
    /// added.
    fn list_reexport(
        &self,
        tree: &UseTree,
        name: &str,
        from: &[String],
        module: &[String],
        list: &mut BTreeSet<String>,
    ) {
        fn find(tree: &UseTree, name: &str, above: &[String]) -> Option<ModulePath> {
            match tree {
                UseTree::Path(path) => find(&path.tree, name, &[above, &[path.ident.to_string()]].concat()),
                UseTree::Group(group) => group.items.iter().find_map(|tree| find(tree, name, above)),
                UseTree::Name(found) if found.ident == name => Some([above, &[name.to_owned()]].concat()),
                _ => None,
            }
        }
        let Some(path) = find(tree, name, &[]) else { return };
        let (last, above) = path.split_last().unwrap();
        let from = match above.first().map(String::as_str) {
            Some("crate") => above[1..].to_vec(),
            Some("self") => [from, &above[1..]].concat(),
            _ => return,
        };
        for item in self.modules.get(&from).into_iter().flatten() {
            match item {
                Item::Use(item) => self.list_reexport(&item.tree, last, &from, module, list),
                item => self.list_item(&from, item, module, Some((last, None)), list),
            }
        }
    }

    /// Adds `item` to the list, as an item of `module`, if it is public. The item is defined in the module `home`.
    ///
    /// If `module` is `home`, `wanted` is `None`. Otherwise `wanted` comes from a `use` in `module`: the name that it
    /// re-exports, and the alias after `as` if there is one. An item with another name is not added. If there is an
    /// alias, the list shows the item with the alias.
    fn list_item(
        &self,
        home: &[String],
        item: &Item,
        module: &[String],
        wanted: Option<(&str, Option<&str>)>,
        list: &mut BTreeSet<String>,
    ) {
        let (kind, ident, visibility, attributes) = match item {
            Item::Const(item) => ("const", &item.ident, Some(&item.vis), &item.attrs),
            Item::Enum(item) => ("enum", &item.ident, Some(&item.vis), &item.attrs),
            Item::Fn(item) => ("fn", &item.sig.ident, Some(&item.vis), &item.attrs),
            Item::Struct(item) => ("struct", &item.ident, Some(&item.vis), &item.attrs),
            Item::Trait(item) => ("trait", &item.ident, Some(&item.vis), &item.attrs),
            Item::Type(item) => ("type", &item.ident, Some(&item.vis), &item.attrs),
            Item::Macro(syn::ItemMacro { ident: Some(ident), attrs, .. })
                if attrs.iter().any(|attribute| attribute.path().is_ident("macro_export")) =>
            {
                ("macro", ident, None, attrs)
            }
            _ => return,
        };
        if visibility.is_some_and(|visibility| !is_public(visibility))
            || is_hidden(attributes)
            || wanted.is_some_and(|(name, _)| ident != name)
        {
            return;
        }
        let name = wanted.and_then(|(_, alias)| alias).map_or_else(|| ident.to_string(), str::to_owned);
        let path = [module, &[name]].concat().join("::");
        let mut add = |member: String| {
            list.insert(format!("{path}: {member}"));
        };
        let fields = |fields: &Fields| -> Vec<String> {
            let public = fields.iter().filter(|field| is_public(&field.vis));
            public.filter_map(|field| Some(format!("field {}", field.ident.as_ref()?))).collect()
        };
        match item {
            Item::Struct(item) => fields(&item.fields).into_iter().for_each(&mut add),
            Item::Enum(item) => {
                item.variants.iter().for_each(|variant| add(format!("variant {}", variant.ident)));
            }
            Item::Trait(item) => {
                for item in &item.items {
                    match item {
                        TraitItem::Fn(item) => add(format!("fn {}", item.sig.ident)),
                        TraitItem::Const(item) => add(format!("const {}", item.ident)),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
        let top = home.first().cloned().unwrap_or_default();
        let members = self.members.get(&(top, ident.to_string()));
        members.into_iter().flatten().for_each(|member| add(member.clone()));
        list.insert(format!("{path} ({kind})"));
    }
}

#[test]
fn the_public_api_is_the_one_that_is_written_down() {
    let folder: PathBuf = root().join("tests/data/api");
    for (name, src) in LIBRARIES {
        let library = LibrarySources::read(&root().join(src));
        let mut list = BTreeSet::new();
        library.list(&[], &mut list);
        assert!(list.len() > 20, "{name}: a short list");
        let text: String = list.iter().map(|line| format!("{line}\n")).collect();
        let written = folder.join(format!("{name}.txt"));
        if std::env::var_os("UPDATE_API").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&written, &text).unwrap();
        }
        let expected = fs::read_to_string(&written).unwrap_or_default();
        let is_new = |a: &str, b: &str| -> Vec<String> {
            let b: BTreeSet<&str> = b.lines().collect();
            a.lines().filter(|line| !b.contains(line)).map(str::to_owned).collect()
        };
        let (more, less) = (is_new(&text, &expected), is_new(&expected, &text));
        assert!(
            more.is_empty() && less.is_empty(),
            "{name}: more: {more:#?}, less: {less:#?}: if that is meant, run with UPDATE_API=1"
        );
    }
}
