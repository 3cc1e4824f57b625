//! Deletes documents from a store.
//!
//! A store has pairs of fingerprint and id. A deletion removes the pair of one document, all pairs with an id or name, or all
//! pairs with a fingerprint.
//!
//! ```
//! use simstore::{Store, StoreOptions};
//! use simstore_io::DocumentId;
//! use simstore_corpus::delete::{delete_ids, Deletion};
//!
//! # let folder = tempfile::tempdir().unwrap();
//! let store = Store::<u64>::open(&folder.path().join("pages"), StoreOptions::default())?;
//! store.insert_named(0x0123_4567_89ab_cdef, 0, "a.html")?;
//! store.insert_named(0x0123_4567_89ab_cdef, 1, "b.html")?;
//! let mut deletion = Deletion::new(&store, false);
//! deletion.push(0x0123_4567_89ab_cdef, DocumentId::Name("a.html".to_owned()))?;
//! assert_eq!(deletion.finish()?.deleted, 1);
//! let ids = delete_ids(&store, &["b.html".to_owned(), "c.html".to_owned()])?;
//! assert_eq!((ids.deleted, ids.missing), (1, vec!["c.html".to_owned()]));
//! # Ok::<(), simstore::Error>(())
//! ```

use std::collections::{HashMap, HashSet};

use simstore::{Durability, Error, Fingerprint, Result, Snapshot, Store};
use simstore_text::{MinHasher, Profile, SimilarSettings};

use crate::{InputCounts, InputKind, Inputs, Observer};
use simstore_io::DocumentId;
use simstore_io::document::names_from_bytes;

/// Number of documents that are looked up in the store together.
const LOOKUP_BATCH_DOCUMENTS: usize = 1 << 16;
/// A transaction is committed when it takes this many bytes in the log, and another transaction is started.
const BATCH_TRANSACTION_BYTES: usize = 1 << 20;
/// [`delete_ids`] starts another transaction when the current one takes this many bytes in the log. Smaller deletions take one
/// transaction, so they are atomic. A transaction could be four times as large, but it is held in memory.
const ATOMIC_TRANSACTION_BYTES: usize = 1 << 28;

/// Result of deleting documents by their fingerprints or texts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeletionCounts {
    /// Number of requested documents that the store had, and that are now deleted.
    pub deleted: u64,
    /// Number of requested documents that the store did not have.
    pub missing: u64,
}

/// Deletes the documents or fingerprints of inputs from a store, and waits until the deletion is on disk. Deletes the stored
/// documents with the same fingerprint and the same id or name. With `all_ids`, deletes all stored documents with the same
/// fingerprint. A store of [similar documents](simstore_text::open_similar_store) compares texts instead of fingerprints.
///
/// # Errors
/// Errors of [`Inputs::visit`] and of the store. [`Error::BadArgument`] for fingerprints, if the store is one of similar
/// documents.
pub fn delete_inputs<F: Fingerprint>(
    store: &Store<F>,
    inputs: &Inputs,
    profile: &Profile,
    all_ids: bool,
    observer: &dyn Observer,
) -> Result<(InputCounts, DeletionCounts)> {
    let Some(settings) = SimilarSettings::from_store(&store.snapshot())? else {
        let mut deletion = Deletion::new(store, all_ids);
        let counts = inputs.visit(profile, observer, |item| match item.fingerprint {
            Some(fingerprint) => deletion.push(fingerprint, item.id),
            None => Ok(()),
        })?;
        return Ok((counts, deletion.finish()?));
    };
    if inputs.kind()? == InputKind::Fingerprints {
        return Err(Error::BadArgument(format!(
            "{}: in a store of similar documents, delete documents by id, name or text, not by fingerprint",
            store.snapshot().path().display()
        )));
    }
    let mut deleted = DeletionCounts::default();
    let counts = inputs.visit_with_signatures::<F>(&MinHasher::new(profile.clone()), observer, |item| {
        let (Some(signature), Some(first)) = (item.signature.as_ref(), item.fingerprint) else {
            return Ok(());
        };
        let snapshot = store.snapshot();
        let mut transaction = store.transaction();
        let mut is_stored = false;
        for id in snapshot.query(first, 0)?.into_iter().filter_map(|found| found.id) {
            let document_id = snapshot.name(id)?.unwrap_or_else(|| id.to_string());
            let is_same = settings.signature(&snapshot, id)?.as_ref() == Some(signature);
            if is_same && (all_ids || document_id == item.id.to_string()) {
                settings.delete(&mut transaction, signature, id);
                is_stored = true;
            }
        }
        transaction.commit(Durability::Os)?;
        *(if is_stored { &mut deleted.deleted } else { &mut deleted.missing }) += 1;
        Ok(())
    })?;
    store.sync()?;
    Ok((counts, deleted))
}

