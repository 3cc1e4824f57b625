//! The option `--bits`, the width of fingerprints, and the largest distance of each width.

use std::num::ParseIntError;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use simstore::Fingerprint;
use simstore::any::Width;

use crate::command_error::{CommandError, CommandResult};

/// Returns the parser of `--bits`.
pub(crate) fn width_parser() -> impl TypedValueParser<Value = Width> {
    PossibleValuesParser::new(["64", "128"]).try_map(|bits| {
        bits.parse().map_err(|error: ParseIntError| error.to_string()).and_then(width_from_bits)
    })
}

fn width_from_bits(bits: u32) -> Result<Width, String> {
    Width::from_bits(bits).map_err(|error| error.to_string())
}

/// Returns a usage error if a distance is above the maximum for fingerprints of type `F`: no table plan exists for it.
pub(crate) fn check_distance<F: Fingerprint>(distance: u32) -> CommandResult {
    if distance <= F::MAX_DISTANCE {
        return Ok(());
    }
    Err(CommandError::Usage(format!(
        "distance {distance} is too large: at most {} for {}-bit fingerprints",
        F::MAX_DISTANCE,
        F::BITS
    )))
}
