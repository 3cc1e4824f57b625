//! Adds documents to the store in batches, and records how far their files have been read.

use std::collections::{BTreeMap, HashSet};

use super::duplicate_observer::DuplicateObserver;
use super::name_cache::NameCache;
use super::options::{AddOptions, AddResult};
use super::read_position::ReadCheckpoint;
use super::same_id::{SameIdPolicy, StoredPairs};
use super::similar_lookup::SimilarLookup;
use super::source_files::SourceFiles;
use crate::id_scheme::{IdScheme, NO_FREE_ID};
use crate::inputs::item::MalformedHandler;
use crate::{InputCounts, Item};
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Insertion, Match, Result, Store, Transaction};
use simstore_io::DocumentId;
use simstore_io::document::escape_text;
use simstore_text::{DocumentComparer, EncodedDocument};

/// Number of documents after which a batch is written. With [`AddOptions::if_new`], each document is written immediately.
const BATCH_DOCUMENTS: usize = 1024;
/// A batch is written when the checkpoints of this many files have changed.
const BATCH_FILES: usize = 64;
/// Number of documents whose ids are looked up together.
const ID_BATCH_DOCUMENTS: usize = 1 << 17;
/// A batch is written when it takes this many bytes in the log.
const BATCH_BYTES: usize = 1 << 20;

/// The file whose documents are being added.
struct OpenFile {
    /// Index of the file in [`SourceFiles::to_read`].
    index: usize,
    checkpoint: ReadCheckpoint,
}

/// Adds new documents to a store in batches, and skips documents that an earlier job has already read from the same file.
pub(super) struct DocumentAdder<'a, F: Fingerprint, L> {
    store: &'a Store<F>,
    options: &'a AddOptions,
    sources: &'a SourceFiles,
    duplicate_observer: &'a mut L,
    open_file: Option<OpenFile>,
    batch: Transaction<'a, F>,
    /// Number of new documents read since the last write, including documents that are not inserted, such as duplicates.
    pending: usize,
    /// Number of documents inserted in the batch.
    in_batch: u64,
    /// Checkpoints changed since the last write, keyed by the metadata key of the file.
    checkpoints: BTreeMap<&'a str, ReadCheckpoint>,
    name_cache: NameCache<F>,
    /// Search for similar documents; `None` unless the store is a
    /// [store of similar documents](simstore_text::open_similar_store).
    similar: Option<SimilarLookup>,
    /// Documents that wait until their ids are looked up together, before they are stored.
    queue: Vec<Item<F>>,
    /// Whether [`take`](Self::take) has failed for a document.
    has_failed: bool,
    id_scheme: IdScheme,
    /// Whether the store keeps ids.
    keeps_ids: bool,
    /// Next free numeric id, for documents that have a name or no id. `None` if the greatest id, 2^64 - 1, is in use.
    next_id: Option<u64>,
    /// Handler of documents that cannot be added.
    malformed: MalformedHandler<'a>,
    added: AddResult,
}

impl<'a, F: Fingerprint, L: DuplicateObserver<F>> DocumentAdder<'a, F, L> {
    pub(super) fn new(
        store: &'a Store<F>,
        options: &'a AddOptions,
        sources: &'a SourceFiles,
        comparer: Option<DocumentComparer>,
        duplicate_observer: &'a mut L,
        malformed: MalformedHandler<'a>,
    ) -> Result<Self> {
        let snapshot = store.snapshot();
        let keeps_ids = snapshot.keeps_ids();
        if options.names && !keeps_ids {
            return Err(Error::Refused(format!(
                "{}: the store keeps no ids, and so no names: add to it without names, or to another store",
                snapshot.path().display()
            )));
        }
        let (of_store, next_id) = IdScheme::from_store(&snapshot);
        let mut added = AddResult {
            previously_read: sources.read_before,
            changed_files: sources.changed,
            ..AddResult::default()
        };
        added.counts.read = sources.read_before;
        Ok(DocumentAdder {
            store,
            options,
            sources,
            duplicate_observer,
            open_file: None,
            batch: store.transaction(),
            pending: 0,
            in_batch: 0,
            checkpoints: BTreeMap::new(),
            name_cache: NameCache::new(store.snapshot()),
            similar: comparer
                .map(|comparer| SimilarLookup::new(store, comparer, options.shared_names))
                .transpose()?,
            queue: Vec::new(),
            has_failed: false,
            keeps_ids,
            id_scheme: if options.names { IdScheme::Names } else { of_store },
            next_id,
            malformed,
            added,
        })
    }

