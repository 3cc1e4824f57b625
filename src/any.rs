//! Stores whose width is known only when the program runs, as that of a service or of another language.
//!
//! Fingerprints are `u128` here, whatever the width; one that does not fit into a store of 64 bits is refused. What else is to
//! be done with a store, or many times, is done with what the variants hold.
//!
//! ```
//! use simstore::any::{AnySnapshot, AnyStore};
//! use simstore::StoreOptions;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("pages");
//! // One of 128 bits is made; a store that is there has the width that it has.
//! let store = AnyStore::open(&path, Some(128), StoreOptions::default())?;
//! store.insert_named(0x0123_4567 << 96, 1, "https://example.org/")?;
//! drop(store);
//! let snapshot = AnySnapshot::open(&path)?;
//! assert_eq!(snapshot.bits(), 128);
//! assert_eq!(snapshot.query(0x0123_4566 << 96, 3)?[0].id, Some(1));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use crate::batch::{BatchMatch, BatchMethod};
use crate::codec::Codec;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::fs::Fs;
use crate::options::{BuildOptions, Durability, StoreOptions};
use crate::progress::ProgressCallback;
use crate::segment::{Entry, Match, Stats};
use crate::store::{
    Builder, CompactOptions, Insertion, Snapshot, Store, StoredPair, Transaction, is_store, stored_bits,
};

/// Does the same with what a value of any width holds.
macro_rules! each {
    ($any:expr, $one:pat => $result:expr) => {
        match $any {
            Self::Bits64($one) => $result,
            Self::Bits128($one) => $result,
        }
    };
}

/// Calls a method of the same name.
macro_rules! forward {
    ($of:ident: $(pub fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(
            #[doc = concat!("As [`", stringify!($of), "::", stringify!($name), "`].")]
            #[allow(clippy::missing_errors_doc, reason = "as there")]
            pub fn $name(&self $(, $argument: $type)*) -> $result {
                each!(self, one => one.$name($($argument),*))
            }
        )*
    };
}

/// A fingerprint of this width, if it is one.
fn fit<F: Fingerprint>(value: u128) -> Result<F> {
    let fitted = F::from_u128(value);
    if fitted.to_u128() == value {
        return Ok(fitted);
    }
    Err(Error::BadArgument(format!("fingerprint {value:x} has more than the {} bits of the store", F::BITS)))
}

fn fit_all<F: Fingerprint>(values: &[u128]) -> Result<Vec<F>> {
    values.iter().map(|&value| fit(value)).collect()
}

fn wide<F: Fingerprint>(found: Match<F>) -> Match<u128> {
    let Match { fingerprint, distance, id } = found;
    Match { fingerprint: fingerprint.to_u128(), distance, id }
}

fn all_wide<F: Fingerprint>(found: Vec<Match<F>>) -> Vec<Match<u128>> {
    found.into_iter().map(wide).collect()
}

fn wide_pairs<F: Fingerprint>(pairs: Vec<StoredPair<F>>) -> Vec<StoredPair<u128>> {
    let wide =
        |StoredPair { fingerprint, id, name }| StoredPair { fingerprint: F::to_u128(fingerprint), id, name };
    pairs.into_iter().map(wide).collect()
}

fn wide_insertion<F: Fingerprint>(insertion: Insertion<F>) -> Insertion<u128> {
    match insertion {
        Insertion::Inserted => Insertion::Inserted,
        Insertion::DuplicateOf(found) => Insertion::DuplicateOf(all_wide(found)),
    }
}

/// The widths that there are.
fn is_wide(bits: u32) -> Result<bool> {
    match bits {
        64 => Ok(false),
        128 => Ok(true),
        _ => Err(Error::BadArgument(format!("fingerprints have 64 or 128 bits, not {bits}"))),
    }
}

/// A [`Snapshot`] of any width.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum AnySnapshot {
    Bits64(Snapshot<u64>),
    Bits128(Snapshot<u128>),
}

