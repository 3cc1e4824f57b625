//! Kernels of the codecs that code a fingerprint by its difference to its predecessor. One kernel decodes eight
//! fingerprints and compares them with a query. The other finds, among eight entries of a block's directory, the
//! place where decoding starts.

/// Up to eight consecutive fingerprints, to compare with a range and a query. Each is coded by its *tail*: either its
/// bits after the first bit that differs from its predecessor, or the bits after the top bit of the numeric
/// difference to the predecessor (`codec/delta.rs`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct TailGroup8<'a> {
    /// How to compute a fingerprint from its tail and its predecessor. A one bit is put before the tail. If `adds`
    /// is true, the resulting number is added to the predecessor. If false, the resulting number replaces the low
    /// bits of the predecessor.
    pub(crate) adds: bool,
    /// Lengths of the tails in bits, one byte each; the lowest byte is the length of the first tail. Each length is at most
    /// [`TailGroup8::MAX_TAIL_BITS`].
    pub(crate) lengths: u64,
    /// Number of fingerprints, at most eight.
    pub(crate) count: u32,
    /// Bytes that contain the tails.
    pub(crate) bytes: &'a [u8; 64],
    /// Bit position in `bytes` where the first tail ends. The tails are stored backward: the second tail ends where the
    /// first starts, and so on.
    pub(crate) end: u32,
    /// Predecessor of the first fingerprint.
    pub(crate) previous: u64,
    /// Lowest and highest fingerprint to find, both inclusive.
    pub(crate) range: (u64, u64),
    pub(crate) query: u64,
    pub(crate) distance: u32,
}

/// Result of [`TailGroup8::find_matches`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TailGroup8Matches {
    /// The decoded fingerprints, from the start of the array. The last fingerprint is repeated up to the end of
    /// the array.
    pub(crate) values: [u64; 8],
    /// Mask of the fingerprints in [`TailGroup8::range`] and within the distance of the query.
    pub(crate) near: u8,
    /// Whether any fingerprint of the group is above [`TailGroup8::range`].
    pub(crate) above: bool,
}

impl TailGroup8<'_> {
    /// Length of the longest supported tail, in bits.
    pub(crate) const MAX_TAIL_BITS: u32 = 57;

    /// Decodes the fingerprints of the group, and compares each with `self.range` and `self.query`.
    #[inline(always)]
    pub(crate) fn find_matches(&self) -> TailGroup8Matches {
        #[cfg(target_arch = "x86_64")]
        if super::x86::level() >= super::x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::find_matches(self) };
        }
        self.find_matches_plain()
    }

    /// The version of [`TailGroup8::find_matches`] for processors without AVX-512.
    pub(super) fn find_matches_plain(&self) -> TailGroup8Matches {
        let mut found = TailGroup8Matches { values: [0; 8], near: 0, above: false };
        let (mut value, mut position) = (self.previous, self.end);
        for i in 0..8 {
            let length = (self.lengths >> (8 * i)) as u32 & 63;
            if i < self.count {
                position = position.wrapping_sub(length);
                let bit = |j: u32| {
                    let at = position.wrapping_add(j) as usize;
                    u64::from(self.bytes[at / 8 % 64] >> (at % 8) & 1) << j
                };
                let tail = 1 << length | (0..length).map(bit).sum::<u64>();
                value = if self.adds { value.wrapping_add(tail) } else { value & u64::MAX << length | tail };
                found.above |= value > self.range.1;
                let near = (value ^ self.query).count_ones() <= self.distance;
                found.near |= u8::from(near && value >= self.range.0 && !found.above) << i;
            }
            found.values[i as usize] = value;
        }
        found
    }
}

/// Up to eight bit fields of the same width, at equal distances, to compare with a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FieldGroup8<'a> {
    /// Cache lines that contain the fields: two consecutive lines, or the same line twice.
    pub(crate) lines: [&'a [u8; 64]; 2],
    /// Bit position in `lines` of the first field.
    pub(crate) position: u32,
    /// Bit position in `lines` where the sequence of fields ends: only the fields that start at least `step` bits before
    /// it exist.
    pub(crate) end: u32,
    /// Distance in bits from the start of one field to the start of the next, at least `width`.
    pub(crate) step: u32,
    /// Width of a field in bits, at most 57.
    pub(crate) width: u32,
}

