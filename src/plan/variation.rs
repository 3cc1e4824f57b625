//! Which bits of a sample vary, and which go together.

use crate::fingerprint::Fingerprint;

/// Below this a bit hardly tells fingerprints apart.
const QUIET: f64 = 0.05;

/// How bits vary by themselves, and how far one follows from another.
pub(super) struct Variation {
    /// For each bit how often two fingerprints differ in it; 1 is half of all pairs, as often as can be.
    each: Vec<f64>,
    /// For each two bits the square of their correlation: 0 if they are independent, 1 if one follows from the other.
    together: Vec<Vec<f64>>,
}

impl Variation {
    pub(super) fn of<F: Fingerprint>(sample: &[F]) -> Variation {
        let column = |bit| -> Vec<u64> {
            let is_set = |x: &F| u64::from(*x & F::bit_mask(bit) != F::ZERO);
            let word = |values: &[F]| values.iter().fold(0, |word, value| word << 1 | is_set(value));
            sample.chunks(64).map(word).collect()
        };
        let columns: Vec<Vec<u64>> = (0..F::BITS).map(column).collect();
        let share = |a: &[u64], b: &[u64]| {
            let both: u32 = a.iter().zip(b).map(|(a, b)| (a & b).count_ones()).sum();
            f64::from(both) / sample.len().max(1) as f64
        };
        let set: Vec<f64> = columns.iter().map(|column| share(column, column)).collect();
        let spread = |bit: usize| set[bit] * (1.0 - set[bit]);
        let together = |i: usize, j: usize| {
            let covariance = share(&columns[i], &columns[j]) - set[i] * set[j];
            let scale = spread(i) * spread(j);
            if scale > 0.0 { (covariance * covariance / scale).min(1.0) } else { 0.0 }
        };
        let bits = 0..columns.len();
        Variation {
            each: bits.clone().map(|bit| 4.0 * spread(bit)).collect(),
            together: bits.clone().map(|i| bits.clone().map(|j| together(i, j)).collect()).collect(),
        }
    }

    fn each(&self, bit: u8) -> f64 {
        self.each[usize::from(bit)]
    }

    fn together(&self, a: u8, b: u8) -> f64 {
        self.together[usize::from(a)][usize::from(b)]
    }

    /// The bits of a prefix as probes should meet them: first as many as they look at, those that tell most.
    ///
    /// Ascending within each kind, as bits that stay beside one another are permuted together.
    pub(super) fn order(&self, prefix: &[u8], probed: usize) -> Vec<u8> {
        let mut left: Vec<(u8, f64)> = prefix.iter().map(|&bit| (bit, self.each(bit))).collect();
        left.sort_unstable_by_key(|&(bit, _)| bit);
        let mut first = Vec::new();
        while first.len() < probed.min(prefix.len()) {
            let Some(best) = (0..left.len()).rev().max_by(|&a, &b| left[a].1.total_cmp(&left[b].1)) else {
                break;
            };
            let (chosen, _) = left.remove(best);
            for (bit, worth) in &mut left {
                *worth = worth.min(self.each(*bit) * (1.0 - self.together(*bit, chosen)));
            }
            first.push(chosen);
        }
        first.sort_unstable();
        first.extend(self.quiet_first(left.into_iter().map(|(bit, _)| bit)));
        first
    }

    /// Bits that hardly vary before all others: what is the same in neighbours of a sorted table costs nothing as long
    /// as it comes before the first bit that differs, and a bit each behind it.
    pub(super) fn quiet_first(&self, bits: impl Iterator<Item = u8>) -> Vec<u8> {
        let mut bits: Vec<u8> = bits.collect();
        bits.sort_by_key(|&bit| (self.each(bit) >= QUIET, bit));
        bits
    }

    /// Deals bits to blocks that tell equally much. Bits that go together come into different blocks: few prefixes have
    /// both, and an error hits one.
    pub(super) fn deal(&self, bits: &[u8], count: usize) -> Vec<Vec<u8>> {
        let mut bits = bits.to_vec();
        bits.sort_by(|&a, &b| self.each(b).total_cmp(&self.each(a)));
        let mut blocks: Vec<Vec<u8>> = vec![Vec::new(); count];
        for bit in bits {
            let load = |block: &Vec<u8>| -> f64 {
                block.iter().map(|&other| QUIET + self.each(other) + self.together(bit, other)).sum()
            };
            if let Some(block) = blocks.iter_mut().min_by(|a, b| load(a).total_cmp(&load(b))) {
                block.push(bit);
            }
        }
        blocks.iter_mut().for_each(|block| block.sort_unstable());
        blocks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::sample::hash;

    /// Bits 0 to 7 the same in all, bit 9 a copy of bit 8, the others random.
    fn variation() -> Variation {
        let sample: Vec<u64> = (0..10_000_u64)
            .map(|i| {
                let value = hash(i) & u64::suffix_mask(56) & !u64::bit_mask(9);
                value | (value & u64::bit_mask(8)) >> 1
            })
            .collect();
        Variation::of(&sample)
    }

    #[test]
    fn what_varies_and_goes_together() {
        let variation = variation();
        assert!((0..8).all(|bit| variation.each(bit) == 0.0));
        assert!((8..64).all(|bit| variation.each(bit) > 0.99));
        assert!(variation.together(8, 9) > 0.999);
        assert!(variation.together(9, 10) < 0.01);
        assert_eq!(variation.together(0, 10), 0.0);
    }

    #[test]
    fn what_tells_most_comes_first() {
        let variation = variation();
        let order = variation.order(&[1, 0, 9, 10, 8, 20, 21], 4);
        assert_eq!(order[..3].iter().filter(|&&bit| bit == 8 || bit == 9).count(), 1);
        assert_eq!(order[4..6], [0, 1]);
        assert_eq!(variation.order(&[9, 0, 8], 5), [0, 8, 9]);
    }

    #[test]
    fn blocks_are_dealt_evenly() {
        let bits: Vec<u8> = (0..64).collect();
        let blocks = variation().deal(&bits, 4);
        let mut all = blocks.concat();
        all.sort_unstable();
        assert_eq!(all, bits);
        assert!(blocks.iter().all(|block| !(block.contains(&8) && block.contains(&9))));
        let varying = |block: &Vec<u8>| block.iter().filter(|&&bit| bit >= 8).count();
        assert!(blocks.iter().all(|block| (13..=15).contains(&varying(block))), "{blocks:?}");
    }
}
