//! Texts in, near-duplicates out: a live store that remembers documents.

use std::path::Path;

use crate::Profile;
use simstore::{Durability, Fingerprint, Insertion, Match, Options, Result, Store};

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
/// use simstore::Options;
/// use simstore_text::{Addition, Documents, Profile};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("pages");
/// let pages = Documents::<u64>::open(&path, Options::default(), Profile::default())?;
/// assert_eq!(pages.add(1, "The quick brown fox jumps over the lazy dog.")?, Addition::Remembered);
/// let Addition::DuplicateOf(earlier) = pages.add(2, "The quick  brown fox jumps over the LAZY dog!")? else { panic!() };
/// assert_eq!(earlier[0].id, Some(1));
/// // An ingest that was cut off carries on behind the highest id.
/// assert_eq!(pages.store().snapshot().highest_id(), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Documents<F: Fingerprint> {
    store: Store<F>,
    profile: Profile,
}

impl<F: Fingerprint> Documents<F> {
    /// Opens a store of documents, and makes it if there is none. How texts become fingerprints is kept with it.
    ///
    /// # Errors
    /// As [`Store::open`]; [`Error::Setting`](simstore::Error::Setting) if the store has another profile.
    pub fn open(path: &Path, options: Options, profile: Profile) -> Result<Self> {
        let store = Store::open(path, options.profile(&profile.to_string()))?;
        Ok(Documents { store, profile })
    }

    /// Remembers a text under an id, unless an earlier one is within the store's distance.
    ///
    /// # Errors
    /// As [`Store::insert_if_new`].
    pub fn add(&self, id: u64, text: &str) -> Result<Addition<F>> {
        self.add_with(id, text, None, Durability::Os)
    }

    /// [`Documents::add`] with a name for the document, acknowledged when it is as durable as said.
    ///
    /// # Errors
    /// As [`Store::insert_if_new_with`].
    pub fn add_with(
        &self,
        id: u64,
        text: &str,
        name: Option<&str>,
        durability: Durability,
    ) -> Result<Addition<F>> {
        let Some(simhash) = self.profile.fingerprint::<F>(text) else { return Ok(Addition::Empty) };
        Ok(match self.store.insert_if_new_with(simhash.fingerprint, id, name, durability)? {
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
