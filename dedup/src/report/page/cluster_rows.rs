//! Rows of the table of clusters, with the documents of as many clusters as the page has room for.

use std::collections::HashMap;

use simstore::Result;
use simstore_io::{DocumentId, IdRef};

use crate::config::criterion::Criterion;
use crate::pipeline::similarity_histogram::{SIMILARITY_BINS, similarity_bin};
use crate::report::clusters::{Cluster, Member, cluster_iter};
use crate::report::page::cluster_choice::ClusterChoice;
use crate::report::page::page_data::{ClusterData, MemberData, page_bytes};
use crate::report::run_results::RunResults;

/// Limit of the rows without their documents, in bytes of the page.
const MAX_ROW_BYTES: usize = 8 << 20;
/// Limit of the documents in clusters, in bytes of the page.
const MAX_MEMBER_BYTES: usize = 5 << 20;
/// Maximum number of listed documents of a cluster.
const MAX_MEMBERS: usize = 500;
/// Maximum number of documents of a cluster that are compared with the representative word by word.
const MAX_COMPARED: usize = 20;
/// Longest name on the page, in characters. The middle of a longer name is left out.
const MAX_NAME_CHARS: usize = 200;

/// Clusters of the page, and numbers of the documents to compare.
pub(crate) struct ClusterRows {
    /// Rows, largest cluster first.
    pub(crate) rows: Vec<ClusterData>,
    /// Comparisons to make, most important first.
    pub(crate) to_compare: Vec<ComparisonRequest>,
    /// Number of removed documents in each bin of similarity, or at each distance.
    pub(crate) removed_counts: Vec<u64>,
}

/// Request for the comparison of a removed document with the representative of its cluster.
#[derive(Clone, Debug)]
pub(crate) struct ComparisonRequest {
    /// Index of the cluster in the rows, and of the document among its members.
    pub(crate) at: (usize, usize),
    /// Index of the removed document in the input.
    pub(crate) document: usize,
    /// Index of the representative in the input; for a stored document, its store and id.
    pub(crate) representative: RepresentativePlace,
}

/// Place of the text of a representative.
#[derive(Clone, Debug)]
pub(crate) enum RepresentativePlace {
    Input(usize),
    Stored { store: usize, id: u64 },
}

impl ClusterRows {
    /// Reads all clusters, and makes rows of the chosen ones.
    pub(crate) fn read(results: &RunResults, choice: &ClusterChoice) -> Result<ClusterRows> {
        let order: HashMap<u32, usize> =
            choice.full.iter().enumerate().map(|(at, &cluster)| (cluster, at)).collect();
        let mut removed_counts = vec![0; bin_count(results.resolved.criterion)];
        let (mut row_bytes, mut member_bytes) = (0, 0);
        let mut rows: Vec<(ClusterData, Option<Requests>)> = Vec::new();
        for cluster in cluster_iter(results)? {
            let cluster = cluster?;
            let number = cluster.number as u32;
            for member in cluster.members.iter().filter(|member| !member.is_kept) {
                if let Some(bin) = member_bin(member) {
                    let bin = bin.min(removed_counts.len() - 1);
                    removed_counts[bin] += 1;
                }
            }
            let (is_full, has_row) = (order.contains_key(&number), choice.has_row(number));
            if !has_row {
                continue;
            }
            let mut members: Vec<&Member> =
                cluster.members.iter().filter(|member| Some(member.document) != cluster.document).collect();
            // Least similar first. Equally similar documents stay in input order.
            members.sort_by(|a, b| nearness(a).total_cmp(&nearness(b)));
            let mut row = ClusterData {
                n: cluster.number,
                size: cluster.members.len(),
                id: shortened_name(&cluster.representative),
                worst: members.first().and_then(|member| member_score(member)),
                stored: cluster.is_stored.then(|| store_name(results, &cluster)),
                members: None,
                more: 0,
                place: None,
            };
            row_bytes += page_bytes(&row);
            if row_bytes > MAX_ROW_BYTES && !is_full {
                continue;
            }
            let listed = &members[..members.len().min(MAX_MEMBERS)];
            let member_data: Vec<MemberData> = listed.iter().map(|member| to_member_data(member)).collect();
            let bytes = page_bytes(&member_data);
            if is_full || member_bytes + bytes <= MAX_MEMBER_BYTES {
                member_bytes += bytes;
                row.more = members.len() - listed.len();
                row.members = Some(member_data);
                row.place = cluster.location.clone();
            } else {
                row.more = members.len();
            }
            let requests = order.get(&number).map(|&order| Requests {
                order,
                documents: listed.iter().take(MAX_COMPARED).map(|member| member.document).collect(),
                representative: representative_place(results, &cluster),
            });
            rows.push((row, requests));
        }
        rows.sort_by_key(|(row, _)| (std::cmp::Reverse(row.size), row.n));
        let mut to_compare: Vec<(usize, ComparisonRequest)> = Vec::new();
        for (at, (_, requests)) in rows.iter().enumerate() {
            let Some(Requests { order, documents, representative: Some(representative) }) = requests else {
                continue;
            };
            to_compare.extend(documents.iter().enumerate().map(|(member, &document)| {
                let representative = representative.clone();
                (*order, ComparisonRequest { at: (at, member), document, representative })
            }));
        }
        to_compare.sort_by_key(|(order, _)| *order);
        Ok(ClusterRows {
            rows: rows.into_iter().map(|(row, _)| row).collect(),
            to_compare: to_compare.into_iter().map(|(_, request)| request).collect(),
            removed_counts,
        })
    }
}

