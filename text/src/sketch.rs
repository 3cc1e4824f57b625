//! Sketches find similar sets. They hold one bit for each of 512 minima of a set.

use simstore::Fingerprint;
use simstore::processor::{Work, dispatch};
use xxhash_rust::xxh3::Xxh3;

use crate::splitmix::{STEP, mix};
use crate::{Profile, Simhash};

/// Sketches of a set, of 64 bits each.
pub const SKETCHES: usize = 8;

/// Number of bits in all sketches of a set, one for each minimum.
pub(crate) const POSITIONS: usize = 64 * SKETCHES;

/// Number of rounds. In each round, a word goes to one position.
const ROUNDS: usize = 4;
/// Up to this number of words, finding the minima of all positions takes less time than finding only the needed minima.
const FEW: usize = 64;

/// The sketches of a set of 64-bit hashes: bit i of sketch t is one bit of a minimum of position 64 t + i, as
/// `format-spec/sketch.md` defines it.
///
/// Two sets of Jaccard similarity J have the same minimum with probability J. Otherwise the bit agrees by chance. So a bit differs
/// with probability (1 - J) / 2, for sets of any sizes (P. Li, A. C. Konig, "b-Bit Minwise Hashing", WWW 2010).
///
/// Minima are made as in "Fast Similarity Sketching" (S. Dahlgaard, M. Knudsen, M. Thorup, FOCS 2017). In each of a few rounds, a
/// member goes to one position only. A position has the minimum of the first round that brings it a member. A position that gets
/// no member in any round has the minimum over all members. A set without members has sketches of 0.
///
/// ```
/// use simstore_text::{Profile, sketch};
///
/// let shingles = Profile::shingles();
/// let [a, b] = ["To be, or not to be, that is", "To be, or not to be, this is"]
///     .map(|text| sketch(&shingles.feature_set(text)));
/// // 4 of 8 shingles are in both: a bit differs with probability 1 / 4.
/// let distance: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
/// assert!((90..170).contains(&distance));
/// ```
pub fn sketch(members: &[u64]) -> [u64; SKETCHES] {
    dispatch(OfWords(&words(members)))
}

/// The words of members: hashes that are spread over all numbers for any members. A word is the first output of
/// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) seeded with the member.
fn words(members: &[u64]) -> Vec<u64> {
    members.iter().map(|&member| word(member)).collect()
}

#[inline(always)]
fn word(member: u64) -> u64 {
    mix(member.wrapping_add(STEP))
}

/// Factors and summands for the hashes of words: outputs of SplitMix64 seeded with 0.
struct Constants {
    rounds: [(u64, u64); ROUNDS],
    odd: [u32; POSITIONS],
    add: [u32; POSITIONS],
}

static CONSTANTS: Constants = Constants::new();

impl Constants {
    const fn new() -> Self {
        let mut made = Constants { rounds: [(0, 0); ROUNDS], odd: [0; POSITIONS], add: [0; POSITIONS] };
        let mut state: u64 = 0;
        let mut i = 0;
        while i < ROUNDS {
            let odd = mix(state.wrapping_add(STEP)) | 1;
            state = state.wrapping_add(STEP.wrapping_mul(2));
            made.rounds[i] = (odd, mix(state));
            i += 1;
        }
        i = 0;
        while i < POSITIONS {
            state = state.wrapping_add(STEP);
            let word = mix(state);
            made.odd[i] = word as u32 | 1;
            made.add[i] = (word >> 32) as u32;
            i += 1;
        }
        made
    }
}

/// The sketches of a set by its words.
struct OfWords<'a>(&'a [u64]);

impl Work for OfWords<'_> {
    type Output = [u64; SKETCHES];

    #[inline(always)]
    fn run(self) -> [u64; SKETCHES] {
        let OfWords(words) = self;
        if words.is_empty() {
            return [0; SKETCHES];
        }
        let (first, empty) = of_rounds(words);
        let mut minima = [0; POSITIONS];
        if words.len() <= FEW {
            of_all(words, &CONSTANTS.odd, &CONSTANTS.add, &mut minima);
            for (minimum, first) in minima.iter_mut().zip(&first) {
                *minimum = if *first == NONE { *minimum } else { *first as u32 };
            }
        } else {
            minima.iter_mut().zip(&first).for_each(|(minimum, first)| *minimum = *first as u32);
            if empty > 0 {
                fill(words, &first, &mut minima);
            }
        }
        bits_of(&minima)
    }
}

