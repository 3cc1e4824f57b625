//! Similar documents in stores.
//!
//! A document with few candidates is looked up once, and its candidates are rows. A document with many, such as a page of a template that a
//! store has thousands of pages of, is looked up again when it is compared. So no list of all candidates is written.

use simstore::Result;

use crate::pipeline::features::Features;
use crate::pipeline::stored::dense_groups::DenseComparison;
use crate::pipeline::stored::look_up::{Likely, LookUp, SimilarStore};
use crate::pipeline::stored::matches::{FoundStored, ThingOf};
use crate::pipeline::stored::pairs::{Asked, Match, compare};
use crate::rows::{NearStored, Nearness, SketchRow, Stored, of_similarity};
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::spill::{Cursor, Rows, RowsIter, Sorter};

/// Most candidates of a document that is compared pair by pair.
pub(crate) const FEW: usize = 64;
/// Pairs that are compared together, at least, while there are some.
const TOGETHER: usize = 1 << 12;

/// Documents with candidates in stores.
pub(crate) struct Candidates {
    /// Of documents with few candidates, in order.
    few: Rows<Likely>,
    /// Documents with many candidates, in order.
    many: Rows<u32>,
    /// Number of all candidates.
    pub(crate) count: u64,
}

impl Candidates {
    /// The documents, ascending, each once.
    pub(crate) fn documents(&self) -> Result<impl Iterator<Item = Result<(u64, u32)>> + '_> {
        let (mut few, mut many): (Cursor<RowsIter<'_, Likely>, Likely>, Cursor<_, u32>) =
            (self.few.cursor()?, self.many.cursor()?);
        let mut next = move || -> Result<Option<(u64, u32)>> {
            let of_few = few.peek()?.map(|(document, _)| document);
            let Some(document) = of_few.into_iter().chain(many.peek()?).min() else { return Ok(None) };
            while few.take_if(|&(other, _)| other == document)?.is_some() {}
            many.take_if(|&other| other == document)?;
            Ok(Some((document.into(), document)))
        };
        Ok(std::iter::from_fn(move || next().transpose()))
    }

    /// Number of documents with many candidates.
    pub(crate) fn crowded(&self) -> usize {
        self.many.len()
    }
}

/// Looks up documents in stores.
pub(crate) fn look_up(
    sketches: &Rows<SketchRow>,
    stores: &[SimilarStore<'_>],
    workspace: &Workspace,
    step: &Step<'_>,
) -> Result<Candidates> {
    let (mut few, mut many, mut count) = (workspace.rows(), workspace.rows(), 0);
    LookUp::new(stores, workspace.share(), step).visit(sketches.iter()?, |_, likely| {
        count += likely.len() as u64;
        for of_document in likely.chunk_by(|a, b| a.0 == b.0) {
            match of_document.len() <= FEW {
                true => of_document.iter().try_for_each(|&row| few.push(row))?,
                false => many.push(of_document[0].0)?,
            }
        }
        Ok(())
    })?;
    Ok(Candidates { few: few.finish()?, many: many.finish()?, count })
}

/// Compares documents with their candidates.
pub(crate) struct ComparedStores<'a> {
    pub(crate) stores: &'a [SimilarStore<'a>],
    /// The numbers of these stores among all.
    pub(crate) numbers: &'a [u32],
    pub(crate) least: f64,
    /// Whether to list all similar stored documents, and not only the most similar one.
    pub(crate) with_all: bool,
    pub(crate) workspace: &'a Workspace,
}

/// A document and the order of its matches: the most similar first, then by store and id; and the standard error.
type Found = ((u32, Nearness), ((u32, u64), Nearness));

fn row(found: Match) -> Found {
    let Match { document, store, id, estimate } = found;
    ((document, !of_similarity(estimate.similarity)), ((store, id), of_similarity(estimate.standard_error)))
}

impl ComparedStores<'_> {
    /// Compares documents, whose features are there if a store keeps texts.
    pub(crate) fn compare(
        &self,
        candidates: &Candidates,
        sketches: &Rows<SketchRow>,
        features: &Features,
        step: &Step<'_>,
    ) -> Result<FoundStored> {
        let &ComparedStores { stores, workspace, .. } = self;
        let mut found: Sorter<Found> = workspace.sorter();
        let sketched = |document: u32| Ok(sketches.get(document as usize)?.sketched());
        let asked = Asked { sketched: &sketched, features: &|document| features.get(document) };
        let mut few = candidates.few.cursor()?;
        let mut some: Vec<Likely> = Vec::new();
        while let Some((document, _)) = few.peek()? {
            while let Some(row) = few.take_if(|&(next, _)| next == document)? {
                some.push(row);
            }
            if some.len() >= TOGETHER || few.peek()?.is_none() {
                let matches = compare(stores, &some, &asked, self.least, workspace.share(), step)?;
                for of_document in matches.chunk_by(|a, b| a.document == b.document) {
                    let count = if self.with_all { of_document.len() } else { 1 };
                    of_document[..count].iter().try_for_each(|&one| found.push(row(one)))?;
                }
                some.clear();
            }
        }
        let many = candidates.many.iter()?.map(|document| sketches.get(document? as usize));
        let mut dense = DenseComparison::new(stores, self.least, self.with_all);
        LookUp::new(stores, workspace.share(), step).visit(many, |rows, likely| {
            dense.add(rows, likely, |document| features.get(document))?;
            if dense.bytes() >= workspace.share() {
                dense.compare(step, |one| found.push(row(one)))?;
            }
            Ok(())
        })?;
        dense.compare(step, |one| found.push(row(one)))?;
        self.found(found)
    }

    fn found(&self, found: Sorter<Found>) -> Result<FoundStored> {
        let &ComparedStores { stores, numbers, workspace, .. } = self;
        let (mut near, mut standing) = (workspace.rows::<NearStored>(), workspace.sorter::<ThingOf>());
        let (mut last, mut place) = (None, 0);
        for row in found.finish()? {
            let ((document, order), ((store, id), error)) = row?;
            place = if last.replace(document) == Some(document) { place + 1 } else { 0 };
            let stored = Stored { store: numbers[store as usize], id: Some(id), fingerprint: 0 };
            let measure = (!order, error);
            near.push(((document, place), stored, measure))?;
            if place == 0 {
                standing.push((stored, (document, measure)))?;
            }
        }
        let is_estimated = !stores.iter().all(|(_, texts)| texts.settings().has_texts());
        FoundStored::new(near.finish()?, standing, is_estimated, workspace)
    }
}
