//! MinHash signatures of sets. A signature has 512 positions, with one bit for the minimum hash at each position.

use simstore::Fingerprint;
use simstore::simd::{Kernel, dispatch};
use xxhash_rust::xxh3::Xxh3;

use crate::splitmix::{GOLDEN_GAMMA, mix};
use crate::{Profile, Simhash};

/// Number of bands in a signature. A band has 64 bits.
pub const BANDS: usize = 8;

/// Number of bits in a signature, one for the minimum hash at each position.
pub(crate) const SIGNATURE_BITS: usize = 64 * BANDS;

/// Number of rounds in the computation of a signature. In each round, a hash function assigns each member of the set to one of the
/// 512 positions, where the member's hash may become the minimum.
const ROUNDS: usize = 4;
/// The minimum over all members is needed only at empty positions of a signature: no [round](ROUNDS) assigns a member to them. For
/// sets of at most this size, it is nevertheless computed at every position. For larger sets, it is faster to find the empty
/// positions first.
const ALL_POSITIONS_MAX_WORDS: usize = 64;

/// Returns the MinHash signature of a set of 64-bit hashes, in bands of 64 bits. The signature has one bit for the minimum hash at
/// each of 512 positions. The bit of position 64 t + i is bit i of band t, where bit 0 is the least significant.
/// `format-spec/signature.md` defines the bits.
///
/// At each position, two sets of Jaccard similarity J have the same minimum with probability J. If the minima differ, the bits
/// differ with probability 1 / 2. So a bit differs with probability (1 - J) / 2, for sets of any sizes (P. Li, A. C. König,
/// "b-Bit Minwise Hashing", WWW 2010).
///
/// The minima follow "Fast Similarity Sketching" (S. Dahlgaard, M. Knudsen, M. Thorup, FOCS 2017). In each of four rounds, a hash
/// function assigns each member to one position. The minimum of a position comes from the first round that assigns a member to it.
/// If no round assigns a member to a position, its minimum is taken over all members. The bands of an empty set are 0.
///
/// ```
/// use simstore_text::{Profile, minhash};
///
/// let shingles = Profile::shingles();
/// let [a, b] = ["To be, or not to be, that is", "To be, or not to be, this is"]
///     .map(|text| minhash(&shingles.feature_set(text)));
/// // 4 of 8 shingles are in both texts: a bit differs with probability 1 / 4.
/// let distance: u32 = a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum();
/// assert!((90..170).contains(&distance));
/// ```
pub fn minhash(members: &[u64]) -> [u64; BANDS] {
    dispatch(SignatureKernel(&words_from_members(members)))
}

/// Hashes each member to a *word* of 64 bits. Words are uniformly distributed even if the members are not. A word is the first
/// output of SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014) seeded with
/// the member.
fn words_from_members(members: &[u64]) -> Vec<u64> {
    members.iter().map(|&member| word_from_member(member)).collect()
}

#[inline(always)]
fn word_from_member(member: u64) -> u64 {
    mix(member.wrapping_add(GOLDEN_GAMMA))
}

/// Constants `odd` and `add` of the hash functions `word * odd + add`, where a word is the hash of a member. The constants are
/// outputs of SplitMix64 seeded with 0.
struct HashConstants {
    rounds: [(u64, u64); ROUNDS],
    odd: [u32; SIGNATURE_BITS],
    add: [u32; SIGNATURE_BITS],
}

static CONSTANTS: HashConstants = HashConstants::new();

impl HashConstants {
    const fn new() -> Self {
        let mut made =
            HashConstants { rounds: [(0, 0); ROUNDS], odd: [0; SIGNATURE_BITS], add: [0; SIGNATURE_BITS] };
        let mut state: u64 = 0;
        let mut i = 0;
        while i < ROUNDS {
            let odd = mix(state.wrapping_add(GOLDEN_GAMMA)) | 1;
            state = state.wrapping_add(GOLDEN_GAMMA.wrapping_mul(2));
            made.rounds[i] = (odd, mix(state));
            i += 1;
        }
        i = 0;
        while i < SIGNATURE_BITS {
            state = state.wrapping_add(GOLDEN_GAMMA);
            let word = mix(state);
            made.odd[i] = word as u32 | 1;
            made.add[i] = (word >> 32) as u32;
            i += 1;
        }
        made
    }
}

/// Computes the bands of a signature from the words (hashes) of a set's members, with the SIMD instructions of the processor.
struct SignatureKernel<'a>(&'a [u64]);

impl Kernel for SignatureKernel<'_> {
    type Output = [u64; BANDS];

    #[inline(always)]
    fn run(self) -> [u64; BANDS] {
        let SignatureKernel(words) = self;
        if words.is_empty() {
            return [0; BANDS];
        }
        let (first, empty) = round_minima(words);
        let mut minima = [0; SIGNATURE_BITS];
        if words.len() <= ALL_POSITIONS_MAX_WORDS {
            minima_over_all(words, &CONSTANTS.odd, &CONSTANTS.add, &mut minima);
            for (minimum, first) in minima.iter_mut().zip(&first) {
                *minimum = if *first == NO_WORD { *minimum } else { *first as u32 };
            }
        } else {
            minima.iter_mut().zip(&first).for_each(|(minimum, first)| *minimum = *first as u32);
            if empty > 0 {
                fill_empty_positions(words, &first, &mut minima);
            }
        }
        signature_bands(&minima)
    }
}

