//! Tables of a join on disk that are kept when they have been joined, so that a run carries on with the next one.
//!
//! The format is specified in `format-spec/joined.md`.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use simstore::join::{NearPair, Parts};
use simstore::{Error, Fingerprint, Result};
use xxhash_rust::xxh3::Xxh3;

use super::super::corpus::Corpus;
use super::super::sealed::{SealedLines, SealedWriter, json, path_of};
use super::Places;
use crate::output::Unfinished;
use crate::watch::Step;

const VERSION: u32 = 1;
/// Fingerprints of pairs after which equal ones become one.
const MOST_VALUES: usize = 1 << 22;

/// Where joined tables are kept, and what they are of.
pub(super) struct Joined<'a> {
    folder: &'a Path,
    unfinished: &'a Unfinished,
    header: Header,
}

/// Which table, of which fingerprints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    joined: u32,
    bits: u32,
    distance: u32,
    fingerprints: u64,
    check: String,
    parts: usize,
    table: usize,
    forest: bool,
}

/// A pair; of a forest without a distance.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PairLine {
    Forest(String, String),
    Pair(String, String, u32),
}

#[derive(Serialize, Deserialize)]
struct End {
    end: usize,
}

fn is_there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(Error::io(path, "look for"))
}

impl<'a> Joined<'a> {
    /// Those of a corpus, which is read for its checksum. `count` is the number of fingerprints.
    pub(super) fn new<F: Fingerprint>(
        folder: &'a Path,
        unfinished: &'a Unfinished,
        corpus: &Corpus<F>,
        count: u64,
        distance: u32,
        with_pairs: bool,
        step: &Step<'_>,
    ) -> Result<Self> {
        let (mut hash, mut bytes) = (Xxh3::new(), Vec::new());
        corpus.visit_fingerprints(|_, some| {
            bytes.resize(some.len() * F::BYTES, 0);
            some.iter()
                .zip(bytes.chunks_exact_mut(F::BYTES))
                .for_each(|(value, bytes)| value.write_le(bytes));
            hash.update(&bytes);
            step.add(0)
        })?;
        let header = Header {
            joined: VERSION,
            bits: F::BITS,
            distance,
            fingerprints: count,
            check: format!("{:016x}", hash.digest()),
            parts: 1,
            table: 0,
            forest: !with_pairs,
        };
        Ok(Joined { folder, unfinished, header })
    }

    /// Parts of which the first table has been joined, if there are any, of so many at least; or else so many.
    pub(super) fn with_parts<F: Fingerprint>(
        mut self,
        least: Parts<F>,
        most: usize,
    ) -> Result<(Self, Parts<F>)> {
        let mut parts = least.parts();
        while parts <= most {
            self.header.parts = parts;
            if is_there(&self.path(0)?)? {
                return Ok((self, Parts::with_parts(least.distance(), parts)?));
            }
            parts *= 2;
        }
        self.header.parts = least.parts();
        Ok((self, least))
    }

    fn header(&self, table: usize) -> Header {
        Header { table, ..self.header.clone() }
    }

    fn path(&self, table: usize) -> Result<PathBuf> {
        path_of(self.folder, &self.header(table), "joined.zst")
    }

    /// The pairs of a table, if it has been joined; or why they cannot be had, of a file that is there. All are pairs of
    /// fingerprints that documents have.
    pub(super) fn read<F: Fingerprint>(
        &self,
        table: usize,
        corpus: &Corpus<F>,
        mut visitor: impl FnMut(NearPair<F>) -> Result<()>,
    ) -> Result<Option<std::result::Result<(), String>>> {
        let path = self.path(table)?;
        if !is_there(&path)? {
            return Ok(None);
        }
        let damaged = |reason: String| Ok(Some(Err(format!("{}: {reason}", path.display()))));
        // Looked through first: nothing is taken of a table that is not whole, or of other fingerprints.
        let (mut values, mut full): (Vec<F>, usize) = (Vec::new(), MOST_VALUES);
        let looked_through = self.visit::<F>(&path, table, |_, pair| {
            values.extend([pair.a, pair.b]);
            if values.len() >= full {
                values.par_sort_unstable();
                values.dedup();
                full = MOST_VALUES.max(2 * values.len());
            }
            Ok(Ok(()))
        })?;
        if let Err(reason) = looked_through {
            return damaged(reason);
        }
        values.par_sort_unstable();
        values.dedup();
        let missing = Places::of(&values).missing(corpus)?;
        drop(values);
        let checked = |line: usize, pair: NearPair<F>| match missing {
            Some(missing) if pair.a == missing || pair.b == missing => {
                Ok(Err(format!("line {line}: no document has the fingerprint {}", missing.to_hex())))
            }
            Some(_) => Ok(Ok(())),
            None => visitor(pair).map(Ok),
        };
        match self.visit(&path, table, checked)? {
            Ok(()) => Ok(Some(Ok(()))),
            Err(reason) => damaged(reason),
        }
    }

