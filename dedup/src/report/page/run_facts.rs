//! Facts about a run on the report page: inputs, counts, rules, and the histogram.

use simstore_io::numbers::{format_bytes, format_count, format_count_of};
use simstore_text::BandSearch;

use crate::config::ClusterBy;
use crate::config::band_search_plan;
use crate::config::criterion::Criterion;
use crate::pipeline::similarity_histogram::SIMILARITY_BINS;
use crate::report::page::page_data::HistogramData;
use crate::report::run_results::RunResults;
use crate::report::summary::Summary;

/// Maximum number of input paths on the page.
const MAX_INPUTS: usize = 100;

/// Returns the paths of the inputs. If there are very many, the last item counts the others.
pub(crate) fn inputs(results: &RunResults) -> Vec<String> {
    let paths = results.resolved.inputs.paths();
    let mut inputs: Vec<String> =
        paths.iter().take(MAX_INPUTS).map(|path| path.display().to_string()).collect();
    let others = paths.len() - inputs.len();
    inputs.extend((others > 0).then(|| format_count_of(others as u64, "other input")));
    inputs
}

/// Returns labels and counts, without the time, so that equal runs make equal pages.
pub(crate) fn counts(results: &RunResults, summary: &Summary) -> Vec<(String, String)> {
    let is_by_similarity = matches!(summary.criterion, Criterion::Similarity(_));
    let distinct = if is_by_similarity { "distinct texts" } else { "distinct fingerprints" };
    let share = 100.0 * summary.duplicates as f64 / summary.documents.max(1) as f64;
    let mut counts = vec![
        ("documents read".to_owned(), format_count(summary.documents)),
        ("kept".to_owned(), format_count(summary.kept as u64)),
        ("removed".to_owned(), format!("{} ({share:.1}%)", format_count(summary.duplicates as u64))),
        ("clusters".to_owned(), format_count(summary.clusters as u64)),
        ("documents in clusters".to_owned(), format_count(summary.clustered as u64)),
        (distinct.to_owned(), format_count(summary.fingerprints as u64)),
    ];
    let mut add = |label: &str, count: u64| {
        if count > 0 {
            counts.push((label.to_owned(), format_count(count)));
        }
    };
    add("near-duplicates of stored documents", summary.stored.unwrap_or_default() as u64);
    add("of these, by an estimated similarity", summary.estimated.unwrap_or_default());
    add("added to the store", summary.added.unwrap_or_default());
    add("pairs of texts compared", summary.verified.unwrap_or_default());
    add("of these, below the threshold", summary.rejected.unwrap_or_default());
    add("documents without text", summary.empty);
    if results.resolved.documents().is_some() && !is_by_similarity {
        add("documents too short for a reliable fingerprint", summary.short);
    }
    add("replaced characters", summary.replaced);
    add("invalid documents skipped", summary.malformed);
    add("other names of the same files, skipped", summary.duplicate_paths);
    add("files or links skipped", summary.skipped_files);
    if summary.text_bytes > 0 {
        counts.push(("text".to_owned(), format_bytes(summary.text_bytes)));
    }
    counts
}

/// Returns labels and values: the rule for near-duplicates, the recall, profiles, and the rule for the kept document.
pub(crate) fn rules(results: &RunResults, summary: &Summary) -> Vec<(String, String)> {
    let resolved = &results.resolved;
    let mut rules = Vec::new();
    let mut add = |label: &str, value: String| rules.push((label.to_owned(), value));
    match resolved.criterion {
        Criterion::Similarity(_) if summary.is_exact => {
            add("near-duplicates", "equal texts only".to_owned());
        }
        Criterion::Similarity(least) => {
            add("near-duplicates", format!("Jaccard similarity of at least {least}; every pair is verified"));
            add(
                "recall",
                format!(
                    "a pair exactly at {least} is found with a probability of at least {}; more similar pairs are found more often",
                    resolved.recall
                ),
            );
        }
        Criterion::Distance(distance) => {
            let bits = format_count_of(resolved.width.bits().into(), "bit");
            add("near-duplicates", format!("fingerprints of {bits} that differ in at most {distance} bits"));
            add("recall", "all pairs of near fingerprints are found".to_owned());
        }
    }
    if let Some(least) = resolved.min_verified_similarity {
        add("texts", format!("similarity of at least {least}"));
    }
    if resolved.documents().is_some() {
        add("profile", resolved.profile.to_string());
        let text_profile = resolved.text_profile.as_ref().map(ToString::to_string);
        if let Some(profile) = text_profile.filter(|profile| *profile != resolved.profile.to_string()) {
            add("profile of the compared texts", profile);
        }
    }
    let clusters = match resolved.cluster_by {
        ClusterBy::Stars => "each removed document is near the kept document of its cluster",
        ClusterBy::Components => "chains of near documents form a cluster",
    };
    add("clusters", clusters.to_owned());
    add("kept document of a cluster", resolved.keep.description());
    let stores: Vec<String> =
        results.stores().iter().map(|store| store.path().display().to_string()).collect();
    if !stores.is_empty() {
        add("compared with the stores", stores.join(", "));
    }
    rules
}

/// Returns the histogram of compared pairs and removed documents.
pub(crate) fn histogram(results: &RunResults, removed: Vec<u64>) -> HistogramData {
    match results.resolved.criterion {
        Criterion::Similarity(threshold) => HistogramData {
            unit: "similarity",
            threshold,
            bins: (0..SIMILARITY_BINS).map(|bin| bin as f64 / 100.0).collect(),
            pairs: results.outcome.histogram.clone(),
            found: band_search(results, threshold).map(found_shares),
            removed,
        },
        Criterion::Distance(threshold) => HistogramData {
            unit: "distance",
            threshold: threshold.into(),
            bins: (0..removed.len()).map(|distance| distance as f64).collect(),
            pairs: None,
            found: None,
            removed,
        },
    }
}

/// Returns the search that the run made; `None` if the run compared equal texts only.
fn band_search(results: &RunResults, threshold: f64) -> Option<BandSearch> {
    let plan =
        band_search_plan::plan_band_search(threshold, results.resolved.recall, results.outcome.distinct);
    plan.ok().map(|plan| plan.search)
}

/// Returns a lower bound of the share of pairs that the search finds, for each bin of similarity.
fn found_shares(search: BandSearch) -> Vec<f64> {
    (0..SIMILARITY_BINS)
        .map(|bin| {
            let recall = search.recall(bin as f64 / 100.0).max(0.0);
            (recall * 1e4).floor() / 1e4
        })
        .collect()
}
