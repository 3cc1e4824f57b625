//! Blocks of documents in temporary files, for a corpus that exceeds the memory budget.

use std::sync::Arc;

use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, each_width};

use crate::documents::block::DocumentBlock;
use crate::documents::id_table::{IdTable, StringColumn};
use simstore_corpus::spill::{SpillFile, SpillReader, SpillWriter, TemporaryFolder};

/// Number of fingerprints per read.
const FINGERPRINTS_PER_READ: usize = 1 << 14;

/// Writes blocks of documents to three temporary files: one for the fingerprints, one for the indexes of the
/// documents without text, and one for the other columns. So the fingerprints can be read without the other
/// columns.
#[derive(Debug)]
pub(crate) struct SpilledBlockWriter {
    fingerprints: SpillWriter,
    empty: SpillWriter,
    metadata: SpillWriter,
    pub(crate) index: SpilledBlockIndex,
}

/// Index of the blocks on disk: the size of each block. The index stays in memory.
#[derive(Debug)]
pub(crate) struct SpilledBlockIndex {
    pub(crate) documents: usize,
    /// For each block: number of documents, and number of documents without text.
    blocks: Vec<(usize, usize)>,
    width: Width,
}

/// Blocks of documents on disk. They can be read in order any number of times.
#[derive(Debug)]
pub(crate) struct SpilledBlocks {
    fingerprints: SpillFile,
    empty: SpillFile,
    /// File with the ids, sort keys and checksums.
    pub(crate) metadata: SpillFile,
    pub(crate) index: SpilledBlockIndex,
}

impl SpilledBlockWriter {
    pub(crate) fn new(width: Width, temporary: &Arc<TemporaryFolder>) -> Result<Self> {
        Ok(SpilledBlockWriter {
            fingerprints: SpillWriter::create(temporary.clone())?,
            empty: SpillWriter::create(temporary.clone())?,
            metadata: SpillWriter::create(temporary.clone())?,
            index: SpilledBlockIndex { documents: 0, blocks: Vec::new(), width },
        })
    }

    /// Appends a block to the temporary files.
    pub(crate) fn push(&mut self, block: &DocumentBlock) -> Result<()> {
        each_width!(&block.fingerprints, all => self.fingerprints.push_all(all))?;
        let first = self.index.documents;
        block.empty.iter().try_for_each(|&at| self.empty.push_record((first + at) as u64))?;
        block.ids.write(&mut self.metadata)?;
        self.metadata.push_record(u8::from(block.keys.is_some()))?;
        block.keys.iter().try_for_each(|keys| keys.write(&mut self.metadata))?;
        self.metadata.push_records([u64::from(block.checksums.is_some())].into_iter())?;
        if let Some(checksums) = &block.checksums {
            self.metadata.push_records(checksums.iter().copied())?;
        }
        self.index.blocks.push((block.len(), block.empty.len()));
        self.index.documents += block.len();
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<SpilledBlocks> {
        Ok(SpilledBlocks {
            fingerprints: self.fingerprints.finish()?,
            empty: self.empty.finish()?,
            metadata: self.metadata.finish()?,
            index: self.index,
        })
    }
}

impl SpilledBlocks {
    /// Reads all blocks in input order. An item is the index of the first document of a block, and the block.
    pub(crate) fn blocks(&self) -> Result<impl Iterator<Item = Result<(usize, DocumentBlock)>> + use<'_>> {
        let mut readers = [self.fingerprints.open()?, self.empty.open()?, self.metadata.open()?];
        let mut first = 0;
        Ok(self.index.blocks.iter().map(move |&(documents, empty)| {
            let block = read_block(&mut readers, self.index.width, first, documents, empty)?;
            first += documents;
            Ok((first - documents, block))
        }))
    }

    /// Visits all fingerprints in input order, in slices of consecutive documents. Each call gets the index of
    /// the first document of the slice. Documents without text are left out.
    pub(crate) fn visit_fingerprints<F: Fingerprint>(
        &self,
        mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        if self.index.width.bits() != F::BITS {
            return Err(Error::Bug("fingerprints of another width".to_owned()));
        }
        let (mut fingerprints, mut numbers) = (self.fingerprints.open()?, self.empty.open()?);
        let mut last = None;
        let mut next_empty = || -> Result<Option<usize>> {
            let Some(document) = numbers.read_record::<u64>()? else { return Ok(None) };
            let document = document as usize;
            match last.replace(document).is_none_or(|last| last < document) {
                true => Ok(Some(document)),
                false => Err(numbers.changed_error()),
            }
        };
        let (mut first, mut next, mut empty) = (0, Vec::with_capacity(FINGERPRINTS_PER_READ), next_empty()?);
        let mut here = Vec::new();
        while first < self.index.documents {
            next.clear();
            fingerprints.read_count(FINGERPRINTS_PER_READ.min(self.index.documents - first), &mut next)?;
            here.clear();
            while let Some(document) = empty.filter(|&document| document < first + next.len()) {
                here.push(document - first);
                empty = next_empty()?;
            }
            visit_between(&next, &here, |at, some| visitor(first + at, some))?;
            first += next.len();
        }
        Ok(())
    }
}

/// Visits all elements of `items` except those at the indices `skipped`, in slices of consecutive elements.
/// `skipped` must be ascending. Each call gets the index of the first element of the slice, and the slice.
pub(crate) fn visit_between<F>(
    items: &[F],
    skipped: &[usize],
    mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    for &end in skipped.iter().chain([&items.len()]) {
        if start < end {
            visitor(start, &items[start..end])?;
        }
        start = end + 1;
    }
    Ok(())
}

fn read_block(
    [fingerprints, numbers, others]: &mut [SpillReader; 3],
    width: Width,
    first: usize,
    documents: usize,
    empty: usize,
) -> Result<DocumentBlock> {
    let mut block = DocumentBlock {
        fingerprints: width.map(|()| Vec::with_capacity(documents), |()| Vec::with_capacity(documents)),
        empty: Vec::with_capacity(empty),
        ids: IdTable::read(others, documents)?,
        keys: None,
        checksums: None,
    };
    each_width!(&mut block.fingerprints, all => fingerprints.read_count(documents, all))?;
    for _ in 0..empty {
        match numbers.read_record::<u64>()?.map(|number| (number as usize).wrapping_sub(first)) {
            Some(at) if at < documents => block.empty.push(at),
            _ => return Err(numbers.changed_error()),
        }
    }
    match others.read_record::<u8>()? {
        Some(0) => {}
        Some(1) => {
            let keys =
                StringColumn::read(others.read_records()?, others, documents, |keys, end| end <= keys.len());
            block.keys = Some(keys?);
        }
        _ => return Err(others.changed_error()),
    }
    if others.read_records::<u64>()? == [1] {
        let checksums = others.read_records()?;
        if checksums.len() != documents {
            return Err(others.changed_error());
        }
        block.checksums = Some(checksums);
    }
    Ok(block)
}
