//! Valid thresholds: similarities and recalls.

use simstore::{Error, Fingerprint, Result};

use crate::similarity::SketchSearch;
use crate::sketch::SKETCHES;

/// Refuses a least similarity that is not above 0, up to 1.
///
/// # Errors
/// [`Error::BadArgument`] for another number.
pub fn check_similarity(similar: f64) -> Result<()> {
    if similar > 0.0 && similar <= 1.0 {
        return Ok(());
    }
    Err(Error::BadArgument("option `similar`: expected a number above 0, up to 1".to_owned()))
}

/// Refuses a recall that is not between 0 and 1.
///
/// # Errors
/// [`Error::BadArgument`] for another number, also for 0 and 1.
pub fn check_recall(recall: f64) -> Result<()> {
    if recall > 0.0 && recall < 1.0 {
        return Ok(());
    }
    Err(Error::BadArgument("option `recall`: expected a number between 0 and 1".to_owned()))
}

/// The error for a similarity that no search finds with this recall. It names the lowest similarity with two decimals that one finds.
pub fn too_low_similarity(similar: f64, recall: f64) -> Error {
    let is_possible = |least: &f64| SketchSearch::new(*least, recall, SKETCHES, u64::MAX_DISTANCE).is_some();
    let least = (1..100).map(|percent| f64::from(percent) / 100.0).find(is_possible);
    Error::BadArgument(format!(
        "a similarity of {similar} is too low for a recall of {recall}: give option `similar` {} or more, or a smaller option `recall`",
        least.unwrap_or(1.0)
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
        let error = too_low_similarity(0.2, 0.95).to_string();
        let named: f64 =
            error.split("give option `similar` ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(SketchSearch::new(named, 0.95, SKETCHES, u64::MAX_DISTANCE).is_some());
        assert!(SketchSearch::new(named - 0.01, 0.95, SKETCHES, u64::MAX_DISTANCE).is_none());
    }
}
