//! What is said of the lines of a section, said of those of its file.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use simstore::Error;

use simstore_corpus::Diagnostic;
use simstore_corpus::{Observer, StageProgress};
use simstore_io::bytes::MORE_MEMORY_ADVICE;
use simstore_io::bytes::Section;

/// An observer that is told of malformed documents of a section where they stand in the file. Without a section, they stand there.
pub(crate) struct Placed<'a> {
    observer: &'a dyn Observer,
    section: Option<&'a Section>,
    /// Lines before the section: counted when they are asked for, if they are not known.
    lines: OnceLock<u64>,
    /// Whether something was skipped that more memory would allow.
    lacks_memory: AtomicBool,
}

impl<'a> Placed<'a> {
    pub(crate) fn new(observer: &'a dyn Observer, section: Option<&'a Section>, lines: Option<u64>) -> Self {
        let lines = lines.map_or_else(OnceLock::new, OnceLock::from);
        Placed { observer, section, lines, lacks_memory: AtomicBool::new(false) }
    }

    /// Whether something was skipped that more memory would allow.
    pub(crate) fn lacks_memory(&self) -> bool {
        self.lacks_memory.load(Ordering::Relaxed)
    }

    /// The same error, of a line of the file.
    pub(crate) fn in_file(&self, error: Error) -> Error {
        match (error, self.section) {
            (Error::BadInput { path, line, reason }, Some(section)) if line > 0 => {
                Error::BadInput { path, line: line + self.before(section), reason }
            }
            (error, _) => error,
        }
    }

    fn before(&self, section: &Section) -> u64 {
        // What cannot be read is told by whoever reads it next.
        *self.lines.get_or_init(|| section.lines_before().unwrap_or_default())
    }
}

impl Observer for Placed<'_> {
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
                let error = self.in_file(Error::BadInput { path, line: *line, reason });
                self.observer.diagnostic(&Diagnostic::Malformed(&error));
            }
            other => self.observer.diagnostic(other),
        }
    }

    fn wants_totals(&self) -> bool {
        self.observer.wants_totals()
    }
}
