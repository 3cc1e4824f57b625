//! The numbers of a whole run.

use serde::Serialize;
use simstore::Fingerprint;

use super::clusters::{Cluster, Representative};
use super::job::Job;
use super::nearness::Nearness;
use super::similar::Boilerplate;
use super::similar::StoredLike;

/// The largest clusters of which is told how far apart their members are.
const LARGEST: usize = 3;

/// The numbers of a run: as a line of JSON they are the same in all interfaces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Totals {
    /// Documents or fingerprints read.
    pub documents: u64,
    /// Distinct fingerprints among them; where texts are compared by similarity, distinct texts.
    pub fingerprints: usize,
    /// Clusters of two documents and more, or of something stored.
    pub clusters: usize,
    /// Documents in them.
    pub clustered: usize,
    /// Documents in them that do not stand for their cluster.
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
    /// Whether duplicates share what stands in all documents, where that was looked at: by similarity, of 20 documents and 5 duplicates.
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
    /// Further names of files and folders that were read once: links, hard links, and what was named twice.
    pub other_names: u64,
    /// Files, links, pipes and devices that were passed over besides.
    pub passed_over: u64,
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// What went to temporary files, if documents were too much for the memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spilled: Option<Spilled>,
}

/// What went to temporary files.
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
    /// The greatest distance of two of them, in bits; `None` if there are too many different ones to compare all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub farthest: Option<u32>,
    /// The least similarity of one of them to the one that stands for the cluster, where texts are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_similar: Option<f32>,
}

impl Totals {
    pub(super) fn of<F: Fingerprint>(job: &Job<F>) -> Totals {
        let (clusters, counts) = (&job.clusters, job.counts);
        let duplicates: usize = clusters.iter().map(|cluster| cluster.removed().count()).sum();
        let is_stored = |cluster: &&Cluster<F>| matches!(cluster.representative, Representative::Stored(_));
        let (results, compared) = (job.results(), job.nearness.compared());
        let is_by_distance = matches!(job.nearness, Nearness::Distance { .. });
        let (estimated, boilerplate) = match &job.nearness {
            Nearness::Similarity(similar) => {
                (similar.stored.as_ref().map(StoredLike::estimated), similar.boilerplate)
            }
            Nearness::Distance { .. } => (None, None),
        };
        let mut largest: Vec<&Cluster<F>> = clusters.iter().collect();
        // Stable: among equals, the first.
        largest.sort_by_key(|cluster| std::cmp::Reverse(cluster.members.len()));
        largest.truncate(LARGEST);
        Totals {
            documents: counts.read,
            fingerprints: job.nearness.distinct(),
            clusters: clusters.len(),
            clustered: clusters.iter().map(|cluster| cluster.members.len()).sum(),
            duplicates,
            stored: results
                .has_stored()
                .then(|| clusters.iter().filter(is_stored).map(|cluster| cluster.members.len()).sum()),
            estimated: estimated.map(|(documents, _)| documents),
            standard_error: estimated.map(|(_, standard_error)| standard_error),
            added: job.add.then(|| results.to_add()),
            kept: job.corpus.len() - duplicates,
            largest: largest
                .iter()
                .map(|cluster| Largest {
                    size: cluster.members.len(),
                    farthest: if is_by_distance { cluster.spread(&job.corpus) } else { None },
                    least_similar: cluster.least_similar(),
                })
                .collect(),
            compared: compared.map(|(compared, _)| compared),
            unlike: compared.map(|(_, unlike)| unlike),
            boilerplate,
            same_id: job.corpus.same_id(),
            empty: counts.empty,
            short: counts.short,
            replaced: counts.replaced,
            bad: counts.bad,
            other_names: counts.other_names,
            passed_over: counts.passed_over,
            text_bytes: counts.text_bytes,
            spilled: job.corpus.spilled().map(|spilled| {
                let temporary = &spilled.room.temporary;
                Spilled { written: temporary.written(), most: temporary.most() }
            }),
        }
    }
}