/// Documents of a cluster that are compared with its representative.
struct Requests {
    /// Place of the cluster among the clusters shown in full.
    order: usize,
    documents: Vec<usize>,
    /// `None` if the text of the representative is not available.
    representative: Option<RepresentativePlace>,
}

/// Returns the number of bins of the histogram.
fn bin_count(criterion: Criterion) -> usize {
    match criterion {
        Criterion::Similarity(_) => SIMILARITY_BINS,
        Criterion::Distance(distance) => distance as usize + 2,
    }
}

/// Returns the bin of a removed document: its distance to the representative, or else the bin of their similarity. A distance
/// above the threshold, which a chain of near documents allows, is in the last bin.
fn member_bin(member: &Member) -> Option<usize> {
    match (member.distance, member.similarity) {
        (Some(distance), _) => Some(distance as usize),
        (None, similarity) => similarity.map(similarity_bin),
    }
}

/// Returns a number that is smaller for documents less near to the representative.
fn nearness(member: &Member) -> f64 {
    member.distance.map(|distance| -f64::from(distance)).or(member.similarity).unwrap_or_default()
}

/// Returns the distance or similarity of a document to the representative.
fn member_score(member: &Member) -> Option<f64> {
    member.distance.map(f64::from).or(member.similarity)
}

fn to_member_data(member: &Member) -> MemberData {
    let (id, place) = (shortened_name(&member.id), member.location.clone());
    MemberData { id, place, score: member_score(member).map(rounded_down), diff: None }
}

/// Rounds a similarity down to four digits, so that only equal texts show 1. A distance stays as it is.
fn rounded_down(score: f64) -> f64 {
    (score * 1e4 + 1e-6).floor() / 1e4
}

fn store_name(results: &RunResults, cluster: &Cluster<'_>) -> String {
    let path = cluster.store.or_else(|| results.stores().first().map(|store| store.path()));
    path.map(|path| path.display().to_string()).unwrap_or_default()
}

/// Returns the place of the text of a representative; `None` if the run has fingerprints only, or if a stored document has no
/// numeric id.
fn representative_place(results: &RunResults, cluster: &Cluster<'_>) -> Option<RepresentativePlace> {
    results.resolved.documents()?;
    match cluster.document {
        Some(document) => Some(RepresentativePlace::Input(document)),
        None => cluster.stored_id.map(|(store, id)| RepresentativePlace::Stored { store, id }),
    }
}

/// Returns an id as text. The middle of a long id is left out, because the ends of a path or address distinguish it.
fn shortened_name(id: &DocumentId) -> String {
    let text = IdRef::from(id).text();
    let count = text.chars().count();
    if count <= MAX_NAME_CHARS {
        return text.into_owned();
    }
    let half = MAX_NAME_CHARS / 2;
    let (start, end): (String, String) =
        (text.chars().take(half).collect(), text.chars().skip(count - half).collect());
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        let short = "é".repeat(MAX_NAME_CHARS);
        assert_eq!(shortened_name(&DocumentId::Name(short.clone())), short);
        let long = shortened_name(&DocumentId::Name(format!("start{short}end")));
        assert!(long.starts_with("start") && long.ends_with("end") && long.contains('…'), "{long}");
        assert_eq!(long.chars().count(), MAX_NAME_CHARS + 1);
    }

    #[test]
    fn only_equal_texts_show_1() {
        assert_eq!([1.0, 0.999_99, 0.8, 2.0 / 3.0].map(rounded_down), [1.0, 0.9999, 0.8, 0.6666]);
    }
}
