//! How far long work has come.

use std::sync::Arc;

/// How far long work has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// What has been done so far: of a build, fingerprints written over all tables.
    pub done: u64,
    /// What there is to do, in all.
    pub total: u64,
}

/// Called from the threads that work.
pub type ProgressCallback = Arc<dyn Fn(Progress) + Send + Sync>;
