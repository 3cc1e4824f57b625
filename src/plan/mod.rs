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

pub use self::catalogue::names;
pub use self::choice::PlanChoice;
pub use self::cost::{Estimate, Medium, Workload, choose, estimate, floor_bits_per_fingerprint, frontier};
pub(crate) use self::cost::{TOGETHER, WIDE};
use crate::error::{Error, Result, excerpt};
use crate::fingerprint::Fingerprint;
use crate::permutation::Permutation;

/// The most tables of a plan.
pub const MAX_TABLES: usize = 64;

/// The most flips of prefix bits that a table keeps a list of; where there are more, probes look at shorter
/// prefixes first.
const MAX_FLIPS: f64 = 16384.0;

/// One table of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePlan<F> {
    /// Brings the prefix bits to the front.
    pub permutation: Permutation<F>,
    /// Number of prefix bits, p. With 0 a probe reads the whole table.
    pub prefix_bits: u32,
    /// How many prefix bits a probe may flip, r.
    pub flips: u32,
}

impl<F: Fingerprint> TablePlan<F> {
    /// The bits of the original fingerprint that make the prefix.
    pub fn prefix_mask(&self) -> F {
        self.permutation.invert(F::prefix_mask(self.prefix_bits))
    }

    /// How many of the first bits of the prefix probes of a table of so many fingerprints flip, up to r of them. A probe
    /// that flips fewer reads all fingerprints that share these bits, some sixteen to thirty, and so finds those that
    /// differ later in the prefix, without a probe for each of its later bits.
    pub fn flipped_bits(&self, fingerprints: u64) -> u32 {
        let spread = fingerprints.max(1).ilog2();
        let mut bits = self.prefix_bits.min(spread.saturating_sub(4));
        while combinations(f64::from(bits), self.flips) > MAX_FLIPS {
            bits -= 1;
        }
        bits
    }
}

/// Number of ways to choose at most `most` of `bits` bits, which need not be a whole number.
fn combinations(bits: f64, most: u32) -> f64 {
    let (mut sum, mut term) = (1.0, 1.0);
    for i in 0..most {
        term *= (bits - f64::from(i)).max(0.0) / f64::from(i + 1);
        sum += term;
    }
    sum
}

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
