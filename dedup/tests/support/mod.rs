//! Code that several tests need.

#[path = "../../../io/tests/support/folder.rs"]
pub(crate) mod folder;
pub(crate) mod given;
#[path = "../../../io/tests/support/gzip.rs"]
pub(crate) mod gzip;
#[path = "../../../tests/support/random.rs"]
mod random;

use simstore_dedup::{Report, Summary};

pub(crate) use self::random::Random;

/// The numbers that do not depend on time and memory.
pub(crate) fn numbers(report: &Report) -> Summary {
    let mut summary = report.summary().clone();
    (summary.seconds, summary.spilled) = (0.0, None);
    summary
}
