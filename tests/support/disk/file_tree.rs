//! Files and folders in memory, each with its current state and its durable state.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use super::operation::Action;
use crate::support::random::Random;

/// Size of a sector of the simulated disk, in bytes. After a power loss, the contents of an unsynced sector are the
/// old ones, the new ones, or garbage.
pub(crate) const SECTOR_BYTES: usize = 512;

/// A reference to a file or folder: its index in [`FileTree`]. An index is never reused, because open files keep their
/// index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File(usize),
    Folder(usize),
}

pub(super) type FolderEntries = BTreeMap<Arc<str>, Node>;

/// A file without its name: the current contents (`bytes`) and the durable contents. The name is in the folder of the
/// file.
#[derive(Clone, Debug, Default)]
pub(super) struct Inode {
    pub(super) bytes: Arc<Vec<u8>>,
    /// Number of bytes at the start of the file that are durable: they are the same in `bytes` and in the durable
    /// contents.
    pub(super) synced_len: usize,
    /// Durable contents if synced bytes were overwritten later. `None` if the durable contents are the first
    /// `synced_len` bytes of `bytes`.
    pub(super) durable_bytes: Option<Arc<Vec<u8>>>,
}

/// A change of the names in a folder, which may not be durable yet.
#[derive(Clone, Debug)]
pub(super) enum NameChange {
    /// A file or folder gets this name: it is created, or renamed.
    Name(Arc<str>, Node),
    Remove(Arc<str>, Node),
}

#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedFolder {
    pub(super) names: FolderEntries,
    /// Durable names: the names at the last sync of the folder.
    pub(super) durable: FolderEntries,
    /// Changes of names since the last sync of the folder, from the oldest to the newest.
    pub(super) changes: Vec<NameChange>,
}

/// All files and folders of a simulated disk. Folder 0 is both the root folder and the current folder.
#[derive(Clone, Debug)]
pub(super) struct FileTree {
    pub(super) files: Vec<Inode>,
    pub(super) folders: Vec<SimulatedFolder>,
}

impl Inode {
    /// Returns a file whose contents are all durable.
    pub(super) fn durable(bytes: Arc<Vec<u8>>) -> Inode {
        Inode { synced_len: bytes.len(), bytes, durable_bytes: None }
    }

    pub(super) fn is_durable(&self) -> bool {
        self.durable_bytes.is_none() && self.synced_len == self.bytes.len()
    }

    /// Returns the durable contents of the file.
    pub(super) fn on_disk(&self) -> &[u8] {
        self.durable_bytes.as_ref().map_or(&self.bytes[..self.synced_len], |before| before)
    }

    /// Prepares for a change of bytes at or after offset `at`; must be called before the change. If some of these
    /// bytes are synced, saves the durable contents.
    fn mark_changed_from(&mut self, at: usize) {
        if at < self.synced_len {
            if self.durable_bytes.is_none() {
                self.durable_bytes = Some(Arc::new(self.bytes[..self.synced_len].to_vec()));
            }
            self.synced_len = at;
        }
    }

    fn write(&mut self, at: usize, new: &[u8]) {
        self.mark_changed_from(at);
        let bytes = Arc::make_mut(&mut self.bytes);
        let end = at + new.len();
        if bytes.len() < end {
            bytes.resize(end, 0);
        }
        bytes[at..end].copy_from_slice(new);
    }

    fn sync(&mut self) {
        *self = Inode::durable(self.bytes.clone());
    }

    /// Simulates unsynced data that is lost in a failed sync: each unsynced sector returns to its durable contents
    /// with a probability of `percent` percent.
    fn lose_pages(&mut self, percent: u64, random: &mut Random) {
        let mut bytes = self.bytes[..self.synced_len].to_vec();
        while bytes.len() < self.bytes.len() {
            let end = sector_end(bytes.len()).min(self.bytes.len());
            let source = if random.below(100) < percent { self.on_disk() } else { &self.bytes };
            push_range(&mut bytes, source, end);
        }
        self.bytes = Arc::new(bytes);
    }
}

pub(super) fn sector_end(at: usize) -> usize {
    (at / SECTOR_BYTES + 1) * SECTOR_BYTES
}

/// Extends `bytes` to the length `end`. The added bytes are the bytes of `source` at the same offsets, and zeros where
/// `source` has already ended.
pub(super) fn push_range(bytes: &mut Vec<u8>, source: &[u8], end: usize) {
    let there = end.min(source.len()).max(bytes.len());
    bytes.extend_from_slice(source.get(bytes.len()..there).unwrap_or(&[]));
    bytes.resize(end, 0);
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut FolderEntries) {
        match self {
            NameChange::Name(name, node) => {
                // A node has one name in a folder. Removes its previous name, which may differ if earlier changes were lost.
                names.retain(|_, other| other != node);
                names.insert(name.clone(), *node);
            }
            NameChange::Remove(name, node) => {
                // If an earlier change was lost, the name may belong to another file, which is kept.
                if names.get(name) == Some(node) {
                    names.remove(name);
                }
            }
        }
    }
}

impl SimulatedFolder {
    /// Returns a folder whose names are all durable.
    pub(super) fn durable(names: FolderEntries) -> SimulatedFolder {
        SimulatedFolder { durable: names.clone(), names, changes: Vec::new() }
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.names);
        self.changes.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.names);
        self.changes.clear();
    }
}

