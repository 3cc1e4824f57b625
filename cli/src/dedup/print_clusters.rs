//! Output of clusters, as text and as JSON.

use std::borrow::Cow;
use std::path::Path;

use serde::Serialize;
use simstore::Result;
use simstore_dedup::Cluster;
use simstore_io::IdRef;
use simstore_io::numbers::format_similarity;

use crate::numbers::format_count_of;
use crate::output::{Output, escape_name, escape_text};

#[derive(Serialize)]
pub(super) struct ClusterObject<'a> {
    cluster: usize,
    size: usize,
    representative: IdRef<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    stored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Cow<'a, str>>,
    members: Vec<MemberObject<'a>>,
}

#[derive(Serialize)]
struct MemberObject<'a> {
    id: IdRef<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<&'a str>,
    fingerprint: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    similarity: Option<f64>,
}

/// Converts a cluster to its JSON object.
pub(super) fn cluster_object<'a>(cluster: &'a Cluster<'a>) -> ClusterObject<'a> {
    let members = cluster.members.iter().map(|member| MemberObject {
        id: (&member.id).into(),
        place: member.location.as_deref(),
        fingerprint: member.fingerprint.as_deref().unwrap_or_default(),
        distance: member.distance,
        similarity: member.similarity,
    });
    ClusterObject {
        cluster: cluster.number,
        size: cluster.members.len(),
        representative: (&cluster.representative).into(),
        place: cluster.location.as_deref(),
        stored: cluster.is_stored,
        store: cluster.store.map(Path::to_string_lossy),
        members: members.collect(),
    }
}

/// Prints a cluster as text: its size, the representative, then the other documents with their distance or similarity.
pub(super) fn print_cluster(output: &mut Output, cluster: &Cluster) -> Result<()> {
    let (number, is_stored) = (cluster.number, cluster.is_stored);
    let note = match (is_stored, cluster.store) {
        (true, Some(store)) => format!(", already stored in {}", escape_text(&store.to_string_lossy())),
        (true, None) => ", already stored".to_owned(),
        (false, _) if cluster.members.iter().all(|member| !member.is_kept) => ", no document kept".to_owned(),
        (false, _) => String::new(),
    };
    let documents = format_count_of(cluster.members.len() as u64, "document");
    output.write_line(format_args!("cluster {number}: {documents}{note}"))?;
    let place = |place: &Option<String>| match place {
        Some(place) => format!("  ({})", escape_text(place)),
        None => String::new(),
    };
    let representative = IdRef::from(&cluster.representative).text();
    let is_similar = cluster.members.iter().all(|member| member.distance.is_none());
    let representative_score = match (is_stored, is_similar) {
        (true, _) => "=",
        (false, true) => "1",
        (false, false) => "0",
    };
    let width = if is_similar { 5 } else { 2 };
    output.write_line(format_args!(
        "  {representative_score:>width$}  {}{}",
        escape_name(&representative),
        place(&cluster.location)
    ))?;
    for member in cluster.members.iter().filter(|member| Some(member.document) != cluster.document) {
        let (id, place) = (member.id.text(), place(&member.location));
        let score = match (member.distance, member.similarity) {
            (Some(distance), _) => distance.to_string(),
            (None, similarity) => similarity.map_or(String::new(), format_similarity),
        };
        output.write_line(format_args!("  {score:>width$}  {}{place}", escape_name(&id)))?;
    }
    Ok(())
}