    /// Adds the next document. The documents of a file must be passed in their order.
    pub(super) fn take(&mut self, item: Item<F>) -> Result<()> {
        self.has_failed = true;
        self.process(item)?;
        self.has_failed = false;
        Ok(())
    }

    fn process(&mut self, item: Item<F>) -> Result<()> {
        if !self.is_new(&item)? {
            self.added.counts.read += 1;
            self.added.previously_read += 1;
            return Ok(());
        }
        let is_full = if self.options.same_id == SameIdPolicy::KeepBoth {
            self.store(&item)?;
            self.added.counts.count(&item);
            self.pending + 1 >= BATCH_DOCUMENTS || self.checkpoints.len() >= BATCH_FILES
        } else {
            self.added.counts.count(&item);
            self.queue.push(item);
            self.queue.len() >= ID_BATCH_DOCUMENTS
        };
        self.pending += 1;
        if is_full { self.write() } else { Ok(()) }
    }

    /// Returns true if no earlier job has read the document. Adds the document to the checkpoint of its file.
    fn is_new(&mut self, item: &Item<F>) -> Result<bool> {
        let Some(index) = self.sources.index_of(&item.path) else { return Ok(true) };
        if self.open_file.as_ref().is_none_or(|file| file.index != index) {
            self.finish_file()?;
            self.open_file = Some(OpenFile { index, checkpoint: ReadCheckpoint::default() });
        }
        let Some(file) = &mut self.open_file else { return Ok(true) };
        let source = &self.sources.to_read[index];
        let before = file.checkpoint.end;
        file.checkpoint.push(item.line, item.checksum);
        if before.documents < source.start.documents {
            return Ok(false);
        }
        if before.documents == source.start.documents && before != source.start {
            return Err(source.concurrent_change_error());
        }
        if let Some(key) = &source.key {
            self.checkpoints.insert(key, file.checkpoint);
        }
        Ok(true)
    }

    /// Finishes the current file after its last document. Checks that the file still has the documents that an earlier job has
    /// read, and adds the checkpoint of the file to the checkpoints that are written later.
    fn finish_file(&mut self) -> Result<()> {
        let Some(OpenFile { index, checkpoint }) = self.open_file.take() else { return Ok(()) };
        let source = &self.sources.to_read[index];
        if checkpoint.end.documents <= source.start.documents && checkpoint.end != source.start {
            return Err(source.concurrent_change_error());
        }
        if let Some(key) = &source.key {
            self.checkpoints.insert(key, checkpoint);
        }
        Ok(())
    }

    fn store(&mut self, item: &Item<F>) -> Result<()> {
        let (id, name) = self.identify(item)?;
        let Some(fingerprint) = item.fingerprint else { return Ok(()) };
        if let (Some(similar), Some(signature)) = (&self.similar, item.signature.as_ref()) {
            let encoded = similar.encode(item, *signature)?;
            return self.store_similar(item, id, name.as_deref(), &encoded);
        }
        let is_stored = match &name {
            Some(name) => self.name_cache.insert(fingerprint, name)?,
            // An equal pair is stored once. It is looked up only if the document may be stored already.
            None if self.may_be_stored() => self.store.snapshot().contains_pair(fingerprint, id)?,
            None => false,
        };
        if is_stored {
            self.added.already_stored += 1;
            return Ok(());
        }
        self.insert(fingerprint, id, name.as_deref())?;
        if self.options.if_new {
            let earlier = self.write_unless(|_, _| Ok(true))?;
            if !earlier.is_empty() {
                self.added.duplicates += 1;
                if let Some(name) = &name {
                    self.name_cache.remove(fingerprint, name);
                }
                return self.duplicate_observer.near_duplicate(item, &earlier, &self.store.snapshot());
            }
        }
        self.reserve_id(id);
        Ok(())
    }

