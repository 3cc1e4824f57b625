//! Deleting documents from a store, by id or name.
//!
//! A deletion removes a fingerprint with an id: a document as it was added, or all fingerprints with an id or name.
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
use simstore_text::{Profile, SimilarSettings, Sketcher};

use crate::{Counts, InputKind, Inputs, Watch};
use simstore_io::DocumentId;
use simstore_io::document::listed_names_of_bytes;

/// Documents that are looked up in the store together.
const AT_ONCE: usize = 1 << 16;
/// A transaction is committed when it takes so many bytes of the log.
const TRANSACTION_BYTES: usize = 1 << 20;
/// The same for a deletion in one step: a quarter of the most that a transaction takes, which is in memory meanwhile.
const STEP_BYTES: usize = 1 << 28;

/// How many documents were stored, and are not any more, and how many were not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Deleted {
    /// Documents that were stored.
    pub deleted: u64,
    /// Documents that were not.
    pub missing: u64,
}

/// Deletes what inputs hold, each under what it is called, or with `all_ids` under all of its ids; waits until that is on the disk.
/// In a store of [similar documents](simstore_text::open_similar) a document is all that is kept of its text.
///
/// # Errors
/// The errors of [`Inputs::visit`] and of the store; [`Error::BadArgument`] for fingerprints, in a store of similar documents.
pub fn delete_inputs<F: Fingerprint>(
    store: &Store<F>,
    inputs: &Inputs,
    profile: &Profile,
    all_ids: bool,
    watch: &dyn Watch,
) -> Result<(Counts, Deleted)> {
    let Some(settings) = SimilarSettings::of_store(&store.snapshot())? else {
        let mut deletion = Deletion::new(store, all_ids);
        let counts = inputs.visit(profile, watch, |item| match item.fingerprint {
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
    let mut deleted = Deleted::default();
    let counts = inputs.visit_sketched::<F>(&Sketcher::new(profile.clone()), watch, |item| {
        let (Some(sketched), Some(first)) = (item.sketched.as_ref(), item.fingerprint) else {
            return Ok(());
        };
        let snapshot = store.snapshot();
        let mut transaction = store.transaction();
        let mut is_there = false;
        for id in snapshot.query(first, 0)?.into_iter().filter_map(|found| found.id) {
            let called = snapshot.name(id)?.unwrap_or_else(|| id.to_string());
            let is_same = settings.sketched(&snapshot, id)?.as_ref() == Some(sketched);
            if is_same && (all_ids || called == item.id.to_string()) {
                settings.delete(&mut transaction, sketched, id);
                is_there = true;
            }
        }
        transaction.commit(Durability::Os)?;
        *(if is_there { &mut deleted.deleted } else { &mut deleted.missing }) += 1;
        Ok(())
    })?;
    store.sync()?;
    Ok((counts, deleted))
}

/// A deletion of documents by fingerprint and id, some ten thousand at a time.
#[derive(Debug)]
pub struct Deletion<'a, F: Fingerprint> {
    store: &'a Store<F>,
    all_ids: bool,
    documents: Vec<(F, DocumentId)>,
    deleted: Deleted,
}

impl<'a, F: Fingerprint> Deletion<'a, F> {
    /// Nothing is deleted yet. With `all_ids`, each fingerprint goes with all of its ids.
    pub fn new(store: &'a Store<F>, all_ids: bool) -> Self {
        Deletion { store, all_ids, documents: Vec::new(), deleted: Deleted::default() }
    }

    /// One more document to delete.
    ///
    /// # Errors
    /// Those of the store.
    pub fn push(&mut self, fingerprint: F, id: DocumentId) -> Result<()> {
        self.documents.push((fingerprint, id));
        if self.documents.len() == AT_ONCE { self.delete() } else { Ok(()) }
    }

    /// Deletes what is left to delete, and waits until all is on the disk.
    ///
    /// # Errors
    /// Those of the store.
    pub fn finish(mut self) -> Result<Deleted> {
        self.delete()?;
        self.store.sync()?;
        Ok(self.deleted)
    }

    /// The store is asked once for each fingerprint, and no name is read twice.
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
        // The ids of each stored fingerprint; if only some ids are meant, by id or name.
        let mut stored: HashMap<(F, Option<DocumentId>), Vec<u64>> = HashMap::new();
        for found in found.iter().map(|found| found.found) {
            let id = found.id.unwrap_or(0);
            let called = ids.binary_search(&id).ok().and_then(|at| names[at].clone()).map(DocumentId::Name);
            let called = if all { None } else { Some(called.unwrap_or(DocumentId::Number(id))) };
            stored.entry((found.fingerprint, called)).or_default().push(id);
        }
        let mut pairs = Vec::new();
        for (fingerprint, id) in &documents {
            let mut take = |called| stored.remove(&(*fingerprint, called));
            let meant = match id {
                _ if all => take(None),
                // In a store of names a number is one, too.
                DocumentId::Number(number) => {
                    let named = take(Some(DocumentId::Name(number.to_string())));
                    let numbered = take(Some(id.clone()));
                    named.into_iter().chain(numbered).reduce(|named, numbered| [named, numbered].concat())
                }
                DocumentId::Name(_) => take(Some(id.clone())),
            };
            *(if meant.is_some() { &mut self.deleted.deleted } else { &mut self.deleted.missing }) += 1;
            pairs.extend(meant.into_iter().flatten().map(|id| (*fingerprint, id)));
        }
        delete_pairs(self.store, pairs)
    }
}

/// Deletes pairs that are stored.
fn delete_pairs<F: Fingerprint>(store: &Store<F>, pairs: impl IntoIterator<Item = (F, u64)>) -> Result<()> {
    let mut transaction = store.transaction();
    for (fingerprint, id) in pairs {
        transaction.delete(fingerprint, id);
        if transaction.bytes() >= TRANSACTION_BYTES {
            std::mem::replace(&mut transaction, store.transaction()).commit(Durability::Os)?;
        }
    }
    transaction.commit(Durability::Os)
}

/// The result of deleting ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedIds {
    /// How many different ones were asked for.
    pub asked: u64,
    /// How many of them were stored.
    pub deleted: u64,
    /// Those that were not, in their order.
    pub missing: Vec<String>,
}

