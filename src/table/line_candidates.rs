//! Candidates: fingerprints whose prefix was found in a prefix line. They wait until their other bits are loaded.

use super::line_table::LineTable;
use super::probe_hit::ProbeHit;
use crate::codec::HammingBall;
use crate::error::Result;
use crate::fingerprint::Fingerprint;
use crate::prefix_lines::{KeyRun, MAX_LOW_BITS, PrefixLine};
use crate::simd::{self, Kernel};

/// Maximum number of candidates that wait for their blocks.
const MAX_CANDIDATES: usize = 32;
/// Maximum number of listed keys that wait for their blocks.
const MAX_LISTED: usize = 64;

/// Fingerprints with prefixes that a probe looks for. Their other bits are being loaded.
#[derive(Clone, Copy)]
pub(super) enum LineCandidate<'a> {
    /// Keys of one bucket in a line: the keys whose bits in `matches` are set, as [`PrefixLine::matching_keys`] counts them.
    Keys { table: u8, line: PrefixLine<'a>, matches: u64, bucket: u64 },
    /// Equal keys.
    Run { table: u8, run: KeyRun },
    /// Keys of divided lines: the part of the listed keys from `start` to `end`.
    Listed { table: u8, start: u8, end: u8 },
}

impl LineCandidate<'_> {
    const NONE: Self = LineCandidate::Run { table: 0, run: KeyRun { key: 0, rank: 0, count: 0 } };

    /// Index of the candidate's table.
    #[inline(always)]
    pub(super) fn table(self) -> u8 {
        match self {
            LineCandidate::Keys { table, .. }
            | LineCandidate::Run { table, .. }
            | LineCandidate::Listed { table, .. } => table,
        }
    }
}

/// The candidates of a query that wait for their blocks.
pub(super) struct CandidateBuffer<'a> {
    candidates: [LineCandidate<'a>; MAX_CANDIDATES],
    count: usize,
    /// Keys of the candidates of the kind [`LineCandidate::Listed`]. Each has its rank and its value.
    listed: [(u64, u64); MAX_LISTED],
    listed_len: usize,
}

impl<'a> CandidateBuffer<'a> {
    pub(super) fn new() -> Self {
        let candidates = [LineCandidate::NONE; MAX_CANDIDATES];
        CandidateBuffer { candidates, count: 0, listed: [(0, 0); MAX_LISTED], listed_len: 0 }
    }

    /// Adds a candidate. Returns whether the buffer is full: then [`CandidateBuffer::compare`] must follow.
    #[inline(always)]
    pub(super) fn push(&mut self, candidate: LineCandidate<'a>) -> bool {
        self.candidates[self.count % MAX_CANDIDATES] = candidate;
        self.count += 1;
        self.count == MAX_CANDIDATES
    }

    /// Lists a key, which a later candidate may contain. Returns false if the list is full.
    #[inline(always)]
    pub(super) fn list(&mut self, rank: u64, key: u64) -> bool {
        let has_room = self.listed_len < MAX_LISTED;
        if has_room {
            self.listed[self.listed_len] = (rank, key);
            self.listed_len += 1;
        }
        has_room
    }

    /// Number of listed keys.
    pub(super) fn listed_len(&self) -> usize {
        self.listed_len
    }

    /// Whether no further key can be listed.
    pub(super) fn has_full_list(&self) -> bool {
        self.listed_len == MAX_LISTED
    }

    /// Returns the listed keys from the index `start` on, each with its rank.
    pub(super) fn listed_from(&self, start: usize) -> &[(u64, u64)] {
        self.listed[..self.listed_len].get(start..).unwrap_or_default()
    }

    /// Compares all candidates with the queries of their tables, and removes them.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
    pub(super) fn compare<F: Fingerprint>(
        &mut self,
        tables: &[LineTable<'_, F>],
        distance: u32,
        visitor: &mut impl FnMut(ProbeHit<F>),
    ) -> Result<()> {
        simd::dispatch(CompareCandidates { candidates: self, tables, distance, visitor })
    }
}

/// Compares all candidates of a query with it.
struct CompareCandidates<'a, 'b, F, V> {
    candidates: &'a mut CandidateBuffer<'b>,
    tables: &'a [LineTable<'a, F>],
    distance: u32,
    visitor: &'a mut V,
}

impl<F: Fingerprint, V: FnMut(ProbeHit<F>)> Kernel for CompareCandidates<'_, '_, F, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(self) -> Result<()> {
        let CompareCandidates {
            candidates: CandidateBuffer { candidates, count, listed, listed_len }, ..
        } = self;
        let CompareCandidates { tables, distance, visitor, .. } = self;
        for candidate in &candidates[..(*count).min(MAX_CANDIDATES)] {
            match *candidate {
                LineCandidate::Keys { table, line, mut matches, bucket } => {
                    let keys = std::iter::from_fn(|| {
                        let index = matches.trailing_zeros();
                        matches = matches.checked_sub(1)? & matches;
                        let key = bucket << MAX_LOW_BITS | u64::from(line.low_byte(index));
                        Some((line.rank() + u64::from(index), key))
                    });
                    compare_keys(tables, table, distance, keys, visitor)?;
                }
                LineCandidate::Run { table, run } => {
                    let keys = (0..run.count).map(|next| (run.rank.saturating_add(next), run.key));
                    compare_keys(tables, table, distance, keys, visitor)?;
                }
                LineCandidate::Listed { table, start, end } => {
                    let keys = listed[usize::from(start)..usize::from(end)].iter().copied();
                    compare_keys(tables, table, distance, keys, visitor)?;
                }
            }
        }
        (*count, *listed_len) = (0, 0);
        Ok(())
    }
}

/// Compares fingerprints of a table with the query. `keys` has the rank and the prefix of each.
#[inline(always)]
fn compare_keys<F: Fingerprint>(
    tables: &[LineTable<'_, F>],
    number: u8,
    distance: u32,
    keys: impl Iterator<Item = (u64, u64)>,
    visitor: &mut impl FnMut(ProbeHit<F>),
) -> Result<()> {
    let number = usize::from(number);
    let LineTable { table, codec, query, block_fingerprints, .. } = tables[number];
    let ball = HammingBall { query, distance };
    let (mut block, mut bytes): (usize, &[u8]) = (0, &[]);
    // Rank of the block's first fingerprint, and the rank after its last one.
    let (mut start, mut end) = (0, 0);
    for (rank, key) in keys {
        if rank < start || rank >= end {
            block = tables[number].block_of(rank)?;
            bytes = table.blocks.get(block)?;
            start = block as u64 * block_fingerprints;
            end = start + block_fingerprints;
        }
        let position = (rank - start) as usize;
        let value: F = codec.fingerprint(key, bytes, position);
        if ball.contains(value) {
            visitor(ProbeHit { table: number, block, position, value });
        }
    }
    Ok(())
}
