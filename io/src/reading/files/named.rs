//! The files and folders that were named, each once.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use super::listing::is_shown;
use super::once::{FileId, Once};
use super::pattern::matches_of;
use crate::bytes::pipes::Pipes;
use crate::formats::detect;
use crate::{ReadNote, ReadProgress};
use simstore::Result;

/// Paths, with each pattern replaced by what it matches. Of those that lead to the same file or folder, one is handed out, and the
/// others are counted.
#[derive(Debug)]
pub struct Named {
    /// All, as they were given.
    given: Arc<[PathBuf]>,
    left: VecDeque<PathBuf>,
    once: Once,
    /// Whether all files of folders are read, whatever they are called.
    reads_all: bool,
    progress: Arc<ReadProgress>,
    pipes: Arc<Pipes>,
}

impl Named {
    /// Iterates over the files that `paths` name. `progress` counts skipped files; `pipes` keeps bytes of pipes that were read ahead.
    pub fn new(
        paths: &[PathBuf],
        reads_all: bool,
        progress: &Arc<ReadProgress>,
        pipes: &Arc<Pipes>,
    ) -> Named {
        Named {
            given: paths.into(),
            left: paths.iter().cloned().collect(),
            once: Once::default(),
            reads_all,
            progress: Arc::clone(progress),
            pipes: Arc::clone(pipes),
        }
    }

    /// Returns the next file, and whether it is a link. A file that cannot be examined is returned, too; opening it gives the reason.
    ///
    /// # Errors
    /// As [`matches_of`].
    pub fn next_file(&mut self) -> Result<Option<(PathBuf, bool)>> {
        while let Some(path) = self.left.pop_front() {
            if let Some(matches) = matches_of(&path, Some(&self.progress))? {
                for path in matches.into_iter().rev() {
                    self.left.push_front(path);
                }
                continue;
            }
            let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
            if self.pipes.is_read_once(&path).unwrap_or(false) || self.is_read_here(&path, is_link) {
                return Ok(Some((path, is_link)));
            }
        }
        Ok(None)
    }

    /// Whether a file or folder is read under this name; else that is counted.
    pub(super) fn is_read_here(&mut self, path: &Path, through_link: bool) -> bool {
        let Named { given, once, reads_all, .. } = self;
        let is_read = once.is_read_here(FileId::of(path), through_link, || without_links(given, *reads_all));
        if !is_read {
            self.progress.note(ReadNote::OtherName);
        }
        is_read
    }
}

/// Whether a path leads to a file that is named or matched, or is below a folder that is.
pub fn has_file(paths: &[PathBuf], path: &Path) -> bool {
    let is_matched = |id: &FileId| {
        paths.iter().any(|named| {
            let matches = matches_of(named, None).unwrap_or_default().unwrap_or_else(|| vec![named.clone()]);
            matches.iter().any(|found| FileId::of(found).as_ref() == Some(id))
        })
    };
    FileId::of(path).is_some_and(|id| is_matched(&id) || without_links(paths, true).contains(&id))
}

/// All files that are read, and folders, that are reached without a link. What cannot be listed is told where it is read.
fn without_links(paths: &[PathBuf], reads_all: bool) -> HashSet<FileId> {
    let mut found = HashSet::new();
    for path in paths {
        let matches = matches_of(path, None).unwrap_or_default();
        for path in matches.unwrap_or_else(|| vec![path.clone()]) {
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                found.extend(FileId::of(&path));
                continue;
            }
            let walk = WalkDir::new(path).follow_root_links(false).into_iter().filter_entry(is_shown);
            for entry in walk.filter_map(Result::ok) {
                let is_read = entry.file_type().is_dir()
                    || entry.file_type().is_file() && (reads_all || detect::by_name(entry.path()).is_some());
                found.extend(if is_read { FileId::of(entry.path()) } else { None });
            }
        }
    }
    found
}
