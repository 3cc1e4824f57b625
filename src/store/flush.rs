//! A memtable becomes a segment.

use std::sync::Arc;

use super::shared::{Change, Shared};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::manifest::SegmentEntry;
use crate::segment::{Segment, SegmentBuilder};
use crate::threads::lock;

/// Flushes memtables that take no more, until the store is closed and none is left, or a write fails. Were they left to the
/// next who opens the store, and closes it soon, logs would become ever more.
pub(super) fn work<F: Fingerprint>(shared: &Shared<F>) {
    loop {
        let mut work = lock(&shared.work);
        loop {
            if work.failure.is_some() {
                return;
            }
            if shared.view().memtables.len() > 1 {
                break;
            }
            if work.closing {
                return;
            }
            work = shared.changed.wait(work).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(work);
        if let Err(error) = shared.in_pool(|| flush(shared)) {
            shared.fail(&error);
            return;
        }
    }
}

/// Makes the oldest memtable a segment. Its logs are not needed after that.
pub(super) fn flush<F: Fingerprint>(shared: &Shared<F>) -> Result<()> {
    let view = shared.view();
    let memtable = &view.memtables[0].memtable;
    let version = memtable.version();
    let entries = memtable.entries(version);
    // Without older segments there is nothing to delete from.
    let tombstones = if view.segments.is_empty() { Vec::new() } else { memtable.tombstones(version) };
    let marks = memtable.marks(version);
    let (names, notes) = (memtable.names(version), memtable.notes(version));
    let distance = view.manifest.settings.distance.max(memtable.distance());
    let has_pairs = !entries.is_empty() || !tombstones.is_empty();
    let nothing = !has_pairs && names.is_empty() && marks.is_empty() && notes.is_empty();
    let added = if nothing {
        None
    } else {
        let mut builder =
            SegmentBuilder::new(&shared.path, shared.take_number(), shared.build_options(&view, distance));
        names.iter().try_for_each(|&(id, name)| builder.name(id, name))?;
        notes.iter().try_for_each(|&(id, note)| builder.note(id, note))?;
        for (fingerprint, id) in entries {
            builder.insert(fingerprint, id)?;
        }
        builder.tombstones(tombstones);
        marks.iter().try_for_each(|(key, value)| builder.mark(key, value))?;
        Some(builder.finish()?)
    };
    let added = match added {
        Some(entry) => {
            let segment = open(shared, view.manifest.settings.distance, &entry)?;
            let mut written = lock(&shared.written);
            written.flushes += 1;
            written.flush_bytes += segment.stats().bytes;
            Some((entry, segment))
        }
        None => None,
    };
    let distance = view.manifest.settings.distance;
    let highest_id = memtable.highest_id(version);
    shared.change(Change { removed: Vec::new(), added, flushed: true, distance, highest_id })
}

/// Opens a segment that has just been written, with all that makes queries of it fast.
pub(super) fn open<F: Fingerprint>(
    shared: &Shared<F>,
    distance: u32,
    entry: &SegmentEntry,
) -> Result<Arc<Segment<F>>> {
    let segment = Segment::open(&*shared.options.fs, &shared.path, entry.clone(), distance)?;
    segment.make_filters()?;
    Ok(Arc::new(segment))
}
