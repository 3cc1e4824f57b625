//! One line of 64 bytes.

use byteorder::{ByteOrder, LittleEndian};

use super::shape::{LineShape, MAX_LINE_KEYS};
use crate::error::Damage;
use crate::simd::Level;

/// Length of a line in bytes: a cache line.
pub(crate) const LINE_BYTES: usize = 64;

/// Offset of the field "rank".
const RANK: usize = 8;
/// Offset of the low bytes of the keys.
const KEYS: usize = LINE_BYTES - MAX_LINE_KEYS as usize;
/// Offset of the field "low bits" in a divided line.
const LOW_BITS: usize = 1;
/// Offset of the field "lines" in a divided line.
const LINES: usize = 4;
/// Offset of the field "first line" in a divided line, and of "key" in a run.
const NUMBER: usize = 16;
/// Offset of the field "keys" in a run.
const COUNT: usize = 24;

/// First byte of a divided line.
const DIVIDED: u8 = 1;
/// First byte of a run.
const RUN: u8 = 3;

/// A line of a table's prefix lines.
#[derive(Clone, Copy)]
pub(crate) struct PrefixLine<'a>(pub(crate) &'a [u8; LINE_BYTES]);

/// Content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    /// Keys, one byte each. `counts` has the number of keys of each slot, in unary.
    Keys { counts: u64 },
    /// No keys: `lines` other lines have them, from the line with the number `first_line` on. They have `low_bits` low bits.
    Divided { first_line: u64, lines: u64, low_bits: u32 },
    /// `count` equal keys. `key` is counted from the first prefix of the line.
    Run { key: u64, count: u64 },
}

