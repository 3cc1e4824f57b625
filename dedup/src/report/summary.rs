//! The summary of a run: the numbers, which are the same in all interfaces.

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
use crate::report::run_results::Job;
use crate::rows::{PairScore, similarity_from_score};

/// Number of the largest clusters that are reported.
const LARGEST: usize = 3;

/// The numbers of a run. Its `Display` form has the lines for people, with options named as in the library; serialized, it is the
/// object that all interfaces write as JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Summary {
    /// Documents or fingerprints read.
    pub documents: u64,
    /// Distinct fingerprints among them; where texts are compared by similarity, distinct texts.
    pub fingerprints: usize,
    /// Clusters of two documents and more, or of something stored.
    pub clusters: usize,
    /// Documents in them.
    pub clustered: usize,
    /// Documents in them that are not the representative.
    pub duplicates: usize,
    /// Documents in clusters of something stored, if a store was compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stored: Option<usize>,
    /// Of these, documents that are similar to a stored one by an estimate, if a store keeps no texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated: Option<u64>,
    /// The greatest standard error of these estimates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub standard_error: Option<f64>,
    /// Documents that are added to the store, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Documents that are left.
    pub kept: usize,
    /// The largest clusters.
    pub largest: Vec<Largest>,
    /// Pairs whose texts were compared, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<u64>,
    /// Of these, pairs that were not alike.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unlike: Option<u64>,
    /// Whether duplicates share text that all documents have. By similarity only, for at least 20 documents and 5 duplicates.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boilerplate: Option<Boilerplate>,
    /// Documents that have an id which another has.
    pub same_id: usize,
    /// Documents without text, which match nothing.
    pub empty: u64,
    /// Documents of fewer than 32 features: by distance, too few for reliable fingerprints.
    pub short: u64,
    /// Characters that were not in the encoding of their input.
    pub replaced: u64,
    /// Malformed documents skipped.
    pub bad: u64,
    /// Further names of files and folders that were read once: links, hard links, and names that were given twice.
    pub other_names: u64,
    /// Files, links, pipes and devices that were passed over besides.
    pub passed_over: u64,
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Temporary files, if documents were too much for the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<Spilled>,
    /// Seconds from the start of the run until its outputs were written, to three decimals.
    pub seconds: f64,
    /// The criterion of near documents.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// The store that documents are added to, if there are several stores.
    #[serde(skip)]
    pub(crate) first_of_stores: Option<String>,
    #[serde(skip)]
    pub(crate) keeps_none: bool,
    /// Whether only equal texts are duplicates.
    #[serde(skip)]
    pub(crate) is_exact: bool,
}

/// Temporary files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spilled {
    /// Bytes that were written in all.
    pub written: u64,
    /// Bytes that were there at most at a time.
    pub most: u64,
}

