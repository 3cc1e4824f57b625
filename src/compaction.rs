//! Size-tiered compaction: the choice of the segments to merge next.
//!
//! A segment's *tier* is `log_T(size / smallest size)`, rounded down, where T is the fanout. The smallest
//! segment is about as large as a flushed memtable. When a tier has T segments, these and all newer segments
//! are merged into one segment of the next tier. If n pairs (a fingerprint with an id) are flushed m at a time, a
//! store has at most `(T - 1) log_T(n / m) + T` segments, and each pair is written about `1 + log_T(n / m)` times.
//!
//! This is the *tiered* compaction of P. O'Neil, E. Cheng, D. Gawlick, E. O'Neil, "The log-structured
//! merge-tree", Acta Informatica 33 (1996), with the merges of J. L. Bentley, J. B. Saxe, "Decomposable
//! searching problems", J. Algorithms 1 (1980).
//!
//! If sizes vary, a segment may be *trapped*: it is older than a segment of a higher tier, so no merge
//! includes it for a long time. T consecutive trapped segments are merged with one another. So fewer than T
//! trapped segments are consecutive, and the number of trapped segments is logarithmic too.

use std::ops::Range;

/// Size of a segment in entries, not in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSize {
    /// Number of pairs (a fingerprint with an id), metadata values and notes (bytes stored with a document) together.
    pub(crate) pairs: u64,
    /// Number of pairs that the segment deletes from older segments.
    pub(crate) tombstones: u64,
}

/// If at least this percentage of the pairs is deleted, all segments are merged, to free the space of these pairs.
const MAX_DELETED_PERCENT: u64 = 25;

/// Returns the segments to merge next, as a range of indexes in `sizes`. `sizes` has the size of each segment, oldest
/// first. `fanout` is the number of segments of similar size that are merged into one. `None` if no merge is due.
pub(crate) fn choose_merge(sizes: &[SegmentSize], fanout: usize) -> Option<Range<usize>> {
    let (pairs, deleted) =
        sizes.iter().fold((0, 0), |(pairs, deleted), size| (pairs + size.pairs, deleted + size.tombstones));
    if sizes.len() > 1 && deleted > 0 && deleted * 100 >= pairs * MAX_DELETED_PERCENT {
        return Some(0..sizes.len());
    }
    let base = sizes.iter().map(|size| size.pairs.max(1)).min()?;
    let tier = |size: &SegmentSize| (size.pairs.max(1) / base).ilog(fanout as u64);
    let tiers: Vec<u32> = sizes.iter().map(tier).collect();
    let highest = tiers.iter().max()?;
    // If several tiers are full, the highest one is merged, since that merge includes all newer segments.
    let widest = (0..=*highest).rev().find_map(|tier| {
        let newer = tiers.iter().rev().take_while(|&&other| other <= tier).count();
        let first = sizes.len() - newer;
        let of_tier = tiers[first..].iter().filter(|&&other| other == tier).count();
        (of_tier >= fanout).then_some(first..sizes.len())
    });
    widest.or_else(|| trapped(&tiers, fanout))
}

