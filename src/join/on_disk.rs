//! A join of more than fits in memory.

use std::ops::ControlFlow;
use std::sync::Arc;

use rayon::prelude::*;

use super::parts::{Parts, Table};
use super::routed::{BUFFER, Routed, length, read, visit};
use super::{NearPair, collapse};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::go_on;
use crate::radix;
use crate::spill::{Place, Sorter, SpillFile, SpillWriter};
use crate::threads;

/// Files that are open at a time.
const MAX_FILES: usize = 128;
/// Sampled fingerprints for the choice of the bits that divide a part further.
const SAMPLE: usize = 1 << 16;

/// A join of any number of fingerprints within a given memory: they are put in files, by [`Parts`], one table after the other; files
/// are written from start to end, read from start to end, and removed.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::{Arc, Mutex};
///
/// use simstore::fs::{Disk, Fs};
/// use simstore::join::JoinOnDisk;
/// use simstore::spill::{Folder, Place};
///
/// # let folder = tempfile::tempdir()?;
/// let fs: Arc<dyn Fs> = Arc::new(Disk::default());
/// let parts = JoinOnDisk::<u64>::choose_parts(4, 3, 1 << 20)?;
/// let place = Folder::new(&fs, &folder.path().join("join"));
/// let mut join = JoinOnDisk::create(place.clone(), parts, 1 << 20)?;
/// join.push(&[0b0111, u64::MAX, 0b0000, 0b0111])?;
/// let mut distinct = Vec::new();
/// let mut join = join.collapse(|some, repeated| {
///     distinct.extend_from_slice(some);
///     assert!(repeated.is_empty() || repeated == [0b0111]);
///     Ok(())
/// })?;
/// let found = Mutex::new(Vec::new());
/// for table in 0..join.parts().tables() {
///     join.join(table, |pairs| {
///         found.lock().unwrap().extend_from_slice(pairs);
///         ControlFlow::Continue(())
///     })?;
/// }
/// assert_eq!(distinct, [0b0000, 0b0111, u64::MAX]);
/// assert_eq!(found.into_inner().unwrap().len(), 1);
/// drop(join);
/// assert!(place.counts().written() > 0 && place.counts().held() == 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct JoinOnDisk<F> {
    place: Arc<dyn Place>,
    parts: Parts<F>,
    memory: u64,
    routed: Routed<F>,
}

/// Fingerprints on disk, each there once, whose tables can be joined.
#[derive(Debug)]
pub struct DistinctOnDisk<F> {
    place: Arc<dyn Place>,
    parts: Parts<F>,
    memory: u64,
    /// The parts of the first table, in order.
    files: Vec<SpillFile>,
    /// Used again: memory that is new takes longer to get than to fill.
    values: Vec<F>,
    space: Vec<F>,
}

impl<F: Fingerprint> JoinOnDisk<F> {
    /// The most parts that a table can have: so many files are open at a time.
    pub const MAX_PARTS: usize = MAX_FILES;

    /// Parts for about `count` fingerprints and so much memory, in bytes; [`JoinOnDisk::MAX_PARTS`] at most.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`].
    pub fn choose_parts(count: u64, distance: u32, memory: u64) -> Result<Parts<F>> {
        Parts::with_parts(distance, parts_for::<F>(count, memory))
    }

    /// A join by these parts, whose files go to this place. It takes about `memory` bytes, however many are pushed; a few MiB at
    /// least. A part that is too large for the memory is divided further.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for more than [`JoinOnDisk::MAX_PARTS`] parts, [`Error::Thread`] if no thread can be started.
    pub fn create(place: Arc<dyn Place>, parts: Parts<F>, memory: u64) -> Result<Self> {
        if parts.parts() > Self::MAX_PARTS {
            let (parts, most) = (parts.parts(), Self::MAX_PARTS);
            return Err(Error::BadArgument(format!("{parts} parts: expected up to {most} on disk")));
        }
        threads::ensure_pool()?;
        let routed = Routed::new(parts.table(0), &place, memory / 8);
        Ok(JoinOnDisk { place, parts, memory, routed })
    }

    /// Takes fingerprints, in any order, any number of times.
    ///
    /// # Errors
    /// [`Error::Io`] if they cannot be written.
    pub fn push(&mut self, fingerprints: &[F]) -> Result<()> {
        self.routed.push(fingerprints)
    }

    /// How the join is divided.
    pub fn parts(&self) -> &Parts<F> {
        &self.parts
    }

    /// Brings equal fingerprints together. `visitor` is told of the distinct fingerprints, ascending, some at a time, and of those
    /// among these that were pushed more than once.
    ///
    /// # Errors
    /// That of the visitor, and [`Error::Io`] if a file cannot be written or read.
    pub fn collapse(self, mut visitor: impl FnMut(&[F], &[F]) -> Result<()>) -> Result<DistinctOnDisk<F>> {
        let JoinOnDisk { place, parts, memory, routed } = self;
        let (mut values, mut space, mut repeated) = (Vec::new(), Vec::new(), Vec::new());
        let mut files = Vec::new();
        for file in routed.finish()? {
            repeated.clear();
            if file.bytes() * 2 > memory {
                files.push(collapse_sorted(&file, &place, memory, &mut visitor)?);
                continue;
            }
            read(&file, &mut values)?;
            radix::sort_with_space(&mut values, &mut space);
            let before = values.len();
            collapse(&mut values, &mut repeated);
            visitor(&values, &repeated)?;
            files.push(if values.len() < before { write(&values, &place)? } else { file });
        }
        Ok(DistinctOnDisk { place, parts, memory, files, values, space })
    }
}

fn write<F: Fingerprint>(values: &[F], place: &Arc<dyn Place>) -> Result<SpillFile> {
    let mut file = SpillWriter::create_with(place.clone(), BUFFER)?;
    file.push_all(values)?;
    file.finish()
}

