//! Self-join of sets that do not fit in memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use super::part_writer::{BUFFER_BYTES, PartWriter, fingerprint_count, read, visit};
use super::parts::{JoinParts, JoinTable};
use super::{FingerprintPair, collapse};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::break_to_cancelled;
use crate::radix;
use crate::spill::{Sorter, SpillFile, SpillLocation, SpillWriter};
use crate::threads;

/// Maximum number of temporary files that a join writes at the same time.
const MAX_OPEN_FILES: usize = 128;
/// Approximate number of fingerprints in a sample of a part of the join (see [`JoinParts`]). If a part does not fit
/// in memory, the sample shows which bits divide the part evenly.
const SAMPLE_MAX: usize = 1 << 16;

/// Self-join of any number of fingerprints in bounded memory.
///
/// The fingerprints are divided by [`JoinParts`]. One table after the other is written to temporary files,
/// one file for each part. Files are written and read sequentially, and removed after use. The caller first
/// [pushes](JoinOnDisk::push) all fingerprints, then [collapses](JoinOnDisk::collapse) equal fingerprints, then
/// [joins](DistinctOnDisk::join) each table.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::{Arc, Mutex};
///
/// use simstore::fs::{Disk, Fs};
/// use simstore::join::JoinOnDisk;
/// use simstore::spill::{PrefixLocation, SpillLocation};
///
/// # let folder = tempfile::tempdir()?;
/// let fs: Arc<dyn Fs> = Arc::new(Disk::default());
/// let parts = JoinOnDisk::<u64>::choose_parts(4, 3, 1 << 20)?;
/// let location = PrefixLocation::new(&fs, &folder.path().join("join"));
/// let mut join = JoinOnDisk::create(location.clone(), parts, 1 << 20)?;
/// join.push(&[0b0111, u64::MAX, 0b0000, 0b0111])?;
/// let mut distinct = Vec::new();
/// let mut join = join.collapse(|batch, repeated| {
///     distinct.extend_from_slice(batch);
///     assert!(repeated.is_empty() || repeated == [0b0111]);
///     Ok(())
/// })?;
/// let found = Mutex::new(Vec::new());
/// for table in 0..join.parts().table_count() {
///     join.join(table, |pairs| {
///         found.lock().unwrap().extend_from_slice(pairs);
///         ControlFlow::Continue(())
///     })?;
/// }
/// assert_eq!(distinct, [0b0000, 0b0111, u64::MAX]);
/// assert_eq!(found.into_inner().unwrap().len(), 1);
/// drop(join);
/// assert!(location.counters().written() > 0 && location.counters().on_disk() == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JoinOnDisk<F> {
    location: Arc<dyn SpillLocation>,
    parts: JoinParts<F>,
    memory: u64,
    part_writer: PartWriter<F>,
}

/// Distinct fingerprints on disk, ready to join. [`JoinOnDisk::collapse`] returns them.
#[derive(Debug)]
pub struct DistinctOnDisk<F> {
    location: Arc<dyn SpillLocation>,
    parts: JoinParts<F>,
    memory: u64,
    /// Files with the fingerprints: one for each non-empty part of the first table of `parts`, in the order of the
    /// parts.
    files: Vec<SpillFile>,
    /// Buffer for the fingerprints of a part. The buffers `values` and `space` are reused, since allocating new
    /// memory takes longer than filling it.
    values: Vec<F>,
    space: Vec<F>,
}

impl<F: Fingerprint> JoinOnDisk<F> {
    /// Maximum number of parts of a table (see [`JoinParts`]). It is limited because each part has its own file, and
    /// the files of all parts of a table are open at the same time.
    pub const MAX_PARTS: usize = MAX_OPEN_FILES;

    /// Chooses into how many parts to divide a join of about `count` fingerprints, so that it takes about
    /// `memory` bytes of memory. Returns a division with at most [`JoinOnDisk::MAX_PARTS`] parts per table.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`].
    pub fn choose_parts(count: u64, distance: u32, memory: u64) -> Result<JoinParts<F>> {
        JoinParts::with_parts(distance, choose_part_count::<F>(count, memory))
    }

    /// Starts a join with the division `parts`, and with temporary files at `location`.
    ///
    /// The join takes about `memory` bytes for any number of fingerprints, but at least a few MiB. A part
    /// that does not fit in memory is divided further.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for more than [`JoinOnDisk::MAX_PARTS`] parts; [`Error::Thread`] if no thread
    /// can be started.
    pub fn create(location: Arc<dyn SpillLocation>, parts: JoinParts<F>, memory: u64) -> Result<Self> {
        if parts.part_count() > Self::MAX_PARTS {
            let (parts, most) = (parts.part_count(), Self::MAX_PARTS);
            return Err(Error::BadArgument(format!("{parts} parts: expected up to {most} on disk")));
        }
        threads::ensure_pool()?;
        let part_writer = PartWriter::new(parts.table(0), &location, memory / 8);
        Ok(JoinOnDisk { location, parts, memory, part_writer })
    }

