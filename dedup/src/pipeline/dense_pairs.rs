//! Similar pairs of crowds: all pairs, the pairs with representatives, or for each set the pair with the most similar other set.

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::dense_groups::{Asked, Crowds};
use crate::pipeline::prefix_filter::{Index, Next, Space};
use crate::pipeline::representatives::Leaders;
use crate::rows::{Near, Nearness, of_similarity};
use simstore_corpus::Step;

/// Sets of a batch.
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
    for some in batches(crowded.marked(), step) {
        let some = some?;
        let last = some.last().copied();
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
            let after = crowded.marked().skip_while(|&set| Some(set) <= last);
            for some in batches(after.map(|set| (set, least)), step) {
                ask(crowds, some?, &index, &mut visitor)?;
            }
            index = Index::new(crowds);
        }
    }
    Ok(())
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
        let led = leaders.led.iter()?.filter_map(|row| match row {
            Ok((set, _, nearness)) => crowded.has(set).then_some(Ok((set, nearness))),
            Err(error) => Some(Err(error)),
        });
        for some in batches(led, step) {
            let some = some?.into_iter().collect::<Result<_>>()?;
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
        for some in batches(crowded.marked(), step) {
            let found: Vec<Option<Near>> =
                some?.into_par_iter().map_init(Space::default, find).collect::<Result<_>>()?;
            found.into_iter().flatten().try_for_each(&mut visitor)?;
        }
    }
    Ok(())
}

/// Batches of sets that are compared in parallel. An item is an error if the run is cancelled.
fn batches<T>(mut sets: impl Iterator<Item = T>, step: &Step<'_>) -> impl Iterator<Item = Result<Vec<T>>> {
    std::iter::from_fn(move || {
        let some: Vec<T> = sets.by_ref().take(SETS).collect();
        if some.is_empty() { None } else { Some(step.add(0).map(|()| some)) }
    })
}

/// Index of the next sets, as many as the memory holds.
fn filled<'a>(
    crowds: &'a Crowds<'a>,
    sets: &mut impl Iterator<Item = u32>,
    step: &Step<'_>,
) -> Result<Index<'a>> {
    let mut index = Index::new(crowds);
    let mut sets = batches(sets, step);
    while !index.is_full()
        && let Some(some) = sets.next()
    {
        let asked: Vec<Asked> = some?.into_par_iter().map(|set| crowds.ask(set)).collect::<Result<_>>()?;
        asked.iter().for_each(|one| index.add(one, |_, _| {}));
    }
    Ok(index)
}

/// Visits the pairs of some sets with sets of the index, if they have the least nearness of the set.
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