/// Deletes documents by fingerprint and id, in batches of 65,536 documents.
#[derive(Debug)]
pub struct Deletion<'a, F: Fingerprint> {
    store: &'a Store<F>,
    all_ids: bool,
    documents: Vec<(F, DocumentId)>,
    deleted: DeletionCounts,
}

impl<'a, F: Fingerprint> Deletion<'a, F> {
    /// Starts a deletion. With `all_ids`, each fingerprint is deleted with all of its ids, not only with the given id.
    pub fn new(store: &'a Store<F>, all_ids: bool) -> Self {
        Deletion { store, all_ids, documents: Vec::new(), deleted: DeletionCounts::default() }
    }

    /// Adds a document to the batch. When the batch is full, deletes its documents from the store.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn push(&mut self, fingerprint: F, id: DocumentId) -> Result<()> {
        self.documents.push((fingerprint, id));
        if self.documents.len() == LOOKUP_BATCH_DOCUMENTS { self.delete() } else { Ok(()) }
    }

    /// Deletes the remaining documents, and waits until the deletion is on disk.
    ///
    /// # Errors
    /// Errors of the store.
    pub fn finish(mut self) -> Result<DeletionCounts> {
        self.delete()?;
        self.store.sync()?;
        Ok(self.deleted)
    }

    /// Deletes the documents of the batch from the store. Queries each fingerprint once, and reads each name once.
    fn delete(&mut self) -> Result<()> {
        let documents = std::mem::take(&mut self.documents);
        let snapshot = self.store.snapshot();
        let mut fingerprints: Vec<F> = documents.iter().map(|&(fingerprint, _)| fingerprint).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        let found = snapshot.batch_query(&fingerprints, 0)?;
        let mut ids: Vec<u64> = found.iter().filter_map(|found| found.found.id).collect();
        ids.sort_unstable();
        ids.dedup();
        let all = self.all_ids || !snapshot.keeps_ids();
        let names = if all { vec![None; ids.len()] } else { snapshot.names_of(&ids)? };
        // Stored numeric ids by fingerprint and, unless all ids are deleted, by document id.
        let mut stored: HashMap<(F, Option<DocumentId>), Vec<u64>> = HashMap::new();
        for found in found.iter().map(|found| found.found) {
            let id = found.id.unwrap_or(0);
            let document_id =
                ids.binary_search(&id).ok().and_then(|at| names[at].clone()).map(DocumentId::Name);
            let document_id = if all { None } else { Some(document_id.unwrap_or(DocumentId::Number(id))) };
            stored.entry((found.fingerprint, document_id)).or_default().push(id);
        }
        let mut pairs = Vec::new();
        for (fingerprint, id) in &documents {
            let mut take = |document_id| stored.remove(&(*fingerprint, document_id));
            let matching_ids = match id {
                _ if all => take(None),
                // A number may also be a name in the store.
                DocumentId::Number(number) => {
                    let named = take(Some(DocumentId::Name(number.to_string())));
                    let numbered = take(Some(id.clone()));
                    named.into_iter().chain(numbered).reduce(|named, numbered| [named, numbered].concat())
                }
                DocumentId::Name(_) => take(Some(id.clone())),
            };
            *(if matching_ids.is_some() { &mut self.deleted.deleted } else { &mut self.deleted.missing }) +=
                1;
            pairs.extend(matching_ids.into_iter().flatten().map(|id| (*fingerprint, id)));
        }
        delete_pairs(self.store, pairs)
    }
}

