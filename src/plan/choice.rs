//! Choice of the default plan of a segment: by the estimates of the cost model, a fast plan whose tables are small.

use super::Plan;
use super::cost_model::{CostEstimate, Workload, estimate_all};
use crate::error::Result;
use crate::fingerprint::Fingerprint;

/// Number of bytes that the price of a plan adds to the size of its tables. The sizes of much smaller tables hardly
/// change the price.
const BASE_BYTES: f64 = (16 << 20) as f64;
/// Additional bytes that the tables of the chosen plan may take, compared with the plan of the lowest price.
const EXTRA_BYTES: f64 = (1 << 20) as f64;
/// Like [`EXTRA_BYTES`], but as a share of the size of the tables. The larger of the two limits counts.
const EXTRA_SHARE: f64 = 0.1;

/// Returns the estimated size of all tables of a plan, in bytes.
fn table_bytes(estimate: &CostEstimate, workload: &Workload) -> f64 {
    estimate.bytes_per_fingerprint * workload.fingerprints as f64
}

/// Returns the price of a plan, as defined for [`choose`].
fn price(estimate: &CostEstimate, workload: &Workload) -> f64 {
    estimate.nanoseconds * (table_bytes(estimate, workload) + BASE_BYTES).powi(3)
}

/// Chooses the default plan of a segment, by the estimated time t of a query and the estimated size s of all tables.
///
/// The *price* of a plan is t x (s + 16 MiB)^3. The plan with the lowest price sets a limit of size: 1 MiB more than its
/// tables, or a tenth more. The choice is the fastest plan within this limit.
///
/// So a small set gets a fast plan, because the sizes of tables of a few MiB hardly change the price. A large set gets
/// small tables: a plan with tables of twice the size is chosen only if a query takes about an eighth of the time or
/// less.
///
/// ```
/// use simstore::Codec;
/// use simstore::plan::{Medium, Workload, choose};
///
/// let tables = |fingerprints, distance| {
///     let codec = Codec::FirstDifference;
///     let workload = Workload { fingerprints, codec, block_size: None, span: None, medium: Medium::Memory };
///     choose::<u64>(distance, &workload).map(|plan| plan.tables().len())
/// };
/// assert_eq!(tables(100_000, 3)?, 4);
/// assert_eq!(tables(100_000_000, 3)?, 2);
/// # Ok::<(), simstore::Error>(())
/// ```
///
/// # Errors
/// The errors of [`estimate_all`].
pub fn choose<F: Fingerprint>(distance: u32, workload: &Workload) -> Result<Plan<F>> {
    if distance > F::MAX_DISTANCE {
        return Plan::named("scan", distance);
    }
    let plans = estimate_all::<F>(distance, workload)?;
    let prices =
        plans.iter().map(|(_, estimate)| (price(estimate, workload), table_bytes(estimate, workload)));
    let (_, bytes) = prices.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap_or_default();
    let limit = (bytes + EXTRA_BYTES).max(bytes * (1.0 + EXTRA_SHARE));
    let allowed = plans.into_iter().filter(|(_, estimate)| table_bytes(estimate, workload) <= limit);
    let fastest = allowed.min_by(|a, b| a.1.nanoseconds.total_cmp(&b.1.nanoseconds));
    fastest.map_or_else(|| Plan::named("scan", distance), |(plan, _)| Ok(plan))
}

#[cfg(test)]
mod tests {
    use super::super::{Medium, estimate};
    use super::*;
    use crate::codec::Codec;

    fn workload(fingerprints: u64) -> Workload {
        Workload {
            fingerprints,
            codec: Codec::default(),
            block_size: None,
            span: None,
            medium: Medium::Memory,
        }
    }

    #[test]
    fn every_size_and_distance_has_a_choice() {
        for log in [0, 1, 10, 20, 27, 33, 40] {
            for distance in 0..=16 {
                choose::<u64>(distance, &workload(1 << log)).unwrap();
            }
            for distance in [0, 3, 17, 32] {
                choose::<u128>(distance, &workload(1 << log)).unwrap();
            }
        }
        assert!(choose::<u64>(17, &workload(5)).is_err());
    }

