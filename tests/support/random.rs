//! Pseudorandom numbers for tests and benches, the same on every run and every machine.
#![allow(dead_code, reason = "some users need only a part of this file")]

/// Returns the next number of `SplitMix64` and updates its state. Source: G. L. Steele Jr., D. Lea, C. H. Flood, "Fast
/// splittable pseudorandom number generators", OOPSLA 2014.
pub(crate) fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

/// A `SplitMix64` generator of random numbers. The field is its state, at first the seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// Returns a hash of `number`: the first random number of a generator with this seed.
    pub(crate) fn hash(number: u64) -> u64 {
        Random(number).next()
    }

    pub(crate) fn next(&mut self) -> u64 {
        random(&mut self.0)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns a random index below `len`.
    pub(crate) fn index(&mut self, len: usize) -> usize {
        self.below(len as u64) as usize
    }
}
