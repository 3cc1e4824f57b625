//! Eight fingerprints, or entries of a block's directory, of the codecs with spans at once.

/// Up to eight fingerprints that follow one another, each coded by its tail (`codec/difference.rs`), of which those in a
/// range and near a query are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tails<'a> {
    /// Whether each fingerprint is the one before plus a leading one and its tail, or else has them in the place of the
    /// same bits of the one before.
    pub(crate) adds: bool,
    /// Bits of the tails, in order, a byte each, at most [`Tails::LONGEST`].
    pub(crate) lengths: u64,
    /// How many of them to look at, at most eight.
    pub(crate) count: u32,
    /// Bytes among which are the tails.
    pub(crate) bytes: &'a [u8; 64],
    /// Bit position among them at which the first tail ends; the next one ends where it starts.
    pub(crate) end: u32,
    /// The fingerprint before the first.
    pub(crate) previous: u64,
    /// Both included.
    pub(crate) range: (u64, u64),
    pub(crate) query: u64,
    pub(crate) distance: u32,
}

/// What [`Tails::near`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NearTails {
    /// The fingerprints; behind the last there is nothing but itself.
    pub(crate) values: [u64; 8],
    /// Which of them are near the query and in the range.
    pub(crate) near: u8,
    /// Whether one is above the range.
    pub(crate) above: bool,
}

impl Tails<'_> {
    /// The longest tail that there is room for.
    pub(crate) const LONGEST: u32 = 57;

    /// Goes through them.
    #[inline(always)]
    pub(crate) fn near(&self) -> NearTails {
        #[cfg(target_arch = "x86_64")]
        if super::x86::level() >= super::x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::near(self) };
        }
        self.near_plain()
    }

    /// The twin of [`Tails::near`] without special instructions.
    pub(super) fn near_plain(&self) -> NearTails {
        let mut found = NearTails { values: [0; 8], near: 0, above: false };
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

/// Up to eight fields of the same width, as far from one another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    /// The lines of the cache in which they are: two that follow one another, or one twice.
    pub(crate) lines: [&'a [u8; 64]; 2],
    /// Bit position of the first field.
    pub(crate) position: u32,
    /// Bit position behind which there is no field.
    pub(crate) end: u32,
    /// Bits from the start of one field to that of the next, at least `width`.
    pub(crate) step: u32,
    /// Bits of a field, at most 57.
    pub(crate) width: u32,
}

impl Fields<'_> {
    /// A mask of the fields that are there, and of those that are at most `bound`.
    #[inline(always)]
    pub(crate) fn at_most(&self, bound: u64) -> (u8, u8) {
        #[cfg(target_arch = "x86_64")]
        if super::x86::level() >= super::x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::at_most(self, bound) };
        }
        self.at_most_plain(bound)
    }

    /// The twin of [`Fields::at_most`] without special instructions.
    pub(super) fn at_most_plain(&self, bound: u64) -> (u8, u8) {
        let (mut there, mut below) = (0, 0);
        for (i, start) in (0..8).map(|i| (i, self.position + i * self.step)) {
            if start + self.step <= self.end {
                let bit = |at: u32| {
                    u64::from(self.lines[at as usize / 512 % 2][at as usize / 8 % 64] >> (at % 8) & 1)
                };
                let field = (0..self.width).map(|j| bit(start + j) << j).sum::<u64>();
                there |= 1 << i;
                below |= u8::from(field <= bound) << i;
            }
        }
        (there, below)
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::super::x86::{bytes_of, fields_at};

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn near(tails: &super::Tails) -> super::NearTails {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let (zero, ones) = (splat(0), splat(u64::MAX));
        let there = (1_u32 << tails.count.min(8)) - 1;
        let there = there as u8;
        let lengths = _mm512_cvtepu8_epi64(_mm_set_epi64x(0, tails.lengths.cast_signed()));
        let lengths = _mm512_maskz_mov_epi64(there, lengths);
        // The sums of the lengths up to each, by doubling the distance from which one adds.
        let mut sums = lengths;
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<7>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<6>(sums, zero));
        sums = _mm512_add_epi64(sums, _mm512_alignr_epi64::<4>(sums, zero));
        let position = _mm512_sub_epi64(splat(u64::from(tails.end)), sums);
        // SAFETY: 64 bytes are read from an array of 64.
        let bytes = unsafe { _mm512_loadu_si512(tails.bytes.as_ptr().cast()) };
        let field = fields_at(position, bytes);
        // Which bits of the predecessor stay, and what the others are; places without a tail keep all.
        let kept = _mm512_mask_mov_epi64(ones, there, _mm512_sllv_epi64(ones, lengths));
        let leading = _mm512_maskz_mov_epi64(there, _mm512_sllv_epi64(splat(1), lengths));
        let mut tail = _mm512_or_si512(_mm512_andnot_si512(kept, field), leading);
        let values = if tails.adds {
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<7>(tail, zero));
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<6>(tail, zero));
            tail = _mm512_add_epi64(tail, _mm512_alignr_epi64::<4>(tail, zero));
            _mm512_add_epi64(splat(tails.previous), tail)
        } else {
            // Two steps after one another are a step, too: what the first puts in, as far as the second keeps it.
            let mut kept = kept;
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<7>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<7>(kept, ones));
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<6>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<6>(kept, ones));
            tail = _mm512_or_si512(tail, _mm512_and_si512(kept, _mm512_alignr_epi64::<4>(tail, zero)));
            kept = _mm512_and_si512(kept, _mm512_alignr_epi64::<4>(kept, ones));
            _mm512_or_si512(tail, _mm512_and_si512(kept, splat(tails.previous)))
        };
        let above = _mm512_cmpgt_epu64_mask(values, splat(tails.range.1)) & there;
        let in_range = _mm512_cmpge_epu64_mask(values, splat(tails.range.0)) & there;
        let distance = _mm512_popcnt_epi64(_mm512_xor_si512(values, splat(tails.query)));
        let near = _mm512_cmple_epu64_mask(distance, splat(u64::from(tails.distance)));
        let near = near & in_range & above.wrapping_sub(1) & !above;
        let mut found = super::NearTails { values: [0; 8], near, above: above != 0 };
        // SAFETY: 64 bytes are written to an array of 64.
        unsafe { _mm512_storeu_si512(found.values.as_mut_ptr().cast(), values) };
        found
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn at_most(fields: &super::Fields, bound: u64) -> (u8, u8) {
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
        let there = _mm512_cmple_epu64_mask(end, splat(u64::from(fields.end)));
        (there, _mm512_cmple_epu64_mask(field, splat(bound)) & there)
    }
}
