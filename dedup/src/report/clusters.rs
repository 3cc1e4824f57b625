//! The clusters of a run, with their documents.

use std::collections::VecDeque;
use std::path::Path;

use simstore::Result;
use simstore_corpus::spill::{RowCursor, RowsIter};
use simstore_io::DocumentId;

use crate::documents::DocumentLookup;
use crate::report::reported_pair::Proximity;
use crate::report::run_results::RunResults;
use crate::report::tables::member_documents;
use crate::rows;

/// A cluster of near-duplicates.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster<'a> {
    /// Cluster number, from 1. Clusters are numbered in input order of their first documents.
    pub number: usize,
    /// Id of the representative.
    pub representative: DocumentId,
    /// Index of the representative in the input, from 0; `None` if it is a stored document.
    pub document: Option<usize>,
    /// `FILE:LINE` of the representative, if ids repeat in the input. `None` if the representative is a stored
    /// document.
    pub location: Option<String>,
    /// Whether the representative is a stored document. If so, no member of the cluster is kept.
    pub is_stored: bool,
    /// Path of the store of the representative. `None` if that is an input document, or if the run has only one
    /// store.
    pub store: Option<&'a Path>,
    /// Documents of the cluster in input order, including the representative if it is an input document. Only the
    /// representative is kept; with [`KeepRule::None`](crate::KeepRule::None), no member is kept.
    pub members: Vec<Member>,
    /// Store and id of the representative, if it is a stored document with an id.
    pub(crate) stored_id: Option<(usize, u64)>,
}

/// A document of a cluster, or a kept document.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Index of the document in the input, from 0. Malformed documents are not counted.
    pub document: usize,
    /// Document id.
    pub id: DocumentId,
    /// `FILE:LINE` of the document, if ids repeat in the input.
    pub location: Option<String>,
    /// Fingerprint in hexadecimal; `None` for a document without text.
    pub fingerprint: Option<String>,
    /// Distance to the representative, in bits; `None` if texts are compared by similarity, or if
    /// [`Report::kept`](crate::Report::kept) returned this member.
    pub distance: Option<u32>,
    /// Similarity to the text of the representative, from 0 to 1; `None` if texts are not compared, or if
    /// [`Report::kept`](crate::Report::kept) returned this member.
    pub similarity: Option<f64>,
    /// Whether the document is kept. In a cluster, only the representative can be kept.
    pub is_kept: bool,
}

/// Returns the clusters in input order of their first documents.
pub(crate) fn cluster_iter(results: &RunResults) -> Result<impl Iterator<Item = Result<Cluster<'_>>>> {
    let mut members = results.outcome.clusters.by_cluster.cursor()?;
    let mut read = VecDeque::new();
    let mut next = move || {
        if read.is_empty() {
            read_clusters(results, &mut members, &mut read)?;
        }
        Ok(read.pop_front())
    };
    Ok(std::iter::from_fn(move || next().transpose()))
}

/// Reads the next cluster from `members`, and appends it to `read`. If documents are on disk, appends as many clusters
/// as one lookup of documents allows.
fn read_clusters<'a>(
    results: &'a RunResults,
    members: &mut RowCursor<RowsIter<'_, rows::MemberRow>, rows::MemberRow>,
    read: &mut VecDeque<Cluster<'a>>,
) -> Result<()> {
    let most = if results.corpus.spilled().is_some() { results.corpus.max_lookup_documents() / 2 } else { 1 };
    let mut all: Vec<rows::MemberRow> = Vec::new();
    let is_last = |all: &[rows::MemberRow], cluster| all.last().is_some_and(|last| last.cluster == cluster);
    while let Some(member) = members.next_if(|next| all.len() < most || is_last(&all, next.cluster))? {
        all.push(member);
    }
    let lookup = results.lookup_for_rows(&all, member_documents, &())?;
    for members in all.chunk_by(|a, b| a.cluster == b.cluster) {
        read.push_back(cluster_from_rows(results, members, &lookup)?);
    }
    Ok(())
}

fn cluster_from_rows<'a>(
    results: &'a RunResults,
    members: &[rows::MemberRow],
    lookup: &DocumentLookup<'_>,
) -> Result<Cluster<'a>> {
    let (first, representative) = (members[0], results.other_document(members[0].representative)?);
    let member = |member: &rows::MemberRow| {
        let document = member.document as usize;
        let Proximity { distance, similarity, .. } =
            results.proximity(lookup, document, member.representative, member.measure)?;
        Ok(Member {
            document,
            id: lookup.id(document).into(),
            location: results.location(lookup, document),
            fingerprint: lookup.hex(document),
            distance,
            similarity,
            is_kept: member.is_representative() && !results.keeps_none(),
        })
    };
    Ok(Cluster {
        number: first.cluster as usize,
        document: representative.document(),
        location: results.other_location(lookup, &representative),
        is_stored: first.is_stored(),
        store: representative.store().and_then(|store| results.store_path(store)),
        stored_id: first.representative.get().err().map(|row| results.stored_id(row)).transpose()?.flatten(),
        representative: representative.into_id(lookup),
        members: members.iter().map(member).collect::<Result<_>>()?,
    })
}
