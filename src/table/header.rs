//! The header of a table file.

use std::path::Path;

use byteorder::{ByteOrder, LittleEndian};

use crate::codec::{Codec, SymbolCounter};
use crate::error::{Damage, Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_header as field};
use crate::huffman::HuffmanCode;
use crate::permutation::Permutation;
use crate::plan::TablePlan;
use crate::prefix_lines::{LINE_BYTES, LineShape};

/// The header of a table file: plan, codec, sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableHeader<F> {
    /// Plan of the table: the permutation of its fingerprints, and the prefixes and bit flips with which a query
    /// probes it.
    pub plan: TablePlan<F>,
    /// Codec of the blocks.
    pub codec: Codec,
    /// Size of a block in bytes, a power of two. The last block may be shorter.
    pub block_size: u32,
    /// Number of fingerprints from one restart point (a fingerprint where decoding can start) to the next; 0 if
    /// the codec has no restart points.
    pub span: u16,
    /// Number of fingerprints.
    pub fingerprints: u64,
    /// Huffman code of the table. It has no code words if the codec uses no Huffman code.
    pub(crate) code: HuffmanCode,
    /// Shape of the table's main prefix lines; `None` if it has none.
    pub(crate) line_shape: Option<LineShape>,
}

/// Returns an error if tables of this codec cannot have this span (number of fingerprints from one restart point
/// to the next). `None`, the codec's default, is valid.
pub(crate) fn check_span(codec: Codec, span: Option<u16>) -> Result<()> {
    let message = match span {
        Some(_) if !codec.has_spans() => {
            format!("{codec} has no restart points, so no span")
        }
        Some(span) if !(1..=format::MAX_SPAN).contains(&span) => {
            format!("a span of {span} is not 1 to {}", format::MAX_SPAN)
        }
        _ => return Ok(()),
    };
    Err(Error::BadArgument(message))
}

impl<F: Fingerprint> TableHeader<F> {
    /// Creates the header of a table with the fingerprints that `counts` has counted. If the block size or the span is `None`,
    /// it is the codec's default.
    pub(crate) fn new(
        plan: TablePlan<F>,
        codec: Codec,
        block_size: Option<u32>,
        span: Option<u16>,
        counts: &SymbolCounter<F>,
    ) -> Result<Self> {
        format::check_block_size(block_size)?;
        let block_size = block_size.unwrap_or(codec.default_block_size(F::BITS));
        check_span(codec, span)?;
        let span = codec.default_span(counts.fingerprints()).map_or(0, |default| span.unwrap_or(default));
        let (fingerprints, code, line_shape) = (counts.fingerprints(), counts.code(), counts.line_shape());
        Ok(TableHeader { plan, codec, block_size, span, fingerprints, code, line_shape })
    }

    /// Offset of the first block, in bytes.
    ///
    /// In tables of at least about 4 MiB, the first block starts at a page boundary. Smaller tables have less
    /// padding before it, to save space.
    pub(crate) fn blocks_offset(&self) -> u32 {
        let least_bytes = self.fingerprints.saturating_mul(u64::from(F::BITS) / 2) / 8;
        if least_bytes >= 1 << 22 {
            return format::PAGE_BYTES;
        }
        (Self::fields_len(self.codec) as u32).next_multiple_of(format::MIN_BLOCKS_OFFSET)
    }

    /// Length of the header's fields in bytes, in tables of a codec.
    fn fields_len(codec: Codec) -> usize {
        field::code_lengths(F::BITS, codec.alphabet_size(F::BITS)).1
    }

    /// Offset of the first prefix line, in bytes. The line lies behind the end of the block index, which has the offset
    /// `index_end`.
    pub(crate) fn lines_offset(&self, index_end: u64) -> u64 {
        let is_aligned = self.blocks_offset() == format::PAGE_BYTES;
        index_end.next_multiple_of(if is_aligned { u64::from(format::PAGE_BYTES) } else { LINE_BYTES as u64 })
    }

