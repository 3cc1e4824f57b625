//! The report page: one HTML file that shows a run to people. It has the counts, the similarities of all compared pairs, the
//! clusters, and removed documents beside the kept ones, word by word.
//!
//! The page needs no network and no other file. It contains its data as JSON (`page_data`); a script shows the data.
//! Names and texts are shown as text, never as markup.

pub(crate) mod cluster_choice;
pub(crate) mod cluster_rows;
pub(crate) mod comparisons;
pub(crate) mod html;
pub(crate) mod page_data;
pub(crate) mod run_facts;
pub(crate) mod warning_recorder;

use simstore::Result;
use simstore_corpus::Observer;

use crate::report::page::cluster_choice::ClusterChoice;
use crate::report::page::cluster_rows::ClusterRows;
use crate::report::page::page_data::PageData;
use crate::report::run_results::RunResults;
use crate::report::summary::Summary;

/// Returns the report page of a run as HTML. For the texts of the shown documents, reads the inputs again.
pub(crate) fn report_page(
    results: &RunResults,
    summary: &Summary,
    warnings: &[String],
    observer: &dyn Observer,
) -> Result<String> {
    let choice = ClusterChoice::new(results)?;
    let mut rows = ClusterRows::read(results, &choice)?;
    let comparisons = comparisons::compare_documents(results, &mut rows, observer)?;
    html::to_html(&PageData {
        version: env!("CARGO_PKG_VERSION"),
        inputs: run_facts::inputs(results),
        counts: run_facts::counts(results, summary),
        rules: run_facts::rules(results, summary),
        warnings: warnings.to_vec(),
        histogram: run_facts::histogram(results, rows.removed_counts),
        cluster_count: results.outcome.clusters.count,
        has_kept: !results.keeps_none(),
        has_texts: results.resolved.documents().is_some(),
        clusters: rows.rows,
        comparisons,
    })
}
