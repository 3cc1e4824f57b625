//! Hash functions for features.

use std::fmt;
use std::hash::Hasher;
use std::str::FromStr;

use md5::{Digest, Md5};
use siphasher::sip::SipHasher24;
use siphasher::sip128::{Hasher128, SipHasher24 as SipHasher24x128};
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use simstore::error::did_you_mean;
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result};

/// A hash function for features. It hashes the UTF-8 bytes of a feature, or its characters for [`FeatureHash::StringHash`].
///
/// | name | definition |
/// |---|---|
/// | `xxh3` (the default) | XXH3 by Yann Collet, seed 0; its 64-bit or its 128-bit form |
/// | `md5` | MD5 (RFC 1321), the digest read as a big-endian number; 64 bits are its low half, the last 8 bytes |
/// | `lookup2` | Bob Jenkins's `hash` of 1996, which has 32 bits; bits 32i to 32i + 31 of the feature's hash are its result for the initial value i |
/// | `lookup3` | Bob Jenkins's `hashlittle2` of 2006, which has 64 bits: `c` is the high half, `b` the low half; the high 64 bits of a 128-bit hash are its result for an initial `*pc` of 1 instead of 0 |
/// | `one-at-a-time` | Bob Jenkins's hash of 1997, which has 32 bits; bits 32i to 32i + 31 of the feature's hash are its result for the initial value i instead of 0 |
/// | `string-hash` | start with x = first character << 7; for each character c, x becomes (x * 1000003) xor c; the hash is x xor the number of characters, modulo 2 to the power of its width; characters are code points; the hash of the empty feature is 0 |
/// | `siphash` | SipHash-2-4 by Aumasson and Bernstein with a key of zeros; its 64-bit or its 128-bit form, the bytes of the result read as little-endian |
/// | `fnv-1a` | FNV-1a by Fowler, Noll and Vo; its 64-bit or its 128-bit form |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum FeatureHash {
    #[default]
    Xxh3,
    Md5,
    Lookup2,
    Lookup3,
    OneAtATime,
    StringHash,
    SipHash,
    Fnv1a,
}

impl FeatureHash {
    const ALL: [(&str, FeatureHash); 8] = [
        ("xxh3", FeatureHash::Xxh3),
        ("md5", FeatureHash::Md5),
        ("lookup2", FeatureHash::Lookup2),
        ("lookup3", FeatureHash::Lookup3),
        ("one-at-a-time", FeatureHash::OneAtATime),
        ("string-hash", FeatureHash::StringHash),
        ("siphash", FeatureHash::SipHash),
        ("fnv-1a", FeatureHash::Fnv1a),
    ];

    /// Returns the hash of a feature. The hash is as wide as the fingerprint `F`.
    #[inline]
    pub(crate) fn hash<F: Fingerprint>(self, feature: &str) -> F {
        let bytes = feature.as_bytes();
        match (self, F::BITS) {
            (FeatureHash::Xxh3, 64) => F::from_u64(xxh3_64(bytes)),
            (FeatureHash::Xxh3, _) => F::from_u128(xxh3_128(bytes)),
            (FeatureHash::Md5, _) => F::from_u128(u128::from_be_bytes(Md5::digest(bytes).into())),
            (FeatureHash::Lookup2, _) => widen(|initial| lookup2(bytes, initial)),
            (FeatureHash::Lookup3, 64) => F::from_u64(lookup3(bytes, 0)),
            (FeatureHash::Lookup3, _) => {
                F::from_u128(u128::from(lookup3(bytes, 1)) << 64 | u128::from(lookup3(bytes, 0)))
            }
            (FeatureHash::OneAtATime, _) => widen(|initial| one_at_a_time(bytes, initial)),
            // The low 64 bits do not depend on the high ones, so the value modulo 2^128 serves both widths.
            (FeatureHash::StringHash, _) => F::from_u128(string_hash(feature)),
            (FeatureHash::SipHash, 64) => {
                let mut hasher = SipHasher24::new();
                hasher.write(bytes);
                F::from_u64(hasher.finish())
            }
            (FeatureHash::SipHash, _) => {
                let mut hasher = SipHasher24x128::new();
                hasher.write(bytes);
                F::from_u128(hasher.finish128().as_u128())
            }
            (FeatureHash::Fnv1a, 64) => F::from_u64(fnv_1a_64(bytes)),
            (FeatureHash::Fnv1a, _) => F::from_u128(fnv_1a_128(bytes)),
        }
    }
}

impl fmt::Display for FeatureHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, _) = Self::ALL[*self as usize];
        f.write_str(name)
    }
}

