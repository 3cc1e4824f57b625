//! Sketches: several simhashes of one set, by which similar sets are found.

use std::array;

use simstore::Fingerprint;
use xxhash_rust::xxh3::Xxh3;

use crate::{Profile, Simhash};

/// The most sketches of a set.
pub const MAX_SKETCHES: usize = 16;

/// Sketches that are made together: so many 64-bit lanes are one vector register.
const LANES: usize = 4;
/// Enough for sets of 2^32 members.
const PLANES: usize = 33;

/// The sketches of a set of 64-bit hashes, as many as `sketches` has room for: unweighted simhashes that are independent
/// of each other.
///
/// Each bit of a sketch is one where more than half of the members have that bit set in their word for it. For the first
/// sketch that word is the hash itself, so that it is the [simhash](fn@crate::simhash) of the members; for the others it is
/// the first, second, ... output of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number
/// generators", OOPSLA 2014), seeded with the hash. Of no members it is 0.
///
/// ```
/// use simstore_text::{Profile, Simhash, sketch};
///
/// let profile = Profile::shingles();
/// let text = "To be, or not to be, that is the question";
/// let mut sketches = [0; 4];
/// sketch(&profile.feature_set(text), &mut sketches);
/// assert_eq!(profile.fingerprint::<u64>(text).unwrap().fingerprint, sketches[0]);
/// ```
pub fn sketch(members: &[u64], sketches: &mut [u64]) {
    for (part, chunk) in sketches.chunks_mut(LANES).enumerate() {
        let lanes = sketch_lanes(members, part * LANES);
        chunk.copy_from_slice(&lanes[..chunk.len()]);
    }
}

type Lanes = [u64; LANES];

