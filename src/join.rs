//! Self-join: all pairs within a distance inside one set, and the clusters that they make.

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::plan::{self, Plan};

/// Two fingerprints within the distance, by their positions in the slice that was joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Pair {
    /// Position of the one.
    pub a: usize,
    /// Position of the other, greater than `a`.
    pub b: usize,
    /// Their distance, in bits.
    pub distance: u32,
}

/// All pairs within `distance` bits of one another, sorted by `a`, then `b`.
///
/// For each table of a plan whose probes flip nothing, the fingerprints are sorted by their prefix, and those
/// that share it are compared; a pair is reported by the first table that brings it together. Takes 16 to 32
/// bytes of memory for each fingerprint and core, and uses all cores of the current rayon pool.
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
/// [`Error::OutOfOrder`] if the fingerprints are not strictly ascending, [`Error::BadArgument`] if the
/// distance is above [`Fingerprint::MAX_DISTANCE`] or there are 2^32 fingerprints or more.
pub fn self_join<F: Fingerprint>(fingerprints: &[F], distance: u32) -> Result<Vec<Pair>> {
    if let Some(pair) = fingerprints.windows(2).find(|pair| pair[0] >= pair[1]) {
        return Err(Error::OutOfOrder {
            what: "the fingerprints of a self-join",
            previous: pair[0].to_hex(),
            got: pair[1].to_hex(),
        });
    }
    if u32::try_from(fingerprints.len()).is_err() {
        let message = "a self-join in memory takes at most 4,294,967,295 fingerprints".to_string();
        return Err(Error::BadArgument(message));
    }
    let plan = choose_plan::<F>(fingerprints.len(), distance)?;
    let masks: Vec<F> = plan.tables().iter().map(plan::TablePlan::prefix_mask).collect();
    let mut pairs: Vec<Pair> = (0..masks.len())
        .into_par_iter()
        .flat_map(|table| join_table(fingerprints, &plan, &masks[..=table], distance))
        .collect();
    pairs.par_sort_unstable();
    Ok(pairs)
}

/// The plan without flips that sorts and compares least: sorting a table costs about as much as 50
/// comparisons for each fingerprint.
fn choose_plan<F: Fingerprint>(count: usize, distance: u32) -> Result<Plan<F>> {
    let mut best: Option<(f64, Plan<F>)> = None;
    for name in plan::names::<F>(distance) {
        let plan = Plan::<F>::named(&name, distance)?;
        if plan.tables().iter().any(|table| table.flips > 0) {
            continue;
        }
        let cost: f64 = (plan.tables().iter())
            .map(|table| 50.0 + count as f64 / 2.0 / f64::from(table.prefix_bits).exp2())
            .sum();
        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
            best = Some((cost, plan));
        }
    }
    best.map_or_else(|| Plan::named("scan", distance), |(_, plan)| Ok(plan))
}

/// The pairs that the last of these tables is the first to bring together.
fn join_table<F: Fingerprint>(fingerprints: &[F], plan: &Plan<F>, masks: &[F], distance: u32) -> Vec<Pair> {
    let Some((&mask, earlier)) = masks.split_last() else { return Vec::new() };
    let permutation = &plan.tables()[earlier.len()].permutation;
    let mut permuted: Vec<(F, u32)> =
        fingerprints.iter().enumerate().map(|(i, &x)| (permutation.apply(x), i as u32)).collect();
    permuted.par_sort_unstable();
    let order: Vec<u32> = permuted.into_iter().map(|(_, i)| i).collect();

    let same_prefix =
        |&a: &u32, &b: &u32| (fingerprints[a as usize] ^ fingerprints[b as usize]) & mask == F::ZERO;
    let groups: Vec<&[u32]> = order.chunk_by(same_prefix).filter(|group| group.len() > 1).collect();
    let compare = |(a, rest): (u32, &[u32])| {
        let mut found = Vec::new();
        let first = fingerprints[a as usize];
        for &b in rest {
            let difference = first ^ fingerprints[b as usize];
            let bits = difference.count_ones();
            if bits <= distance && earlier.iter().all(|&mask| difference & mask != F::ZERO) {
                let (a, b) = (a.min(b) as usize, a.max(b) as usize);
                found.push(Pair { a, b, distance: bits });
            }
        }
        found
    };
    // A group that many share is itself split over the cores.
    groups
        .par_iter()
        .flat_map(|group| {
            (0..group.len()).into_par_iter().flat_map_iter(move |i| compare((group[i], &group[i + 1..])))
        })
        .collect()
}

/// The connected components of at least two members; members ascending, clusters by their first member.
///
/// ```
/// let clusters = simstore::join::clusters(6, [(0, 5), (4, 5), (1, 2)]);
/// assert_eq!(clusters, [vec![0, 4, 5], vec![1, 2]]);
/// ```
///
/// # Panics
/// If a pair names a member that is not below `count`.
pub fn clusters(count: usize, pairs: impl IntoIterator<Item = (usize, usize)>) -> Vec<Vec<usize>> {
    // Union-find with path halving; the smaller root wins, so that a root is its cluster's first member.
    let mut parent: Vec<usize> = (0..count).collect();
    fn root(parent: &mut [usize], mut member: usize) -> usize {
        while parent[member] != member {
            parent[member] = parent[parent[member]];
            member = parent[member];
        }
        member
    }
    for (a, b) in pairs {
        let (a, b) = (root(&mut parent, a), root(&mut parent, b));
        parent[a.max(b)] = a.min(b);
    }
    let mut members: Vec<Vec<usize>> = vec![Vec::new(); count];
    for member in 0..count {
        members[root(&mut parent, member)].push(member);
    }
    members.retain(|members| members.len() > 1);
    members
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn plain<F: Fingerprint>(fingerprints: &[F], distance: u32) -> Vec<Pair> {
        let mut pairs = Vec::new();
        for (a, &x) in fingerprints.iter().enumerate() {
            for (b, &y) in fingerprints.iter().enumerate().skip(a + 1) {
                if x.distance(y) <= distance {
                    pairs.push(Pair { a, b, distance: x.distance(y) });
                }
            }
        }
        pairs
    }

    fn check<F: Fingerprint>(values: &[u128], distance: u32) {
        let mut fingerprints: Vec<F> = values.iter().map(|&value| F::from_u128(value)).collect();
        fingerprints.sort_unstable();
        fingerprints.dedup();
        assert_eq!(self_join(&fingerprints, distance).unwrap(), plain(&fingerprints, distance));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn equals_the_plain_loop(
            centres in prop::collection::vec(any::<u128>(), 1..6),
            picks in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(0_u32..128, 0..6)), 0..300),
            distance in 0_u32..=16,
        ) {
            let values: Vec<u128> = picks
                .iter()
                .map(|(centre, bits)| bits.iter().fold(*centre.get(&centres), |value, bit| value ^ 1 << bit))
                .collect();
            check::<u64>(&values, distance);
            check::<u128>(&values, distance * 2);
        }
    }

    #[test]
    fn both_ends_and_one_bit_neighbours() {
        let values: Vec<u128> =
            (0..64).map(|bit| 1 << bit).chain([0, u128::MAX, u128::from(u64::MAX)]).collect();
        for distance in 0..=4 {
            check::<u64>(&values, distance);
            check::<u128>(&values, distance);
        }
        assert!(self_join::<u64>(&[1, 1], 3).is_err());
        assert!(self_join::<u64>(&[], 3).unwrap().is_empty());
        assert!(self_join::<u64>(&[1, 2], 17).is_err());
    }
}
