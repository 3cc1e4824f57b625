//! Code that several tests need.

#[path = "../../../io/tests/support/folder.rs"]
pub(crate) mod folder;
#[path = "../../../io/tests/support/gzip.rs"]
pub(crate) mod gzip;
pub(crate) mod inputs;
#[path = "../../../tests/support/random.rs"]
mod random;

use simstore_dedup::{Report, Summary};

pub(crate) use self::random::Random;

/// Returns the summary of a report, without the values that depend on time and memory.
pub(crate) fn numbers(report: &Report) -> Summary {
    let mut summary = report.summary().clone();
    (summary.seconds, summary.spilled) = (0.0, None);
    summary
}
