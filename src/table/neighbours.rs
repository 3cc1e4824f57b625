//! How neighbours in a table differ, and how they are coded, to look into a store: what the Huffman codes are for.

use super::reader::Table;
use crate::codec::{BlockCodec, Codec, Coding, with_codec};
use crate::error::{Damage, Result};
use crate::fingerprint::Fingerprint;

impl<F: Fingerprint> Table<F> {
    /// Where a fingerprint differs from the one before, both permuted: the position of the first bit that differs, or for
    /// [`Codec::Gap`] of the top bit of the difference.
    pub fn differing_bit(&self, previous: F, next: F) -> u32 {
        let difference = match self.header().codec {
            Codec::Gap => next.wrapping_sub(previous),
            _ => next ^ previous,
        };
        difference.leading_zeros()
    }

    /// How often each of these positions comes between neighbours in every `step`-th block, from the first.
    ///
    /// # Errors
    /// Those of [`Table::decode_block`].
    pub fn differing_bits(&self, step: usize) -> Result<Vec<u64>> {
        let mut counts = vec![0; F::BITS as usize];
        let mut decoded = Vec::new();
        for block in (0..self.blocks()).step_by(step.max(1)) {
            decoded.clear();
            self.decode_block(block, &mut decoded)?;
            for pair in decoded.windows(2) {
                // Ascending as the blocks of a sound table are, no two are equal.
                if let Some(count) = counts.get_mut(self.differing_bit(pair[0], pair[1]) as usize) {
                    *count += 1;
                }
            }
        }
        Ok(counts)
    }

    /// How each fingerprint of a block is coded there, in order; `None` for restart points, and for all in a codec without
    /// symbols.
    ///
    /// # Errors
    /// Those of [`Table::decode_block`]; [`Error::Corrupt`](crate::Error::Corrupt) also where fingerprints do not ascend, or
    /// one of [`Codec::AllDifferences`] is coded as no writer may.
    pub fn codings(&self, block: usize) -> Result<Vec<Option<Coding>>> {
        let mut fingerprints = Vec::new();
        self.decode_block(block, &mut fingerprints)?;
        let bytes = self.blocks.get(block)?;
        let codings = match fingerprints.is_sorted_by(|a, b| a < b) {
            true => with_codec!(&self.codec, codec => codec.codings(bytes, &fingerprints)),
            false => Err(Damage::Order { what: "the fingerprints of a block" }),
        };
        codings.map_err(|damage| self.blocks.damaged(block, damage))
    }
}