/// A large cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Largest {
    /// Its documents.
    pub size: usize,
    /// The greatest distance of two of them, in bits; `None` for too many different fingerprints to compare all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farthest: Option<u32>,
    /// The least similarity of a member to the representative, where texts are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_similar: Option<f64>,
    /// Whether similarities to the representative, which is stored without its text, are estimates.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl Summary {
    pub(crate) fn new(job: &Job, counts: &InputCounts) -> Result<Summary> {
        let outcome = &job.outcome;
        let clusters = &outcome.clusters;
        let is_by_distance = matches!(job.resolved.criterion, Criterion::Distance(_));
        let duplicates = clusters.removed(job.keeps_none());
        let estimated = match !is_by_distance && job.has_stores() {
            false => None,
            true => Some(estimated(&outcome.stored.assignments)?),
        };
        Ok(Summary {
            fingerprints: outcome.distinct,
            clusters: clusters.count,
            clustered: clusters.by_cluster.len(),
            duplicates,
            stored: job.has_stores().then_some(clusters.in_stored),
            estimated: estimated.map(|(documents, _)| documents),
            standard_error: estimated.map(|(_, standard_error)| standard_error),
            added: job.added_to.is_some().then(|| job.to_add()),
            kept: job.corpus.len() - duplicates,
            largest: largest(job, is_by_distance)?,
            compared: outcome.compared.map(|(compared, _)| compared),
            unlike: outcome.compared.map(|(_, unlike)| unlike),
            boilerplate: outcome.boilerplate,
            same_id: job.corpus.same_id,
            spilled: job.corpus.spilled().map(|spilled| {
                let temporary = &spilled.workspace.temporary;
                Spilled { written: temporary.counts.written(), most: temporary.counts.peak_on_disk() }
            }),
            first_of_stores: job.store(0).map(|store| store.display().to_string()),
            keeps_none: job.keeps_none(),
            is_exact: job.resolved.is_exact,
            ..Summary::of_added_before(counts, job.resolved.criterion)
        })
    }

    /// The summary of a run that an identical run has already done: it read documents, and found nothing new.
    pub(crate) fn of_added_before(counts: &InputCounts, criterion: Criterion) -> Summary {
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
            compared: None,
            unlike: None,
            boilerplate: None,
            same_id: 0,
            empty: counts.empty,
            short: counts.short,
            replaced: counts.replacements,
            bad: counts.malformed,
            other_names: counts.duplicate_paths,
            passed_over: counts.skipped_files,
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

/// How many documents are similar to something stored by an estimate that is not exact, and the greatest standard error of these.
fn estimated(of_documents: &Rows<StoredAssignmentRow>) -> Result<(u64, f64)> {
    let (mut count, mut greatest) = (0, 0.0_f64);
    for row in of_documents.iter()? {
        let (_, (_, (_, error))) = row?;
        if error > 0 {
            count += 1;
            greatest = greatest.max(similarity_from_score(error));
        }
    }
    Ok((count, greatest))
}

/// The largest clusters; among equals, the first.
fn largest(job: &Job, is_by_distance: bool) -> Result<Vec<Largest>> {
    let members = &job.outcome.clusters.by_cluster;
    let (mut largest, mut cursor): (Vec<(usize, u32)>, _) = (Vec::new(), members.cursor()?);
    while let Some(first) = cursor.next_row()? {
        let mut size = 1;
        while cursor.next_if(|member| member.cluster == first.cluster)?.is_some() {
            size += 1;
        }
        largest.push((size, first.cluster));
        largest.sort_by_key(|&(size, cluster)| (Reverse(size), cluster));
        largest.truncate(LARGEST);
    }
    let mut found: Vec<(u32, Near)> = Vec::new();
    let mut documents = job.corpus.in_order();
    for member in job.outcome.clusters.by_document.iter()? {
        let member = member?;
        if !largest.iter().any(|&(_, cluster)| cluster == member.cluster) {
            continue;
        }
        let at = found.iter().position(|&(cluster, _)| cluster == member.cluster).unwrap_or_else(|| {
            found.push((member.cluster, Near::default()));
            found.len() - 1
        });
        let near = &mut found[at].1;
        near.is_estimated |= !is_by_distance && member.measure.1 > 0;
        near.least = Some(near.least.map_or(member.measure.0, |least| least.min(member.measure.0)));
        if is_by_distance && near.distinct.len() <= MOST_COMPARED {
            let fingerprint = documents.get(member.document as usize)?.fingerprint();
            near.distinct.insert(fingerprint.unwrap_or_default());
        }
    }
    let is_compared = job.outcome.compared.is_some();
    let largest = largest.into_iter().map(|(size, cluster)| {
        let near = found.iter().find(|&&(other, _)| other == cluster).map(|(_, near)| near);
        Largest {
            size,
            farthest: near.filter(|_| is_by_distance).and_then(Near::farthest),
            least_similar: near
                .filter(|_| is_compared)
                .and_then(|near| near.least)
                .map(similarity_from_score),
            estimated: near.is_some_and(|near| near.is_estimated),
        }
    });
    Ok(largest.collect())
}

/// So many fingerprints are compared in some tenths of a second.
const MOST_COMPARED: usize = 1 << 15;

/// How near the documents of a cluster are.
#[derive(Default)]
struct Near {
    least: Option<PairScore>,
    /// Whether a similarity has a standard error.
    is_estimated: bool,
    /// The fingerprints, as long as they are not too many.
    distinct: BTreeSet<u128>,
}

impl Near {
    /// The greatest distance between two; `None` for too many to compare all.
    fn farthest(&self) -> Option<u32> {
        if self.distinct.len() > MOST_COMPARED {
            return None;
        }
        let distinct: Vec<u128> = self.distinct.iter().copied().collect();
        let farthest = |(i, a): (usize, &u128)| distinct[i + 1..].iter().map(|b| (a ^ b).count_ones()).max();
        distinct.par_iter().enumerate().filter_map(farthest).max().or(Some(0))
    }
}
