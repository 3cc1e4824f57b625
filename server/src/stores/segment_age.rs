//! Ages of segments.

use std::path::Path;
use std::time::SystemTime;

use simstore::Fingerprint;
use simstore::raw::Segment;

/// Returns the seconds since a segment was written; `None` if the file system does not say.
pub(super) fn segment_age<F: Fingerprint>(store: &Path, segment: &Segment<F>) -> Option<f64> {
    // The first table is the file that every segment has.
    let table = store.join(format!("{:06}-00.table", segment.number()));
    let written = table.metadata().and_then(|file| file.modified()).ok()?;
    Some(SystemTime::now().duration_since(written).ok()?.as_secs_f64())
}
