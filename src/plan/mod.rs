//! Table plans: the permutations and prefixes of a segment's tables.
//!
//! Each table holds all fingerprints of the segment, sorted by their permuted bits. The *prefix* of a table consists
//! of the first bits after the permutation. A *probe* looks up one prefix in the table: the prefix of the query,
//! with up to r bits flipped. Each table has its own permutation, length of the prefix, and number r.
//!
//! An *error* is a bit that differs between a stored fingerprint and the query. A table finds the fingerprints with
//! at most r errors in its prefix. A plan is *complete* for distance k if for any k errors at least one table finds
//! the fingerprint. An incomplete [`Plan`] cannot be constructed.
//!
//! [`names`] lists the plans for a distance, [`estimate`] returns the cost of one, and [`choose`] returns the
//! default.

mod catalogue;
mod choice;
mod completeness;
mod cost_model;
mod plan_choice;
mod shape;
mod table_plan;

pub use self::catalogue::names;
pub use self::choice::choose;
pub use self::cost_model::{
    CostEstimate, Medium, Workload, estimate, estimate_all, min_bits_per_fingerprint,
};
pub(crate) use self::cost_model::{PROBE_GROUP_LEN, SPLIT_MIN_BLOCKS};
pub use self::plan_choice::PlanChoice;
pub use self::table_plan::TablePlan;
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;

/// Maximum number of tables of a plan.
pub const MAX_TABLES: usize = 64;

/// Plan of a segment's tables: how each table is sorted and searched. Together, the tables find all neighbours
/// within a distance: the plan is *complete* for that distance.
///
/// ```
/// use simstore::plan::Plan;
///
/// let plan = Plan::<u64>::named("cover-11", 3)?;
/// assert_eq!(plan.tables().len(), 11);
/// assert!(plan.tables().iter().all(|table| table.prefix_bits >= 28));
/// // The same tables miss some neighbours at distance 4, so there is no such plan.
/// assert!(Plan::<u64>::named("cover-11", 4).is_err());
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<F> {
    name: String,
    distance: u32,
    tables: Vec<TablePlan<F>>,
}

impl<F: Fingerprint> Plan<F> {
    /// Creates a plan of the given tables, and checks that it is complete for `distance`.
    ///
    /// The permutation of the first table must be the identity, because ids and listings have the order of
    /// that table.
    ///
    /// # Errors
    /// - [`Error::IncompletePlan`] if some set of at most `distance` differing bits is found by no table (the error
    ///   names these bits), or if the check takes too many steps.
    /// - [`Error::BadArgument`] if the distance is above [`Fingerprint::MAX_DISTANCE`], the number of tables
    ///   is 0 or above [`MAX_TABLES`], a prefix is longer than a fingerprint, or the first table is permuted.
    pub fn new(name: &str, distance: u32, tables: Vec<TablePlan<F>>) -> Result<Self> {
        if distance > F::MAX_DISTANCE {
            return Err(Error::BadArgument(format!(
                "distance {distance} is too large: at most {} for {}-bit fingerprints",
                F::MAX_DISTANCE,
                F::BITS
            )));
        }
        if tables.is_empty() || tables.len() > MAX_TABLES {
            return Err(Error::BadArgument(format!(
                "plan `{}` has {} tables; a plan has 1 to {MAX_TABLES}",
                excerpt(name),
                tables.len()
            )));
        }
        if let Some(table) = tables.iter().find(|table| table.prefix_bits > F::BITS) {
            return Err(Error::BadArgument(format!(
                "plan `{}` has a prefix of {} bits; a fingerprint has {}",
                excerpt(name),
                table.prefix_bits,
                F::BITS
            )));
        }
        if !tables[0].permutation.is_identity() {
            return Err(Error::BadArgument(format!(
                "plan `{}`: the first table must not be permuted",
                excerpt(name)
            )));
        }
        completeness::check(name, distance, &tables)?;
        Ok(Plan { name: name.to_string(), distance, tables })
    }

    /// Name of the plan, such as `cover-11`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Distance, in bits, within which the plan finds all neighbours.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// The tables of the plan. There is at least one.
    pub fn tables(&self) -> &[TablePlan<F>] {
        &self.tables
    }
}
