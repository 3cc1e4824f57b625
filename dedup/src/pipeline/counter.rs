//! A counter that stops at a limit, shared by several threads.

use super::atomic::AtomicU16;
use super::atomic::Ordering;

/// Counter that several threads increment up to a limit. No increment is lost, so the count depends only on the
/// number of increments, not on the order of the threads.
#[derive(Debug, Default)]
pub(crate) struct SaturatingCounter(AtomicU16);

impl SaturatingCounter {
    /// Adds one, unless the count has reached `limit`. Returns the count before the addition.
    #[inline]
    pub(crate) fn add(&self, limit: u16) -> u16 {
        let more = |count| if count < limit { Some(count + 1) } else { None };
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).unwrap_or_else(|count| count)
    }

    #[inline]
    pub(crate) fn get(&self) -> u16 {
        self.0.load(Ordering::Relaxed)
    }
}
