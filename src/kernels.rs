//! What depends on the processor: prefetching, and code compiled for newer processors than the least that the
//! binary runs on. Chosen at run time; where a feature is missing, the same safe code runs without it.

#![expect(unsafe_code, reason = "prefetching, and calls of code for features that were found at run time")]

mod differences;

pub(crate) use self::differences::{Follow, POSITIONS, Words};

/// The environment variable that keeps to fewer instructions than the processor has, `v1` or `v3`: for tests of the
/// code that other processors run.
#[cfg(target_arch = "x86_64")]
const VARIABLE: &str = "SIMSTORE_CPU";

/// Code that gains from newer instructions: the same Rust, compiled once for any processor, once for those with
/// BMI2, POPCNT and AVX2 (x86-64-v3), and once for those with AVX-512 too (Ice Lake, Zen 4 and later). Everything
/// it calls must be inlined into it.
pub(crate) trait Work {
    type Output;
    fn run(self) -> Self::Output;
}

/// Does the work with the best instructions that this processor has.
#[inline]
pub(crate) fn dispatch<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V3 {
        // SAFETY: the processor has the features that the callee is compiled for.
        return unsafe { if x86::level() >= x86::V4 { x86::run_v4(work) } else { x86::run_v3(work) } };
    }
    work.run()
}

/// Asks for the cache line of a byte of a slice, to be read soon; any position will do.
#[inline(always)]
pub(crate) fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint that reads nothing and faults at no address; it is part of SSE, which all x86-64 have.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(slice.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}

/// Position of the one bit number `rank` (from 0) of a word that has more than `rank` ones.
#[inline(always)]
pub(crate) fn select(word: u64, rank: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V3 {
        // SAFETY: the processor has BMI2.
        return unsafe { x86::select(word, rank) };
    }
    select_plain(word, rank)
}

/// The twin of [`select`] without special instructions: halves the word that holds the bit, six times.
#[inline]
fn select_plain(mut word: u64, mut rank: u32) -> u32 {
    let mut position = 0;
    for half in [32, 16, 8, 4, 2, 1] {
        let ones = (word & ((1 << half) - 1)).count_ones();
        if rank >= ones {
            rank -= ones;
            word >>= half;
            position += half;
        }
    }
    position
}

/// How many of the first 29 of some numbers are below `low`, and how many are at most `high`.
#[inline(always)]
pub(crate) fn ranks(numbers: &[u16; 32], low: u16, high: u16) -> (u32, u32) {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V4 {
        // SAFETY: the processor has the features that the callee is compiled for.
        return unsafe { x86::ranks(numbers, low, high) };
    }
    ranks_plain(numbers, low, high)
}

/// The numbers that [`ranks`] looks at.
pub(crate) const RANKED: usize = 29;

/// The twin of [`ranks`] without special instructions.
#[inline(always)]
fn ranks_plain(numbers: &[u16; 32], low: u16, high: u16) -> (u32, u32) {
    let count =
        |holds: &dyn Fn(u16) -> bool| numbers[..RANKED].iter().map(|&x| u16::from(holds(x))).sum::<u16>();
    (u32::from(count(&|x| x < low)), u32::from(count(&|x| x <= high)))
}

/// Up to eight numbers of an Elias-Fano code, of which those near a query are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eight<'a> {
    /// The upper bits from the first number on; each one is a number.
    pub(crate) upper: u64,
    /// How many of them to look at, at most eight.
    pub(crate) count: u32,
    /// Only those after at most this many of the zeros, too.
    pub(crate) zeros: u64,
    /// Bytes among which are the lower bits.
    pub(crate) bytes: &'a [u8; 64],
    /// Bit position among them of the lower bits of number eight; those of the others follow, to the first.
    pub(crate) position: u32,
    /// Length of the lower bits, at most 57.
    pub(crate) width: u32,
    /// What is added to all.
    pub(crate) base: u64,
    pub(crate) query: u64,
    pub(crate) distance: u32,
}

