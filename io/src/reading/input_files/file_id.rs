//! Identifies files independently of their paths: links, hard links, and repeated paths lead to the same
//! file.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;

/// Identifier of a file or folder, equal for all paths that lead to it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    /// Device number and inode number.
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    /// Absolute path without links.
    #[cfg(not(unix))]
    canonical_path: std::path::PathBuf,
}

impl FileId {
    /// Returns the identifier of the file or folder that a path leads to. Returns `None` for a pipe or a
    /// device, and if the metadata cannot be read.
    pub(super) fn from_path(path: &Path) -> Option<FileId> {
        FileId::from_metadata(path, &path.metadata().ok()?)
    }

    #[cfg_attr(unix, expect(unused_variables, reason = "the path is used only on systems without inodes"))]
    fn from_metadata(path: &Path, metadata: &Metadata) -> Option<FileId> {
        if !metadata.is_file() && !metadata.is_dir() {
            return None;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(FileId { device_and_inode: (metadata.dev(), metadata.ino()) })
        }
        #[cfg(not(unix))]
        Some(FileId { canonical_path: path.canonicalize().ok()? })
    }
}

/// A set of files that are identified independently of their paths: a file with two paths is in the set once.
#[derive(Debug)]
pub struct FileSet(HashSet<FileId>);

impl FileSet {
    /// Creates the set of the existing files and folders to which `paths` lead.
    pub fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> FileSet {
        FileSet(paths.filter_map(FileId::from_path).collect())
    }

    /// Whether a path leads to a file of the set.
    pub fn contains_path(&self, path: &Path) -> bool {
        FileId::from_path(path).is_some_and(|id| self.0.contains(&id))
    }
}

/// The files and folders that a walk through the input paths has visited so far.
#[derive(Debug, Default)]
pub(super) struct VisitedFiles {
    seen: HashSet<FileId>,
    /// Files and folders that can be reached without following a link. They are never read under a path that follows
    /// a link. `None` until the first link is visited.
    without_links: Option<HashSet<FileId>>,
}

impl VisitedFiles {
    /// Returns whether to read the file or folder `id`, which a walk through the input paths has just reached.
    /// `through_link` says whether the walk has followed a link to reach it. `without_links` computes the set of files
    /// and folders that can be reached without following a link.
    ///
    /// A file is read the first time it is reached. But a file reached through a link is read only if no path
    /// without links leads to it. If `id` is `None`, the file cannot be identified, and is always read.
    pub(super) fn claim(
        &mut self,
        id: Option<FileId>,
        through_link: bool,
        without_links: impl FnOnce() -> HashSet<FileId>,
    ) -> bool {
        let Some(id) = id else { return true };
        if through_link && self.without_links.get_or_insert_with(without_links).contains(&id) {
            return false;
        }
        self.seen.insert(id)
    }
}
