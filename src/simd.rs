//! Code that uses features of the processor: prefetching, and *kernels*, functions that are also compiled for newer
//! instructions. The fastest version for the processor is chosen at run time. On a processor without the instructions, a
//! version in plain Rust with the same results runs.

#![expect(unsafe_code, reason = "prefetching, and calls of code for features that were found at run time")]

mod matching_bytes;
mod span_groups;
mod word_group;

pub(crate) use self::span_groups::{FieldGroup8, TailGroup8, TailGroup8Matches};
pub(crate) use self::word_group::{Deltas8, MAX_POSITIONS, WordGroup8};

/// Environment variable that limits the instruction set to a level of x86-64: `v1`, `v3` or `v4`. Tests use it to run the
/// code for older processors.
#[cfg(target_arch = "x86_64")]
const CPU_VARIABLE: &str = "SIMSTORE_CPU";

/// Code that gains from newer instructions. The same Rust code is compiled three times: for any processor, for processors
/// with BMI2, POPCNT and AVX2 (x86-64-v3), and for processors that also have AVX-512 (Ice Lake, Zen 4 and later). All
/// functions that [`run`](Kernel::run) calls must be inlined into it (`#[inline(always)]`).
pub trait Kernel {
    /// Result of the kernel.
    type Output;
    /// Runs the kernel. Uses the instructions that the calling function is compiled for.
    fn run(self) -> Self::Output;

    /// Like [`Kernel::run`]. `level` is the level of the instructions that the calling function is compiled for.
    #[inline(always)]
    fn run_at(self, level: Level) -> Self::Output
    where
        Self: Sized,
    {
        let _ = level;
        self.run()
    }
}

/// Runs a kernel with the newest instructions that this processor has, of those that kernels are compiled for.
#[inline]
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V3 {
        // SAFETY: the processor has the features that the callee is compiled for.
        return unsafe { if x86::level() >= x86::V4 { x86::run_v4(kernel) } else { x86::run_v3(kernel) } };
    }
    kernel.run_at(Level::ANY)
}

/// Prefetches the cache line of the slice's element at index `at`. The index may lie outside the slice.
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

