//! Expands globs, as shells do: `crawl/*.warc.gz`, `corpus/**/*.md`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};

use glob::{MatchOptions, Pattern};
use walkdir::WalkDir;

use super::listing::{cannot_list, is_dangling, is_visible, walk_error};
use crate::{ReadDiagnostic, ReadProgress};
use simstore::{Error, Result};

/// Characters that make a path a glob.
const GLOB_CHARACTERS: &[u8] = b"*?[";
/// Component of a glob that matches a folder and all folders below it.
const RECURSIVE_GLOB: &str = "**";

/// Returns the files and folders that a glob matches, sorted by name. Returns `None` if the path is not a
/// glob, or if a file with exactly this path exists.
///
/// Other matches (pipes, devices, dangling links) are skipped and counted in `progress`.
///
/// # Errors
/// [`Error::BadArgument`] for a glob that is malformed or matches nothing; [`Error::BadInput`] if a folder
/// that the glob leads through cannot be listed.
pub fn expand_glob(path: &Path, progress: Option<&ReadProgress>) -> Result<Option<Vec<PathBuf>>> {
    if !is_glob(path.as_os_str()) || path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    let bad = |reason: &str| Error::BadArgument(format!("{}: {reason}", path.display()));
    let mut components: Vec<GlobComponent<'_>> = Vec::new();
    for component in path.components() {
        let name = component.as_os_str();
        components.push(match component {
            Component::Normal(_) if is_glob(name) => {
                let name = name.to_str().ok_or_else(|| bad("not Unicode, which a glob must be"))?;
                let pattern = Pattern::new(name)
                    .map_err(|error| bad(&format!("no such file, and not a valid glob: {error}")))?;
                if name == RECURSIVE_GLOB { GlobComponent::Recursive } else { GlobComponent::Glob(pattern) }
            }
            _ => GlobComponent::Literal(name),
        });
    }
    let mut search = GlobSearch { components: &components, found: Vec::new() };
    search.search(PathBuf::new(), 0)?;
    let mut found = search.found;
    // A glob with several `**` may find a path twice.
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(bad("no file matches this glob"));
    }
    let end = path.as_os_str().as_encoded_bytes().last();
    let matches_files = !end.is_some_and(|&end| is_separator(end.into()));
    let mut kept = Vec::new();
    for path in found {
        let count = |diagnostic| progress.iter().for_each(|progress| progress.add_diagnostic(diagnostic));
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() || matches_files && metadata.is_file() => kept.push(path),
            Ok(metadata) if metadata.is_file() => {}
            // A pipe can be read only once, so it must be named without a glob.
            Ok(_) => count(ReadDiagnostic::SpecialFile),
            Err(error) if is_dangling(&error) => count(ReadDiagnostic::DanglingLink),
            // The error is reported when the path is opened.
            Err(_) => kept.push(path),
        }
    }
    Ok(Some(kept))
}

fn is_glob(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| GLOB_CHARACTERS.contains(byte))
}

/// Returns the folder that contains all matches of a glob, such as `crawl` for `crawl/*/*.gz`. Returns `None` if the
/// path is not a glob, or if a file with exactly this path exists.
pub fn glob_base(path: &Path) -> Option<PathBuf> {
    if !is_glob(path.as_os_str()) || path.symlink_metadata().is_ok() {
        return None;
    }
    Some(path.components().take_while(|component| !is_glob(component.as_os_str())).collect())
}

/// Component of a glob: the part between two path separators.
enum GlobComponent<'a> {
    Literal(&'a OsStr),
    Glob(Pattern),
    Recursive,
}

struct GlobSearch<'a> {
    components: &'a [GlobComponent<'a>],
    found: Vec<PathBuf>,
}

impl GlobSearch<'_> {
    /// Collects the paths below `folder` that match the components of the glob from index `at` on. If `folder` is
    /// empty, the search starts in the current folder.
    fn search(&mut self, folder: PathBuf, at: usize) -> Result<()> {
        let Some(component) = self.components.get(at) else {
            self.found.push(folder);
            return Ok(());
        };
        match component {
            GlobComponent::Literal(name) => {
                let path = folder.join(name);
                match path.symlink_metadata() {
                    Ok(_) => self.search(path, at + 1),
                    Err(error) if is_not_found(&error) => Ok(()),
                    Err(error) => Err(cannot_list(&path, error)),
                }
            }
            GlobComponent::Glob(pattern) => {
                let mut names = names_in(&folder)?;
                names.retain(|name| matches_name(pattern, name));
                names.into_iter().try_for_each(|name| self.search(folder.join(name), at + 1))
            }
            // As the last component, `**` matches the folder itself, which is then read as a whole.
            GlobComponent::Recursive if at + 1 == self.components.len() => self.search(folder, at + 1),
            GlobComponent::Recursive => {
                for below in folders_below(&folder)? {
                    self.search(below, at + 1)?;
                }
                Ok(())
            }
        }
    }
}

/// Whether a file name matches one component of a glob. Bytes of the name that are not UTF-8 are compared as U+FFFD.
fn matches_name(pattern: &Pattern, name: &OsStr) -> bool {
    // The rules of shells.
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    pattern.matches_with(&name.to_string_lossy(), options)
}

fn folder_or_current(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Whether a path leads to a folder. Returns false for a dangling link.
fn is_folder(path: &Path) -> Result<bool> {
    match folder_or_current(path).metadata() {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if is_dangling(&error) => Ok(false),
        Err(error) => Err(cannot_list(path, error)),
    }
}

fn is_not_found(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Returns the names of all files and folders in a folder; none if the path is not a folder.
fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    if !is_folder(folder)? {
        return Ok(Vec::new());
    }
    let listed = folder_or_current(folder).read_dir();
    let names: io::Result<Vec<OsString>> =
        listed.and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    names.map_err(|error| cannot_list(folder_or_current(folder), error))
}

/// Returns the paths of a folder and of all folders below it whose names do not begin with a dot. Does not follow
/// links.
fn folders_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    if !is_folder(folder)? {
        return Ok(folders);
    }
    for entry in WalkDir::new(folder_or_current(folder)).into_iter().filter_entry(is_visible) {
        let entry = entry.map_err(walk_error)?;
        if entry.file_type().is_dir() || entry.depth() == 0 {
            let below = entry.path().strip_prefix(folder_or_current(folder)).unwrap_or(entry.path());
            // An empty path stays empty, so that the results do not begin with `./`.
            folders.push(if entry.depth() == 0 { folder.to_path_buf() } else { folder.join(below) });
        }
    }
    Ok(folders)
}
