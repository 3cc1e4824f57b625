//! A histogram of similarities and a sample of similar pairs. They help to choose a threshold for a corpus in which no
//! duplicates are known yet.

use std::collections::BTreeMap;

use serde::Serialize;
use simstore::{Error, Result};

use crate::config::DedupConfig;
use crate::config::band_search_plan;
use crate::config::criterion::bad_argument;
use crate::documents::rereader::DocumentRereader;
use crate::report::outputs::Outputs;
use crate::report::run_results::RunResults;
use crate::rows::similarity_from_score;
use crate::run::find_duplicates;
use simstore_corpus::Stage;
use simstore_corpus::random::splitmix64;
use simstore_corpus::{Inputs, Observer};
use simstore_io::Document;

/// Number of histogram bins from similarity 0 to similarity 1, so the width of a bin is 0.05.
const BINS_PER_UNIT: f64 = 20.0;
/// The lowest bin of the histogram is the one that contains the requested threshold minus this value. If pairs of so
/// low a similarity cannot be found with the requested recall, the histogram starts at a higher bin.
const RANGE_BELOW: f64 = 0.3;
/// Maximum number of pairs in a sample. Both texts of each pair stay in memory.
const MAX_PAIRS: usize = 10_000;
/// Tolerance for rounding errors when a similarity is assigned to a bin.
const ROUNDING: f64 = 1e-9;

/// Histogram and sample of the similar pairs of a corpus.
#[derive(Debug)]
pub struct PairSample {
    /// Requested threshold: a similarity from 0 to 1.
    pub threshold: f64,
    /// Number of documents read.
    pub documents: usize,
    /// Histogram, from the lowest bin to the bin of similarity 1.
    pub bins: Vec<SimilarityBin>,
    /// Sampled pairs, most similar first. All bins have the same number of pairs in the sample, unless a bin
    /// has too few. If the number of pairs cannot be divided equally, the bins near the threshold have one pair
    /// more.
    pub pairs: Vec<SampledPair>,
}

/// Histogram bin: pairs within a range of similarity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct SimilarityBin {
    /// Lower bound of the bin, inclusive.
    pub from: f64,
    /// Upper bound of the bin, exclusive. In the last bin, `from` and `to` are both 1: it has only similarity 1.
    pub to: f64,
    /// Number of pairs in this bin. A group of documents with equal shingles counts as a single document.
    pub pairs: u64,
    /// Number of documents that are similar to a more preferred document. Each of these documents is counted once,
    /// in the bin of its greatest similarity to a more preferred document. With the default
    /// [`keep`](DedupConfig::keep), earlier documents are preferred.
    pub duplicates: u64,
    /// Sum of [`duplicates`](Self::duplicates) over this bin and all higher bins. A run with the threshold
    /// [`from`](field@Self::from) removes at most this number of documents.
    pub removed_at_most: u64,
}

/// Pair of similar documents, with their texts.
#[derive(Debug)]
pub struct SampledPair {
    /// The preferred document of the two.
    pub a: Document,
    /// The less preferred document of the two.
    pub b: Document,
    /// Jaccard similarity of the two documents, from 0 to 1.
    pub similarity: f64,
}

/// Pair of unique documents, and their similarity. `better` is the preferred document of the two.
#[derive(Clone, Copy, Debug)]
struct UniquePair {
    worse: u32,
    better: u32,
    similarity: f64,
}

/// Reads all inputs, counts the similar pairs above and below the threshold of the configuration, and draws a
/// sample of `count` of these pairs. Even a pair at the lowest similarity of the histogram is found with the recall
/// of the configuration. Nothing is written.
///
/// # Errors
/// - [`Error::BadArgument`] if the configuration compares fingerprints, has reference stores or checkpoints,
///   or keeps no document of a cluster; if the inputs are fingerprints; or if `count` is above 10,000.
/// - The errors of [`run`](crate::run()).
pub fn sample_pairs(
    config: &DedupConfig,
    inputs: &Inputs,
    count: usize,
    observer: &dyn Observer,
) -> Result<PairSample> {
    if count > MAX_PAIRS {
        return bad_argument(format!("a sample has at most {MAX_PAIRS} pairs"));
    }
    let (config, threshold) = config.to_pair_sample_config(inputs, lowest_similarity)?;
    let lowest =
        config.comparison.similarity_config().and_then(|similar| similar.min_similarity).unwrap_or(threshold);
    let report = find_duplicates(&config, inputs, Outputs::default(), observer)?;
    let results = report.results();
    let results = results.ok_or_else(|| Error::Bug("a run without a store was added before".to_owned()))?;
    sample_results(results, threshold, lowest, count, observer)
}

