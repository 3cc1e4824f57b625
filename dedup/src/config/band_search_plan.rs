//! Plans the search for similar MinHash signatures, which consist of bands of 64 bits. A plan says how many bands
//! are searched for near values, and within which distance. Of the plans with enough recall, the cheapest is chosen.

use simstore::{Fingerprint, Result, join};
use simstore_text::{BANDS, BandSearch, similarity_too_low_error};

/// Time per document to sort the values of one band, in seconds on one core.
const BAND_SORT_SECONDS: f64 = 100e-9;
/// Time to compare the signatures of a pair, in seconds on one core.
const SIGNATURE_CHECK_SECONDS: f64 = 20e-9;

/// Plan for a search of similar signatures by their bands, with the expected cost of the search.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BandSearchPlan {
    pub(crate) search: BandSearch,
    /// Expected number of pairs of unrelated documents whose signatures are compared.
    pub(crate) unrelated_pairs: f64,
    /// Expected time in seconds on one core, without the time for reading documents.
    pub(crate) seconds: f64,
}

/// Extra time that a plan with a higher recall than requested may always take, in seconds on one core.
/// [`EXTRA_SECONDS_PER_DOCUMENT`] is added to it. A higher recall is worth some time: pairs of documents made from one
/// template have mostly the same common features, so a search that misses one of these pairs may miss all of them.
const EXTRA_SECONDS_MAX: f64 = 0.25;
/// Extra time per document that a plan with a higher recall may take in addition to [`EXTRA_SECONDS_MAX`], in
/// seconds on one core.
const EXTRA_SECONDS_PER_DOCUMENT: f64 = 0.25e-6;

/// Returns the cheapest plan that finds a pair of this similarity with a probability of at least `recall`, among
/// `documents` documents. If a plan costs little more, but misses such a pair with at most 20% of the probability
/// `1 - recall`, returns this plan instead. If there is no such plan, tries the same with 40%.
///
/// # Errors
/// [`BadArgument`](simstore::Error::BadArgument) if no plan has this recall.
pub(crate) fn plan_band_search(similarity: f64, recall: f64, documents: usize) -> Result<BandSearchPlan> {
    let least = cheapest_plan(similarity, recall, documents)
        .ok_or_else(|| similarity_too_low_error(similarity, recall))?;
    let most = least.seconds + EXTRA_SECONDS_MAX + documents as f64 * EXTRA_SECONDS_PER_DOCUMENT;
    let better = [0.2, 0.4].iter().filter_map(|missed| {
        cheapest_plan(similarity, 1.0 - missed * (1.0 - recall), documents)
            .filter(|choice| choice.seconds <= most)
    });
    Ok(better.into_iter().next().unwrap_or(least))
}

/// Returns the cheapest plan that has at least this recall; `None` if there is no such plan.
fn cheapest_plan(similarity: f64, recall: f64, documents: usize) -> Option<BandSearchPlan> {
    let n = documents as f64;
    let choices = (1..=BANDS).filter_map(|joined| {
        let search = BandSearch::new(similarity, recall, joined, u64::MAX_DISTANCE)?;
        let unrelated_pairs = joined as f64 * n * n / 2.0 * random_share(search.band_distance);
        let join = n * BAND_SORT_SECONDS + join::expected_seconds::<u64>(documents, search.band_distance);
        Some(BandSearchPlan {
            search,
            unrelated_pairs,
            seconds: joined as f64 * join + unrelated_pairs * SIGNATURE_CHECK_SECONDS,
        })
    });
    choices.min_by(|a, b| a.seconds.total_cmp(&b.seconds))
}

/// Probability that two random 64-bit fingerprints differ in at most `distance` bits.
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
                let choice = plan_band_search(similarity, 0.95, documents).unwrap();
                assert!(choice.search.recall(similarity) >= 0.95, "{similarity} {documents}: {choice:?}");
            }
        }
    }

    /// For few documents, the plan has a higher recall than requested, because that costs little. For many
    /// documents, the extra time stays within its limit.
    #[test]
    fn more_is_found_where_that_is_cheap() {
        let recall = |similarity, documents| {
            plan_band_search(similarity, 0.95, documents).unwrap().search.recall(similarity)
        };
        for similarity in [0.7, 0.8, 0.9] {
            assert!(recall(similarity, 50_000) >= 0.99, "{similarity}");
            let (many, cheapest_plan) =
                (1_000_000_000, cheapest_plan(similarity, 0.95, 1_000_000_000).unwrap());
            let spent = plan_band_search(similarity, 0.95, many).unwrap().seconds - cheapest_plan.seconds;
            assert!(
                spent <= EXTRA_SECONDS_MAX + many as f64 * EXTRA_SECONDS_PER_DOCUMENT,
                "{similarity}: {spent}"
            );
        }
    }

    #[test]
    fn more_documents_need_more_bands_and_smaller_distances() {
        let distance = |documents| plan_band_search(0.8, 0.95, documents).unwrap().search.band_distance;
        assert!(distance(1000) > distance(10_000_000));
    }

    #[test]
    fn similarities_that_no_search_reaches_are_refused() {
        let refused = plan_band_search(0.1, 0.95, 1000).unwrap_err().to_string();
        assert!(refused.contains("option `similar` 0."), "{refused}");
    }
}
