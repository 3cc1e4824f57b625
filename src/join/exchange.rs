//! Exchange of fingerprints between the tasks of a distributed join.
//!
//! The hash of a fingerprint selects its *bucket*, see [`bucket`]. A *place* is one part of one table of
//! [`JoinParts`]. Tasks first send fingerprints to buckets, where equal fingerprints are collapsed. Then each
//! bucket sends its fingerprints to the places, which join them.

use rayon::prelude::*;

use super::{JoinParts, bucket, collapse, sort};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::ProgressCallback;
use crate::threads;

/// Distinct fingerprints for one bucket or one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintBatch<F> {
    /// Number of the bucket or place, from 0.
    pub place: usize,
    /// Distinct fingerprints, ascending.
    pub fingerprints: Vec<F>,
    /// Those of `fingerprints` that occurred more than once in the input, ascending.
    pub repeated: Vec<F>,
}

/// Fingerprints for one bucket with their positions in the caller's data. Fingerprints may be repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PositionedBatch<F> {
    /// Number of the bucket, from 0.
    pub place: usize,
    /// Fingerprints in the order of the input.
    pub fingerprints: Vec<F>,
    /// Position of each fingerprint in the caller's data.
    pub positions: Vec<u32>,
}

/// Divides distinct fingerprints between [buckets](bucket), and returns the non-empty buckets in ascending
/// order.
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

/// Divides fingerprints between [buckets](bucket), and returns the non-empty buckets in ascending order.
/// `position` converts the index of a fingerprint to its reported position.
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

/// Look-up table of a bucket's fingerprints, which may be repeated.
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
    /// Creates the table of a bucket's fingerprints, in any order.
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

    /// Returns the positions of a fingerprint in the bucket, ascending.
    pub fn positions(&self, fingerprint: F) -> impl ExactSizeIterator<Item = u32> + '_ {
        let from = &self.sorted[self.sorted.partition_point(|&(other, _)| other < fingerprint)..];
        let same = &from[..from.partition_point(|&(other, _)| other == fingerprint)];
        same.iter().map(|&(_, position)| position)
    }
}

impl<F: Fingerprint> JoinParts<F> {
    /// Number of places: the parts of all tables.
    pub fn place_count(&self) -> usize {
        self.table_count() * self.part_count()
    }

    /// Returns the table and the part of a place. The number of a place is `table * part_count + part`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the place does not exist.
    pub fn table_and_part(&self, place: usize) -> Result<(usize, usize)> {
        if place < self.place_count() {
            return Ok((place / self.part_count(), place % self.part_count()));
        }
        Err(Error::BadArgument(format!("there is no place {place}: there are {}", self.place_count())))
    }

    /// Divides the fingerprints of a bucket between the places, and visits the non-empty places in ascending
    /// order.
    ///
    /// A fingerprint counts as repeated if it is in `repeated` or occurs more than once in `fingerprints`.
    /// Only batches for the places of the first table list repeated fingerprints.
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

    /// Returns the edges of the clusters of a place, as [`JoinParts::forest`] does, and for each fingerprint
    /// of `repeated` an edge to itself. `fingerprints` are the distinct fingerprints of the place, in any order.
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

/// Unpacks the bytes from [`pack`].
///
/// # Errors
/// [`Error::BadArgument`] if the number of bytes is not a multiple of a fingerprint's size.
pub fn unpack<F: Fingerprint>(bytes: &[u8]) -> Result<Vec<F>> {
    if !bytes.len().is_multiple_of(F::BYTES) {
        let (len, bits) = (bytes.len(), F::BITS);
        return Err(Error::BadArgument(format!("{len} bytes are not packed fingerprints of {bits} bits")));
    }
    Ok(bytes.chunks_exact(F::BYTES).map(F::read_le).collect())
}
