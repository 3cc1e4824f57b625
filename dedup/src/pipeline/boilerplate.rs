//! Whether duplicates share boilerplate, what nearly all documents have, such as navigation of web pages or a template, rather
//! than a text of their own.

use std::collections::HashMap;

use serde::Serialize;
use simstore::Result;

use crate::pipeline::exact::Sets;
use crate::pipeline::verify::Compared;
use crate::rows::{Led, SketchRow};
use simstore_corpus::spill::Rows;

/// Documents, and duplicates, that are looked at.
const SAMPLE: usize = 64;
/// Of fewer documents, or duplicates, nothing is said.
const FEWEST_DOCUMENTS: usize = 20;
const FEWEST_DUPLICATES: usize = 5;
/// Longer documents are left out: they would take much memory.
const LONGEST: u32 = 1 << 16;

/// Duplicates that mostly share boilerplate with the document that is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Boilerplate {
    /// Duplicates that were looked at: some, evenly spread.
    pub looked_at: usize,
    /// Of these, the ones of which more than half of what they share with the kept document stands in nine of ten documents.
    pub mostly: usize,
}

impl Boilerplate {
    /// Whether half of the duplicates are so.
    pub(crate) fn is_worth_telling(self) -> bool {
        self.mostly > 0 && 2 * self.mostly >= self.looked_at
    }
}

/// Sets of documents to find the boilerplate by, evenly spread.
pub(crate) fn sample(sets: &Sets, sketches: &Rows<SketchRow>) -> Result<Vec<u32>> {
    let mut sample = Vec::new();
    for set in spread(sets.len()) {
        let set = set as u32;
        if is_short(set, sets, sketches)? {
            sample.push(set);
        }
    }
    Ok(sample)
}

fn is_short(set: u32, sets: &Sets, sketches: &Rows<SketchRow>) -> Result<bool> {
    Ok(sketches.get(sets.best(set)? as usize)?.features <= LONGEST)
}

/// So many numbers below `count` at most, evenly spread.
fn spread(count: usize) -> impl Iterator<Item = usize> {
    let some = count.min(SAMPLE);
    (0..some).map(move |at| at * count / some)
}

/// Looks at some of what another set stands for, by the boilerplate of a sample whose features are there. `None` if there is too little of
/// either.
pub(crate) fn boilerplate(
    sample: &[u32],
    led: &Rows<Led>,
    compared: &Compared<'_>,
    sketches: &Rows<SketchRow>,
) -> Result<Option<Boilerplate>> {
    if sample.len() < FEWEST_DOCUMENTS || led.len() < FEWEST_DUPLICATES {
        return Ok(None);
    }
    let mut counts: HashMap<u64, usize> = HashMap::new();
    for &set in sample {
        for feature in compared.features(set)? {
            *counts.entry(feature).or_default() += 1;
        }
    }
    counts.retain(|_, count| *count * 10 >= sample.len() * 9);
    let mut found = Boilerplate { looked_at: 0, mostly: 0 };
    if counts.is_empty() {
        return Ok(None);
    }
    for at in spread(led.len()) {
        let (set, leader, _) = led.get(at)?;
        if !is_short(set, compared.sets, sketches)? || !is_short(leader, compared.sets, sketches)? {
            continue;
        }
        let of_leader = compared.features(leader)?;
        let shared =
            compared.features(set)?.into_iter().filter(|feature| of_leader.binary_search(feature).is_ok());
        let (common, own): (Vec<u64>, Vec<u64>) = shared.partition(|feature| counts.contains_key(feature));
        found.looked_at += 1;
        found.mostly += usize::from(common.len() > own.len());
    }
    Ok(Some(found))
}
