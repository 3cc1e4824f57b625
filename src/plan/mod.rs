//! Table plans: which tables a segment keeps, so that no neighbour within the distance is missed.
//!
//! A plan is *complete* for distance k when every way of spreading at most k bit errors over the
//! fingerprint leaves some table whose prefix holds at most as many errors as its probes flip. A [`Plan`]
//! that is not complete cannot be made.

mod catalogue;
mod choice;
mod complete;
mod cost;
mod shape;
mod table_plan;

pub use self::catalogue::names;
pub use self::choice::PlanChoice;
pub use self::cost::{Estimate, Medium, Workload, choose, estimate, floor_bits_per_fingerprint, frontier};
pub(crate) use self::cost::{TOGETHER, WIDE};
pub use self::table_plan::TablePlan;
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;

/// The most tables of a plan.
pub const MAX_TABLES: usize = 64;

/// The tables of a segment, complete for a distance.
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
    /// A plan of these tables, if it is complete for `distance`.
    ///
    /// # Errors
    /// [`Error::IncompletePlan`] with an error pattern that no table finds; [`Error::BadArgument`] if the
    /// distance is above [`Fingerprint::MAX_DISTANCE`], there are no tables or more than [`MAX_TABLES`], a
    /// prefix is longer than a fingerprint, or the first table's permutation is not the identity (the order
    /// of the first table is the order of the ids and of all listings).
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
        complete::check(name, distance, &tables)?;
        Ok(Plan { name: name.to_string(), distance, tables })
    }

    /// The plan's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The distance that the plan is complete for, in bits.
    pub fn distance(&self) -> u32 {
        self.distance
    }

    /// The tables, at least one.
    pub fn tables(&self) -> &[TablePlan<F>] {
        &self.tables
    }
}
