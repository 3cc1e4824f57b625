//! Reading a table file.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use super::block_index::BlockIndex;
use super::header::TableHeader;
use crate::codec::{BlockCodec, BlockHeader, Codec, Difference, EliasFano, FirstDifference, Gap};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_footer as footer};
use crate::map::Bytes;

/// An open table file.
#[derive(Debug)]
pub struct Table<F> {
    header: TableHeader<F>,
    codec: AnyCodec,
    blocks: Blocks,
    index: BlockIndex<F>,
    /// The plan's prefix as a mask of the original fingerprint.
    prefix_mask: F,
}

#[derive(Debug)]
enum AnyCodec {
    FirstDifference(Difference<FirstDifference>),
    Gap(Difference<Gap>),
    EliasFano(EliasFano),
}

/// Calls a generic method with the codec of a table: one match a probe, none in the loops.
macro_rules! with_codec {
    ($any:expr, $codec:ident => $call:expr) => {
        match $any {
            AnyCodec::FirstDifference($codec) => $call,
            AnyCodec::Gap($codec) => $call,
            AnyCodec::EliasFano($codec) => $call,
        }
    };
}

/// The blocks of a table file, and which of them have been found sound.
#[derive(Debug)]
struct Blocks {
    path: PathBuf,
    bytes: Bytes,
    offset: usize,
    size: usize,
    /// Where the last block ends.
    end: usize,
    sound: BitBox<AtomicU64>,
}

impl Blocks {
    fn range(&self, block: usize) -> std::ops::Range<usize> {
        let start = self.offset + block * self.size;
        start..(start + self.size).min(self.end)
    }

    /// The bytes of a block, after its checksum has been verified once.
    #[inline(always)]
    fn get(&self, block: usize) -> Result<&[u8]> {
        let bytes = &self.bytes.as_ref()[self.range(block)];
        if !self.sound[block] {
            self.verify(block, bytes)?;
        }
        Ok(bytes)
    }

    #[cold]
    fn verify(&self, block: usize, bytes: &[u8]) -> Result<()> {
        let (expected, found) = (LittleEndian::read_u32(bytes), format::numbered_crc(block as u64, bytes));
        if expected != found {
            return Err(self.damaged(block, Damage::Checksum { part: "block", expected, found }));
        }
        self.sound.set_aliased(block, true);
        Ok(())
    }

    #[cold]
    fn damaged(&self, block: usize, damage: Damage) -> Error {
        Error::corrupt(&self.path, self.range(block).start as u64, damage)
    }
}

/// What stands in the header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo<F> {
    /// Offset of the block in its file, in bytes.
    pub offset: u64,
    /// Length in bytes.
    pub len: usize,
    /// Number of fingerprints.
    pub fingerprints: usize,
    /// `first-difference`, `gap`: bits of a restart point; `elias-fano`: lower bits of each fingerprint.
    pub width: u32,
    /// First fingerprint, permuted.
    pub first: F,
    /// Last fingerprint, permuted: its entry in the block index.
    pub last: F,
}

impl<F: Fingerprint> Table<F> {
    /// Opens the bytes of a table file: checks header, footer and block index, not the blocks. `path` is for
    /// messages only.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are not a whole table file of this width,
    /// [`Error::UnsupportedVersion`] if they are of a newer format.
    pub fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        let file = bytes.as_ref();
        let end = format::check_ends(path, file, format::TABLE_MAGIC, footer::LEN)?;
        let foot = &file[end..];
        let crc = |at: usize, part, offset: usize, bytes: &[u8]| {
            format::check_crc(path, part, offset, bytes, LittleEndian::read_u32(&foot[at..]))
        };
        crc(footer::FOOTER_CRC, "footer", end, &foot[..footer::FOOTER_CRC])?;
        let (header, blocks_offset) = TableHeader::<F>::decode(path, &file[..end])?;
        let offset = blocks_offset as usize;
        let size = header.block_size as usize;

        // All sizes follow from the footer's two: compare them in 128 bits, where nothing overflows.
        let blocks = LittleEndian::read_u64(&foot[footer::BLOCKS..]);
        let blocks_len = LittleEndian::read_u64(&foot[footer::BLOCKS_LEN..]);
        let expected = offset as u128 + u128::from(blocks_len) + u128::from(blocks) * F::BYTES as u128;
        if expected != end as u128 {
            let damage = Damage::Truncated {
                expected: u64::try_from(expected + footer::LEN as u128).unwrap_or(u64::MAX),
                found: file.len() as u64,
            };
            return Err(Error::corrupt(path, end as u64, damage));
        }
        let shortest = (blocks_len % size as u64) as usize;
        let sound_len = blocks == blocks_len.div_ceil(size as u64)
            && (shortest == 0 || shortest >= BlockHeader::<F>::LEN)
            && blocks < u64::from(u32::MAX)
            && blocks <= header.fingerprints
            && header.fingerprints <= blocks * format::MAX_BLOCK_COUNT as u64;
        if !sound_len {
            let expected = "as many as the length of the blocks and the number of fingerprints allow";
            let damage = Damage::Field { name: "blocks", found: blocks, expected };
            return Err(Error::corrupt(path, (end + footer::BLOCKS) as u64, damage));
        }
        crc(footer::HEADER_CRC, "header", 0, &file[..offset])?;
        let index_offset = offset + blocks_len as usize;
        let index = &file[index_offset..end];
        crc(footer::INDEX_CRC, "block index", index_offset, index)?;
        let last: Vec<F> = index.chunks_exact(F::BYTES).map(F::read_le).collect();
        if last.windows(2).any(|pair| pair[0] >= pair[1]) {
            let damage = Damage::Order { what: "the fingerprints of the block index" };
            return Err(Error::corrupt(path, index_offset as u64, damage));
        }