    /// Length in bits of each symbol's Huffman code word, 0 if it has none. `format-spec/table.md` defines the symbols.
    pub fn code_lengths(&self) -> &[u8] {
        self.code.lengths()
    }

    /// Encodes the header and the padding up to the first block.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.blocks_offset() as usize];
        bytes[..8].copy_from_slice(&format::TABLE_MAGIC);
        LittleEndian::write_u32(&mut bytes[field::VERSION..], format::VERSION);
        bytes[field::BITS] = F::BITS as u8;
        bytes[field::CODEC] = self.codec.number();
        bytes[field::PREFIX_BITS] = self.plan.prefix_bits as u8;
        bytes[field::FLIPS] = self.plan.flips as u8;
        LittleEndian::write_u32(&mut bytes[field::BLOCK_SIZE..], self.block_size);
        LittleEndian::write_u16(&mut bytes[field::SPAN..], self.span);
        LittleEndian::write_u32(&mut bytes[field::BLOCKS_OFFSET..], self.blocks_offset());
        LittleEndian::write_u64(&mut bytes[field::FINGERPRINTS..], self.fingerprints);
        if let Some(shape) = self.line_shape {
            bytes[field::KEY_BITS] = shape.key_bits() as u8;
            LittleEndian::write_u64(&mut bytes[field::LINES..], shape.lines());
        }
        let (lengths, _) = field::code_lengths(F::BITS, self.codec.alphabet_size(F::BITS));
        bytes[field::PERMUTATION..lengths].copy_from_slice(self.plan.permutation.sources());
        for (i, pair) in self.code_lengths().chunks(2).enumerate() {
            bytes[lengths + i] = pair[0] | pair[1] << 4;
        }
        bytes
    }

    /// Decodes the header of a complete table file. Returns it with the offset of the first block in bytes. The caller checks
    /// the header's checksum, which is in the footer.
    pub(crate) fn decode(path: &Path, file: &[u8]) -> Result<(Self, u32)> {
        let wrong = |offset: usize, name, found, expected| {
            Err(Error::corrupt(path, offset as u64, Damage::Field { name, found, expected }))
        };
        let truncated = |expected: usize| {
            let damage = Damage::Truncated { expected: expected as u64, found: file.len() as u64 };
            Error::corrupt(path, 0, damage)
        };
        if file.len() < field::PERMUTATION {
            return Err(truncated(field::PERMUTATION));
        }
        let codec = Codec::from_number(file[field::CODEC])
            .map_err(|damage| Error::corrupt(path, field::CODEC as u64, damage))?;
        let (lengths, lengths_end) = field::code_lengths(F::BITS, codec.alphabet_size(F::BITS));
        let end = Self::fields_len(codec);
        let bytes = file.get(..end).ok_or_else(|| truncated(end))?;
        let bits = bytes[field::BITS];
        if u32::from(bits) != F::BITS {
            return wrong(field::BITS, "bits", u64::from(bits), "the width of the store's fingerprints");
        }
        let prefix_bits = u32::from(bytes[field::PREFIX_BITS]);
        if prefix_bits > F::BITS {
            let found = u64::from(prefix_bits);
            return wrong(field::PREFIX_BITS, "prefix bits", found, "at most the bits of a fingerprint");
        }
        let flips = u32::from(bytes[field::FLIPS]);
        if flips > F::MAX_DISTANCE {
            let expected = "at most a quarter of the bits of a fingerprint";
            return wrong(field::FLIPS, "flips", u64::from(flips), expected);
        }
        let block_size = LittleEndian::read_u32(&bytes[field::BLOCK_SIZE..]);
        if !block_size.is_power_of_two() || !format::BLOCK_SIZES.contains(&block_size) {
            let expected = "a power of two from 256 to 65536";
            return wrong(field::BLOCK_SIZE, "block size", u64::from(block_size), expected);
        }
        let span = LittleEndian::read_u16(&bytes[field::SPAN..]);
        let (spans, expected) = match codec.has_spans() {
            true => (1..=format::MAX_SPAN, "1 to 256"),
            false => (0..=0, "0, as the codec has no restart points"),
        };
        if !spans.contains(&span) {
            return wrong(field::SPAN, "span", u64::from(span), expected);
        }
        format::check_reserved(path, field::RESERVED, &bytes[field::RESERVED..field::BLOCKS_OFFSET])?;
        let (reserved, fingerprints) = (field::RESERVED_AFTER_BLOCKS_OFFSET, field::FINGERPRINTS);
        format::check_reserved(path, reserved, &bytes[reserved..fingerprints])?;
        let fingerprints = LittleEndian::read_u64(&bytes[fingerprints..]);
        let blocks_offset = LittleEndian::read_u32(&bytes[field::BLOCKS_OFFSET..]);
        if !(format::MIN_BLOCKS_OFFSET.max(end as u32)..=format::PAGE_BYTES).contains(&blocks_offset) {
            let expected = "256 to 4096, and not before the end of the fields";
            return wrong(field::BLOCKS_OFFSET, "blocks offset", u64::from(blocks_offset), expected);
        }
        let Ok(permutation) = Permutation::new(bytes[field::PERMUTATION..lengths].iter().copied()) else {
            let found = u64::from(bytes[field::PERMUTATION]);
            return wrong(field::PERMUTATION, "permutation", found, "each bit of a fingerprint once");
        };
        let code = bytes[lengths..lengths_end].iter().flat_map(|pair| [pair & 15, pair >> 4]).collect();
        let code =
            HuffmanCode::from_lengths(code).map_err(|damage| Error::corrupt(path, lengths as u64, damage))?;
        // Only neighbours have code words, so a table of one fingerprint has none.
        let needs_code = codec.spec().has_code && fingerprints > 1;
        if needs_code != code.lengths().iter().any(|&length| length > 0) {
            let expected = if needs_code { "a code" } else { "no code words in this table" };
            return wrong(lengths, "code lengths", u64::from(!needs_code), expected);
        }
        format::check_reserved(path, end, &file[end..file.len().min(blocks_offset as usize)])?;
        let line_shape = Self::decode_line_shape(path, bytes, codec, fingerprints)?;
        let header = TableHeader {
            plan: TablePlan { permutation, prefix_bits, flips },
            codec,
            block_size,
            span,
            fingerprints,
            code,
            line_shape,
        };
        Ok((header, blocks_offset))
    }

    /// Decodes the fields about prefix lines. Only tables with fingerprints and a codec with lines have lines.
    fn decode_line_shape(
        path: &Path,
        header: &[u8],
        codec: Codec,
        fingerprints: u64,
    ) -> Result<Option<LineShape>> {
        let (lines, key_bits) =
            (LittleEndian::read_u64(&header[field::LINES..]), u32::from(header[field::KEY_BITS]));
        let damaged = |at: usize, damage| Err(Error::corrupt(path, at as u64, damage));
        if !codec.spec().has_lines || fingerprints == 0 {
            let expected = "0 in a table without prefix lines";
            let fields = [(field::LINES, "lines", lines), (field::KEY_BITS, "key bits", u64::from(key_bits))];
            return match fields.into_iter().find(|&(_, _, found)| found > 0) {
                Some((at, name, found)) => damaged(at, Damage::Field { name, found, expected }),
                None => Ok(None),
            };
        }
        match LineShape::from_header(key_bits, lines, F::BITS) {
            Ok(shape) => Ok(Some(shape)),
            Err(damage) => {
                let is_key_bits = matches!(damage, Damage::Field { name: "key bits", .. });
                damaged(if is_key_bits { field::KEY_BITS } else { field::LINES }, damage)
            }
        }
    }
}
