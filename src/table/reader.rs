//! Reads a table file.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use byteorder::{ByteOrder, LittleEndian};

use super::block_index::BlockIndex;
use super::blocks::TableBlocks;
use super::bloom_filter::BloomFilter;
use super::header::TableHeader;
use super::line_probes::LineProbes;
use super::probe_masks::ProbeMasks;
use crate::codec::{
    AnyCodec, Block, BlockCodec, BlockHeader, CodecParameters, FingerprintRange, HammingBall, with_codec,
};
use crate::error::{Damage, Error, Result};
use crate::file_bytes::Bytes;
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_footer as footer};
use crate::huffman::HuffmanDecoder;
use crate::prefix_lines::{self, LINE_BYTES, LineShape, PrefixLines};
use crate::simd::{self, Kernel};

/// An open table file.
#[derive(Debug)]
pub struct Table<F> {
    header: TableHeader<F>,
    pub(super) codec: AnyCodec,
    pub(super) blocks: TableBlocks,
    pub(super) index: BlockIndex<F>,
    /// Mask of the bits of an original fingerprint that the permutation moves to the prefix.
    prefix_mask: F,
    /// The prefix lines; `None` if the table has none.
    pub(super) lines: Option<Arc<PrefixLines>>,
    /// The probes that look for prefixes in the lines; `None` if the table is searched by blocks.
    pub(super) line_probes: Option<LineProbes>,
    pub(super) probe_masks: ProbeMasks<F>,
    filter: OnceLock<BloomFilter<F>>,
}

/// The header of a block, with the block's location in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockInfo<F> {
    /// Offset of the block in its file, in bytes.
    pub offset: u64,
    /// Length of the block in bytes.
    pub len: usize,
    /// Number of fingerprints in the block.
    pub fingerprints: usize,
    /// With the codec `elias-fano`, width in bits of the lower part of a fingerprint; with `prefix-lines`, width of the bits
    /// after the prefix. With other codecs, width in bits of a restart point (the first fingerprint of a span).
    pub width: u32,
    /// First fingerprint, permuted.
    pub first: F,
    /// Last fingerprint, permuted, as in the block index.
    pub last: F,
}

/// Numbers of the prefix lines of a table: cache lines with the first bits of all fingerprints
/// (`format-spec/prefix-lines.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixLineCounts {
    /// Number of leading bits of each fingerprint that the lines have; the blocks have the other bits.
    pub key_bits: u32,
    /// Number of main lines, to which arithmetic leads.
    pub lines: u64,
    /// Number of lines that divide others, whose keys did not fit.
    pub dividing_lines: u64,
}

