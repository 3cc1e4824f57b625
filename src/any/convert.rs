//! Conversion of `u128` to fingerprints, and of fingerprints in results to `u128`.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::segment::Match;
use crate::store::{Insertion, StoredPair};

/// Converts a `u128` to a fingerprint of the store's width. Fails if the value has more bits.
pub(super) fn to_width<F: Fingerprint>(value: u128) -> Result<F> {
    let fitted = F::from_u128(value);
    if fitted.to_u128() == value {
        return Ok(fitted);
    }
    Err(Error::BadArgument(format!("fingerprint {value:x} has more than the {} bits of the store", F::BITS)))
}

fn widen_all<F: Fingerprint>(found: Vec<Match<F>>) -> Vec<Match<u128>> {
    let wide =
        |Match { fingerprint, distance, id }| Match { fingerprint: F::to_u128(fingerprint), distance, id };
    found.into_iter().map(wide).collect()
}

pub(super) fn widen_matches<F: Fingerprint>(found: Result<Vec<Match<F>>>) -> Result<Vec<Match<u128>>> {
    found.map(widen_all)
}

pub(super) fn widen_pairs<F: Fingerprint>(
    pairs: Result<Vec<StoredPair<F>>>,
) -> Result<Vec<StoredPair<u128>>> {
    let wide =
        |StoredPair { fingerprint, id, name }| StoredPair { fingerprint: F::to_u128(fingerprint), id, name };
    Ok(pairs?.into_iter().map(wide).collect())
}

pub(super) fn widen_insertion<F: Fingerprint>(insertion: Result<Insertion<F>>) -> Result<Insertion<u128>> {
    Ok(match insertion? {
        Insertion::Inserted => Insertion::Inserted,
        Insertion::DuplicateOf(found) => Insertion::DuplicateOf(widen_all(found)),
    })
}
