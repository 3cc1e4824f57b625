//! The summary of a run: counts and sizes. The library, the command line and the Python package return the same numbers.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use rayon::prelude::*;
use serde::Serialize;
use simstore::Result;
use simstore_corpus::InputCounts;
use simstore_corpus::spill::Rows;

use crate::config::criterion::Criterion;
use crate::pipeline::boilerplate::Boilerplate;
use crate::pipeline::clusters::StoredAssignmentRow;
use crate::report::run_results::RunResults;
use crate::rows::{PairScore, similarity_from_score};

/// Number of clusters in [`Summary::largest`].
const LARGEST_CLUSTER_COUNT: usize = 3;

/// Counts and sizes of a run. The `Display` form is a text for users, which names options as the library does. The
/// serialized form is the JSON object that the command line and the Python package return.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Number of documents or fingerprints read.
    pub documents: u64,
    /// Number of distinct fingerprints; if documents are compared by similarity, number of distinct texts.
    pub fingerprints: usize,
    /// Number of clusters. A cluster has at least two documents, or one document and a stored document.
    pub clusters: usize,
    /// Number of documents in clusters.
    pub clustered: usize,
    /// Number of removed documents: all documents in clusters except the kept representatives.
    pub duplicates: usize,
    /// Number of documents in clusters whose representative is a stored document; `None` without reference
    /// stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<usize>,
    /// Number of documents counted in [`stored`](Self::stored) with an estimated similarity to the representative. The
    /// similarity is estimated if the store keeps no texts. `None` if documents are compared by distance, or without
    /// reference stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<u64>,
    /// Largest standard error of the estimated similarities, which [`estimated`](Self::estimated) counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Number of documents added to the store; `None` if the configuration adds none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Number of kept documents.
    pub kept: usize,
    /// The three largest clusters, largest first.
    pub largest: Vec<ClusterSummary>,
    /// Number of candidate pairs whose texts were compared; `None` if texts are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "compared")]
    pub verified: Option<u64>,
    /// Number of pairs counted in [`verified`](Self::verified) with a similarity below the threshold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<u64>,
    /// Result of a check whether duplicates are similar only because of boilerplate (text that nearly all
    /// documents contain). `None` if documents are compared by distance, and for fewer than 20 documents or 5
    /// duplicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<Boilerplate>,
    /// Number of documents whose id is also the id of another document.
    #[serde(rename = "same_id")]
    pub repeated_ids: usize,
    /// Number of documents without text. They are never duplicates.
    pub empty: u64,
    /// Number of documents with fewer than 32 features. The fingerprints of such short documents are unreliable.
    pub short: u64,
    /// Number of replacement characters in the texts. They replace bytes that are invalid in the encoding of
    /// the input.
    pub replaced: u64,
    /// Number of malformed documents that were skipped.
    #[serde(rename = "bad")]
    pub malformed: u64,
    /// Number of paths that lead to a file or folder that was already read under another path, and were
    /// skipped: links, hard links, and paths given twice.
    #[serde(rename = "other_names")]
    pub duplicate_paths: u64,
    /// Number of files, links, pipes and devices that were skipped for reasons other than a duplicate path.
    pub skipped_files: u64,
    /// Size of all texts in bytes.
    pub text_bytes: u64,
    /// Size of the temporary files; `None` if the documents fit in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<SpillSummary>,
    /// Seconds from the start of the run until its outputs were written, rounded to three decimals.
    pub seconds: f64,
    /// Threshold for near-duplicates.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Path of the first reference store, which documents are added to. `None` unless the run has several stores.
    #[serde(skip)]
    pub(crate) first_of_stores: Option<String>,
    #[serde(skip)]
    pub(crate) keeps_none: bool,
    /// Whether only equal texts are duplicates.
    #[serde(skip)]
    pub(crate) is_exact: bool,
}

