//! Writes a table file.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use byteorder::{ByteOrder, LittleEndian};

use super::header::TableHeader;
use super::reader::Table;
use crate::codec::{AnyCodec, BlockCodec, Codec, CodecParameters, SymbolCounter, with_codec};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::format::{self, table_footer as footer};
use crate::plan::TablePlan;
use crate::prefix_lines::{LineBuffer, LineWriter};
use crate::spill::SpillLocation;

/// A writer of a table to any sink, block by block.
pub(crate) struct TableWriter<F, W> {
    sink: W,
    path: PathBuf,
    header: TableHeader<F>,
    codec: AnyCodec,
    header_crc: u32,
    /// Checksum of the checksums of the blocks.
    blocks_crc: crc32fast::Hasher,
    /// The fingerprints pushed last. Those before index `cursor` are already in blocks; the others are pending.
    pending: Vec<F>,
    cursor: usize,
    /// Upper bound of the number of fingerprints in a block. As soon as more fingerprints than this are not in a block
    /// yet, a full block can be written.
    fill_threshold: usize,
    pushed: u64,
    block: Vec<u8>,
    blocks: u64,
    blocks_len: u64,
    index: Vec<F>,
    lines: Option<LineWriter>,
}

impl<F: Fingerprint, W: Write> TableWriter<F, W> {
    /// Starts a table and writes its header. `path` appears only in messages.
    ///
    /// Prefix lines are written last. Until then, all but a few MiB of them are in a temporary file at `location`, or in
    /// memory without a location.
    pub(crate) fn new(
        mut sink: W,
        path: &Path,
        header: TableHeader<F>,
        location: Option<Arc<dyn SpillLocation>>,
    ) -> Result<Self> {
        let block_size = header.block_size;
        let parameters = CodecParameters {
            code: &header.code,
            span: header.span,
            block_size,
            line_shape: header.line_shape,
            lines: None,
        };
        let codec = AnyCodec::new(header.codec, parameters);
        let lines = header.line_shape.map(|shape| LineWriter::new(shape, LineBuffer::new(location)));
        let bytes = header.encode();
        sink.write_all(&bytes).map_err(Error::io(path, "write"))?;
        let fill_threshold = format::MAX_BLOCK_FINGERPRINTS.min(block_size as usize * 8);
        Ok(TableWriter {
            sink,
            path: path.to_path_buf(),
            codec,
            header_crc: crc32fast::hash(&bytes),
            blocks_crc: crc32fast::Hasher::new(),
            pending: Vec::with_capacity(fill_threshold * 4),
            cursor: 0,
            fill_threshold,
            pushed: 0,
            block: vec![0; block_size as usize],
            blocks: 0,
            blocks_len: 0,
            index: Vec::new(),
            lines,
            header,
        })
    }

    /// Adds a permuted fingerprint, which must be greater than the previous one. If there are now enough fingerprints for a
    /// full block, writes the block and returns the number of fingerprints in it.
    pub(crate) fn push(&mut self, fingerprint: F) -> Result<Option<usize>> {
        if let Some(&previous) = self.pending.last()
            && previous >= fingerprint
        {
            return Err(Error::OutOfOrder {
                what: "the fingerprints of a table",
                previous: previous.to_hex(),
                got: fingerprint.to_hex(),
            });
        }
        if self.pending.len() == self.pending.capacity() {
            // The last fingerprint stays, to check the order.
            self.pending.drain(..self.cursor);
            self.cursor = 0;
        }
        if let (Some(lines), Some(shape)) = (&mut self.lines, self.header.line_shape) {
            lines.push((fingerprint >> (F::BITS - shape.key_bits())).low_u64())?;
        }
        self.pending.push(fingerprint);
        self.pushed += 1;
        if self.pending.len() - self.cursor > self.fill_threshold {
            self.write_block().map(Some)
        } else {
            Ok(None)
        }
    }

    /// Writes the next block from the pending fingerprints (those that are not in a block yet). There must be at least one.
    /// Returns the number of fingerprints in the block.
    fn write_block(&mut self) -> Result<usize> {
        let pending = &self.pending[self.cursor..];
        let (count, len) = with_codec!(&self.codec, codec => fill_block(codec, pending, &mut self.block));
        let block = &mut self.block[..len];
        let crc = format::numbered_crc(self.blocks, block);
        LittleEndian::write_u32(block, crc);
        self.sink.write_all(block).map_err(Error::io(&self.path, "write"))?;
        self.blocks_crc.update(&crc.to_le_bytes());
        self.index.push(pending[count - 1]);
        self.cursor += count;
        self.blocks += 1;
        self.blocks_len += len as u64;
        Ok(count)
    }

    /// After the last push, writes one more block from the fingerprints that are not in a block yet. Returns the number of
    /// fingerprints in the block, or `None` if all fingerprints are in blocks.
    pub(crate) fn drain(&mut self) -> Result<Option<usize>> {
        if self.cursor == self.pending.len() { Ok(None) } else { self.write_block().map(Some) }
    }

