//! What long work tells whoever waits for it, and how it is told to stop.

use std::ops::ControlFlow;

use simstore::{Error, Result};

use crate::progress::ReadNote;

/// How far a step of long work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// What is counted: "documents", "fingerprints", "texts compared", ...
    pub what: &'static str,
    /// How many have been done.
    pub count: u64,
    /// Bytes read of the input files as they are on disk, where files are read.
    pub bytes: u64,
    /// All bytes of the input files, where they are known and were [asked for](Watch::wants_totals).
    pub total_bytes: Option<u64>,
}

/// What a person should know, and is no failure of the work.
#[derive(Debug)]
#[non_exhaustive]
pub enum Notice<'a> {
    /// A malformed document, or a file that cannot be read on, was skipped, as was asked for.
    Malformed(&'a Error),
    /// What was passed over or guessed in a reading, and how often.
    Read(ReadNote, u64),
}

/// Is told by long work how far it has come. All methods may be called from any thread; by default they do nothing, and the
/// work goes on. `()` is one that never has a word.
pub trait Watch: Sync {
    /// A step has come so far; at least every tenth of a second while there is work. [`ControlFlow::Break`] ends the work with
    /// [`Error::Cancelled`], and nothing half-written is left.
    fn progress(&self, progress: &Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// A step has ended: what has been shown of it may be taken away.
    fn done(&self, what: &'static str) {
        let _ = what;
    }

    /// Something is to be told.
    fn notice(&self, notice: &Notice<'_>) {
        let _ = notice;
    }

    /// Whether totals are shown: finding out takes a look at each file.
    fn wants_totals(&self) -> bool {
        false
    }
}

impl Watch for () {}

/// [`Error::Cancelled`] where a callback said not to go on.
#[allow(dead_code)]
pub(crate) fn go_on(answer: ControlFlow<()>) -> Result<()> {
    match answer {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Error::Cancelled),
    }
}