        let code = || header.code.clone();
        let codec = match header.codec {
            Codec::FirstDifference => {
                AnyCodec::FirstDifference(Difference::new(code(), header.span, header.block_size))
            }
            Codec::Gap => AnyCodec::Gap(Difference::new(code(), header.span, header.block_size)),
            Codec::EliasFano => AnyCodec::EliasFano(EliasFano),
        };
        let sound = BitVec::repeat(false, blocks as usize).into_boxed_bitslice();
        let prefix_mask = header.plan.prefix_mask();
        let blocks = Blocks { path: path.to_path_buf(), offset, size, end: index_offset, sound, bytes };
        Ok(Table { header, codec, blocks, index: BlockIndex::new(last), prefix_mask })
    }

    /// What the table holds and how.
    pub fn header(&self) -> &TableHeader<F> {
        &self.header
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.index.len()
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.blocks.bytes.as_ref().len() as u64
    }

    /// Bytes in memory besides the map: block index, radix directory, which blocks are verified, and the
    /// decoding table of the Huffman code, 32 KiB whatever the size of the table.
    pub fn memory(&self) -> usize {
        let decoder = match &self.codec {
            AnyCodec::EliasFano(_) => 0,
            _ => crate::huffman::Decoder::MEMORY,
        };
        self.index.memory() + self.blocks.sound.len() / 8 + decoder
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.blocks.path
    }

    /// The bits of the original fingerprint that make the prefix.
    pub(crate) fn prefix_mask(&self) -> F {
        self.prefix_mask
    }

    /// What stands in the header of a block.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is no such block, [`Error::Corrupt`] if it is damaged.
    pub fn block_info(&self, block: usize) -> Result<BlockInfo<F>> {
        self.check_block(block)?;
        let bytes = self.blocks.get(block)?;
        let header = BlockHeader::<F>::read(bytes).map_err(|damage| self.blocks.damaged(block, damage))?;
        Ok(BlockInfo {
            offset: self.blocks.range(block).start as u64,
            len: bytes.len(),
            fingerprints: header.count,
            width: header.width,
            first: header.first,
            last: self.index.last(block),
        })
    }

    /// Appends the permuted fingerprints of a block, in order.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is no such block, [`Error::Corrupt`] if it is damaged.
    pub fn decode_block(&self, block: usize, fingerprints: &mut Vec<F>) -> Result<()> {
        self.check_block(block)?;
        let bytes = self.blocks.get(block)?;
        with_codec!(&self.codec, codec => codec.decode(bytes, fingerprints))
            .map_err(|damage| self.blocks.damaged(block, damage))
    }

    fn check_block(&self, block: usize) -> Result<()> {
        if block < self.blocks() {
            return Ok(());
        }
        Err(Error::BadArgument(format!(
            "{} has {} blocks, there is no block {block}",
            self.path().display(),
            self.blocks()
        )))
    }

    /// Calls `visitor` with block, position in the block and value of each permuted fingerprint from `low` to
    /// `high`, in order.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub fn visit(&self, low: F, high: F, visitor: impl FnMut(usize, usize, F)) -> Result<()> {
        let block = self.index.find(low);
        with_codec!(&self.codec, codec => self.visit_from(codec, block, low, high, visitor))
    }

    #[inline(always)]
    fn visit_from(
        &self,
        codec: &impl BlockCodec<F>,
        mut block: usize,
        low: F,
        high: F,
        mut visitor: impl FnMut(usize, usize, F),
    ) -> Result<()> {
        while block < self.index.len() {
            codec
                .visit(self.blocks.get(block)?, low, high, |i, value| visitor(block, i, value))
                .map_err(|damage| self.blocks.damaged(block, damage))?;
            if self.index.last(block) >= high {
                break;
            }
            block += 1;
        }
        Ok(())
    }

    /// Calls `visitor` with each stored fingerprint, permuted, that a probe for `query` reads: at least all
    /// whose prefix differs from the query's in at most `flips` bits, none twice.
    ///
    /// `query` is permuted too. The probes go down the prefix bit by bit, and stop where all that can follow
    /// lies in one block: probes that share a block share its reading.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub fn probe(&self, query: F, flips: u32, visitor: impl FnMut(F)) -> Result<()> {
        with_codec!(&self.codec, codec => {
            Probe { table: self, codec, query, visitor }.descend(0, F::ZERO, flips)
        })
    }

    /// The fingerprints in the table's order, permuted.
    pub fn scan(&self) -> TableScan<'_, F> {
        TableScan { table: self, block: 0, decoded: Vec::new(), position: 0 }
    }

    /// Checks all that [`Table::open`] does not: every block's checksum and all of them together, the order
    /// of all fingerprints, the block index, and their number. Calls `damaged` with each error and goes on;
    /// returns how many fingerprints could be read.
    ///
    /// `visitor` gets each permuted fingerprint.
    pub fn verify(&self, mut visitor: impl FnMut(F), mut damaged: impl FnMut(Error)) -> u64 {
        let mut decoded = Vec::new();
        let (mut count, mut whole) = (0, true);
        let mut previous = None;
        let mut crc = crc32fast::Hasher::new();
        for block in 0..self.blocks() {
            crc.update(&self.blocks.bytes.as_ref()[self.blocks.range(block)][..4]);
            decoded.clear();
            if let Err(error) = self.decode_block(block, &mut decoded) {
                damaged(error);
                whole = false;
                previous = Some(self.index.last(block));
                continue;
            }
            for &value in &decoded {
                if previous.is_some_and(|previous| previous >= value) {
                    let damage = Damage::Order { what: "the fingerprints of a block" };
                    damaged(self.blocks.damaged(block, damage));
                    break;
                }
                previous = Some(value);
            }
            if decoded.last() != Some(&self.index.last(block)) {
                let damage = Damage::Mismatch { what: "a block's last fingerprint and the block index" };
                damaged(self.blocks.damaged(block, damage));
            }
            count += decoded.len() as u64;
            decoded.iter().copied().for_each(&mut visitor);
        }
        if whole && count != self.header.fingerprints {
            let damage =
                Damage::Mismatch { what: "the number of fingerprints in the blocks and in the header" };
            damaged(Error::corrupt(self.path(), format::table_header::FINGERPRINTS as u64, damage));
        }
        let at = self.file_len() as usize - footer::LEN + footer::BLOCKS_CRC;
        let (expected, found) = (LittleEndian::read_u32(&self.blocks.bytes.as_ref()[at..]), crc.finalize());
        if expected != found {
            let damage = Damage::Checksum { part: "checksums of the blocks", expected, found };
            damaged(Error::corrupt(self.path(), at as u64, damage));
        }
        count
    }
}