/// Deletes pairs of fingerprint and numeric id from the store, in several transactions if there are many.
fn delete_pairs<F: Fingerprint>(store: &Store<F>, pairs: impl IntoIterator<Item = (F, u64)>) -> Result<()> {
    let mut transaction = store.transaction();
    for (fingerprint, id) in pairs {
        transaction.delete(fingerprint, id);
        if transaction.bytes() >= BATCH_TRANSACTION_BYTES {
            std::mem::replace(&mut transaction, store.transaction()).commit(Durability::Os)?;
        }
    }
    transaction.commit(Durability::Os)
}

/// Result of deleting documents by their ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedIds {
    /// Number of distinct ids requested.
    pub requested: u64,
    /// Number of requested ids that the store had, and whose documents are now deleted.
    pub deleted: u64,
    /// Requested ids that the store did not have, in the order of the request.
    pub missing: Vec<String>,
}

/// Deletes documents with all of their fingerprints, and waits until the deletion is on disk. `ids` selects the documents:
/// the id of a document is its name if it has one, else its number.
///
/// The deletion is atomic up to about 15 million pairs of fingerprint and id. A larger deletion takes several
/// transactions, but each document is deleted in a single one. The function reads all ids of the store once, because ids
/// have no index.
///
/// # Errors
/// [`Error::BadArgument`] if the store keeps no ids. Errors of the store.
pub fn delete_ids<F: Fingerprint>(store: &Store<F>, ids: &[String]) -> Result<DeletedIds> {
    let snapshot = store.snapshot();
    if !snapshot.keeps_ids() {
        let path = snapshot.path().display();
        return Err(Error::BadArgument(format!("{path} has no ids: delete by fingerprint")));
    }
    let mut names = HashSet::new();
    let requested: Vec<&String> = ids.iter().filter(|&id| names.insert(id.clone())).collect();
    let numbers: HashMap<u64, &String> = (requested.iter())
        .filter_map(|&id| id.parse::<u64>().ok().filter(|number| number.to_string() == *id).zip(Some(id)))
        .collect();
    let mut found: HashSet<String> = HashSet::new();
    let mut pairs = Vec::new();
    for pair in snapshot.pairs_of_names(&names)? {
        found.extend(pair.name);
        pairs.push((pair.id, pair.fingerprint));
    }
    // A document with a name is not deleted by its number.
    for pair in snapshot.pairs_of_ids(&numbers.keys().copied().collect())? {
        if pair.name.is_none() {
            found.insert(numbers[&pair.id].clone());
            pairs.push((pair.id, pair.fingerprint));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    let mut transaction = store.transaction();
    for document in pairs.chunk_by(|a, b| a.0 == b.0) {
        document.iter().for_each(|&(id, fingerprint)| transaction.delete(fingerprint, id));
        if transaction.bytes() >= ATOMIC_TRANSACTION_BYTES {
            std::mem::replace(&mut transaction, store.transaction()).commit(Durability::Os)?;
        }
    }
    transaction.commit(Durability::Os)?;
    store.sync()?;
    let missing = requested.iter().filter(|&&id| !found.contains(id)).map(|&id| id.clone()).collect();
    Ok(DeletedIds { requested: requested.len() as u64, deleted: found.len() as u64, missing })
}

/// Returns the ids for the entries of a list, such as a list of paths from `find -print0`. An entry is the path of a file,
/// or an id that is not [escaped](simstore_io::escape). Both readings give the same id, except if the entry is not UTF-8,
/// or contains a sequence such as `\x41`. In these cases, the entry is read as a path if the store has a document with
/// this path, else as an id.
///
/// # Errors
/// Errors of the store.
pub fn ids_from_bytes<F: Fingerprint>(snapshot: &Snapshot<F>, entries: &[Vec<u8>]) -> Result<Vec<String>> {
    let possible: Vec<Vec<String>> = entries.iter().map(|entry| names_from_bytes(entry)).collect();
    let path_names: HashSet<String> =
        possible.iter().filter_map(|names| names[1..].first()).cloned().collect();
    let pairs = if path_names.is_empty() { Vec::new() } else { snapshot.pairs_of_names(&path_names)? };
    let stored: HashSet<String> = pairs.into_iter().filter_map(|pair| pair.name).collect();
    let choose = |mut names: Vec<String>| {
        let is_path = names.last().is_some_and(|path_name| stored.contains(path_name));
        names.swap_remove(if is_path { names.len() - 1 } else { 0 })
    };
    Ok(possible.into_iter().map(choose).collect())
}

#[cfg(test)]
mod tests {
    use simstore::StoreOptions;
    use simstore_text::{SimilarAddition, SimilarDocuments};

    use super::*;

    #[test]
    fn a_store_without_ids_has_none_to_delete() {
        let folder = tempfile::tempdir().unwrap();
        let options = StoreOptions { ids: Some(false), ..StoreOptions::default() };
        let store = Store::<u64>::open(&folder.path().join("s"), options).unwrap();
        store.insert(7, 0).unwrap();
        let error = delete_ids(&store, &["7".to_owned()]).unwrap_err();
        assert!(matches!(&error, Error::BadArgument(reason) if reason.contains("has no ids")), "{error}");
        let mut deletion = Deletion::new(&store, false);
        [7, 8].iter().for_each(|&fingerprint| deletion.push(fingerprint, DocumentId::Number(1)).unwrap());
        assert_eq!(deletion.finish().unwrap(), DeletionCounts { deleted: 1, missing: 1 });
        assert!(store.snapshot().query(7, 0).unwrap().is_empty());
    }

    #[test]
    fn numbers_are_names_too_and_each_id_counts_once() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::<u64>::open(&folder.path().join("s"), StoreOptions::default()).unwrap();
        store.insert_named(5, 0, "17").unwrap();
        store.insert(6, 17).unwrap();
        store.insert(7, 18).unwrap();
        let ids = ["17", "017", "17", "18"].map(str::to_owned);
        let deleted = delete_ids(&store, &ids).unwrap();
        assert_eq!(deleted, DeletedIds { requested: 3, deleted: 2, missing: vec!["017".to_owned()] });
        assert!((5..8).all(|fingerprint| store.snapshot().query(fingerprint, 0).unwrap().is_empty()));
    }

    /// In a [store of similar documents](simstore_text::open_similar_store), a document has several fingerprints and a note
    /// (its signature and text). One transaction deletes all of them.
    #[test]
    fn ids_are_deleted_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let settings = SimilarSettings::new(0.8, 0.95).unwrap();
        let pages =
            SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings).unwrap();
        for id in 0..3 {
            let text: String = (0..60).map(|word| format!("word{} ", word * (id + 2))).collect();
            assert_eq!(pages.add(&text, id, None).unwrap(), SimilarAddition::Added);
        }
        drop(pages);
        let records = || {
            let store = Snapshot::<u64>::open(&path).unwrap();
            store.logs().iter().map(|log| log.records).sum::<u64>()
        };
        let before = records();
        let store = Store::<u64>::open(&path, StoreOptions::default()).unwrap();
        let deleted = delete_ids(&store, &["0".to_owned(), "2".to_owned()]).unwrap();
        assert_eq!(deleted.deleted, 2);
        let left: Vec<u64> = store.snapshot().iter().map(|entry| entry.unwrap().id.unwrap()).collect();
        assert!(!left.is_empty() && left.iter().all(|&id| id == 1), "{left:?}");
        assert_eq!(store.snapshot().note(2).unwrap(), None);
        drop(store);
        assert_eq!(records() - before, 1);
    }

    #[test]
    fn all_ids_of_a_fingerprint_or_those_that_are_meant() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::<u64>::open(&folder.path().join("s"), StoreOptions::default()).unwrap();
        (0..4).for_each(|id| store.insert(7, id).unwrap());
        let mut deletion = Deletion::new(&store, false);
        [1, 9].iter().for_each(|&id| deletion.push(7, DocumentId::Number(id)).unwrap());
        assert_eq!(deletion.finish().unwrap(), DeletionCounts { deleted: 1, missing: 1 });
        assert_eq!(store.snapshot().query(7, 0).unwrap().len(), 3);
        let mut deletion = Deletion::new(&store, true);
        deletion.push(7, DocumentId::Number(9)).unwrap();
        assert_eq!(deletion.finish().unwrap(), DeletionCounts { deleted: 1, missing: 0 });
        assert!(store.snapshot().query(7, 0).unwrap().is_empty());
    }
}
