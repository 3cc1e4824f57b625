//! Records the warnings of a run for its report page, and passes them on.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use simstore_corpus::{Diagnostic, InputCounts, InputKind, Observer, ReadDiagnosticCounts, StageProgress};
use simstore_io::numbers::format_count_of;

/// Maximum number of recorded warnings. Further ones are counted.
const MAX_WARNINGS: usize = 100;

/// Observer that records warnings and passes everything on to another observer.
pub(crate) struct WarningRecorder<'a> {
    observer: &'a dyn Observer,
    recorded: Mutex<RecordedWarnings>,
}

#[derive(Default)]
struct RecordedWarnings {
    warnings: Vec<String>,
    /// Number of warnings beyond [`MAX_WARNINGS`].
    others: u64,
    read: ReadDiagnosticCounts,
}

impl<'a> WarningRecorder<'a> {
    pub(crate) fn new(observer: &'a dyn Observer) -> Self {
        WarningRecorder { observer, recorded: Mutex::default() }
    }

    /// Returns the recorded warnings, and the messages for the counts of the run. `are_fingerprints_compared` is set if short
    /// documents are worth a warning.
    pub(crate) fn into_warnings(
        self,
        counts: &InputCounts,
        kind: InputKind,
        are_fingerprints_compared: bool,
        repeated_ids: usize,
    ) -> Vec<String> {
        let RecordedWarnings { mut warnings, others, read } =
            self.recorded.into_inner().unwrap_or_else(PoisonError::into_inner);
        if others > 0 {
            warnings.push(format_count_of(others, "more warning"));
        }
        let short = counts.short_diagnostic().filter(|_| are_fingerprints_compared);
        let repeated = (repeated_ids > 0).then_some(Diagnostic::DuplicateIds(repeated_ids as u64));
        let all = counts.diagnostics(kind, read).into_iter().chain(short).chain(repeated);
        warnings.extend(all.map(|diagnostic| diagnostic.to_string()));
        warnings
    }
}

impl Observer for WarningRecorder<'_> {
    fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
        self.observer.progress(progress)
    }

    fn stage_ended(&self, stage: &'static str) {
        self.observer.stage_ended(stage);
    }

    fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
        let mut recorded = self.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match diagnostic {
            Diagnostic::Read(read, count) => *recorded.read.entry(*read).or_default() += count,
            _ if !diagnostic.is_warning() => {}
            _ if recorded.warnings.len() < MAX_WARNINGS => recorded.warnings.push(diagnostic.to_string()),
            _ => recorded.others += 1,
        }
        drop(recorded);
        self.observer.diagnostic(diagnostic);
    }

    fn wants_totals(&self) -> bool {
        self.observer.wants_totals()
    }
}