/// Sizes of temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SpillSummary {
    /// Total bytes written.
    #[serde(rename = "written")]
    pub written_bytes: u64,
    /// Largest total size of the temporary files at any time, in bytes.
    #[serde(rename = "most")]
    pub peak_bytes: u64,
}

/// Size and spread of one of the largest clusters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ClusterSummary {
    /// Number of documents in the cluster.
    pub size: usize,
    /// Largest distance of two documents of the cluster, in bits. `None` if documents are compared by
    /// similarity, or if the cluster has too many distinct fingerprints to compare all pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "farthest")]
    pub max_distance: Option<u32>,
    /// Smallest similarity of a member to the representative; `None` if texts are not compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "least_similar")]
    pub min_similarity: Option<f64>,
    /// Whether similarities to the representative are estimated, because the representative is in a store that
    /// keeps no texts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "estimated")]
    pub is_estimated: bool,
}

impl Summary {
    pub(crate) fn new(results: &RunResults, counts: &InputCounts) -> Result<Summary> {
        let outcome = &results.outcome;
        let clusters = &outcome.clusters;
        let is_by_distance = matches!(results.resolved.criterion, Criterion::Distance(_));
        let duplicates = clusters.removed(results.keeps_none());
        let estimated = match !is_by_distance && results.has_stores() {
            false => None,
            true => Some(count_estimates(&outcome.stored.assignments)?),
        };
        Ok(Summary {
            fingerprints: outcome.distinct,
            clusters: clusters.count,
            clustered: clusters.by_cluster.len(),
            duplicates,
            stored: results.has_stores().then_some(clusters.in_stored),
            estimated: estimated.map(|(documents, _)| documents),
            standard_error: estimated.map(|(_, standard_error)| standard_error),
            added: results.addition.is_some().then(|| results.added_count()),
            kept: results.corpus.len() - duplicates,
            largest: largest_clusters(results, is_by_distance)?,
            verified: outcome.compared.map(|(compared, _)| compared),
            rejected: outcome.compared.map(|(_, unlike)| unlike),
            boilerplate: outcome.boilerplate,
            repeated_ids: results.corpus.repeated_ids,
            spilled: results.corpus.spilled().map(|spilled| {
                let temporary = &spilled.workspace.temporary;
                SpillSummary {
                    written_bytes: temporary.counts.written(),
                    peak_bytes: temporary.counts.peak_on_disk(),
                }
            }),
            first_of_stores: results.store_path(0).map(|store| store.display().to_string()),
            keeps_none: results.keeps_none(),
            is_exact: results.resolved.is_exact,
            ..Summary::for_repeated_run(counts, results.resolved.criterion)
        })
    }

    /// Returns the summary of a run that only read documents, because an identical run has already added them.
    pub(crate) fn for_repeated_run(counts: &InputCounts, criterion: Criterion) -> Summary {
        Summary {
            documents: counts.read,
            fingerprints: 0,
            clusters: 0,
            clustered: 0,
            duplicates: 0,
            stored: None,
            estimated: None,
            standard_error: None,
            added: Some(0),
            kept: 0,
            largest: Vec::new(),
            verified: None,
            rejected: None,
            boilerplate: None,
            repeated_ids: 0,
            empty: counts.empty,
            short: counts.short,
            replaced: counts.replacements,
            malformed: counts.malformed,
            duplicate_paths: counts.duplicate_paths,
            skipped_files: counts.skipped_files,
            text_bytes: counts.text_bytes,
            spilled: None,
            seconds: 0.0,
            criterion,
            first_of_stores: None,
            keeps_none: false,
            is_exact: false,
        }
    }

    pub(crate) fn set_seconds(&mut self, seconds: f64) {
        self.seconds = (seconds * 1000.0).round() / 1000.0;
    }
}

