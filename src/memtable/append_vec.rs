//! Lock-free append-only arrays: one thread appends while others read.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::simd::prefetch;

/// Base-2 logarithm of the number of chunks that are allocated while the array doubles in size. With 8 chunks, the
/// last chunk, which may be nearly empty, is at most an eighth of the array.
const DOUBLING_CHUNKS_LOG2: u32 = 3;
/// Offset that [`locate`] adds to the index of a record before it computes the record's chunk (part of the array).
/// Without the offset, the first chunks would be tiny.
const INDEX_OFFSET: u32 = 256;
/// Number of chunks (parts of the array) that suffice for all 32-bit record indexes.
const MAX_CHUNKS: usize = ((32 - INDEX_OFFSET.ilog2()) << DOUBLING_CHUNKS_LOG2) as usize;

/// An append-only array of records. All records have the same number of cells (elements of type `T`). One thread
/// at a time appends; any number of threads read.
pub(super) struct AppendVec<T> {
    /// Number of cells of a record.
    width: usize,
    chunks: Box<[OnceLock<Box<[T]>>]>,
    len: AtomicU32,
    bytes: AtomicU64,
}

impl<T: Default> AppendVec<T> {
    /// Creates an empty array whose records have `width` cells.
    pub(super) fn new(width: usize) -> Self {
        AppendVec {
            width,
            chunks: (0..MAX_CHUNKS).map(|_| OnceLock::new()).collect(),
            len: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
        }
    }

    /// Number of complete records.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len.load(Ordering::Acquire)
    }

    /// Memory of the array in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Cells of the record with the index `number`.
    ///
    /// # Panics
    /// Panics if the record was not appended.
    #[inline]
    pub(super) fn get(&self, number: u32) -> &[T] {
        let (chunk, at) = locate(number);
        let cells = self.chunks[chunk].get().expect("a record that was appended");
        &cells[at * self.width..][..self.width]
    }

    /// Cells of the records `first..end`, as one slice for each chunk of the array. A slice has the cells of one
    /// record after the other.
    #[inline]
    pub(super) fn runs(&self, mut first: u32, end: u32) -> impl Iterator<Item = &[T]> {
        std::iter::from_fn(move || {
            if first >= end {
                return None;
            }
            let (chunk, at) = locate(first);
            let cells = &self.chunks[chunk].get()?[at * self.width..];
            let len = (cells.len() / self.width).min((end - first) as usize);
            first += len as u32;
            Some(&cells[..len * self.width])
        })
    }

    /// Appends a record and returns its index. `fill` gets the cells of the record, which have default values, and
    /// sets them. Called by one thread at a time.
    #[inline]
    pub(super) fn push(&self, fill: impl FnOnce(&[T])) -> u32 {
        let number = self.len.load(Ordering::Relaxed);
        let (chunk, at) = locate(number);
        let cells = self.chunks[chunk].get_or_init(|| self.new_chunk(number));
        fill(&cells[at * self.width..][..self.width]);
        // The release orders the cells before the length: a reader that sees the new length sees the cells.
        self.len.store(number + 1, Ordering::Release);
        number
    }

    /// Allocates the chunk whose first record has the index `number`.
    #[cold]
    fn new_chunk(&self, number: u32) -> Box<[T]> {
        let cells = self.width << chunk_len_log2(number + INDEX_OFFSET);
        self.bytes.fetch_add((cells * size_of::<T>()) as u64, Ordering::Relaxed);
        (0..cells).map(|_| T::default()).collect()
    }

    /// Number of records at the start of the array for which `condition` holds, found by binary search. As in
    /// `slice::partition_point`, the condition must not hold for any later record.
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

/// Base-2 logarithm of the number of records in a chunk. `number` is the index of any record of the chunk, plus
/// [`INDEX_OFFSET`].
#[inline]
fn chunk_len_log2(number: u32) -> u32 {
    number.ilog2() - DOUBLING_CHUNKS_LOG2
}

