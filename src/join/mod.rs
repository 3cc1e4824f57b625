//! Self-join: all pairs within a distance inside one set, and the clusters that these pairs form.
//!
//! - [`self_join`] and [`visit_pairs`] join ascending, distinct fingerprints, and report pairs of positions.
//! - [`join_positions`] and [`label_clusters`] take any list of fingerprints. The first returns pairs of positions,
//!   the second returns clusters.
//! - [`JoinOnDisk`] joins more fingerprints than fit in memory, and reports pairs of fingerprints.
//! - [`JoinParts`] divides a join into parts, for several machines.
//!
//! # Method
//!
//! The tables of a plan are joined one after the other, each on all cores. Fingerprints are partitioned by
//! their prefix into groups. The members of a group are compared with one another. If the plan allows r flips in
//! a prefix, the members are also compared with the members of groups with a prefix within r bits. The
//! first table that finds a pair reports it. So each pair is reported once, and no set of earlier pairs is
//! needed.
//!
//! Fingerprints are partitioned by a few prefix bits at a time. First, each chunk of the list that fits in the cache
//! is partitioned separately. Then the fingerprints of all chunks that are equal in these bits (a *bucket*) are
//! gathered and partitioned further, until groups are small. Tables whose prefixes begin with the same bits share
//! the first step. Fingerprints are neither permuted nor sorted. They are moved without their positions, which are
//! looked up for the found pairs only.
//!
//! The best plan depends on the number of fingerprints, the number of bits that are not equal in all of them,
//! and the distance. A large group is joined like any other set, by a plan for its own size and its own
//! differing bits. So fingerprints that share many bits are not all compared with one another, unless all are
//! near.
//!
//! # Parts
//!
//! [`JoinParts`] divides sets that do not fit in memory, or that several machines join. Each part is joined
//! separately. All parts together report the pairs of the whole set, each once. [`JoinOnDisk`] joins the
//! parts on one machine, and [`Forest`] keeps the resulting clusters.
//!
//! # Memory
//!
//! Besides the fingerprints, a join holds a copy of them for one table: 8 bytes per fingerprint of 64 bits,
//! 16 bytes per fingerprint of 128 bits. Each thread holds twice the largest bucket. If bits are random, a
//! bucket is a 256th of the copy. Above distance 3, a plan of a few tables with flips may be best; it needs a
//! second copy, which is sorted by the prefix. A group with a plan of its own takes the same memory again for its
//! members. Collected pairs take 24 bytes each.

mod by_index;
mod choose_tables;
mod compare;
mod components;
mod dense_groups;
mod engine;
mod exchange;
mod forest;
mod on_disk;
mod pair_output;
mod pairs;
mod part_writer;
mod parts;
mod positions;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

use self::by_index::ByIndex;
use self::choose_tables::min_work;
pub use self::components::{Components, clusters};
pub use self::dense_groups::DenseGroupVisitor;
use self::engine::{Join, JoinSet};
pub use self::exchange::{
    Bucket, FingerprintBatch, PositionedBatch, bucket_distinct, bucket_positions, pack, unpack,
};
pub use self::forest::Forest;
pub use self::on_disk::{DistinctOnDisk, JoinOnDisk};
pub use self::pairs::{FingerprintPair, IndexPair};
pub use self::parts::JoinParts;
pub use self::positions::{join_positions, label_clusters};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::radix;
use crate::threads;
use crate::threads::lock;

/// Returns all pairs of fingerprints within `distance` bits, as pairs of positions in the list `fingerprints`, which
/// must be strictly ascending. The pairs are sorted by `a`, then `b`.
///
/// If the pairs do not fit in memory, use [`visit_pairs`].
///
/// ```
/// use simstore::join::{IndexPair, self_join};
///
/// let pairs = self_join::<u64>(&[0b0000, 0b0111, 0b1111], 3)?;
/// assert_eq!(pairs, [IndexPair { a: 0, b: 1, distance: 3 }, IndexPair { a: 1, b: 2, distance: 1 }]);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// The errors of [`visit_pairs`].
pub fn self_join<F: Fingerprint>(fingerprints: &[F], distance: u32) -> Result<Vec<IndexPair>> {
    let pairs = Mutex::new(Vec::new());
    visit_pairs(fingerprints, distance, |batch| {
        lock(&pairs).extend_from_slice(batch);
        ControlFlow::Continue(())
    })?;
    let mut pairs = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Positions are below 2^32.
    radix::sort(&mut pairs, |pair| (pair.a as u64) << 32 | pair.b as u64);
    Ok(pairs)
}

/// Estimates the time to join `count` random fingerprints on one core, in seconds.
///
/// The join chooses its tables by the same estimate. Fingerprints that share many bits take longer. A `distance`
/// above [`Fingerprint::MAX_DISTANCE`] counts as that maximum.
///
/// ```
/// let seconds = |distance| simstore::join::expected_seconds::<u64>(1_000_000, distance);
/// assert!(seconds(3) < seconds(8) && seconds(8) < seconds(16));
/// ```
pub fn expected_seconds<F: Fingerprint>(count: usize, distance: u32) -> f64 {
    let distance = distance.min(F::MAX_DISTANCE);
    min_work::<F>(count, F::BITS, distance).0 * 1e-9
}

/// Sorts fingerprints on all cores of the current rayon pool.
///
/// This is a radix sort. For large inputs, it is faster than a comparison sort. It needs a buffer as large as the
/// input.
pub fn sort<F: Fingerprint>(fingerprints: &mut [F]) {
    if threads::ensure_pool().is_ok() {
        radix::sort_with_space(fingerprints, &mut Vec::new());
    } else {
        fingerprints.sort_unstable();
    }
}