const NONE: u64 = u64::MAX;

/// Returns, for each position, the first round that brings it a word and the least value of this round, in 32 bits each. Also
/// returns the number of positions without a word.
#[inline(always)]
fn of_rounds(words: &[u64]) -> ([u64; POSITIONS], usize) {
    let mut first = [NONE; POSITIONS];
    let mut empty = POSITIONS;
    for (round, &(odd, add)) in (0..).zip(&CONSTANTS.rounds) {
        for &word in words {
            let hash = word.wrapping_mul(odd).wrapping_add(add);
            let value = round << 32 | hash >> 23 & 0xffff_ffff;
            let place = &mut first[(hash >> 55) as usize];
            *place = value.min(*place);
        }
        // Few words leave positions empty in every round.
        if words.len() > FEW {
            empty = first.iter().filter(|&&value| value == NONE).count();
            if empty == 0 {
                break;
            }
        }
    }
    (first, empty)
}

/// Fills each position without a word with its minimum over all words.
#[inline(always)]
fn fill(words: &[u64], first: &[u64; POSITIONS], minima: &mut [u32; POSITIONS]) {
    let (mut positions, mut count) = ([0_u16; POSITIONS], 0);
    for (position, &value) in (0..).zip(first) {
        // The index is in bounds: `count` is at most the number of positions visited before.
        positions[count] = position;
        count += usize::from(value == NONE);
    }
    let (mut odd, mut add, mut filled) = ([0; POSITIONS], [0; POSITIONS], [0; POSITIONS]);
    for (at, &position) in positions[..count].iter().enumerate() {
        odd[at] = CONSTANTS.odd[usize::from(position)];
        add[at] = CONSTANTS.add[usize::from(position)];
    }
    let end = count.next_multiple_of(LEAST);
    of_all(words, &odd[..end], &add[..end], &mut filled[..end]);
    for (&position, &value) in positions[..count].iter().zip(&filled) {
        minima[usize::from(position)] = value;
    }
}

/// Least and best number of positions whose minima are found together: `BEST` positions fill four registers of 512 bits.
const LEAST: usize = 16;
const BEST: usize = 64;

/// Finds the minima of some positions over all words. The number of positions is a multiple of [`LEAST`].
#[inline(always)]
fn of_all(words: &[u64], odd: &[u32], add: &[u32], minima: &mut [u32]) {
    let best = minima.len() / BEST * BEST;
    of_each::<BEST>(words, &odd[..best], &add[..best], &mut minima[..best]);
    of_each::<LEAST>(words, &odd[best..], &add[best..], &mut minima[best..]);
}

#[inline(always)]
fn of_each<const N: usize>(words: &[u64], odd: &[u32], add: &[u32], minima: &mut [u32]) {
    let parts = odd.as_chunks::<N>().0.iter().zip(add.as_chunks::<N>().0);
    for ((odd, add), minima) in parts.zip(minima.as_chunks_mut::<N>().0) {
        let mut least = [u32::MAX; N];
        for &word in words {
            for lane in 0..N {
                least[lane] = least[lane].min((word as u32).wrapping_mul(odd[lane]).wrapping_add(add[lane]));
            }
        }
        *minima = least;
    }
}

/// One bit of a hash of each minimum and its position.
#[inline(always)]
fn bits_of(minima: &[u32; POSITIONS]) -> [u64; SKETCHES] {
    let mut bits = [0; POSITIONS];
    for (position, (bit, &minimum)) in (0..).zip(bits.iter_mut().zip(minima)) {
        *bit = bit_of(minimum, position);
    }
    let mut sketches = [0; SKETCHES];
    for (sketch, bits) in sketches.iter_mut().zip(bits.as_chunks::<64>().0) {
        *sketch = bits.iter().rev().fold(0, |sketch, &bit| sketch << 1 | u64::from(bit));
    }
    sketches
}

