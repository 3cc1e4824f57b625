//! Commands that nobody listens to.

use crate::jobs::JOBS;
use crate::{Folder, disturb};

#[test]
fn closed_outputs() {
    for job in JOBS {
        let (expected, _) = job.undisturbed();
        for closed in [">&-", "2>&-", ">&- 2>&-", "<&-"] {
            disturb(job, closed, &expected, |folder| {
                let ended = folder.run(&format!("exec {} {closed}", job.line));
                // Without standard error there can be no word.
                (!closed.contains('2')).then_some(ended)
            });
        }
        disturb(job, "| true", &expected, |folder| {
            Some(folder.run(&format!("set -o pipefail; {} --json | true", job.line)))
        });
    }
}

#[test]
fn a_full_output_is_an_error() {
    let folder = Folder::new();
    for job in JOBS.iter().filter(|job| job.name == "dedup") {
        job.prepare(&folder);
        for line in
            ["$simstore dedup docs $words >/dev/full", "$simstore dedup docs $words --output - >/dev/full"]
        {
            let ended = folder.run(line);
            ended.check(line);
            assert_eq!(ended.code, Some(1), "{line}");
        }
    }
}
