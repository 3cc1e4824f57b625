//! Which segments are merged: those of about one size, once there are enough of them.
//!
//! A segment's *tier* is how often its size can be divided by the fanout T down to the size of a flushed memtable. When T
//! segments of a tier are there, they and all newer ones are merged into one of the next tier. So n pairs, flushed m at a
//! time, are in at most (T - 1) log_T(n / m) + T segments, and each pair is written about 1 + log_T(n / m) times: the
//! *tiered* compaction of P. O'Neil, E. Cheng, D. Gawlick, E. O'Neil, "The log-structured merge-tree", Acta Informatica
//! 33 (1996), with the merges of J. L. Bentley, J. B. Saxe, "Decomposable searching problems", J. Algorithms 1 (1980).
//!
//! Where sizes differ, a segment may be *trapped* before a newer one of a higher tier, which no merge takes along for long:
//! T trapped ones in a row are merged by themselves. So a row has fewer than T, and their number is logarithmic, too.

use std::ops::Range;

/// Sizes of a segment: pairs and marks in it, and pairs that it deletes from older ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) pairs: u64,
    pub(crate) tombstones: u64,
}

/// When so many pairs in a hundred are deleted, all segments are merged, which gives their space back.
const MOST_DELETED: u64 = 25;

/// The segments to merge next, of some that are given the oldest first; `None` if it is well as it is.
pub(crate) fn choose(sizes: &[Size], fanout: usize) -> Option<Range<usize>> {
    let (pairs, deleted) =
        sizes.iter().fold((0, 0), |(pairs, deleted), size| (pairs + size.pairs, deleted + size.tombstones));
    if sizes.len() > 1 && deleted > 0 && deleted * 100 >= pairs * MOST_DELETED {
        return Some(0..sizes.len());
    }
    let base = sizes.iter().map(|size| size.pairs.max(1)).min()?;
    let tier = |size: &Size| (size.pairs.max(1) / base).ilog(fanout as u64);
    let tiers: Vec<u32> = sizes.iter().map(tier).collect();
    let highest = tiers.iter().max()?;
    // The widest merge that is due: what it takes along is not merged twice.
    let widest = (0..=*highest).rev().find_map(|tier| {
        let newer = tiers.iter().rev().take_while(|&&other| other <= tier).count();
        let first = sizes.len() - newer;
        let of_tier = tiers[first..].iter().filter(|&&other| other == tier).count();
        (of_tier >= fanout).then_some(first..sizes.len())
    });
    widest.or_else(|| trapped(&tiers, fanout))
}

/// Segments in a row that have a newer one of a higher tier each, if there are enough of them.
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

    fn sizes(pairs: &[u64]) -> Vec<Size> {
        pairs.iter().map(|&pairs| Size { pairs, tombstones: 0 }).collect()
    }

    #[test]
    fn enough_of_one_size_are_merged_with_all_newer_ones() {
        assert_eq!(choose(&sizes(&[]), 4), None);
        assert_eq!(choose(&sizes(&[7]), 4), None);
        assert_eq!(choose(&sizes(&[10, 10, 10]), 4), None);
        assert_eq!(choose(&sizes(&[10, 10, 10, 10]), 4), Some(0..4));
        assert_eq!(choose(&sizes(&[1000, 10, 10, 10, 10]), 4), Some(1..5));
        assert_eq!(choose(&sizes(&[1000, 40, 40, 40, 10, 10, 10]), 4), None);
        assert_eq!(choose(&sizes(&[1000, 40, 40, 40, 40, 10]), 4), Some(1..6));
        assert_eq!(choose(&sizes(&[10, 10]), 2), Some(0..2));
    }

    #[test]
    fn many_tombstones_merge_all() {
        let mut all = sizes(&[1000, 10]);
        all[1].tombstones = 100;
        assert_eq!(choose(&all, 4), None);
        all[1].tombstones = 300;
        assert_eq!(choose(&all, 4), Some(0..2));
    }

    #[test]
    fn those_before_a_larger_one_are_merged_by_themselves() {
        assert_eq!(choose(&sizes(&[10, 10, 10, 1000]), 4), None);
        assert_eq!(choose(&sizes(&[10, 10, 10, 40, 1000]), 4), Some(0..4));
        assert_eq!(choose(&sizes(&[1000, 10, 10, 10, 40, 1000, 10, 10]), 4), Some(1..5));
        assert_eq!(choose(&sizes(&[1000, 10, 10, 10, 40, 10, 10]), 4), None);
    }

    /// Flushes of some sizes: how many segments there are at most, and how often each pair is written.
    fn run(flushes: impl IntoIterator<Item = u64>, fanout: usize) -> (usize, f64) {
        let (mut segments, mut most, mut written, mut all) = (Vec::new(), 0, 0, 0);
        for pairs in flushes {
            segments.push(Size { pairs, tombstones: 0 });
            all += pairs;
            written += pairs;
            while let Some(range) = choose(&segments, fanout) {
                let pairs = segments[range.clone()].iter().map(|size| size.pairs).sum();
                written += pairs;
                segments.splice(range, [Size { pairs, tombstones: 0 }]);
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

    /// Where queries are the load, a fanout of 2: two thirds of the segments, for twice the merges at most.
    #[test]
    fn a_small_fanout_keeps_fewer_segments() {
        let on_average = |fanout| {
            let (mut segments, mut sum) = (Vec::new(), 0);
            for _ in 0..1024 {
                segments.push(100_u64);
                while let Some(range) = choose(&sizes(&segments), fanout) {
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

    /// Sizes from 1 to 2^20, as of calls that add little and much.
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
