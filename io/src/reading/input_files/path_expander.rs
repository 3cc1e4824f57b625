//! Expands the paths that the user gave, and ensures that each file or folder is read once.

use std::collections::{HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use walkdir::WalkDir;

use super::file_id::{FileId, VisitedFiles};
use super::globs::expand_glob;
use super::listing::is_visible;
use crate::bytes::read_once::ReadOnceInputs;
use crate::formats::detect;
use crate::{ReadDiagnostic, ReadProgress};
use simstore::Result;

/// Returns the paths that the user gave, with each glob replaced by its matches. If several paths lead to the same file
/// or folder, only one of them is returned, and the others are counted as
/// [`DuplicatePath`](ReadDiagnostic::DuplicatePath).
#[derive(Debug)]
pub struct PathExpander {
    /// All paths as the user gave them.
    paths: Arc<[PathBuf]>,
    /// Paths that are not yet returned, in order.
    pending: VecDeque<PathBuf>,
    visited: VisitedFiles,
    /// Whether files in folders are read even if no document format has their extension.
    reads_unknown_extensions: bool,
    progress: Arc<ReadProgress>,
    read_once: Arc<ReadOnceInputs>,
}

impl PathExpander {
    /// Creates an expander of `paths`. `reads_unknown_extensions` says whether files in folders are read even if no
    /// document format has their extension. `progress` counts skipped files. `read_once` says which paths can be read
    /// only once, such as pipes.
    pub fn new(
        paths: &[PathBuf],
        reads_unknown_extensions: bool,
        progress: &Arc<ReadProgress>,
        read_once: &Arc<ReadOnceInputs>,
    ) -> PathExpander {
        PathExpander {
            paths: paths.into(),
            pending: paths.iter().cloned().collect(),
            visited: VisitedFiles::default(),
            reads_unknown_extensions,
            progress: Arc::clone(progress),
            read_once: Arc::clone(read_once),
        }
    }

    /// Returns the next path, and whether it is a link; `None` after the last path. A path whose metadata cannot be
    /// read is returned too, so that the error is reported when the path is opened.
    ///
    /// # Errors
    /// See [`expand_glob`].
    pub fn next_file(&mut self) -> Result<Option<(PathBuf, bool)>> {
        while let Some(path) = self.pending.pop_front() {
            if let Some(matches) = expand_glob(&path, Some(&self.progress))? {
                for path in matches.into_iter().rev() {
                    self.pending.push_front(path);
                }
                continue;
            }
            let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
            if self.read_once.is_read_once(&path).unwrap_or(false) || self.claim(&path, is_link) {
                return Ok(Some((path, is_link)));
            }
        }
        Ok(None)
    }

    /// Returns whether to read the file or folder at `path` under this path. If it is read under another path, returns
    /// false, and counts a duplicate path. `through_link` says whether a link was followed to reach `path`.
    pub(super) fn claim(&mut self, path: &Path, through_link: bool) -> bool {
        let PathExpander { paths, visited, reads_unknown_extensions, .. } = self;
        let is_read = visited.claim(FileId::from_path(path), through_link, || {
            files_without_links(paths, *reads_unknown_extensions)
        });
        if !is_read {
            self.progress.add_diagnostic(ReadDiagnostic::DuplicatePath);
        }
        is_read
    }
}

/// Whether the input `paths`, which may be files, globs, and folders, include the file at `path`.
pub fn contains_file(paths: &[PathBuf], path: &Path) -> bool {
    let is_matched = |id: &FileId| {
        paths.iter().any(|named| {
            let matches = expand_glob(named, None).unwrap_or_default().unwrap_or_else(|| vec![named.clone()]);
            matches.iter().any(|found| FileId::from_path(found).as_ref() == Some(id))
        })
    };
    FileId::from_path(path)
        .is_some_and(|id| is_matched(&id) || files_without_links(paths, true).contains(&id))
}

/// Returns all folders, and all files of documents, that are reached from `paths` without following a link. If
/// `reads_unknown_extensions` is set, files with any extension count as files of documents. A folder that cannot be
/// listed is skipped here, because the error is reported when the folder is read.
fn files_without_links(paths: &[PathBuf], reads_unknown_extensions: bool) -> HashSet<FileId> {
    let mut found = HashSet::new();
    for path in paths {
        let matches = expand_glob(path, None).unwrap_or_default();
        for path in matches.unwrap_or_else(|| vec![path.clone()]) {
            if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
                found.extend(FileId::from_path(&path));
                continue;
            }
            let walk = WalkDir::new(path).follow_root_links(false).into_iter().filter_entry(is_visible);
            for entry in walk.filter_map(Result::ok) {
                let is_read = entry.file_type().is_dir()
                    || entry.file_type().is_file()
                        && (reads_unknown_extensions || detect::format_from_name(entry.path()).is_some());
                found.extend(if is_read { FileId::from_path(entry.path()) } else { None });
            }
        }
    }
    found
}
