//! In which order documents are preferred.

use simstore::Result;

use crate::corpus::Corpus;
use crate::corpus::block::Document;
use crate::corpus::keep_rule::Keep;
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::{RowCursor, Rows, RowsIter, Sorter};
use simstore_io::IdRef;

/// The places of some documents in the order of preference, by number of the document, in the order of the corpus.
#[derive(Debug)]
pub(crate) enum Ranks {
    /// They are preferred in order of input.
    Input,
    Ordered(Rows<u32>),
}

impl Ranks {
    /// Of all documents of a corpus, or of some that ascend.
    pub(crate) fn new(
        corpus: &Corpus,
        keep: &Keep,
        some: Option<&Rows<u64>>,
        workspace: &Workspace,
        stage: &Stage<'_>,
    ) -> Result<Ranks> {
        if matches!(keep, Keep::First | Keep::None) {
            return Ok(Ranks::Input);
        }
        let mut keys = Sorter::<(Vec<u8>, u32)>::new(workspace.temporary.clone(), workspace.share());
        let (mut some, mut at) = (some.map(Rows::cursor).transpose()?, 0);
        corpus.visit(|document| {
            if at % 1024 == 0 {
                stage.add(0)?;
            }
            let number = document.number as u64;
            let is_one = match &mut some {
                Some(some) => some.next_if(|&next| next == number)?.is_some(),
                None => true,
            };
            if is_one {
                keys.push((key(&document), at))?;
                at += 1;
            }
            Ok(())
        })?;
        let mut ranks = workspace.sorter::<(u32, u32)>();
        for (rank, keyed) in (0..).zip(keys.finish()?) {
            ranks.push((keyed?.1, rank))?;
        }
        Ok(Ranks::Ordered(workspace.collected(ranks.finish()?.map(|row| Ok(row?.1)))?))
    }

    /// The places, of documents that are asked for in order.
    pub(crate) fn in_order(&self) -> Result<RanksInOrder<'_>> {
        Ok(match self {
            Ranks::Input => RanksInOrder::Input,
            Ranks::Ordered(ranks) => RanksInOrder::Ordered { ranks: ranks.cursor()?, next: 0 },
        })
    }
}

/// The places of documents that are asked for in order.
pub(crate) enum RanksInOrder<'a> {
    Input,
    Ordered { ranks: RowCursor<RowsIter<'a, u32>, u32>, next: u32 },
}

impl RanksInOrder<'_> {
    /// That of a document, which comes after those that were asked for.
    pub(crate) fn of(&mut self, document: u32) -> Result<u32> {
        let RanksInOrder::Ordered { ranks, next } = self else { return Ok(document) };
        while *next < document {
            ranks.next_row()?;
            *next += 1;
        }
        Ok(ranks.peek()?.unwrap_or(u32::MAX))
    }
}

/// Bytes of a document in the order of preference, but for those that the rule does not tell apart.
fn key(document: &Document<'_>) -> Vec<u8> {
    if let Some(keys) = &document.stretch.keys {
        return keys.get(document.at).to_vec();
    }
    // Of the rules that compare no values, only `Keep::SmallestId` sorts.
    id_key(document.id())
}

/// Bytes in the order of ids.
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