    /// Stores a document in a [store of similar documents](simstore_text::open_similar_store).
    fn store_similar(
        &mut self,
        item: &Item<F>,
        id: u64,
        name: Option<&str>,
        encoded: &EncodedDocument,
    ) -> Result<()> {
        let Some(similar) = &mut self.similar else { return Ok(()) };
        match similar.matches_stored(&self.store.snapshot(), encoded, id, name)? {
            None => {}
            Some(true) => {
                self.added.already_stored += 1;
                return Ok(());
            }
            Some(false) => {
                let label = name.map_or_else(
                    || format!("the id {id}"),
                    |name| format!("the name `{}`", escape_text(&excerpt(name))),
                );
                return Err(item
                    .malformed(format!("{label} is stored with another text; delete that document first")));
            }
        }
        encoded.insert(&mut self.batch, id, name)?;
        self.in_batch += 1;
        if self.options.if_new {
            let (store, mut earlier) = (self.store, Vec::new());
            self.write_unless(|similar, matches| {
                let Some(similar) = similar else { return Ok(false) };
                earlier = similar.similar_among(&store.snapshot(), item, encoded, matches)?;
                Ok(!earlier.is_empty())
            })?;
            if !earlier.is_empty() {
                self.added.duplicates += 1;
                return self.duplicate_observer.similar_duplicate(item, &earlier);
            }
        }
        if let Some(similar) = &mut self.similar {
            similar.insert(encoded, id, name);
        }
        self.reserve_id(id);
        if self.batch.bytes() >= BATCH_BYTES { self.write() } else { Ok(()) }
    }

    /// Returns the numeric id under which a new document will be stored, and the name of the document if it has one.
    ///
    /// A store without ids keeps neither: then the id has no effect, and there is no name.
    fn identify(&mut self, item: &Item<F>) -> Result<(u64, Option<String>)> {
        if !self.keeps_ids {
            let id = if let DocumentId::Number(id) = item.id { id } else { 0 };
            return Ok((id, None));
        }
        let id = match self.next_id {
            _ if item.has_id => item.id.clone(),
            Some(next) => DocumentId::Number(next),
            None => return Err(item.malformed(NO_FREE_ID.to_owned())),
        };
        self.id_scheme.assign(id, self.next_id).map_err(|reason| item.malformed(reason))
    }

    fn insert(&mut self, fingerprint: F, id: u64, name: Option<&str>) -> Result<()> {
        match name {
            Some(name) => self.batch.insert_named(fingerprint, id, name)?,
            None => self.batch.insert(fingerprint, id),
        }
        self.in_batch += 1;
        Ok(())
    }

    /// Marks a numeric id as used, so that no other document gets it.
    fn reserve_id(&mut self, id: u64) {
        if self.next_id.is_some_and(|next| id >= next) {
            self.next_id = id.checked_add(1);
        }
    }

    /// Stores the queued documents, after one look-up of all their ids.
    fn store_queue(&mut self) -> Result<()> {
        let mut queued = Vec::new();
        for item in std::mem::take(&mut self.queue) {
            match self.identify(&item) {
                Ok((id, name)) => {
                    self.reserve_id(id);
                    queued.push((item, id, name));
                }
                Err(error) => self.reject(error)?,
            }
        }
        let document_id_of =
            |id: u64, name: &Option<String>| name.clone().map_or(DocumentId::Number(id), DocumentId::Name);
        let ids: HashSet<DocumentId> = queued.iter().map(|(_, id, name)| document_id_of(*id, name)).collect();
        let mut stored = StoredPairs::find(&self.store.snapshot(), ids.iter())?;
        for (item, id, name) in queued {
            let document_id = document_id_of(id, &name);
            let others = stored.with_other_fingerprint(&document_id, item.fingerprint);
            let is_stored = stored.len(&document_id) > others.len();
            if self.options.same_id == SameIdPolicy::Refuse && !others.is_empty() && !is_stored {
                let refused = item.malformed(format!(
                    "the id `{}` is stored with another fingerprint",
                    escape_text(&excerpt(&document_id.to_string()))
                ));
                self.reject(refused)?;
                continue;
            }
            if self.options.same_id == SameIdPolicy::Replace && !others.is_empty() {
                others.iter().for_each(|&(fingerprint, id)| self.batch.delete(fingerprint, id));
                stored.remove(&document_id, &others);
                self.added.replaced += 1;
            }
            let Some(fingerprint) = item.fingerprint else { continue };
            if is_stored {
                self.added.already_stored += 1;
                continue;
            }
            self.insert(fingerprint, id, name.as_deref())?;
            stored.insert(&document_id, fingerprint, id);
            if self.batch.bytes() >= BATCH_BYTES {
                self.commit()?;
            }
        }
        Ok(())
    }