impl AnySnapshot {
    /// [`Snapshot::open`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open(path: &Path) -> Result<Self> {
        Ok(match is_wide(stored_bits(path)?)? {
            false => AnySnapshot::Bits64(Snapshot::open(path)?),
            true => AnySnapshot::Bits128(Snapshot::open(path)?),
        })
    }

    /// [`Snapshot::open_settled`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_settled(path: &Path) -> Result<Self> {
        Ok(match is_wide(stored_bits(path)?)? {
            false => AnySnapshot::Bits64(Snapshot::open_settled(path)?),
            true => AnySnapshot::Bits128(Snapshot::open_settled(path)?),
        })
    }

    /// [`Snapshot::open_settled_on`], whichever width the store has.
    ///
    /// # Errors
    /// As [`Snapshot::open`].
    pub fn open_settled_on(fs: &Arc<dyn Fs>, path: &Path) -> Result<Self> {
        Ok(match is_wide(stored_bits(path)?)? {
            false => AnySnapshot::Bits64(Snapshot::open_settled_on(fs, path)?),
            true => AnySnapshot::Bits128(Snapshot::open_settled_on(fs, path)?),
        })
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

    /// The width of its fingerprints, 64 or 128.
    pub fn bits(&self) -> u32 {
        match self {
            AnySnapshot::Bits64(_) => 64,
            AnySnapshot::Bits128(_) => 128,
        }
    }

    /// [`Snapshot::query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn query(&self, fingerprint: u128, distance: u32) -> Result<Vec<Match<u128>>> {
        each!(self, one => one.query(fit(fingerprint)?, distance).map(all_wide))
    }

    /// [`Snapshot::batch_query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn batch_query(&self, queries: &[u128], distance: u32) -> Result<Vec<BatchMatch<u128>>> {
        each!(self, one => {
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
        each!(self, one => {
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
        each!(self, one => one.batch_visit(&fit_all(queries)?, distance, method, |matches| {
            let wide = |m: &BatchMatch<_>| BatchMatch { query: m.query, found: wide(m.found) };
            visitor(&matches.iter().map(wide).collect::<Vec<_>>())
        }))
    }

    /// [`Snapshot::contains`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn contains(&self, fingerprint: u128) -> Result<bool> {
        each!(self, one => one.contains(fit(fingerprint)?))
    }

    /// [`Snapshot::contains_pair`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn contains_pair(&self, fingerprint: u128, id: u64) -> Result<bool> {
        each!(self, one => one.contains_pair(fit(fingerprint)?, id))
    }

    /// [`Snapshot::iter`].
    pub fn iter(&self) -> Box<dyn Iterator<Item = Result<Entry<u128>>> + Send> {
        each!(self, one => Box::new(one.iter().map(|entry| {
            entry.map(|Entry { fingerprint, id }| Entry { fingerprint: fingerprint.to_u128(), id })
        })))
    }

    /// [`Snapshot::pairs_of_ids`].
    ///
    /// # Errors
    /// As there.
    pub fn pairs_of_ids(&self, ids: &HashSet<u64>) -> Result<Vec<StoredPair<u128>>> {
        each!(self, one => one.pairs_of_ids(ids).map(wide_pairs))
    }

    /// [`Snapshot::pairs_of_names`].
    ///
    /// # Errors
    /// As there.
    pub fn pairs_of_names(&self, names: &HashSet<String>) -> Result<Vec<StoredPair<u128>>> {
        each!(self, one => one.pairs_of_names(names).map(wide_pairs))
    }

    /// [`Snapshot::verify_with`].
    ///
    /// # Errors
    /// As there.
    pub fn verify_with(&self, progress: &ProgressCallback, damaged: impl FnMut(Error)) -> Result<u64> {
        each!(self, one => one.verify_with(progress, damaged))
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

/// A [`Store`] of any width.
#[derive(Debug)]
#[expect(missing_docs, reason = "the variants say it")]
pub enum AnyStore {
    Bits64(Store<u64>),
    Bits128(Store<u128>),
}

impl AnyStore {
    /// [`Store::open`], whichever width the store has. `bits`, 64 or 128, is the width that it should have; where it is
    /// `None`, a store that is made gets 64.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Width`] if the store has another width than the one asked for, and
    /// [`Error::BadArgument`] if there is no such width.
    pub fn open(path: &Path, bits: Option<u32>, options: StoreOptions) -> Result<Self> {
        let wide = match bits {
            None if is_store(path) => is_wide(stored_bits(path)?)?,
            asked => is_wide(asked.unwrap_or(64))?,
        };
        Ok(match wide {
            false => AnyStore::Bits64(Store::open(path, options)?),
            true => AnyStore::Bits128(Store::open(path, options)?),
        })
    }

    /// [`Store::insert`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert(&self, fingerprint: u128, id: u64) -> Result<()> {
        each!(self, one => one.insert(fit(fingerprint)?, id))
    }

    /// [`Store::insert_named`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_named(&self, fingerprint: u128, id: u64, name: &str) -> Result<()> {
        each!(self, one => one.insert_named(fit(fingerprint)?, id, name))
    }

    /// [`Store::insert_if_new`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_if_new(&self, fingerprint: u128, id: u64) -> Result<Insertion<u128>> {
        each!(self, one => one.insert_if_new(fit(fingerprint)?, id).map(wide_insertion))
    }

    /// [`Store::delete`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn delete(&self, fingerprint: u128, id: u64) -> Result<bool> {
        each!(self, one => one.delete(fit(fingerprint)?, id))
    }

    /// [`Store::delete_all`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn delete_all(&self, pairs: &[(u128, u64)], durability: Durability) -> Result<Vec<bool>> {
        each!(self, one => {
            let fitted = pairs.iter().map(|&(fingerprint, id)| Ok((fit(fingerprint)?, id)));
            one.delete_all(&fitted.collect::<Result<Vec<_>>>()?, durability)
        })
    }

    /// [`Store::transaction`].
    pub fn transaction(&self) -> AnyTransaction<'_> {
        match self {
            AnyStore::Bits64(one) => AnyTransaction::Bits64(one.transaction()),
            AnyStore::Bits128(one) => AnyTransaction::Bits128(one.transaction()),
        }
    }

    /// [`Store::snapshot`].
    pub fn snapshot(&self) -> AnySnapshot {
        match self {
            AnyStore::Bits64(one) => AnySnapshot::Bits64(one.snapshot()),
            AnyStore::Bits128(one) => AnySnapshot::Bits128(one.snapshot()),
        }
    }

    /// [`Store::query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn query(&self, fingerprint: u128, distance: u32) -> Result<Vec<Match<u128>>> {
        each!(self, one => one.query(fit(fingerprint)?, distance).map(all_wide))
    }

    forward! { Store:
        pub fn sync(&self) -> Result<()>;
        pub fn flush(&self) -> Result<()>;
        pub fn compact_with(&self, options: &CompactOptions) -> Result<()>;
        pub fn wait_for_background(&self) -> Result<()>;
        pub fn torn_end(&self) -> Option<&Error>;
    }
}

