//! Exchange of fingerprints between the tasks of a distributed join.
//!
//! First, each task sends its fingerprints to *buckets*, where equal fingerprints are collapsed. The hash of a
//! fingerprint selects its bucket, see [`bucket`]. Then each bucket sends its fingerprints to *places*, where they
//! are joined. A place is one part of one table of [`JoinParts`], so a fingerprint is sent to one place per table.

use rayon::prelude::*;

use super::{JoinParts, bucket, collapse, sort};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::ProgressCallback;
use crate::threads;

/// Distinct fingerprints that a task of a distributed join sends to one receiver. The receiver either collapses the
/// equal fingerprints of one bucket (see [`bucket`]), or joins the fingerprints in one part of one table of
/// [`JoinParts`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintBatch<F> {
    /// Index of the receiver, from 0. In a batch from [`bucket_distinct`], it is the index of a bucket. In a batch from
    /// [`JoinParts::distribute`], it is the index of one part of one table (see [`JoinParts::table_and_part`]).
    pub place: usize,
    /// Distinct fingerprints, ascending.
    pub fingerprints: Vec<F>,
    /// Fingerprints that occurred more than once before equal fingerprints were collapsed, ascending. All of them
    /// are in `fingerprints` too.
    pub repeated: Vec<F>,
}

/// Fingerprints of one bucket (see [`bucket`]), each with its position in the caller's data. The same fingerprint
/// may occur several times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionedBatch<F> {
    /// Index of the bucket, from 0.
    pub place: usize,
    /// Fingerprints, in the order in which [`bucket_positions`] received them.
    pub fingerprints: Vec<F>,
    /// For each fingerprint of `fingerprints`, its position in the caller's data.
    pub positions: Vec<u32>,
}

/// Collapses equal fingerprints, and divides the distinct fingerprints between [buckets](bucket). Returns one batch
/// for each bucket that is not empty, in the order of the buckets. `buckets` is the number of buckets.
///
/// ```
/// use simstore::join::{FingerprintBatch, bucket_distinct};
///
/// let batches = bucket_distinct(vec![5_u64, 2, 5], 1);
/// assert_eq!(batches, [FingerprintBatch { place: 0, fingerprints: vec![2, 5], repeated: vec![5] }]);
/// ```
pub fn bucket_distinct<F: Fingerprint>(mut fingerprints: Vec<F>, buckets: usize) -> Vec<FingerprintBatch<F>> {
    let mut all_repeated = Vec::new();
    sort(&mut fingerprints);
    collapse(&mut fingerprints, &mut all_repeated);
    let empty = |place| FingerprintBatch { place, fingerprints: Vec::new(), repeated: Vec::new() };
    let mut batches: Vec<FingerprintBatch<F>> = (0..buckets).map(empty).collect();
    fingerprints.into_iter().for_each(|one| batches[bucket(one, buckets)].fingerprints.push(one));
    all_repeated.into_iter().for_each(|one| batches[bucket(one, buckets)].repeated.push(one));
    batches.retain(|batch| !batch.fingerprints.is_empty());
    batches
}

/// Divides fingerprints between [buckets](bucket). Returns one batch for each bucket that is not empty, in the
/// order of the buckets. `buckets` is the number of buckets. `position` converts the index of a fingerprint in
/// `fingerprints` to its position in the caller's data.
///
/// ```
/// use simstore::join::{PositionedBatch, bucket_positions};
///
/// let batches = bucket_positions(&[5_u64, 2, 5], 1, |index| index as u32);
/// assert_eq!(batches, [PositionedBatch { place: 0, fingerprints: vec![5, 2, 5], positions: vec![0, 1, 2] }]);
/// ```
pub fn bucket_positions<F: Fingerprint>(
    fingerprints: &[F],
    buckets: usize,
    position: impl Fn(usize) -> u32,
) -> Vec<PositionedBatch<F>> {
    let empty = |place| PositionedBatch { place, fingerprints: Vec::new(), positions: Vec::new() };
    let mut all: Vec<PositionedBatch<F>> = (0..buckets).map(empty).collect();
    for (at, &fingerprint) in fingerprints.iter().enumerate() {
        let batch = &mut all[bucket(fingerprint, buckets)];
        batch.fingerprints.push(fingerprint);
        batch.positions.push(position(at));
    }
    all.retain(|batch| !batch.fingerprints.is_empty());
    all
}

/// Look-up table of the list of fingerprints in one bucket (see [`bucket`]). It finds all positions of a given
/// fingerprint in the list, in which fingerprints may be repeated.
///
/// ```
/// let bucket = simstore::join::Bucket::new(&[5_u64, 2, 5])?;
/// assert!(bucket.positions(5).eq([0, 2]) && bucket.positions(3).eq([]));
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Bucket<F> {
    sorted: Vec<(F, u32)>,
}

impl<F: Fingerprint> Bucket<F> {
    /// Indexes `fingerprints`, the list of fingerprints in one [bucket]. It may be in any order, and a fingerprint may
    /// be repeated.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for more than 2^32 fingerprints; [`Error::Thread`] if no thread can be started.
    pub fn new(fingerprints: &[F]) -> Result<Self> {
        if fingerprints.len() as u64 > 1 << 32 {
            return Err(Error::BadArgument(
                "a bucket has at most 4,294,967,296 fingerprints: take more buckets".to_owned(),
            ));
        }
        threads::ensure_pool()?;
        let mut sorted: Vec<(F, u32)> = fingerprints.iter().copied().zip(0..=u32::MAX).collect();
        sorted.par_sort_unstable();
        Ok(Bucket { sorted })
    }