    /// Handles the error of a document that was already counted as read: counts it as malformed instead, or returns the error.
    fn reject(&mut self, error: Error) -> Result<()> {
        self.malformed.handle(error)?;
        self.added.counts.read -= 1;
        Ok(())
    }

    /// Whether documents of the current file may already be in the store: if the file has changed since an earlier job read it,
    /// or if all files are read again.
    fn may_be_stored(&self) -> bool {
        let has_changed = |file: &OpenFile| self.sources.to_read[file.index].has_changed;
        self.options.reread || self.open_file.as_ref().is_some_and(has_changed)
    }

    /// Adds the checkpoints of files to the batch. First flushes the duplicate observer, because later jobs skip the documents
    /// before a checkpoint, and do not report them as duplicates again.
    fn record_checkpoints(&mut self) -> Result<()> {
        self.duplicate_observer.flush()?;
        for (key, checkpoint) in std::mem::take(&mut self.checkpoints) {
            self.batch.set_metadata(key, &checkpoint.to_bytes())?;
        }
        Ok(())
    }

    /// Writes the batch and returns no matches. However, if `is_duplicate` returns true for the stored matches of the
    /// batch's fingerprints, drops the batch and returns these matches.
    fn write_unless(
        &mut self,
        mut is_duplicate: impl FnMut(Option<&SimilarLookup>, &[Match<F>]) -> Result<bool>,
    ) -> Result<Vec<Match<F>>> {
        let checkpoints = self.checkpoints.clone();
        self.record_checkpoints()?;
        let batch = std::mem::replace(&mut self.batch, self.store.transaction());
        let similar = self.similar.as_ref();
        match batch.commit_unless(self.options.durability, |matches| is_duplicate(similar, matches))? {
            Insertion::Inserted => {
                self.pending = 0;
                let added = std::mem::take(&mut self.in_batch);
                self.added.added += added;
                self.similar.iter_mut().try_for_each(|similar| similar.batch_written(self.store, added))?;
                Ok(Vec::new())
            }
            Insertion::DuplicateOf(matches) => {
                self.checkpoints = checkpoints;
                self.in_batch = 0;
                Ok(matches)
            }
        }
    }

    /// Writes all documents that [`take`](Self::take) has received so far.
    fn write(&mut self) -> Result<()> {
        self.store_queue()?;
        self.record_checkpoints()?;
        self.commit()?;
        self.pending = 0;
        self.name_cache.trim(|| self.store.snapshot());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        let batch = std::mem::replace(&mut self.batch, self.store.transaction());
        batch.commit(self.options.durability)?;
        let added = std::mem::take(&mut self.in_batch);
        self.similar.iter_mut().try_for_each(|similar| similar.batch_written(self.store, added))?;
        self.added.added += added;
        Ok(())
    }

    /// After a read error, writes the documents that [`take`](Self::take) has received. Writes nothing if `take` has failed,
    /// because then the state of the batch is unknown.
    pub(super) fn write_taken(&mut self) -> Result<()> {
        if self.has_failed { Ok(()) } else { self.write() }
    }

    /// Writes the remaining documents, and returns the counts of the job. `visited` has the counts of malformed records and
    /// skipped files.
    pub(super) fn finish(&mut self, visited: InputCounts) -> Result<AddResult> {
        self.finish_file()?;
        self.write()?;
        let InputCounts { malformed, duplicate_paths: duplicate_names, skipped_files, .. } = visited;
        self.added.counts.malformed = malformed + self.malformed.count();
        self.added.counts.duplicate_paths = duplicate_names + self.sources.listed.duplicate_paths;
        self.added.counts.skipped_files = skipped_files + self.sources.listed.skipped_files;
        if self.similar.is_some() {
            // Short texts are compared by their features, which is reliable.
            self.added.counts.short = 0;
        }
        Ok(self.added)
    }
}
