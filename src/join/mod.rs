//! Self-join: all pairs within a distance inside one set, and the clusters that these pairs form.
//!
//! # Method
//!
//! The tables of a plan are joined one after the other, each on all cores. Fingerprints are partitioned by their
//! prefix into groups. The members of a group are compared with one another. If the plan's probes flip bits, they are
//! also compared with the groups whose prefixes differ in these bits. A pair is reported by the first table that
//! finds it, so nothing is found twice, and no set of found pairs is needed. A partition proceeds digit by digit:
//! first chunks that fit in the cache, each by itself; then each digit's pieces of all chunks, until few fingerprints
//! are left. Tables that begin with the same bits share the first of these steps. Nothing is permuted or sorted. Fingerprints are moved without their positions; those are looked up for
//! the pairs found.
//!
//! The best plan depends on the number of fingerprints, the number of bits that differ between any of them, and the
//! distance. A larger group is joined like any other set: by a plan for its own size and for the bits that differ
//! between its members. So fingerprints that share many bits, all of them or some, are not all compared with one
//! another, unless all are near.
//!
//! # Parts
//!
//! [`Parts`] joins sets that do not fit in memory, or that are shared between machines. Each part is a separate piece
//! of work, and the pairs of all parts together are the pairs of the whole, each once. [`JoinOnDisk`] joins parts on
//! one machine, and [`Forest`] keeps the resulting clusters.
//!
//! # Memory
//!
//! Besides the fingerprints, a join holds a copy of them for one table: 8 bytes for each fingerprint of 64 bits, 16
//! for each of 128. Each thread holds twice the largest bucket; if bits are random, a bucket is a 256th of the copy.
//! Above distance 3, if a few tables with flips are better than many without, a second copy is in order of the
//! prefix. A group that is joined by a plan of its own takes the same again for its members. Collected pairs take 24
//! bytes each.

mod compare;
mod components;
mod crowds;
mod design;
mod engine;
mod forest;
mod naming;
mod on_disk;
mod pairs;
mod parts;
mod places;
mod positions;
mod ranks;
mod routed;
#[cfg(test)]
mod tests;

use std::ops::ControlFlow;
use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, PoisonError};

pub use self::components::{Components, clusters};
pub use self::crowds::Crowds;
use self::design::least_work;
use self::engine::{Join, Set};
pub use self::forest::Forest;
pub use self::on_disk::{DistinctOnDisk, JoinOnDisk};
pub use self::pairs::{NearPair, Pair};
pub use self::parts::Parts;
pub use self::places::{Bucket, Sent, Spread, bucketed, pack, spread, unpack};
pub use self::positions::{join_positions, label_clusters};
use self::ranks::Ranks;
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::Plan;
use crate::radix;
use crate::threads;
use crate::threads::lock;

/// Returns all pairs within `distance` bits of one another, sorted by `a`, then `b`.
///
/// For very many pairs, use [`visit_pairs`], which does not hold them in memory.
///
/// ```
/// use simstore::join::{Pair, self_join};
///
/// let pairs = self_join::<u64>(&[0b0000, 0b0111, 0b1111], 3)?;
/// assert_eq!(pairs, [Pair { a: 0, b: 1, distance: 3 }, Pair { a: 1, b: 2, distance: 1 }]);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// As [`visit_pairs`].
pub fn self_join<F: Fingerprint>(fingerprints: &[F], distance: u32) -> Result<Vec<Pair>> {
    let pairs = Mutex::new(Vec::new());
    visit_pairs(fingerprints, distance, |some| {
        lock(&pairs).extend_from_slice(some);
        ControlFlow::Continue(())
    })?;
    let mut pairs = pairs.into_inner().unwrap_or_else(PoisonError::into_inner);
    // Positions are below 2^32.
    radix::sort(&mut pairs, |pair| (pair.a as u64) << 32 | pair.b as u64);
    Ok(pairs)
}