impl PrefixLine<'_> {
    #[inline(always)]
    fn counts(self) -> u64 {
        LittleEndian::read_u64(&self.0[..8])
    }

    /// Rank of the first key.
    #[inline(always)]
    pub(crate) fn rank(self) -> u64 {
        LittleEndian::read_u64(&self.0[RANK..RANK + 8]) & ((1 << 40) - 1)
    }

    /// Low byte of the key with this index in a line of keys. `index` is below [`MAX_LINE_KEYS`].
    #[inline(always)]
    pub(crate) fn low_byte(self, index: u32) -> u8 {
        self.0[(KEYS + index as usize) % LINE_BYTES]
    }

    /// Returns the counts of a line of keys, or `None` if the line is divided or a run.
    #[inline(always)]
    pub(crate) fn key_counts(self) -> Option<u64> {
        let counts = self.counts();
        (counts & 1 == 0).then_some(counts)
    }

    /// Returns the kind of the line, which belongs to a group of this shape.
    #[inline]
    pub(crate) fn kind(self, shape: LineShape) -> Result<LineKind, Damage> {
        let line = self.0;
        match self.key_counts() {
            Some(counts) => {
                let used = 64 - counts.leading_zeros();
                let ones = counts.count_ones();
                if u64::from(ones) > MAX_LINE_KEYS || used - ones > shape.slots() {
                    let expected = "at most 51 ones, and at most one zero for each slot";
                    return Err(Damage::Field { name: "counts", found: counts, expected });
                }
                Ok(LineKind::Keys { counts })
            }
            None => match line[0] {
                DIVIDED => Ok(LineKind::Divided {
                    first_line: LittleEndian::read_u64(&line[NUMBER..]),
                    lines: u64::from(LittleEndian::read_u32(&line[LINES..])),
                    low_bits: u32::from(line[LOW_BITS]),
                }),
                RUN => Ok(LineKind::Run {
                    key: LittleEndian::read_u64(&line[NUMBER..]),
                    count: LittleEndian::read_u64(&line[COUNT..]),
                }),
                other => {
                    let expected = "an even number, 1 or 3";
                    Err(Damage::Field { name: "kind of a line", found: u64::from(other), expected })
                }
            },
        }
    }

    /// Returns a mask of the keys whose low byte differs from `low` in at most `distance` of the bits of `mask`. Bit i is for
    /// the key with the index i; bits from the number of keys on have no meaning.
    #[inline(always)]
    pub(crate) fn matching_keys(self, level: Level, low: u8, mask: u8, distance: u32) -> u64 {
        level.matching_bytes(self.0, low, mask, distance) >> KEYS
    }

    /// Encodes a line of keys. `keys` has the slot and the low byte of each key; the slots ascend.
    pub(super) fn encode_keys(rank: u64, keys: impl Iterator<Item = (u32, u8)>) -> [u8; LINE_BYTES] {
        let mut line = [0; LINE_BYTES];
        let (mut counts, mut position, mut slot) = (0_u64, 1, 0);
        for (i, (next, low_byte)) in keys.enumerate() {
            position += next - slot;
            slot = next;
            counts |= 1 << position;
            position += 1;
            line[KEYS + i] = low_byte;
        }
        write_rank(&mut line, rank);
        LittleEndian::write_u64(&mut line, counts);
        line
    }

    pub(super) fn encode_divided(rank: u64, first_line: u64, shape: LineShape) -> [u8; LINE_BYTES] {
        let mut line = [0; LINE_BYTES];
        (line[0], line[LOW_BITS]) = (DIVIDED, shape.low_bits() as u8);
        LittleEndian::write_u32(&mut line[LINES..], shape.lines() as u32);
        write_rank(&mut line, rank);
        LittleEndian::write_u64(&mut line[NUMBER..], first_line);
        line
    }

    pub(super) fn encode_run(rank: u64, key: u64, count: u64) -> [u8; LINE_BYTES] {
        let mut line = [0; LINE_BYTES];
        line[0] = RUN;
        write_rank(&mut line, rank);
        LittleEndian::write_u64(&mut line[NUMBER..], key);
        LittleEndian::write_u64(&mut line[COUNT..], count);
        line
    }

    /// Whether all bytes without a meaning are zero. `kind` is the kind of the line.
    pub(super) fn is_padded_with_zeros(self, kind: LineKind) -> bool {
        let mut again = match kind {
            LineKind::Keys { counts } => {
                let mut line = [0; LINE_BYTES];
                let end = KEYS + counts.count_ones() as usize;
                line[..end].copy_from_slice(&self.0[..end]);
                line
            }
            LineKind::Divided { first_line, lines, low_bits } => {
                let mut line = [0; LINE_BYTES];
                (line[0], line[LOW_BITS]) = (DIVIDED, low_bits as u8);
                LittleEndian::write_u32(&mut line[LINES..], lines as u32);
                LittleEndian::write_u64(&mut line[NUMBER..], first_line);
                line
            }
            LineKind::Run { key, count } => PrefixLine::encode_run(0, key, count),
        };
        if !matches!(kind, LineKind::Keys { .. }) {
            write_rank(&mut again, self.rank());
        }
        again == *self.0
    }
}

fn write_rank(line: &mut [u8; LINE_BYTES], rank: u64) {
    line[RANK..KEYS].copy_from_slice(&rank.to_le_bytes()[..KEYS - RANK]);
}

/// The keys of one slot of a line of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotKeys {
    /// Index of the first key.
    pub(crate) start: u32,
    /// Number of keys.
    pub(crate) count: u32,
}

impl SlotKeys {
    /// Returns the keys of a slot. `counts` are the counts of the line.
    #[inline(always)]
    pub(crate) fn of_slot(level: Level, counts: u64, slot: u32) -> SlotKeys {
        // Valid counts have more zeros than slots. In others, the position is at most 63.
        let zero = level.select(!counts, slot).min(63);
        let count = (counts >> zero >> 1).trailing_ones();
        SlotKeys { start: zero.saturating_sub(slot), count }
    }

    /// Mask of these keys: bit i is set for the key with the index i.
    #[inline(always)]
    pub(crate) fn mask(self) -> u64 {
        (1_u64.checked_shl(self.count).unwrap_or(0).wrapping_sub(1)) << (self.start % 64)
    }
}
