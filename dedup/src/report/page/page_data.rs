//! Data of the report page, as its script reads it. Field names are short, because a page may have 100,000 clusters.

use serde::Serialize;

/// Data of the whole page.
#[derive(Debug, Serialize)]
pub(crate) struct PageData {
    pub(crate) version: &'static str,
    /// Paths of the inputs, as the user gave them.
    pub(crate) inputs: Vec<String>,
    /// Labels and counts of the run.
    pub(crate) counts: Vec<(String, String)>,
    /// Labels and values: how documents were compared, and which were kept.
    pub(crate) rules: Vec<(String, String)>,
    pub(crate) warnings: Vec<String>,
    pub(crate) histogram: HistogramData,
    /// Number of all clusters, shown or not.
    pub(crate) cluster_count: usize,
    /// Whether one document of each cluster is kept.
    pub(crate) has_kept: bool,
    /// Whether the inputs have texts.
    pub(crate) has_texts: bool,
    /// Clusters of the page, largest first.
    pub(crate) clusters: Vec<ClusterData>,
    pub(crate) comparisons: Vec<ComparisonData>,
}

/// Counts by similarity or by distance.
#[derive(Debug, Serialize)]
pub(crate) struct HistogramData {
    /// `similarity` or `distance`.
    pub(crate) unit: &'static str,
    /// Lowest similarity of near-duplicates, or their highest distance.
    pub(crate) threshold: f64,
    /// Lower bounds of the bins; for distances, the distance itself.
    pub(crate) bins: Vec<f64>,
    /// Number of compared pairs of different documents in each bin; `None` if the run compared no texts.
    pub(crate) pairs: Option<Vec<u64>>,
    /// Least share of the pairs in each bin that the search finds.
    pub(crate) found: Option<Vec<f64>>,
    /// Number of removed documents in each bin, by their similarity to the representative of their cluster.
    pub(crate) removed: Vec<u64>,
}

/// Cluster in the table of clusters.
#[derive(Debug, Serialize)]
pub(crate) struct ClusterData {
    /// Number of the cluster in the tables of the run.
    pub(crate) n: usize,
    /// Number of its documents.
    pub(crate) size: usize,
    /// Name of the representative.
    pub(crate) id: String,
    /// Lowest similarity, or highest distance, of a document to the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) worst: Option<f64>,
    /// Store that has the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stored: Option<String>,
    /// Documents of the cluster, without the representative, least similar first. `None` if the page does not list them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) members: Option<Vec<MemberData>>,
    /// Number of further documents that the page does not list.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more: usize,
    /// Place of the representative in the inputs; `None` if it is a stored document, or if the members are not listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
}

/// Removed document of a cluster.
#[derive(Debug, Serialize)]
pub(crate) struct MemberData {
    pub(crate) id: String,
    /// Place in the inputs, if ids repeat.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<String>,
    /// Similarity, or distance, to the representative.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) score: Option<f64>,
    /// Index of the comparison with the representative, in [`PageData::comparisons`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) diff: Option<usize>,
}

/// Comparison of the text of a representative with the text of a removed document.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ComparisonData {
    pub(crate) segments: Vec<SegmentData>,
    /// Whether only the start of one of the texts was compared.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) cut: bool,
    /// Number of differing passages that are not in `segments`, because the page would become too large.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more: usize,
}

/// Passage of two compared texts: a string that both have, a pair of different strings, or a number of equal words.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum SegmentData {
    Equal(String),
    Changed(String, String),
    Skipped(usize),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Returns the number of bytes that a value takes in the page.
pub(crate) fn page_bytes(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(usize::MAX, |json| escape_json(&json).len())
}

/// Escapes JSON for a `script` element. There, `<` could begin an end tag or a comment, so it is written as `\u003c`. In JSON, it
/// occurs in strings only.
pub(crate) fn escape_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_data_ends_no_element() {
        let json = serde_json::to_string("</script><!--<script>&amp;").unwrap();
        let escaped = escape_json(&json);
        assert!(!escaped.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), "</script><!--<script>&amp;");
    }
}
