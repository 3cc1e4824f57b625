//! Snapshots of any width.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::AnyWidth;
use super::fit::{all_wide, fit, fit_all, wide, wide_pairs};
use super::forward::forward;
use crate::batch::{BatchMatch, BatchMethod};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::progress::ProgressCallback;
use crate::segment::{Entry, Match, Stats};
use crate::store::{Snapshot, StoredPair, stored_bits};

/// A [`Snapshot`] of any width.
pub type AnySnapshot = AnyWidth<Snapshot<u64>, Snapshot<u128>>;

impl AnySnapshot {
    /// [`Snapshot::open`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open(path: &Path) -> Result<Self> {
        AnySnapshot::of_bits(stored_bits(path)?, || Snapshot::open(path), || Snapshot::open(path))
    }

    /// [`Snapshot::open_settled`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_settled(path: &Path) -> Result<Self> {
        AnySnapshot::of_bits(
            stored_bits(path)?,
            || Snapshot::open_settled(path),
            || Snapshot::open_settled(path),
        )
    }

    /// [`Snapshot::open_settled_on`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_settled_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        AnySnapshot::of_bits(
            stored_bits(path)?,
            || Snapshot::open_settled_on(fs, path),
            || Snapshot::open_settled_on(fs, path),
        )
    }

    /// The newest state, as [`Snapshot::refresh`] has it.
    ///
    /// # Errors
    /// As [`Snapshot::refresh`].
    pub fn refresh(&self) -> Result<Self> {
        Ok(match self {
            AnySnapshot::Bits64(one) => AnySnapshot::Bits64(one.refresh()?),
            AnySnapshot::Bits128(one) => AnySnapshot::Bits128(one.refresh()?),
        })
    }

    /// [`Snapshot::query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn query(&self, fingerprint: u128, distance: u32) -> Result<Vec<Match<u128>>> {
        each_width!(self, one => one.query(fit(fingerprint)?, distance).map(all_wide))
    }

    /// [`Snapshot::batch_query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn batch_query(&self, queries: &[u128], distance: u32) -> Result<Vec<BatchMatch<u128>>> {
        each_width!(self, one => {
            let matches = one.batch_query(&fit_all(queries)?, distance)?;
            Ok(matches.into_iter().map(|m| BatchMatch { query: m.query, found: wide(m.found) }).collect())
        })
    }

    /// [`Snapshot::batch_query_with`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn batch_query_with(
        &self,
        queries: &[u128],
        distance: u32,
        progress: &ProgressCallback,
    ) -> Result<Vec<BatchMatch<u128>>> {
        each_width!(self, one => {
            let matches = one.batch_query_with(&fit_all(queries)?, distance, progress)?;
            Ok(matches.into_iter().map(|m| BatchMatch { query: m.query, found: wide(m.found) }).collect())
        })
    }

    /// [`Snapshot::batch_visit`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn batch_visit(
        &self,
        queries: &[u128],
        distance: u32,
        method: BatchMethod,
        visitor: impl Fn(&[BatchMatch<u128>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        each_width!(self, one => one.batch_visit(&fit_all(queries)?, distance, method, |matches| {
            let wide = |m: &BatchMatch<_>| BatchMatch { query: m.query, found: wide(m.found) };
            visitor(&matches.iter().map(wide).collect::<Vec<_>>())
        }))
    }

    /// [`Snapshot::contains`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn contains(&self, fingerprint: u128) -> Result<bool> {
        each_width!(self, one => one.contains(fit(fingerprint)?))
    }

    /// [`Snapshot::contains_pair`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn contains_pair(&self, fingerprint: u128, id: u64) -> Result<bool> {
        each_width!(self, one => one.contains_pair(fit(fingerprint)?, id))
    }

    /// [`Snapshot::iter`].
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<Entry<u128>>> + Send> {
        each_width!(self, one => Box::new(one.iter().map(|entry| {
            entry.map(|Entry { fingerprint, id }| Entry { fingerprint: fingerprint.to_u128(), id })
        })))
    }

    /// [`Snapshot::pairs_of_ids`].
    ///
    /// # Errors
    /// As there.
    pub fn pairs_of_ids(&self, ids: &HashSet<u64>) -> Result<Vec<StoredPair<u128>>> {
        each_width!(self, one => one.pairs_of_ids(ids).map(wide_pairs))
    }

    /// [`Snapshot::pairs_of_names`].
    ///
    /// # Errors
    /// As there.
    pub fn pairs_of_names(&self, names: &HashSet<String>) -> Result<Vec<StoredPair<u128>>> {
        each_width!(self, one => one.pairs_of_names(names).map(wide_pairs))
    }

    /// [`Snapshot::verify_with`].
    ///
    /// # Errors
    /// As there.
    pub fn verify_with(&self, progress: &ProgressCallback, damaged: impl FnMut(Error)) -> Result<u64> {
        each_width!(self, one => one.verify_with(progress, damaged))
    }

    forward! { Snapshot:
        pub fn name(&self, id: u64) -> Result<Option<String>>;
        pub fn names_of(&self, ids: &[u64]) -> Result<Vec<Option<String>>>;
        pub fn note(&self, id: u64) -> Result<Option<Vec<u8>>>;
        pub fn notes_of(&self, ids: &[u64]) -> Result<Vec<Option<Vec<u8>>>>;
        pub fn mark(&self, key: &str) -> Result<Option<Vec<u8>>>;
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
