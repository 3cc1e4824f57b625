//! All entries of a store in order.

use std::collections::VecDeque;
use std::sync::Arc;

use super::snapshot::Snapshot;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::segment::{Entry, Segment};

impl<F: Fingerprint> Snapshot<F> {
    /// All fingerprints with their ids, ascending by fingerprint, then id. Ends after the first error.
    pub fn iter(&self) -> Iter<F> {
        Iter::new(self.clone())
    }

    /// All ids that have names, ascending, each with its name. Ends after the first error. Memtables are left out.
    pub(super) fn names(&self) -> Newest<F, u64, String> {
        Newest::new(self.segments(), Segment::name_chunks, Segment::names, |segment, &id| segment.forgets(id))
    }

    /// All ids that have notes, as [`Snapshot::names`].
    pub(super) fn notes(&self) -> Newest<F, u64, Vec<u8>> {
        Newest::new(self.segments(), Segment::note_chunks, Segment::notes, |segment, &id| segment.forgets(id))
    }

    /// The ids of all notes, ascending, each once. A note that was deleted may be among them: see [`Snapshot::notes_of`].
    ///
    /// # Errors
    /// As [`Snapshot::note`].
    pub fn noted_ids(&self) -> Result<Vec<u64>> {
        let mut ids = self.notes().map(|noted| Ok(noted?.0)).collect::<Result<Vec<u64>>>()?;
        for (memtable, version) in self.memtables() {
            ids.extend(memtable.notes(version).iter().map(|&(id, _)| id));
        }
        ids.sort_unstable();
        ids.dedup();
        Ok(ids)
    }

    /// All marks, ascending by key, each with its newest value. Ends after the first error. What is in memory only is left
    /// out.
    pub(super) fn marks(&self) -> Newest<F, String, Vec<u8>> {
        Newest::new(self.segments(), Segment::mark_chunks, Segment::marks, |_, _| false)
    }
}

/// Iterates over the entries of a store in order, which it keeps open; made by [`Snapshot::iter`].
#[derive(Debug)]
pub struct Iter<F> {
    snapshot: Snapshot<F>,
    cursors: Vec<Cursor<F>>,
    previous: Option<Entry<F>>,
}

/// The position in a segment or in a memtable's entries.
#[derive(Debug)]
struct Cursor<F> {
    segment: Option<Arc<Segment<F>>>,
    block: usize,
    entries: Vec<Entry<F>>,
    at: usize,
    /// Where what is newer begins, among segments and among memtables.
    newer: (usize, usize),
}

impl<F: Fingerprint> Cursor<F> {
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
        let of_segments = segments.iter().enumerate().map(|(i, segment)| Cursor {
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
            Cursor { segment: None, block: 0, entries, at: 0, newer: (segments.len(), i + 1) }
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

/// Iterates over what segments keep by key, with the newest value of each; made by [`Snapshot::names`], [`Snapshot::notes`]
/// and [`Snapshot::marks`].
pub(super) struct Newest<F, K, V> {
    cursors: Vec<KeyCursor<F, K, V>>,
    chunks: Chunks<F>,
    read: ReadChunk<F, K, V>,
    forgets: Forgets<F, K>,
}

/// How many chunks a segment has.
type Chunks<F> = fn(&Segment<F>) -> usize;
/// Appends what a chunk holds.
type ReadChunk<F, K, V> = fn(&Segment<F>, usize, &mut VecDeque<(K, V)>) -> Result<()>;
/// Whether the values of a key in older segments do not count.
type Forgets<F, K> = fn(&Segment<F>, &K) -> bool;

struct KeyCursor<F, K, V> {
    segment: Arc<Segment<F>>,
    chunk: usize,
    entries: VecDeque<(K, V)>,
}

impl<F: Fingerprint, K: Ord + Clone, V> Newest<F, K, V> {
    pub(super) fn new(
        segments: &[Arc<Segment<F>>],
        chunks: Chunks<F>,
        read: ReadChunk<F, K, V>,
        forgets: Forgets<F, K>,
    ) -> Self {
        let cursor = |segment: &Arc<Segment<F>>| KeyCursor {
            segment: segment.clone(),
            chunk: 0,
            entries: VecDeque::new(),
        };
        Newest { cursors: segments.iter().map(cursor).collect(), chunks, read, forgets }
    }

    fn advance(&mut self) -> Result<Option<(K, V)>> {
        loop {
            for cursor in &mut self.cursors {
                while cursor.entries.is_empty() && cursor.chunk < (self.chunks)(&cursor.segment) {
                    (self.read)(&cursor.segment, cursor.chunk, &mut cursor.entries)?;
                    cursor.chunk += 1;
                }
            }
            let first = |cursor: &KeyCursor<F, K, V>| cursor.entries.front().map(|(key, _)| key.clone());
            let Some(key) = self.cursors.iter().filter_map(first).min() else { return Ok(None) };
            // The newest segment comes last.
            let mut newest = None;
            for cursor in &mut self.cursors {
                if cursor.entries.front().is_some_and(|entry| entry.0 == key) {
                    newest = cursor.entries.pop_front();
                } else if newest.is_some() && (self.forgets)(&cursor.segment, &key) {
                    newest = None;
                }
            }
            if newest.is_some() {
                return Ok(newest);
            }
        }
    }
}

impl<F: Fingerprint, K: Ord + Clone, V> Iterator for Newest<F, K, V> {
    type Item = Result<(K, V)>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.cursors.clear();
        }
        next.transpose()
    }
}