const NO_WORD: u64 = u64::MAX;

/// Runs the [rounds](ROUNDS), which assign words (hashes of members) to positions. Returns a number for each position, and the
/// count of empty positions. No round assigns a word to an empty position.
///
/// The high 32 bits of a position's number are the first round that assigns a word to the position. The low 32 bits are the
/// minimum hash at the position in this round. The number of an empty position is [`NO_WORD`]. The empty positions are counted
/// only if there are more than [`ALL_POSITIONS_MAX_WORDS`] words; otherwise the count is [`SIGNATURE_BITS`].
#[inline(always)]
fn round_minima(words: &[u64]) -> ([u64; SIGNATURE_BITS], usize) {
    let mut first = [NO_WORD; SIGNATURE_BITS];
    let mut empty = SIGNATURE_BITS;
    for (round, &(odd, add)) in (0..).zip(&CONSTANTS.rounds) {
        for &word in words {
            let hash = word.wrapping_mul(odd).wrapping_add(add);
            let value = round << 32 | hash >> 23 & 0xffff_ffff;
            let place = &mut first[(hash >> 55) as usize];
            *place = value.min(*place);
        }
        // With few words, some positions stay empty after all rounds, so there is no need to look.
        if words.len() > ALL_POSITIONS_MAX_WORDS {
            empty = first.iter().filter(|&&value| value == NO_WORD).count();
            if empty == 0 {
                break;
            }
        }
    }
    (first, empty)
}

/// Fills the positions of `minima` that no round assigns a word to with their minimum hashes over all words. `first` is the array
/// that [`round_minima`] returns.
#[inline(always)]
fn fill_empty_positions(words: &[u64], first: &[u64; SIGNATURE_BITS], minima: &mut [u32; SIGNATURE_BITS]) {
    let (mut positions, mut count) = ([0_u16; SIGNATURE_BITS], 0);
    for (position, &value) in (0..).zip(first) {
        // The index is in bounds: `count` is at most the number of positions visited before.
        positions[count] = position;
        count += usize::from(value == NO_WORD);
    }
    let (mut odd, mut add, mut filled) = ([0; SIGNATURE_BITS], [0; SIGNATURE_BITS], [0; SIGNATURE_BITS]);
    for (at, &position) in positions[..count].iter().enumerate() {
        odd[at] = CONSTANTS.odd[usize::from(position)];
        add[at] = CONSTANTS.add[usize::from(position)];
    }
    let end = count.next_multiple_of(LANES_MIN);
    minima_over_all(words, &odd[..end], &add[..end], &mut filled[..end]);
    for (&position, &value) in positions[..count].iter().zip(&filled) {
        minima[usize::from(position)] = value;
    }
}

/// Number of positions whose minima are computed together if fewer than [`LANES_BEST`] are left.
const LANES_MIN: usize = 16;
/// Preferred number of positions whose minima are computed together. Their minima, of 32 bits each, fill four registers of 512
/// bits.
const LANES_BEST: usize = 64;

/// Sets each `minima[i]` to the minimum of `word * odd[i] + add[i]` over all words. The three slices have the same length, a
/// multiple of [`LANES_MIN`].
#[inline(always)]
fn minima_over_all(words: &[u64], odd: &[u32], add: &[u32], minima: &mut [u32]) {
    let best = minima.len() / LANES_BEST * LANES_BEST;
    minima_by_lanes::<LANES_BEST>(words, &odd[..best], &add[..best], &mut minima[..best]);
    minima_by_lanes::<LANES_MIN>(words, &odd[best..], &add[best..], &mut minima[best..]);
}