    /// Writes the remaining blocks, the block index and the footer. Returns the sink and the length of the file in bytes.
    pub(crate) fn finish(mut self) -> Result<(W, u64)> {
        while self.drain()?.is_some() {}
        if self.pushed != self.header.fingerprints {
            return Err(Error::Bug(format!(
                "{}: {} fingerprints announced, {} written",
                self.path.display(),
                self.header.fingerprints,
                self.pushed
            )));
        }
        let mut crc = crc32fast::Hasher::new();
        let mut bytes = vec![0; F::BYTES * 1024];
        for last in self.index.chunks(1024) {
            for (i, last) in last.iter().enumerate() {
                last.write_le(&mut bytes[i * F::BYTES..]);
            }
            let bytes = &bytes[..last.len() * F::BYTES];
            crc.update(bytes);
            self.sink.write_all(bytes).map_err(Error::io(&self.path, "write"))?;
        }
        let index_len = self.blocks * F::BYTES as u64;
        let mut len = u64::from(self.header.blocks_offset()) + self.blocks_len + index_len;
        let (mut dividing, mut pages_crc) = (0, 0);
        if let Some(lines) = self.lines {
            let padding = self.header.lines_offset(len) - len;
            self.sink.write_all(&vec![0; padding as usize]).map_err(Error::io(&self.path, "write"))?;
            let lines = lines.finish()?;
            dividing = lines.dividing();
            let lines_len;
            (lines_len, pages_crc) = lines.write(&mut self.sink, &self.path)?;
            len += padding + lines_len;
        }
        let mut foot = [0; footer::LEN];
        LittleEndian::write_u64(&mut foot[footer::BLOCKS..], self.blocks);
        LittleEndian::write_u64(&mut foot[footer::BLOCKS_LEN..], self.blocks_len);
        LittleEndian::write_u64(&mut foot[footer::DIVIDING_LINES..], dividing);
        LittleEndian::write_u32(&mut foot[footer::HEADER_CRC..], self.header_crc);
        LittleEndian::write_u32(&mut foot[footer::BLOCKS_CRC..], self.blocks_crc.finalize());
        LittleEndian::write_u32(&mut foot[footer::INDEX_CRC..], crc.finalize());
        LittleEndian::write_u32(&mut foot[footer::PAGES_CRC..], pages_crc);
        foot[footer::MAGIC..].copy_from_slice(&format::TABLE_MAGIC);
        let crc = crc32fast::hash(&foot[..footer::FOOTER_CRC]);
        LittleEndian::write_u32(&mut foot[footer::FOOTER_CRC..], crc);
        self.sink.write_all(&foot).map_err(Error::io(&self.path, "write"))?;
        Ok((self.sink, len + footer::LEN as u64))
    }
}

/// Fills a block with as many fingerprints of `pending` as fit. Returns their number and the length of the block in bytes. If
/// all of them fit, this is the last block of the table, and it ends where its content ends.
fn fill_block<F: Fingerprint>(codec: &impl BlockCodec<F>, pending: &[F], block: &mut [u8]) -> (usize, usize) {
    let fit = codec.fit(pending, block.len());
    let len = if fit.count == pending.len() { fit.bytes } else { block.len() };
    let block = &mut block[..len];
    block.fill(0);
    codec.encode(&pending[..fit.count], block);
    (fit.count, len)
}

impl<F: Fingerprint> Table<F> {
    /// Encodes a table file in memory. The fingerprints are permuted and strictly ascending.
    ///
    /// ```
    /// use simstore::plan::Plan;
    /// use simstore::Codec;
    /// use simstore::raw::{Bytes, Table};
    ///
    /// let plan = Plan::<u64>::named("scan", 3)?;
    /// let file = Table::encode(&[3, 5, 8], &plan.tables()[0], Codec::Gap, None)?;
    /// let table = Table::<u64>::open("memory".as_ref(), Bytes::from(file))?;
    /// assert_eq!(table.scan().collect::<Result<Vec<u64>, _>>()?, [3, 5, 8]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if the fingerprints are not strictly ascending, [`Error::BadArgument`] if the
    /// block size is not a power of two from 256 to 65536.
    pub fn encode(
        fingerprints: &[F],
        plan: &TablePlan<F>,
        codec: Codec,
        block_size: Option<u32>,
    ) -> Result<Vec<u8>> {
        Table::encode_with(Path::new("table in memory"), fingerprints, plan, codec, block_size, None)
    }

    /// Like [`Table::encode`], with a given span (number of fingerprints from one restart point to the next);
    /// `None` is the codec's default. `path` appears only in messages.
    pub(crate) fn encode_with(
        path: &Path,
        fingerprints: &[F],
        plan: &TablePlan<F>,
        codec: Codec,
        block_size: Option<u32>,
        span: Option<u16>,
    ) -> Result<Vec<u8>> {
        let mut counts = SymbolCounter::new(codec);
        let mut previous = None;
        for &fingerprint in fingerprints {
            // The writer refuses a fingerprint out of order, with a message.
            if previous < Some(fingerprint) {
                counts.push(fingerprint);
            }
            previous = Some(fingerprint);
        }
        let header = TableHeader::new(plan.clone(), codec, block_size, span, &counts)?;
        let mut writer = TableWriter::new(Vec::new(), path, header, None)?;
        for &fingerprint in fingerprints {
            writer.push(fingerprint)?;
        }
        Ok(writer.finish()?.0)
    }
}
