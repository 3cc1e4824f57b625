//! How documents are added, and what comes of it.

use super::same_id::SameId;
use crate::Counts;
use simstore::Durability;

/// How documents are added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AddOptions {
    /// Add only what is within no stored fingerprint's distance or, in a store of similar documents, similar to none; goes with [`SameId::Both`] alone.
    pub if_new: bool,
    /// What becomes of a document whose id is stored with another fingerprint.
    pub same_id: SameId,
    /// When what was added counts as added.
    pub durability: Durability,
    /// Read files from their beginning, also if they have been read before.
    pub again: bool,
    /// Take every id as a name, also numbers.
    pub names: bool,
    /// In a store of similar documents, add a text whose name another text has. Such documents are refused otherwise.
    pub shared_names: bool,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// What was read, and what had been read before.
    pub counts: Counts,
    /// Documents that were stored.
    pub added: u64,
    /// Documents that were not stored, since something near is, under [`AddOptions::if_new`].
    pub duplicates: u64,
    /// Documents that took the place of others, by [`SameId::Replace`].
    pub replaced: u64,
    /// Documents that were stored before, with the same id and the same fingerprint.
    pub known: u64,
    /// Documents that an earlier call had already read.
    pub carried_on: u64,
    /// Files in which other documents stand than those that were read before.
    pub changed: u64,
}
