//! Iterators over a whole store in order: entries (fingerprints with their ids), names, notes and metadata.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::segment::{Entry, Segment};

impl<F: Fingerprint> Snapshot<F> {
    /// Returns an iterator over all fingerprints with their ids, ascending by fingerprint, then id. The iterator ends after the
    /// first error.
    pub fn iter(&self) -> Iter<F> {
        Iter::new(self.clone())
    }

    /// Iterates over the document names in the segments, each with the document's id, ascending by id. Ends after the first
    /// error. Names in memtables are left out.
    pub(super) fn names(&self) -> impl Iterator<Item = Result<(u64, String)>> {
        self.newest(Segment::name_chunks, Segment::names, |segment, &id| segment.has_forgotten(id))
    }

    /// Like [`Snapshot::names`], but iterates over the notes (bytes stored with documents) instead of the names.
    pub(super) fn notes(&self) -> impl Iterator<Item = Result<(u64, Vec<u8>)>> {
        self.newest(Segment::note_chunks, Segment::notes, |segment, &id| segment.has_forgotten(id))
    }

    /// Returns the ids of all documents with a note, ascending and distinct; see
    /// [`Transaction::set_note`](crate::Transaction::set_note). The list may contain ids whose notes are deleted; for
    /// these, [`Snapshot::notes_of`] returns `None`.
    ///
    /// # Errors
    /// Errors of [`Snapshot::note`].
    pub fn ids_with_notes(&self) -> Result<Vec<u64>> {
        let mut ids = self.notes().map(|noted| Ok(noted?.0)).collect::<Result<Vec<u64>>>()?;
        for (memtable, version) in self.memtables() {
            ids.extend(memtable.notes(version).iter().map(|&(id, _)| id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// Iterates over the metadata in the segments, ascending by key, each key with its newest value. Ends after the first error.
    /// Metadata in memtables is left out.
    pub(super) fn all_metadata(&self) -> impl Iterator<Item = Result<(String, Vec<u8>)>> {
        self.newest(Segment::metadata_chunks, Segment::metadata, |_, _| false)
    }

    /// Iterates over one kind of values in the segments (names, notes or metadata), and yields each key (an id, or a
    /// metadata key) with its newest value. `chunks` returns the number of chunks of these values in a segment. `read`
    /// appends the keys and values of one chunk to a queue. `has_forgotten` returns whether a segment deletes the value
    /// that a key has in older segments.
    fn newest<'a, K: Ord + Clone + 'a, V: 'a>(
        &'a self,
        chunks: fn(&Segment<F>) -> usize,
        read: ReadChunkFn<Segment<F>, K, V>,
        has_forgotten: fn(&Segment<F>, &K) -> bool,
    ) -> impl Iterator<Item = Result<(K, V)>> {
        let source = |segment: &'a Arc<Segment<F>>| {
            let read = move |chunk, values: &mut _| read(segment, chunk, values);
            KeyedSource::new(chunks(segment), read, move |key| has_forgotten(segment, key))
        };
        NewestByKey::new(self.segments().iter().map(source)).filter_map(Result::transpose)
    }
}

/// Iterator over the entries of a store (fingerprints with their ids) in order, created by [`Snapshot::iter`]. It keeps
/// the files of the store open.
#[derive(Debug)]
pub struct Iter<F> {
    snapshot: Snapshot<F>,
    cursors: Vec<EntryCursor<F>>,
    previous: Option<Entry<F>>,
}

/// A read position in the entries (fingerprints with their ids) of one segment, or of one memtable.
#[derive(Debug)]
struct EntryCursor<F> {
    /// Segment to read. `None` for a memtable, because all its entries are already in `entries`.
    segment: Option<Arc<Segment<F>>>,
    /// Index of the next block of the segment to decode.
    block: usize,
    /// Entries of the last decoded block, or all entries of a memtable.
    entries: Vec<Entry<F>>,
    /// Index of the next entry in `entries`.
    at: usize,
    /// Index of the first newer segment, and index of the first newer memtable. The tombstones of these and all later
    /// segments and memtables can delete entries of this cursor.
    newer: (usize, usize),
}

impl<F: Fingerprint> EntryCursor<F> {
    fn peek(&mut self) -> Result<Option<Entry<F>>> {
        while self.at == self.entries.len() {
            let Some(segment) = &self.segment else { return Ok(None) };
            if self.block == segment.tables()[0].blocks() {
                return Ok(None);
            }
            self.entries.clear();
            self.at = 0;
            segment.entries(self.block, &mut self.entries)?;
            self.block += 1;
        }
        Ok(Some(self.entries[self.at]))
    }
}

impl<F: Fingerprint> Iter<F> {
    pub(super) fn new(snapshot: Snapshot<F>) -> Self {
        let segments = snapshot.segments();
        let of_segments = segments.iter().enumerate().map(|(i, segment)| EntryCursor {
            segment: Some(segment.clone()),
            block: 0,
            entries: Vec::new(),
            at: 0,
            newer: (i + 1, 0),
        });
        let of_memtables = snapshot.memtables().enumerate().map(|(i, (memtable, version))| {
            let id = |id| snapshot.keeps_ids().then_some(id);
            let entries = memtable.entries(version).into_iter();
            let entries = entries.map(|(fingerprint, pair)| Entry { fingerprint, id: id(pair) }).collect();
            EntryCursor { segment: None, block: 0, entries, at: 0, newer: (segments.len(), i + 1) }
        });
        let cursors = of_segments.chain(of_memtables).collect();
        Iter { snapshot, cursors, previous: None }
    }

    fn advance(&mut self) -> Result<Option<Entry<F>>> {
        loop {
            let mut least: Option<(usize, Entry<F>)> = None;
            for (i, cursor) in self.cursors.iter_mut().enumerate() {
                if let Some(entry) = cursor.peek()?
                    && least.is_none_or(|(_, other)| entry < other)
                {
                    least = Some((i, entry));
                }
            }
            let Some((i, entry)) = least else { return Ok(None) };
            self.cursors[i].at += 1;
            let (segment, memtable) = self.cursors[i].newer;
            let hidden = self.snapshot.hides(segment, memtable, entry.fingerprint, entry.id);
            if !hidden && self.previous.replace(entry) != Some(entry) {
                return Ok(Some(entry));
            }
        }
    }
}

impl<F: Fingerprint> Iterator for Iter<F> {
    type Item = Result<Entry<F>>;

    fn next(&mut self) -> Option<Result<Entry<F>>> {
        let next = self.advance();
        if next.is_err() {
            self.cursors.clear();
        }
        next.transpose()
    }
}

/// Iterator that merges several sources of keys and values. It yields one item for each key, in ascending order of
/// keys: the key with its newest value, or `None` if a newer source deletes that value. It ends after the first error.
pub(super) struct NewestByKey<'a, K, V> {
    /// Sources, oldest first.
    sources: Vec<KeyedSource<'a, K, V>>,
}

/// The keys and values (names, notes or metadata) of one segment, or of all logs, in ascending order of keys. They are
/// read chunk by chunk.
pub(super) struct KeyedSource<'a, K, V> {
    /// Indexes of the chunks of keys and values that are not read yet.
    chunks: Range<usize>,
    read: Box<ReadChunkDyn<'a, K, V>>,
    has_forgotten: Box<dyn Fn(&K) -> bool + 'a>,
    /// Keys and values that are read, but not yielded yet.
    values: VecDeque<(K, V)>,
}

