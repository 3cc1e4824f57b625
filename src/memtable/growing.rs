//! Arrays that grow at the end while others read them, without locks.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::kernels::prefetch;

/// Chunks from one doubling of the array to the next, as a power of two: the last chunk, which may be nearly empty,
/// holds at most an eighth of all.
const CHUNK_BITS: u32 = 3;
/// Records that the array is thought to hold before the first, so that the first chunks are not tiny.
const OFFSET: u32 = 256;
/// Chunks for every number of 32 bits.
const CHUNKS: usize = ((32 - OFFSET.ilog2()) << CHUNK_BITS) as usize;

/// Records of a fixed number of cells. One thread at a time appends; any number read.
pub(super) struct Growing<T> {
    width: usize,
    chunks: Box<[OnceLock<Box<[T]>>]>,
    len: AtomicU32,
    bytes: AtomicU64,
}

impl<T: Default> Growing<T> {
    /// `width` is the number of cells of a record.
    pub(super) fn new(width: usize) -> Self {
        Growing {
            width,
            chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect(),
            len: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Records that are complete.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The cells of a record.
    ///
    /// # Panics
    /// If there is no such record.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[T] {
        let (chunk, at) = place(number);
        let cells = self.chunks[chunk].get().expect("a record that was appended");
        &cells[at * self.width..][..self.width]
    }

    /// The cells of records that were appended, those of one chunk at a time.
    #[inline]
    pub(super) fn runs(&self, mut first: u32, end: u32) -> impl Iterator<Item = &[T]> {
        std::iter::from_fn(move || {
            if first >= end {
                return None;
            }
            let (chunk, at) = place(first);
            let cells = &self.chunks[chunk].get()?[at * self.width..];
            let len = (cells.len() / self.width).min((end - first) as usize);
            first += len as u32;
            Some(&cells[..len * self.width])
        })
    }

    /// Appends the record that `fill` writes to empty cells, and returns its number. The writer's only.
    #[inline]
    pub(super) fn push(&self, fill: impl FnOnce(&[T])) -> u32 {
        let number = self.len.load(Ordering::Relaxed);
        let (chunk, at) = place(number);
        let cells = self.chunks[chunk].get_or_init(|| self.chunk(number));
        fill(&cells[at * self.width..][..self.width]);
        // The cells before the length: who sees the length sees them.
        self.len.store(number + 1, Ordering::Release);
        number
    }

    /// The chunk that starts with a record.
    #[cold]
    fn chunk(&self, number: u32) -> Box<[T]> {
        let cells = self.width << shift(number + OFFSET);
        self.bytes.fetch_add((cells * size_of::<T>()) as u64, Ordering::Relaxed);
        (0..cells).map(|_| T::default()).collect()
    }

    /// The first record for which the condition, which holds for all before some record and for none after, fails.
    pub(super) fn partition_point(&self, condition: impl Fn(&[T]) -> bool) -> u32 {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if condition(self.get(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Records of the chunk of a number (with the offset), as a power of two.
#[inline]
fn shift(number: u32) -> u32 {
    number.ilog2() - CHUNK_BITS
}

/// The chunk of a record, and its place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let number = number + OFFSET;
    let shift = shift(number);
    let doublings = shift + CHUNK_BITS - OFFSET.ilog2();
    let chunk = doublings << CHUNK_BITS | (number >> shift & ((1 << CHUNK_BITS) - 1));
    (chunk as usize, (number & ((1 << shift) - 1)) as usize)
}

/// Where the chains of a hash table start, by a hash: one more than a number of 32 bits, or 0 for none.
pub(super) struct Heads {
    bits: u32,
    // Made when first written: a memtable may see no delete and no name.
    heads: OnceLock<Box<[AtomicU32]>>,
}

impl Heads {
    pub(super) fn new(bits: u32) -> Self {
        Heads { bits, heads: OnceLock::new() }
    }

    #[inline]
    fn at(&self, hash: u64) -> usize {
        // Two shifts, as no bits at all are possible.
        (hash >> 1 >> (63 - self.bits)) as usize
    }

    /// The newest number of a chain.
    #[inline]
    pub(super) fn get(&self, hash: u64) -> u32 {
        self.heads.get().map_or(0, |heads| heads[self.at(hash)].load(Ordering::Acquire))
    }

    /// Asks for the memory of a chain's newest number.
    #[inline]
    pub(super) fn ask_for(&self, hash: u64) {
        if let Some(heads) = self.heads.get() {
            prefetch(heads, self.at(hash));
        }
    }

    /// Puts a number before a chain. The writer's only.
    #[inline]
    pub(super) fn set(&self, hash: u64, head: u32) {
        let heads = self.heads.get_or_init(|| (0..1_usize << self.bits).map(|_| AtomicU32::new(0)).collect());
        // The release makes visible what the number stands for.
        heads[self.at(hash)].store(head, Ordering::Release);
    }

    /// Memory, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.heads.get().map_or(0, |heads| size_of_val(&**heads) as u64)
    }
}

/// A hash with all bits mixed.
#[inline]
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let value = (value ^ value >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    value ^ value >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_follow_one_another() {
        let (mut expected, mut len) = ((0, 0), 32);
        for number in 0..100_000 {
            if expected.1 == len {
                // A chunk is as long as its first record says.
                len = 1 << shift(number + OFFSET);
                expected = (expected.0 + 1, 0);
            }
            assert_eq!(place(number), expected);
            expected.1 += 1;
        }
        assert!(place(u32::MAX - OFFSET).0 < CHUNKS);
    }

    #[test]
    fn records_stay() {
        let growing = Growing::<AtomicU64>::new(3);
        for i in 0..5000 {
            assert_eq!(growing.push(|cells| cells[2].store(u64::from(i), Ordering::Relaxed)), i);
        }
        for i in 0..5000 {
            assert_eq!(growing.get(i)[2].load(Ordering::Relaxed), u64::from(i));
        }
        for (first, end) in [(0, 0), (0, 5000), (31, 33), (999, 4000)] {
            let runs = growing.runs(first, end).flat_map(|run| run.chunks_exact(3));
            assert!(runs.map(|cells| cells[2].load(Ordering::Relaxed)).eq(u64::from(first)..u64::from(end)));
        }
        assert_eq!(growing.partition_point(|cells| cells[2].load(Ordering::Relaxed) < 1234), 1234);
        assert!(growing.bytes() < 5000 * 24 * 5 / 4);
    }
}