/// Deletes all fingerprints of documents by their ids or names, and waits until the deletion is on the disk. All is one step, which is done or not, whenever the process ends; only above some 15 million pairs there are several, and
/// each document is in one of them. The id of a document is its name if it has one, else its number. Ids have no index: all of them
/// are read once, however many are asked for.
///
/// # Errors
/// [`Error::BadArgument`] for a store that keeps no ids; else the errors of the store.
pub fn delete_ids<F: Fingerprint>(store: &Store<F>, ids: &[String]) -> Result<DeletedIds> {
    let snapshot = store.snapshot();
    if !snapshot.keeps_ids() {
        let path = snapshot.path().display();
        return Err(Error::BadArgument(format!("{path} has no ids: delete by fingerprint")));
    }
    let mut names = HashSet::new();
    let asked: Vec<&String> = ids.iter().filter(|&id| names.insert(id.clone())).collect();
    let numbers: HashMap<u64, &String> = (asked.iter())
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
        if transaction.bytes() >= STEP_BYTES {
            std::mem::replace(&mut transaction, store.transaction()).commit(Durability::Os)?;
        }
    }
    transaction.commit(Durability::Os)?;
    store.sync()?;
    let missing = asked.iter().filter(|&&id| !found.contains(id)).map(|&id| id.clone()).collect();
    Ok(DeletedIds { asked: asked.len() as u64, deleted: found.len() as u64, missing })
}

/// The ids of the entries of a list whose entries end in zero bytes: each is the path of a file or an id, unescaped. The two differ only
/// if the entry is not UTF-8 or holds a sequence such as `\x41`: then it means the path if the store has its document, else the id.
///
/// # Errors
/// The errors of the store.
pub fn ids_of_bytes<F: Fingerprint>(snapshot: &Snapshot<F>, entries: &[Vec<u8>]) -> Result<Vec<String>> {
    let possible: Vec<Vec<String>> = entries.iter().map(|entry| listed_names_of_bytes(entry)).collect();
    let of_paths: HashSet<String> = possible.iter().filter_map(|names| names[1..].first()).cloned().collect();
    let pairs = if of_paths.is_empty() { Vec::new() } else { snapshot.pairs_of_names(&of_paths)? };
    let stored: HashSet<String> = pairs.into_iter().filter_map(|pair| pair.name).collect();
    let choose = |mut names: Vec<String>| {
        let is_path = names.last().is_some_and(|of_path| stored.contains(of_path));
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
        assert_eq!(deletion.finish().unwrap(), Deleted { deleted: 1, missing: 1 });
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
        assert_eq!(deleted, DeletedIds { asked: 3, deleted: 2, missing: vec!["017".to_owned()] });
        assert!((5..8).all(|fingerprint| store.snapshot().query(fingerprint, 0).unwrap().is_empty()));
    }

    /// A store of similar documents has several fingerprints of each, and a note: they go together.
    #[test]
    fn ids_are_deleted_in_one_step() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s");
        let settings = SimilarSettings::new(0.8, 0.95).unwrap();
        let pages =
            SimilarDocuments::open(&path, StoreOptions::default(), Profile::shingles(), settings).unwrap();
        for id in 0..3 {
            let text: String = (0..60).map(|word| format!("word{} ", word * (id + 2))).collect();
            assert_eq!(pages.add(&text, id, None).unwrap(), SimilarAddition::Remembered);
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
        assert_eq!(deletion.finish().unwrap(), Deleted { deleted: 1, missing: 1 });
        assert_eq!(store.snapshot().query(7, 0).unwrap().len(), 3);
        let mut deletion = Deletion::new(&store, true);
        deletion.push(7, DocumentId::Number(9)).unwrap();
        assert_eq!(deletion.finish().unwrap(), Deleted { deleted: 1, missing: 0 });
        assert!(store.snapshot().query(7, 0).unwrap().is_empty());
    }
}
