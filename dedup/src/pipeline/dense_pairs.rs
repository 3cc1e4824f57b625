//! Similar pairs of crowds: all of them, or for each set the most similar other one, or of those that are kept.

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::dense_groups::{Asked, Crowds};
use crate::pipeline::prefix_filter::{Index, Next, Space};
use crate::pipeline::representatives::Leaders;
use crate::rows::{Led, Near, Nearness, of_similarity};
use simstore_corpus::Step;

/// Sets that are looked at together.
const SETS: usize = 64;

/// Visits the similar pairs of members of crowds, the worse set first.
pub(crate) fn visit_pairs(
    crowds: &Crowds<'_>,
    crowded: &Marks,
    step: &Step<'_>,
    mut visitor: impl FnMut(Near) -> Result<()>,
) -> Result<()> {
    let least = of_similarity(crowds.rule.least);
    let mut index = Index::new(crowds);
    let mut sets = crowded.marked();
    loop {
        let some: Vec<u32> = sets.by_ref().take(SETS).collect();
        let Some(&last) = some.last() else { return Ok(()) };
        step.add(0)?;
        let asked = ask(crowds, some.into_iter().map(|set| (set, least)).collect(), &index, &mut visitor)?;
        for (at, one) in asked.iter().enumerate() {
            for other in &asked[..at] {
                crowds
                    .alike(one, other)
                    .map_or(Ok(()), |nearness| visitor((one.set, other.set, nearness)))?;
            }
            index.add(one, |_, _| {});
        }
        if index.is_full() {
            let mut after = crowded.marked().skip_while(|&set| set <= last);
            loop {
                let some: Vec<(u32, Nearness)> = after.by_ref().take(SETS).map(|set| (set, least)).collect();
                if some.is_empty() {
                    break;
                }
                step.add(0)?;
                ask(crowds, some, &index, &mut visitor)?;
            }
            index = Index::new(crowds);
        }
    }
}

/// Visits pairs of a represented member of crowds and a representative that is at least as similar to it as its own representative.
pub(crate) fn visit_nearest(
    crowds: &Crowds<'_>,
    crowded: &Marks,
    leaders: &Leaders,
    step: &Step<'_>,
    mut visitor: impl FnMut(Near) -> Result<()>,
) -> Result<()> {
    let mut standing = crowded.marked().filter(|&set| !leaders.is_led[set as usize]).peekable();
    while standing.peek().is_some() {
        let index = filled(crowds, &mut standing, step)?;
        let mut led = leaders.led.iter()?;
        loop {
            let mut some = Vec::new();
            while some.len() < SETS
                && let Some(row) = led.next()
            {
                let (set, _, nearness): Led = row?;
                if crowded.has(set) {
                    some.push((set, nearness));
                }
            }
            if some.is_empty() {
                break;
            }
            step.add(0)?;
            ask(crowds, some, &index, &mut visitor)?;
        }
    }
    Ok(())
}

/// Visits for each member of crowds the most similar other member: of several, the first. If all members are too much for the memory,
/// they are divided, and the most similar member of each part is visited.
pub(crate) fn visit_most_similar(
    crowds: &Crowds<'_>,
    crowded: &Marks,
    step: &Step<'_>,
    mut visitor: impl FnMut(Near) -> Result<()>,
) -> Result<()> {
    let least = of_similarity(crowds.rule.least);
    let mut members = crowded.marked().peekable();
    while members.peek().is_some() {
        let index = filled(crowds, &mut members, step)?;
        let find = |space: &mut Space, set: u32| {
            let (asked, mut found) = (crowds.ask(set)?, None);
            index.visit_similar(&asked, least, space, &mut |at, nearness| {
                found = Some((set, index.set(at), nearness));
                Next::Above(nearness)
            });
            Ok(found)
        };
        let mut sets = crowded.marked();
        loop {
            let some: Vec<u32> = sets.by_ref().take(SETS).collect();
            if some.is_empty() {
                break;
            }
            step.add(0)?;
            let found: Vec<Option<Near>> =
                some.into_par_iter().map_init(Space::default, find).collect::<Result<_>>()?;
            found.into_iter().flatten().try_for_each(&mut visitor)?;
        }
    }
    Ok(())
}

/// Index of the next sets, as many as the memory holds.
fn filled<'a>(
    crowds: &'a Crowds<'a>,
    sets: &mut impl Iterator<Item = u32>,
    step: &Step<'_>,
) -> Result<Index<'a>> {
    let mut index = Index::new(crowds);
    while !index.is_full() {
        let some: Vec<u32> = sets.by_ref().take(SETS).collect();
        if some.is_empty() {
            break;
        }
        step.add(0)?;
        let asked: Vec<Asked> = some.into_par_iter().map(|set| crowds.ask(set)).collect::<Result<_>>()?;
        asked.iter().for_each(|one| index.add(one, |_, _| {}));
    }
    Ok(index)
}

/// Visits what is in an index, and as similar to some sets as is said.
fn ask(
    crowds: &Crowds<'_>,
    some: Vec<(u32, Nearness)>,
    index: &Index<'_>,
    visitor: &mut impl FnMut(Near) -> Result<()>,
) -> Result<Vec<Asked>> {
    let find = |space: &mut Space, (set, least): (u32, Nearness)| {
        let (asked, mut found) = (crowds.ask(set)?, Vec::new());
        index.visit_similar(&asked, least, space, &mut |at, nearness| {
            found.push((set, index.set(at), nearness));
            Next::All
        });
        Ok((asked, found))
    };
    let found: Vec<(Asked, Vec<Near>)> =
        some.into_par_iter().map_init(Space::default, find).collect::<Result<_>>()?;
    found
        .into_iter()
        .map(|(asked, pairs)| {
            pairs.into_iter().try_for_each(&mut *visitor)?;
            Ok(asked)
        })
        .collect()
}