    /// Adds fingerprints to the join. They may come in any order, and may be repeated.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be written.
    pub fn push(&mut self, fingerprints: &[F]) -> Result<()> {
        self.part_writer.push(fingerprints)
    }

    /// Division of the join into tables and parts.
    pub fn parts(&self) -> &JoinParts<F> {
        &self.parts
    }

    /// Collapses equal fingerprints, and visits the distinct fingerprints in batches, ascending. The second
    /// argument of `visitor` has those fingerprints of the batch that were pushed more than once.
    ///
    /// # Errors
    /// Any error of the visitor; [`Error::Io`] if a file cannot be written or read.
    pub fn collapse(self, mut visitor: impl FnMut(&[F], &[F]) -> Result<()>) -> Result<DistinctOnDisk<F>> {
        let JoinOnDisk { location, parts, memory, part_writer } = self;
        let (mut values, mut space, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        let mut files = Vec::new();
        for file in part_writer.finish()? {
            repeated.clear();
            if file.bytes() * 2 > memory {
                files.push(collapse_sorted(&file, &location, memory, &mut visitor)?);
                continue;
            }
            read(&file, &mut values)?;
            radix::sort_with_space(&mut values, &mut space);
            let before = values.len();
            collapse(&mut values, &mut repeated);
            visitor(&values, &repeated)?;
            files.push(if values.len() < before { write(&values, &location)? } else { file });
        }
        Ok(DistinctOnDisk { location, parts, memory, files, values, space })
    }
}

fn write<F: Fingerprint>(values: &[F], location: &Arc<dyn SpillLocation>) -> Result<SpillFile> {
    let mut file = SpillWriter::create_with_buffer(location.clone(), BUFFER_BYTES)?;
    file.push_all(values)?;
    file.finish()
}

/// Collapses equal fingerprints of a part that does not fit in memory, by an external sort. Returns a file with
/// the distinct fingerprints, ascending. For `visitor`, see [`JoinOnDisk::collapse`].
fn collapse_sorted<F: Fingerprint>(
    part: &SpillFile,
    location: &Arc<dyn SpillLocation>,
    memory: u64,
    visitor: &mut impl FnMut(&[F], &[F]) -> Result<()>,
) -> Result<SpillFile> {
    let mut sorter = Sorter::new(location.clone(), memory / 2);
    visit(part, |batch: &[F]| batch.iter().try_for_each(|&value| sorter.push(value)))?;
    let mut file = SpillWriter::create_with_buffer(location.clone(), BUFFER_BYTES)?;
    let (mut batch, mut repeated) = (Vec::new(), Vec::new());
    let mut flush = |batch: &mut Vec<F>, repeated: &mut Vec<F>| {
        file.push_all(batch)?;
        visitor(batch, repeated)?;
        batch.clear();
        repeated.clear();
        Ok(())
    };
    let mut last = None;
    for value in sorter.finish()? {
        let value = value?;
        if last.replace(value) == Some(value) {
            if repeated.last() != Some(&value) {
                repeated.push(value);
            }
            continue;
        }
        if batch.len() == BUFFER_BYTES / F::BYTES {
            flush(&mut batch, &mut repeated)?;
        }
        batch.push(value);
    }
    flush(&mut batch, &mut repeated)?;
    file.finish()
}

/// Returns the number of parts into which to divide `count` fingerprints, so that joining one part takes at most
/// `memory` bytes if the parts have about equal sizes. The result is a power of two, at most [`MAX_OPEN_FILES`].
fn choose_part_count<F: Fingerprint>(count: u64, memory: u64) -> usize {
    // An eighth of the memory is for write buffers, and another eighth for parts that are larger than
    // average.
    let parts = JoinParts::<F>::min_parts(count, memory / 4 * 3);
    usize::try_from(parts).unwrap_or(MAX_OPEN_FILES).next_power_of_two().min(MAX_OPEN_FILES)
}

impl<F: Fingerprint> DistinctOnDisk<F> {
    /// Division of the join into tables and parts. To find all pairs, call [`DistinctOnDisk::join`] for each table.
    pub fn parts(&self) -> &JoinParts<F> {
        &self.parts
    }

    /// Number of distinct fingerprints.
    pub fn count(&self) -> u64 {
        self.files.iter().map(|file| fingerprint_count::<F>(file) as u64).sum()
    }