    /// Returns the positions of a fingerprint in the list that was passed to [`Bucket::new`], ascending.
    pub fn positions(&self, fingerprint: F) -> impl ExactSizeIterator<Item = u32> + '_ {
        let from = &self.sorted[self.sorted.partition_point(|&(other, _)| other < fingerprint)..];
        let same = &from[..from.partition_point(|&(other, _)| other == fingerprint)];
        same.iter().map(|&(_, position)| position)
    }
}

impl<F: Fingerprint> JoinParts<F> {
    /// Number of places in a distributed join. A place is one part of one table.
    pub fn place_count(&self) -> usize {
        self.table_count() * self.part_count()
    }

    /// Converts the index of a place (one part of one table) to the index of its table, and the index of its part
    /// in this table. The index of the place is `table * part_count + part`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the place does not exist.
    pub fn table_and_part(&self, place: usize) -> Result<(usize, usize)> {
        if place < self.place_count() {
            return Ok((place / self.part_count(), place % self.part_count()));
        }
        Err(Error::BadArgument(format!("there is no place {place}: there are {}", self.place_count())))
    }

    /// Collapses equal fingerprints, and sends each distinct fingerprint to its part of every table. Calls `visitor`
    /// with one batch for each part that is not empty: for the parts of the first table, then of the second, and
    /// so on. `fingerprints` are all fingerprints of one [bucket], in any order.
    ///
    /// A fingerprint counts as repeated if it is in `repeated` or occurs more than once in `fingerprints`. Only the
    /// batches for the first table list repeated fingerprints, so that each is listed once.
    ///
    /// ```
    /// let parts = simstore::join::JoinParts::<u64>::with_parts(1, 1)?;
    /// let mut batches = Vec::new();
    /// parts.distribute(vec![5, 2, 5], vec![2], |batch| {
    ///     batches.push((batch.place, batch.fingerprints, batch.repeated));
    ///     Ok(())
    /// })?;
    /// assert_eq!(batches, [(0, vec![2, 5], vec![2, 5])]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`JoinParts::scatter`]; any error of the visitor.
    pub fn distribute(
        &self,
        mut fingerprints: Vec<F>,
        mut repeated: Vec<F>,
        mut visitor: impl FnMut(FingerprintBatch<F>) -> Result<()>,
    ) -> Result<()> {
        sort(&mut fingerprints);
        collapse(&mut fingerprints, &mut repeated);
        sort(&mut repeated);
        repeated.dedup();
        for table in 0..self.table_count() {
            let mut repeated_in_part = vec![Vec::new(); self.part_count()];
            if table == 0 {
                repeated.iter().for_each(|&one| repeated_in_part[self.part(table, one)].push(one));
            }
            self.scatter(table, &fingerprints, |part, members| {
                let repeated = std::mem::take(&mut repeated_in_part[part]);
                visitor(FingerprintBatch {
                    place: table * self.part_count() + part,
                    fingerprints: members.to_vec(),
                    repeated,
                })
            })?;
        }
        Ok(())
    }

    /// Joins the fingerprints of a place (one part of one table). Returns the same edges between fingerprints as
    /// [`JoinParts::forest`], and for each fingerprint of `repeated` an edge to itself. `fingerprints` are the
    /// distinct fingerprints of the place, in any order.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the place does not exist; the errors of [`JoinParts::forest`].
    pub fn edges(
        &self,
        place: usize,
        mut fingerprints: Vec<F>,
        repeated: &[F],
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<(F, F)>> {
        let (table, _) = self.table_and_part(place)?;
        sort(&mut fingerprints);
        let mut edges = self.forest(table, &fingerprints, progress)?;
        edges.extend(repeated.iter().map(|&one| (one, one)));
        Ok(edges)
    }
}

/// Packs fingerprints into bytes: little-endian, one after the other, 8 or 16 bytes each.
///
/// ```
/// use simstore::join::{pack, unpack};
///
/// let bytes = pack(&[5_u64, 2]);
/// assert_eq!((bytes.len(), unpack::<u64>(&bytes)?), (16, vec![5, 2]));
/// assert!(unpack::<u64>(&bytes[1..]).is_err());
/// # Ok::<(), simstore::Error>(())
/// ```
pub fn pack<F: Fingerprint>(fingerprints: &[F]) -> Vec<u8> {
    let mut bytes = vec![0; fingerprints.len() * F::BYTES];
    bytes.chunks_exact_mut(F::BYTES).zip(fingerprints).for_each(|(bytes, one)| one.write_le(bytes));
    bytes
}

/// Unpacks the fingerprints from bytes that [`pack`] returned.
///
/// # Errors
/// [`Error::BadArgument`] if the number of bytes is not a multiple of a fingerprint's size (8 or 16 bytes).
pub fn unpack<F: Fingerprint>(bytes: &[u8]) -> Result<Vec<F>> {
    if !bytes.len().is_multiple_of(F::BYTES) {
        let (len, bits) = (bytes.len(), F::BITS);
        return Err(Error::BadArgument(format!("{len} bytes are not packed fingerprints of {bits} bits")));
    }
    Ok(bytes.chunks_exact(F::BYTES).map(F::read_le).collect())
}
