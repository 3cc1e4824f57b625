//! One file is one, however many names lead to it: links, hard links, and paths that are named twice.

use std::collections::HashSet;
use std::fs::Metadata;
use std::path::Path;

/// Tells a file or folder from all others.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    /// Its device and inode.
    #[cfg(unix)]
    number: (u64, u64),
    /// Where it is without links.
    #[cfg(not(unix))]
    place: std::path::PathBuf,
}

impl FileId {
    /// Of a file or folder that a path leads to; `None` for a pipe or a device, and where that cannot be told.
    pub(super) fn of(path: &Path) -> Option<FileId> {
        FileId::with(path, &path.metadata().ok()?)
    }

    #[cfg_attr(unix, expect(unused_variables, reason = "the path tells only where there are no inodes"))]
    fn with(path: &Path, metadata: &Metadata) -> Option<FileId> {
        if !metadata.is_file() && !metadata.is_dir() {
            return None;
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Some(FileId { number: (metadata.dev(), metadata.ino()) })
        }
        #[cfg(not(unix))]
        Some(FileId { place: path.canonicalize().ok()? })
    }
}

/// A set of files, whatever their names: one file with two names is in it once.
#[derive(Debug)]
pub struct FilesById(HashSet<FileId>);

impl FilesById {
    /// The set of the existing files among `paths`.
    pub fn new<'a>(paths: impl Iterator<Item = &'a Path>) -> FilesById {
        FilesById(paths.filter_map(FileId::of).collect())
    }

    /// Whether a path leads to one of them.
    pub fn has(&self, path: &Path) -> bool {
        FileId::of(path).is_some_and(|id| self.0.contains(&id))
    }
}

/// The files and folders that were met.
#[derive(Debug, Default)]
pub(super) struct Once {
    met: HashSet<FileId>,
    /// Those that have a name without a link, which is the one that they are read under; asked for when the first link is met.
    without_links: Option<HashSet<FileId>>,
}

impl Once {
    /// Whether a file or folder is read under the name that led to it: the first one, but none through a link if it has
    /// another. `None` stands for what can be told from nothing.
    pub(super) fn is_read_here(
        &mut self,
        id: Option<FileId>,
        through_link: bool,
        without_links: impl FnOnce() -> HashSet<FileId>,
    ) -> bool {
        let Some(id) = id else { return true };
        if through_link && self.without_links.get_or_insert_with(without_links).contains(&id) {
            return false;
        }
        self.met.insert(id)
    }
}