/// Returns the names in a path, in order. The last one is the name of the file or folder that the path leads to.
fn path_names(path: &Path) -> impl DoubleEndedIterator<Item = Arc<str>> {
    path.components().filter_map(|component| match component {
        Component::Normal(name) => Some(name.to_string_lossy().into()),
        Component::ParentDir => panic!("a simulated disk does not know `..`"),
        _ => None,
    })
}

impl FileTree {
    pub(super) fn empty() -> FileTree {
        FileTree { files: Vec::new(), folders: vec![SimulatedFolder::default()] }
    }

    fn walk(&self, steps: impl Iterator<Item = Arc<str>>) -> io::Result<Node> {
        let mut node = Node::Folder(0);
        for name in steps {
            let Node::Folder(folder) = node else { return Err(io::ErrorKind::NotADirectory.into()) };
            node = *self.folders[folder].names.get(&name).ok_or(io::ErrorKind::NotFound)?;
        }
        Ok(node)
    }

    pub(super) fn file(&self, path: &Path) -> io::Result<usize> {
        match self.walk(path_names(path))? {
            Node::File(file) => Ok(file),
            Node::Folder(_) => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    pub(super) fn folder(&self, path: &Path) -> io::Result<usize> {
        match self.walk(path_names(path))? {
            Node::Folder(folder) => Ok(folder),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Splits the path of a file or folder into the index of the folder that contains it, and its name. Returns an
    /// error if that folder does not exist. The file or folder itself may be missing.
    fn entry(&self, path: &Path) -> io::Result<(usize, Arc<str>)> {
        let mut steps = path_names(path);
        let name = steps.next_back().ok_or(io::ErrorKind::InvalidInput)?;
        match self.walk(steps)? {
            Node::Folder(folder) => Ok((folder, name)),
            Node::File(_) => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Creates a file and returns its index. If a file with this path exists, removes it first.
    fn new_file(&mut self, path: &Path) -> io::Result<usize> {
        if self.file(path).is_ok() {
            self.apply(&Action::Remove(path.to_path_buf()))?;
        }
        self.file_or_new(path)
    }

    /// Returns the index of the file with this path. Creates the file if it does not exist.
    fn file_or_new(&mut self, path: &Path) -> io::Result<usize> {
        match self.file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (folder, name) = self.entry(path)?;
                let file = self.files.len();
                self.files.push(Inode::default());
                self.folders[folder].change(NameChange::Name(name, Node::File(file)));
                Ok(file)
            }
            found => found,
        }
    }

    /// Performs an operation that changes the disk. If it returns an error, nothing has changed.
    pub(super) fn apply(&mut self, action: &Action) -> io::Result<()> {
        match action {
            Action::Create(path) => {
                self.new_file(path)?;
            }
            Action::Write { file, at, bytes, .. } => self.files[*file].write(*at, bytes),
            Action::SyncFile { file, .. } => self.files[*file].sync(),
            Action::LosePages { file, percent, seed, .. } => {
                self.files[*file].lose_pages(*percent, &mut Random(*seed));
            }
            Action::Rename(from, to) => self.rename(from, to)?,
            Action::HardLink(from, to) => self.hard_link(from, to)?,
            Action::Remove(path) => {
                let (folder, name) = self.entry(path)?;
                let node = Node::File(self.file(path)?);
                self.folders[folder].change(NameChange::Remove(name, node));
            }
            Action::CreateDir(path) => {
                let (folder, name) = self.entry(path)?;
                if self.folders[folder].names.contains_key(&name) {
                    return Err(io::ErrorKind::AlreadyExists.into());
                }
                let new = Node::Folder(self.folders.len());
                self.folders.push(SimulatedFolder::default());
                self.folders[folder].change(NameChange::Name(name, new));
            }
            Action::RemoveDir(path) => {
                let (folder, name) = self.entry(path)?;
                let old = self.folder(path)?;
                if !self.folders[old].names.is_empty() {
                    return Err(io::ErrorKind::DirectoryNotEmpty.into());
                }
                self.folders[folder].change(NameChange::Remove(name, Node::Folder(old)));
            }
            Action::SyncDir(path) => {
                let folder = self.folder(path)?;
                self.folders[folder].sync();
            }
            Action::Lock(path) => {
                self.file_or_new(path)?;
            }
        }
        Ok(())
    }

    fn hard_link(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ((folder, _), (target, name)) = (self.entry(from)?, self.entry(to)?);
        if folder == target {
            return Err(io::Error::other("a simulated disk links files into other folders only"));
        }
        let file = self.file(from)?;
        if self.folders[target].names.contains_key(&name) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.folders[target].change(NameChange::Name(name, Node::File(file)));
        Ok(())
    }

    fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let ((folder, _), (target, name)) = (self.entry(from)?, self.entry(to)?);
        if folder != target {
            return Err(io::Error::other("a simulated disk renames inside one folder only"));
        }
        let node = self.walk(path_names(from))?;
        if let Some(Node::Folder(_)) = self.folders[folder].names.get(&name) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.folders[folder].change(NameChange::Name(name, node));
        Ok(())
    }
}
