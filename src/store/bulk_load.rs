//! Bulk loads: many fingerprints become one segment of a store, without the log.

use std::sync::Arc;

use super::flush;
use super::shared_state::{ManifestEdit, SharedState};
use super::writer::StoreWriter;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{MAX_METADATA_KEY_BYTES, MAX_METADATA_VALUE_BYTES};
use crate::options::BuildOptions;
use crate::progress::ProgressCallback;
use crate::segment::SegmentBuilder;

/// A set of fingerprints that is added to a store as one segment; created by [`Store::bulk_load`](crate::Store::bulk_load).
///
/// [`BulkLoad::finish`] makes the whole set visible and durable atomically. If the load is dropped before, nothing is
/// stored.
pub struct BulkLoad<'a, F: Fingerprint> {
    shared: &'a Arc<SharedState<F>>,
    writer: &'a StoreWriter<F>,
    builder: SegmentBuilder<F>,
    is_empty: bool,
    highest_id: Option<u64>,
    progress: Option<ProgressCallback>,
}

impl<'a, F: Fingerprint> BulkLoad<'a, F> {
    pub(super) fn new(
        shared: &'a Arc<SharedState<F>>,
        writer: &'a StoreWriter<F>,
        progress: Option<ProgressCallback>,
    ) -> Result<Self> {
        shared.check()?;
        let view = shared.view();
        let distance = view.manifest.settings.distance;
        let options = BuildOptions { progress: progress.clone(), ..shared.build_options(&view, distance) };
        let builder = SegmentBuilder::new(&shared.path, shared.allocate_number(), options);
        Ok(BulkLoad { shared, writer, builder, is_empty: true, highest_id: None, progress })
    }

    /// Adds a fingerprint with an id.
    ///
    /// # Errors
    /// [`Error::Io`] if a temporary file for sorting cannot be written.
    pub fn insert(&mut self, fingerprint: F, id: u64) -> Result<()> {
        self.is_empty = false;
        self.highest_id = self.highest_id.max(Some(id));
        self.builder.insert(fingerprint, id)
    }

    /// Like [`BulkLoad::insert`], for a document with a name of up to 64 KiB. The ids of named documents must ascend from
    /// call to call.
    ///
    /// # Errors
    /// Errors of [`Builder::insert_named`](crate::Builder::insert_named).
    pub fn insert_named(&mut self, fingerprint: F, id: u64, name: &str) -> Result<()> {
        self.builder.add_name(id, name)?;
        self.insert(fingerprint, id)
    }

    /// Stores a note with a document, like [`Transaction::set_note`](crate::Transaction::set_note). The ids must ascend
    /// from call to call. If no fingerprint is inserted, [`BulkLoad::finish`] stores nothing, not even the notes.
    ///
    /// # Errors
    /// Errors of [`Builder::set_note`](crate::Builder::set_note).
    pub fn set_note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        self.builder.add_note(id, note)
    }

    /// Stores a metadata value under a key, like [`Transaction::set_metadata`](crate::Transaction::set_metadata). Each key
    /// must be greater than the previous one. If no fingerprint is inserted, [`BulkLoad::finish`] stores nothing, not even
    /// the metadata.
    ///
    /// # Errors
    /// Errors of [`Transaction::set_metadata`](crate::Transaction::set_metadata).
    pub fn set_metadata(&mut self, key: &str, value: &[u8]) -> Result<()> {
        for (what, length, most) in
            [("key", key.len(), MAX_METADATA_KEY_BYTES), ("value", value.len(), MAX_METADATA_VALUE_BYTES)]
        {
            if length > most {
                return Err(Error::BadArgument(format!(
                    "metadata with a {what} of {length} bytes: at most {most} are allowed"
                )));
            }
        }
        self.builder.add_metadata(key, value)
    }

    /// Makes the loaded set visible and durable. The set counts as newer than all writes before this call.
    ///
    /// # Errors
    /// Errors of [`Store::insert`](crate::Store::insert); [`Error::Cancelled`] if the progress callback stopped the load,
    /// so that nothing is loaded.
    pub fn finish(self) -> Result<()> {
        if self.is_empty {
            return self.shared.check();
        }
        self.shared.check_process()?;
        let builder = self.builder;
        let entry = self.shared.in_pool(|| builder.finish())?;
        // Earlier deletes must not hide the loaded pairs. So the memtables with these deletes are flushed first, and their
        // tombstones are in older segments.
        self.writer.freeze_then(|| {
            let opened = self.shared.wait_for_flush(self.progress.as_ref()).and_then(|()| {
                let distance = self.shared.view().manifest.settings.distance;
                Ok((distance, flush::open_segment(self.shared, distance, &entry)?))
            });
            let (distance, segment) = opened.inspect_err(|_| self.shared.remove_files(&entry))?;
            self.shared.apply_edit(ManifestEdit {
                removed: Vec::new(),
                added: Some((entry.clone(), segment)),
                is_flush: false,
                distance,
                highest_id: self.highest_id,
            })
        })
    }
}