/// Returns the least similarity in the histogram, the lower bound of its lowest bin. This is the first bin, from the
/// one that contains `threshold` minus [`RANGE_BELOW`] upwards, for which a search with the lower bound of the bin
/// as minimum similarity can reach the recall. Returns the threshold if no bin below the threshold allows that.
fn lowest_similarity(threshold: f64, recall: f64) -> Result<f64> {
    // Fails if even the threshold does not allow the recall.
    band_search_plan::plan_band_search(threshold, recall, 0)?;
    let first = ((threshold - RANGE_BELOW) * BINS_PER_UNIT + ROUNDING).floor().max(1.0) as u32;
    let bins = (first..).map(|bin| f64::from(bin) / BINS_PER_UNIT).take_while(|&from| from < threshold);
    Ok(bins
        .into_iter()
        .find(|&from| band_search_plan::plan_band_search(from, recall, 0).is_ok())
        .unwrap_or(threshold))
}

fn sample_results(
    results: &RunResults,
    threshold: f64,
    lowest: f64,
    count: usize,
    observer: &dyn Observer,
) -> Result<PairSample> {
    let near = &results.outcome.near;
    let mut histogram = Histogram::new(lowest);
    let mut reservoirs: Vec<Reservoir> = histogram.bins.iter().map(|_| Reservoir::new(count)).collect();
    // For each unique document: 1 + the bin of its most similar preferred one, or 0 without one.
    let mut best = vec![0_u8; near.uniques.len()];
    let stage = Stage::new(observer, "pairs");
    for pair in near.pairs.iter()? {
        let (worse, better, nearness) = pair?;
        let pair = UniquePair { worse, better, similarity: similarity_from_score(nearness) };
        let bin = histogram.bin_of(pair.similarity);
        histogram.bins[bin].pairs += 1;
        reservoirs[bin].add(pair);
        let place = &mut best[worse as usize];
        *place = (*place).max(bin as u8 + 1);
        stage.add(1)?;
    }
    let last = histogram.bins.len() - 1;
    for (unique, &best) in (0..).zip(&best) {
        // All but one of the documents that are equal to this unique document have similarity 1 to a
        // preferred one.
        histogram.bins[last].duplicates += near.uniques.size(unique)? - 1;
        if let Some(bin) = best.checked_sub(1) {
            histogram.bins[usize::from(bin)].duplicates += 1;
        }
    }
    let chosen = choose_pairs(&histogram.bins, reservoirs, threshold, count);
    Ok(PairSample {
        threshold,
        documents: results.corpus.len(),
        bins: histogram.finish(),
        pairs: read_pairs(results, &chosen, observer)?,
    })
}

struct Histogram {
    lowest: f64,
    bins: Vec<SimilarityBin>,
}

impl Histogram {
    fn new(lowest: f64) -> Histogram {
        let from = |bin: u32| lowest + f64::from(bin) / BINS_PER_UNIT;
        let mut bins: Vec<SimilarityBin> = (0..)
            .map(|bin| SimilarityBin {
                from: rounded(from(bin)),
                to: rounded(from(bin + 1)),
                ..SimilarityBin::default()
            })
            .take_while(|bin| bin.from < 1.0 - ROUNDING)
            .collect();
        if let Some(last) = bins.last_mut() {
            last.to = 1.0;
        }
        bins.push(SimilarityBin { from: 1.0, to: 1.0, ..SimilarityBin::default() });
        Histogram { lowest, bins }
    }

    fn bin_of(&self, similarity: f64) -> usize {
        let last = self.bins.len() - 1;
        if similarity >= 1.0 {
            return last;
        }
        let bin = ((similarity - self.lowest) * BINS_PER_UNIT + ROUNDING).max(0.0) as usize;
        bin.min(last.saturating_sub(1))
    }

