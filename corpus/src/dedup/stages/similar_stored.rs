//! What is similar to documents in stores of similar documents.

use simstore::{Fingerprint, Result, Snapshot};
use simstore_text::{SimilarDocument, SimilarSettings, Sketched, StoredTexts};

use super::super::model::{NearStored, SketchRow, Stored, of_similarity};
use super::super::room::Room;
use super::features::Features;
use super::stored::{FoundStored, ThingOf};
use crate::spill::{Cursor, Rows};
use crate::watch::Step;

/// Documents that are looked up together.
const PIECE: usize = 1 << 12;

/// A store of similar documents, and what its texts are compared by.
pub(crate) type SimilarStore<'a, F> = (&'a Snapshot<F>, &'a StoredTexts);

/// A document, a store, and the id there of what may be similar to it.
pub(crate) type Likely = (u32, (u32, u64));

/// The documents that may be similar to something in stores: each pair once, in order.
pub(crate) fn look_up<F: Fingerprint>(
    sketches: &Rows<SketchRow>,
    stores: &[SimilarStore<'_, F>],
    room: &Room,
    step: &Step<'_>,
) -> Result<Rows<Likely>> {
    let mut likely = room.sorter();
    let mut rows = sketches.iter()?;
    loop {
        let piece: Vec<SketchRow> = rows.by_ref().take(PIECE).collect::<Result<_>>()?;
        if piece.is_empty() {
            return Rows::sorted(likely);
        }
        for (at, (store, texts)) in (0..).zip(stores) {
            for (document, id) in looked_up(&piece, store, texts.settings(), step)? {
                likely.push((document, (at, id)))?;
            }
        }
    }
}

/// The numbers of the rows that may be similar to something in a store, with the ids of that: each pair once, in order.
pub(crate) fn looked_up<F: Fingerprint>(
    rows: &[SketchRow],
    store: &Snapshot<F>,
    settings: &SimilarSettings,
    step: &Step<'_>,
) -> Result<Vec<(u32, u64)>> {
    step.add(0)?;
    // Many queries are answered together.
    let rows: Vec<&SketchRow> = rows.iter().filter(|row| row.features > 0).collect();
    let mut likely = Vec::new();
    for at in 0..settings.sketches() {
        let queries: Vec<F> = rows.iter().map(|row| F::from_u128(row.words[at].into())).collect();
        step.add(0)?;
        for found in store.batch_query(&queries, settings.distance())? {
            likely.extend(found.found.id.map(|id| (rows[found.query].number, id)));
        }
        step.add(queries.len() as u64)?;
    }
    likely.sort_unstable();
    likely.dedup();
    Ok(likely)
}

/// How documents are compared with what may be similar to them.
pub(crate) struct ComparedStores<'a, F: Fingerprint> {
    pub(crate) stores: &'a [SimilarStore<'a, F>],
    /// The numbers of these stores among all.
    pub(crate) numbers: &'a [u32],
    pub(crate) least: f64,
    /// Whether all that is similar is to be known, and not only the most similar.
    pub(crate) with_all: bool,
    pub(crate) room: &'a Room,
}

impl<F: Fingerprint> ComparedStores<'_, F> {
    /// Compares documents, whose features are there if a store keeps texts.
    pub(crate) fn compare(
        &self,
        likely: &Rows<Likely>,
        sketches: &Rows<SketchRow>,
        features: &Features,
        step: &Step<'_>,
    ) -> Result<FoundStored<F>> {
        let &ComparedStores { stores, numbers, least, with_all, room } = self;
        let (mut near, mut standing) = (room.rows::<NearStored<F>>(), room.sorter::<ThingOf<F>>());
        let mut likely = likely.cursor()?;
        while let Some((document, _)) = likely.peek()? {
            step.add(1)?;
            let mut ids = vec![Vec::new(); stores.len()];
            while let Some((_, (store, id))) = likely.take_if(|&(next, _)| next == document)? {
                ids[store as usize].push(id);
            }
            let of_document = || features.get(document);
            let sketched = sketches.get(document as usize)?.sketched();
            let found = similar_stored(stores, &ids, &sketched, &of_document, least)?;
            let some = if with_all { found.len() } else { 1 };
            for (place, (at, found)) in (0..).zip(found.into_iter().take(some)) {
                let stored = Stored { store: numbers[at], id: Some(found.id), fingerprint: F::default() };
                let estimate = found.estimate;
                let measure = (of_similarity(estimate.similarity), of_similarity(estimate.standard_error));
                near.push(((document, place), stored, measure))?;
                if place == 0 {
                    standing.push((stored, (document, measure)))?;
                }
            }
        }
        let is_estimated = !stores.iter().all(|(_, texts)| texts.settings().has_texts());
        FoundStored::new(near.finish()?, standing, is_estimated, room)
    }
}

/// Of the stored documents with some ids in each store, those that are similar to a text, each with the number of its store, the most
/// similar first. The features of the text are asked for where stored texts decide.
pub(crate) fn similar_stored<F: Fingerprint>(
    stores: &[SimilarStore<'_, F>],
    ids: &[Vec<u64>],
    sketched: &Sketched,
    features: &dyn Fn() -> Result<Vec<u64>>,
    least: f64,
) -> Result<Vec<(usize, SimilarDocument)>> {
    let mut all = Vec::new();
    for (at, ((store, texts), ids)) in stores.iter().zip(ids).enumerate() {
        let found = texts.similar_among(store, sketched, features, ids, least)?;
        all.extend(found.into_iter().map(|found| (at, found)));
    }
    // Of equally similar ones, those of the first store come first, and of these the smallest ids.
    all.sort_by(|(_, a), (_, b)| b.estimate.similarity.total_cmp(&a.estimate.similarity));
    Ok(all)
}

/// The documents of what may be similar, each once.
pub(crate) fn documents(likely: &Rows<Likely>) -> Result<impl Iterator<Item = Result<(u64, u32)>> + '_> {
    let mut likely: Cursor<_, Likely> = likely.cursor()?;
    Ok(std::iter::from_fn(move || {
        let next = likely.take().transpose()?;
        let document = match next {
            Ok((document, _)) => document,
            Err(error) => return Some(Err(error)),
        };
        loop {
            match likely.take_if(|&(other, _)| other == document) {
                Ok(Some(_)) => {}
                Ok(None) => return Some(Ok((document.into(), document))),
                Err(error) => return Some(Err(error)),
            }
        }
    }))
}
