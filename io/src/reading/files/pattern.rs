//! Patterns of names, as shells have them: `crawl/*.warc.gz`, `corpus/**/*.md`.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Component, Path, PathBuf, is_separator};

use glob::{MatchOptions, Pattern};
use walkdir::WalkDir;

use super::listing::{cannot_list, is_shown, leads_nowhere, walk_error};
use crate::{ReadNote, ReadProgress};
use simstore::{Error, Result};

/// The characters that make a path a pattern.
const SIGNS: &[u8] = b"*?[";
/// The part of a pattern that matches a folder and all folders below it.
const ALL_BELOW: &str = "**";

/// The files and folders that a pattern matches, by name; `None` if the path is no pattern, or exists under this very name.
/// Matches that are neither are counted.
///
/// # Errors
/// [`Error::BadArgument`] for a pattern that is malformed or matches nothing, [`Error::BadInput`] if a folder on its
/// way cannot be listed.
pub fn matches_of(path: &Path, progress: Option<&ReadProgress>) -> Result<Option<Vec<PathBuf>>> {
    if !is_pattern(path.as_os_str()) || path.symlink_metadata().is_ok() {
        return Ok(None);
    }
    let bad = |reason: &str| Error::BadArgument(format!("{}: {reason}", path.display()));
    let mut parts: Vec<Part<'_>> = Vec::new();
    for component in path.components() {
        let name = component.as_os_str();
        parts.push(match component {
            Component::Normal(_) if is_pattern(name) => {
                let name = name.to_str().ok_or_else(|| bad("not Unicode, which a glob must be"))?;
                let pattern = Pattern::new(name)
                    .map_err(|error| bad(&format!("no such file, and not a valid glob: {error}")))?;
                if name == ALL_BELOW { Part::AllBelow } else { Part::Names(pattern) }
            }
            _ => Part::Name(name),
        });
    }
    let mut matches = Matches { parts: &parts, found: Vec::new() };
    matches.search(PathBuf::new(), 0)?;
    let mut found = matches.found;
    // Several `**` in one pattern may find one path twice.
    found.sort();
    found.dedup();
    if found.is_empty() {
        return Err(bad("no file matches this glob"));
    }
    let end = path.as_os_str().as_encoded_bytes().last();
    let takes_files = !end.is_some_and(|&end| is_separator(end.into()));
    let mut kept = Vec::new();
    for path in found {
        let note = |note| progress.iter().for_each(|progress| progress.note(note));
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() || takes_files && metadata.is_file() => kept.push(path),
            Ok(metadata) if metadata.is_file() => {}
            // A pipe can be read only once, so it must be named without a pattern.
            Ok(_) => note(ReadNote::NoFile),
            Err(error) if leads_nowhere(&error) => note(ReadNote::DeadLink),
            // The error is reported when the path is opened.
            Err(_) => kept.push(path),
        }
    }
    Ok(Some(kept))
}

fn is_pattern(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| SIGNS.contains(byte))
}

/// The folder that holds all matches of a pattern; `None` if the path is no pattern.
pub fn pattern_base(path: &Path) -> Option<PathBuf> {
    if !is_pattern(path.as_os_str()) || path.symlink_metadata().is_ok() {
        return None;
    }
    Some(path.components().take_while(|component| !is_pattern(component.as_os_str())).collect())
}

/// A part of a pattern, between slashes.
enum Part<'a> {
    Name(&'a OsStr),
    Names(Pattern),
    AllBelow,
}

struct Matches<'a> {
    parts: &'a [Part<'a>],
    found: Vec<PathBuf>,
}

impl Matches<'_> {
    /// Finds what the parts from `at` on match in a folder; an empty path is the current one.
    fn search(&mut self, folder: PathBuf, at: usize) -> Result<()> {
        let Some(part) = self.parts.get(at) else {
            self.found.push(folder);
            return Ok(());
        };
        match part {
            Part::Name(name) => {
                let path = folder.join(name);
                match path.symlink_metadata() {
                    Ok(_) => self.search(path, at + 1),
                    Err(error) if is_absence(&error) => Ok(()),
                    Err(error) => Err(cannot_list(&path, error)),
                }
            }
            Part::Names(pattern) => {
                let mut names = names_in(&folder)?;
                names.retain(|name| is_match(pattern, name));
                names.into_iter().try_for_each(|name| self.search(folder.join(name), at + 1))
            }
            // As the last part, `**` matches the folder, which is read as a whole.
            Part::AllBelow if at + 1 == self.parts.len() => self.search(folder, at + 1),
            Part::AllBelow => {
                for below in folders_below(&folder)? {
                    self.search(below, at + 1)?;
                }
                Ok(())
            }
        }
    }
}

/// Whether a name matches a part of a pattern. A part of a name that is not Unicode becomes one replacement character.
fn is_match(pattern: &Pattern, name: &OsStr) -> bool {
    // As shells do it.
    let options = MatchOptions {
        case_sensitive: true,
        require_literal_separator: true,
        require_literal_leading_dot: true,
    };
    pattern.matches_with(&name.to_string_lossy(), options)
}

fn here(folder: &Path) -> &Path {
    if folder.as_os_str().is_empty() { Path::new(".") } else { folder }
}

/// Whether there is a folder: none is behind a link that leads nowhere.
fn is_folder(path: &Path) -> Result<bool> {
    match here(path).metadata() {
        Ok(metadata) => Ok(metadata.is_dir()),
        Err(error) if leads_nowhere(&error) => Ok(false),
        Err(error) => Err(cannot_list(path, error)),
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// All names in a folder; empty if the path is no folder.
fn names_in(folder: &Path) -> Result<Vec<OsString>> {
    if !is_folder(folder)? {
        return Ok(Vec::new());
    }
    let listed = here(folder).read_dir();
    let names: io::Result<Vec<OsString>> =
        listed.and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    names.map_err(|error| cannot_list(here(folder), error))
}

/// A folder and all below it that are not hidden, but none behind links.
fn folders_below(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    if !is_folder(folder)? {
        return Ok(folders);
    }
    for entry in WalkDir::new(here(folder)).into_iter().filter_entry(is_shown) {
        let entry = entry.map_err(walk_error)?;
        if entry.file_type().is_dir() || entry.depth() == 0 {
            let below = entry.path().strip_prefix(here(folder)).unwrap_or(entry.path());
            // An empty path stays empty, without `./` before the names.
            folders.push(if entry.depth() == 0 { folder.to_path_buf() } else { folder.join(below) });
        }
    }
    Ok(folders)
}
