//! A memtable becomes a segment.

use std::collections::HashSet;
use std::sync::Arc;

use super::shared::{Change, Shared, lock};
use super::view::View;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::manifest::SegmentEntry;
use crate::memtable::Memtable;
use crate::segment::{Segment, SegmentBuilder};

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
    let gone = gone(&view, memtable, version, &entries);
    let mut names = memtable.names(version);
    let mut notes = memtable.notes(version);
    names.retain(|(id, _)| !gone.contains(id));
    notes.retain(|(id, _)| !gone.contains(id));
    let distance = view.manifest.settings.distance.max(memtable.distance());
    let nothing = entries.is_empty() && tombstones.is_empty() && marks.is_empty() && notes.is_empty();
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

/// The ids of deleted documents, whose names and notes go with them. Where there are older segments, a document may have other
/// fingerprints there: whether it is gone is seen when they are merged.
fn gone<F: Fingerprint>(
    view: &View<F>,
    memtable: &Memtable<F>,
    version: u64,
    entries: &[(F, u64)],
) -> HashSet<u64> {
    if !memtable.has_tombstones() || !view.segments.is_empty() {
        return HashSet::new();
    }
    let kept: HashSet<u64> = entries.iter().map(|&(_, id)| id).collect();
    let deleted = memtable.tombstones(version).into_iter().map(|(_, id)| id);
    deleted.filter(|id| !kept.contains(id)).collect()
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
