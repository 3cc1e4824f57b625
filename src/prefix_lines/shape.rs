//! The arithmetic that leads from a prefix to its line.

use std::ops::{Range, RangeInclusive};

use crate::error::Damage;
use crate::format;

/// Maximum number of low bits of a prefix: those that a line stores in a byte.
pub(crate) const MAX_LOW_BITS: u32 = 8;
/// Minimum and maximum number of bits of a prefix in the lines of a table.
const KEY_BITS: RangeInclusive<u32> = format::MIN_KEY_BITS..=40;
/// Maximum number of keys in a line. Each takes one of its 64 bytes; 13 bytes are for their counts and the rank.
pub(super) const MAX_LINE_KEYS: u64 = 51;
/// Maximum number of slots of a line.
const MAX_SLOTS: u64 = 32;
/// A writer chooses the number of bits so that a line has at least this number of buckets on average.
const MIN_MEAN_BUCKETS: u64 = 6;
/// Mean number of keys in the lines that divide another line, as the writer plans it.
const MEAN_DIVIDED_KEYS: u64 = 32;

/// The shape of a group of lines: how many lines there are, and how arithmetic leads from a prefix to its line. The main
/// lines of a table are such a group; so are the lines that divide another line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineShape {
    /// Number of bits of a prefix.
    key_bits: u32,
    /// Number of low bits, which are not part of the bucket's number.
    low_bits: u32,
    /// Number of lines.
    lines: u64,
    /// Number of slots of a line.
    slots: u64,
}

/// The place of a bucket: its line in the group, and its slot in the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LineAddress {
    pub(crate) line: u64,
    pub(crate) slot: u32,
}

impl LineShape {
    /// Mean number of keys in the main lines of a table with random fingerprints.
    pub(crate) const MEAN_KEYS: u64 = 36;

    /// The shape of no group.
    pub(super) const NONE: LineShape = LineShape { key_bits: 0, low_bits: 0, lines: 0, slots: 0 };

    /// Creates the shape of a group. `low_bits` is at most `key_bits`, and `lines` is at least 1.
    fn from_parts(key_bits: u32, low_bits: u32, lines: u64) -> LineShape {
        let slots = (1_u64 << (key_bits - low_bits)).div_ceil(lines);
        LineShape { key_bits, low_bits, lines, slots }
    }

    /// Chooses the shape of the main lines of a table of `fingerprints` fingerprints, at least one, with `mean_keys`
    /// keys in a line on average. A fingerprint has `fingerprint_bits` bits.
    pub(crate) fn for_table(fingerprints: u64, mean_keys: u64, fingerprint_bits: u32) -> LineShape {
        let max_bits = *KEY_BITS.end().min(&(fingerprint_bits - 8));
        let lines = fingerprints.div_ceil(mean_keys).clamp(1, 1 << (max_bits - MAX_LOW_BITS));
        let bucket_bits = (lines * MIN_MEAN_BUCKETS).next_power_of_two().ilog2();
        LineShape::from_parts((bucket_bits + MAX_LOW_BITS).min(max_bits), MAX_LOW_BITS, lines)
    }

    /// Reads the shape of the main lines of a table from the fields of its header.
    pub(crate) fn from_header(key_bits: u32, lines: u64, fingerprint_bits: u32) -> Result<LineShape, Damage> {
        if !KEY_BITS.contains(&key_bits) || key_bits > fingerprint_bits - 8 {
            let expected = "8 to 40, and at most the bits of a fingerprint less 8";
            return Err(Damage::Field { name: "key bits", found: u64::from(key_bits), expected });
        }
        LineShape::checked(key_bits, MAX_LOW_BITS, lines, 1)
    }

    /// Chooses the shape of the lines that divide `line` of this group. `weight` is the number of its keys, where a prefix with
    /// very many equal keys counts as a full line.
    pub(super) fn to_divide(self, line: u64, weight: u64) -> LineShape {
        let key_bits = self.bits_within(line);
        let lines = weight.div_ceil(MEAN_DIVIDED_KEYS).clamp(2, 1 << key_bits);
        let bucket_bits = (lines * MIN_MEAN_BUCKETS).next_power_of_two().ilog2();
        let bucket_bits = bucket_bits.max(key_bits.saturating_sub(MAX_LOW_BITS)).min(key_bits);
        LineShape::from_parts(key_bits, key_bits - bucket_bits, lines)
    }

    /// Returns the shape of the lines that divide `line` of this group, from the fields of the divided line.
    #[inline]
    pub(super) fn divided(self, line: u64, low_bits: u32, lines: u64) -> Result<LineShape, Damage> {
        let key_bits = self.bits_within(line);
        if low_bits > MAX_LOW_BITS.min(key_bits) {
            let expected = "at most 8, and at most the bits of a key of the divided line";
            return Err(Damage::Field { name: "low bits", found: u64::from(low_bits), expected });
        }
        LineShape::checked(key_bits, low_bits, lines, 2)
    }

    fn checked(key_bits: u32, low_bits: u32, lines: u64, min_lines: u64) -> Result<LineShape, Damage> {
        let buckets = 1_u64 << (key_bits - low_bits);
        if lines < min_lines || lines > buckets || buckets.div_ceil(lines) > MAX_SLOTS {
            let expected = "at most one for each bucket, and at least one for 32 buckets";
            return Err(Damage::Field { name: "lines", found: lines, expected });
        }
        Ok(LineShape::from_parts(key_bits, low_bits, lines))
    }

    pub(crate) fn key_bits(self) -> u32 {
        self.key_bits
    }

    #[inline(always)]
    pub(crate) fn low_bits(self) -> u32 {
        self.low_bits
    }

    /// Number of bits of a bucket's number.
    #[inline(always)]
    pub(crate) fn bucket_bits(self) -> u32 {
        self.key_bits - self.low_bits
    }

    pub(crate) fn lines(self) -> u64 {
        self.lines
    }

    #[inline(always)]
    pub(crate) fn slots(self) -> u32 {
        self.slots as u32
    }

    /// Maximum number of keys in a line.
    pub(super) fn max_keys(self) -> u64 {
        MAX_LINE_KEYS.min(64 - self.slots)
    }

    /// Returns the place of a bucket. `bucket` has at most [`LineShape::bucket_bits`] bits.
    #[inline(always)]
    pub(crate) fn address(self, bucket: u64) -> LineAddress {
        let bits = self.bucket_bits();
        // Below 2^64: a bucket's number has at most 32 bits, and there are at most 2^32 lines.
        let product = bucket * self.lines;
        let within = product & ((1 << bits) - 1);
        LineAddress { line: product >> bits, slot: ((within * self.slots) >> bits) as u32 }
    }

    /// Mean number of buckets of a line.
    pub(crate) fn mean_buckets(self) -> f64 {
        f64::from(self.bucket_bits()).exp2() / self.lines as f64
    }

    /// Buckets of a line.
    #[inline]
    pub(crate) fn buckets(self, line: u64) -> Range<u64> {
        let bits = self.bucket_bits();
        let first = |line: u64| {
            if line >= self.lines { 1 << bits } else { (line << bits).div_ceil(self.lines) }
        };
        first(line)..first(line + 1)
    }

    /// Returns the first prefix of a line.
    #[inline]
    pub(crate) fn first_key(self, line: u64) -> u64 {
        self.buckets(line).start << self.low_bits
    }

    /// Number of bits of a number that counts the prefixes of a line from its first one.
    fn bits_within(self, line: u64) -> u32 {
        let buckets = self.buckets(line);
        (buckets.end - buckets.start).max(1).next_power_of_two().ilog2() + self.low_bits
    }
}