/// The word of a member for the sketch of a number.
#[inline(always)]
fn word(member: u64, sketch: usize) -> u64 {
    if sketch == 0 {
        return member;
    }
    let mut word = member.wrapping_add((sketch as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What tells a set from others: the sum of a hash of each member.
pub(crate) fn sum(members: &[u64]) -> u64 {
    members.iter().fold(0, |sum, &member| sum.wrapping_add(word(member, MAX_SKETCHES)))
}

/// Tells a set of features from all others: a hash of their number, of their [sum](Sketched::sum) and of the sketches.
pub fn digest(features: u32, sum: u64, sketches: &[u64]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&features.to_le_bytes());
    for word in [sum].iter().chain(sketches) {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

/// What a store keeps of a member by which a small set is found: spread over all numbers, whatever the members are.
pub(crate) fn key(member: u64) -> u64 {
    word(member, MAX_SKETCHES + 1)
}

/// Adds three numbers of one bit in each position: the sum's low bit, and its high bit.
#[inline(always)]
fn add(a: Lanes, b: Lanes, c: Lanes) -> (Lanes, Lanes) {
    let half: Lanes = array::from_fn(|lane| a[lane] ^ b[lane]);
    (
        array::from_fn(|lane| half[lane] ^ c[lane]),
        array::from_fn(|lane| (a[lane] & b[lane]) | (half[lane] & c[lane])),
    )
}

/// The sketches from `first` on. Members are counted for all bit positions at once: `planes[i]` holds bit i of each count.
/// Eight of them are added up before one carry goes on to the higher planes (W. Mula, N. Kurz, D. Lemire, "Faster population
/// counts using AVX2 instructions", 2018).
fn sketch_lanes(members: &[u64], first: usize) -> Lanes {
    let mut planes = [[0; LANES]; PLANES];
    let words = |member: u64| -> Lanes { array::from_fn(|lane| word(member, first + lane)) };
    let (eights, rest) = members.as_chunks::<8>();
    for eight in eights {
        let w: [Lanes; 8] = array::from_fn(|i| words(eight[i]));
        let (ones, twos_a) = add(planes[0], w[0], w[1]);
        let (ones, twos_b) = add(ones, w[2], w[3]);
        let (twos, fours_a) = add(planes[1], twos_a, twos_b);
        let (ones, twos_a) = add(ones, w[4], w[5]);
        let (ones, twos_b) = add(ones, w[6], w[7]);
        let (twos, fours_b) = add(twos, twos_a, twos_b);
        let (fours, carry) = add(planes[2], fours_a, fours_b);
        (planes[0], planes[1], planes[2]) = (ones, twos, fours);
        carry_up(&mut planes[3..], carry);
    }
    rest.iter().for_each(|&member| carry_up(&mut planes, words(member)));
    more_than(&planes, members.len() as u64 / 2)
}

#[inline(always)]
fn carry_up(planes: &mut [Lanes], mut carry: Lanes) {
    for plane in planes {
        if carry == [0; LANES] {
            return;
        }
        let next: Lanes = array::from_fn(|lane| plane[lane] & carry[lane]);
        *plane = array::from_fn(|lane| plane[lane] ^ carry[lane]);
        carry = next;
    }
}

/// Where the counts are above a number.
fn more_than(planes: &[Lanes; PLANES], number: u64) -> Lanes {
    let (mut above, mut equal) = ([0; LANES], [u64::MAX; LANES]);
    for (bit, plane) in planes.iter().enumerate().rev() {
        let wanted = if number >> bit & 1 == 1 { u64::MAX } else { 0 };
        for lane in 0..LANES {
            above[lane] |= equal[lane] & plane[lane] & !wanted;
            equal[lane] &= !(plane[lane] ^ wanted);
        }
    }
    above
}

/// What is kept of a text to find similar ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketched {
    /// The [sketches](fn@sketch) of its features.
    pub sketches: Box<[u64]>,
    /// Number of different features, at least 1.
    pub features: u32,
    /// Tells the set of features from others: the sum of a hash of each.
    pub sum: u64,
    /// All features, ascending, if they are few.
    pub members: Option<Box<[u64]>>,
}

impl Sketched {
    /// Tells the set of features from all others.
    ///
    /// ```
    /// use simstore_text::{Profile, Sketcher};
    ///
    /// let sketcher = Sketcher::new(Profile::shingles(), 8, 32);
    /// let digest = |text| sketcher.sketch(text).unwrap().digest();
    /// assert_eq!(digest("To be, or not to be"), digest("to be or NOT to be!"));
    /// assert_ne!(digest("To be, or not to be"), digest("not to be, or to be"));
    /// ```
    pub fn digest(&self) -> u128 {
        digest(self.features, self.sum, &self.sketches)
    }

    /// The first sketch as a fingerprint.
    pub fn simhash<F: Fingerprint>(&self) -> Simhash<F> {
        let first = self.sketches.first().copied().unwrap_or_default();
        Simhash { fingerprint: F::from_u128(first.into()), features: self.features }
    }
}

/// Makes sketches of texts.
#[derive(Clone, Debug)]
pub struct Sketcher {
    profile: Profile,
    sketches: usize,
    few: u32,
}

impl Sketcher {
    /// Makes so many sketches, up to [`MAX_SKETCHES`], of the features that a profile gives a text; and keeps the features
    /// themselves where they are `few` or less.
    ///
    /// # Panics
    /// For more sketches than that.
    pub fn new(profile: Profile, sketches: usize, few: u32) -> Self {
        assert!(sketches <= MAX_SKETCHES, "{sketches} sketches");
        Sketcher { profile, sketches, few }
    }

    /// The profile of the features.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Number of sketches.
    pub fn sketches(&self) -> usize {
        self.sketches
    }

    /// Up to how many features these are kept.
    pub fn few(&self) -> u32 {
        self.few
    }

    /// The sketches of the [feature set](Profile::feature_set) of a text; `None` if it is empty.
    ///
    /// ```
    /// use simstore_text::{Profile, Sketcher};
    ///
    /// let sketcher = Sketcher::new(Profile::shingles(), 4, 32);
    /// let sketched = sketcher.sketch("To be, or not to be").unwrap();
    /// assert_eq!((sketched.sketches.len(), sketched.features), (4, 4));
    /// assert_eq!(sketcher.sketch("?!").unwrap().features, 1);
    /// assert_eq!(sketcher.sketch(" "), None);
    /// ```
    pub fn sketch(&self, text: &str) -> Option<Sketched> {
        let mut members = self.profile.distinct_features(text);
        if members.is_empty() {
            return None;
        }
        let mut sketches = vec![0; self.sketches].into_boxed_slice();
        sketch(&members, &mut sketches);
        let features = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let sum = sum(&members);
        let is_small = features <= self.few;
        if is_small {
            members.sort_unstable();
        }
        Some(Sketched { sketches, features, sum, members: is_small.then(|| members.into()) })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A sketch as its definition reads.
    fn plain(members: &[u64], number: usize) -> u64 {
        (0..64).fold(0, |sketch, bit| {
            let ones = members.iter().filter(|&&member| word(member, number) >> bit & 1 == 1).count();
            sketch | u64::from(2 * ones > members.len()) << bit
        })
    }

    proptest! {
        #[test]
        fn agrees_with_the_definition(members in prop::collection::vec(any::<u64>(), 0..300), count in 1_usize..=MAX_SKETCHES) {
            let mut sketches = vec![0; count];
            sketch(&members, &mut sketches);
            let expected: Vec<u64> = (0..count).map(|number| plain(&members, number)).collect();
            prop_assert_eq!(sketches, expected);
        }
    }

    #[test]
    fn words_are_those_of_splitmix64() {
        // The first outputs for seed 1234567, as published with the generator.
        let outputs = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([1, 2, 3].map(|sketch| word(1_234_567, sketch)), outputs);
    }
}
