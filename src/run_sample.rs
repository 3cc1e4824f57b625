//! A sample of ascending fingerprints, for estimates of the size of a table.

use crate::fingerprint::Fingerprint;

/// Number of fingerprints in a run of the sample. A run consists of consecutive fingerprints, because codecs
/// encode the differences between neighbours.
const RUN_FINGERPRINTS: u64 = 2048;
/// Maximum number of runs (sequences of consecutive fingerprints) in a sample.
const MAX_RUNS: usize = 64;

/// A sample of fingerprints: runs of consecutive fingerprints. The runs are spread evenly over all fingerprints.
pub(crate) struct RunSample<F> {
    runs: Vec<Vec<F>>,
    /// Of all runs of [`RUN_FINGERPRINTS`] pushed fingerprints, the sample keeps the first, and then every `step`-th one.
    step: u64,
    /// Number of fingerprints pushed so far.
    seen: u64,
}

impl<F: Fingerprint> RunSample<F> {
    pub(crate) fn new() -> Self {
        RunSample { runs: Vec::new(), step: 1, seen: 0 }
    }

    #[inline]
    pub(crate) fn push(&mut self, fingerprint: F) {
        let (run, at) = (self.seen / RUN_FINGERPRINTS, self.seen % RUN_FINGERPRINTS);
        self.seen += 1;
        if !run.is_multiple_of(self.step) {
            return;
        }
        if at == 0 {
            if self.runs.len() == MAX_RUNS {
                let mut number = 0;
                self.runs.retain(|_| {
                    number += 1;
                    number % 2 == 1
                });
                self.step *= 2;
                if !run.is_multiple_of(self.step) {
                    return;
                }
            }
            self.runs.push(Vec::with_capacity(RUN_FINGERPRINTS as usize));
        }
        if let Some(last) = self.runs.last_mut() {
            last.push(fingerprint);
        }
    }

    /// Number of fingerprints pushed.
    pub(crate) fn pushed(&self) -> u64 {
        self.seen
    }

    /// The runs of the sample, in ascending order.
    pub(crate) fn runs(&self) -> &[Vec<F>] {
        &self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(count: u64) -> RunSample<u64> {
        let mut sample = RunSample::new();
        (0..count).for_each(|fingerprint| sample.push(fingerprint));
        sample
    }

    #[test]
    fn a_sample_is_all_of_a_few() {
        assert_eq!(sample(5000).runs().concat(), (0..5000).collect::<Vec<_>>());
        assert!(sample(0).runs().is_empty());
    }

    #[test]
    fn runs_are_whole_and_spread_evenly() {
        for count in [
            RUN_FINGERPRINTS * 64,
            RUN_FINGERPRINTS * 64 + 1,
            RUN_FINGERPRINTS * 65,
            RUN_FINGERPRINTS * 1000 + 7,
        ] {
            let sample = sample(count);
            assert!(sample.runs.len() <= MAX_RUNS && sample.runs.len() >= MAX_RUNS / 2, "{count}");
            assert_eq!(sample.pushed(), count);
            for (i, run) in sample.runs.iter().enumerate() {
                let first = i as u64 * sample.step * RUN_FINGERPRINTS;
                let last = (first + RUN_FINGERPRINTS).min(count);
                assert_eq!(*run, (first..last).collect::<Vec<_>>(), "{count}");
            }
        }
    }
}
