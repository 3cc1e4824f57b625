//! Self-join: all pairs within a distance inside one set, and the clusters that they make.
//!
//! # Method
//!
//! The tables of a plan are joined one after the other, each on all cores: fingerprints are partitioned by their
//! prefix, and those of a group compared with one another and, where the plan's probes flip bits, with the groups
//! whose prefix is so near. A pair is reported by the first table that brings it together, so nothing is found
//! twice and no set is needed to remember what was. A partition goes digit by digit: chunks that fit in the cache
//! first, each by itself; then each digit's pieces of all chunks, until few fingerprints are left. Nothing is
//! permuted or sorted, and fingerprints go without their positions, which are looked up for the pairs found.
//!
//! Which plan takes the least work follows from the number of fingerprints, of bits in which they differ at all,
//! and the distance. A group that is larger than a few is a set like any other: it is joined by a plan for its
//! own size and the bits that its members do not have in common. So fingerprints that share many bits, all of
//! them or some, are not compared all with all, unless all are near.
//!
//! # Parts
//!
//! What does not fit in memory, or is to be shared between machines, is joined in [`Parts`]: pieces of work of their own, whose
//! pairs together are those of the whole, each once. [`JoinOnDisk`] does so on one machine, and [`Forest`] keeps what they connect.
//!
//! # Memory
//!
//! Besides the fingerprints, those of one table: 8 bytes for each fingerprint of 64 bits, 16 for each of 128, and
//! for each thread twice the largest bucket, a 256th of that where bits are random. Above distance 3, when few
//! tables with flips are better than many without, another copy in order of the prefix. A group that is joined by
//! a plan of its own takes the same again for its members. Then the pairs: 24 bytes each where they are collected.

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
use std::sync::{Mutex, MutexGuard, PoisonError};

pub use self::components::{Components, clusters};
pub use self::crowds::Crowds;
use self::design::Designs;
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

/// All pairs within `distance` bits of one another, sorted by `a`, then `b`.
///
/// Where there may be very many, [`visit_pairs`] does without the memory for them.
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

/// How long a join of so many random fingerprints should take on one core, in seconds, by the cost model that its tables are
/// chosen by. Of fingerprints that have much in common it takes longer. Up to [`Fingerprint::MAX_DISTANCE`].
///
/// ```
/// let seconds = |distance| simstore::join::expected_seconds::<u64>(1_000_000, distance);
/// assert!(seconds(3) < seconds(8) && seconds(8) < seconds(16));
/// ```
pub fn expected_seconds<F: Fingerprint>(count: usize, distance: u32) -> f64 {
    let distance = distance.min(F::MAX_DISTANCE);
    Designs::<F>::new(distance).least_work(count, F::BITS, distance).0 * 1e-9
}

/// Sorts fingerprints on all cores of the current rayon pool: by digits, which for many is faster than by comparing
/// them. Takes the memory of as many fingerprints again.
pub fn sort<F: Fingerprint>(fingerprints: &mut [F]) {
    if threads::ensure_pool().is_ok() {
        radix::sort_with_space(fingerprints, &mut Vec::new());
    } else {
        fingerprints.sort_unstable();
    }
}

/// Keeps one of each of some fingerprints, which ascend, and adds those to `repeated` that were there several times.
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

/// One of so many buckets, from 0, for a fingerprint: the same for equal ones, and about as many in each, whatever the fingerprints
/// are like. For work that is shared out; not for what lasts: it may be another one in another version.
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

/// A lock whose holder has panicked is held by nobody: the panic goes on in the thread that waits for it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Visits all pairs within `distance` bits of one another, each once, some at a time and in no order.
///
/// The visitor is called from several threads at a time: those of the current rayon pool. It is called at least every tenth
/// of a second, also with no pairs at all, and says whether to go on.
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
/// [`Error::OutOfOrder`] if the fingerprints are not strictly ascending, [`Error::BadArgument`] if the
/// distance is above [`Fingerprint::MAX_DISTANCE`] or there are 2^32 - 1 fingerprints or more; [`Error::Cancelled`] if the
/// visitor said not to go on. It may be called a few times more then, by other threads.
pub fn visit_pairs<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    visitor: impl Fn(&[Pair]) -> ControlFlow<()> + Sync,
) -> Result<()> {
    visit(fingerprints, distance, None, visitor)
}

/// Visits pairs as [`visit_pairs`] does, but for those of crowds: of a group in which each is near many others, no more pairs are
/// visited, and all its members are told instead. Two that are near are visited as a pair, or are members of one crowd that is told.
/// A fingerprint may be in several crowds.
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
    // Refuses a distance that there are no plans for.
    Plan::<F>::named("scan", distance)?;
    let stopped = AtomicBool::new(false);
    let naming = Ranks::new(fingerprints);
    let designs = Designs::new(distance);
    let join = Join { naming, designs: &designs, visitor, crowds, stopped };
    join.join(&Set::all(fingerprints, distance), &mut Vec::new());
    if join.goes_on() { Ok(()) } else { Err(Error::Cancelled) }
}

/// Fails unless fingerprints are ascending, each there once.
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
