//! Similar pairs of crowds: all pairs, the pairs with representatives, or for each set the pair with the most similar other set.

use rayon::prelude::*;
use simstore::Result;

use crate::pipeline::bit_set::Marks;
use crate::pipeline::dense_groups::{Asked, Crowds, batches};
use crate::pipeline::prefix_filter::{Index, UNCHANGED};
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
    for some in batches(crowded.marked().map(|set| (set, least)), SETS, step) {
        let some = some?;
        let last = some.last().copied();
        let asked = ask(some, &index, &mut visitor)?;
        for (at, one) in asked.iter().enumerate() {
            for other in &asked[..at] {
                crowds
                    .alike(one, other)
                    .map_or(Ok(()), |nearness| visitor((one.set, other.set, nearness)))?;
            }
            index.add(one, |_, _| {});
        }
        if index.is_full() {
            let after = crowded.marked().map(|set| (set, least)).skip_while(|&one| Some(one) <= last);
            for some in batches(after, SETS, step) {
                ask(some?, &index, &mut visitor)?;
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
        for some in batches(led, SETS, step) {
            ask(some?.into_iter().collect::<Result<_>>()?, &index, &mut visitor)?;
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
        for some in batches(crowded.marked().map(|set| (set, least)), SETS, step) {
            let found = index.search(some?, |nearness| nearness + 1)?;
            found.into_iter().filter_map(|(_, mut found)| found.pop()).try_for_each(&mut visitor)?;
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
    let mut sets = batches(sets, SETS, step);
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
    some: Vec<(u32, Nearness)>,
    index: &Index<'_>,
    visitor: &mut impl FnMut(Near) -> Result<()>,
) -> Result<Vec<Asked>> {
    let found = index.search(some, |_| UNCHANGED)?;
    found
        .into_iter()
        .map(|(asked, pairs)| {
            pairs.into_iter().try_for_each(&mut *visitor)?;
            Ok(asked)
        })
        .collect()
}