    fn finish(mut self) -> Vec<SimilarityBin> {
        let mut sum = 0;
        for bin in self.bins.iter_mut().rev() {
            sum += bin.duplicates;
            bin.removed_at_most = sum;
        }
        self.bins
    }
}

/// Rounds a bound of a bin, or a threshold, to six digits after the decimal point.
fn rounded(similarity: f64) -> f64 {
    (similarity * 1e6).round() / 1e6
}

/// Uniform sample of the pairs of a bin (J. S. Vitter's algorithm R, ACM TOMS 11, 1985). It is deterministic:
/// the same pairs give the same sample.
struct Reservoir {
    capacity: usize,
    seen: u64,
    state: u64,
    pairs: Vec<UniquePair>,
}

impl Reservoir {
    fn new(capacity: usize) -> Reservoir {
        Reservoir { capacity, seen: 0, state: 0, pairs: Vec::new() }
    }

    fn add(&mut self, pair: UniquePair) {
        self.seen += 1;
        if self.pairs.len() < self.capacity {
            self.pairs.push(pair);
        } else {
            let at = (splitmix64(&mut self.state) % self.seen) as usize;
            if let Some(place) = self.pairs.get_mut(at) {
                *place = pair;
            }
        }
    }

    /// Removes and returns a random pair.
    fn take_random(&mut self) -> Option<UniquePair> {
        let count = self.pairs.len() as u64;
        (count > 0).then(|| self.pairs.swap_remove((splitmix64(&mut self.state) % count) as usize))
    }
}

/// Draws `count` pairs: one from each bin, then again one from each bin, and so on. The order alternates between bins
/// above and bins below the threshold, the nearest ones first. Returns the pairs sorted by similarity, most similar
/// first.
fn choose_pairs(
    bins: &[SimilarityBin],
    mut reservoirs: Vec<Reservoir>,
    threshold: f64,
    count: usize,
) -> Vec<UniquePair> {
    let is_filled = |bin: &usize| !reservoirs[*bin].pairs.is_empty();
    let first = bins.iter().position(|bin| bin.to > threshold).unwrap_or(bins.len());
    let mut above = (first..bins.len()).filter(is_filled);
    let mut below = (0..first).rev().filter(is_filled);
    let mut order = Vec::new();
    loop {
        let before = order.len();
        order.extend(above.next().into_iter().chain(below.next()));
        if order.len() == before {
            break;
        }
    }
    let mut chosen = Vec::new();
    while chosen.len() < count && reservoirs.iter().any(|reservoir| !reservoir.pairs.is_empty()) {
        let left = count - chosen.len();
        chosen.extend(order.iter().filter_map(|&bin| reservoirs[bin].take_random()).take(left));
    }
    chosen.sort_by(|a, b| {
        b.similarity.total_cmp(&a.similarity).then((a.worse, a.better).cmp(&(b.worse, b.better)))
    });
    chosen
}

