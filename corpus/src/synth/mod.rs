//! Random fingerprints and documents, to measure with: the same seed gives the same, and the memory does not grow with their
//! number.
//!
//! ```
//! use simstore_corpus::synth::{RandomDocuments, RandomFingerprints};
//!
//! let mut all = Vec::new();
//! RandomFingerprints::new(1000, 7).visit(&mut |some| {
//!     all.extend_from_slice(some);
//!     Ok(())
//! })?;
//! assert!(all.len() == 1000 && all.is_sorted_by(|a, b| a < b));
//!
//! let mut copies = 0;
//! RandomDocuments { copies: 0.5, ..RandomDocuments::new(100, 7) }.visit(&mut |document| {
//!     copies += u64::from(document.copy.is_some());
//!     Ok(())
//! })?;
//! assert!(copies > 20);
//! # Ok::<(), simstore::Error>(())
//! ```

mod documents;
mod fingerprints;

pub use crate::synth::documents::{CopyOf, RandomDocument, RandomDocuments};
pub use crate::synth::fingerprints::RandomFingerprints;
