//! Measures the time to compute the 512 minima of a MinHash signature, for sets of several sizes. Compares the library's algorithm
//! (`simstore_text::minhash`) with the two algorithms that it combines, [`Minima`] and [`Rounds`]. Prints a Markdown table of
//! microseconds per set, the fastest of several repetitions.
//!
//! Run it with `SIMSTORE_CPU=v3 cargo bench -p simstore-text --bench sketch`. The variable limits the instruction set to an x86-64
//! level: v1, v3 or v4.

use std::hint::black_box;
use std::time::Instant;

use simstore::simd::{Kernel, dispatch};
use simstore_text::minhash;

/// Number of minima in a signature.
const POSITIONS: usize = 512;
const SETS: usize = 64;
const REPETITIONS: usize = 20;

/// Returns the next output of SplitMix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Constants of the hash functions `member * odd + add`. For minimum i, [`Minima`] uses the 32-bit constants `odd[i]` and `add[i]`.
struct SignatureConstants {
    odd: [u32; POSITIONS],
    add: [u32; POSITIONS],
    /// Pairs `(odd, add)` of 64-bit constants for [`Rounds`]: first one pair for each of the 512 rounds, then one for each of the
    /// 512 minima, which is used if the minimum is still empty after the rounds.
    rounds: Vec<(u64, u64)>,
}

impl SignatureConstants {
    fn new() -> Self {
        let mut state = 1;
        let mut small = || std::array::from_fn(|_| random(&mut state) as u32 | 1);
        let (odd, add) = (small(), small());
        SignatureConstants {
            odd,
            add,
            rounds: (0..2 * POSITIONS).map(|_| (random(&mut state) | 1, random(&mut state))).collect(),
        }
    }
}

/// Algorithm that has a hash function for each of the 512 minima. Minimum i is the least value of hash function i over all
/// members of the set.
struct Minima<'a>(&'a [u64], &'a SignatureConstants);

impl Kernel for Minima<'_> {
    type Output = [u32; POSITIONS];

    #[inline(always)]
    fn run(self) -> [u32; POSITIONS] {
        let Minima(members, constants) = self;
        let mut minima = [u32::MAX; POSITIONS];
        let lanes = constants.odd.as_chunks::<64>().0.iter().zip(constants.add.as_chunks::<64>().0);
        for ((odd, add), minima) in lanes.zip(minima.as_chunks_mut::<64>().0) {
            let mut least = [u32::MAX; 64];
            for &member in members {
                for lane in 0..64 {
                    let value = (member as u32).wrapping_mul(odd[lane]).wrapping_add(add[lane]);
                    least[lane] = least[lane].min(value);
                }
            }
            *minima = least;
        }
        minima
    }
}

/// Algorithm that fills the 512 minima in rounds. In each round, a hash function assigns each member of the set to one of the
/// minima. The rounds end when every minimum has a member, or after 512 rounds. Minima that are still empty are then computed
/// over all members.
struct Rounds<'a>(&'a [u64], &'a SignatureConstants);

impl Kernel for Rounds<'_> {
    type Output = [u64; POSITIONS];

    #[inline(always)]
    fn run(self) -> [u64; POSITIONS] {
        let Rounds(members, constants) = self;
        let mut minima = [u64::MAX; POSITIONS];
        let mut assigned = 0;
        for (round, &(odd, add)) in (0..).zip(&constants.rounds[..POSITIONS]) {
            for &member in members {
                let hash = member.wrapping_mul(odd).wrapping_add(add);
                let minimum = &mut minima[(hash >> 55) as usize];
                *minimum = (*minimum).min(round << 32 | hash >> 23 & 0xffff_ffff);
            }
            assigned += members.len();
            if assigned > 2 * POSITIONS && !minima.contains(&u64::MAX) {
                return minima;
            }
        }
        for (minimum, &(odd, add)) in minima.iter_mut().zip(&constants.rounds[POSITIONS..]) {
            if *minimum == u64::MAX {
                let hashes = members.iter().map(|member| member.wrapping_mul(odd).wrapping_add(add));
                *minimum = hashes.min().unwrap_or_default();
            }
        }
        minima
    }
}

/// Calls `sign` for each set, and repeats this [`REPETITIONS`] times. Returns the mean time per set in the fastest repetition, in
/// microseconds.
fn microseconds(sets: &[Vec<u64>], sign: impl Fn(&[u64])) -> f64 {
    let time = || {
        let started = Instant::now();
        sets.iter().for_each(|set| sign(set));
        started.elapsed().as_secs_f64() * 1e6 / sets.len() as f64
    };
    (0..REPETITIONS).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn main() {
    let (constants, mut state) = (SignatureConstants::new(), 7);
    println!("| members | minima of all | rounds | four rounds, then minima |\n|---|---|---|---|");
    for members in [5, 30, 58, 120, 250, 498, 1000, 5000] {
        let sets: Vec<Vec<u64>> =
            (0..SETS).map(|_| (0..members).map(|_| random(&mut state)).collect()).collect();
        let minima = microseconds(&sets, |set| {
            black_box(dispatch(Minima(set, &constants)));
        });
        let rounds = microseconds(&sets, |set| {
            black_box(dispatch(Rounds(set, &constants)));
        });
        let both = microseconds(&sets, |set| {
            black_box(minhash(set));
        });
        println!("| {members} | {minima:.2} | {rounds:.2} | {both:.2} |");
    }
}