impl<F: Fingerprint> Table<F> {
    /// Opens the bytes of a table file. Checks header, footer and block index, but not the blocks. `path` appears only in
    /// messages.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the bytes are not a complete table file for fingerprints of this width,
    /// [`Error::UnsupportedVersion`] if they have another format version.
    pub fn open(path: &Path, bytes: Bytes) -> Result<Self> {
        let file = bytes.as_ref();
        let end = format::check_ends(path, file, format::TABLE_MAGIC, footer::LEN)?;
        let min_len = format::table_header::PERMUTATION + footer::LEN;
        if file.len() < min_len {
            let damage = Damage::Truncated { expected: min_len as u64, found: file.len() as u64 };
            return Err(Error::corrupt(path, file.len() as u64, damage));
        }
        let foot = &file[end..];
        let crc = |at: usize, part, offset: usize, bytes: &[u8]| {
            format::check_crc(path, part, offset, bytes, LittleEndian::read_u32(&foot[at..]))
        };
        crc(footer::FOOTER_CRC, "footer", end, &foot[..footer::FOOTER_CRC])?;
        let (header, blocks_offset) = TableHeader::<F>::decode(path, &file[..end])?;
        let offset = blocks_offset as usize;
        let size = header.block_size as usize;

        // All sizes follow from the two lengths in the footer. 128-bit integers prevent an overflow.
        let blocks = LittleEndian::read_u64(&foot[footer::BLOCKS..]);
        let blocks_len = LittleEndian::read_u64(&foot[footer::BLOCKS_LEN..]);
        let index_end = offset as u128 + u128::from(blocks_len) + u128::from(blocks) * F::BYTES as u128;
        let has_lines = header.line_shape.is_some();
        let dividing = LittleEndian::read_u64(&foot[footer::DIVIDING_LINES..]);
        if !has_lines && dividing > 0 {
            let expected = "0 in a table without prefix lines";
            let damage = Damage::Field { name: "dividing lines", found: dividing, expected };
            return Err(Error::corrupt(path, (end + footer::DIVIDING_LINES) as u64, damage));
        }
        let lines = header.line_shape.map_or(0, LineShape::lines).saturating_add(dividing);
        let lines_len =
            u128::from(lines) * LINE_BYTES as u128 + u128::from(prefix_lines::page_count(lines)) * 4;
        // Blocks that do not fit have no lines behind them.
        let lines_offset = match u64::try_from(index_end) {
            Ok(index_end) if has_lines && index_end <= end as u64 => {
                u128::from(header.lines_offset(index_end))
            }
            _ => index_end,
        };
        let expected = lines_offset + lines_len;
        if expected != end as u128 {
            let damage = Damage::Truncated {
                expected: u64::try_from(expected + footer::LEN as u128).unwrap_or(u64::MAX),
                found: file.len() as u64,
            };
            return Err(Error::corrupt(path, end as u64, damage));
        }
        let (index_end, lines_offset) = (index_end as usize, lines_offset as usize);
        if lines > u64::from(u32::MAX) {
            let damage = Damage::Field { name: "lines", found: lines, expected: "fewer than 2^32" };
            return Err(Error::corrupt(path, end as u64, damage));
        }
        let shortest = (blocks_len % size as u64) as usize;
        let sound_len = blocks == blocks_len.div_ceil(size as u64)
            && (shortest == 0 || shortest >= BlockHeader::<F>::LEN)
            && blocks < u64::from(u32::MAX)
            && blocks <= header.fingerprints
            && header.fingerprints <= blocks * format::MAX_BLOCK_FINGERPRINTS as u64;
        if !sound_len {
            let expected = "as many as the length of the blocks and the number of fingerprints allow";
            let damage = Damage::Field { name: "blocks", found: blocks, expected };
            return Err(Error::corrupt(path, (end + footer::BLOCKS) as u64, damage));
        }
        crc(footer::HEADER_CRC, "header", 0, &file[..offset])?;
        let index_offset = offset + blocks_len as usize;
        let index = &file[index_offset..index_end];
        crc(footer::INDEX_CRC, "block index", index_offset, index)?;
        let last: Vec<F> = index.chunks_exact(F::BYTES).map(F::read_le).collect();
        if last.windows(2).any(|pair| pair[0] >= pair[1]) {
            let damage = Damage::Order { what: "the fingerprints of the block index" };
            return Err(Error::corrupt(path, index_offset as u64, damage));
        }

        format::check_reserved(path, index_end, &file[index_end..lines_offset])?;
        let page_crcs = lines_offset + lines as usize * LINE_BYTES;
        crc(footer::PAGES_CRC, "checksums of the prefix lines", page_crcs, &file[page_crcs..end])?;

        let bytes = Arc::new(bytes);
        let lines = header
            .line_shape
            .map(|shape| Arc::new(PrefixLines::new(bytes.clone(), lines_offset, lines, shape)));
        let codec = AnyCodec::new(
            header.codec,
            CodecParameters {
                code: &header.code,
                span: header.span,
                block_size: header.block_size,
                line_shape: header.line_shape,
                lines: lines.as_ref(),
            },
        );
        let prefix_mask = header.plan.prefix_mask();
        let line_probes = header.line_shape.and_then(|shape| LineProbes::new(&header.plan, shape));
        let probe_masks = ProbeMasks::new(&header);
        let blocks = TableBlocks::new(path, bytes, offset..index_offset, size, blocks as usize);
        Ok(Table {
            header,
            codec,
            lines,
            line_probes,
            blocks,
            index: BlockIndex::new(last),
            prefix_mask,
            probe_masks,
            filter: OnceLock::new(),
        })
    }

    /// Header of the table, as read from the file.
    pub fn header(&self) -> &TableHeader<F> {
        &self.header
    }

