//! Clusters of documents: represented documents with their representatives, equal documents, and documents near a stored one.

use bitvec::vec::BitVec;
use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::exact::Sets;
use crate::pipeline::representatives::Leaders;
use crate::rows::{By, Measure, Member, Near, Nearness};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Cursor, Rows, RowsIter};

/// All clusters.
#[derive(Debug)]
pub(crate) struct Clusters {
    /// By cluster, then by document.
    pub(crate) by_cluster: Rows<Member>,
    /// The same by document.
    pub(crate) by_document: Rows<Member>,
    /// Number of clusters, and of clusters that a stored document represents.
    pub(crate) count: usize,
    pub(crate) stored: usize,
    /// Number of documents in clusters that a stored document represents.
    pub(crate) of_stored: usize,
}

impl Clusters {
    /// How many documents are not kept.
    pub(crate) fn removed(&self, keeps_none: bool) -> usize {
        let kept = if keeps_none { 0 } else { self.count - self.stored };
        self.by_cluster.len() - kept
    }
}

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

/// A document, the number of the stored document that represents it, and their nearness.
pub(crate) type OfStore = (u32, (u64, Measure));

/// The first key of stored documents: greater than the number of any set.
const STORED: u64 = 1 << 40;

/// Near documents.
#[derive(Debug)]
pub(crate) struct NearDocuments {
    pub(crate) sets: Sets,
    /// Near sets, if they were asked for.
    pub(crate) pairs: Rows<Near>,
    /// The numbers of the documents in the corpus, if these are not all.
    pub(crate) documents: Option<Rows<u64>>,
    /// How near equal documents are.
    pub(crate) equal: Nearness,
}

impl NearDocuments {
    /// The number in the corpus.
    pub(crate) fn document(&self, number: u32) -> Result<u64> {
        self.documents.as_ref().map_or(Ok(number.into()), |documents| documents.get(number as usize))
    }

    /// All pairs of near documents `a` < `b` with their nearness, in order of `a`, then of `b`. Only pairs of equal documents if
    /// other pairs were not asked for.
    pub(crate) fn pairs(&self, workspace: &Workspace) -> Result<impl Iterator<Item = Result<Near>> + use<>> {
        let mut all = workspace.sorter::<Near>();
        for pair in self.pairs.iter()? {
            let (a, b, nearness) = pair?;
            let others = self.sets.documents(b)?;
            for one in self.sets.documents(a)? {
                others.iter().try_for_each(|&other| all.push((one.min(other), one.max(other), nearness)))?;
            }
        }
        for set in (0..self.sets.len() as u32).filter(|&set| self.sets.is_several(set)) {
            let documents = self.sets.documents(set)?;
            for (at, &one) in documents.iter().enumerate() {
                let others = &documents[at + 1..];
                others
                    .iter()
                    .try_for_each(|&other| all.push((one.min(other), one.max(other), self.equal)))?;
            }
        }
        all.finish()
    }

    /// Makes clusters of at least two documents, or of documents that are near a `stored` one, in order of their first documents. Sets that
    /// are `out` are near a stored document.
    pub(crate) fn clusters(
        &self,
        leaders: &Leaders,
        out: &Marks,
        stored: &Rows<OfStore>,
        workspace: &Workspace,
    ) -> Result<Clusters> {
        let mut by_leader = workspace.sorter::<(u64, (u32, Measure))>();
        let mut leads: BitVec = BitVec::repeat(false, self.sets.len());
        for led in leaders.led.iter()? {
            leads.set(led?.1 as usize, true);
        }
        let mut led = leaders.led.cursor()?;
        for row in self.sets.iter()? {
            let (set, document) = row?;
            match led.at(set, |row| row.0)? {
                Some((_, leader, nearness)) => by_leader.push((leader.into(), (document, (nearness, 0))))?,
                None if out.has(set) => {}
                None if leads[set as usize] || self.sets.is_several(set) => {
                    by_leader.push((set.into(), (document, (self.equal, 0))))?;
                }
                None => {}
            }
        }
        for row in stored.iter()? {
            let (document, (thing, measure)) = row?;
            by_leader.push((STORED + thing, (document, measure)))?;
        }
        drop(leads);
        // Documents ascend in each cluster.
        let mut by_first = workspace.sorter::<((u32, u32), (u64, Measure))>();
        let mut rows = Cursor::new(by_leader.finish()?);
        while let Some((leader, (first, measure))) = rows.take()? {
            by_first.push(((first, first), (leader, measure)))?;
            while let Some((_, (document, measure))) = rows.take_if(|&(next, _)| next == leader)? {
                by_first.push(((first, document), (leader, measure)))?;
            }
        }
        drop(rows);
        let (mut by_cluster, mut by_document) = (workspace.rows(), workspace.sorter::<Member>());
        let (mut cluster, mut last, mut by) = (0, None, By::document(0));
        let (mut stored, mut of_stored) = (0, 0);
        for row in by_first.finish()? {
            let ((first, document), (leader, measure)) = row?;
            if last.replace(first) != Some(first) {
                cluster += 1;
                stored += usize::from(leader >= STORED);
                by = match leader.checked_sub(STORED) {
                    Some(thing) => By::stored(thing),
                    None => By::document(self.document(self.sets.best(leader as u32)?)?),
                };
            }
            let member = Member { cluster, document: self.document(document)?, by, measure };
            of_stored += usize::from(leader >= STORED);
            by_cluster.push(member)?;
            by_document.push(member)?;
        }
        let (by_cluster, by_document) = (by_cluster.finish()?, Rows::sorted(by_document)?);
        Ok(Clusters { by_cluster, by_document, count: cluster as usize, stored, of_stored })
    }
}