    /// Calls `check` with the estimate of the chosen plan, the estimates of all plans, and the workload: for many numbers
    /// of fingerprints and distances, and for all codecs.
    fn for_each_choice<F: Fingerprint>(check: impl Fn(&CostEstimate, &[CostEstimate], &Workload)) {
        for fingerprints in (0..=9).flat_map(|log| [10_u64.pow(log), 3 * 10_u64.pow(log)]) {
            for codec in Codec::ALL {
                let workload = Workload { codec, ..workload(fingerprints) };
                for distance in [0, 1, 2, 3, 4, 6, 8, 10, 12, 16] {
                    let chosen = estimate(&choose::<F>(distance, &workload).unwrap(), &workload);
                    let plans = estimate_all::<F>(distance, &workload).unwrap();
                    let all: Vec<CostEstimate> = plans.into_iter().map(|(_, estimate)| estimate).collect();
                    check(&chosen, &all, &workload);
                }
            }
        }
    }

    fn for_each_width(check: impl Fn(&CostEstimate, &[CostEstimate], &Workload)) {
        for_each_choice::<u64>(&check);
        for_each_choice::<u128>(&check);
    }

    #[test]
    fn no_plan_of_the_same_size_is_faster() {
        for_each_width(|chosen, all, workload| {
            for other in
                all.iter().filter(|other| other.bytes_per_fingerprint <= chosen.bytes_per_fingerprint)
            {
                assert!(chosen.nanoseconds <= other.nanoseconds, "{workload:?}: {chosen:?} {other:?}");
            }
        });
    }

    #[test]
    fn no_plan_with_one_mebibyte_or_a_tenth_more_than_the_cheapest_is_faster() {
        for_each_width(|chosen, all, workload| {
            let mebibytes = |plan: &CostEstimate| {
                plan.bytes_per_fingerprint * workload.fingerprints as f64 / f64::from(1 << 20)
            };
            let price = |plan: &CostEstimate| plan.nanoseconds * (mebibytes(plan) + 16.0).powi(3);
            let cheapest = all.iter().min_by(|a, b| price(a).total_cmp(&price(b))).unwrap();
            let limit = (mebibytes(cheapest) * 1.1).max(mebibytes(cheapest) + 1.0);
            for other in all.iter().filter(|other| mebibytes(other) < limit * 0.999_999) {
                assert!(chosen.nanoseconds <= other.nanoseconds, "{workload:?}: {chosen:?} {other:?}");
            }
            assert!(mebibytes(chosen) < limit * 1.000_001, "{workload:?}: {chosen:?} {cheapest:?}");
        });
    }

    #[test]
    fn large_sets_get_twice_the_tables_only_for_an_eighth_of_the_time() {
        let check = |chosen: &CostEstimate, all: &[CostEstimate], workload: &Workload| {
            if workload.fingerprints < 1_000_000_000 {
                return;
            }
            for other in all.iter().filter(|other| other.bytes_per_fingerprint < chosen.bytes_per_fingerprint)
            {
                let size = chosen.bytes_per_fingerprint / other.bytes_per_fingerprint;
                // The choice may take a tenth more than the plan with the lowest price.
                let time = other.nanoseconds / chosen.nanoseconds;
                assert!(time > (size / 1.1).powi(3) * 0.98, "{workload:?}: {chosen:?} {other:?}");
            }
        };
        for_each_width(check);
    }

    #[test]
    fn small_sets_with_large_distances_get_several_tables() {
        let tables = |fingerprints, distance, codec| {
            choose::<u64>(distance, &Workload { codec, ..workload(fingerprints) }).unwrap().tables().len()
        };
        for codec in [Codec::FirstDifference, Codec::Gap, Codec::EliasFano] {
            for (fingerprints, distance) in [(155_541, 8), (186_336, 6)] {
                assert!((4..=5).contains(&tables(fingerprints, distance, codec)), "{codec} {distance}");
            }
        }
    }

    #[test]
    fn few_fingerprints_at_a_large_distance_are_scanned() {
        assert_eq!(choose::<u64>(16, &workload(1000)).unwrap().name(), "scan");
        assert_ne!(choose::<u64>(3, &workload(100_000_000)).unwrap().name(), "scan");
    }

    #[test]
    fn seeks_ask_for_fewer_reads() {
        let reads = |medium| {
            let workload = Workload { medium, ..workload(8_000_000_000) };
            let plan = choose::<u64>(3, &workload).unwrap();
            estimate(&plan, &workload).reads
        };
        assert!(reads(Medium::Disk) <= reads(Medium::Memory));
    }
}
