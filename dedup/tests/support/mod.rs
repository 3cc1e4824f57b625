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

/// Returns the data of a report page.
pub(crate) fn page_data(page: &str) -> serde_json::Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let json = page.split_once(start).unwrap().1.split_once("</script>").unwrap().0;
    serde_json::from_str(json).unwrap()
}
