//! The width of fingerprints as an option, and the distances that go with it.

use std::num::ParseIntError;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use simstore::Fingerprint;
use simstore::any::Width;

use crate::failure::{Failure, Outcome};

/// Reads an option that is a width.
pub(crate) fn width() -> impl TypedValueParser<Value = Width> {
    PossibleValuesParser::new(["64", "128"])
        .try_map(|bits| bits.parse().map_err(|error: ParseIntError| error.to_string()).and_then(width_of))
}

fn width_of(bits: u32) -> Result<Width, String> {
    Width::of(bits).map_err(|error| error.to_string())
}

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
