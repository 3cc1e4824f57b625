//! Observer for reading a section of a file. In messages, it converts line numbers within the section to line
//! numbers in the file.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use simstore::Error;

use simstore_corpus::Diagnostic;
use simstore_corpus::{Observer, StageProgress};
use simstore_io::bytes::MORE_MEMORY_ADVICE;
use simstore_io::bytes::Section;

/// Observer that forwards all calls to another observer. In reports of malformed documents, line numbers within a
/// section of a file become line numbers in the file. Without a section, line numbers are unchanged.
pub(crate) struct SectionObserver<'a> {
    observer: &'a dyn Observer,
    section: Option<&'a Section>,
    /// Number of lines that precede the section in its file. If it is unknown, the lines are counted at the first
    /// use.
    lines: OnceLock<u64>,
    /// Whether a document was skipped for lack of memory.
    lacks_memory: AtomicBool,
}

impl<'a> SectionObserver<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, section: Option<&'a Section>, lines: Option<u64>) -> Self {
        let lines = lines.map_or_else(OnceLock::new, OnceLock::from);
        SectionObserver { observer, section, lines, lacks_memory: AtomicBool::new(false) }
    }

    pub(crate) fn lacks_memory(&self) -> bool {
        self.lacks_memory.load(Ordering::Relaxed)
    }

    /// Converts the line number in an error from a number within the section to a number in the file.
    pub(crate) fn with_file_line(&self, error: Error) -> Error {
        match (error, self.section) {
            (Error::BadInput { path, line, reason }, Some(section)) if line > 0 => {
                Error::BadInput { path, line: line + self.lines_before(section), reason }
            }
            (error, _) => error,
        }
    }

    fn lines_before(&self, section: &Section) -> u64 {
        // A read error is reported by the next reader of the file.
        *self.lines.get_or_init(|| section.lines_before().unwrap_or_default())
    }
}

impl Observer for SectionObserver<'_> {
    fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
        self.observer.progress(progress)
    }

    fn stage_ended(&self, what: &'static str) {
        self.observer.stage_ended(what);
    }

    fn diagnostic(&self, notice: &Diagnostic<'_>) {
        match notice {
            Diagnostic::Malformed(Error::BadInput { path, line, reason }) => {
                if reason.contains(MORE_MEMORY_ADVICE) {
                    self.lacks_memory.store(true, Ordering::Relaxed);
                }
                let (path, reason) = (path.clone(), reason.clone());
                let error = self.with_file_line(Error::BadInput { path, line: *line, reason });
                self.observer.diagnostic(&Diagnostic::Malformed(&error));
            }
            other => self.observer.diagnostic(other),
        }
    }

    fn wants_totals(&self) -> bool {
        self.observer.wants_totals()
    }
}