/// Returns the range of at least `fanout` consecutive trapped segments, or `None` if there are not so many. A
/// segment is trapped if a newer segment has a higher tier.
fn trapped(tiers: &[u32], fanout: usize) -> Option<Range<usize>> {
    let mut highest = 0;
    let mut end = tiers.len();
    for i in (0..tiers.len()).rev() {
        if tiers[i] >= highest {
            highest = tiers[i];
            end = i;
        } else if (i == 0 || tiers[i - 1] >= highest) && end - i >= fanout {
            return Some(i..end);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(pairs: &[u64]) -> Vec<SegmentSize> {
        pairs.iter().map(|&pairs| SegmentSize { pairs, tombstones: 0 }).collect()
    }

    #[test]
    fn enough_of_one_size_are_merged_with_all_newer_ones() {
        assert_eq!(choose_merge(&sizes(&[]), 4), None);
        assert_eq!(choose_merge(&sizes(&[7]), 4), None);
        assert_eq!(choose_merge(&sizes(&[10, 10, 10]), 4), None);
        assert_eq!(choose_merge(&sizes(&[10, 10, 10, 10]), 4), Some(0..4));
        assert_eq!(choose_merge(&sizes(&[1000, 10, 10, 10, 10]), 4), Some(1..5));
        assert_eq!(choose_merge(&sizes(&[1000, 40, 40, 40, 10, 10, 10]), 4), None);
        assert_eq!(choose_merge(&sizes(&[1000, 40, 40, 40, 40, 10]), 4), Some(1..6));
        assert_eq!(choose_merge(&sizes(&[10, 10]), 2), Some(0..2));
    }

    #[test]
    fn many_tombstones_merge_all() {
        let mut all = sizes(&[1000, 10]);
        all[1].tombstones = 100;
        assert_eq!(choose_merge(&all, 4), None);
        all[1].tombstones = 300;
        assert_eq!(choose_merge(&all, 4), Some(0..2));
    }

    #[test]
    fn those_before_a_larger_one_are_merged_by_themselves() {
        assert_eq!(choose_merge(&sizes(&[10, 10, 10, 1000]), 4), None);
        assert_eq!(choose_merge(&sizes(&[10, 10, 10, 40, 1000]), 4), Some(0..4));
        assert_eq!(choose_merge(&sizes(&[1000, 10, 10, 10, 40, 1000, 10, 10]), 4), Some(1..5));
        assert_eq!(choose_merge(&sizes(&[1000, 10, 10, 10, 40, 10, 10]), 4), None);
    }

    /// Simulates flushes, with all merges that become due. `flushes` has the number of pairs in each flush. Returns
    /// the maximum number of segments, and the average number of times that a pair is written.
    fn run(flushes: impl IntoIterator<Item = u64>, fanout: usize) -> (usize, f64) {
        let (mut segments, mut most, mut written, mut all) = (Vec::new(), 0, 0, 0);
        for pairs in flushes {
            segments.push(SegmentSize { pairs, tombstones: 0 });
            all += pairs;
            written += pairs;
            while let Some(range) = choose_merge(&segments, fanout) {
                let pairs = segments[range.clone()].iter().map(|size| size.pairs).sum();
                written += pairs;
                segments.splice(range, [SegmentSize { pairs, tombstones: 0 }]);
            }
            most = most.max(segments.len());
        }
        (most, written as f64 / all as f64)
    }

    #[test]
    fn segments_and_writing_stay_within_the_formula() {
        for fanout in [2, 3, 4, 8] {
            for flushes in [1_u32, 10, 100, 1000] {
                let depth = f64::from(flushes).log(fanout as f64);
                let (segments, written) = run((0..flushes).map(|_| 100), fanout);
                let most = (fanout - 1) as f64 * depth.ceil() + fanout as f64;
                assert!(segments as f64 <= most, "{segments} segments, fanout {fanout}");
                assert!(written <= depth + 1.01, "written {written} times, fanout {fanout}, {flushes}");
            }
        }
    }

    /// With fanout 2, a store has about two thirds as many segments as with fanout 4, and merges write at most twice as
    /// many pairs.
    #[test]
    fn a_small_fanout_keeps_fewer_segments() {
        let on_average = |fanout| {
            let (mut segments, mut sum) = (Vec::new(), 0);
            for _ in 0..1024 {
                segments.push(100_u64);
                while let Some(range) = choose_merge(&sizes(&segments), fanout) {
                    let pairs = segments[range.clone()].iter().sum();
                    segments.splice(range, [pairs]);
                }
                sum += segments.len();
            }
            sum as f64 / 1024.0
        };
        let ratio = on_average(2) / on_average(4);
        assert!((0.6..0.75).contains(&ratio), "{ratio}");
        let merged = |fanout| run((0..1024).map(|_| 100), fanout).1 - 1.0;
        assert!(merged(2) <= 2.01 * merged(4), "{} and {}", merged(2), merged(4));
    }

    /// If flushes vary from 1 to 2^20 pairs, the number of segments and the writes per pair stay logarithmic.
    #[test]
    fn sizes_of_all_kinds_stay_few() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            1 << ((state >> 33) % 21)
        };
        let flushes: Vec<u64> = (0..10_000).map(|_| random()).collect();
        for fanout in [2, 4, 8] {
            let depth = (1_u64 << 34).ilog(fanout as u64) as usize;
            let (segments, written) = run(flushes.iter().copied(), fanout);
            assert!(segments <= fanout * depth, "{segments} segments, fanout {fanout}");
            assert!(written <= depth as f64, "written {written} times, fanout {fanout}");
        }
    }
}
