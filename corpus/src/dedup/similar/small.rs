//! Small sets, compared by their features: all that are as similar as asked for are found.
//!
//! Two sets of x and y features that are at least s similar have s max(x, y) or more in common. So in any one order of all
//! features, the first x - ceil(s x) + 1 of the one and the first y - ceil(s y) + 1 of the other have a feature in common (S.
//! Chaudhuri, V. Ganti, R. Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE 2006; R. Bayardo, Y. Ma,
//! R. Srikant, "Scaling up all pairs similarity search", WWW 2007). The order begins with the rarest, which bring the fewest together.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::{Error, Result};
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

/// The most bytes of [`Rarity::of`].
const MOST: u64 = 2 << 20;

/// How often features come, about: several may share a counter, which is the same for all sets. Whatever it has counted, no pair is
/// missed as long as it has counted all sets that are joined, and is the same for all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rarity(Vec<u16>);

impl Rarity {
    /// Of about so many sets, in 2 MiB at most.
    pub fn of(sets: u64) -> Self {
        Rarity::new(sets.saturating_mul(SMALL.into()), MOST)
    }

    /// What [`Rarity::to_bytes`] has made; `None` for anything else.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (counters, []) = bytes.as_chunks() else { return None };
        let rarity = Rarity(counters.iter().map(|&counter| u16::from_le_bytes(counter)).collect());
        rarity.0.len().is_power_of_two().then_some(rarity)
    }

    /// All counters, to be sent.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|counter| counter.to_le_bytes()).collect()
    }

    /// Adds what another of the same size has counted: in any order, it is the same in the end.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if it has another size.
    pub fn merge(&mut self, other: &Rarity) -> Result<()> {
        if self.0.len() != other.0.len() {
            let (one, other) = (self.0.len(), other.0.len());
            return Err(Error::BadArgument(format!("rarities of {one} and {other} counters")));
        }
        self.0.iter_mut().zip(&other.0).for_each(|(counter, &more)| *counter = counter.saturating_add(more));
        Ok(())
    }

    /// Of so many features, in at most so many bytes, but for a few.
    pub(super) fn new(features: u64, memory: u64) -> Self {
        let most = (memory / 2).max(1 << 10);
        let counters = features.min(most).next_power_of_two();
        Rarity(vec![0; counters.clamp(1 << 10, 1 << most.ilog2()) as usize])
    }

    fn counter(&self, feature: u64) -> usize {
        (feature ^ feature >> 32) as usize & (self.0.len() - 1)
    }

    /// Counts the features of a set.
    pub fn add(&mut self, features: &[u64]) {
        for &feature in features {
            let counter = self.counter(feature);
            self.0[counter] = self.0[counter].saturating_add(1);
        }
    }

    /// The rarest feature that two ascending sets have both.
    pub(super) fn rarest_of_both(&self, x: &[u64], y: &[u64]) -> Option<u64> {
        let both = x.iter().filter(|feature| y.binary_search(feature).is_ok());
        both.map(|&feature| (self.0[self.counter(feature)], feature)).min().map(|(_, feature)| feature)
    }

    /// The rarest features of a set, of which another that is `least` similar has one too among its rarest; but for what comes
    /// once, and is in no other set.
    pub(super) fn rarest(&self, set: &[u64], least: f64) -> impl Iterator<Item = u64> + use<> {
        let mut ordered: Vec<(u16, u64)> =
            set.iter().map(|&feature| (self.0[self.counter(feature)], feature)).collect();
        ordered.sort_unstable();
        let common = (set.len() as f64 * least - 1e-9).ceil() as usize;
        ordered.truncate(set.len() + 1 - common.max(1));
        ordered.into_iter().filter(|&(count, _)| count > 1).map(|(_, feature)| feature)
    }
}

/// Whether two sets are at least `least` similar, and one is small.
pub(super) fn are_similar(x: &[u64], y: &[u64], least: f64) -> bool {
    let (one, two) = (x.len() as u32, y.len() as u32);
    one.min(two) < SMALL && may_be_similar(one, two, least) && jaccard(x, y) >= least
}

/// Finds the pairs of sets that are at least `least` similar and of which one is small. Returns how many were compared for that, and how
/// many of them are similar.
pub(super) fn join(
    sets: &Sets,
    sketches: &Sketches,
    least: f64,
    partners: &Partners,
    step: &Step<'_>,
) -> Result<(u64, u64)> {
    let members_of = |set: u32| sketches.members(sets.best(set as usize)).unwrap_or_default();
    let few: Vec<u32> =
        (0..sets.len() as u32).into_par_iter().filter(|&set| !members_of(set).is_empty()).collect();
    let total: usize = few.par_iter().map(|&set| members_of(set).len()).sum();
    let mut rarity = Rarity::new(total as u64, u64::MAX);
    few.iter().for_each(|&set| rarity.add(members_of(set)));
    step.add(0)?;
    let firsts = few
        .par_iter()
        .flat_map_iter(|&set| rarity.rarest(members_of(set), least).map(move |feature| (feature, set)));
    let mut firsts: Vec<(u64, u32)> = firsts.collect();
    firsts.par_sort_unstable();
    step.add(0)?;
    let shared: Vec<&[(u64, u32)]> =
        firsts.chunk_by(|a, b| a.0 == b.0).filter(|some| some.len() > 1).collect();
    let (compared, similar) = (AtomicU64::new(0), AtomicU64::new(0));
    shared.into_par_iter().try_for_each(|some| {
        let same: Vec<u32> = some.iter().map(|&(_, set)| set).collect();
        let mut found: Vec<Partner> = Vec::new();
        for &set in &same {
            let x = members_of(set);
            let wanted = partners.wanted(set, &same).0;
            for &other in wanted {
                if are_similar(x, members_of(other), least) {
                    found.push((set, other));
                }
            }
            compared.fetch_add(wanted.len() as u64, Ordering::Relaxed);
            step.add(wanted.len() as u64)?;
            if found.len() >= MUCH {
                partners.extend(&found);
                similar.fetch_add(found.len() as u64, Ordering::Relaxed);
                found.clear();
            }
        }
        partners.extend(&found);
        similar.fetch_add(found.len() as u64, Ordering::Relaxed);
        Ok::<(), Error>(())
    })?;
    Ok((compared.into_inner(), similar.into_inner()))
}