/// Removes repeated fingerprints from an ascending list, so that each occurs once. Appends each fingerprint that
/// was repeated to `repeated`, once.
///
/// ```
/// let (mut fingerprints, mut repeated) = (vec![1_u64, 2, 2, 2, 5], Vec::new());
/// simstore::join::collapse(&mut fingerprints, &mut repeated);
/// assert_eq!((fingerprints, repeated), (vec![1, 2, 5], vec![2]));
/// ```
pub fn collapse<F: Fingerprint>(fingerprints: &mut Vec<F>, repeated: &mut Vec<F>) {
    let mut last = 0;
    for at in 1..fingerprints.len() {
        if fingerprints[at] == fingerprints[last] {
            if repeated.last() != Some(&fingerprints[at]) {
                repeated.push(fingerprints[at]);
            }
        } else {
            last += 1;
            fingerprints[last] = fingerprints[at];
        }
    }
    fingerprints.truncate(last + 1);
}

/// Assigns a fingerprint to one of `buckets` buckets, counted from 0.
///
/// Equal fingerprints get the same bucket. All buckets get about the same number of distinct fingerprints, even
/// if the fingerprints are not random. Use buckets to divide work, not in stored data: another version of this
/// library may assign other buckets.
///
/// ```
/// assert!((0..1000_u64).all(|fingerprint| simstore::join::bucket(fingerprint, 10) < 10));
/// ```
#[inline]
pub fn bucket<F: Fingerprint>(fingerprint: F, buckets: usize) -> usize {
    // The finalizer of SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
    let mut hash =
        fingerprint.low_u64() ^ fingerprint.high_u64().rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^= hash >> 31;
    ((u128::from(hash) * buckets as u128) >> 64) as usize
}

/// Visits all pairs of fingerprints within `distance` bits, each once, in batches and in no particular order.
///
/// Several threads of the current rayon pool call the visitor at the same time, at least every tenth of a
/// second; the batch is empty without new pairs. The visitor returns whether to continue.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use simstore::join::{Components, visit_pairs};
///
/// let components = Mutex::new(Components::new(4));
/// visit_pairs::<u64>(&[0b0000, 0b0011, 0b1111, 1 << 60], 2, |pairs| {
///     let mut components = components.lock().unwrap();
///     pairs.iter().for_each(|pair| components.connect(pair.a, pair.b));
///     ControlFlow::Continue(())
/// })?;
/// assert_eq!(components.into_inner().unwrap().first(2), 0);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// - [`Error::OutOfOrder`] if the fingerprints are not strictly ascending.
/// - [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`], or for 2^32 - 1
///   fingerprints or more.
/// - [`Error::Cancelled`] if the visitor returns a break. After that, other threads may still call the visitor a few
///   times.
pub fn visit_pairs<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    visitor: impl Fn(&[IndexPair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    visit(fingerprints, distance, None, visitor)
}

/// Like [`visit_pairs`], but does not visit all pairs inside dense groups. In a dense group, a fingerprint is on average
/// within the distance of many others.
///
/// When the join finds a dense group, it skips the group's remaining pairs, and passes all members to
/// `dense_groups` instead. So two near fingerprints are visited as a pair, or are members of the same dense
/// group. A fingerprint may be in several dense groups.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use simstore::join::{DenseGroupVisitor, visit_pairs_except_dense};
///
/// let all: Vec<u64> = (0..1000).collect();
/// let members = Mutex::new(Vec::new());
/// let dense_groups = DenseGroupVisitor {
///     pairs_per_member: 64,
///     visitor: &|group: &[u64]| members.lock().unwrap().extend_from_slice(group),
/// };
/// visit_pairs_except_dense(&all, 10, dense_groups, |_| ControlFlow::Continue(()))?;
/// assert_eq!(members.into_inner().unwrap(), all);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// The errors of [`visit_pairs`].
pub fn visit_pairs_except_dense<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    dense_groups: DenseGroupVisitor<'_, F>,
    visitor: impl Fn(&[IndexPair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    visit(fingerprints, distance, Some(dense_groups), visitor)
}

fn visit<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    dense_groups: Option<DenseGroupVisitor<'_, F>>,
    visitor: impl Fn(&[IndexPair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    check_order(fingerprints)?;
    if fingerprints.len() >= u32::MAX as usize {
        let message = "a self-join in memory takes at most 4,294,967,294 fingerprints".to_string();
        return Err(Error::BadArgument(message));
    }
    threads::ensure_pool()?;
    // Fails if the distance is too large.
    Plan::<F>::named("scan", distance)?;
    let is_stopped = AtomicBool::new(false);
    let pair_output = ByIndex::new(fingerprints);
    let join = Join { pair_output, distance, visitor, dense_groups, is_stopped };
    join.join(&JoinSet::all(fingerprints, distance), &mut Vec::new());
    if join.should_continue() { Ok(()) } else { Err(Error::Cancelled) }
}

/// Fails unless the fingerprints are strictly ascending.
fn check_order<F: Fingerprint>(fingerprints: &[F]) -> Result<()> {
    match fingerprints.windows(2).find(|pair| pair[0] >= pair[1]) {
        None => Ok(()),
        Some(pair) => Err(Error::OutOfOrder {
            what: "the fingerprints of a join",
            previous: pair[0].to_hex(),
            got: pair[1].to_hex(),
        }),
    }
}
