//! A table with prefix lines, as one query sees it.

use super::line_probes::LineProbes;
use super::reader::Table;
use crate::codec::{AnyCodec, PrefixLinesCodec};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::prefix_lines::{LINE_BYTES, MAX_LOW_BITS, PrefixLines};

/// A table to probe, with the query permuted for it.
pub(super) struct LineTable<'a, F> {
    pub(super) table: &'a Table<F>,
    pub(super) lines: &'a PrefixLines,
    pub(super) codec: &'a PrefixLinesCodec,
    pub(super) probes: &'a LineProbes,
    pub(super) query: F,
    /// Prefix of the query.
    pub(super) key: u64,
    /// Number of fingerprints in a block.
    pub(super) block_fingerprints: u64,
    /// Number of suffixes (the bits after the prefix) that a cache line holds.
    pub(super) suffixes_per_line: u64,
}

impl<F: Copy> Clone for LineTable<'_, F> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F: Copy> Copy for LineTable<'_, F> {}

impl<'a, F: Fingerprint> LineTable<'a, F> {
    /// Returns `None` if the table is not searched by its lines.
    pub(super) fn new(table: &'a Table<F>, query: F) -> Option<Self> {
        let probes = table.line_probes.as_ref()?;
        let (AnyCodec::PrefixLines(codec), Some(lines)) = (&table.codec, table.lines.as_deref()) else {
            return None;
        };
        let query = table.permute(query);
        let (key, block_fingerprints) = (codec.key(query), codec.block_fingerprints::<F>());
        let suffixes_per_line = codec.suffixes_per_line::<F>();
        Some(LineTable { table, lines, codec, probes, query, key, block_fingerprints, suffixes_per_line })
    }

    /// Returns the bucket that a probe looks for. `mask` is the index of its mask in [`LineProbes::masks`] of `flips`.
    #[inline(always)]
    pub(super) fn bucket(&self, flips: u32, mask: usize) -> u64 {
        self.key >> MAX_LOW_BITS ^ u64::from(self.probes.masks(flips)[mask])
    }

    /// Returns the block of the fingerprint with this rank.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the table has no such fingerprint: a damaged line counts more keys than there are fingerprints.
    #[inline(always)]
    pub(super) fn block_of(&self, rank: u64) -> Result<usize> {
        let block = rank / self.block_fingerprints;
        if block < self.table.blocks() as u64 { Ok(block as usize) } else { Err(self.damaged(TOO_MANY_KEYS)) }
    }

    /// Prefetches the bits after the prefix of `count` fingerprints from the rank `rank` on: the first two cache lines.
    #[inline(always)]
    pub(super) fn prefetch_suffixes(&self, rank: u64, count: u64) -> Result<()> {
        let block = self.block_of(rank)?;
        let position = (rank - block as u64 * self.block_fingerprints) as usize;
        let byte = self.codec.suffix_byte::<F>(position);
        self.table.blocks.prefetch_byte(block, byte);
        if count > 1 {
            // A damaged line may count any number of equal keys.
            let count = count.min(MAX_PREFETCHED) as usize;
            let last = self.codec.suffix_byte::<F>(position + count) + 8;
            self.table.blocks.prefetch_byte(block, last.min(byte + LINE_BYTES));
        }
        self.table.blocks.prefetch_from_disk(block);
        Ok(())
    }

    #[cold]
    pub(super) fn damaged(&self, damage: Damage) -> Error {
        let at = match damage {
            Damage::LinePage { offset, .. } => offset,
            _ => self.lines.offset(0) as u64,
        };
        Error::corrupt(self.table.path(), at, damage)
    }
}

/// Maximum number of fingerprints whose suffixes are prefetched together: the suffixes of more take more than two cache lines.
const MAX_PREFETCHED: u64 = 128;
/// Error for a line that leads to a fingerprint that the table does not have.
const TOO_MANY_KEYS: Damage =
    Damage::Mismatch { what: "the keys of the prefix lines and the number of fingerprints" };
