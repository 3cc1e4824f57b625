//! Exact deduplication: documents with equal keys, such as equal feature sets, are grouped. Each group is a
//! *unique document*. A document without exact duplicates is a unique document of its own.

use bitvec::vec::BitVec;
use simstore::Result;

use crate::documents::preference_ranks::PreferenceRanks;
use crate::rows::SignatureRow;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{FixedSize, RowCursor, Rows};

/// All unique documents: groups of exact duplicates. The *best document* of a group is the most preferred one.
/// Groups are numbered by the preference of their best documents; number 0 is the most preferred.
#[derive(Debug)]
pub(crate) struct UniqueDocuments {
    /// Best document of each group, by the number of the group.
    best: Rows<u32>,
    /// Rows (unique document, document) for all documents that have exact duplicates. Sorted by unique document,
    /// then by preference.
    grouped: Rows<(u32, u32)>,
    /// One bit per unique document: whether it consists of at least two documents.
    is_group: BitVec,
}

impl UniqueDocuments {
    /// Groups documents with equal signature digests. Documents without features are in no group.
    pub(crate) fn from_signatures(
        signatures: &Rows<SignatureRow>,
        ranks: &PreferenceRanks,
        workspace: &Workspace,
        stage: &Stage<'_>,
    ) -> Result<UniqueDocuments> {
        let with_features =
            signatures.iter()?.filter(|row| row.as_ref().map_or(true, |row| row.features > 0));
        let keys = with_features.map(|row| row.map(|row| (row.digest(), row.document)));
        group_by_key(keys, ranks, workspace, stage)
    }

    /// Number of unique documents, that is, of groups of exact duplicates.
    pub(crate) fn len(&self) -> usize {
        self.best.len()
    }

    /// Returns the most preferred document of the group of exact duplicates with number `unique`.
    #[inline]
    pub(crate) fn best_document(&self, unique: u32) -> Result<u32> {
        self.best.get(unique as usize)
    }

    /// Most preferred document of each group of exact duplicates, by the number of the group.
    pub(crate) fn best_documents(&self) -> &Rows<u32> {
        &self.best
    }

    /// Whether a unique document consists of at least two documents, which are exact duplicates.
    pub(crate) fn has_duplicates(&self, unique: u32) -> bool {
        self.is_group[unique as usize]
    }

    /// Returns the exact duplicates that form a unique document, the most preferred first.
    pub(crate) fn documents(&self, unique: u32) -> Result<Vec<u32>> {
        if !self.has_duplicates(unique) {
            return Ok(vec![self.best_document(unique)?]);
        }
        let start = self.grouped_before(unique)?;
        let rows = (start..self.grouped.len()).map(|at| self.grouped.get(at));
        let rows = rows.take_while(|row| row.as_ref().map_or(true, |row| row.0 == unique));
        rows.map(|row| Ok(row?.1)).collect()
    }

    /// Number of exact duplicates that form a unique document; 1 for a document without duplicates.
    pub(crate) fn size(&self, unique: u32) -> Result<u64> {
        if !self.has_duplicates(unique) {
            return Ok(1);
        }
        Ok((self.grouped_before(unique + 1)? - self.grouped_before(unique)?) as u64)
    }

    /// Index of the first row in the field `grouped` whose unique document is `unique` or a later one.
    fn grouped_before(&self, unique: u32) -> Result<usize> {
        self.grouped.partition_point(|row| row.0 < unique)
    }

    /// Returns a row (document, unique document) for each document, in document order.
    pub(crate) fn by_document(&self, workspace: &Workspace) -> Result<Rows<(u32, u32)>> {
        let mut rows = workspace.sorter();
        for row in self.iter()? {
            let (unique, document) = row?;
            rows.push((document, unique))?;
        }
        Rows::from_sorter(rows)
    }

    /// Visits a pair (unique document, document) for each document. The pairs are sorted by unique document. For one
    /// unique document, the document that the keep rule prefers most comes first.
    pub(crate) fn iter(&self) -> Result<impl Iterator<Item = Result<(u32, u32)>>> {
        let (mut grouped, mut best) = (self.grouped.cursor()?, (0..).zip(self.best.iter()?));
        let mut last = None;
        let mut next = move || {
            if let Some(row) = grouped.next_if(|&(unique, _)| Some(unique) == last)? {
                return Ok(Some(row));
            }
            let Some((unique, document)) = best.next() else { return Ok(None) };
            last = Some(unique);
            // `grouped` lists all documents of the group, starting with the best one.
            let listed = grouped.next_if(|&(next, _)| next == unique)?;
            Ok(Some(listed.unwrap_or((unique, document?))))
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }
}

/// Groups documents with equal keys as exact duplicates. `keys` has a pair (key, document) for each document, in
/// document order.
pub(crate) fn group_by_key<K: FixedSize>(
    keys: impl Iterator<Item = Result<(K, u32)>>,
    ranks: &PreferenceRanks,
    workspace: &Workspace,
    stage: &Stage<'_>,
) -> Result<UniqueDocuments> {
    let mut by_key = workspace.sorter::<(K, (u32, u32))>();
    let mut cursor = ranks.cursor()?;
    for (at, row) in keys.enumerate() {
        let (key, document) = row?;
        by_key.push((key, (cursor.rank(document)?, document)))?;
        if at % 1024 == 0 {
            stage.add(0)?;
        }
    }
    // Sort by the rank of the best document of the group, so that groups come in order of preference.
    let mut by_best = workspace.sorter::<(u32, u32, u32)>();
    let mut last: Option<(K, u32)> = None;
    for row in by_key.finish()? {
        let (key, (rank, document)) = row?;
        let best = last.filter(|(other, _)| *other == key).map_or(rank, |(_, best)| best);
        last = Some((key, best));
        by_best.push((best, rank, document))?;
    }
    stage.add(0)?;
    let (mut bests, mut grouped, mut is_group) = (workspace.rows(), workspace.rows(), BitVec::new());
    let mut rows = RowCursor::new(by_best.finish()?);
    let mut unique: u32 = 0;
    while let Some((best, _, document)) = rows.next_row()? {
        bests.push(document)?;
        let mut is_one = true;
        while let Some((_, _, other)) = rows.next_if(|&(next, ..)| next == best)? {
            if std::mem::take(&mut is_one) {
                grouped.push((unique, document))?;
            }
            grouped.push((unique, other))?;
        }
        is_group.push(!is_one);
        unique += 1;
    }
    Ok(UniqueDocuments { best: bests.finish()?, grouped: grouped.finish()?, is_group })
}
