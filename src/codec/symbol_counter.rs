//! Counting the symbols of a table, for its Huffman code, and sampling its fingerprints, for the shape of its prefix lines.

use super::Codec;
use super::all_differences::WINDOW;
use super::symbols::SymbolHistogram;
use crate::fingerprint::Fingerprint;
use crate::huffman::HuffmanCode;
use crate::prefix_lines::LineShape;
use crate::run_sample::RunSample;

/// Counts the Huffman symbols that code the fingerprints of a table.
///
/// The fingerprints must be pushed in the order of the table: permuted, and strictly ascending.
pub(crate) struct SymbolCounter<F> {
    codec: Codec,
    histogram: SymbolHistogram,
    fingerprints: u64,
    /// The last fingerprints pushed: at least the last [`WINDOW`], as far as there are so many. The next fingerprint can
    /// be coded relative to any of these.
    recent: Vec<F>,
    /// Sample of the fingerprints, if the codec has prefix lines.
    sample: RunSample<F>,
}

impl<F: Fingerprint> SymbolCounter<F> {
    pub(crate) fn new(codec: Codec) -> Self {
        let histogram = SymbolHistogram::new(codec.alphabet_size(F::BITS));
        SymbolCounter {
            codec,
            histogram,
            fingerprints: 0,
            recent: Vec::with_capacity(2 * WINDOW),
            sample: RunSample::new(),
        }
    }

    /// Creates a counter that only has the number of fingerprints. This suffices for a codec with neither a Huffman code nor
    /// prefix lines.
    pub(crate) fn with_fingerprints(codec: Codec, fingerprints: u64) -> Self {
        SymbolCounter { fingerprints, ..SymbolCounter::new(codec) }
    }

    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        self.fingerprints += 1;
        if self.codec.spec().has_lines {
            return self.sample.push(fingerprint);
        }
        if !self.recent.is_empty() {
            self.codec.count(&self.recent, fingerprint, &mut self.histogram);
        }
        if self.recent.len() == 2 * WINDOW {
            self.recent.drain(..WINDOW);
        }
        self.recent.push(fingerprint);
    }

    /// Number of fingerprints pushed.
    pub(crate) fn fingerprints(&self) -> u64 {
        self.fingerprints
    }

    /// Shape of the table's prefix lines. `None` if the codec has no lines, or if no fingerprint was pushed.
    pub(crate) fn line_shape(&self) -> Option<LineShape> {
        (self.sample.pushed() > 0).then(|| LineShape::for_sample(&self.sample))
    }

    pub(crate) fn code(&self) -> HuffmanCode {
        self.histogram.code()
    }
}