/// One query's probes of one table.
struct Probe<'a, F, C, V> {
    table: &'a Table<F>,
    codec: &'a C,
    query: F,
    visitor: V,
}

impl<F: Fingerprint, C: BlockCodec<F>, V: FnMut(F)> Probe<'_, F, C, V> {
    /// Reads what starts with the `depth` bits of `prefix`, and then differs from the query in at most `flips`
    /// bits up to the end of the prefix.
    fn descend(&mut self, depth: u32, prefix: F, flips: u32) -> Result<()> {
        let p = self.table.header.plan.prefix_bits;
        // Without a flip left there is one way down.
        let (depth, prefix) = match flips {
            0 => (p, prefix | (self.query & F::prefix_mask(p) & !F::prefix_mask(depth))),
            _ => (depth, prefix),
        };
        let (low, high) = (prefix, prefix | !F::prefix_mask(depth));
        let index = &self.table.index;
        let block = index.find(low);
        if block == index.len() {
            return Ok(());
        }
        if depth == p || index.last(block) >= high {
            let visitor = &mut self.visitor;
            return self.table.visit_from(self.codec, block, low, high, |_, _, value| visitor(value));
        }
        let bit = F::bit_mask(depth);
        let (zero, one) = if self.query & bit == F::ZERO { (flips, flips - 1) } else { (flips - 1, flips) };
        self.descend(depth + 1, prefix, zero)?;
        self.descend(depth + 1, prefix | bit, one)
    }
}

/// Iterates over the permuted fingerprints of a table in order; made by [`Table::scan`].
///
/// Ends after the first error.
#[derive(Debug)]
pub struct TableScan<'a, F> {
    table: &'a Table<F>,
    block: usize,
    decoded: Vec<F>,
    position: usize,
}

impl<F: Fingerprint> Iterator for TableScan<'_, F> {
    type Item = Result<F>;

    #[inline]
    fn next(&mut self) -> Option<Result<F>> {
        while self.position == self.decoded.len() {
            if self.block == self.table.blocks() {
                return None;
            }
            self.decoded.clear();
            self.position = 0;
            if let Err(error) = self.table.decode_block(self.block, &mut self.decoded) {
                self.block = self.table.blocks();
                self.decoded.clear();
                return Some(Err(error));
            }
            self.block += 1;
        }
        self.position += 1;
        Some(Ok(self.decoded[self.position - 1]))
    }
}