    /// Visits all distinct fingerprints in ascending order, in batches.
    ///
    /// # Errors
    /// Any error of the visitor; [`Error::Io`] if a file cannot be read.
    pub fn visit(&self, mut visitor: impl FnMut(&[F]) -> Result<()>) -> Result<()> {
        self.files.iter().try_for_each(|file| visit(file, &mut visitor))
    }

    /// Joins all parts of a table, and visits the pairs that the table reports: each once, in batches and in no
    /// particular order. All tables together report all pairs of the set. [`JoinParts::join`] describes when the
    /// visitor is called.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the table does not exist; [`Error::Cancelled`] if the visitor returns a
    /// break; [`Error::Io`] if a file cannot be written or read.
    pub fn join(
        &mut self,
        table: usize,
        visitor: impl Fn(&[FingerprintPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        if table >= self.parts.table_count() {
            let tables = self.parts.table_count();
            return Err(Error::BadArgument(format!("there is no table {table}: there are {tables}")));
        }
        let mut table_join = TableJoin {
            distance: self.parts.distance(),
            memory: self.memory,
            location: &self.location,
            visitor: &visitor,
            values: std::mem::take(&mut self.values),
            space: std::mem::take(&mut self.space),
        };
        let join_table = self.parts.table(table);
        let joined = if table == 0 {
            self.files.iter().try_for_each(|file| table_join.join(join_table, file))
        } else {
            table_join
                .route(join_table, &self.files)
                .and_then(|files| files.into_iter().try_for_each(|file| table_join.join(join_table, &file)))
        };
        (self.values, self.space) = (table_join.values, table_join.space);
        joined
    }
}

/// The running join of one table of a [`DistinctOnDisk`], with its settings and buffers.
struct TableJoin<'a, F, V> {
    distance: u32,
    memory: u64,
    location: &'a Arc<dyn SpillLocation>,
    visitor: &'a V,
    values: Vec<F>,
    space: Vec<F>,
}

impl<F: Fingerprint, V: Fn(&[FingerprintPair<F>]) -> ControlFlow<()> + Sync> TableJoin<'_, F, V> {
    /// Distributes the fingerprints of `files` to new files, one for each part of a table. Returns the files of
    /// the non-empty parts.
    fn route(&self, table: &JoinTable<F>, files: &[SpillFile]) -> Result<Vec<SpillFile>> {
        let part_writer = PartWriter::new(table, self.location, self.memory / 8);
        files.par_iter().try_for_each_init(Vec::new, |pending, file| {
            visit(file, |batch| {
                break_to_cancelled((self.visitor)(&[]))?;
                part_writer.push_with(batch, pending)
            })?;
            part_writer.flush(pending)
        })?;
        part_writer.finish()
    }

    /// Joins a part of a table, and passes its pairs to the visitor. `file` has the fingerprints of the part.
    /// If they do not fit in memory, divides the part further.
    fn join(&mut self, table: &JoinTable<F>, file: &SpillFile) -> Result<()> {
        if JoinParts::<F>::min_parts(fingerprint_count::<F>(file) as u64, self.memory) > 1
            && let Some(tables) = self.divide(table, file)?
        {
            for table in tables {
                for part in self.route(&table, std::slice::from_ref(file))? {
                    self.join(&table, &part)?;
                }
            }
            return Ok(());
        }
        read(file, &mut self.values)?;
        table.join(&self.values, self.distance, &mut self.space, self.visitor)
    }

    /// Creates tables that divide a part further, by the bits that divide its fingerprints most evenly. `file`
    /// has the fingerprints of the part. Returns `None` if the fingerprints differ in too few bits.
    fn divide(&self, table: &JoinTable<F>, file: &SpillFile) -> Result<Option<Vec<JoinTable<F>>>> {
        let step = (fingerprint_count::<F>(file) / SAMPLE_MAX).max(1);
        let (mut ones, mut count, mut at) = (vec![0_usize; F::BITS as usize], 0, 0);
        visit(file, |batch: &[F]| {
            for &value in batch {
                if at % step == 0 {
                    count += 1;
                    (0..F::BITS)
                        .filter(|&bit| value & F::bit_mask(bit) != F::ZERO)
                        .for_each(|bit| ones[bit as usize] += 1);
                }
                at += 1;
            }
            break_to_cancelled((self.visitor)(&[]))
        })?;
        let evenness = |bit: u32| ones[bit as usize].min(count - ones[bit as usize]);
        let parts = choose_part_count::<F>(fingerprint_count::<F>(file) as u64, self.memory);
        Ok(table.divide_by(evenness, parts.max(2).ilog2()))
    }
}
