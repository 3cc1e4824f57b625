//! Commands that nobody listens to.

use super::disturb;
use super::jobs::JOBS;
use crate::Folder;

#[test]
fn closed_outputs() {
    for job in JOBS {
        let (expected, _) = job.undisturbed();
        for closed in [">&-", "2>&-", ">&- 2>&-", "<&-"] {
            disturb(job, closed, &expected, |folder| {
                let ended = folder.attempt(&format!("exec {} {closed}", job.line));
                // Without standard error there can be no word.
                (!closed.contains('2')).then_some(ended)
            });
        }
        disturb(job, "| true", &expected, |folder| {
            Some(folder.attempt(&format!("set -o pipefail; {} --json | true", job.line)))
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
            let ended = folder.attempt(line);
            ended.check(line);
            assert_eq!(ended.code, Some(1), "{line}");
        }
    }
}
