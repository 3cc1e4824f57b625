//! Segments become one.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::flush;
use super::shared::{Change, Shared};
use super::snapshot::Snapshot;
use super::throttle::Throttle;
use super::view::View;
use crate::compaction::{self, Size};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::manifest::Manifest;
use crate::progress::{ProgressCallback, Steps};
use crate::segment::SegmentBuilder;
use crate::threads::lock;

/// Merges segments in the background as they come, until the store is closed or a write fails.
pub(super) fn work<F: Fingerprint>(shared: &Arc<Shared<F>>) {
    loop {
        let mut work = lock(&shared.work);
        loop {
            if work.closing || work.failure.is_some() {
                return;
            }
            if due(shared).is_some() {
                break;
            }
            work = shared.changed.wait(work).unwrap_or_else(PoisonError::into_inner);
        }
        drop(work);
        let _one = lock(&shared.merging);
        // Another merge may have come first.
        let Some(range) = due(shared) else { continue };
        let distance = shared.view().manifest.settings.distance;
        if let Err(error) = merge(shared, range, distance, Way::Background)
            && !lock(&shared.work).closing
        {
            shared.fail(&error);
            return;
        }
    }
}

/// The segments that should be merged now.
pub(super) fn due<F: Fingerprint>(shared: &Shared<F>) -> Option<Range<usize>> {
    let view = shared.view();
    let size = |segment: &Arc<crate::segment::Segment<F>>| {
        let stats = segment.stats();
        // A mark or a note weighs what a pair does: one that is merged again and again costs as much.
        let pairs = stats.ids.max(stats.fingerprints) + stats.marks + stats.notes;
        Size { pairs, tombstones: stats.tombstones }
    };
    compaction::choose(&view.segments.iter().map(size).collect::<Vec<_>>(), shared.options.fanout.max(2))
}

/// The kind of a merge, by who waits for it.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    /// Nobody: it gives way to the end of the store.
    Background,
    /// A caller waits, and may cancel it.
    Waiting(Option<&'a ProgressCallback>),
}

/// Merges segments that follow one another, and makes the result visible. The caller holds the lock for merging.
pub(super) fn merge<F: Fingerprint>(
    shared: &Arc<Shared<F>>,
    range: Range<usize>,
    distance: u32,
    way: Way<'_>,
) -> Result<()> {
    shared.in_pool(|| merge_here(shared, range, distance, way))
}

fn merge_here<F: Fingerprint>(
    shared: &Arc<Shared<F>>,
    range: Range<usize>,
    distance: u32,
    way: Way<'_>,
) -> Result<()> {
    let view = shared.view();
    let segments = view.segments[range.clone()].to_vec();
    let removed = segments.iter().map(|segment| segment.number()).collect();
    // The oldest have nothing before them that tombstones could hide.
    let mut tombstones = Vec::new();
    if range.start > 0 {
        tombstones.extend(segments.iter().flat_map(|segment| segment.tombstones()).copied());
        tombstones.sort_unstable();
        tombstones.dedup();
    }
    let mut options = shared.build_options(&view, distance);
    match way {
        Way::Background => options.fs = Arc::new(Throttle::new(shared.clone())),
        Way::Waiting(progress) => options.progress = progress.cloned(),
    }
    let progress = options.progress.clone();
    let (steps, mut seen) = (Steps::new(progress.as_ref(), 0), 0);
    steps.ask()?;
    let manifest = Manifest { segments: Vec::new(), ..view.manifest.clone() };
    let merged = View { manifest, segments, memtables: Vec::new(), ..View::clone(&view) };
    let merged = Snapshot::new(Arc::new(merged));
    let mut builder = SegmentBuilder::new(&shared.path, shared.take_number(), options);
    let mut is_empty = tombstones.is_empty();
    for entry in merged.iter() {
        steps.ask_at(&mut seen)?;
        let entry = entry?;
        builder.insert(entry.fingerprint, entry.id.unwrap_or(0))?;
        is_empty = false;
    }
    for named in merged.names() {
        steps.ask_at(&mut seen)?;
        let (id, name) = named?;
        builder.name(id, &name)?;
        is_empty = false;
    }
    for noted in merged.notes() {
        steps.ask_at(&mut seen)?;
        let (id, note) = noted?;
        builder.note(id, &note)?;
        is_empty = false;
    }
    for mark in merged.marks() {
        steps.ask_at(&mut seen)?;
        let (key, value) = mark?;
        builder.mark(&key, &value)?;
        is_empty = false;
    }
    builder.tombstones(tombstones);
    let added = if is_empty {
        None
    } else {
        let entry = builder.finish()?;
        let segment = flush::open(shared, distance, &entry)?;
        let mut written = lock(&shared.written);
        written.compactions += 1;
        written.compaction_bytes += segment.stats().bytes;
        Some((entry, segment))
    };
    shared.change(Change { removed, added, flushed: false, distance, highest_id: None })
}
