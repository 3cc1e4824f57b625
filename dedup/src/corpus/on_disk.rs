//! Documents on disk, beyond the memory budget.

use std::sync::Arc;

use simstore::any::Width;
use simstore::{Error, Fingerprint, Result, each_width};

use crate::corpus::block::Stretch;
use crate::corpus::ids::{Names, Strings};
use simstore_corpus::spill::{SpillFile, SpillReader, SpillWriter, TemporaryFolder};

/// Fingerprints that are read at once.
const READ: usize = 1 << 14;

/// Documents that are being put on disk, some that follow one another at a time: fingerprints in one file, which is read by itself,
/// the numbers of documents without text in another, and all else in a third.
#[derive(Debug)]
pub(crate) struct Spilling {
    fingerprints: SpillWriter,
    empty: SpillWriter,
    others: SpillWriter,
    pub(crate) written: Written,
}

/// Facts about the documents on disk that stay in memory.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) documents: usize,
    /// Number of documents of each stretch, and number of documents without text.
    stretches: Vec<(usize, usize)>,
    width: Width,
}

/// Documents on disk, to be read in order, any number of times.
#[derive(Debug)]
pub(crate) struct OnDisk {
    fingerprints: SpillFile,
    empty: SpillFile,
    /// Ids, keys and checksums.
    pub(crate) others: SpillFile,
    pub(crate) written: Written,
}

impl Spilling {
    pub(crate) fn new(width: Width, temporary: &Arc<TemporaryFolder>) -> Result<Self> {
        Ok(Spilling {
            fingerprints: SpillWriter::create(temporary.clone())?,
            empty: SpillWriter::create(temporary.clone())?,
            others: SpillWriter::create(temporary.clone())?,
            written: Written { documents: 0, stretches: Vec::new(), width },
        })
    }

    /// Appends documents.
    pub(crate) fn push(&mut self, stretch: &Stretch) -> Result<()> {
        each_width!(&stretch.fingerprints, all => self.fingerprints.push_all(all))?;
        let first = self.written.documents;
        stretch.empty.iter().try_for_each(|&at| self.empty.push_record((first + at) as u64))?;
        stretch.names.write(&mut self.others)?;
        self.others.push_record(u8::from(stretch.keys.is_some()))?;
        stretch.keys.iter().try_for_each(|keys| keys.write(&mut self.others))?;
        self.others.push_records([u64::from(stretch.checksums.is_some())].into_iter())?;
        if let Some(checksums) = &stretch.checksums {
            self.others.push_records(checksums.iter().copied())?;
        }
        self.written.stretches.push((stretch.len(), stretch.empty.len()));
        self.written.documents += stretch.len();
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<OnDisk> {
        Ok(OnDisk {
            fingerprints: self.fingerprints.finish()?,
            empty: self.empty.finish()?,
            others: self.others.finish()?,
            written: self.written,
        })
    }
}

impl OnDisk {
    /// All documents, some that follow one another at a time, each time with the number of the first.
    pub(crate) fn stretches(&self) -> Result<impl Iterator<Item = Result<(usize, Stretch)>> + use<'_>> {
        let mut readers = [self.fingerprints.open()?, self.empty.open()?, self.others.open()?];
        let mut first = 0;
        Ok(self.written.stretches.iter().map(move |&(documents, empty)| {
            let stretch = read(&mut readers, self.written.width, first, documents, empty)?;
            first += documents;
            Ok((first - documents, stretch))
        }))
    }

    /// All fingerprints in order, some at a time, each time with the number of the first. Documents without text come in between.
    pub(crate) fn visit_fingerprints<F: Fingerprint>(
        &self,
        mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
    ) -> Result<()> {
        if self.written.width.bits() != F::BITS {
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
        let (mut first, mut next, mut empty) = (0, Vec::with_capacity(READ), next_empty()?);
        let mut here = Vec::new();
        while first < self.written.documents {
            next.clear();
            fingerprints.read_count(READ.min(self.written.documents - first), &mut next)?;
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

/// Visits what lies between those that are left out, which ascend, each time with the place of the first.
pub(crate) fn visit_between<F>(
    all: &[F],
    left_out: &[usize],
    mut visitor: impl FnMut(usize, &[F]) -> Result<()>,
) -> Result<()> {
    let mut start = 0;
    for &end in left_out.iter().chain([&all.len()]) {
        if start < end {
            visitor(start, &all[start..end])?;
        }
        start = end + 1;
    }
    Ok(())
}

fn read(
    [fingerprints, numbers, others]: &mut [SpillReader; 3],
    width: Width,
    first: usize,
    documents: usize,
    empty: usize,
) -> Result<Stretch> {
    let mut stretch = Stretch {
        fingerprints: width.map(|()| Vec::with_capacity(documents), |()| Vec::with_capacity(documents)),
        empty: Vec::with_capacity(empty),
        names: Names::read(others, documents)?,
        keys: None,
        checksums: None,
    };
    each_width!(&mut stretch.fingerprints, all => fingerprints.read_count(documents, all))?;
    for _ in 0..empty {
        match numbers.read_record::<u64>()?.map(|number| (number as usize).wrapping_sub(first)) {
            Some(at) if at < documents => stretch.empty.push(at),
            _ => return Err(numbers.changed_error()),
        }
    }
    match others.read_record::<u8>()? {
        Some(0) => {}
        Some(1) => {
            let keys =
                Strings::read(others.read_records()?, others, documents, |keys, end| end <= keys.len());
            stretch.keys = Some(keys?);
        }
        _ => return Err(others.changed_error()),
    }
    if others.read_records::<u64>()? == [1] {
        let checksums = others.read_records()?;
        if checksums.len() != documents {
            return Err(others.changed_error());
        }
        stretch.checksums = Some(checksums);
    }
    Ok(stretch)
}
