//! Fingerprints of any width as `u128`, and back.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;
use crate::segment::Match;
use crate::store::{Insertion, StoredPair};

/// A fingerprint of this width, if it is one.
pub(super) fn fit<F: Fingerprint>(value: u128) -> Result<F> {
    let fitted = F::from_u128(value);
    if fitted.to_u128() == value {
        return Ok(fitted);
    }
    Err(Error::BadArgument(format!("fingerprint {value:x} has more than the {} bits of the store", F::BITS)))
}

pub(super) fn fit_all<F: Fingerprint>(values: &[u128]) -> Result<Vec<F>> {
    values.iter().map(|&value| fit(value)).collect()
}

pub(super) fn wide<F: Fingerprint>(found: Match<F>) -> Match<u128> {
    let Match { fingerprint, distance, id } = found;
    Match { fingerprint: fingerprint.to_u128(), distance, id }
}

pub(super) fn all_wide<F: Fingerprint>(found: Vec<Match<F>>) -> Vec<Match<u128>> {
    found.into_iter().map(wide).collect()
}

pub(super) fn wide_pairs<F: Fingerprint>(pairs: Vec<StoredPair<F>>) -> Vec<StoredPair<u128>> {
    let wide =
        |StoredPair { fingerprint, id, name }| StoredPair { fingerprint: F::to_u128(fingerprint), id, name };
    pairs.into_iter().map(wide).collect()
}

pub(super) fn wide_insertion<F: Fingerprint>(insertion: Insertion<F>) -> Insertion<u128> {
    match insertion {
        Insertion::Inserted => Insertion::Inserted,
        Insertion::DuplicateOf(found) => Insertion::DuplicateOf(all_wide(found)),
    }
}