impl Eight<'_> {
    /// Whether [`Eight::near`] is fast here.
    #[inline(always)]
    pub(crate) fn is_fast() -> bool {
        #[cfg(target_arch = "x86_64")]
        return x86::level() >= x86::V4;
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// The numbers, a mask of those that are near the query, and a mask of those that were looked at. What the other
    /// numbers are means nothing.
    #[inline(always)]
    pub(crate) fn near(&self) -> ([u64; 8], u8, u8) {
        #[cfg(target_arch = "x86_64")]
        if x86::level() >= x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::near(self) };
        }
        self.near_plain()
    }

    /// The twin of [`Eight::near`] without special instructions.
    fn near_plain(&self) -> ([u64; 8], u8, u8) {
        let (mut numbers, mut near, mut seen) = ([0; 8], 0, 0);
        let mut upper = self.upper;
        for i in 0..self.count.min(8) {
            let zeros = u64::from(upper.trailing_zeros()) - u64::from(i);
            if upper == 0 || zeros > self.zeros {
                break;
            }
            upper &= upper - 1;
            let mut lower = 0;
            for bit in 0..self.width {
                let at = (self.position + (7 - i) * self.width + bit) as usize;
                lower |= u64::from(self.bytes[at / 8 % 64] >> (at % 8) & 1) << bit;
            }
            let number = self.base.wrapping_add(zeros << self.width | lower);
            numbers[i as usize] = number;
            seen |= 1 << i;
            near |= u8::from((number ^ self.query).count_ones() <= self.distance) << i;
        }
        (numbers, near, seen)
    }
}

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

    /// Whether [`Tails::near`] is fast here.
    #[inline(always)]
    pub(crate) fn is_fast() -> bool {
        Eight::is_fast()
    }

    /// Goes through them.
    #[inline(always)]
    pub(crate) fn near(&self) -> NearTails {
        #[cfg(target_arch = "x86_64")]
        if x86::level() >= x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::near_tails(self) };
        }
        self.near_plain()
    }

    /// The twin of [`Tails::near`] without special instructions.
    fn near_plain(&self) -> NearTails {
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
    /// Whether [`Fields::at_most`] is fast here.
    #[inline(always)]
    pub(crate) fn is_fast() -> bool {
        Eight::is_fast()
    }

    /// A mask of the fields that are there, and of those that are at most `bound`.
    #[inline(always)]
    pub(crate) fn at_most(&self, bound: u64) -> (u8, u8) {
        #[cfg(target_arch = "x86_64")]
        if x86::level() >= x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::fields_at_most(self, bound) };
        }
        self.at_most_plain(bound)
    }

    /// The twin of [`Fields::at_most`] without special instructions.
    fn at_most_plain(&self, bound: u64) -> (u8, u8) {
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
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    const V1: u8 = 1;
    pub(super) const V3: u8 = 2;
    pub(super) const V4: u8 = 3;

    static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// What the processor has.
    #[inline(always)]
    pub(super) fn level() -> u8 {
        match LEVEL.load(Ordering::Relaxed) {
            UNKNOWN => detect(),
            known => known,
        }
    }

    #[cold]
    fn detect() -> u8 {
        let v3 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        let v4 = v3
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("avx512vbmi2")
            && is_x86_feature_detected!("avx512vpopcntdq");
        let found = if v4 {
            V4
        } else if v3 {
            V3
        } else {
            V1
        };
        let asked = std::env::var(super::VARIABLE).unwrap_or_default();
        let most = ["v1", "v3", "v4"].iter().position(|name| *name == asked).map_or(V4, |i| V1 + i as u8);
        let level = found.min(most);
        LEVEL.store(level, Ordering::Relaxed);
        level
    }

    // Never inlined: the work has all registers to itself.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_v3<W: super::Work>(work: W) -> W::Output {
        work.run()
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn run_v4<W: super::Work>(work: W) -> W::Output {
        work.run()
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn select(word: u64, rank: u32) -> u32 {
        _pdep_u64(1 << rank, word).trailing_zeros()
    }

    #[inline]
    #[target_feature(enable = "popcnt,avx512f,avx512bw")]
    pub(super) fn ranks(numbers: &[u16; 32], low: u16, high: u16) -> (u32, u32) {
        // SAFETY: 64 bytes are read from an array of 64.
        let numbers = unsafe { _mm512_loadu_si512(numbers.as_ptr().cast()) };
        let splat = |number: u16| _mm512_set1_epi16(number.cast_signed());
        let below = _mm512_cmplt_epu16_mask(numbers, splat(low));
        let up_to = _mm512_cmple_epu16_mask(numbers, splat(high));
        let all = (1 << super::RANKED) - 1;
        ((below & all).count_ones(), (up_to & all).count_ones())
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn near(eight: &super::Eight) -> ([u64; 8], u8, u8) {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let numbers = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        // Where the ones are: the numbers of the bits, those of zeros left out.
        let bits: [u8; 64] = std::array::from_fn(|i| i as u8);
        // SAFETY: 64 bytes are read from an array of 64.
        let (bits, bytes) = unsafe {
            (_mm512_loadu_si512(bits.as_ptr().cast()), _mm512_loadu_si512(eight.bytes.as_ptr().cast()))
        };
        let ones = _mm512_maskz_compress_epi8(eight.upper, bits);
        let zeros = _mm512_sub_epi64(_mm512_cvtepu8_epi64(_mm512_castsi512_si128(ones)), numbers);
        let in_range = _mm512_cmple_epu64_mask(zeros, splat(eight.zeros));
        let there = (1_u32 << eight.upper.count_ones().min(eight.count).min(8)) - 1;
        let seen = in_range & there as u8;
        // The eight bytes in which the lower bits of each start, shifted into place.
        let width = splat(u64::from(eight.width));
        let back = _mm512_mul_epu32(_mm512_sub_epi64(splat(7), numbers), width);
        let position = _mm512_add_epi64(back, splat(u64::from(eight.position)));
        let first_byte = repeat_low_byte(_mm512_srli_epi64::<3>(position));
        let index = _mm512_add_epi8(first_byte, splat(0x0706_0504_0302_0100));
        let field = _mm512_permutexvar_epi8(index, bytes);
        let field = _mm512_srlv_epi64(field, _mm512_and_si512(position, splat(7)));
        let lower = _mm512_andnot_si512(_mm512_sllv_epi64(splat(u64::MAX), width), field);
        let number = _mm512_or_si512(_mm512_sllv_epi64(zeros, width), lower);
        let number = _mm512_add_epi64(number, splat(eight.base));
        let distance = _mm512_popcnt_epi64(_mm512_xor_si512(number, splat(eight.query)));
        let near = _mm512_cmple_epu64_mask(distance, splat(u64::from(eight.distance))) & seen;
        let mut values = [0; 8];
        if near != 0 {
            // SAFETY: 64 bytes are written to an array of 64.
            unsafe { _mm512_storeu_si512(values.as_mut_ptr().cast(), number) };
        }
        (values, near, seen)
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn near_tails(tails: &super::Tails) -> super::NearTails {
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
        let first_byte = repeat_low_byte(_mm512_srli_epi64::<3>(position));
        let index = _mm512_add_epi8(first_byte, splat(0x0706_0504_0302_0100));
        let field = _mm512_permutexvar_epi8(index, bytes);
        let field = _mm512_srlv_epi64(field, _mm512_and_si512(position, splat(7)));
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
    pub(super) fn fields_at_most(fields: &super::Fields, bound: u64) -> (u8, u8) {
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
        let first_byte = repeat_low_byte(_mm512_srli_epi64::<3>(position));
        let index = _mm512_add_epi8(first_byte, splat(0x0706_0504_0302_0100));
        let field = _mm512_permutex2var_epi8(low, index, high);
        let field = _mm512_srlv_epi64(field, _mm512_and_si512(position, splat(7)));
        let width = splat(u64::from(fields.width));
        let field = _mm512_andnot_si512(_mm512_sllv_epi64(splat(u64::MAX), width), field);
        let end = _mm512_add_epi64(position, splat(u64::from(fields.step)));
        let there = _mm512_cmple_epu64_mask(end, splat(u64::from(fields.end)));
        (there, _mm512_cmple_epu64_mask(field, splat(bound)) & there)
    }

    /// The low byte of each number in all its bytes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    fn repeat_low_byte(numbers: __m512i) -> __m512i {
        let low = _mm512_set1_epi64(0);
        let high = _mm512_set1_epi64(0x0808_0808_0808_0808);
        let pattern = _mm512_mask_blend_epi64(0b1010_1010, low, high);
        _mm512_shuffle_epi8(numbers, pattern)
    }
}

#[cfg(test)]
mod tests;
