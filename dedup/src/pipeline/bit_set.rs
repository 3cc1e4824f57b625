//! Bit set of fixed size that several threads can write at the same time.

use std::sync::atomic::{AtomicU64, Ordering};

/// Set of document numbers below a fixed limit. Several threads can add numbers through a shared reference.
#[derive(Debug)]
pub(crate) struct AtomicBitSet(Vec<AtomicU64>);

impl AtomicBitSet {
    /// Creates an empty set for numbers below `count`.
    pub(crate) fn new(count: usize) -> Self {
        AtomicBitSet((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(crate) fn set(&self, at: u32) {
        self.0[at as usize / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn contains(&self, at: u32) -> bool {
        self.0[at as usize / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Visits the numbers in the set in ascending order.
    pub(crate) fn ones(&self) -> impl Iterator<Item = u32> + '_ {
        let ones_of_word = |(at, word): (usize, &AtomicU64)| {
            let word = word.load(Ordering::Relaxed);
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (at * 64) as u32 + bit)
        };
        self.0.iter().enumerate().flat_map(ones_of_word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_marked() {
        let set = AtomicBitSet::new(200);
        let numbers = [0, 63, 64, 130, 199];
        numbers.iter().for_each(|&number| set.set(number));
        assert!(set.ones().eq(numbers));
        assert_eq!(set.count(), numbers.len());
        assert!(set.contains(63) && !set.contains(62));
    }
}
