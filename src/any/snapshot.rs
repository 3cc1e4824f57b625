//! Snapshots of stores whose fingerprints have 64 or 128 bits.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::AnyWidth;
use super::convert::{to_width, widen_matches, widen_pairs};
use super::forward::forward;
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::progress::ProgressCallback;
use crate::segment::{Entry, Match, Stats};
use crate::store::{Snapshot, StoredPair, stored_bits};

/// A [`Snapshot`] of a store whose fingerprints have 64 or 128 bits.
pub type AnySnapshot = AnyWidth<Snapshot<u64>, Snapshot<u128>>;

impl AnySnapshot {
    /// Detects the width of a store's fingerprints, and opens a snapshot of the store, like [`Snapshot::open`].
    ///
    /// # Errors
    /// The errors of [`Snapshot::open`].
    pub fn open(path: &Path) -> Result<Self> {
        AnySnapshot::with_bits(stored_bits(path)?, || Snapshot::open(path), || Snapshot::open(path))
    }

    /// Like [`AnySnapshot::open`], on the file system `fs`. If a log has an incomplete record at its end, retries
    /// for a short time, like [`Snapshot::open_retrying_on`].
    ///
    /// # Errors
    /// The errors of [`Snapshot::open`].
    pub fn open_retrying_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        AnySnapshot::with_bits(
            stored_bits(path)?,
            || Snapshot::open_retrying_on(fs, path),
            || Snapshot::open_retrying_on(fs, path),
        )
    }

    /// Returns a snapshot of the store's newest state, like [`Snapshot::refresh`].
    ///
    /// # Errors
    /// The errors of [`Snapshot::refresh`].
    pub fn refresh(&self) -> Result<Self> {
        Ok(match self {
            AnySnapshot::Bits64(one) => AnySnapshot::Bits64(one.refresh()?),
            AnySnapshot::Bits128(one) => AnySnapshot::Bits128(one.refresh()?),
        })
    }

    /// Iterates over all entries (fingerprints with their ids) of the snapshot, like [`Snapshot::iter`].
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<Entry<u128>>> + Send> {
        each_width!(self, one => Box::new(one.iter().map(|entry| {
            entry.map(|Entry { fingerprint, id }| Entry { fingerprint: fingerprint.to_u128(), id })
        })))
    }

    forward! { Snapshot:
        pub fn query(&self, ?fingerprint, distance: u32) -> Result<Vec<Match<u128>>> => widen_matches;
        pub fn contains(&self, ?fingerprint) -> Result<bool>;
        pub fn contains_pair(&self, ?fingerprint, id: u64) -> Result<bool>;
        pub fn pairs_of_names(&self, names: &HashSet<String>) -> Result<Vec<StoredPair<u128>>> => widen_pairs;
        pub fn verify_with(&self, progress: &ProgressCallback, damaged: impl FnMut(Error)) -> Result<u64>;
        pub fn name(&self, id: u64) -> Result<Option<String>>;
        pub fn names_of(&self, ids: &[u64]) -> Result<Vec<Option<String>>>;
        pub fn note(&self, id: u64) -> Result<Option<Vec<u8>>>;
        pub fn notes_of(&self, ids: &[u64]) -> Result<Vec<Option<Vec<u8>>>>;
        pub fn metadata(&self, key: &str) -> Result<Option<Vec<u8>>>;
        pub fn checkpoint(&self, path: &Path) -> Result<()>;
        pub fn len(&self) -> u64;
        pub fn is_empty(&self) -> bool;
        pub fn highest_id(&self) -> Option<u64>;
        pub fn stats(&self) -> Stats;
        pub fn distance(&self) -> u32;
        pub fn codec(&self) -> Codec;
        pub fn keeps_ids(&self) -> bool;
        pub fn profile(&self) -> &str;
        pub fn path(&self) -> &Path;
    }
}
