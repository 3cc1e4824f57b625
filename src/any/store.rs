//! Stores of any width, and what is written to them together.

use std::path::Path;

use super::fit::{all_wide, fit, wide_insertion};
use super::forward::forward;
use super::{AnySnapshot, AnyWidth, Width};
use crate::error::{Error, Result};
use crate::options::{Durability, StoreOptions};
use crate::segment::Match;
use crate::store::{CompactOptions, Insertion, Store, Transaction, is_store, stored_bits};

/// A [`Store`] of any width.
pub type AnyStore = AnyWidth<Store<u64>, Store<u128>>;

impl AnyStore {
    /// [`Store::open`], whichever width the store has. `bits`, 64 or 128, is the width that it should have; where it is
    /// `None`, a store that is made gets 64.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Width`] if the store has another width than the one asked for, and
    /// [`Error::BadArgument`] if there is no such width.
    pub fn open(path: &Path, bits: Option<u32>, options: StoreOptions) -> Result<Self> {
        let bits = match bits {
            None if is_store(path) => stored_bits(path)?,
            asked => asked.unwrap_or(64),
        };
        Ok(match Width::of(bits)? {
            Width::Bits64(()) => AnyStore::Bits64(Store::open(path, options)?),
            Width::Bits128(()) => AnyStore::Bits128(Store::open(path, options)?),
        })
    }

    /// [`Store::insert`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert(&self, fingerprint: u128, id: u64) -> Result<()> {
        each_width!(self, one => one.insert(fit(fingerprint)?, id))
    }

    /// [`Store::insert_named`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_named(&self, fingerprint: u128, id: u64, name: &str) -> Result<()> {
        each_width!(self, one => one.insert_named(fit(fingerprint)?, id, name))
    }

    /// [`Store::insert_if_new`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_if_new(&self, fingerprint: u128, id: u64) -> Result<Insertion<u128>> {
        each_width!(self, one => one.insert_if_new(fit(fingerprint)?, id).map(wide_insertion))
    }

    /// [`Store::delete`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn delete(&self, fingerprint: u128, id: u64) -> Result<bool> {
        each_width!(self, one => one.delete(fit(fingerprint)?, id))
    }

    /// [`Store::delete_all`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if a fingerprint does not fit.
    pub fn delete_all(&self, pairs: &[(u128, u64)], durability: Durability) -> Result<Vec<bool>> {
        each_width!(self, one => {
            let fitted = pairs.iter().map(|&(fingerprint, id)| Ok((fit(fingerprint)?, id)));
            one.delete_all(&fitted.collect::<Result<Vec<_>>>()?, durability)
        })
    }

    /// [`Store::transaction`].
    pub fn transaction(&self) -> AnyTransaction<'_> {
        self.as_ref().map(Store::transaction, Store::transaction)
    }

    /// [`Store::snapshot`].
    pub fn snapshot(&self) -> AnySnapshot {
        self.as_ref().map(Store::snapshot, Store::snapshot)
    }

    /// [`Store::query`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn query(&self, fingerprint: u128, distance: u32) -> Result<Vec<Match<u128>>> {
        each_width!(self, one => one.query(fit(fingerprint)?, distance).map(all_wide))
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
pub type AnyTransaction<'a> = AnyWidth<Transaction<'a, u64>, Transaction<'a, u128>>;

impl AnyTransaction<'_> {
    /// [`Transaction::insert`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert(&mut self, fingerprint: u128, id: u64) -> Result<()> {
        each_width!(self, one => one.insert(fit(fingerprint)?, id));
        Ok(())
    }

    /// [`Transaction::insert_named`].
    ///
    /// # Errors
    /// As there; [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn insert_named(&mut self, fingerprint: u128, id: u64, name: &str) -> Result<()> {
        each_width!(self, one => one.insert_named(fit(fingerprint)?, id, name))
    }

    /// [`Transaction::delete`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the fingerprint does not fit.
    pub fn delete(&mut self, fingerprint: u128, id: u64) -> Result<()> {
        each_width!(self, one => one.delete(fit(fingerprint)?, id));
        Ok(())
    }

    /// [`Transaction::mark`].
    ///
    /// # Errors
    /// As there.
    pub fn mark(&mut self, key: &str, value: &[u8]) -> Result<()> {
        each_width!(self, one => one.mark(key, value))
    }

    /// [`Transaction::note`].
    ///
    /// # Errors
    /// As there.
    pub fn note(&mut self, id: u64, note: &[u8]) -> Result<()> {
        each_width!(self, one => one.note(id, note))
    }

    /// [`Transaction::bytes`].
    pub fn bytes(&self) -> usize {
        each_width!(self, one => one.bytes())
    }

    /// [`Transaction::commit`].
    ///
    /// # Errors
    /// As there.
    pub fn commit(self, durability: Durability) -> Result<()> {
        each_width!(self, one => one.commit(durability))
    }

    /// [`Transaction::commit_if_new`].
    ///
    /// # Errors
    /// As there.
    pub fn commit_if_new(self, durability: Durability) -> Result<Insertion<u128>> {
        each_width!(self, one => one.commit_if_new(durability).map(wide_insertion))
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
        each_width!(self, one => {
            let insertion = one.commit_unless(durability, |found| is_duplicate(&all_wide(found.to_vec())))?;
            Ok(wide_insertion(insertion))
        })
    }
}
