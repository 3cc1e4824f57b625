//! Counting the symbols of a table, for its Huffman code.

use super::Codec;
use super::all_differences::WINDOW;
use super::symbols::Counts;
use crate::fingerprint::Fingerprint;
use crate::huffman::Code;

/// How often each symbol occurs between the fingerprints of a table.
///
/// Fingerprints come in strictly ascending order, permuted.
pub(crate) struct SymbolCounts<F> {
    codec: Codec,
    counts: Counts,
    fingerprints: u64,
    /// The last ones, and some before.
    recent: Vec<F>,
}

impl<F: Fingerprint> SymbolCounts<F> {
    pub(crate) fn new(codec: Codec) -> Self {
        let counts = Counts::new(codec.symbols(F::BITS));
        SymbolCounts { codec, counts, fingerprints: 0, recent: Vec::with_capacity(2 * WINDOW) }
    }

    /// The counts of a codec without a code: only the number of fingerprints matters.
    pub(crate) fn of(codec: Codec, fingerprints: u64) -> Self {
        SymbolCounts { fingerprints, ..SymbolCounts::new(codec) }
    }

    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        if !self.recent.is_empty() {
            self.codec.count(&self.recent, fingerprint, &mut self.counts);
        }
        if self.recent.len() == 2 * WINDOW {
            self.recent.drain(..WINDOW);
        }
        self.recent.push(fingerprint);
        self.fingerprints += 1;
    }

    /// Number of fingerprints pushed.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    pub(crate) fn code(&self) -> Code {
        self.counts.code()
    }
}