/// A [`Transaction`] of an [`AnyStore`].
#[expect(missing_docs, reason = "the variants say it")]
pub enum AnyTransaction<'a> {
    Bits64(Transaction<'a, u64>),
    Bits128(Transaction<'a, u128>),
}

impl AnyTransaction<'_> {
    /// [`Transaction::insert`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert(&mut self, fingerprint: u128, id: u64) -> Result<()> {
        each!(self, one => one.insert(fit(fingerprint)?, id));
        Ok(())
    }

    /// [`Transaction::insert_named`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_named(&mut self, fingerprint: u128, id: u64, name: &str) -> Result<()> {
        each!(self, one => one.insert_named(fit(fingerprint)?, id, name))
    }

    /// [`Transaction::delete`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn delete(&mut self, fingerprint: u128, id: u64) -> Result<()> {
        each!(self, one => one.delete(fit(fingerprint)?, id));
        Ok(())
    }

    /// [`Transaction::mark`].
    ///
    /// # Errors
    /// As there.
    pub fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        each!(self, one => one.mark(key, value))
    }

    /// [`Transaction::note`].
    ///
    /// # Errors
    /// As there.
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        each!(self, one => one.note(id, note))
    }

    /// [`Transaction::bytes`].
    pub fn bytes(&self) -> usize {
        each!(self, one => one.bytes())
    }

    /// [`Transaction::commit`].
    ///
    /// # Errors
    /// As there.
    pub fn commit(self, durability: Durability) -> Result<()> {
        each!(self, one => one.commit(durability))
    }

    /// [`Transaction::commit_if_new`].
    ///
    /// # Errors
    /// As there.
    pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<u128>> {
        each!(self, one => one.commit_if_new(durability).map(wide_insertion))
    }

    /// [`Transaction::commit_unless`].
    ///
    /// # Errors
    /// As there.
    pub fn commit_unless(
        self,
        durability: Durability,
        mut is_duplicate: impl FnMut(&[Match<u128>]) -> Result<bool>,
    ) -> Result<Insertion<u128>> {
        each!(self, one => {
            let insertion = one.commit_unless(durability, |found| is_duplicate(&all_wide(found.to_vec())))?;
            Ok(wide_insertion(insertion))
        })
    }
}

/// A [`Builder`] of any width.
#[expect(missing_docs, reason = "the variants say it")]
pub enum AnyBuilder {
    Bits64(Builder<u64>),
    Bits128(Builder<u128>),
}

impl AnyBuilder {
    /// [`Builder::create`], of a store of 64 or 128 bits.
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if there is no such width.
    pub fn create(path: &Path, bits: u32, options: BuildOptions) -> Result<Self> {
        Ok(match is_wide(bits)? {
            false => AnyBuilder::Bits64(Builder::create(path, options)?),
            true => AnyBuilder::Bits128(Builder::create(path, options)?),
        })
    }

    /// [`Builder::insert`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert(&mut self, fingerprint: u128, id: u64) -> Result<()> {
        each!(self, one => one.insert(fit(fingerprint)?, id))
    }

    /// [`Builder::insert_named`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_named(&mut self, fingerprint: u128, id: u64, name: &str) -> Result<()> {
        each!(self, one => one.insert_named(fit(fingerprint)?, id, name))
    }

    /// [`Builder::note`].
    ///
    /// # Errors
    /// As there.
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        each!(self, one => one.note(id, note))
    }

    /// [`Builder::finish`].
    ///
    /// # Errors
    /// As there.
    pub fn finish(self) -> Result<AnySnapshot> {
        Ok(match self {
            AnyBuilder::Bits64(one) => AnySnapshot::Bits64(one.finish()?),
            AnyBuilder::Bits128(one) => AnySnapshot::Bits128(one.finish()?),
        })
    }
}
