//! Verifies a whole table file.

use std::ops::ControlFlow;

use byteorder::{ByteOrder, LittleEndian};

use super::reader::Table;
use crate::codec::{Block, BlockCodec, with_codec};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_footer as footer};
use crate::progress;

impl<F: Fingerprint> Table<F> {
    /// Checks the parts that [`Table::open`] does not check: each block's checksum, the checksum of all these checksums,
    /// the order and the number of the fingerprints, and their agreement with the block index. Calls `damaged` with each
    /// error and continues. Returns the number of readable fingerprints.
    ///
    /// Calls `visitor` for each block with its permuted fingerprints, or with an empty slice if the block is unreadable.
    /// `visitor` returns `Break` to stop.
    ///
    /// # Errors
    /// [`Error::Cancelled`] if `visitor` stops the verification.
    pub fn verify(
        &self,
        mut visitor: impl FnMut(&[F]) -> ControlFlow<()>,
        mut damaged: impl FnMut(Error),
    ) -> Result<u64> {
        let mut decoded = Vec::new();
        let (mut count, mut whole) = (0, true);
        let mut previous = None;
        let mut crc = crc32fast::Hasher::new();
        for block in 0..self.blocks() {
            crc.update(&self.blocks.unverified(block)[..4]);
            decoded.clear();
            if let Err(error) = self.decode_block(block, &mut decoded) {
                damaged(error);
                whole = false;
                previous = Some(self.index.last(block));
                progress::break_to_cancelled(visitor(&[]))?;
                continue;
            }
            let ascending = decoded.windows(2).all(|pair| pair[0] < pair[1]);
            if !ascending || previous >= decoded.first().copied() {
                let damage = Damage::Order { what: "the fingerprints of a block" };
                damaged(self.blocks.damaged(block, damage));
            } else if let Err(damage) = self.check_code(block, &decoded) {
                damaged(self.blocks.damaged(block, damage));
            }
            previous = decoded.last().copied().max(previous);
            if decoded.last() != Some(&self.index.last(block)) {
                let damage = Damage::Mismatch { what: "a block's last fingerprint and the block index" };
                damaged(self.blocks.damaged(block, damage));
            }
            count += decoded.len() as u64;
            progress::break_to_cancelled(visitor(&decoded))?;
        }
        if whole && count != self.header().fingerprints {
            let damage =
                Damage::Mismatch { what: "the number of fingerprints in the blocks and in the header" };
            damaged(Error::corrupt(self.path(), format::table_header::FINGERPRINTS as u64, damage));
        }
        let at = self.file_len() as usize - footer::LEN + footer::BLOCKS_CRC;
        let (expected, found) = (LittleEndian::read_u32(&self.blocks.file()[at..]), crc.finalize());
        if expected != found {
            let damage = Damage::Checksum { part: "checksums of the blocks", expected, found };
            damaged(Error::corrupt(self.path(), at as u64, damage));
        }
        if let Some(lines) = &self.lines {
            let (mut is_sound, at) = (true, lines.offset(0) as u64);
            lines.verify_pages(|damage| {
                is_sound = false;
                damaged(Error::corrupt(self.path(), at, damage));
            });
            if is_sound && let Err(damage) = lines.check(self.header().fingerprints) {
                damaged(Error::corrupt(self.path(), at, damage));
            }
        }
        Ok(count)
    }

    /// Checks that a block has exactly the bytes that the format prescribes for its fingerprints.
    fn check_code(&self, block: usize, fingerprints: &[F]) -> Result<(), Damage> {
        with_codec!(&self.codec, codec => codec.check(Block { number: block, bytes: self.blocks.unverified(block) }, fingerprints))
    }
}