impl FromStr for FeatureHash {
    type Err = Error;

    /// Parses the name of a hash function, such as `xxh3`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] for an unknown name.
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|&(_, hash)| hash).ok_or_else(|| {
            let known = Self::ALL.map(|(known, _)| format!("`{known}`")).join(", ");
            Error::BadArgument(format!(
                "unknown feature hash `{}`{}: expected one of {known}",
                excerpt(name).escape_debug(),
                did_you_mean(name, Self::ALL.map(|(known, _)| known))
            ))
        })
    }
}

/// Concatenates the 32-bit hashes for the initial values 0, 1, ... into a hash as wide as the fingerprint `F`. The hash for 0 is
/// the least significant part.
fn widen<F: Fingerprint>(hash: impl Fn(u32) -> u32) -> F {
    let parts = (0..F::BITS / 32).rev();
    F::from_u128(parts.fold(0, |wide, part| wide << 32 | u128::from(hash(part))))
}

/// The function `hash` of Bob Jenkins's `lookup2.c` (December 1996, public domain), started from the value `initial`.
fn lookup2(bytes: &[u8], initial: u32) -> u32 {
    let (mut a, mut b, mut c) = (0x9e37_79b9_u32, 0x9e37_79b9_u32, initial);
    let mut add_and_mix = |block: [u32; 3]| {
        a = a.wrapping_add(block[0]);
        b = b.wrapping_add(block[1]);
        c = c.wrapping_add(block[2]);
        for [first, second, third] in [[13, 8, 13], [12, 16, 5], [3, 10, 15]] {
            a = a.wrapping_sub(b).wrapping_sub(c) ^ c >> first;
            b = b.wrapping_sub(c).wrapping_sub(a) ^ a << second;
            c = c.wrapping_sub(a).wrapping_sub(b) ^ b >> third;
        }
        c
    };
    let (blocks, rest) = bytes.as_chunks::<12>();
    for block in blocks {
        add_and_mix(words(block));
    }
    // The lowest byte of the last word is reserved for the length.
    let mut last = [0; 12];
    let (head, tail) = rest.split_at(rest.len().min(8));
    last[..head.len()].copy_from_slice(head);
    last[9..9 + tail.len()].copy_from_slice(tail);
    let [first, second, third] = words(&last);
    add_and_mix([first, second, third.wrapping_add(bytes.len() as u32)])
}

/// The function `hashlittle2` of Bob Jenkins's `lookup3.c` (May 2006, public domain), called with `*pc` = `initial` and `*pb` = 0.
/// The high half of the result is `*pc` after the call, and the low half is `*pb`.
fn lookup3(bytes: &[u8], initial: u32) -> u64 {
    let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32).wrapping_add(initial);
    let (mut a, mut b, mut c) = (start, start, start);
    // The last block, even a full one, is mixed differently. An empty input has no last block.
    let rest_length = if bytes.is_empty() { 0 } else { (bytes.len() - 1) % 12 + 1 };
    let (blocks, rest) = bytes.split_at(bytes.len() - rest_length);
    let (blocks, _) = blocks.as_chunks::<12>();
    for block in blocks {
        let [first, second, third] = words(block);
        a = a.wrapping_add(first);
        b = b.wrapping_add(second);
        c = c.wrapping_add(third);
        for [first, second, third] in [[4, 6, 8], [16, 19, 4]] {
            a = a.wrapping_sub(c) ^ c.rotate_left(first);
            c = c.wrapping_add(b);
            b = b.wrapping_sub(a) ^ a.rotate_left(second);
            a = a.wrapping_add(c);
            c = c.wrapping_sub(b) ^ b.rotate_left(third);
            b = b.wrapping_add(a);
        }
    }
    if !rest.is_empty() {
        let mut last = [0; 12];
        last[..rest.len()].copy_from_slice(rest);
        let [first, second, third] = words(&last);
        a = a.wrapping_add(first);
        b = b.wrapping_add(second);
        c = c.wrapping_add(third);
        c = (c ^ b).wrapping_sub(b.rotate_left(14));
        a = (a ^ c).wrapping_sub(c.rotate_left(11));
        b = (b ^ a).wrapping_sub(a.rotate_left(25));
        c = (c ^ b).wrapping_sub(b.rotate_left(16));
        a = (a ^ c).wrapping_sub(c.rotate_left(4));
        b = (b ^ a).wrapping_sub(a.rotate_left(14));
        c = (c ^ b).wrapping_sub(b.rotate_left(24));
    }
    u64::from(c) << 32 | u64::from(b)
}

