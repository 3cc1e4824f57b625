//! Choice of the clusters that the page shows: the largest as rows, and some of them in full.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

use simstore::Result;
use simstore_corpus::random::splitmix64;

use crate::report::run_results::RunResults;

/// Maximum number of clusters on the page.
pub(crate) const MAX_ROWS: usize = 100_000;
/// Number of the largest clusters that are shown in full.
const LARGEST: usize = 100;
/// Number of other clusters that are shown in full, drawn at random.
const SAMPLED: usize = 400;

/// Numbers of the clusters on the page.
pub(crate) struct ClusterChoice {
    /// Clusters shown as rows.
    rows: HashSet<u32>,
    /// Clusters shown in full, with comparisons of their documents: the largest first, then the random sample in random order.
    pub(crate) full: Vec<u32>,
}

impl ClusterChoice {
    pub(crate) fn new(results: &RunResults) -> Result<ClusterChoice> {
        let mut choice = ClusterSampler::new(MAX_ROWS, LARGEST, SAMPLED);
        let mut members = results.outcome.clusters.by_cluster.cursor()?;
        while let Some(first) = members.next_row()? {
            let mut size = 1;
            while members.next_if(|member| member.cluster == first.cluster)?.is_some() {
                size += 1;
            }
            choice.add(size, first.cluster);
        }
        Ok(choice.finish())
    }

    pub(crate) fn has_row(&self, cluster: u32) -> bool {
        self.rows.contains(&cluster)
    }
}

/// Collects the largest clusters and a random sample of all clusters, in memory that does not grow with their number. J. S. Vitter's
/// algorithm R (ACM TOMS 11, 1985) draws the sample; the same clusters give the same sample.
struct ClusterSampler {
    max_rows: usize,
    largest: usize,
    sampled: usize,
    /// The largest clusters: (size, lowest number first), least on top.
    rows: BinaryHeap<Reverse<(usize, Reverse<u32>)>>,
    sample: Vec<u32>,
    seen: u64,
    state: u64,
}

impl ClusterSampler {
    fn new(max_rows: usize, largest: usize, sampled: usize) -> ClusterSampler {
        let (rows, sample) = (BinaryHeap::new(), Vec::new());
        ClusterSampler { max_rows, largest, sampled, rows, sample, seen: 0, state: 0 }
    }

    fn add(&mut self, size: usize, cluster: u32) {
        self.rows.push(Reverse((size, Reverse(cluster))));
        if self.rows.len() > self.max_rows {
            self.rows.pop();
        }
        self.seen += 1;
        // Some of the sample may be among the largest clusters, which are taken out at the end.
        if self.sample.len() < self.largest + self.sampled {
            self.sample.push(cluster);
        } else if let Some(place) = self.sample.get_mut((splitmix64(&mut self.state) % self.seen) as usize) {
            *place = cluster;
        }
    }

    fn finish(self) -> ClusterChoice {
        let sorted: Vec<u32> = self.rows.into_sorted_vec().iter().map(|row| row.0.1.0).collect();
        let mut rows: HashSet<u32> = sorted.iter().copied().collect();
        let mut full: Vec<u32> = sorted[..sorted.len().min(self.largest)].to_vec();
        let largest: HashSet<u32> = full.iter().copied().collect();
        let mut others: Vec<u32> =
            self.sample.into_iter().filter(|cluster| !largest.contains(cluster)).collect();
        let mut state = self.state;
        for last in (1..others.len()).rev() {
            others.swap(last, (splitmix64(&mut state) % (last as u64 + 1)) as usize);
        }
        full.extend(others.into_iter().take(self.sampled));
        rows.extend(&full);
        ClusterChoice { rows, full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(sizes: impl Iterator<Item = usize>, limits: [usize; 3]) -> ClusterChoice {
        let mut sampler = ClusterSampler::new(limits[0], limits[1], limits[2]);
        (1..).zip(sizes).for_each(|(cluster, size)| sampler.add(size, cluster));
        sampler.finish()
    }

    #[test]
    fn the_largest_clusters_come_first() {
        let choice = choose([2, 9, 3, 9, 5].into_iter(), [3, 2, 1]);
        assert_eq!(choice.full[..2], [2, 4]);
        assert_eq!(choice.full.len(), 3);
        assert!([2, 4, 5].iter().all(|&cluster| choice.has_row(cluster)) && choice.has_row(choice.full[2]));
    }

    #[test]
    fn each_other_cluster_is_sampled_as_often() {
        let mut times = [0; 41];
        for seed in 0..4000_u64 {
            let mut sampler = ClusterSampler::new(10, 1, 4);
            sampler.state = seed;
            (1..=40).for_each(|cluster| sampler.add(if cluster == 7 { 9 } else { 2 }, cluster));
            let choice = sampler.finish();
            assert_eq!((choice.full.len(), choice.full[0]), (5, 7));
            choice.full[1..].iter().for_each(|&cluster| times[cluster as usize] += 1);
        }
        // 4,000 * 4 / 39 = 410 expected, with a standard deviation of 19.
        let others = (1..=40).filter(|&cluster| cluster != 7);
        assert!(others.into_iter().all(|cluster| (310..510).contains(&times[cluster])), "{times:?}");
        assert_eq!(times[7], 0);
    }

    #[test]
    fn fewer_clusters_than_places_are_all_shown() {
        let choice = choose([2, 3].into_iter(), [10, 1, 4]);
        assert_eq!(choice.full, [2, 1]);
        assert!(choose(std::iter::empty(), [10, 1, 4]).full.is_empty());
    }
}
