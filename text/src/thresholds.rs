//! Validation of the options `similar` (similarity threshold) and `recall`.

use simstore::{Error, Fingerprint, Result};

use crate::band_search::BandSearch;
use crate::minhash::BANDS;

/// Checks that a similarity threshold is above 0 and at most 1.
///
/// # Errors
/// [`Error::BadArgument`] if the threshold is outside this range.
pub fn check_similarity(similar: f64) -> Result<()> {
    if similar > 0.0 && similar <= 1.0 {
        return Ok(());
    }
    Err(Error::BadArgument("option `similar`: expected a number above 0, up to 1".to_owned()))
}

/// Checks that a recall is above 0 and below 1.
///
/// # Errors
/// [`Error::BadArgument`] if the recall is outside this range.
pub fn check_recall(recall: f64) -> Result<()> {
    if recall > 0.0 && recall < 1.0 {
        return Ok(());
    }
    Err(Error::BadArgument("option `recall`: expected a number between 0 and 1".to_owned()))
}

/// Returns the error for a similarity threshold `similar` that is too low: no search for signatures with this similarity reaches
/// the recall `recall`. The message suggests the lowest possible threshold, with two decimals.
pub fn similarity_too_low_error(similar: f64, recall: f64) -> Error {
    let is_possible =
        |similarity: &f64| BandSearch::new(*similarity, recall, BANDS, u64::MAX_DISTANCE).is_some();
    let similarity = (1..100).map(|percent| f64::from(percent) / 100.0).find(is_possible);
    Error::BadArgument(format!(
        "a similarity of {similar} is too low for a recall of {recall}: give option `similar` {} or more, or a smaller option `recall`",
        similarity.unwrap_or(1.0)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_out_of_range_are_refused() {
        for similar in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
            assert!(check_similarity(similar).is_err(), "{similar}");
        }
        assert!(check_similarity(1.0).is_ok() && check_similarity(1e-9).is_ok());
        for recall in [0.0, 1.0, -0.1, 1.1, f64::NAN] {
            assert!(check_recall(recall).is_err(), "{recall}");
        }
        assert!(check_recall(0.95).is_ok());
    }

    #[test]
    fn the_lowest_possible_similarity_is_named() {
        let error = similarity_too_low_error(0.2, 0.95).to_string();
        let named: f64 =
            error.split("give option `similar` ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(BandSearch::new(named, 0.95, BANDS, u64::MAX_DISTANCE).is_some());
        assert!(BandSearch::new(named - 0.01, 0.95, BANDS, u64::MAX_DISTANCE).is_none());
    }
}
