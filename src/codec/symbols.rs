//! What the Huffman code of a table is built from.

use super::Codec;
use crate::fingerprint::Fingerprint;
use crate::huffman::{Code, MAX_SYMBOLS};

/// How often each symbol occurs between neighbours of a table.
///
/// Fingerprints come in strictly ascending order, permuted.
pub(crate) struct SymbolCounts<F> {
    codec: Codec,
    counts: [u64; MAX_SYMBOLS],
    fingerprints: u64,
    previous: F,
}

impl<F: Fingerprint> SymbolCounts<F> {
    pub(crate) fn new(codec: Codec) -> Self {
        SymbolCounts { codec, counts: [0; MAX_SYMBOLS], fingerprints: 0, previous: F::ZERO }
    }

    /// The counts of a codec without a code, for which only the number of fingerprints matters.
    pub(crate) fn of(codec: Codec, fingerprints: u64) -> Self {
        SymbolCounts { fingerprints, ..SymbolCounts::new(codec) }
    }

    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        if self.fingerprints > 0
            && let Some(symbol) = self.codec.symbol(self.previous, fingerprint)
        {
            self.counts[symbol as usize] += 1;
        }
        self.previous = fingerprint;
        self.fingerprints += 1;
    }

    /// Number of fingerprints pushed.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    pub(crate) fn code(&self) -> Code {
        Code::from_counts(&self.counts)
    }
}