/// A level of instructions that this processor has. The level of a kernel is known when it is compiled, so its methods take no
/// time to find it out.
#[derive(Clone, Copy, Debug)]
pub struct Level(#[cfg(target_arch = "x86_64")] u8);

impl Level {
    /// The level that any processor has.
    pub(crate) const ANY: Level = Level(
        #[cfg(target_arch = "x86_64")]
        x86::V1,
    );

    /// Returns the highest level of this processor.
    #[inline(always)]
    pub(crate) fn of_processor() -> Level {
        Level(
            #[cfg(target_arch = "x86_64")]
            x86::level(),
        )
    }

    /// Like [`select`].
    #[inline(always)]
    pub(crate) fn select(self, word: u64, rank: u32) -> u32 {
        #[cfg(target_arch = "x86_64")]
        if self.0 >= x86::V3 {
            // SAFETY: the processor has BMI2.
            return unsafe { x86::select(word, rank) };
        }
        select_plain(word, rank)
    }
}

/// Returns the position of the set bit of `word` that has `rank` set bits below it. `word` must have more than `rank` set
/// bits.
#[inline(always)]
pub(crate) fn select(word: u64, rank: u32) -> u32 {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V3 {
        // SAFETY: the processor has BMI2.
        return unsafe { x86::select(word, rank) };
    }
    select_plain(word, rank)
}

/// The version of [`select`] for processors without BMI2. A binary search for the bit: each of six steps halves the
/// part of the word that contains it.
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

/// Returns how many of the first [`RANKED_NUMBERS`] numbers are less than `low`, and how many are at most `high`.
#[inline(always)]
pub(crate) fn ranks(numbers: &[u16; 32], low: u16, high: u16) -> (u32, u32) {
    #[cfg(target_arch = "x86_64")]
    if x86::level() >= x86::V4 {
        // SAFETY: the processor has the features that the callee is compiled for.
        return unsafe { x86::ranks(numbers, low, high) };
    }
    ranks_plain(numbers, low, high)
}

/// Number of array elements that [`ranks`] examines, from the first one on.
pub(crate) const RANKED_NUMBERS: usize = 29;

/// The version of [`ranks`] for processors without AVX-512.
#[inline(always)]
fn ranks_plain(numbers: &[u16; 32], low: u16, high: u16) -> (u32, u32) {
    let count = |holds: &dyn Fn(u16) -> bool| {
        numbers[..RANKED_NUMBERS].iter().map(|&x| u16::from(holds(x))).sum::<u16>()
    };
    (u32::from(count(&|x| x < low)), u32::from(count(&|x| x <= high)))
}

/// Whether the processor has AVX-512, with which the kernels for groups of eight numbers are fast. On other processors,
/// callers should process one number after the other, which is faster than the kernels' plain versions.
#[inline(always)]
pub(crate) fn has_fast_group8() -> bool {
    #[cfg(target_arch = "x86_64")]
    return x86::level() >= x86::V4;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// Up to eight consecutive numbers of an Elias-Fano code, to compare with a query. Each number is stored as upper
/// bits in unary and lower bits at fixed width.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EliasFanoGroup8<'a> {
    /// Upper bits in unary, from the first number of the group on. Each set bit represents a number.
    pub(crate) upper: u64,
    /// How many numbers to compare, at most eight.
    pub(crate) count: u32,
    /// Limit of the comparison: a number is compared only if at most this many zero bits precede its set bit in `upper`.
    pub(crate) zeros: u64,
    /// Bytes that contain the lower bits.
    pub(crate) bytes: &'a [u8; 64],
    /// Bit position in `bytes` of the lower bits of the eighth number. The lower bits of the seventh number follow, and so on
    /// down to the first.
    pub(crate) position: u32,
    /// Width of the lower bits of a number, at most 57.
    pub(crate) width: u32,
    /// Number to add to each decoded number before it is compared with the query.
    pub(crate) base: u64,
    pub(crate) query: u64,
    pub(crate) distance: u32,
}

impl EliasFanoGroup8<'_> {
    /// Decodes the numbers and compares them with the query. Returns the numbers, a mask of the numbers within the
    /// distance of the query, and a mask of the compared numbers. A number that is not within the distance may be
    /// returned as any value.
    #[inline(always)]
    pub(crate) fn find_matches(&self) -> ([u64; 8], u8, u8) {
        #[cfg(target_arch = "x86_64")]
        if x86::level() >= x86::V4 {
            // SAFETY: the processor has the features that the callee is compiled for.
            return unsafe { x86::find_matches(self) };
        }
        self.find_matches_plain()
    }

    /// The version of [`EliasFanoGroup8::find_matches`] for processors without AVX-512.
    fn find_matches_plain(&self) -> ([u64; 8], u8, u8) {
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

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;
    use std::sync::atomic::{AtomicU8, Ordering};

    const UNKNOWN: u8 = 0;
    pub(super) const V1: u8 = 1;
    pub(super) const V3: u8 = 2;
    pub(super) const V4: u8 = 3;

    static LEVEL: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// Instruction set level to use: that of the processor, but at most the one set by [`CPU_VARIABLE`](super::CPU_VARIABLE).
    #[inline(always)]
    pub(super) fn level() -> u8 {
        match LEVEL.load(Ordering::Relaxed) {
            UNKNOWN => detect(),
            level => level,
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
        let variable = std::env::var(super::CPU_VARIABLE).unwrap_or_default();
        let most = ["v1", "v3", "v4"].iter().position(|name| *name == variable).map_or(V4, |i| V1 + i as u8);
        let level = found.min(most);
        LEVEL.store(level, Ordering::Relaxed);
        level
    }

    // Never inlined, so that the kernel has all registers to itself.
    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    pub(super) fn run_v3<K: super::Kernel>(kernel: K) -> K::Output {
        kernel.run_at(super::Level(V3))
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn run_v4<K: super::Kernel>(kernel: K) -> K::Output {
        kernel.run_at(super::Level(V4))
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
        let all = (1 << super::RANKED_NUMBERS) - 1;
        ((below & all).count_ones(), (up_to & all).count_ones())
    }

    #[inline]
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,avx512vpopcntdq")]
    pub(super) fn find_matches(eight: &super::EliasFanoGroup8) -> ([u64; 8], u8, u8) {
        let splat = |value: u64| _mm512_set1_epi64(value.cast_signed());
        let numbers = _mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0);
        // Positions of the one bits: the list of all bit positions, compressed by the mask of ones.
        let bits: [u8; 64] = std::array::from_fn(|i| i as u8);
        // SAFETY: 64 bytes are read from an array of 64.
        let (bits, bytes) = unsafe {
            (_mm512_loadu_si512(bits.as_ptr().cast()), _mm512_loadu_si512(eight.bytes.as_ptr().cast()))
        };
        let ones = _mm512_maskz_compress_epi8(eight.upper, bits);
        let zeros = _mm512_sub_epi64(_mm512_cvtepu8_epi64(_mm512_castsi512_si128(ones)), numbers);
        let in_range = _mm512_cmple_epu64_mask(zeros, splat(eight.zeros));
        let present = (1_u32 << eight.upper.count_ones().min(eight.count).min(8)) - 1;
        let seen = in_range & present as u8;
        // Eight bytes for each number, from the byte where its lower bits start; shifted so that they start at bit 0.
        let width = splat(u64::from(eight.width));
        let back = _mm512_mul_epu32(_mm512_sub_epi64(splat(7), numbers), width);
        let position = _mm512_add_epi64(back, splat(u64::from(eight.position)));
        let field = fields_at(position, bytes);
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

    /// Returns eight bit fields from 64 bytes: for each of the eight bit positions, at least the 57 bits that start there.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn fields_at(position: __m512i, bytes: __m512i) -> __m512i {
        let field = _mm512_permutexvar_epi8(bytes_of(position), bytes);
        _mm512_srlv_epi64(field, _mm512_and_si512(position, _mm512_set1_epi64(7)))
    }

    /// Returns byte indexes for each of eight bit positions: the index of the byte that contains the position, and the next
    /// seven.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    pub(super) fn bytes_of(position: __m512i) -> __m512i {
        let first = repeat_low_byte(_mm512_srli_epi64::<3>(position));
        _mm512_add_epi8(first, _mm512_set1_epi64(0x0706_0504_0302_0100))
    }

    /// Copies the low byte of each 64-bit number to all its bytes.
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
