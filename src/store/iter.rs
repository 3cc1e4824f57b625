//! All entries of a store in order.

use std::collections::VecDeque;
use std::ops::Range;
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
    pub(super) fn names(&self) -> impl Iterator<Item = Result<(u64, String)>> {
        self.newest(Segment::name_chunks, Segment::names, |segment, &id| segment.forgets(id))
    }

    /// All ids that have notes, as [`Snapshot::names`].
    pub(super) fn notes(&self) -> impl Iterator<Item = Result<(u64, Vec<u8>)>> {
        self.newest(Segment::note_chunks, Segment::notes, |segment, &id| segment.forgets(id))
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
    pub(super) fn marks(&self) -> impl Iterator<Item = Result<(String, Vec<u8>)>> {
        self.newest(Segment::mark_chunks, Segment::marks, |_, _| false)
    }

    /// The newest value of each key in the segments. `chunks` is the number of chunks of a segment, and `read` appends the
    /// values of one.
    fn newest<'a, K: Ord + Clone + 'a, V: 'a>(
        &'a self,
        chunks: fn(&Segment<F>) -> usize,
        read: ReadChunk<Segment<F>, K, V>,
        forgets: fn(&Segment<F>, &K) -> bool,
    ) -> impl Iterator<Item = Result<(K, V)>> {
        let source = |segment: &'a Arc<Segment<F>>| {
            let read = move |chunk, values: &mut _| read(segment, chunk, values);
            Source::new(chunks(segment), read, move |key| forgets(segment, key))
        };
        Newest::new(self.segments().iter().map(source)).filter_map(Result::transpose)
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

/// Iterates over the keys of some sources in order, with the newest value of each key. If a newer source forgets a key, its value
/// is `None`. Ends after the first error.
pub(super) struct Newest<'a, K, V> {
    /// The newest source comes last.
    sources: Vec<Source<'a, K, V>>,
}

/// The values that a segment or the logs keep by key, read in chunks.
pub(super) struct Source<'a, K, V> {
    /// The chunks that are left to read.
    chunks: Range<usize>,
    read: Box<ReadNumbered<'a, K, V>>,
    forgets: Box<dyn Fn(&K) -> bool + 'a>,
    values: VecDeque<(K, V)>,
}

/// Appends the values of a chunk of a segment.
pub(super) type ReadChunk<S, K, V> = fn(&S, usize, &mut VecDeque<(K, V)>) -> Result<()>;
/// Appends the values of a chunk.
type ReadNumbered<'a, K, V> = dyn Fn(usize, &mut VecDeque<(K, V)>) -> Result<()> + 'a;

impl<'a, K, V> Source<'a, K, V> {
    /// `read` appends the values of a chunk. `forgets` says whether the values of a key in older sources do not count.
    pub(super) fn new(
        chunks: usize,
        read: impl Fn(usize, &mut VecDeque<(K, V)>) -> Result<()> + 'a,
        forgets: impl Fn(&K) -> bool + 'a,
    ) -> Self {
        Source {
            chunks: 0..chunks,
            read: Box::new(read),
            forgets: Box::new(forgets),
            values: VecDeque::new(),
        }
    }
}

impl<'a, K: Ord + Clone, V> Newest<'a, K, V> {
    pub(super) fn new(sources: impl Iterator<Item = Source<'a, K, V>>) -> Self {
        Newest { sources: sources.collect() }
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
            } else if newest.is_some() && (source.forgets)(&key) {
                newest = None;
            }
        }
        Ok(Some(newest))
    }
}

impl<K: Ord + Clone, V> Iterator for Newest<'_, K, V> {
    type Item = Result<Option<(K, V)>>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = self.advance();
        if next.is_err() {
            self.sources.clear();
        }
        next.transpose()
    }
}
