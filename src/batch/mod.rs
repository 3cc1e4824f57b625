//! Batch queries: many queries against the whole store at once, as in section 4 of the paper.
//!
//! The queries are indexed in memory by a design of their own, and the first table of each segment is streamed
//! past them once, in parallel: each stored fingerprint is decoded once for all queries. For few
//! queries looking each up is cheaper; [`Snapshot::batch_method`] says which it will be.

mod batch_match;
mod design;
mod index;
mod stream;

use std::fmt;
use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Mutex;

use rayon::prelude::*;

pub use self::batch_match::BatchMatch;
use self::design::Design;
use self::index::QueryIndex;
use crate::error::{Error, Result, one_of};
use crate::fingerprint::Fingerprint;
use crate::plan::{Medium, Workload, estimate};
use crate::progress::{self, ProgressCallback, Steps};
use crate::segment::Match;
use crate::store::Snapshot;
use crate::threads;

/// How a batch of queries is answered. The answer is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BatchMethod {
    /// The one that should take less time.
    #[default]
    Auto,
    /// The first table of each segment is read once, and every fingerprint compared with the queries that may
    /// be near.
    Stream,
    /// Each query is looked up by itself, as by [`Snapshot::query`].
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
        one_of("method", &BatchMethod::ALL, name)
    }
}

/// Queries that are looked up before their matches are handed on.
const LOOK_UPS: usize = 256;

impl<F: Fingerprint> Snapshot<F> {
    /// All stored fingerprints within `distance` bits of each query: the matches of the first query, then of the second, and so
    /// on, each as [`Snapshot::query`] returns them.
    ///
    /// Uses all threads of the current rayon pool. Besides the matches it takes memory for the queries: some 30
    /// bytes each at distance 3, and no more than 30 for each bit of the distance; and about 2 MiB a thread.
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
    /// As [`Snapshot::query`]; [`Error::BadArgument`] for 2^32 queries or more.
    pub fn batch_query(&self, queries: &[F], distance: u32) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_by(queries, distance, BatchMethod::Auto)
    }

    /// [`Snapshot::batch_query`] by a method of the caller's choice.
    ///
    /// # Errors
    /// As [`Snapshot::batch_query`].
    pub fn batch_query_by(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
    ) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_steps(queries, distance, method, None)
    }

    /// [`Snapshot::batch_query`], until a callback says not to go on; it is told how many matches have been found.
    ///
    /// # Errors
    /// As [`Snapshot::batch_query`]; [`Error::Cancelled`].
    pub fn batch_query_with(
        &self,
        queries: &[F],
        distance: u32,
        progress: &ProgressCallback,
    ) -> Result<Vec<BatchMatch<F>>> {
        self.batch_query_steps(queries, distance, BatchMethod::Auto, Some(progress))
    }

    fn batch_query_steps(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<BatchMatch<F>>> {
        let matches = Mutex::new(Vec::new());
        let steps = Steps::new(progress, 0);
        self.batch_visit(queries, distance, method, |found| {
            // A thread that panics while it holds the lock has pushed all or nothing of one match.
            matches.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).extend_from_slice(found);
            match steps.add(found.len() as u64) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        })?;
        let mut matches = matches.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        matches.par_sort_unstable_by_key(|BatchMatch { query, found }| {
            (*query, found.distance, found.fingerprint, found.id)
        });
        // Matches may be in several segments.
        matches.dedup();
        Ok(matches)
    }

    /// Calls `visitor` with the matches of a batch as they are found, some at a time, in no order, from all
    /// threads of the pool: for batches whose matches do not fit in memory. A match that is in several
    /// segments may come several times.
    ///
    /// The visitor says whether to go on; it is called at least every tenth of a second, also with no matches at all.
    ///
    /// # Errors
    /// As [`Snapshot::batch_query`]; [`Error::Cancelled`] if the visitor said not to go on: it may be called a few times more
    /// then, by other threads. After an error some matches may have been visited.
    pub fn batch_visit(
        &self,
        queries: &[F],
        distance: u32,
        method: BatchMethod,
        visitor: impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        if distance > self.distance() {
            let path = self.path().to_path_buf();
            return Err(Error::Distance { path, asked: distance, supported: self.distance() });
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
        let (design, _) = Design::choose::<F>(queries.len(), self.len(), distance);
        self.stream_all(queries, distance, &design, &visitor)
    }

    fn stream_all(
        &self,
        queries: &[F],
        distance: u32,
        design: &Design,
        visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
    ) -> Result<()> {
        let index = QueryIndex::new(queries, design, distance)?;
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
        if !self.has_recent() {
            return Ok(());
        }
        look_up_all(queries, visitor, |query, found| {
            self.query_recent(query, distance, found);
            Ok(())
        })
    }

    /// The method that [`BatchMethod::Auto`] chooses for a number of queries: [`BatchMethod::Stream`] or
    /// [`BatchMethod::LookUp`]. It is the one with the lower estimated time in memory.
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
        let (_, streaming) = Design::choose::<F>(queries, self.len(), distance);
        if queries as f64 * one <= streaming { BatchMethod::LookUp } else { BatchMethod::Stream }
    }
}

/// Looks up each query by itself, with all threads; `look_up` appends the matches of a query.
fn look_up_all<F: Fingerprint>(
    queries: &[F],
    visitor: &(impl Fn(&[BatchMatch<F>]) -> ControlFlow<()> + Sync),
    look_up: impl Fn(F, &mut Vec<Match<F>>) -> Result<()> + Sync,
) -> Result<()> {
    queries.par_chunks(LOOK_UPS).enumerate().try_for_each_init(
        || (Vec::new(), Vec::new()),
        |(matches, all), (chunk, queries)| {
            all.clear();
            for (query, &fingerprint) in (chunk * LOOK_UPS..).zip(queries) {
                matches.clear();
                look_up(fingerprint, matches)?;
                all.extend(matches.iter().map(|&found| BatchMatch { query, found }));
            }
            progress::go_on(visitor(all))
        },
    )
}

#[cfg(test)]
mod tests;
