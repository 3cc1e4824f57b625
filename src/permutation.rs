//! Permutations of the bits of a fingerprint.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// A reordering of the bits of a fingerprint. Each table of a store has one, and sorts the reordered fingerprints. Then
/// the bits that came to the front are the table's prefix: fingerprints that agree in these bits are contiguous.
///
/// ```
/// use simstore::raw::Permutation;
///
/// let halves = Permutation::<u64>::new((32..64).chain(0..32))?;
/// assert_eq!(halves.apply(0x0123_4567_89ab_cdef), 0x89ab_cdef_0123_4567);
/// assert_eq!(halves.invert(halves.apply(42)), 42);
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permutation<F> {
    sources: Vec<u8>,
    /// Steps of [`Permutation::apply`], each a mask and a left rotation in bits. Bits that move by the same
    /// distance share one step.
    forward: Vec<(F, u32)>,
    /// Steps of [`Permutation::invert`], each a mask and a left rotation in bits.
    backward: Vec<(F, u32)>,
}

impl<F: Fingerprint> Permutation<F> {
    /// Creates the permutation that moves bit `sources[i]` of the original to bit `i`. Bit 0 is the most
    /// significant.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if `sources` does not have each bit of the fingerprint exactly once.
    pub fn new(sources: impl IntoIterator<Item = u8>) -> Result<Self> {
        let sources: Vec<u8> = sources.into_iter().collect();
        let mut seen = F::ZERO;
        for &source in sources.iter().filter(|&&source| u32::from(source) < F::BITS) {
            seen = seen | F::bit_mask(u32::from(source));
        }
        if sources.len() != F::BITS as usize || seen != F::MAX {
            return Err(Error::BadArgument(format!(
                "a permutation of {} bits names each of them once, this one does not: {sources:?}",
                F::BITS
            )));
        }
        let mut forward: Vec<(F, u32)> = Vec::new();
        for (target, &source) in sources.iter().enumerate() {
            let rotation = (F::BITS + u32::from(source) - target as u32) % F::BITS;
            let bit = F::bit_mask(u32::from(source));
            match forward.iter_mut().find(|step| step.1 == rotation) {
                Some(step) => step.0 = step.0 | bit,
                None => forward.push((bit, rotation)),
            }
        }
        let backward =
            forward.iter().map(|&(mask, by)| (mask.rotate_left(by), (F::BITS - by) % F::BITS)).collect();
        Ok(Permutation { sources, forward, backward })
    }

    /// Returns the permutation that leaves all bits in place.
    pub fn identity() -> Self {
        let sources = (0..F::BITS as u8).collect();
        Permutation { sources, forward: vec![(F::MAX, 0)], backward: vec![(F::MAX, 0)] }
    }

    /// Whether the permutation leaves all bits in place.
    pub fn is_identity(&self) -> bool {
        self.forward == [(F::MAX, 0)]
    }

    /// Original position of each bit of the permuted fingerprint. Bit 0 is the most significant.
    pub fn sources(&self) -> &[u8] {
        &self.sources
    }

    /// Permutes a fingerprint.
    #[inline]
    pub fn apply(&self, fingerprint: F) -> F {
        rotate_masked(&self.forward, fingerprint)
    }

    /// Restores the original of a permuted fingerprint.
    #[inline]
    pub fn invert(&self, permuted: F) -> F {
        rotate_masked(&self.backward, permuted)
    }
}

#[inline(always)]
fn rotate_masked<F: Fingerprint>(steps: &[(F, u32)], value: F) -> F {
    steps.iter().fold(F::ZERO, |all, &(mask, by)| all | (value & mask).rotate_left(by))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Permutes a fingerprint one bit at a time, for comparison with the results of [`Permutation::apply`].
    fn plain<F: Fingerprint>(sources: &[u8], value: F) -> F {
        let mut permuted = F::ZERO;
        for (target, &source) in sources.iter().enumerate() {
            if value & F::bit_mask(u32::from(source)) != F::ZERO {
                permuted = permuted | F::bit_mask(target as u32);
            }
        }
        permuted
    }

    fn check<F: Fingerprint>(sources: &[u8], value: F) {
        let permutation = Permutation::<F>::new(sources.iter().copied()).unwrap();
        assert_eq!(permutation.apply(value), plain(sources, value));
        assert_eq!(permutation.invert(permutation.apply(value)), value);
        assert_eq!(permutation.sources(), sources);
    }

    proptest! {
        #[test]
        fn any_order_of_64(sources in Just((0..64).collect::<Vec<u8>>()).prop_shuffle(), value in any::<u64>()) {
            check(&sources, value);
        }

        #[test]
        fn any_order_of_128(sources in Just((0..128).collect::<Vec<u8>>()).prop_shuffle(), value in any::<u128>()) {
            check(&sources, value);
        }
    }

    #[test]
    fn invalid_permutations_are_refused() {
        assert!(Permutation::<u64>::new(0..63).is_err());
        assert!(Permutation::<u64>::new(0..65).is_err());
        assert!(Permutation::<u64>::new((0..63).chain([0])).is_err());
        assert!(Permutation::<u64>::new((0..63).chain([200])).is_err());
        assert!(Permutation::<u128>::new(0..64).is_err());
        assert!(Permutation::<u64>::identity().is_identity());
        assert!(!Permutation::<u64>::new((1..64).chain([0])).unwrap().is_identity());
    }
}