/// Function that reads one chunk of a segment `S`, and appends the chunk's keys and values to a queue. The `usize` is the
/// index of the chunk.
pub(super) type ReadChunkFn<S, K, V> = fn(&S, usize, &mut VecDeque<(K, V)>) -> Result<()>;
/// Function that reads the chunk with the index `usize`, and appends its keys and values to a queue. Unlike a
/// [`ReadChunkFn`], it has the segment or the logs that it reads from, and takes no argument for them.
type ReadChunkDyn<'a, K, V> = dyn Fn(usize, &mut VecDeque<(K, V)>) -> Result<()> + 'a;

impl<'a, K, V> KeyedSource<'a, K, V> {
    /// Creates a source of keys and values in `chunks` chunks. `read` appends the keys and values of one chunk to a queue.
    /// `has_forgotten` returns whether this source deletes the value that a key has in older sources.
    pub(super) fn new(
        chunks: usize,
        read: impl Fn(usize, &mut VecDeque<(K, V)>) -> Result<()> + 'a,
        has_forgotten: impl Fn(&K) -> bool + 'a,
    ) -> Self {
        KeyedSource {
            chunks: 0..chunks,
            read: Box::new(read),
            has_forgotten: Box::new(has_forgotten),
            values: VecDeque::new(),
        }
    }
}

impl<'a, K: Ord + Clone, V> NewestByKey<'a, K, V> {
    pub(super) fn new(sources: impl Iterator<Item = KeyedSource<'a, K, V>>) -> Self {
        NewestByKey { sources: sources.collect() }
    }

    fn advance(&mut self) -> Result<Option<Option<(K, V)>>> {
        let mut least: Option<&K> = None;
        for source in &mut self.sources {
            while source.values.is_empty()
                && let Some(chunk) = source.chunks.next()
            {
                (source.read)(chunk, &mut source.values)?;
            }
            let first = source.values.front().map(|(key, _)| key);
            least = [least, first].into_iter().flatten().min();
        }
        let Some(key) = least.cloned() else { return Ok(None) };
        let mut newest = None;
        for source in &mut self.sources {
            if source.values.front().is_some_and(|value| value.0 == key) {
                newest = source.values.pop_front();
            } else if newest.is_some() && (source.has_forgotten)(&key) {
                newest = None;
            }
        }
        Ok(Some(newest))
    }
}

impl<K: Ord + Clone, V> Iterator for NewestByKey<'_, K, V> {
    type Item = Result<Option<(K, V)>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.sources.clear();
        }
        next.transpose()
    }
}
