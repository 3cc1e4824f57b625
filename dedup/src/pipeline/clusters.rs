//! Clusters of documents: what stands for what, and equal documents.

use bitvec::vec::BitVec;
use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::exact::Sets;
use crate::pipeline::representatives::Leaders;
use crate::rows::{By, Measure, Member, Nearness};
use crate::workspace::Workspace;
use simstore_corpus::spill::{Cursor, Rows};

/// All clusters.
#[derive(Debug)]
pub(crate) struct Clusters {
    /// By cluster, then by document.
    pub(crate) by_cluster: Rows<Member>,
    /// The same by document.
    pub(crate) by_document: Rows<Member>,
    /// How many there are, and for how many of them something stored stands.
    pub(crate) count: usize,
    pub(crate) stored: usize,
    /// Documents in those of something stored.
    pub(crate) of_stored: usize,
}

impl Clusters {
    /// How many documents are not kept.
    pub(crate) fn removed(&self, keeps_none: bool) -> usize {
        let kept = if keeps_none { 0 } else { self.count - self.stored };
        self.by_cluster.len() - kept
    }
}

/// What stands for documents that are near something in a store: a number of that, and how near it is; by document.
pub(crate) type OfStore = (u32, (u64, Measure));

/// The first key of things in stores: greater than that of every set.
const STORED: u64 = 1 << 40;

/// What clusters are made of.
pub(crate) struct Clustering<'a> {
    pub(crate) sets: &'a Sets,
    pub(crate) leaders: &'a Leaders,
    /// Sets that are near something stored.
    pub(crate) out: &'a Marks,
    pub(crate) stored: &'a Rows<OfStore>,
    /// The numbers of the documents in the corpus, if these are not all.
    pub(crate) documents: Option<&'a Rows<u64>>,
    /// How near equal documents are.
    pub(crate) equal: Nearness,
    pub(crate) workspace: &'a Workspace,
}

impl Clustering<'_> {
    /// Makes clusters of two documents and more, and of those of stores, in order of their first documents.
    pub(crate) fn clusters(&self) -> Result<Clusters> {
        let mut by_leader = self.workspace.sorter::<(u64, (u32, Measure))>();
        let mut leads: BitVec = BitVec::repeat(false, self.sets.len());
        for led in self.leaders.led.iter()? {
            leads.set(led?.1 as usize, true);
        }
        let mut led = self.leaders.led.cursor()?;
        self.sets.visit(|set, document| {
            while led.take_if(|&(next, ..)| next < set)?.is_some() {}
            match led.peek()? {
                Some((next, leader, nearness)) if next == set => {
                    by_leader.push((leader.into(), (document, (nearness, 0))))
                }
                _ if self.out.has(set) => Ok(()),
                _ if leads[set as usize] || self.sets.is_several(set) => {
                    by_leader.push((set.into(), (document, (self.equal, 0))))
                }
                _ => Ok(()),
            }
        })?;
        for row in self.stored.iter()? {
            let (document, (thing, measure)) = row?;
            by_leader.push((STORED + thing, (document, measure)))?;
        }
        drop(leads);
        // Documents ascend in each cluster.
        let mut by_first = self.workspace.sorter::<((u32, u32), (u64, Measure))>();
        let mut rows = Cursor::new(by_leader.finish()?);
        while let Some((leader, (first, measure))) = rows.take()? {
            by_first.push(((first, first), (leader, measure)))?;
            while let Some((_, (document, measure))) = rows.take_if(|&(next, _)| next == leader)? {
                by_first.push(((first, document), (leader, measure)))?;
            }
        }
        drop(rows);
        let (mut by_cluster, mut by_document) = (self.workspace.rows(), self.workspace.sorter::<Member>());
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

    fn document(&self, number: u32) -> Result<u64> {
        self.documents.map_or(Ok(number.into()), |documents| documents.get(number as usize))
    }
}
