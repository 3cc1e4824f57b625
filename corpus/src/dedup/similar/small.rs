//! Small sets, compared by their features: all that are as similar as asked for are found.
//!
//! Two sets of x and y features that are at least s similar have s max(x, y) or more in common. So in any one order of all
//! features, the first x - ceil(s x) + 1 of the one and the first y - ceil(s y) + 1 of the other have a feature in common (S.
//! Chaudhuri, V. Ganti, R. Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE 2006; R. Bayardo, Y. Ma,
//! R. Srikant, "Scaling up all pairs similarity search", WWW 2007). The order begins with the rarest, which bring the fewest together.

use rayon::prelude::*;
use simstore::Result;
use simstore_text::jaccard;

use super::super::sketches::Sketches;
use super::candidates::may_be_similar;
use super::choice::SMALL;
use super::partners::{Partner, Partners};
use super::sets::Sets;
use crate::watch::Step;

/// Pairs that are handed over together.
const MUCH: usize = 4096;

/// Sets of up to so many features are as similar as asked for to some that are small.
pub(in super::super) fn largest(least: f64) -> u32 {
    (f64::from(SMALL) / least).ceil() as u32
}

/// Finds the pairs of sets that are at least `least` similar and of which one is small.
pub(super) fn join(
    sets: &Sets,
    sketches: &Sketches,
    least: f64,
    partners: &Partners,
    step: &Step<'_>,
) -> Result<()> {
    let members_of = |set: u32| sketches.members(sets.best(set as usize)).unwrap_or_default();
    let few: Vec<u32> =
        (0..sets.len() as u32).into_par_iter().filter(|&set| !members_of(set).is_empty()).collect();
    let total: usize = few.par_iter().map(|&set| members_of(set).len()).sum();
    // How often features come, about: several may share a counter, which is the same for all sets.
    let slots = total.next_power_of_two().max(1 << 10);
    let slot = |feature: u64| (feature ^ feature >> 32) as usize & (slots - 1);
    let mut counts = vec![0_u16; slots];
    for &set in &few {
        for &member in members_of(set) {
            let count = &mut counts[slot(member)];
            *count = count.saturating_add(1);
        }
    }
    step.add(0)?;
    let firsts = few.par_iter().flat_map_iter(|&set| {
        let members = members_of(set);
        let mut ordered: Vec<(u16, u64)> =
            members.iter().map(|&member| (counts[slot(member)], member)).collect();
        ordered.sort_unstable();
        let common = (members.len() as f64 * least - 1e-9).ceil() as usize;
        ordered.truncate(members.len() + 1 - common.max(1));
        // What comes once is in no other set.
        ordered.into_iter().filter(|&(count, _)| count > 1).map(move |(_, member)| (member, set))
    });
    let mut firsts: Vec<(u64, u32)> = firsts.collect();
    firsts.par_sort_unstable();
    step.add(0)?;
    let shared: Vec<&[(u64, u32)]> =
        firsts.chunk_by(|a, b| a.0 == b.0).filter(|some| some.len() > 1).collect();
    shared.into_par_iter().try_for_each(|some| {
        let same: Vec<u32> = some.iter().map(|&(_, set)| set).collect();
        let mut found: Vec<Partner> = Vec::new();
        for &set in &same {
            let x = members_of(set);
            for &other in partners.wanted(set, &same) {
                let y = members_of(other);
                let (one, two) = (x.len() as u32, y.len() as u32);
                if one.min(two) < SMALL && may_be_similar(one, two, least) && jaccard(x, y) >= least {
                    found.push((set, other));
                }
            }
            step.add(0)?;
            if found.len() >= MUCH {
                partners.extend(&found);
                found.clear();
            }
        }
        partners.extend(&found);
        step.add(found.len() as u64)
    })
}