/// Reads the documents of the sampled pairs again from the inputs.
fn read_pairs(
    results: &RunResults,
    pairs: &[UniquePair],
    observer: &dyn Observer,
) -> Result<Vec<SampledPair>> {
    let Some(inputs) = results.resolved.documents() else { return Ok(Vec::new()) };
    let near = &results.outcome.near;
    let document = |unique| near.document(near.uniques.best_document(unique)?);
    let mut numbers = Vec::new();
    for pair in pairs {
        numbers.extend([document(pair.better)?, document(pair.worse)?]);
    }
    let mut documents_to_read = numbers.clone();
    documents_to_read.sort_unstable();
    documents_to_read.dedup();
    let mut reread = DocumentRereader::new(&results.corpus, inputs, &results.workspace);
    let stage = Stage::new(observer, "documents").with_read_progress(reread.progress(), || None);
    let mut documents = BTreeMap::new();
    for number in documents_to_read {
        documents.insert(number, reread.record(number as usize)?.into_document(inputs.options())?);
        stage.add(1)?;
    }
    let copy = |number: u64| {
        let document: Option<&Document> = documents.get(&number);
        document.cloned().ok_or_else(|| Error::Bug("a document of a sampled pair was not read".to_owned()))
    };
    let numbers = numbers.as_chunks::<2>().0;
    pairs
        .iter()
        .zip(numbers)
        .map(|(pair, &[a, b])| Ok(SampledPair { a: copy(a)?, b: copy(b)?, similarity: pair.similarity }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn froms(lowest: f64) -> Vec<f64> {
        Histogram::new(lowest).bins.iter().map(|bin| bin.from).collect()
    }

    /// The lowest bin starts at the `f64` that is nearest to a multiple of 0.05. So a search with this start as
    /// threshold finds pairs whose similarity is exactly this multiple.
    #[test]
    fn bins_start_at_the_nearest_number() {
        for percent in 45..=100 {
            let lowest = lowest_similarity(f64::from(percent) / 100.0, 0.95).unwrap();
            assert_eq!(lowest, (lowest * BINS_PER_UNIT).round() / BINS_PER_UNIT, "{percent}");
        }
    }

    #[test]
    fn bins_reach_from_the_lowest_similarity_to_1() {
        assert_eq!(froms(0.8), [0.8, 0.85, 0.9, 0.95, 1.0]);
        assert_eq!(froms(0.93), [0.93, 0.98, 1.0]);
        assert_eq!(froms(1.0), [1.0]);
        let histogram = Histogram::new(0.5);
        for (bin, &SimilarityBin { from, to, .. }) in histogram.bins.iter().enumerate() {
            assert_eq!(histogram.bin_of(from), bin, "{from}");
            if to > from {
                assert_eq!(histogram.bin_of((from + to) / 2.0), bin, "{from}");
            }
        }
        // Similarities are fractions that `f64` does not represent exactly.
        assert_eq!(histogram.bin_of(3.0 / 5.0), histogram.bin_of(0.6));
        assert_eq!(histogram.bin_of(0.999_999), histogram.bins.len() - 2);
    }

    #[test]
    fn the_lowest_similarity_allows_the_recall() {
        assert_eq!(rounded(lowest_similarity(0.8, 0.95).unwrap()), 0.5);
        assert_eq!(rounded(lowest_similarity(0.7, 0.95).unwrap()), 0.45);
        assert_eq!(rounded(lowest_similarity(0.43, 0.95).unwrap()), 0.43);
        assert!(lowest_similarity(0.8, 0.9999).unwrap() >= 0.5);
        assert!(lowest_similarity(0.3, 0.95).is_err());
    }

    #[test]
    fn a_reservoir_takes_each_pair_as_often() {
        let mut times = [0; 20];
        for seed in 0..4000 {
            let mut reservoir = Reservoir { state: seed, ..Reservoir::new(5) };
            (0..20).for_each(|worse| reservoir.add(UniquePair { worse, better: 0, similarity: 0.5 }));
            assert_eq!(reservoir.pairs.len(), 5);
            reservoir.pairs.iter().for_each(|pair| times[pair.worse as usize] += 1);
        }
        // 1,000 expected, with a standard deviation of 27.
        assert!(times.iter().all(|count| (850..1150).contains(count)), "{times:?}");
        // `take_random` is uniform too: 1,000 expected.
        let mut times = [0; 4];
        for seed in 0..4000 {
            let mut reservoir = Reservoir { state: seed, ..Reservoir::new(5) };
            (0..4).for_each(|worse| reservoir.add(UniquePair { worse, better: 0, similarity: 0.5 }));
            times[reservoir.take_random().unwrap().worse as usize] += 1;
            assert_eq!(reservoir.pairs.len(), 3);
        }
        assert!(times.iter().all(|count| (850..1150).contains(count)), "{times:?}");
        assert!(Reservoir::new(5).take_random().is_none());
    }

    #[test]
    fn bins_near_the_threshold_have_equal_shares() {
        let bins = Histogram::new(0.5).bins;
        let reservoirs = bins.iter().map(|bin| {
            let mut reservoir = Reservoir::new(100);
            (0..100).for_each(|worse| reservoir.add(UniquePair { worse, better: 0, similarity: bin.from }));
            reservoir
        });
        let chosen = choose_pairs(&bins, reservoirs.collect(), 0.8, 4);
        let similarities: Vec<f64> = chosen.iter().map(|pair| pair.similarity).collect();
        assert_eq!(similarities, [0.85, 0.8, 0.75, 0.7]);
        // All pairs are returned if fewer exist than requested.
        assert_eq!(choose_pairs(&bins, bins.iter().map(|_| Reservoir::new(3)).collect(), 0.8, 4).len(), 0);
    }
}
