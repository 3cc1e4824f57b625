//! Batch queries: many queries against the whole store, as in section 4 of the paper by Manku, Jain and Das Sarma
//! (WWW 2007).
//!
//! The queries are indexed in memory. The first table of each segment is streamed past this index once, on
//! all threads, so each stored fingerprint is decoded once for all queries. For few queries, it is cheaper to
//! look up each query. [`Snapshot::batch_method`] returns the method that a batch will use.

mod batch_match;
mod batch_plan;
mod query_index;
mod stream;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Mutex;

use rayon::prelude::*;

pub use self::batch_match::BatchMatch;
use self::batch_plan::BatchPlan;
use self::query_index::QueryIndex;
use crate::error::{Error, Result, find_by_name};
use crate::fingerprint::Fingerprint;
use crate::plan::{Medium, Workload, estimate};
use crate::progress::{self, ProgressCallback, ProgressCounter};
use crate::segment::Match;
use crate::store::Snapshot;
use crate::threads;

/// Method of answering a batch of queries. The method has no influence on the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchMethod {
    /// Chooses the method with the lower estimated time, see [`Snapshot::batch_method`].
    #[default]
    Auto,
    /// Reads the first table of each segment once, and compares each stored fingerprint with the queries that
    /// may be near.
    Stream,
    /// Looks up each query separately, like [`Snapshot::query`].
    LookUp,
}

impl BatchMethod {
    const ALL: [(BatchMethod, &'static str); 3] =
        [(BatchMethod::Auto, "auto"), (BatchMethod::Stream, "stream"), (BatchMethod::LookUp, "look-up")];
}

impl fmt::Display for BatchMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(BatchMethod::ALL.iter().find(|(method, _)| method == self).map_or("", |(_, name)| name))
    }
}

impl FromStr for BatchMethod {
    type Err = Error;

    fn from_str(name: &str) -> Result<BatchMethod> {
        find_by_name("method", &BatchMethod::ALL, name)
    }
}

/// Number of queries that one task looks up before it passes the found matches to the visitor.
const LOOK_UP_CHUNK: usize = 256;

