//! Statistics for tools that inspect a store: the first differing bits of neighbours in a table, and the coding of each
//! fingerprint.

use super::reader::Table;
use crate::codec::{Block, BlockCodec, Codec, Coding, with_codec};
use crate::error::{Damage, Result};
use crate::fingerprint::Fingerprint;

impl<F: Fingerprint> Table<F> {
    /// Returns the position of the first bit that differs between a permuted fingerprint and its predecessor. With
    /// [`Codec::Gap`], returns the position of the top bit of their numeric difference. Position 0 is the most significant
    /// bit.
    pub fn differing_bit(&self, previous: F, next: F) -> u32 {
        let difference = match self.header().codec {
            Codec::Gap => next.wrapping_sub(previous),
            _ => next ^ previous,
        };
        difference.leading_zeros()
    }

    /// Calls [`Table::differing_bit`] for all pairs of consecutive fingerprints in every `step`-th block (blocks 0, `step`,
    /// 2 `step`, ...). Returns the number of pairs for each bit position.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt) if a block is damaged.
    pub fn differing_bits(&self, step: usize) -> Result<Vec<u64>> {
        let mut counts = vec![0; F::BITS as usize];
        let mut decoded = Vec::new();
        for block in (0..self.blocks()).step_by(step.max(1)) {
            decoded.clear();
            self.decode_block(block, &mut decoded)?;
            for pair in decoded.windows(2) {
                // In a sound table the fingerprints of a block ascend, so neighbours differ.
                if let Some(count) = counts.get_mut(self.differing_bit(pair[0], pair[1]) as usize) {
                    *count += 1;
                }
            }
        }
        Ok(counts)
    }

    /// Returns the coding of each fingerprint of a block, in order. The coding is `None` for restart points, and for all
    /// fingerprints if the codec has no Huffman code.
    ///
    /// # Errors
    /// [`Error::BadArgument`](crate::Error::BadArgument) if the table has no block with this index,
    /// [`Error::Corrupt`](crate::Error::Corrupt) if the block is damaged: also if its fingerprints do not ascend, or if a
    /// fingerprint of [`Codec::AllDifferences`] has a coding that no conforming writer chooses.
    pub fn codings(&self, block: usize) -> Result<Vec<Option<Coding>>> {
        let mut fingerprints = Vec::new();
        self.decode_block(block, &mut fingerprints)?;
        let bytes = Block { number: block, bytes: self.blocks.get(block)? };
        let codings = match fingerprints.is_sorted_by(|a, b| a < b) {
            true => with_codec!(&self.codec, codec => codec.codings(bytes, &fingerprints)),
            false => Err(Damage::Order { what: "the fingerprints of a block" }),
        };
        codings.map_err(|damage| self.blocks.damaged(block, damage))
    }
}
