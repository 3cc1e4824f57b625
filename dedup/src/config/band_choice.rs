//! Chooses the number of sketches to join and the distance: the cheapest search with enough recall.

use simstore::{Fingerprint, Result, join};
use simstore_text::{BANDS, BandSearch, similarity_too_low_error};

/// Time to sort one sketch of a document, in seconds on one core.
const ORDERED: f64 = 100e-9;
/// Time to look at the sketches of a pair, in seconds on one core.
const LOOKED_AT: f64 = 20e-9;

/// A search of sketches, and its expected cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    pub(crate) search: BandSearch,
    /// Pairs of unrelated documents whose sketches are looked at.
    pub(crate) unrelated: f64,
    /// In seconds on one core, without reading.
    pub(crate) seconds: f64,
}

/// More than is asked for is found if that takes no more than so much longer: in seconds on one core, and in seconds a document.
/// Documents of one template differ in the same way, so that many pairs are found or missed together.
const SPENT: f64 = 0.25;
const SPENT_ON_ONE: f64 = 0.25e-6;

/// The cheapest search that finds documents of this similarity with probability `recall` or more, among `documents` documents.
/// A search with a fifth, or two fifths, of the allowed misses is taken instead if it costs little more.
///
/// # Errors
/// [`Error::BadArgument`] if no distance of sketches finds so many.
pub(crate) fn choose(similarity: f64, recall: f64, documents: usize) -> Result<Choice> {
    let least = cheapest(similarity, recall, documents)
        .ok_or_else(|| similarity_too_low_error(similarity, recall))?;
    let most = least.seconds + SPENT + documents as f64 * SPENT_ON_ONE;
    let better = [0.2, 0.4].iter().filter_map(|missed| {
        cheapest(similarity, 1.0 - missed * (1.0 - recall), documents).filter(|choice| choice.seconds <= most)
    });
    Ok(better.into_iter().next().unwrap_or(least))
}

/// The search that finds as much for the least work; `None` if no distance of sketches does.
fn cheapest(similarity: f64, recall: f64, documents: usize) -> Option<Choice> {
    let n = documents as f64;
    let choices = (1..=BANDS).filter_map(|joined| {
        let search = BandSearch::new(similarity, recall, joined, u64::MAX_DISTANCE)?;
        let unrelated = joined as f64 * n * n / 2.0 * random_share(search.band_distance);
        let join = n * ORDERED + join::expected_seconds::<u64>(documents, search.band_distance);
        Some(Choice { search, unrelated, seconds: joined as f64 * join + unrelated * LOOKED_AT })
    });
    choices.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
}

/// The share of pairs of random 64-bit fingerprints that are within a distance.
fn random_share(distance: u32) -> f64 {
    let mut term = 1.0;
    let mut sum = 0.0;
    for i in 0..=distance {
        sum += term;
        term *= f64::from(u64::BITS - i) / f64::from(i + 1);
    }
    sum / 64_f64.exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enough_is_found_whatever_the_size() {
        for similarity in [0.5, 0.7, 0.8, 0.9, 0.99, 1.0] {
            for documents in [0, 1, 1000, 1_000_000, 100_000_000] {
                let choice = choose(similarity, 0.95, documents).unwrap();
                assert!(choice.search.recall(similarity) >= 0.95, "{similarity} {documents}: {choice:?}");
            }
        }
    }

    /// For few documents, recall is higher than requested, since that costs little; for many, the extra time stays within its
    /// limit.
    #[test]
    fn more_is_found_where_that_is_cheap() {
        let recall =
            |similarity, documents| choose(similarity, 0.95, documents).unwrap().search.recall(similarity);
        for similarity in [0.7, 0.8, 0.9] {
            assert!(recall(similarity, 50_000) >= 0.99, "{similarity}");
            let (many, cheapest) = (1_000_000_000, cheapest(similarity, 0.95, 1_000_000_000).unwrap());
            let spent = choose(similarity, 0.95, many).unwrap().seconds - cheapest.seconds;
            assert!(spent <= SPENT + many as f64 * SPENT_ON_ONE, "{similarity}: {spent}");
        }
    }

    #[test]
    fn more_documents_take_more_sketches_and_smaller_distances() {
        let distance = |documents| choose(0.8, 0.95, documents).unwrap().search.band_distance;
        assert!(distance(1000) > distance(10_000_000));
    }

    #[test]
    fn what_cannot_be_found_is_refused() {
        let refused = choose(0.1, 0.95, 1000).unwrap_err().to_string();
        assert!(refused.contains("option `similar` 0."), "{refused}");
    }
}