/// The highest bit of the finalizer of MurmurHash3 (A. Appleby, 2011). A hash of the minimum alone would give the same bit in all
/// positions that a member wins with the same value.
#[inline(always)]
fn bit_of(minimum: u32, position: u32) -> u32 {
    let hash = minimum ^ position.wrapping_mul(0x9e37_79b9);
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35) >> 31
}

/// Identifies a set of features: a hash of their number, of their [sum](Sketched::sum) and of the sketches.
pub fn digest(features: u32, sum: u64, sketches: &[u64; SKETCHES]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&features.to_le_bytes());
    for word in [sum].iter().chain(sketches) {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

/// The data of a text that finds similar texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sketched {
    /// The [sketches](fn@sketch) of the text's features.
    pub sketches: [u64; SKETCHES],
    /// Number of different features, at least 1.
    pub features: u32,
    /// The sum of the hashes of all features, which helps to identify the set.
    pub sum: u64,
}

impl Sketched {
    /// Makes the sketches of a set of features; `None` if the set is empty.
    pub fn new(features: &[u64]) -> Option<Sketched> {
        Sketched::from_words(&words(features))
    }

    /// Makes the sketches of a set of features in place: the features become their words.
    fn from_features(features: &mut [u64]) -> Option<Sketched> {
        features.iter_mut().for_each(|feature| *feature = word(*feature));
        Sketched::from_words(features)
    }

    fn from_words(words: &[u64]) -> Option<Sketched> {
        (!words.is_empty()).then(|| Sketched {
            sketches: dispatch(OfWords(words)),
            features: u32::try_from(words.len()).unwrap_or(u32::MAX),
            sum: words.iter().fold(0, |sum, &word| sum.wrapping_add(word)),
        })
    }

    /// Identifies the set of features.
    ///
    /// ```
    /// use simstore_text::{Profile, Sketcher};
    ///
    /// let sketcher = Sketcher::new(Profile::shingles());
    /// let digest = |text| sketcher.sketch(text).unwrap().digest();
    /// assert_eq!(digest("To be, or not to be"), digest("to be or NOT to be!"));
    /// assert_ne!(digest("To be, or not to be"), digest("not to be, or to be"));
    /// ```
    pub fn digest(&self) -> u128 {
        digest(self.features, self.sum, &self.sketches)
    }

    /// Number of differing bits in all sketches of two sets.
    #[inline]
    pub fn distance(&self, other: &Sketched) -> u32 {
        self.sketches.iter().zip(&other.sketches).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// The first sketch as a fingerprint.
    pub fn first<F: Fingerprint>(&self) -> Simhash<F> {
        Simhash { fingerprint: F::from_u128(self.sketches[0].into()), features: self.features }
    }
}

/// Makes sketches of texts.
#[derive(Clone, Debug)]
pub struct Sketcher {
    profile: Profile,
}

impl Sketcher {
    /// Makes sketches of the features that a profile gives a text.
    pub fn new(profile: Profile) -> Self {
        Sketcher { profile }
    }

    /// The profile of the features.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// The sketches of the [feature set](Profile::feature_set) of a text; `None` if the set is empty.
    ///
    /// ```
    /// use simstore_text::{Profile, Sketcher};
    ///
    /// let sketcher = Sketcher::new(Profile::shingles());
    /// assert_eq!(sketcher.sketch("To be, or not to be").unwrap().features, 4);
    /// assert_eq!(sketcher.sketch("?!").unwrap().features, 1);
    /// assert_eq!(sketcher.sketch(" "), None);
    /// ```
    pub fn sketch(&self, text: &str) -> Option<Sketched> {
        self.sketch_and_check(text).0
    }

    /// Like [`Sketcher::sketch`]. Also returns whether cleaning dropped more than half of the words of a text that is no HTML. Front matter
    /// does not count.
    pub fn sketch_and_check(&self, text: &str) -> (Option<Sketched>, bool) {
        self.profile.with_distinct_features(text, |features, lost_most| {
            (Sketched::from_features(features), lost_most)
        })
    }
}

#[cfg(test)]
mod tests;
