//! In which order documents are preferred.

use rayon::prelude::*;
use simstore::Result;

use crate::corpus::Corpus;
use crate::corpus::block::Stretch;
use crate::corpus::keep_rule::{Keep, Preference};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows, RowsIter, Sortable, Sorter, SpillReader, SpillWriter};

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
        step: &Step<'_>,
    ) -> Result<Ranks> {
        if matches!(keep, Keep::First | Keep::None) {
            return Ok(Ranks::Input);
        }
        let mut ranks = workspace.sorter::<(u32, u32)>();
        if corpus.spilled().is_none() {
            let preference = preference(&corpus.stretch, keep);
            let mut documents: Vec<(u32, u64)> = match some {
                Some(some) => (0..)
                    .zip(some.iter()?)
                    .map(|(at, document)| Ok((at, document?)))
                    .collect::<Result<_>>()?,
                None => (0..corpus.len() as u32).map(|document| (document, document.into())).collect(),
            };
            documents.par_sort_unstable_by(|&(_, a), &(_, b)| preference.compare(a as usize, b as usize));
            for (rank, (at, _)) in (0..).zip(documents) {
                ranks.push((at, rank))?;
            }
        } else {
            let mut keys = Sorter::<Keyed>::new(workspace.temporary.clone(), workspace.share());
            let mut some = some.map(Rows::cursor).transpose()?;
            let mut at = 0;
            corpus.visit(|document| {
                if at % 1024 == 0 {
                    step.add(0)?;
                }
                let number = document.number as u64;
                let is_one = match &mut some {
                    Some(some) => some.take_if(|&next| next == number)?.is_some(),
                    None => true,
                };
                if is_one {
                    let key = preference(document.stretch, keep).key(document.at);
                    keys.push(Keyed { key, at })?;
                    at += 1;
                }
                Ok(())
            })?;
            for (rank, keyed) in (0..).zip(keys.finish()?) {
                ranks.push((keyed?.at, rank))?;
            }
        }
        let mut rows = workspace.rows();
        for row in ranks.finish()? {
            rows.push(row?.1)?;
        }
        Ok(Ranks::Ordered(rows.finish()?))
    }
}

impl Ranks {
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
    Ordered { ranks: Cursor<RowsIter<'a, u32>, u32>, next: u32 },
}

impl RanksInOrder<'_> {
    /// That of a document, which comes after those that were asked for.
    pub(crate) fn of(&mut self, document: u32) -> Result<u32> {
        let RanksInOrder::Ordered { ranks, next } = self else { return Ok(document) };
        while *next < document {
            ranks.take()?;
            *next += 1;
        }
        Ok(ranks.peek()?.unwrap_or(u32::MAX))
    }
}

fn preference<'a>(stretch: &'a Stretch, keep: &'a Keep) -> Preference<'a> {
    Preference { keep, values: &stretch.values, names: &stretch.names }
}

/// A document and its key of preference.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Keyed {
    key: Vec<u8>,
    at: u32,
}

impl Sortable for Keyed {
    fn memory(&self) -> usize {
        size_of::<Keyed>() + self.key.len()
    }

    fn push_to(&self, file: &mut SpillWriter) -> Result<()> {
        file.push_record(self.at)?;
        file.push_records(self.key.iter().copied())
    }

    fn read_from(file: &mut SpillReader) -> Result<Option<Keyed>> {
        let Some(at) = file.record()? else { return Ok(None) };
        Ok(Some(Keyed { key: file.records()?, at }))
    }
}
