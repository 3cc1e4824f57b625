//! Disk images after a power loss.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::SimulatedDisk;
use super::file_tree::{
    FileTree, FolderEntries, Inode, Node, SECTOR_BYTES, SimulatedFolder, push_range, sector_end,
};
use super::operation::DiskOperation;
use crate::support::random::Random;

/// Which unsynced data survives a power loss.
#[derive(Clone, Debug)]
pub(crate) enum SurvivalChoice {
    Nothing,
    Everything,
    Random(Random),
}

impl SurvivalChoice {
    /// Returns a random choice that depends on `seed` and on `done`, the number of operations before the power loss.
    pub(crate) fn seeded(seed: u64, done: usize) -> SurvivalChoice {
        let mut random = Random(seed);
        SurvivalChoice::Random(Random(random.next() ^ done as u64))
    }
}

/// Replays the recorded operations of a disk one by one. After each operation, it can return disk images. A disk image
/// is the disk as it would be after a power loss at this point.
pub(crate) struct CrashReplay {
    operations: Vec<Arc<DiskOperation>>,
    tree: Arc<FileTree>,
    done: usize,
}

impl CrashReplay {
    pub(super) fn new(tree: Arc<FileTree>, operations: Vec<Arc<DiskOperation>>) -> CrashReplay {
        CrashReplay { operations, tree, done: 0 }
    }

    /// Number of operations replayed so far.
    pub(crate) fn done(&self) -> usize {
        self.done
    }

    /// Replays the next operation and returns it, or returns `None` if all operations are done.
    pub(crate) fn advance(&mut self) -> Option<&DiskOperation> {
        let operation = self.operations.get(self.done)?;
        if operation.applied {
            // Ignores the result, which is the same as when the operation was recorded.
            let _ = Arc::make_mut(&mut self.tree).apply(&operation.action);
        }
        self.done += 1;
        Some(operation)
    }

    /// Returns a disk as it would be after a power loss at this point of the replay. All its data is durable.
    pub(crate) fn image(&self, choice: &mut SurvivalChoice) -> SimulatedDisk {
        let mut image = FileTree::empty();
        copy_folder(&self.tree, 0, &mut image, 0, &mut BTreeMap::new(), choice);
        SimulatedDisk::with(image)
    }
}

/// Copies a folder with all that it contains. `copied` has the index in `image` of each file that was copied before, under
/// a name in another folder.
fn copy_folder(
    tree: &FileTree,
    from: usize,
    image: &mut FileTree,
    to: usize,
    copied: &mut BTreeMap<usize, usize>,
    choice: &mut SurvivalChoice,
) {
    let mut names = surviving_names(&tree.folders[from], choice);
    for node in names.values_mut() {
        match *node {
            Node::File(file) => {
                let copy = *copied.entry(file).or_insert_with(|| {
                    image.files.push(Inode::durable(surviving_bytes(&tree.files[file], choice)));
                    image.files.len() - 1
                });
                *node = Node::File(copy);
            }
            Node::Folder(folder) => {
                let new = image.folders.len();
                *node = Node::Folder(new);
                image.folders.push(SimulatedFolder::default());
                copy_folder(tree, folder, image, new, copied, choice);
            }
        }
    }
    image.folders[to] = SimulatedFolder::durable(names);
}

fn surviving_names(folder: &SimulatedFolder, choice: &mut SurvivalChoice) -> FolderEntries {
    let random = match choice {
        SurvivalChoice::Nothing => return folder.durable.clone(),
        SurvivalChoice::Everything => return folder.names.clone(),
        SurvivalChoice::Random(_) if folder.changes.is_empty() => return folder.names.clone(),
        SurvivalChoice::Random(random) => random,
    };
    let mut names = folder.durable.clone();
    let count = folder.changes.len() as u64;
    if random.below(2) == 0 {
        let kept = random.below(count + 1) as usize;
        folder.changes[..kept].iter().for_each(|change| change.apply(&mut names));
    } else {
        // Probability in percent that a change survives.
        let percent = [10, 50, 90][random.below(3) as usize];
        let kept = folder.changes.iter().filter(|_| random.below(100) < percent);
        kept.for_each(|change| change.apply(&mut names));
    }
    names
}

fn surviving_bytes(file: &Inode, choice: &mut SurvivalChoice) -> Arc<Vec<u8>> {
    match choice {
        _ if file.is_durable() => file.bytes.clone(),
        SurvivalChoice::Nothing => Arc::new(file.on_disk().to_vec()),
        SurvivalChoice::Everything => file.bytes.clone(),
        SurvivalChoice::Random(random) => Arc::new(random_bytes(file, random)),
    }
}

/// Returns random contents of a file after a power loss. Each unsynced sector has its old bytes, its new bytes or
/// garbage. Bytes that were synced and not overwritten survive.
fn random_bytes(file: &Inode, random: &mut Random) -> Vec<u8> {
    let old = file.on_disk();
    let len = random_len(file, random);
    // In most cases nearly all sectors are old, or nearly all are new.
    let [old_percent, garbage_percent] =
        [[40, 20], [0, 0], [10, 0], [90, 0], [5, 5]][random.below(5) as usize];
    let mut bytes = Vec::with_capacity(len);
    bytes.extend_from_slice(&file.bytes[..file.synced_len.min(len)]);
    while bytes.len() < len {
        let end = sector_end(bytes.len()).min(len);
        let dice = random.below(100);
        if dice < old_percent {
            push_range(&mut bytes, old, end);
        } else if dice < old_percent + garbage_percent {
            push_garbage(&mut bytes, end, random);
        } else {
            push_range(&mut bytes, &file.bytes, end);
        }
    }
    bytes
}

/// Returns a random length of a file after a power loss: the old length, the new length, one between the two, or a
/// longer one.
fn random_len(file: &Inode, random: &mut Random) -> usize {
    let (old, new) = (file.on_disk().len(), file.bytes.len());
    let (low, high) = (old.min(new), old.max(new));
    match random.below(8) {
        0 => old,
        1 => low + random.below((high - low) as u64 + 1) as usize,
        2 => sector_end(low + random.below((high - low) as u64 + 1) as usize).min(high),
        3 => high + random.below(3 * SECTOR_BYTES as u64) as usize,
        _ => new,
    }
}

fn push_garbage(bytes: &mut Vec<u8>, end: usize, random: &mut Random) {
    while bytes.len() < end {
        let eight = random.next().to_le_bytes();
        bytes.extend_from_slice(&eight[..8.min(end - bytes.len())]);
    }
}
