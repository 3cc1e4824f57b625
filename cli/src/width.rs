//! The width of fingerprints, and the choice of code by it.

use std::path::Path;

use clap::ValueEnum;
use simstore::Fingerprint;

use crate::failure::{Failure, Outcome};

/// Width of fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bits {
    #[value(name = "64")]
    Narrow,
    #[value(name = "128")]
    Wide,
}

impl Bits {
    /// The width, in bits.
    pub(crate) fn count(self) -> u32 {
        match self {
            Bits::Narrow => u64::BITS,
            Bits::Wide => u128::BITS,
        }
    }

    /// The width of the fingerprints in a store.
    pub(crate) fn of_store(store: &Path) -> Outcome<Bits> {
        Ok(if simstore::store::stored_bits(store)? == u128::BITS { Bits::Wide } else { Bits::Narrow })
    }
}

/// Calls a generic function for the fingerprints of a width.
macro_rules! by_width {
    ($bits:expr, $run:ident($($argument:expr),*)) => {
        match $bits {
            $crate::width::Bits::Narrow => $run::<u64>($($argument),*),
            $crate::width::Bits::Wide => $run::<u128>($($argument),*),
        }
    };
}
pub(crate) use by_width;

/// Refuses a distance that no plan can be made for.
pub(crate) fn check_distance<F: Fingerprint>(distance: u32) -> Outcome {
    if distance <= F::MAX_DISTANCE {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "distance {distance} is too large: at most {} for {}-bit fingerprints",
        F::MAX_DISTANCE,
        F::BITS
    )))
}
