//! Texts in, near-duplicates out: a live store that remembers documents.

use std::path::Path;

use crate::Profile;
use simstore::{Durability, Fingerprint, Insertion, Match, Result, Store, StoreOptions};

/// What [`Documents::add`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addition<F> {
    /// Nothing like it was there; it is remembered now.
    Remembered,
    /// These earlier documents are nearly the same, the nearest first; it is not remembered.
    DuplicateOf(Vec<Match<F>>),
    /// The text has no features, and so no fingerprint; it is not remembered.
    Empty,
}

/// A store of documents: each is remembered if it is new, and answered with the earlier ones that are nearly the same if
/// it is not.
///
/// ```
/// use simstore::StoreOptions;
/// use simstore_text::{Addition, Documents, Profile};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pages");
/// let pages = Documents::<u64>::open(&path, StoreOptions::default(), Profile::default())?;
/// assert_eq!(pages.add("The quick brown fox jumps over the lazy dog.", 1)?, Addition::Remembered);
/// let Addition::DuplicateOf(earlier) = pages.add("The quick  brown fox jumps over the LAZY dog!", 2)? else { panic!() };
/// assert_eq!(earlier[0].id, Some(1));
/// // An ingest that was cut off carries on behind the highest id.
/// assert_eq!(pages.store().snapshot().highest_id(), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Documents<F: Fingerprint> {
    store: Store<F>,
    profile: Profile,
    durability: Durability,
}

impl<F: Fingerprint> Documents<F> {
    /// Opens a store of documents, and makes it if there is none. How texts become fingerprints is kept with it.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Setting`](simstore::Error::Setting) if the store has another profile.
    pub fn open(path: &Path, options: StoreOptions, profile: Profile) -> Result<Self> {
        let durability = options.durability;
        let store = Store::open(path, StoreOptions { profile: Some(profile.to_string()), ..options })?;
        Ok(Documents { store, profile, durability })
    }

    /// Remembers a text under an id, unless an earlier one is within the store's distance. Acknowledged as
    /// [`StoreOptions::durability`] says.
    ///
    /// # Errors
    /// As [`Store::insert_if_new`].
    pub fn add(&self, text: &str, id: u64) -> Result<Addition<F>> {
        self.add_if_new(text, id, None)
    }

    /// [`Documents::add`] for a document that has a name, up to 64 KiB of it.
    ///
    /// # Errors
    /// As [`Documents::add`]; [`Error::BadArgument`](simstore::Error::BadArgument) if the name is too long.
    pub fn add_named(&self, text: &str, id: u64, name: &str) -> Result<Addition<F>> {
        self.add_if_new(text, id, Some(name))
    }

    fn add_if_new(&self, text: &str, id: u64, name: Option<&str>) -> Result<Addition<F>> {
        let Some(simhash) = self.profile.fingerprint::<F>(text) else { return Ok(Addition::Empty) };
        let mut transaction = self.store.transaction();
        match name {
            Some(name) => transaction.insert_named(simhash.fingerprint, id, name)?,
            None => transaction.insert(simhash.fingerprint, id),
        }
        Ok(match transaction.commit_if_new(self.durability)? {
            Insertion::Inserted => Addition::Remembered,
            Insertion::DuplicateOf(matches) => Addition::DuplicateOf(matches),
        })
    }

    /// The documents that are nearly the same as a text; none for a text without features.
    ///
    /// # Errors
    /// As [`Snapshot::query`](simstore::Snapshot::query).
    pub fn find(&self, text: &str) -> Result<Vec<Match<F>>> {
        let Some(simhash) = self.profile.fingerprint::<F>(text) else { return Ok(Vec::new()) };
        let snapshot = self.store.snapshot();
        snapshot.query(simhash.fingerprint, snapshot.distance())
    }

    /// The store of the documents' fingerprints.
    pub fn store(&self) -> &Store<F> {
        &self.store
    }
}