/// Expected time to join `count` random fingerprints on one core, in seconds.
///
/// This is an estimate by the cost model that the join chooses its tables with. Fingerprints that have much in common
/// take longer. `distance` is at most [`Fingerprint::MAX_DISTANCE`].
///
/// ```
/// let seconds = |distance| simstore::join::expected_seconds::<u64>(1_000_000, distance);
/// assert!(seconds(3) < seconds(8) && seconds(8) < seconds(16));
/// ```
pub fn expected_seconds<F: Fingerprint>(count: usize, distance: u32) -> f64 {
    let distance = distance.min(F::MAX_DISTANCE);
    least_work::<F>(count, F::BITS, distance).0 * 1e-9
}

/// Sorts fingerprints on all cores of the current rayon pool.
///
/// This is a radix sort, which is faster than comparing for large inputs. It takes as much memory again as the
/// fingerprints do.
pub fn sort<F: Fingerprint>(fingerprints: &mut [F]) {
    if threads::ensure_pool().is_ok() {
        radix::sort_with_space(fingerprints, &mut Vec::new());
    } else {
        fingerprints.sort_unstable();
    }
}

/// Removes repeated fingerprints from an ascending list, and adds each repeated fingerprint once to `repeated`.
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
/// Equal fingerprints get the same bucket, and all buckets get about the same number, for any kind of fingerprints.
/// Use buckets to share out work, not in stored data: another version may assign other buckets.
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

/// Visits all pairs within `distance` bits of one another, each once, in batches and in no particular order.
///
/// The visitor is called from several threads at the same time: the threads of the current rayon pool. It is called
/// at least every tenth of a second, also with no pairs at all, and says whether to continue.
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
/// [`Error::OutOfOrder`] if the fingerprints are not strictly ascending, [`Error::BadArgument`] if the distance is
/// above [`Fingerprint::MAX_DISTANCE`] or there are 2^32 - 1 fingerprints or more; [`Error::Cancelled`] if the
/// visitor asked to stop. After that, other threads may still call it a few times.
pub fn visit_pairs<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    visitor: impl Fn(&[Pair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    visit(fingerprints, distance, None, visitor)
}

/// Like [`visit_pairs`], but does not visit all pairs inside crowds. A crowd is a group whose members are each near
/// many others.
///
/// When a crowd is found, its remaining pairs are skipped, and all its members are reported instead. Two near
/// fingerprints are visited as a pair, or are members of the same reported crowd. A fingerprint may be in several
/// crowds.
///
/// ```
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// use simstore::join::{Crowds, visit_pairs_but_crowds};
///
/// let all: Vec<u64> = (0..1000).collect();
/// let crowd = Mutex::new(Vec::new());
/// let crowds = Crowds { enough: 64, visitor: &|some: &[u64]| crowd.lock().unwrap().extend_from_slice(some) };
/// visit_pairs_but_crowds(&all, 10, crowds, |_| ControlFlow::Continue(()))?;
/// assert_eq!(crowd.into_inner().unwrap(), all);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// As [`visit_pairs`].
pub fn visit_pairs_but_crowds<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    crowds: Crowds<'_, F>,
    visitor: impl Fn(&[Pair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    visit(fingerprints, distance, Some(crowds), visitor)
}

fn visit<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    crowds: Option<Crowds<'_, F>>,
    visitor: impl Fn(&[Pair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    check_order(fingerprints)?;
    if fingerprints.len() >= u32::MAX as usize {
        let message = "a self-join in memory takes at most 4,294,967,294 fingerprints".to_string();
        return Err(Error::BadArgument(message));
    }
    threads::ensure_pool()?;
    // Refuses a distance without plans.
    Plan::<F>::named("scan", distance)?;
    let stopped = AtomicBool::new(false);
    let naming = Ranks::new(fingerprints);
    let join = Join { naming, distance, visitor, crowds, stopped };
    join.join(&Set::all(fingerprints, distance), &mut Vec::new());
    if join.goes_on() { Ok(()) } else { Err(Error::Cancelled) }
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
