//! Commands whose standard output, error or input is closed or full.

use super::cases::CASES;
use super::disturb;
use crate::TestFolder;

#[test]
fn closed_outputs() {
    for case in CASES {
        let (expected, _) = case.run_undisturbed();
        for closed in [">&-", "2>&-", ">&- 2>&-", "<&-"] {
            disturb(case, closed, &expected, |folder| {
                let exit = folder.run_line(&format!("exec {} {closed}", case.command));
                // If standard error is closed, no message can be checked.
                (!closed.contains('2')).then_some(exit)
            });
        }
        disturb(case, "| true", &expected, |folder| {
            Some(folder.run_line(&format!("set -o pipefail; {} --json | true", case.command)))
        });
    }
}

#[test]
fn a_full_output_is_an_error() {
    let folder = TestFolder::new();
    for case in CASES.iter().filter(|case| case.name == "dedup") {
        case.prepare(&folder);
        for line in
            ["$simstore dedup docs $words >/dev/full", "$simstore dedup docs $words --output - >/dev/full"]
        {
            let exit = folder.run_line(line);
            exit.check(line);
            assert_eq!(exit.code, Some(1), "{line}");
        }
    }
}