/// Returns the number of documents whose similarity to their stored representative is estimated, and the
/// largest standard error of these estimates.
fn count_estimates(assignments: &Rows<StoredAssignmentRow>) -> Result<(u64, f64)> {
    let (mut count, mut greatest) = (0, 0.0_f64);
    for row in assignments.iter()? {
        let (_, (_, (_, error))) = row?;
        if error > 0 {
            count += 1;
            greatest = greatest.max(similarity_from_score(error));
        }
    }
    Ok((count, greatest))
}

/// Returns the largest clusters, largest first. Among clusters of equal size, earlier ones come first.
fn largest_clusters(results: &RunResults, is_by_distance: bool) -> Result<Vec<ClusterSummary>> {
    let members = &results.outcome.clusters.by_cluster;
    let (mut largest, mut cursor): (Vec<(usize, u32)>, _) = (Vec::new(), members.cursor()?);
    while let Some(first) = cursor.next_row()? {
        let mut size = 1;
        while cursor.next_if(|member| member.cluster == first.cluster)?.is_some() {
            size += 1;
        }
        largest.push((size, first.cluster));
        largest.sort_by_key(|&(size, cluster)| (Reverse(size), cluster));
        largest.truncate(LARGEST_CLUSTER_COUNT);
    }
    let mut found: Vec<(u32, ClusterSpread)> = Vec::new();
    let mut documents = results.corpus.cursor();
    for member in results.outcome.clusters.by_document.iter()? {
        let member = member?;
        if !largest.iter().any(|&(_, cluster)| cluster == member.cluster) {
            continue;
        }
        let at = found.iter().position(|&(cluster, _)| cluster == member.cluster).unwrap_or_else(|| {
            found.push((member.cluster, ClusterSpread::default()));
            found.len() - 1
        });
        let near = &mut found[at].1;
        near.is_estimated |= !is_by_distance && member.measure.1 > 0;
        near.least = Some(near.least.map_or(member.measure.0, |least| least.min(member.measure.0)));
        if is_by_distance && near.distinct.len() <= MAX_COMPARED_FINGERPRINTS {
            let fingerprint = documents.get(member.document as usize)?.fingerprint();
            near.distinct.insert(fingerprint.unwrap_or_default());
        }
    }
    let is_compared = results.outcome.compared.is_some();
    let largest = largest.into_iter().map(|(size, cluster)| {
        let near = found.iter().find(|&&(other, _)| other == cluster).map(|(_, near)| near);
        ClusterSummary {
            size,
            max_distance: near.filter(|_| is_by_distance).and_then(ClusterSpread::farthest),
            min_similarity: near
                .filter(|_| is_compared)
                .and_then(|near| near.least)
                .map(similarity_from_score),
            is_estimated: near.is_some_and(|near| near.is_estimated),
        }
    });
    Ok(largest.collect())
}

/// Largest cluster, in distinct fingerprints, whose pairs are all compared to find the largest distance. Comparing all
/// pairs of so many fingerprints takes some tenths of a second.
const MAX_COMPARED_FINGERPRINTS: usize = 1 << 15;

/// Collects the similarities and fingerprints of the documents of a cluster, to measure how far apart they are.
#[derive(Default)]
struct ClusterSpread {
    least: Option<PairScore>,
    /// Whether at least one similarity is an estimate.
    is_estimated: bool,
    /// Distinct fingerprints. If there are more than [`MAX_COMPARED_FINGERPRINTS`], the rest is left out.
    distinct: BTreeSet<u128>,
}

impl ClusterSpread {
    /// Returns the largest distance of two fingerprints; `None` for too many fingerprints to compare all pairs.
    fn farthest(&self) -> Option<u32> {
        if self.distinct.len() > MAX_COMPARED_FINGERPRINTS {
            return None;
        }
        let distinct: Vec<u128> = self.distinct.iter().copied().collect();
        let farthest = |(i, a): (usize, &u128)| distinct[i + 1..].iter().map(|b| (a ^ b).count_ones()).max();
        distinct.par_iter().enumerate().filter_map(farthest).max().or(Some(0))
    }
}
