//! Ranks of documents by preference: the kept document of a cluster is the one with the smallest rank.

use simstore::Result;

use crate::documents::Corpus;
use crate::documents::block::DocumentRef;
use crate::documents::keep_rule::KeepRule;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter, Sorter};
use simstore_io::IdRef;

/// Ranks of documents by preference, in input order. Rank 0 is the most preferred document.
#[derive(Debug)]
pub(crate) enum PreferenceRanks {
    /// Earlier documents are preferred, so the rank of a document is its index in the corpus.
    Input,
    /// The ranks of all documents, or of selected documents only, in input order.
    Ordered(Rows<u32>),
}

impl PreferenceRanks {
    /// Ranks all documents of a corpus. If `selection` is set, ranks only the documents with these indexes,
    /// which must be ascending.
    pub(crate) fn new(
        corpus: &Corpus,
        keep: &KeepRule,
        selection: Option<&Rows<u64>>,
        workspace: &Workspace,
        stage: &Stage<'_>,
    ) -> Result<PreferenceRanks> {
        if matches!(keep, KeepRule::First | KeepRule::None) {
            return Ok(PreferenceRanks::Input);
        }
        let mut keys = Sorter::<(Vec<u8>, u32)>::new(workspace.temporary.clone(), workspace.share());
        let (mut selection, mut at) = (selection.map(Rows::cursor).transpose()?, 0);
        corpus.visit(|document| {
            if at % 1024 == 0 {
                stage.add(0)?;
            }
            let number = document.number as u64;
            let is_one = match &mut selection {
                Some(some) => some.next_if(|&next| next == number)?.is_some(),
                None => true,
            };
            if is_one {
                keys.push((document_key(&document), at))?;
                at += 1;
            }
            Ok(())
        })?;
        let mut ranks = workspace.sorter::<(u32, u32)>();
        for (rank, keyed) in (0..).zip(keys.finish()?) {
            ranks.push((keyed?.1, rank))?;
        }
        Ok(PreferenceRanks::Ordered(workspace.collected(ranks.finish()?.map(|row| Ok(row?.1)))?))
    }

    /// Returns a cursor that reads ranks in ascending order of documents.
    pub(crate) fn cursor(&self) -> Result<PreferenceRankCursor<'_>> {
        Ok(match self {
            PreferenceRanks::Input => PreferenceRankCursor::Input,
            PreferenceRanks::Ordered(ranks) => {
                PreferenceRankCursor::Ordered { ranks: ranks.cursor()?, next: 0 }
            }
        })
    }
}

/// Reads ranks in ascending order of documents.
pub(crate) enum PreferenceRankCursor<'a> {
    Input,
    Ordered { ranks: RowCursor<RowsIter<'a, u32>, u32>, next: u32 },
}

impl PreferenceRankCursor<'_> {
    /// Returns the rank of a document. Documents must be requested in ascending order. If only a selection of
    /// documents was ranked, `document` is an index into this selection.
    pub(crate) fn rank(&mut self, document: u32) -> Result<u32> {
        let PreferenceRankCursor::Ordered { ranks, next } = self else { return Ok(document) };
        while *next < document {
            ranks.next_row()?;
            *next += 1;
        }
        Ok(ranks.peek()?.unwrap_or(u32::MAX))
    }
}

/// Returns the sort key of a document for the keep rule. A preferred document has a smaller key; equally preferred
/// documents have equal keys.
fn document_key(document: &DocumentRef<'_>) -> Vec<u8> {
    if let Some(keys) = &document.block.keys {
        return keys.get(document.index).to_vec();
    }
    // Only the rule `KeepRule::SmallestId` compares ids. The other rules without values do not sort documents.
    id_key(document.id())
}

/// Returns a sort key for an id. Sorted bytewise, the keys of numbers come first, by value, and then names.
fn id_key(id: IdRef<'_>) -> Vec<u8> {
    match id {
        IdRef::Number(number) => [0].into_iter().chain(number.to_be_bytes()).collect(),
        IdRef::Name(name) => [1].into_iter().chain(name.bytes()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_ids_are_in_their_order() {
        let numbers = [0, 9, 10, 255, 256, 1 << 40, u64::MAX].map(IdRef::Number);
        let names = ["", "10", "9", "A", "a", "a\0", "a b", "ab", "\u{e9}"].map(IdRef::Name);
        for (one, other) in numbers
            .iter()
            .chain(&names)
            .flat_map(|one| numbers.iter().chain(&names).map(move |other| (*one, *other)))
        {
            assert_eq!(id_key(one).cmp(&id_key(other)), one.cmp(&other), "{one:?} {other:?}");
        }
    }
}