    /// Numbers of the table's prefix lines. `None` if it has none: if its codec is not
    /// [`Codec::PrefixLines`](crate::Codec::PrefixLines), or if it has no fingerprints.
    pub fn prefix_lines(&self) -> Option<PrefixLineCounts> {
        let lines = self.lines.as_ref()?;
        let (shape, all) = (lines.shape(), lines.as_lines().len() as u64);
        Some(PrefixLineCounts {
            key_bits: shape.key_bits(),
            lines: shape.lines(),
            dividing_lines: all - shape.lines(),
        })
    }

    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.index.len()
    }

    /// All bytes of the file.
    pub(crate) fn file_bytes(&self) -> &Bytes {
        self.blocks.file_bytes()
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.blocks.file().len() as u64
    }

    /// Memory in bytes that the table takes, without the file's own bytes. Includes the block index with its radix
    /// directory, a bit for each block (whether it has been verified), the Bloom filter if it has been built, and
    /// the decoding table of the Huffman code. The decoding table always has 32 KiB.
    pub fn memory(&self) -> usize {
        let decoder = if self.header.codec.spec().has_code { HuffmanDecoder::MEMORY } else { 0 };
        let filter = self.filter().map_or(0, BloomFilter::memory);
        self.index.memory()
            + self.blocks.memory()
            + decoder
            + self.probe_masks.memory()
            + filter
            + self.lines.as_ref().map_or(0, |lines| lines.memory())
            + self.line_probes.as_ref().map_or(0, LineProbes::memory)
    }

    /// Bloom filter of the prefixes, if it has been built.
    #[inline(always)]
    pub(super) fn filter(&self) -> Option<&BloomFilter<F>> {
        self.filter.get()
    }

    /// Builds the table's Bloom filter, if queries gain from one. Reads all blocks. The filter takes about one byte of memory for
    /// each fingerprint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub(crate) fn build_filter(&self) -> Result<()> {
        // Prefix lines tell exactly which prefixes the table has.
        if self.filter().is_some() || self.line_probes.is_some() {
            return Ok(());
        }
        let plan = &self.header.plan;
        let flipped = if plan.flips == 0 { 0 } else { self.probe_masks.flipped_bits };
        let masks = &self.probe_masks.masks[self.probe_masks.partial_len..];
        let Some(mut filter) = BloomFilter::new(self.header.fingerprints, flipped, plan.prefix_bits, masks)
        else {
            return Ok(());
        };
        self.scan().try_for_each(|value| value.map(|value| filter.insert(value)))?;
        // If another thread was faster, its filter is equal.
        let _ = self.filter.set(filter);
        Ok(())
    }

    /// Path of the file.
    pub fn path(&self) -> &Path {
        self.blocks.path()
    }

    /// Returns the index of the only block that can have the fingerprint `permuted`. If `permuted` is greater than all
    /// fingerprints of the table, returns the number of blocks.
    pub(crate) fn block_of(&self, permuted: F) -> usize {
        self.index.find(permuted)
    }

    /// Prefetches the memory that [`Table::block_of`] reads.
    #[inline]
    pub(crate) fn prefetch_line(&self, permuted: F) {
        self.index.prefetch(permuted);
    }

    /// Prefetches the start of a block.
    #[inline]
    pub(crate) fn prefetch_block(&self, block: usize) {
        self.blocks.prefetch_head(block);
    }

    #[inline(always)]
    pub(super) fn permute(&self, fingerprint: F) -> F {
        self.header.plan.permutation.apply(fingerprint)
    }

    /// Mask of the bits of an original fingerprint that the permutation moves to the prefix.
    pub(crate) fn prefix_mask(&self) -> F {
        self.prefix_mask
    }

    /// Returns the header and the location of a block.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the table has no block with this index, [`Error::Corrupt`] if the block is damaged.
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

    /// Appends the permuted fingerprints of a block to `fingerprints`, in ascending order.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the table has no block with this index, [`Error::Corrupt`] if the block is damaged.
    pub fn decode_block(&self, block: usize, fingerprints: &mut Vec<F>) -> Result<()> {
        self.check_block(block)?;
        let bytes = Block { number: block, bytes: self.blocks.get(block)? };
        with_codec!(&self.codec, codec => simd::dispatch(DecodeKernel { codec, block: bytes, fingerprints }))
            .map_err(|damage| self.blocks.damaged(block, damage))
    }

    /// Advises the operating system to read `blocks` ahead, and the same number of blocks after these.
    pub(crate) fn will_need(&self, blocks: std::ops::Range<usize>) {
        self.blocks.read_ahead(blocks);
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

    /// Calls `visitor` with each permuted fingerprint from `low` to `high`, both inclusive, in ascending order. The
    /// arguments of `visitor` are the block's index, the position in the block, and the fingerprint.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a block is damaged.
    pub fn visit(&self, low: F, high: F, mut visitor: impl FnMut(usize, usize, F)) -> Result<()> {
        simd::dispatch(VisitKernel {
            table: self,
            range: FingerprintRange { low, high },
            visitor: &mut visitor,
        })
    }

    /// Iterates over all fingerprints of the table, permuted, in ascending order.
    pub fn scan(&self) -> TableScan<'_, F> {
        TableScan { table: self, block: 0, decoded: Vec::new(), position: 0 }
    }
}

struct DecodeKernel<'a, F, C> {
    codec: &'a C,
    block: Block<'a>,
    fingerprints: &'a mut Vec<F>,
}

impl<F: Fingerprint, C: BlockCodec<F>> Kernel for DecodeKernel<'_, F, C> {
    type Output = std::result::Result<(), Damage>;

    #[inline(always)]
    fn run(self) -> Self::Output {
        self.codec.decode(self.block, self.fingerprints)
    }
}

struct VisitKernel<'a, F, V> {
    table: &'a Table<F>,
    range: FingerprintRange<F>,
    visitor: V,
}

impl<F: Fingerprint, V: FnMut(usize, usize, F)> Kernel for VisitKernel<'_, F, V> {
    type Output = Result<()>;

    #[inline(always)]
    fn run(mut self) -> Result<()> {
        let VisitKernel { table, range, .. } = self;
        for block in table.index.find(range.low)..table.index.len() {
            let (bytes, last) = (table.blocks.get(block)?, table.index.last(block));
            let bytes = Block { number: block, bytes };
            let visitor = |i, value| (self.visitor)(block, i, value);
            let visited = with_codec!(&table.codec, codec => match codec.locate(bytes, range, last) {
                Ok(Some(start)) => codec.visit_from(bytes, start.index, range, HammingBall::ALL, visitor),
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

/// An iterator over the permuted fingerprints of a table in ascending order. [`Table::scan`] creates it.
///
/// It ends after the first error.
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
