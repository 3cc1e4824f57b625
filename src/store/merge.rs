//! Merges (compaction): a merge replaces consecutive segments by one segment.

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use super::flush;
use super::shared_state::{ManifestEdit, SharedState};
use super::snapshot::Snapshot;
use super::throttled_fs::ThrottledFs;
use super::view::View;
use crate::compaction::{self, SegmentSize};
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::manifest::Manifest;
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::segment::SegmentBuilder;
use crate::threads::lock;

/// Body of the merge thread. Merges segments whenever a merge is due, until the store is closed or a write fails.
pub(super) fn run_worker<F: Fingerprint>(shared: &Arc<SharedState<F>>) {
    loop {
        let mut state = lock(&shared.background);
        loop {
            if state.is_closing || state.failure.is_some() {
                return;
            }
            if next_merge(shared).is_some() {
                break;
            }
            state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let _guard = lock(&shared.merge_lock);
        // Another merge may have changed the segments.
        let Some(range) = next_merge(shared) else { continue };
        let distance = shared.view().manifest.settings.distance;
        if let Err(error) = merge(shared, range, distance, MergeMode::Background)
            && !lock(&shared.background).is_closing
        {
            shared.fail(&error);
            return;
        }
    }
}

/// Returns the indexes of the segments that should be merged now; `None` if no merge is due.
pub(super) fn next_merge<F: Fingerprint>(shared: &SharedState<F>) -> Option<Range<usize>> {
    let view = shared.view();
    let size = |segment: &Arc<crate::segment::Segment<F>>| {
        let stats = segment.stats();
        // A metadata value or a note counts like a pair, since merging it costs about as much.
        let pairs = stats.ids.max(stats.fingerprints) + stats.metadata + stats.notes;
        SegmentSize { pairs, tombstones: stats.tombstones }
    };
    compaction::choose_merge(
        &view.segments.iter().map(size).collect::<Vec<_>>(),
        shared.options.fanout.max(2),
    )
}

/// Whether a merge runs in the background, or a caller waits for its end.
#[derive(Clone, Copy)]
pub(super) enum MergeMode<'a> {
    /// No caller waits for the merge. Its write rate is limited, and it stops when the store is closed.
    Background,
    /// A caller waits for the merge. If there is a callback, it can cancel the merge.
    Foreground(Option<&'a ProgressCallback>),
}

/// Merges consecutive segments, given by the range of their indexes, and makes the result visible. The new tables, and
/// all later queries, allow distances up to `distance`. The caller must hold [`merge_lock`](SharedState::merge_lock).
pub(super) fn merge<F: Fingerprint>(
    shared: &Arc<SharedState<F>>,
    range: Range<usize>,
    distance: u32,
    mode: MergeMode<'_>,
) -> Result<()> {
    shared.in_pool(|| merge_in_pool(shared, range, distance, mode))
}

fn merge_in_pool<F: Fingerprint>(
    shared: &Arc<SharedState<F>>,
    range: Range<usize>,
    distance: u32,
    mode: MergeMode<'_>,
) -> Result<()> {
    let view = shared.view();
    let segments = view.segments[range.clone()].to_vec();
    let removed = segments.iter().map(|segment| segment.number()).collect();
    // Tombstones hide pairs of older segments. A merge that includes the oldest segment needs none.
    let mut tombstones = Vec::new();
    if range.start > 0 {
        tombstones.extend(segments.iter().flat_map(|segment| segment.tombstones()).copied());
        tombstones.sort_unstable();
        tombstones.dedup();
    }
    let mut options = shared.build_options(&view, distance);
    match mode {
        MergeMode::Background => options.fs = Arc::new(ThrottledFs::new(shared.clone())),
        MergeMode::Foreground(progress) => options.progress = progress.cloned(),
    }
    let progress = options.progress.clone();
    let (steps, mut seen) = (ProgressCounter::new(progress.as_ref(), 0), 0);
    steps.check_cancelled()?;
    let manifest = Manifest { segments: Vec::new(), ..view.manifest.clone() };
    let merged = View { manifest, segments, memtables: Vec::new(), ..View::clone(&view) };
    let merged = Snapshot::new(Arc::new(merged));
    let mut builder = SegmentBuilder::new(&shared.path, shared.allocate_number(), options);
    let mut is_empty = tombstones.is_empty();
    for entry in merged.iter() {
        steps.check_cancelled_at(&mut seen)?;
        let entry = entry?;
        builder.insert(entry.fingerprint, entry.id.unwrap_or(0))?;
        is_empty = false;
    }
    for named in merged.names() {
        steps.check_cancelled_at(&mut seen)?;
        let (id, name) = named?;
        builder.add_name(id, &name)?;
        is_empty = false;
    }
    for noted in merged.notes() {
        steps.check_cancelled_at(&mut seen)?;
        let (id, note) = noted?;
        builder.add_note(id, &note)?;
        is_empty = false;
    }
    for value in merged.all_metadata() {
        steps.check_cancelled_at(&mut seen)?;
        let (key, value) = value?;
        builder.add_metadata(&key, &value)?;
        is_empty = false;
    }
    builder.set_tombstones(tombstones);
    let added = if is_empty {
        None
    } else {
        let entry = builder.finish()?;
        let segment = flush::open_segment(shared, distance, &entry)?;
        let mut written = lock(&shared.write_stats);
        written.compactions += 1;
        written.compaction_bytes += segment.stats().bytes;
        Some((entry, segment))
    };
    shared.apply_edit(ManifestEdit { removed, added, is_flush: false, distance, highest_id: None })
}