/// Returns the three 32-bit words of a block of 12 bytes, read as little-endian.
fn words(block: &[u8; 12]) -> [u32; 3] {
    let (words, _) = block.as_chunks::<4>();
    [0, 1, 2].map(|word| u32::from_le_bytes(words[word]))
}

/// Bob Jenkins's one-at-a-time hash ("Hash functions", Dr. Dobb's Journal, September 1997), but started from `initial` instead of
/// 0.
fn one_at_a_time(bytes: &[u8], initial: u32) -> u32 {
    let mut hash = initial;
    for &byte in bytes {
        hash = hash.wrapping_add(u32::from(byte));
        hash = hash.wrapping_add(hash << 10);
        hash ^= hash >> 6;
    }
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 11;
    hash.wrapping_add(hash << 15)
}

/// The string hash of Python before version 3.4, but computed from characters instead of bytes, and modulo 2^128.
fn string_hash(feature: &str) -> u128 {
    let Some(first) = feature.chars().next() else { return 0 };
    let mut characters = 0;
    let mut hash = u128::from(u32::from(first)) << 7;
    for c in feature.chars() {
        hash = hash.wrapping_mul(1_000_003) ^ u128::from(u32::from(c));
        characters += 1;
    }
    hash ^ characters
}

/// FNV-1a with 64 bits (Fowler, Noll, Eastlake, Hansen, "The FNV Non-Cryptographic Hash Algorithm", RFC 9923).
fn fnv_1a_64(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Like [`fnv_1a_64`], with the constants for 128 bits.
fn fnv_1a_128(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PANGRAM: &str = "The quick brown fox jumps over the lazy dog";

    fn hash64(name: &str, feature: &str) -> u64 {
        name.parse::<FeatureHash>().unwrap().hash(feature)
    }

    fn hash128(name: &str, feature: &str) -> u128 {
        name.parse::<FeatureHash>().unwrap().hash(feature)
    }

    #[test]
    fn names_round_trip() {
        for (name, hash) in FeatureHash::ALL {
            assert_eq!(hash.to_string(), name);
            assert_eq!(name.parse::<FeatureHash>().unwrap(), hash);
        }
        assert_eq!(FeatureHash::default().to_string(), "xxh3");
        let error = "MD5".parse::<FeatureHash>().unwrap_err().to_string();
        assert!(error.contains("`MD5`") && error.contains("`one-at-a-time`"), "{error}");
    }

    #[test]
    fn xxh3_of_no_bytes() {
        assert_eq!(hash64("xxh3", ""), 0x2d06_8005_38d3_94c2);
        assert_eq!(hash128("xxh3", ""), 0x99aa_06d3_0147_98d8_6001_c324_468d_497f);
    }

    #[test]
    fn md5_of_rfc_1321() {
        assert_eq!(hash128("md5", ""), 0xd41d_8cd9_8f00_b204_e980_0998_ecf8_427e);
        assert_eq!(hash128("md5", "message digest"), 0xf96b_697d_7cb7_938d_525a_2f31_aaf1_61d0);
        assert_eq!(hash64("md5", "message digest"), 0x525a_2f31_aaf1_61d0);
    }

    /// Expected values are from the compiled `lookup2.c`.
    #[test]
    fn lookup2_of_the_original() {
        for (feature, expected) in [
            ("", [0xbd49_d10d, 0x6ddf_b8c9, 0x7427_8b21, 0x02ed_7b55]),
            ("a", [0x29ee_c818, 0x75f1_faad, 0x2f0d_f4c9, 0x5663_71f6]),
            ("12345678901", [0x79f3_2d84, 0xffb6_f65b, 0xebb1_ee1c, 0x0f83_8ac7]),
            ("123456789012", [0xf7e4_5e60, 0x1f3a_4c44, 0xe727_b7d5, 0xad68_6e82]),
            ("1234567890123", [0x8f57_066a, 0xb2a4_12b2, 0x9fdb_2768, 0xb87a_7cda]),
            ("中文", [0x1d67_b069, 0x5fe4_6b0f, 0x91e6_fd70, 0x0423_8428]),
        ] {
            assert_eq!(
                [0, 1, 2, 3].map(|initial| lookup2(feature.as_bytes(), initial)),
                expected,
                "{feature}"
            );
        }
        assert_eq!(hash64("lookup2", "a"), 0x75f1_faad_29ee_c818);
        assert_eq!(hash128("lookup2", "a"), 0x5663_71f6_2f0d_f4c9_75f1_faad_29ee_c818);
    }

    /// Expected values are from the self-test of `lookup3.c`.
    #[test]
    fn lookup3_of_the_original() {
        assert_eq!(hash64("lookup3", ""), 0xdead_beef_dead_beef);
        let four_score = "Four score and seven years ago";
        assert_eq!(hash64("lookup3", four_score), 0x1777_0551_ce72_26e6);
        assert_eq!(hash128("lookup3", four_score), 0xcd62_8161_6cbe_a4b3_1777_0551_ce72_26e6);
    }

    #[test]
    fn one_at_a_time_of_the_original() {
        assert_eq!(one_at_a_time(b"a", 0), 0xca2e_9442);
        assert_eq!(one_at_a_time(PANGRAM.as_bytes(), 0), 0x519e_91f5);
        assert_eq!(hash64("one-at-a-time", PANGRAM) as u32, 0x519e_91f5);
        let parts = [3, 2, 1, 0].map(|initial| u128::from(one_at_a_time(b"ab", initial)));
        assert_eq!(hash128("one-at-a-time", "ab"), parts.into_iter().fold(0, |wide, part| wide << 32 | part));
    }

    /// Expected values are from `hash` of Python 2.7, which hashes bytes and has 64 bits.
    #[test]
    fn string_hash_of_python() {
        assert_eq!(hash64("string-hash", ""), 0);
        assert_eq!(hash64("string-hash", "a"), 0x0000_0002_e40d_b1e0);
        assert_eq!(hash64("string-hash", "abc"), 0x142a_6050_a093_d0a3);
        assert_eq!(hash64("string-hash", "hello world"), 0xdfbe_a582_a68c_6d1f);
    }

    #[test]
    fn string_hash_counts_characters() {
        let x = 0x4e2d_u128;
        assert_eq!(hash128("string-hash", "中"), ((x << 7) * 1_000_003) ^ x ^ 1);
    }

    /// Expected values are from `hash` of Python 3.8 with `PYTHONHASHSEED=0`, and from the test vectors of SipHash's authors.
    #[test]
    fn siphash_of_the_originals() {
        assert_eq!(hash64("siphash", "a"), 0x96c2_0860_cd93_a249);
        assert_eq!(hash64("siphash", "abc"), 0x3fc8_8496_4770_eede);
        assert_eq!(hash64("siphash", PANGRAM), 0x5900_5206_2570_e40d);
        let key: [u8; 16] = std::array::from_fn(|i| i as u8);
        let mut hasher = SipHasher24x128::new_with_key(&key);
        hasher.write(&[0]);
        let expected = *b"\xda\x87\xc1\xd8\x6b\x99\xaf\x44\x34\x76\x59\x11\x9b\x22\xfc\x45";
        assert_eq!(hasher.finish128().as_u128(), u128::from_le_bytes(expected));
        let mut hasher = SipHasher24x128::new_with_key(&[0; 16]);
        hasher.write(b"abc");
        assert_eq!(hash128("siphash", "abc"), hasher.finish128().as_u128());
    }

    /// Expected values are from RFC 9923 and the authors' test vectors.
    #[test]
    fn fnv_1a_of_the_originals() {
        assert_eq!(hash64("fnv-1a", ""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(hash64("fnv-1a", "a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(hash64("fnv-1a", "foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(hash128("fnv-1a", ""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(hash128("fnv-1a", "a"), 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
        assert_eq!(hash128("fnv-1a", "foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }

    proptest! {
        /// Changing any one byte of a feature changes its hash by every hash function. Features have up to 40 bytes, because
        /// lookup2 and lookup3 process blocks of 12 bytes, and the last block may be incomplete.
        #[test]
        fn every_byte_counts(feature in "[a-z]{1,40}", at in any::<prop::sample::Index>()) {
            let at = at.index(feature.len());
            let mut other = feature.clone();
            other.replace_range(at..=at, if &feature[at..=at] == "a" { "b" } else { "a" });
            for (name, hash) in FeatureHash::ALL {
                prop_assert_ne!(hash.hash::<u64>(&feature), hash.hash::<u64>(&other), "{}", name);
                prop_assert_ne!(hash.hash::<u128>(&feature), hash.hash::<u128>(&other), "{}", name);
            }
        }

        #[test]
        fn string_hash_is_the_same_modulo_both_widths(feature in ".{0,20}") {
            let mut hash = feature.chars().next().map_or(0, |c| u64::from(u32::from(c)) << 7);
            for c in feature.chars() {
                hash = hash.wrapping_mul(1_000_003) ^ u64::from(u32::from(c));
            }
            hash ^= feature.chars().count() as u64;
            prop_assert_eq!(hash64("string-hash", &feature), hash);
            prop_assert_eq!(hash128("string-hash", &feature) as u64, hash);
        }
    }
}
