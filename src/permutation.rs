//! Permutations of the bits of a fingerprint.

use crate::error::{Error, Result};
use crate::fingerprint::Fingerprint;

/// A reordering of the bits of a fingerprint that brings a table's prefix bits to the front.
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
    /// Bits that move by the same distance move together: a mask and a rotation to the left.
    forward: Vec<(F, u32)>,
    backward: Vec<(F, u32)>,
}

impl<F: Fingerprint> Permutation<F> {
    /// The permutation whose bit `i` is the original's bit `sources[i]`; bit 0 is the most significant.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the sources are not each of the fingerprint's bits once.
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
            match forward.iter_mut().find(|part| part.1 == rotation) {
                Some(part) => part.0 = part.0 | bit,
                None => forward.push((bit, rotation)),
            }
        }
        let backward =
            forward.iter().map(|&(mask, by)| (mask.rotate_left(by), (F::BITS - by) % F::BITS)).collect();
        Ok(Permutation { sources, forward, backward })
    }

    /// The permutation that moves nothing.
    pub fn identity() -> Self {
        let sources = (0..F::BITS as u8).collect();
        Permutation { sources, forward: vec![(F::MAX, 0)], backward: vec![(F::MAX, 0)] }
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        self.forward == [(F::MAX, 0)]
    }

    /// For each bit of the permuted fingerprint, the original's bit that it is.
    pub fn sources(&self) -> &[u8] {
        &self.sources
    }

    /// The permuted fingerprint.
    #[inline]
    pub fn apply(&self, fingerprint: F) -> F {
        rotate_parts(&self.forward, fingerprint)
    }

    /// The original of a permuted fingerprint.
    #[inline]
    pub fn invert(&self, permuted: F) -> F {
        rotate_parts(&self.backward, permuted)
    }
}

#[inline(always)]
fn rotate_parts<F: Fingerprint>(parts: &[(F, u32)], value: F) -> F {
    parts.iter().fold(F::ZERO, |all, &(mask, by)| all | (value & mask).rotate_left(by))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Bit by bit, as the definition says.
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
    fn what_is_no_permutation_is_refused() {
        assert!(Permutation::<u64>::new(0..63).is_err());
        assert!(Permutation::<u64>::new(0..65).is_err());
        assert!(Permutation::<u64>::new((0..63).chain([0])).is_err());
        assert!(Permutation::<u64>::new((0..63).chain([200])).is_err());
        assert!(Permutation::<u128>::new(0..64).is_err());
        assert!(Permutation::<u64>::identity().is_identity());
        assert!(!Permutation::<u64>::new((1..64).chain([0])).unwrap().is_identity());
    }
}
