//! Which small sets of a corpus on disk are similar to another, by their rarest features: in parts by the hash of these.

use rayon::prelude::*;
use simstore::Result;

use super::super::corpus::Room;
use super::super::sketch_file::{SketchFile, push_members, read_members};
use super::likely::{create_parts, parts_for};
use super::marks::Marks;
use super::small::{Rarity, are_similar};
use crate::spill::{SpillFile, SpillWriter};
use crate::watch::Step;

/// Bytes of memory for a set in a part, besides its features: the document, and where these are.
const BYTES_OF_A_SET: u64 = 32;
/// The same for a feature by which it is found.
const BYTES_OF_A_FIRST: u64 = 16;
/// Bytes that are read at once of a part.
const BUFFER: usize = 1 << 18;

/// Marks the documents of sets that are at least `least` similar to another, if one of the two is small.
pub(super) fn find(
    file: &SketchFile,
    firsts: &Marks,
    likely: &Marks,
    least: f64,
    room: &Room,
    memory: u64,
    step: &Step<'_>,
) -> Result<()> {
    let mut rarity = Rarity::new(file.members(), memory / 8);
    file.visit_few(|document, members| {
        if firsts.has(document) {
            rarity.add(members);
        }
        Ok(())
    })?;
    // Each is in as many parts as it has features by which it is found, at most.
    let mut whole = 0;
    file.visit_few(|document, members| {
        if firsts.has(document) {
            let copies = rarity.rarest(members, least).count() as u64;
            whole += copies * (BYTES_OF_A_SET + BYTES_OF_A_FIRST + 8 * members.len() as u64);
        }
        Ok(())
    })?;
    if whole == 0 {
        return Ok(());
    }
    step.add(0)?;
    let parts = parts_for(whole, memory / 2, room)?;
    let part_of = |feature: u64| (feature.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % parts;
    let mut files = create_parts(room, parts as usize)?;
    let mut of_set = Vec::new();
    file.visit_few(|document, members| {
        if firsts.has(document) {
            of_set.clear();
            of_set.extend(rarity.rarest(members, least).map(part_of));
            of_set.sort_unstable();
            of_set.dedup();
            for &part in &of_set {
                push_members(&mut files[part as usize], document, members)?;
            }
        }
        Ok(())
    })?;
    let files: Vec<SpillFile> = files.into_iter().map(SpillWriter::finish).collect::<Result<_>>()?;
    for (part, file) in (0..).zip(files) {
        let is_here = |feature: u64| part_of(feature) == part;
        join(file, is_here, &rarity, likely, least, step)?;
    }
    Ok(())
}

/// Joins the sets of a part by the features that are of this part.
fn join(
    file: SpillFile,
    is_here: impl Fn(u64) -> bool + Sync,
    rarity: &Rarity,
    likely: &Marks,
    least: f64,
    step: &Step<'_>,
) -> Result<()> {
    let (mut all, mut sets) = (Vec::new(), Vec::new());
    let mut reader = file.read_once(BUFFER)?;
    while let Some((document, members)) = read_members(&mut reader)? {
        let start = all.len();
        all.extend_from_slice(&members);
        sets.push((document, start..all.len()));
    }
    drop(reader);
    let members_of = |set: u32| &all[sets[set as usize].1.clone()];
    let document_of = |set: u32| sets[set as usize].0;
    let mut firsts: Vec<(u64, u32)> = (0..sets.len() as u32)
        .into_par_iter()
        .flat_map_iter(|set| {
            let here = rarity.rarest(members_of(set), least).filter(|&feature| is_here(feature));
            here.map(move |feature| (feature, set)).collect::<Vec<_>>()
        })
        .collect();
    firsts.par_sort_unstable();
    step.add(0)?;
    let shared: Vec<&[(u64, u32)]> =
        firsts.chunk_by(|a, b| a.0 == b.0).filter(|some| some.len() > 1).collect();
    shared.into_par_iter().try_for_each(|same| {
        let open = same.iter().map(|&(_, set)| set).filter(|&set| !likely.has(document_of(set)));
        let mut open: Vec<u32> = open.collect();
        for &(_, set) in same {
            if open.is_empty() {
                break;
            }
            open.retain(|&other| {
                let is_similar = other != set && are_similar(members_of(set), members_of(other), least);
                if is_similar {
                    likely.set(document_of(set));
                    likely.set(document_of(other));
                }
                !is_similar
            });
        }
        step.add(same.len() as u64)
    })
}
