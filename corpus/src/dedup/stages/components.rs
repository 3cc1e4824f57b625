//! What a chain of near sets connects.

use bitvec::vec::BitVec;
use simstore::Result;
use simstore::join::Components;
use xxhash_rust::xxh3::Xxh3;

use super::super::model::{Led, Near, Nearness};
use super::super::room::Room;
use super::stars::Leaders;
use crate::spill::{Cursor, Rows};
use crate::watch::Step;

/// The first set of each set's component, for sets that are in one with a better set; in order.
pub(crate) fn components(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    sets: usize,
    room: &Room,
    step: &Step<'_>,
) -> Result<Rows<(u32, u32)>> {
    if sets as u64 * size_of::<u32>() as u64 > room.share() {
        return in_rounds(pairs, room, step);
    }
    let mut components = Components::new(sets);
    for (at, pair) in pairs.enumerate() {
        let (a, b) = pair?;
        components.connect(a as usize, b as usize);
        if at % 1024 == 0 {
            step.add(0)?;
        }
    }
    let mut firsts = room.rows();
    for set in 0..sets {
        let first = components.first(set);
        if first != set {
            firsts.push((set as u32, first as u32))?;
        }
    }
    firsts.finish()
}

/// The same on disk: in each round, every set is connected to the first of those that it is connected with, and these with that
/// (R. Kiveris et al., "Connected Components in MapReduce and Beyond", SoCC 2014). It ends when nothing changes.
fn in_rounds(
    pairs: impl Iterator<Item = Result<(u32, u32)>>,
    room: &Room,
    step: &Step<'_>,
) -> Result<Rows<(u32, u32)>> {
    let mut edges = room.sorter::<(u32, u32)>();
    for pair in pairs {
        let (a, b) = pair?;
        edges.push((a.max(b), a.min(b)))?;
    }
    let (mut edges, mut check) = (Rows::sorted(edges)?, 0);
    loop {
        step.add(0)?;
        // Large stars: of each set and all that it is connected with, the greater ones go to the least.
        let mut both = room.sorter::<(u32, u32)>();
        for edge in edges.iter()? {
            let (a, b) = edge?;
            both.push((a, b))?;
            both.push((b, a))?;
        }
        let mut large = room.sorter::<(u32, u32)>();
        stars(
            Cursor::new(both.finish()?),
            |set, least, other| {
                if other > set { large.push((other, least)) } else { Ok(()) }
            },
        )?;
        // Small stars: the smaller ones, and the set itself, go to the least.
        let mut small = room.sorter::<(u32, u32)>();
        stars(Cursor::new(large.finish()?), |set, least, other| {
            if other == least { small.push((set, least)) } else { small.push((other, least)) }
        })?;
        let (mut rows, mut last, mut hash) = (room.rows(), None, Xxh3::new());
        for edge in small.finish()? {
            let edge = edge?;
            if last.replace(edge) != Some(edge) {
                hash.update(&edge.0.to_le_bytes());
                hash.update(&edge.1.to_le_bytes());
                rows.push(edge)?;
            }
        }
        edges = rows.finish()?;
        if std::mem::replace(&mut check, hash.digest()) == hash.digest() {
            return Ok(edges);
        }
    }
}

/// Visits each set of some edges, the least of itself and what it is connected with, and each of these once.
fn stars(
    mut edges: Cursor<impl Iterator<Item = Result<(u32, u32)>>, (u32, u32)>,
    mut visitor: impl FnMut(u32, u32, u32) -> Result<()>,
) -> Result<()> {
    while let Some((set, first)) = edges.take()? {
        // Edges are in order, so that the first is the least.
        let least = set.min(first);
        visitor(set, least, first)?;
        let mut last = first;
        while let Some((_, other)) = edges.take_if(|&(next, _)| next == set)? {
            if std::mem::replace(&mut last, other) != other {
                visitor(set, least, other)?;
            }
        }
    }
    Ok(())
}

/// The first set of each component stands for the others, each of which has the nearness that the pair has, or that is told.
pub(crate) fn leaders(
    firsts: &Rows<(u32, u32)>,
    pairs: &Rows<Near>,
    sets: usize,
    room: &Room,
    nearness: impl Fn(u32, u32) -> Result<Nearness>,
) -> Result<Leaders> {
    let (mut led, mut is_led) = (room.rows(), BitVec::repeat(false, sets));
    let mut pairs = pairs.cursor()?;
    for row in firsts.iter()? {
        let (set, first) = row?;
        while pairs.take_if(|&(a, b, _)| (a, b) < (set, first))?.is_some() {}
        let known = pairs.take_if(|&(a, b, _)| (a, b) == (set, first))?.map(|(.., nearness)| nearness);
        let row: Led = (set, first, known.map_or_else(|| nearness(set, first), Ok)?);
        is_led.set(set as usize, true);
        led.push(row)?;
    }
    Ok(Leaders { led: led.finish()?, is_led })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::output::Unfinished;
    use crate::spill::{Budget, Temporary};

    proptest! {
        #[test]
        fn on_disk_it_is_the_same(edges in prop::collection::vec((0_u32..60, 0_u32..60), 0..120), chain in 0_u32..60) {
            let folder = tempfile::tempdir().unwrap();
            let temporary = Temporary::new(Some(folder.path()), &Unfinished::default(), &()).unwrap();
            let step = Step::new(&(), "sets");
            let chain = (1..chain).map(|set| (set, set - 1));
            let edges: Vec<(u32, u32)> = edges.into_iter().filter(|(a, b)| a != b).chain(chain).collect();
            let find = |memory: u64| {
                let room = Room { budget: Budget::new(Some(memory)), temporary: temporary.clone(), parts: None };
                let firsts = components(edges.iter().copied().map(Ok), 60, &room, &step).unwrap();
                firsts.iter().unwrap().collect::<Result<Vec<_>>>().unwrap()
            };
            prop_assert_eq!(find(1 << 30), find(0));
        }
    }
}
