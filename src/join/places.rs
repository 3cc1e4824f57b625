//! What the tasks of a join in parts hand on to one another: fingerprints of buckets and of places.

use rayon::prelude::*;

use super::{Parts, bucket, collapse, sort};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::ProgressCallback;
use crate::threads;

/// Fingerprints for one bucket, or one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent<F> {
    /// Which one, from 0.
    pub place: usize,
    /// Ascending, each once.
    pub fingerprints: Vec<F>,
    /// Those of them that were there several times, ascending.
    pub repeated: Vec<F>,
}

/// All fingerprints for one bucket, and where each of them was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spread<F> {
    /// Which bucket, from 0.
    pub place: usize,
    /// In the order in which they were.
    pub fingerprints: Vec<F>,
    /// The position of each.
    pub positions: Vec<u32>,
}

/// Each of some fingerprints once, by [buckets](bucket): those that are not empty, ascending.
///
/// ```
/// use simstore::join::{Sent, bucketed};
///
/// let sent = bucketed(vec![5_u64, 2, 5], 1);
/// assert_eq!(sent, [Sent { place: 0, fingerprints: vec![2, 5], repeated: vec![5] }]);
/// ```
pub fn bucketed<F: Fingerprint>(mut fingerprints: Vec<F>, buckets: usize) -> Vec<Sent<F>> {
    let mut all_repeated = Vec::new();
    sort(&mut fingerprints);
    collapse(&mut fingerprints, &mut all_repeated);
    let empty = |place| Sent { place, fingerprints: Vec::new(), repeated: Vec::new() };
    let mut sent: Vec<Sent<F>> = (0..buckets).map(empty).collect();
    fingerprints.into_iter().for_each(|one| sent[bucket(one, buckets)].fingerprints.push(one));
    all_repeated.into_iter().for_each(|one| sent[bucket(one, buckets)].repeated.push(one));
    sent.retain(|sent| !sent.fingerprints.is_empty());
    sent
}

/// All of some fingerprints by [buckets](bucket), with the position that `position` gives each: the buckets that are not empty,
/// ascending.
///
/// ```
/// use simstore::join::{Spread, spread};
///
/// let all = spread(&[5_u64, 2, 5], 1, |at| at as u32);
/// assert_eq!(all, [Spread { place: 0, fingerprints: vec![5, 2, 5], positions: vec![0, 1, 2] }]);
/// ```
pub fn spread<F: Fingerprint>(
    fingerprints: &[F],
    buckets: usize,
    position: impl Fn(usize) -> u32,
) -> Vec<Spread<F>> {
    let empty = |place| Spread { place, fingerprints: Vec::new(), positions: Vec::new() };
    let mut all: Vec<Spread<F>> = (0..buckets).map(empty).collect();
    for (at, &fingerprint) in fingerprints.iter().enumerate() {
        let of = &mut all[bucket(fingerprint, buckets)];
        of.fingerprints.push(fingerprint);
        of.positions.push(position(at));
    }
    all.retain(|of| !of.fingerprints.is_empty());
    all
}

/// Fingerprints of a bucket, each any number of times, in which others are looked up.
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
    /// Sorts the fingerprints of a bucket.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there are more than 2^32; [`Error::Thread`] if there are no threads.
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

    /// Where a fingerprint is among those of the bucket, ascending.
    pub fn positions(&self, fingerprint: F) -> impl ExactSizeIterator<Item = u32> + '_ {
        let from = &self.sorted[self.sorted.partition_point(|&(other, _)| other < fingerprint)..];
        let same = &from[..from.partition_point(|&(other, _)| other == fingerprint)];
        same.iter().map(|&(_, position)| position)
    }
}

impl<F: Fingerprint> Parts<F> {
    /// How many places there are: parts of tables.
    pub fn places(&self) -> usize {
        self.tables() * self.parts()
    }

    /// The table and the part of a place, which is `table * parts + part`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is no such place.
    pub fn of_place(&self, place: usize) -> Result<(usize, usize)> {
        if place < self.places() {
            return Ok((place / self.parts(), place % self.parts()));
        }
        Err(Error::BadArgument(format!("there is no place {place}: there are {}", self.places())))
    }

    /// Visits what goes to each place, of the fingerprints of a bucket: all places that get any, ascending. What is in `repeated`,
    /// or several times in `fingerprints`, is told with the places of the first table.
    ///
    /// ```
    /// let parts = simstore::join::Parts::<u64>::with_parts(1, 1)?;
    /// let mut sent = Vec::new();
    /// parts.send(vec![5, 2, 5], vec![2], |one| {
    ///     sent.push((one.place, one.fingerprints, one.repeated));
    ///     Ok(())
    /// })?;
    /// assert_eq!(sent, [(0, vec![2, 5], vec![2, 5])]);
    /// # Ok::<(), simstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Parts::scatter`]; what the visitor fails with.
    pub fn send(
        &self,
        mut fingerprints: Vec<F>,
        mut repeated: Vec<F>,
        mut visitor: impl FnMut(Sent<F>) -> Result<()>,
    ) -> Result<()> {
        sort(&mut fingerprints);
        collapse(&mut fingerprints, &mut repeated);
        sort(&mut repeated);
        repeated.dedup();
        for table in 0..self.tables() {
            let mut of_part = vec![Vec::new(); self.parts()];
            if table == 0 {
                repeated.iter().for_each(|&one| of_part[self.part(table, one)].push(one));
            }
            self.scatter(table, &fingerprints, |part, some| {
                let repeated = std::mem::take(&mut of_part[part]);
                visitor(Sent { place: table * self.parts() + part, fingerprints: some.to_vec(), repeated })
            })?;
        }
        Ok(())
    }

    /// What the pairs of a place connect, as [`Parts::forest`] has it, and an edge of each repeated fingerprint with itself. The
    /// fingerprints are in any order, each once.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there is no such place; as [`Parts::forest`].
    pub fn edges(
        &self,
        place: usize,
        mut fingerprints: Vec<F>,
        repeated: &[F],
        progress: Option<&ProgressCallback>,
    ) -> Result<Vec<(F, F)>> {
        let (table, _) = self.of_place(place)?;
        sort(&mut fingerprints);
        let mut edges = self.forest(table, &fingerprints, progress)?;
        edges.extend(repeated.iter().map(|&one| (one, one)));
        Ok(edges)
    }
}

/// Fingerprints side by side: little-endian, one after the other.
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

/// What [`pack`] has packed.
///
/// # Errors
/// [`Error::BadArgument`] if these are no whole fingerprints.
pub fn unpack<F: Fingerprint>(bytes: &[u8]) -> Result<Vec<F>> {
    if !bytes.len().is_multiple_of(F::BYTES) {
        let (len, bits) = (bytes.len(), F::BITS);
        return Err(Error::BadArgument(format!("{len} bytes are not packed fingerprints of {bits} bits")));
    }
    Ok(bytes.chunks_exact(F::BYTES).map(F::read_le).collect())
}