impl<F: Fingerprint> Snapshot<F> {
    /// Returns all stored fingerprints within `distance` bits of each query: first the matches of the first
    /// query, then of the second, and so on. The matches of a query have the order of [`Snapshot::query`].
    ///
    /// Uses all threads of the current rayon pool. Besides the memory for the matches, an index of the queries
    /// takes about 30 bytes per query at distance 3, and at most 30 bytes times the distance per query in general.
    /// Each thread takes about 2 MiB.
    ///
    /// ```
    /// use simstore::{BuildOptions, Builder};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("pages");
    /// let mut builder = Builder::<u64>::create(&path, BuildOptions::default())?;
    /// builder.insert(0b1111_0000, 1)?;
    /// builder.insert(0b1111_1111, 2)?;
    /// let store = builder.finish()?;
    ///
    /// let matches = store.batch_query(&[0b1111_0001, 0, 0b0111_1111], 3)?;
    /// let found: Vec<_> = matches.iter().map(|m| (m.query, m.found.distance, m.found.id)).collect();
    /// assert_eq!(found, [(0, 1, Some(1)), (0, 3, Some(2)), (2, 1, Some(2))]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`Snapshot::query`]; [`Error::BadArgument`] for 2^32 queries or more.
    pub fn batch_query(&self, queries: &[F], distance: u32) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_by(queries, distance, BatchMethod::Auto)
    }

    /// Like [`Snapshot::batch_query`], with a method that the caller chooses.
    ///
    /// # Errors
    /// The errors of [`Snapshot::batch_query`].
    pub fn batch_query_by(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
    ) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_inner(queries, distance, method, None)
    }

    /// Like [`Snapshot::batch_query`], with a callback that receives the number of matches so far and can
    /// cancel the query.
    ///
    /// # Errors
    /// The errors of [`Snapshot::batch_query`]; [`Error::Cancelled`] if the callback cancels the query.
    pub fn batch_query_with(
        &self,
        queries: &[F],
        distance: u32,
        progress: &ProgressCallback,
    ) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_inner(queries, distance, BatchMethod::Auto, Some(progress))
    }

    fn batch_query_inner(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<BatchMatch<F>>> {
        let matches = Mutex::new(Vec::new());
        let counter = ProgressCounter::new(progress, 0);
        self.batch_visit(queries, distance, method, |found| {
            // The list is valid even if a thread panics while it holds the lock.
            matches.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend_from_slice(found);
            match counter.add(found.len() as u64) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        let mut matches = matches.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        matches.par_sort_unstable_by_key(|BatchMatch { query, found }| {
            (*query, found.distance, found.fingerprint, found.id)
        });
        // A match may be in several segments.
        matches.dedup();
        Ok(matches)
    }

    /// Like [`Snapshot::batch_query`], but passes the matches to `visitor` while the search runs. Use it if
    /// the matches do not fit in memory.
    ///
    /// A call of the visitor gets any number of matches, in no particular order. If several segments store the
    /// same fingerprint with the same id, this match may be visited several times. The threads of the current
    /// rayon pool call the visitor at least every tenth of a second, with an empty slice if there are no new
    /// matches. The visitor returns whether to continue.
    ///
    /// # Errors
    /// The errors of [`Snapshot::batch_query`]; [`Error::Cancelled`] if the visitor returns a break. After
    /// that, other threads may still call the visitor a few times. Before an error, some matches may have been
    /// visited.
    pub fn batch_visit(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
        visitor: impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        if distance > self.distance() {
            let path = self.path().to_path_buf();
            return Err(Error::Distance { path, requested: distance, supported: self.distance() });
        }
        if u32::try_from(queries.len()).is_err() {
            return Err(Error::BadArgument("a batch has at most 4,294,967,295 queries".to_string()));
        }
        threads::ensure_pool()?;
        let method = match method {
            BatchMethod::Auto => self.batch_method(queries.len(), distance),
            chosen => chosen,
        };
        if method == BatchMethod::LookUp {
            return look_up_all(queries, &visitor, |query, found| self.query_into(query, distance, found));
        }
        let (plan, _) = BatchPlan::choose::<F>(queries.len(), self.len(), distance);
        self.stream_all(queries, distance, &plan, &visitor)
    }

    fn stream_all(
        &self,
        queries: &[F],
        distance: u32,
        plan: &BatchPlan,
        visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        let index = QueryIndex::new(queries, plan, distance)?;
        for (i, segment) in self.segments().iter().enumerate() {
            if self.has_newer_tombstones(i) {
                let visitor = |found: &[BatchMatch<F>]| {
                    let is_visible = |m: &&BatchMatch<F>| !self.is_hidden(i, &m.found);
                    visitor(&found.iter().filter(is_visible).copied().collect::<Vec<_>>())
                };
                stream::stream(segment, &index, &visitor)?;
            } else {
                stream::stream(segment, &index, visitor)?;
            }
        }
        if !self.has_memtable_pairs() {
            return Ok(());
        }
        look_up_all(queries, visitor, |query, found| {
            self.query_memtables(query, distance, found);
            Ok(())
        })
    }

    /// Returns the method that [`BatchMethod::Auto`] chooses for a number of queries: [`BatchMethod::Stream`]
    /// or [`BatchMethod::LookUp`]. It chooses the method with the lower estimated time, and assumes that the
    /// files of the store are in the page cache.
    pub fn batch_method(&self, queries: usize, distance: u32) -> BatchMethod {
        let one: f64 = (self.segments().iter())
            .map(|segment| {
                let header = segment.tables()[0].header();
                let workload = Workload {
                    fingerprints: header.fingerprints,
                    codec: header.codec,
                    block_size: Some(header.block_size),
                    span: Some(header.span),
                    medium: Medium::Memory,
                };
                estimate(segment.plan(), &workload).nanoseconds
            })
            .sum();
        let (_, streaming) = BatchPlan::choose::<F>(queries, self.len(), distance);
        if queries as f64 * one <= streaming { BatchMethod::LookUp } else { BatchMethod::Stream }
    }
}

/// Looks up each query separately, on all threads, and passes the matches to `visitor`. `look_up` appends the
/// matches of one query to a list.
fn look_up_all<F: Fingerprint>(
    queries: &[F],
    visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
    look_up: impl Fn(F, &mut Vec<Match<F>>) -> Result<()> + Sync,
) -> Result<()> {
    queries.par_chunks(LOOK_UP_CHUNK).enumerate().try_for_each_init(
        || (Vec::new(), Vec::new()),
        |(matches, all), (chunk, queries)| {
            all.clear();
            for (query, &fingerprint) in (chunk * LOOK_UP_CHUNK..).zip(queries) {
                matches.clear();
                look_up(fingerprint, matches)?;
                all.extend(matches.iter().map(|&found| BatchMatch { query, found }));
            }
            progress::break_to_cancelled(visitor(all))
        },
    )
}

#[cfg(test)]
mod tests;
