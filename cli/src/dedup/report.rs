//! What a person is told in the end, and a machine.

use serde::Serialize;
use simstore::Fingerprint;
use simstore_corpus::Counts;

use super::clusters::{Cluster, Representative};
use super::similarity::Texts;
use super::tables::Found;
use crate::inputs::count_of;
use crate::numbers::{bytes, grouped};
use crate::progress::Progress;

/// The largest clusters of which is told how far apart their members are.
const LARGEST: usize = 3;

#[derive(Debug, Serialize)]
pub(super) struct Summary {
    documents: u64,
    fingerprints: usize,
    clusters: usize,
    clustered: usize,
    duplicates: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    stored: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) added: Option<u64>,
    kept: usize,
    largest: Vec<Largest>,
    #[serde(skip_serializing_if = "Option::is_none")]
    compared: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unlike: Option<u64>,
    same_id: usize,
    empty: u64,
    short: u64,
    replaced: u64,
    bad: u64,
    text_bytes: u64,
    pub(super) seconds: f64,
}

#[derive(Debug, Serialize)]
struct Largest {
    size: usize,
    /// The greatest distance of two members.
    farthest: Option<u32>,
}

impl Summary {
    pub(super) fn new<F: Fingerprint>(found: &Found<F>, texts: Option<&Texts>, counts: Counts) -> Summary {
        let &Found { corpus, groups, clusters, stored } = found;
        let duplicates: usize = clusters.iter().map(|cluster| cluster.removed().count()).sum();
        let is_stored = |cluster: &&Cluster<F>| matches!(cluster.representative, Representative::Stored(_));
        let mut largest: Vec<&Cluster<F>> = clusters.iter().collect();
        // Stable: among equals, the first.
        largest.sort_by_key(|cluster| std::cmp::Reverse(cluster.members.len()));
        largest.truncate(LARGEST);
        Summary {
            documents: counts.read,
            fingerprints: groups.distinct(),
            clusters: clusters.len(),
            clustered: clusters.iter().map(|cluster| cluster.members.len()).sum(),
            duplicates,
            stored: stored
                .map(|_| clusters.iter().filter(is_stored).map(|cluster| cluster.members.len()).sum()),
            added: None,
            kept: corpus.len() - duplicates,
            largest: largest
                .iter()
                .map(|cluster| Largest { size: cluster.members.len(), farthest: cluster.spread(corpus) })
                .collect(),
            compared: texts.map(|texts| texts.compared),
            unlike: texts.map(|texts| texts.unlike),
            same_id: corpus.names.repeated(),
            empty: counts.empty,
            short: counts.short,
            replaced: counts.replaced,
            bad: counts.bad,
            text_bytes: counts.text_bytes,
            seconds: 0.0,
        }
    }

    /// Says it to a person.
    pub(super) fn say(&self, distance: u32, progress: &Progress) {
        let share = |part: usize| 100.0 * part as f64 / (self.documents.max(1)) as f64;
        let text = if self.text_bytes > 0 {
            format!(" ({} of text)", bytes(self.text_bytes))
        } else {
            String::new()
        };
        progress.say(&format!(
            "{}{text}, {}, {:.1} s",
            count_of(self.documents, "document"),
            count_of(self.fingerprints as u64, "distinct fingerprint"),
            self.seconds
        ));
        progress.say(&format!(
            "{} of {}, {} ({:.1}%), {} left",
            count_of(self.clusters as u64, "cluster"),
            count_of(self.clustered as u64, "document"),
            count_of(self.duplicates as u64, "duplicate"),
            share(self.duplicates),
            grouped(self.kept as u64)
        ));
        if let Some(stored) = self.stored {
            progress.say(&format!("{} near what was in the store", count_of(stored as u64, "document")));
        }
        if let Some(added) = self.added {
            progress.say(&format!("{} added to the store", count_of(added, "document")));
        }
        if let (Some(compared), Some(unlike)) = (self.compared, self.unlike) {
            progress.say(&format!(
                "{} of texts compared, {} not alike",
                count_of(compared, "pair"),
                grouped(unlike)
            ));
        }
        for Largest { size, farthest } in &self.largest {
            let apart = match farthest {
                Some(bits) => format!("the farthest two {bits} bits apart"),
                None => "too many different fingerprints to compare all".to_owned(),
            };
            progress.say(&format!("a cluster of {}: {apart}", count_of(*size as u64, "document")));
        }
        if self.largest.iter().any(|cluster| cluster.farthest.is_none_or(|bits| bits > 3 * distance.max(1))) {
            progress
                .say("chains connect documents that are not alike: `--cluster-by stars` keeps them apart");
        }
    }
}
