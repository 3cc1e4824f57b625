//! Self-join of an unsorted list of fingerprints with repeats; pairs are reported as list positions.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use super::{Components, IndexPair, visit_pairs};
use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::progress::{ProgressCallback, ProgressCounter};
use crate::radix;
use crate::threads;
use crate::threads::lock;

/// Maximum number of pairs that [`join_positions`] returns. So many pairs take about 100 GiB of memory.
const MAX_PAIRS: u64 = u32::MAX as u64;

/// Returns all pairs of positions whose fingerprints are within `distance` bits, sorted by `a`, then `b`.
///
/// Fingerprints may be in any order and may be repeated. n equal fingerprints have n (n - 1) / 2 pairs. The
/// callback receives the number of pairs found so far.
///
/// ```
/// use simstore::join::join_positions;
///
/// let pairs = join_positions::<u64>(&[0b1111, 0b0111, 1 << 60, 0b1111], 1, None)?;
/// assert_eq!(pairs.iter().map(|pair| (pair.a, pair.b, pair.distance)).collect::<Vec<_>>(), [(0, 1, 1), (0, 3, 0), (1, 3, 1)]);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// The errors of [`visit_pairs`] except [`Error::OutOfOrder`]; [`Error::Refused`] for 2^32 pairs or more;
/// [`Error::Cancelled`] if the callback cancels the join.
pub fn join_positions<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    progress: Option<&ProgressCallback>,
) -> Result<Vec<IndexPair>> {
    let positions = PositionIndex::new(fingerprints)?;
    let counter = ProgressCounter::new(progress, 0);
    let equal: u64 = positions.groups().map(|group| group.len() as u64 * (group.len() as u64 - 1) / 2).sum();
    check_count(equal)?;
    let (mut pairs, mut pending) = (Vec::with_capacity(equal as usize), 0);
    for group in positions.groups() {
        for (i, &a) in group.iter().enumerate() {
            pairs.extend(group[i + 1..].iter().map(|&b| pair(a, b, 0)));
            counter.add_batched(&mut pending, (group.len() - 1 - i) as u64)?;
        }
    }
    counter.add(pending)?;
    let found = Mutex::new((pairs, None));
    visit_pairs(&positions.distinct, distance, |near| {
        let mut found = lock(&found);
        let (pairs, refused) = &mut *found;
        let mut pending = 0;
        let added = near.iter().try_for_each(|near| {
            let (left, right) = (positions.positions_of(near.a), positions.positions_of(near.b));
            check_count(pairs.len() as u64 + left.len() as u64 * right.len() as u64)?;
            left.iter().try_for_each(|&a| {
                pairs.extend(right.iter().map(|&b| pair(a, b, near.distance)));
                counter.add_batched(&mut pending, right.len() as u64)
            })
        });
        match added.and_then(|()| counter.add(pending)) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                *refused = Some(error);
                ControlFlow::Break(())
            }
        }
    })
    // The visitor's own error, if any, takes precedence.
    .map_err(|error| lock(&found).1.take().unwrap_or(error))?;
    let (mut pairs, _) = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    radix::sort(&mut pairs, |pair| (pair.a as u64) << 32 | pair.b as u64);
    Ok(pairs)
}

/// Returns for each fingerprint the label of its cluster, a number from 0. Fingerprints may be in any order and may
/// be repeated.
///
/// Equal fingerprints have the same label, and so have fingerprints that are connected by a chain of pairs
/// within `distance` bits. Clusters are numbered in the order of their first fingerprints in the list. The memory
/// does not depend on the number of pairs. The callback receives the number of pairs of distinct fingerprints found
/// so far.
///
/// ```
/// let labels = simstore::join::label_clusters::<u64>(&[0b1111, 1 << 60, 0b0011, 0b1111, 0b0111], 1, None)?;
/// assert_eq!(labels, [0, 1, 0, 0, 0]);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// The errors of [`visit_pairs`] except [`Error::OutOfOrder`]; [`Error::Cancelled`] if the callback cancels the
/// join.
pub fn label_clusters<F: Fingerprint>(
    fingerprints: &[F],
    distance: u32,
    progress: Option<&ProgressCallback>,
) -> Result<Vec<u32>> {
    const NONE: u32 = u32::MAX;
    let positions = PositionIndex::new(fingerprints)?;
    let counter = ProgressCounter::new(progress, 0);
    let components = Mutex::new(Components::new(positions.distinct.len()));
    visit_pairs(&positions.distinct, distance, |near| {
        let mut components = lock(&components);
        near.iter().for_each(|pair| components.connect(pair.a, pair.b));
        drop(components);
        if counter.add(near.len() as u64).is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    })?;
    let mut components = components.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut labels = vec![NONE; fingerprints.len()];
    for (number, group) in positions.groups().enumerate() {
        let first = components.first(number) as u32;
        group.iter().for_each(|&position| labels[position as usize] = first);
    }
    let (mut component_labels, mut next) = (vec![NONE; positions.distinct.len()], 0);
    for label in &mut labels {
        let component_label = &mut component_labels[*label as usize];
        if *component_label == NONE {
            *component_label = next;
            next += 1;
        }
        *label = *component_label;
    }
    Ok(labels)
}

fn pair(a: u32, b: u32, distance: u32) -> IndexPair {
    IndexPair { a: a.min(b) as usize, b: a.max(b) as usize, distance }
}

fn check_count(pairs: u64) -> Result<()> {
    if pairs <= MAX_PAIRS {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "at least {pairs} pairs, too many for memory: join distinct fingerprints, or compute clusters instead of pairs"
    )))
}

/// Index of a list with repeated fingerprints: the positions of each distinct fingerprint in the list.
struct PositionIndex<F> {
    /// Distinct fingerprints, ascending.
    distinct: Vec<F>,
    /// For each fingerprint of `distinct`, the index in `positions` at which its positions start. The last entry is
    /// the length of `positions`.
    starts: Vec<u32>,
    /// All positions of the list, grouped by fingerprint: first the positions of `distinct[0]`, ascending, then the
    /// positions of `distinct[1]`, and so on.
    positions: Vec<u32>,
}

impl<F: Fingerprint> PositionIndex<F> {
    fn new(fingerprints: &[F]) -> Result<Self> {
        if fingerprints.len() >= u32::MAX as usize {
            let message = "a self-join in memory takes at most 4,294,967,294 fingerprints".to_string();
            return Err(Error::BadArgument(message));
        }
        threads::ensure_pool()?;
        let mut order: Vec<(F, u32)> = fingerprints.iter().copied().zip(0..).collect();
        radix::sort(&mut order, |(fingerprint, _)| fingerprint);
        let (mut distinct, mut starts) = (Vec::new(), Vec::new());
        for (at, group) in order.iter().enumerate() {
            if distinct.last() != Some(&group.0) {
                distinct.push(group.0);
                starts.push(at as u32);
            }
        }
        starts.push(order.len() as u32);
        let positions = order.into_iter().map(|(_, position)| position).collect();
        Ok(PositionIndex { distinct, starts, positions })
    }

    /// Returns all positions of the fingerprint `distinct[number]` in the indexed list.
    fn positions_of(&self, number: usize) -> &[u32] {
        &self.positions[self.starts[number] as usize..self.starts[number + 1] as usize]
    }

    fn groups(&self) -> impl Iterator<Item = &[u32]> {
        (0..self.distinct.len()).map(|number| self.positions_of(number))
    }
}