#[inline(always)]
fn minima_by_lanes<const N: usize>(words: &[u64], odd: &[u32], add: &[u32], minima: &mut [u32]) {
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

/// Computes the [signature bit](signature_bit) of each position from its minimum hash, and packs the bits into bands.
#[inline(always)]
fn signature_bands(minima: &[u32; SIGNATURE_BITS]) -> [u64; BANDS] {
    let mut bits = [0; SIGNATURE_BITS];
    for (position, (bit, &minimum)) in (0..).zip(bits.iter_mut().zip(minima)) {
        *bit = signature_bit(minimum, position);
    }
    let mut bands = [0; BANDS];
    for (band, bits) in bands.iter_mut().zip(bits.as_chunks::<64>().0) {
        *band = bits.iter().rev().fold(0, |band, &bit| band << 1 | u64::from(bit));
    }
    bands
}

/// Returns the signature's bit for a position with this minimum hash. The bit is the highest bit of MurmurHash3's finalizer
/// (A. Appleby, 2011), applied to the minimum and the position. With a hash of the minimum alone, all positions with the same
/// minimum would have the same bit.
#[inline(always)]
fn signature_bit(minimum: u32, position: u32) -> u32 {
    let hash = minimum ^ position.wrapping_mul(0x9e37_79b9);
    let hash = (hash ^ hash >> 16).wrapping_mul(0x85eb_ca6b);
    (hash ^ hash >> 13).wrapping_mul(0xc2b2_ae35) >> 31
}

/// Returns a 128-bit hash that identifies a set of features. It is computed from the three fields of the set's [`Signature`].
pub fn signature_digest(features: u32, sum: u64, bands: &[u64; BANDS]) -> u128 {
    let mut hash = Xxh3::new();
    hash.update(&features.to_le_bytes());
    for word in [sum].iter().chain(bands) {
        hash.update(&word.to_le_bytes());
    }
    hash.digest128()
}

/// MinHash signature of a set of features, with the size and a checksum of the set.
///
/// ```
/// use simstore_text::Signature;
///
/// let [a, b] = [[1, 2, 3], [2, 3, 4]].map(|set| Signature::new(&set).unwrap());
/// assert_eq!(a.estimate(&b).similarity, 0.5);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signature {
    /// The bands, 512 bits in total: see [`minhash`](fn@minhash).
    pub bands: [u64; BANDS],
    /// Number of different features in the set, at least 1.
    pub features: u32,
    /// Sum of the hashes of all features, modulo 2^64. It is a checksum of the set.
    pub sum: u64,
}

impl Signature {
    /// Returns the signature of a set of features, given as distinct 64-bit hashes in any order. `None` if the set is empty.
    pub fn new(features: &[u64]) -> Option<Signature> {
        Signature::from_words(&words_from_members(features))
    }

    /// Like [`Signature::new`], but allocates no memory. For that, it overwrites each feature with the feature's hash.
    fn from_features(features: &mut [u64]) -> Option<Signature> {
        features.iter_mut().for_each(|feature| *feature = word_from_member(*feature));
        Signature::from_words(features)
    }

    fn from_words(words: &[u64]) -> Option<Signature> {
        (!words.is_empty()).then(|| Signature {
            bands: dispatch(SignatureKernel(words)),
            features: u32::try_from(words.len()).unwrap_or(u32::MAX),
            sum: words.iter().fold(0, |sum, &word| sum.wrapping_add(word)),
        })
    }

    /// Returns a 128-bit hash that identifies the set of features.
    ///
    /// ```
    /// use simstore_text::{MinHasher, Profile};
    ///
    /// let hasher = MinHasher::new(Profile::shingles());
    /// let digest = |text| hasher.signature(text).unwrap().digest();
    /// assert_eq!(digest("To be, or not to be"), digest("to be or NOT to be!"));
    /// assert_ne!(digest("To be, or not to be"), digest("not to be, or to be"));
    /// ```
    pub fn digest(&self) -> u128 {
        signature_digest(self.features, self.sum, &self.bands)
    }

    /// Returns the number of bits, out of 512, that differ between two signatures.
    #[inline]
    pub fn distance(&self, other: &Signature) -> u32 {
        self.bands.iter().zip(&other.bands).map(|(a, b)| (a ^ b).count_ones()).sum()
    }

    /// Returns the signature's first band as a fingerprint, with the number of features.
    pub fn first_band<F: Fingerprint>(&self) -> Simhash<F> {
        Simhash { fingerprint: F::from_u128(self.bands[0].into()), features: self.features }
    }
}

/// Computes the MinHash signatures of texts.
#[derive(Clone, Debug)]
pub struct MinHasher {
    profile: Profile,
}

impl MinHasher {
    /// Creates a hasher whose signatures are computed from the features that a profile defines.
    pub fn new(profile: Profile) -> Self {
        MinHasher { profile }
    }

    /// Returns the profile that defines the features of a text.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Returns the signature of the [feature set](Profile::feature_set) of a text; `None` if the set is empty.
    ///
    /// ```
    /// use simstore_text::{MinHasher, Profile};
    ///
    /// let hasher = MinHasher::new(Profile::shingles());
    /// assert_eq!(hasher.signature("To be, or not to be").unwrap().features, 4);
    /// assert_eq!(hasher.signature("?!").unwrap().features, 1);
    /// assert_eq!(hasher.signature(" "), None);
    /// ```
    pub fn signature(&self, text: &str) -> Option<Signature> {
        self.signature_and_check(text).0
    }

    /// Like [`MinHasher::signature`], but also returns whether cleaning dropped more than half of the text's words. Words in
    /// front matter are not counted. For HTML, the flag is always `false`.
    pub fn signature_and_check(&self, text: &str) -> (Option<Signature>, bool) {
        self.profile.with_distinct_features(text, |features, lost_most| {
            (Signature::from_features(features), lost_most)
        })
    }
}

#[cfg(test)]
mod tests;