/// Index of the chunk that has the record with the index `number`, and index of the record in this chunk.
#[inline]
fn locate(number: u32) -> (usize, usize) {
    let number = number + INDEX_OFFSET;
    let shift = chunk_len_log2(number);
    let doublings = shift + DOUBLING_CHUNKS_LOG2 - INDEX_OFFSET.ilog2();
    let chunk = doublings << DOUBLING_CHUNKS_LOG2 | (number >> shift & ((1 << DOUBLING_CHUNKS_LOG2) - 1));
    (chunk as usize, (number & ((1 << shift) - 1)) as usize)
}

/// Heads of the chains of a hash table whose entries are records of an [`AppendVec`]. The head of a chain is the index
/// of its newest record plus one, or 0 if the chain is empty.
pub(super) struct ChainHeads {
    /// Base-2 logarithm of the number of chains.
    bits: u32,
    /// Head of each chain. Allocated at the first write, since a memtable may get no deletes and no names.
    heads: OnceLock<Box<[AtomicU32]>>,
}

impl ChainHeads {
    pub(super) fn new(bits: u32) -> Self {
        ChainHeads { bits, heads: OnceLock::new() }
    }

    #[inline]
    fn index(&self, hash: u64) -> usize {
        // Two shifts, since `bits` may be 0 and a shift by 64 overflows.
        (hash >> 1 >> (63 - self.bits)) as usize
    }

    /// Head of the chain for a hash: the index of the chain's newest record plus one, or 0 if the chain is empty.
    #[inline]
    pub(super) fn get(&self, hash: u64) -> u32 {
        self.heads.get().map_or(0, |heads| heads[self.index(hash)].load(Ordering::Acquire))
    }

    /// Prefetches the head of the chain for a hash.
    #[inline]
    pub(super) fn prefetch(&self, hash: u64) {
        if let Some(heads) = self.heads.get() {
            prefetch(heads, self.index(hash));
        }
    }

    /// Sets the head of the chain for a hash. `head` is the index of a record plus one. Called by one thread at a time.
    #[inline]
    pub(super) fn set(&self, hash: u64, head: u32) {
        let heads = self.heads.get_or_init(|| (0..1_usize << self.bits).map(|_| AtomicU32::new(0)).collect());
        // The release makes the record visible before its number.
        heads[self.index(hash)].store(head, Ordering::Release);
    }

    /// Memory of the heads in bytes; 0 before the first write.
    pub(super) fn bytes(&self) -> u64 {
        self.heads.get().map_or(0, |heads| size_of_val(&**heads) as u64)
    }
}

/// Hashes a number: each input bit affects all output bits.
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
                // The first record of a chunk determines the chunk's length.
                len = 1 << chunk_len_log2(number + INDEX_OFFSET);
                expected = (expected.0 + 1, 0);
            }
            assert_eq!(locate(number), expected);
            expected.1 += 1;
        }
        assert!(locate(u32::MAX - INDEX_OFFSET).0 < MAX_CHUNKS);
    }

    #[test]
    fn records_stay() {
        let array = AppendVec::<AtomicU64>::new(3);
        for i in 0..5000 {
            assert_eq!(array.push(|cells| cells[2].store(u64::from(i), Ordering::Relaxed)), i);
        }
        for i in 0..5000 {
            assert_eq!(array.get(i)[2].load(Ordering::Relaxed), u64::from(i));
        }
        for (first, end) in [(0, 0), (0, 5000), (31, 33), (999, 4000)] {
            let runs = array.runs(first, end).flat_map(|run| run.chunks_exact(3));
            assert!(runs.map(|cells| cells[2].load(Ordering::Relaxed)).eq(u64::from(first)..u64::from(end)));
        }
        assert_eq!(array.partition_point(|cells| cells[2].load(Ordering::Relaxed) < 1234), 1234);
        assert!(array.bytes() < 5000 * 24 * 5 / 4);
    }
}