/// The same for a part that does not fit in memory, or not before equal ones are together.
fn collapse_sorted<F: Fingerprint>(
    part: &SpillFile,
    place: &Arc<dyn Place>,
    memory: u64,
    visitor: &mut impl FnMut(&[F], &[F]) -> Result<()>,
) -> Result<SpillFile> {
    let mut sorter = Sorter::new(place.clone(), memory / 2);
    visit(part, |some: &[F]| some.iter().try_for_each(|&value| sorter.push(value)))?;
    let mut file = SpillWriter::create_with(place.clone(), BUFFER)?;
    let (mut some, mut repeated) = (Vec::new(), Vec::new());
    let mut hand_over = |some: &mut Vec<F>, repeated: &mut Vec<F>| {
        file.push_all(some)?;
        visitor(some, repeated)?;
        some.clear();
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
        if some.len() == BUFFER / F::BYTES {
            hand_over(&mut some, &mut repeated)?;
        }
        some.push(value);
    }
    hand_over(&mut some, &mut repeated)?;
    file.finish()
}

/// Number of parts, at most [`MAX_FILES`], so that the join of each takes at most `memory` bytes.
fn parts_for<F: Fingerprint>(count: u64, memory: u64) -> usize {
    // An eighth is for buffers, another for crowded parts.
    let parts = Parts::<F>::least_parts(count, memory / 4 * 3);
    usize::try_from(parts).unwrap_or(MAX_FILES).next_power_of_two().min(MAX_FILES)
}

impl<F: Fingerprint> DistinctOnDisk<F> {
    /// The tables and parts of the join. The caller joins each table once.
    pub fn parts(&self) -> &Parts<F> {
        &self.parts
    }

    /// How many distinct fingerprints there are.
    pub fn count(&self) -> u64 {
        self.files.iter().map(|file| length::<F>(file) as u64).sum()
    }

    /// Visits all of them, ascending, some at a time.
    ///
    /// # Errors
    /// That of the visitor, and [`Error::Io`] if a file cannot be read.
    pub fn visit(&self, mut visitor: impl FnMut(&[F]) -> Result<()>) -> Result<()> {
        self.files.iter().try_for_each(|file| visit(file, &mut visitor))
    }

    /// Visits the pairs that count in a table, each once, some at a time and in no order. All tables together have all pairs
    /// of the set. The visitor is called as by [`Parts::join`].
    ///
    /// # Errors
    /// [`Error::BadArgument`] for an unknown table, [`Error::Cancelled`] if the visitor said not to go on, [`Error::Io`] if a
    /// file cannot be written or read.
    pub fn join(
        &mut self,
        table: usize,
        visitor: impl Fn(&[NearPair<F>]) -> ControlFlow<()> + Sync,
    ) -> Result<()> {
        if table >= self.parts.tables() {
            let tables = self.parts.tables();
            return Err(Error::BadArgument(format!("there is no table {table}: there are {tables}")));
        }
        let mut joining = Joining {
            distance: self.parts.distance(),
            memory: self.memory,
            place: &self.place,
            visitor: &visitor,
            values: std::mem::take(&mut self.values),
            space: std::mem::take(&mut self.space),
        };
        let of = self.parts.table(table);
        let joined = if table == 0 {
            self.files.iter().try_for_each(|file| joining.join(of, file))
        } else {
            joining
                .route(of, &self.files)
                .and_then(|files| files.into_iter().try_for_each(|file| joining.join(of, &file)))
        };
        (self.values, self.space) = (joining.values, joining.space);
        joined
    }
}

/// A table that is being joined.
struct Joining<'a, F, V> {
    distance: u32,
    memory: u64,
    place: &'a Arc<dyn Place>,
    visitor: &'a V,
    values: Vec<F>,
    space: Vec<F>,
}

impl<F: Fingerprint, V: Fn(&[NearPair<F>]) -> ControlFlow<()> + Sync> Joining<'_, F, V> {
    /// Sends the fingerprints of some files to the parts of a table.
    fn route(&self, table: &Table<F>, files: &[SpillFile]) -> Result<Vec<SpillFile>> {
        let routed = Routed::new(table, self.place, self.memory / 8);
        files.par_iter().try_for_each_init(Vec::new, |pending, file| {
            visit(file, |some| {
                go_on((self.visitor)(&[]))?;
                routed.push_with(some, pending)
            })?;
            routed.flush(pending)
        })?;
        routed.finish()
    }

    /// Joins a part, divided further if it does not fit in memory.
    fn join(&mut self, table: &Table<F>, file: &SpillFile) -> Result<()> {
        if Parts::<F>::least_parts(length::<F>(file) as u64, self.memory) > 1
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

    /// Tables for a part of a table, by the bits that tell its fingerprints apart best.
    fn divide(&self, table: &Table<F>, file: &SpillFile) -> Result<Option<Vec<Table<F>>>> {
        let step = (length::<F>(file) / SAMPLE).max(1);
        let (mut ones, mut count, mut at) = (vec![0_usize; F::BITS as usize], 0, 0);
        visit(file, |some: &[F]| {
            for &value in some {
                if at % step == 0 {
                    count += 1;
                    (0..F::BITS)
                        .filter(|&bit| value & F::bit_mask(bit) != F::ZERO)
                        .for_each(|bit| ones[bit as usize] += 1);
                }
                at += 1;
            }
            go_on((self.visitor)(&[]))
        })?;
        let evenness = |bit: u32| ones[bit as usize].min(count - ones[bit as usize]);
        let parts = parts_for::<F>(length::<F>(file) as u64, self.memory);
        Ok(table.divide_by(evenness, parts.max(2).ilog2()))
    }
}