    fn visit<F: Fingerprint>(
        &self,
        path: &Path,
        table: usize,
        mut visitor: impl FnMut(usize, NearPair<F>) -> Result<std::result::Result<(), String>>,
    ) -> Result<std::result::Result<(), String>> {
        let mut lines = match self.open(path, table) {
            Ok(lines) => lines,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut last = None;
        for number in 0.. {
            let pair = match lines.next().and_then(|line| self.parse::<F>(line, number)) {
                Ok(Some(pair)) => pair,
                Ok(None) => return Ok(Ok(())),
                Err(reason) => return Ok(Err(format!("line {}: {reason}", number + 2))),
            };
            if last.replace((pair.a, pair.b)).is_some_and(|last| last >= (pair.a, pair.b)) {
                return Ok(Err(format!("line {}: not ascending", number + 2)));
            }
            if let Err(reason) = visitor(number + 2, pair)? {
                return Ok(Err(reason));
            }
        }
        Ok(Ok(()))
    }

    fn open(&self, path: &Path, table: usize) -> std::result::Result<SealedLines, String> {
        let mut lines = SealedLines::open(path)?;
        let header: Header = serde_json::from_slice(lines.next()?)
            .map_err(|error| format!("line 1: no header of a joined table: {error}"))?;
        if header != self.header(table) {
            return Err("not the table that its name tells".to_owned());
        }
        Ok(lines)
    }

    /// A pair; `None` at the end.
    fn parse<F: Fingerprint>(
        &self,
        line: &[u8],
        number: usize,
    ) -> std::result::Result<Option<NearPair<F>>, String> {
        if let Ok(End { end }) = serde_json::from_slice(line) {
            return if end == number {
                Ok(None)
            } else {
                Err(format!("expected {end} pairs, found {number}"))
            };
        }
        let (a, b, distance) = match serde_json::from_slice(line) {
            Ok(PairLine::Forest(a, b)) if self.header.forest => (a, b, None),
            Ok(PairLine::Pair(a, b, distance)) if !self.header.forest => (a, b, Some(distance)),
            Ok(_) => {
                return Err("expected pairs of a forest, or with distances, as the header says".to_owned());
            }
            Err(error) => return Err(error.to_string()),
        };
        let fingerprint = |digits: &str| F::parse_hex(digits).map_err(|error| error.to_string());
        let (a, b) = (fingerprint(&a)?, fingerprint(&b)?);
        // What a forest connects need not be near.
        let is_near =
            distance.is_none_or(|distance| a.distance(b) == distance && distance <= self.header.distance);
        if a >= b || !is_near {
            return Err("no pair within the distance".to_owned());
        }
        Ok(Some(NearPair { a, b, distance: distance.unwrap_or_default() }))
    }

    /// Keeps the pairs of a table, ascending.
    pub(super) fn write<F: Fingerprint>(&self, table: usize, pairs: &[NearPair<F>]) -> Result<()> {
        let mut lines = SealedWriter::create(&self.path(table)?, self.unfinished)?;
        lines.push(&json(&self.header(table))?)?;
        for pair in pairs {
            let (a, b) = (pair.a.to_hex(), pair.b.to_hex());
            let line = match self.header.forest {
                true => PairLine::Forest(a, b),
                false => PairLine::Pair(a, b, pair.distance),
            };
            lines.push(&json(&line)?)?;
        }
        lines.push(&json(&End { end: pairs.len() })?)?;
        lines.finish()
    }
}
