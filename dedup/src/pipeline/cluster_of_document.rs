//! The cluster of each document, asked for in the order of documents.

use simstore::Result;
use simstore_corpus::spill::{Cursor, RowsIter};

use crate::pipeline::clusters::Clusters;
use crate::rows::Member;

/// Clusters of documents, asked for in ascending order.
pub(crate) struct Clustered<'a> {
    members: Cursor<RowsIter<'a, Member>, Member>,
    keeps_none: bool,
}

/// The cluster of a document, and whether the document is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InCluster {
    /// The number of its cluster, from 1; 0 for a document that is in none.
    pub(crate) cluster: u32,
    /// Whether it is left when duplicates are taken out.
    pub(crate) is_kept: bool,
}

impl<'a> Clustered<'a> {
    pub(crate) fn new(clusters: &'a Clusters, keeps_none: bool) -> Result<Self> {
        Ok(Clustered { members: clusters.by_document.cursor()?, keeps_none })
    }

    /// The cluster of a document. Documents are asked for in ascending order.
    pub(crate) fn of(&mut self, document: usize) -> Result<InCluster> {
        let member = self.members.at(document as u64, |member| member.document)?;
        Ok(member.map_or(InCluster { cluster: 0, is_kept: true }, |member| InCluster {
            cluster: member.cluster,
            is_kept: member.is_representative() && !self.keeps_none,
        }))
    }
}
