//! Checkpoints: a checkpoint is a copy of a snapshot, as a store of its own in another folder.

use std::path::Path;

use super::flush;
use super::new_store::{NewStore, STORE_EXISTS_REASON};
use super::snapshot::Snapshot;
use super::{is_inside, view::View};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::footer_crc;
use crate::fs::NewFile;
use crate::manifest::Manifest;
use crate::segment::{Segment, SegmentBuilder};

impl<F: Fingerprint> Snapshot<F> {
    /// Makes a copy of the snapshot: a store of its own in the folder `path`, with exactly the content of the snapshot.
    /// Programs may write to the store meanwhile, and merge its segments. This is the way to back up a store that is in
    /// use.
    ///
    /// The folder must not exist, be empty, or hold the remains of an interrupted checkpoint. It must not be inside the
    /// folder of the store. The copy appears when it is complete and durable. After a crash or a power loss during this
    /// call, there is no store in the folder; the next call for this folder removes the remains.
    ///
    /// Files of segments never change. So if both folders are on one file system, the copy has hard links to these files: this
    /// takes no space and little time. Otherwise, and if the store has removed a file since the snapshot was taken, the
    /// file is copied. The content of the memtables, which the store has in its logs, is written as new segments. Later
    /// changes of one of the two stores do not change the other one. But damage of a linked file damages both, so a
    /// backup against damage has to be on another disk.
    ///
    /// ```
    /// use simstore::{Snapshot, Store, StoreOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let (path, backup) = (folder.path().join("pages"), folder.path().join("backup"));
    /// let store = Store::<u64>::open(&path, StoreOptions::default())?;
    /// store.insert(0x0123_4567_89ab_cdef, 1)?;
    /// store.snapshot().checkpoint(&backup)?;
    /// store.delete(0x0123_4567_89ab_cdef, 1)?;
    ///
    /// let backup = Snapshot::<u64>::open(&backup)?;
    /// assert!(backup.contains(0x0123_4567_89ab_cdef)? && !store.snapshot().contains(0x0123_4567_89ab_cdef)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the folder has a store or other files, or if `path` is a file. [`Error::BadArgument`] if the
    /// folder is inside the folder of the store. [`Error::Locked`] if another checkpoint or build is being written to the
    /// folder. [`Error::Io`]. After an error there is no new store, with one exception: if the very last sync fails,
    /// the new store is visible, but may not survive a power failure.
    pub fn checkpoint(&self, path: &Path) -> Result<()> {
        let view = self.view();
        if is_inside(&view.path, path) {
            let message =
                format!("{}: inside the store; choose another path for the checkpoint", path.display());
            return Err(Error::BadArgument(message));
        }
        let mut store = NewStore::create(&view.fs, path, false).map_err(|error| match error {
            Error::AlreadyExists { path, reason } if reason == STORE_EXISTS_REASON => {
                let reason = "a store already exists; choose another path for the checkpoint";
                Error::AlreadyExists { path, reason }
            }
            other => other,
        })?;
        for segment in &view.segments {
            link_or_copy(view, segment, &mut store)?;
        }
        let mut manifest = Manifest { first_log: 0, first_sequence: 0, ..view.manifest.clone() };
        for (memtable, version) in self.memtables() {
            let distance = manifest.settings.distance.max(memtable.distance());
            let number = manifest.next_number;
            let new_segment =
                || SegmentBuilder::new(path, number, view.build_options(distance, None, store.fs()));
            // A tombstone hides pairs of older segments. Without older segments, no tombstones are written.
            let has_older = !manifest.segments.is_empty();
            let written = flush::write_segment(memtable, version, has_older, new_segment)?;
            if let Some(entry) = written {
                store.add_files(entry.file_names());
                manifest.segments.push(entry);
                manifest.next_number += 1;
            }
            if manifest.settings.has_ids {
                manifest.highest_id = manifest.highest_id.max(memtable.highest_id(version));
            }
        }
        store.publish(&manifest)
    }
}

/// Gives the files of a segment second names in the folder of a new store. Copies a file if it cannot be linked.
fn link_or_copy<F: Fingerprint>(view: &View<F>, segment: &Segment<F>, store: &mut NewStore) -> Result<()> {
    let names = segment.entry().file_names();
    store.add_files(names.clone());
    for (index, name) in names.iter().enumerate() {
        let (old, new) = (view.path.join(name), store.path().join(name));
        let is_linked = || {
            let fs = store.fs();
            fs.hard_link(&old, &new)?;
            fs.sync_file(&new)?;
            // After the store was replaced or moved, its old path may have another file.
            let linked = fs.map(&new)?;
            Ok::<_, std::io::Error>(
                segment.entry().footer_crcs.get(index) == Some(&footer_crc(linked.as_ref())),
            )
        };
        // If linking fails, copying may succeed, for example on another file system. The copy replaces a link that is no use.
        if !is_linked().unwrap_or(false) {
            segment.copy_file(index, NewFile::create(store.fs(), &new)?, &new)?;
        }
    }
    Ok(())
}
