//! Reading a table file.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use bitvec::prelude::*;
use byteorder::{ByteOrder, LittleEndian};

use super::block_index::BlockIndex;
use super::header::TableHeader;
use super::probe::{Flips, probe};
use crate::codec::{
    BlockCodec, BlockHeader, Codec, Difference, EliasFano, FirstDifference, Gap, Near, Range,
};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_footer as footer};
use crate::kernels::{self, Work};
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
    flips: Flips<F>,
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
        if !self.is_verified(block) {
            self.verify(block, bytes)?;
        }
        Ok(bytes)
    }

    #[inline(always)]
    fn is_verified(&self, block: usize) -> bool {
        self.sound.as_raw_slice()[block / 64].load(Ordering::Relaxed) >> (block % 64) & 1 == 1
    }

    #[cold]
    fn will_need(&self, block: usize) {
        self.bytes.will_need(self.range(block));
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
        let flips = Flips::new(&header);
        let blocks = Blocks { path: path.to_path_buf(), offset, size, end: index_offset, sound, bytes };
        Ok(Table { header, codec, blocks, index: BlockIndex::new(last), prefix_mask, flips })
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
        self.index.memory() + self.blocks.sound.len() / 8 + decoder + self.flips.memory()
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.blocks.path
    }

    /// What its probes flip.
    #[inline(always)]
    pub(super) fn flips(&self) -> &Flips<F> {
        &self.flips
    }

    /// The block that a permuted fingerprint would be in.
    pub(crate) fn block_of(&self, permuted: F) -> usize {
        self.index.find(permuted)
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
        with_codec!(&self.codec, codec => kernels::dispatch(Decode { codec, bytes, fingerprints }))
            .map_err(|damage| self.blocks.damaged(block, damage))
    }

    /// Says that these blocks, and as many after them, will be decoded one after the other.
    pub(crate) fn will_need(&self, blocks: std::ops::Range<usize>) {
        let start = self.blocks.offset + blocks.start * self.blocks.size;
        let end = start + 2 * blocks.len() * self.blocks.size;
        self.blocks.bytes.will_need(start.min(self.blocks.end)..end.min(self.blocks.end));
    }

    /// Whether the block is coded as its fingerprints are.
    fn check_code(&self, block: usize, fingerprints: &[F]) -> Result<(), Damage> {
        let bytes = self.blocks.bytes.as_ref();
        with_codec!(&self.codec, codec => codec.check(&bytes[self.blocks.range(block)], fingerprints))
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
    pub fn visit(&self, low: F, high: F, mut visitor: impl FnMut(usize, usize, F)) -> Result<()> {
        kernels::dispatch(Visit { table: self, range: Range { low, high }, visitor: &mut visitor })
    }

    /// Calls `visitor` with each stored fingerprint, permuted, within `distance` of the query that the table's
    /// probes come across: at least those that its plan says, none twice.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub fn probe(&self, query: F, distance: u32, mut visitor: impl FnMut(F)) -> Result<()> {
        probe(std::slice::from_ref(self), query, distance, |_, value| visitor(value))
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

struct Decode<'a, F, C> {
    codec: &'a C,
    bytes: &'a [u8],
    fingerprints: &'a mut Vec<F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Work for Decode<'_, F, C> {
    type Output = std::result::Result<(), Damage>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.codec.decode(self.bytes, self.fingerprints)
    }
}

struct Visit<'a, F, V> {
    table: &'a Table<F>,
    range: Range<F>,
    visitor: V,
}

impl<F: Fingerprint, V: FnMut(usize, usize, F)> Work for Visit<'_, F, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(mut self) -> Result<()> {
        let Visit { table, range, .. } = self;
        for block in table.index.find(range.low)..table.index.len() {
            let (bytes, last) = (table.blocks.get(block)?, table.index.last(block));
            let visitor = |i, value| (self.visitor)(block, i, value);
            let visited = with_codec!(&table.codec, codec => match codec.locate(bytes, range, last) {
                Ok(Some(spot)) => codec.visit_from(bytes, spot.index, range, Near::ALL, visitor),
                Ok(None) => Ok(()),
                Err(damage) => Err(damage),
            });
            visited.map_err(|damage| table.blocks.damaged(block, damage))?;
            if table.index.last(block) >= range.high {
                break;
            }
        }
        Ok(())
    }
}

/// What a probe does with a table, step by step; compiled into the caller's loops.
impl<F: Fingerprint> Table<F> {
    #[inline(always)]
    pub(super) fn index(&self) -> &BlockIndex<F> {
        &self.index
    }

    #[inline(always)]
    pub(super) fn permute(&self, fingerprint: F) -> F {
        self.header.plan.permutation.apply(fingerprint)
    }

    /// The bytes of a block, verified.
    #[inline(always)]
    pub(super) fn block(&self, block: usize) -> Result<&[u8]> {
        self.blocks.get(block)
    }

    /// Has the operating system read a block, unless it has been read before: the blocks of a query then come from
    /// the disk together instead of one after the other.
    #[inline(always)]
    pub(super) fn fetch(&self, block: usize) {
        if block < self.blocks() && !self.blocks.is_verified(block) {
            self.blocks.will_need(block);
        }
    }

    /// Asks for the first line of a block.
    #[inline(always)]
    pub(super) fn prefetch_head(&self, block: usize) {
        kernels::prefetch(self.blocks.bytes.as_ref(), self.blocks.offset + block * self.blocks.size);
    }

    #[cold]
    pub(super) fn damaged(&self, block: usize, damage: Damage) -> Error {
        self.blocks.damaged(block, damage)
    }
}

/// A codec as that of a table.
pub(super) trait CodecOf<F: Fingerprint>: BlockCodec<F> {
    /// The codec of a table that has this one.
    fn of(table: &Table<F>) -> &Self;
}

macro_rules! codec_of {
    ($codec:ty, $variant:ident) => {
        impl<F: Fingerprint> CodecOf<F> for $codec {
            #[inline(always)]
            fn of(table: &Table<F>) -> &Self {
                match &table.codec {
                    AnyCodec::$variant(codec) => codec,
                    _ => unreachable!("the header names the codec"),
                }
            }
        }
    };
}

codec_of!(Difference<FirstDifference>, FirstDifference);
codec_of!(Difference<Gap>, Gap);
codec_of!(EliasFano, EliasFano);

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