impl FieldGroup8<'_> {
    /// Returns a mask of the fields that exist (that lie before `self.end`), and a mask of the existing fields whose value is
    /// at most `bound`.
    #[inline(always)]
    pub(crate) fn at_most_masks(&self, bound: u64) -> (u8, u8) {
        #[cfg(target_arch = "x86_64")]
        if super::x86::level() >= super::x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::at_most_masks(self, bound) };
        }
        self.at_most_masks_plain(bound)
    }

    /// The version of [`FieldGroup8::at_most_masks`] for processors without AVX-512.
    pub(super) fn at_most_masks_plain(&self, bound: u64) -> (u8, u8) {
        let (mut present, mut below) = (0, 0);
        for (i, start) in (0..8).map(|i| (i, self.position + i * self.step)) {
            if start + self.step <= self.end {
                let bit = |at: u32| {
                    u64::from(self.lines[at as usize / 512 % 2][at as usize / 8 % 64] >> (at % 8) & 1)
                };
                let field = (0..self.width).map(|j| bit(start + j) << j).sum::<u64>();
                present |= 1 << i;
                below |= u8::from(field <= bound) << i;
            }
        }
        (present, below)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86::{bytes_of, fields_at};

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn find_matches(tails: &super::TailGroup8) -> super::TailGroup8Matches {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let (zero, ones) = (splat(0), splat(u64::MAX));
        let present = (1_u32 << tails.count.min(8)) - 1;
        let present = present as u8;
        let lengths = _mm512_cvtepu8_epi64(_mm_set_epi64x(0, tails.lengths.cast_signed()));
        let lengths = _mm512_maskz_mov_epi64(present, lengths);
        // Prefix sums of the lengths: each step adds the value one, two, then four places before.
        let mut sums = lengths;
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
        let position = _mm512_sub_epi64(splat(u64::from(tails.end)), sums);
        // SAFETY: 64 bytes are read from an array of 64.
        let bytes = unsafe { _mm512_loadu_si512(tails.bytes.as_ptr().cast()) };
        let field = fields_at(position, bytes);
        // `kept` masks the bits that a fingerprint has from its predecessor; `tail` has the other bits. Places without a tail keep
        // all bits.
        let kept = _mm512_mask_mov_epi64(ones, present, _mm512_sllv_epi64(ones, lengths));
        let leading = _mm512_maskz_mov_epi64(present, _mm512_sllv_epi64(splat(1), lengths));
        let mut tail = _mm512_or_si512(_mm512_andnot_si512(kept, field), leading);
        let values = if tails.adds {
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<7>(tail, zero));
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<6>(tail, zero));
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<4>(tail, zero));
            _mm512_add_epi64(splat(tails.previous), tail)
        } else {
            // Two consecutive steps combine to one: the first step's tail, masked by the second step's kept bits, or the
            // second's tail.
            let mut kept = kept;
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<7>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<7>(kept, ones));
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<6>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<6>(kept, ones));
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<4>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<4>(kept, ones));
            _mm512_or_si512(tail, _mm512_and_si512(kept, splat(tails.previous)))
        };
        let above = _mm512_cmpgt_epu64_mask(values, splat(tails.range.1)) & present;
        let in_range = _mm512_cmpge_epu64_mask(values, splat(tails.range.0)) & present;
        let distance = _mm512_popcnt_epi64(_mm512_xor_si512(values, splat(tails.query)));
        let near = _mm512_cmple_epu64_mask(distance, splat(u64::from(tails.distance)));
        let near = near & in_range & above.wrapping_sub(1) & !above;
        let mut found = super::TailGroup8Matches { values: [0; 8], near, above: above != 0 };
        // SAFETY: 64 bytes are written to an array of 64.
        unsafe { _mm512_storeu_si512(found.values.as_mut_ptr().cast(), values) };
        found
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn at_most_masks(fields: &super::FieldGroup8, bound: u64) -> (u8, u8) {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let numbers = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        let position = _mm512_mul_epu32(numbers, splat(u64::from(fields.step)));
        let position = _mm512_add_epi64(position, splat(u64::from(fields.position)));
        // SAFETY: 64 bytes each are read from arrays of 64.
        let (low, high) = unsafe {
            (
                _mm512_loadu_si512(fields.lines[0].as_ptr().cast()),
                _mm512_loadu_si512(fields.lines[1].as_ptr().cast()),
            )
        };
        let field = _mm512_permutex2var_epi8(low, bytes_of(position), high);
        let field = _mm512_srlv_epi64(field, _mm512_and_si512(position, splat(7)));
        let width = splat(u64::from(fields.width));
        let field = _mm512_andnot_si512(_mm512_sllv_epi64(splat(u64::MAX), width), field);
        let end = _mm512_add_epi64(position, splat(u64::from(fields.step)));
        let present = _mm512_cmple_epu64_mask(end, splat(u64::from(fields.end)));
        (present, _mm512_cmple_epu64_mask(field, splat(bound)) & present)
    }
}
