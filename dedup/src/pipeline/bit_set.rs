//! A bit for each document, or for each set of them, which several threads set.

use std::sync::atomic::{AtomicU64, Ordering};

/// Documents or sets that are marked.
#[derive(Debug)]
pub(crate) struct Marks(Vec<AtomicU64>);

impl Marks {
    /// Of so many, none.
    pub(crate) fn new(count: usize) -> Self {
        Marks((0..count.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    pub(crate) fn set(&self, at: u32) {
        self.0[at as usize / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has(&self, at: u32) -> bool {
        self.0[at as usize / 64].load(Ordering::Relaxed) >> (at % 64) & 1 == 1
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(|word| word.load(Ordering::Relaxed).count_ones() as usize).sum()
    }

    /// Those that are marked, ascending.
    pub(crate) fn marked(&self) -> impl Iterator<Item = u32> + '_ {
        let of_word = |(at, word): (usize, &AtomicU64)| {
            let word = word.load(Ordering::Relaxed);
            (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| (at * 64) as u32 + bit)
        };
        self.0.iter().enumerate().flat_map(of_word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_marked() {
        let marks = Marks::new(200);
        let some = [0, 63, 64, 130, 199];
        some.iter().for_each(|&at| marks.set(at));
        assert!(marks.marked().eq(some));
        assert_eq!(marks.count(), some.len());
        assert!(marks.has(63) && !marks.has(62));
    }
}
