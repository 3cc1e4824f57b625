//! Flushes: a flush writes the oldest memtable as a segment.

use std::sync::Arc;

use super::shared_state::{ManifestEdit, SharedState};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::manifest::SegmentEntry;
use crate::memtable::Memtable;
use crate::segment::{Segment, SegmentBuilder};
use crate::threads::lock;

/// Body of the flush thread. Flushes frozen memtables (those that take no more writes), until the store is closed and none
/// of them is left, or until a write fails.
///
/// The flushes are completed even when the store is closed. Otherwise logs would accumulate if a program opens the store
/// often, for a short while each time.
pub(super) fn run_worker<F: Fingerprint>(shared: &SharedState<F>) {
    loop {
        let mut state = lock(&shared.background);
        loop {
            if state.failure.is_some() {
                return;
            }
            if shared.view().memtables.len() > 1 {
                break;
            }
            if state.is_closing {
                return;
            }
            state = shared.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(state);
        if let Err(error) = shared.in_pool(|| flush(shared)) {
            shared.fail(&error);
            return;
        }
    }
}

/// Writes the oldest memtable as a segment, and removes the logs that hold the memtable's operations.
pub(super) fn flush<F: Fingerprint>(shared: &SharedState<F>) -> Result<()> {
    let view = shared.view();
    let memtable = &view.memtables[0].memtable;
    let version = memtable.version();
    let distance = view.manifest.settings.distance.max(memtable.distance());
    let new_segment =
        || SegmentBuilder::new(&shared.path, shared.allocate_number(), shared.build_options(&view, distance));
    let added = match write_segment(memtable, version, !view.segments.is_empty(), new_segment)? {
        Some(entry) => {
            let segment = open_segment(shared, view.manifest.settings.distance, &entry)?;
            let mut written = lock(&shared.write_stats);
            written.flushes += 1;
            written.flush_bytes += segment.stats().bytes;
            Some((entry, segment))
        }
        None => None,
    };
    let distance = view.manifest.settings.distance;
    let highest_id = memtable.highest_id(version);
    shared.apply_edit(ManifestEdit { removed: Vec::new(), added, is_flush: true, distance, highest_id })
}

/// Writes a memtable as a segment, with the operations up to `version`. `has_older` is whether the store has older segments: a
/// tombstone hides their pairs, so without them no tombstones are written. Calls `new_segment` only if the segment has
/// any content; otherwise returns `None`.
pub(super) fn write_segment<F: Fingerprint>(
    memtable: &Memtable<F>,
    version: u64,
    has_older: bool,
    new_segment: impl FnOnce() -> SegmentBuilder<F>,
) -> Result<Option<SegmentEntry>> {
    let entries = memtable.entries(version);
    let tombstones = if has_older { memtable.tombstones(version) } else { Vec::new() };
    let metadata = memtable.all_metadata(version);
    let (names, notes) = (memtable.names(version), memtable.notes(version));
    let has_pairs = !entries.is_empty() || !tombstones.is_empty();
    if !has_pairs && names.is_empty() && metadata.is_empty() && notes.is_empty() {
        return Ok(None);
    }
    let mut builder = new_segment();
    names.iter().try_for_each(|&(id, name)| builder.add_name(id, name))?;
    notes.iter().try_for_each(|&(id, note)| builder.add_note(id, note))?;
    for (fingerprint, id) in entries {
        builder.insert(fingerprint, id)?;
    }
    builder.set_tombstones(tombstones);
    metadata.iter().try_for_each(|(key, value)| builder.add_metadata(key, value))?;
    builder.finish().map(Some)
}

/// Opens a segment that was just written, for queries up to `distance` bits, and builds the Bloom filters of its tables.
pub(super) fn open_segment<F: Fingerprint>(
    shared: &SharedState<F>,
    distance: u32,
    entry: &SegmentEntry,
) -> Result<Arc<Segment<F>>> {
    let segment = Segment::open(&*shared.options.fs, &shared.path, entry.clone(), distance)?;
    segment.make_filters()?;
    Ok(Arc::new(segment))
}
