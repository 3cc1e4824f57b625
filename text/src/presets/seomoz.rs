//! seomoz/simhash-cpp at commit 98dd188: its features are every three successive words of ASCII letters. The hash of a feature
//! combines the lookup3 hashes of the words.
//!
//! Commits of simhash-cpp differ in their fingerprints. The first version has features of four words. Another version does not
//! reverse the bits of the fingerprint, but commit 98dd188 does. The last version, like simhash-py 0.4.0 on PyPI, does not
//! tokenize texts: its caller computes the hashes. Commit 98dd188 was chosen because simhash-cpp's own test expects its
//! fingerprints.

use crate::feature_hash::FeatureHash;
use crate::presets::weighted_fingerprint::weighted_fingerprint;
use crate::simhash::Simhash;
use simstore::Fingerprint;

/// Number of words per feature.
const WINDOW: usize = 3;

/// Returns the fingerprint of a text: its simhash with the order of the bits reversed, a quirk of the reproduced tool.
///
/// The hash of a feature is a cyclic hash (Cohen, "Recursive hashing functions for n-grams", TOIS 1997). It is the xor of the
/// hash of the last word, the hash of the word before it (rotated left by 1 bit), and the hash of the first word (rotated left by
/// 2 bits).
pub(super) fn fingerprint<F: Fingerprint>(text: &str) -> Simhash<F> {
    let mut window = [F::ZERO; WINDOW];
    let hashes = words(text).map(|word| {
        window = [window[1], window[2], FeatureHash::Lookup3.hash(word)];
        (window[0].rotate_left(2) ^ window[1].rotate_left(1) ^ window[2], 1.0)
    });
    let simhash = weighted_fingerprint::<F>(hashes, |sum| sum > 0.0);
    Simhash { fingerprint: F::from_u64(simhash.fingerprint.low_u64().reverse_bits()), ..simhash }
}

/// Visits one feature for each word: the word and up to two words before it, joined by spaces.
pub(super) fn visit_features(text: &str, mut visit: impl FnMut(&str)) {
    let words: Vec<&str> = words(text).collect();
    for end in 1..=words.len() {
        visit(&words[end.saturating_sub(WINDOW)..end].join(" "));
    }
}

/// Iterates over the words of a text, which are runs of ASCII letters. The text ends at its first NUL, like a C string.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let text = text.split('\0').next().unwrap_or_default();
    text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_the_project_s_test() {
        let text = "Twas brillig, and the slithy toves  Did gyre and gimble in the wabe:All mimsy were the \
            borogoves,  And the mome raths outgrabe.Beware the Jabberwock, my son!  The jaws that bite, the claws \
            that catch!Beware the Jubjub bird, and shun  The frumious Bandersnatch!He took his vorpal sword in \
            hand:  Long time the manxome foe he sought --So rested he by the Tumtum tree,  And stood awhile in \
            thought.And, as in uffish thought he stood,  The Jabberwock, with eyes of flame,Came whiffling through \
            the tulgey wood,  And burbled as it came!One, two! One, two! And through and through  The vorpal blade \
            went snicker-snack!He left it dead, and with its head  He went galumphing back.And, has thou slain the \
            Jabberwock?  Come to my arms, my beamish boy!O frabjous day! Callooh! Callay!'  He chortled in his joy.";
        assert_eq!(fingerprint::<u64>(text).fingerprint, 0x0413_79a5_87c6_6880);
    }

    #[test]
    fn windows() {
        let mut features = Vec::new();
        visit_features("To be, or not2be\0that", |feature| features.push(feature.to_owned()));
        assert_eq!(features, ["To", "To be", "To be or", "be or not", "or not be"]);
        assert_eq!(fingerprint::<u64>("").fingerprint, 0);
    }
}
