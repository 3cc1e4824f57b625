//! What is in a store already, and what comes into it.

use std::path::{Path, PathBuf};

use simstore::{Fingerprint, Options, Snapshot, Store};

use super::clusters::Cluster;
use super::corpus::Corpus;
use super::written::Clustered;
use crate::failure::{Failure, Outcome};
use crate::naming::Naming;

/// A store that documents are compared with.
pub(super) struct Against<F: Fingerprint> {
    path: PathBuf,
    /// Open for writing, so that nothing else comes in between what is found and what is added.
    store: Option<Store<F>>,
    /// `None` if there is no store yet.
    snapshot: Option<Snapshot<F>>,
}

impl<F: Fingerprint> Against<F> {
    pub(super) fn open(path: &Path, add: bool) -> Outcome<Self> {
        let exists = path.join("MANIFEST").exists();
        let store = if add && exists { Some(Store::<F>::open(path, Options::default())?) } else { None };
        let snapshot = match &store {
            Some(store) => Some(store.snapshot()),
            None if exists => Some(Snapshot::open(path)?),
            None => None,
        };
        Ok(Against { path: path.to_path_buf(), store, snapshot })
    }

    pub(super) fn snapshot(&self) -> Option<&Snapshot<F>> {
        self.snapshot.as_ref()
    }

    /// Adds what is kept, all at once. Returns how many.
    pub(super) fn add(
        &self,
        corpus: &Corpus<F>,
        clusters: &[Cluster<F>],
        distance: u32,
        profile: &str,
    ) -> Outcome<u64> {
        let new = match self.store {
            Some(_) => None,
            None => Some(Store::open(&self.path, Options::default().distance(distance).profile(profile))?),
        };
        let Some(store) = self.store.as_ref().or(new.as_ref()) else { return Ok(0) };
        let (mut naming, mut next_id) = Naming::of_store(&store.snapshot());
        let mut load = store.load()?;
        let mut added = 0;
        for document in Clustered::new(corpus.len(), clusters).kept() {
            let Some(fingerprint) = corpus.fingerprint(document) else { continue };
            let (id, name) = naming.assign(corpus.names.id(document).into(), next_id).map_err(|reason| {
                Failure::Failed(format!("{}: nothing was added: {reason}", self.path.display()))
            })?;
            match name {
                None => load.insert(fingerprint, id)?,
                Some(name) => {
                    load.insert_named(fingerprint, id, &name)?;
                    next_id = id.checked_add(1);
                }
            }
            added += 1;
        }
        load.finish()?;
        Ok(added)
    }
}
