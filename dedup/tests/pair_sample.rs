//! Tests `sample_pairs`: compares the histogram and the sampled pairs with a plain loop over all pairs.

use simstore::Error;
use simstore_dedup::{ComparisonConfig, DedupConfig, KeepRule, Outputs, PairSample, SimilarityConfig};
use simstore_io::DocumentId;
use simstore_text::{Profile, jaccard};

use crate::Random;
use crate::support::inputs;

/// Returns random texts of 30 to 90 words. Two thirds are copies of other texts, most of them with some words
/// changed.
fn texts(seed: u64, count: usize) -> Vec<String> {
    let mut random = Random(seed);
    let mut texts: Vec<Vec<u64>> = Vec::new();
    for _ in 0..count {
        if texts.is_empty() || random.below(3) == 0 {
            let length = 30 + random.below(60);
            texts.push((0..length).map(|_| random.below(100_000)).collect());
        } else {
            let mut copy = texts[random.below(texts.len() as u64) as usize].clone();
            for _ in 0..random.below(8) {
                let at = random.below(copy.len() as u64) as usize;
                copy[at] = random.below(100_000);
            }
            texts.push(copy);
        }
    }
    texts.iter().map(|text| text.iter().map(|word| format!("w{word} ")).collect()).collect()
}

fn sample(texts: &[String], options: &DedupConfig, count: usize) -> Result<PairSample, Error> {
    simstore_dedup::sample_pairs(options, &inputs::numbered(texts), count, &())
}

#[test]
fn counts_are_those_of_a_plain_loop() {
    let texts = texts(7, 400);
    let shingles = Profile::shingles();
    let sets: Vec<Vec<u64>> = texts.iter().map(|text| shingles.feature_set(text)).collect();
    let options = DedupConfig { comparison: ComparisonConfig::by_similarity(0.8), ..DedupConfig::default() };
    let found = sample(&texts, &options, 50).unwrap();
    assert_eq!((found.threshold, found.documents), (0.8, 400));
    assert_eq!(found.bins.first().unwrap().from, 0.5);
    let (mut missed, mut all) = (0, 0);
    for (at, bin) in found.bins.iter().enumerate() {
        let is_last = at + 1 == found.bins.len();
        let is_in = |similarity: f64| {
            if is_last { similarity == 1.0 } else { similarity >= bin.from && similarity < bin.to }
        };
        // A document counts in the bin of its most similar earlier document. Pairs count only between
        // documents that have no exact duplicate before them.
        let is_first = |at: usize| !sets[..at].contains(&sets[at]);
        let (mut pairs, mut duplicates) = (0, 0);
        for b in 0..sets.len() {
            let similarities: Vec<f64> = (0..b).map(|a| jaccard(&sets[a], &sets[b])).collect();
            let best = similarities.iter().copied().fold(0.0, f64::max);
            duplicates += u64::from(is_in(best));
            if is_first(b) {
                pairs += similarities.iter().enumerate().filter(|(a, s)| is_first(*a) && is_in(**s)).count()
                    as u64;
            }
        }
        assert!(bin.pairs <= pairs, "{bin:?}: {pairs} pairs");
        missed += pairs - bin.pairs;
        all += pairs;
        if is_last || bin.from >= 0.75 {
            assert_eq!((bin.pairs, bin.duplicates), (pairs, duplicates), "{bin:?}");
        }
    }
    // In the lowest bin, at least 95% of the pairs are found.
    assert!(all > 300 && missed * 20 <= all, "{missed} of {all} missed");
    for pair in &found.pairs {
        let at = |id: &DocumentId| id.text().parse::<usize>().unwrap();
        let (a, b) = (at(&pair.a.id), at(&pair.b.id));
        assert!(a < b);
        assert_eq!(pair.similarity, jaccard(&sets[a], &sets[b]));
        assert_eq!((&pair.a.text, &pair.b.text), (&texts[a], &texts[b]));
    }
    assert_eq!(found.pairs.len(), 50);
    let above = found.pairs.iter().filter(|pair| pair.similarity >= 0.8).count();
    assert!((15..=35).contains(&above), "{above} of 50 are above the threshold");
    // Another call returns the same pairs.
    let again = sample(&texts, &options, 50).unwrap();
    let ids = |sample: &PairSample| {
        sample.pairs.iter().map(|pair| (pair.a.id.clone(), pair.b.id.clone())).collect::<Vec<_>>()
    };
    assert_eq!(ids(&found), ids(&again));
}

/// For several thresholds, pairs whose similarity is exactly the lower bound of the lowest bin are counted in this
/// bin.
#[test]
fn pairs_at_the_start_of_the_lowest_bin_are_counted() {
    // (Shingles in both texts of a pair, shingles in each text); the similarity is shared / (2 * shingles - shared).
    for (threshold, shared, shingles, lowest) in [
        (0.9, 60, 80, 0.6),
        (1.0, 70, 85, 0.7),
        (0.85, 66, 93, 0.55),
        (0.75, 54, 87, 0.45),
        (0.8, 50, 75, 0.5),
    ] {
        let mut texts = Vec::new();
        for pair in 0..10 {
            let word = |at: usize, text: usize| format!("w{pair}-{at}-{text} ");
            texts.push((0..shingles + 2).map(|at| word(at, 0)).collect());
            texts.push((0..shingles + 2).map(|at| word(at, usize::from(at >= shared + 2))).collect());
        }
        let options =
            DedupConfig { comparison: ComparisonConfig::by_similarity(threshold), ..DedupConfig::default() };
        let bins = sample(&texts, &options, 0).unwrap().bins;
        assert_eq!(bins[0].from, lowest, "{threshold}");
        // Each pair is found with a probability of 0.95.
        assert!(bins[0].pairs >= 8, "{threshold}: {bins:?}");
        assert!(bins[1..].iter().all(|bin| bin.pairs == 0), "{threshold}: {bins:?}");
    }
}

#[test]
fn a_run_removes_at_most_what_the_histogram_says() {
    for seed in 0..5 {
        let texts = texts(seed, 200);
        let found = sample(&texts, &DedupConfig::default(), 0).unwrap();
        assert!(found.pairs.is_empty());
        for bin in found.bins.iter().filter(|bin| bin.from >= 0.6) {
            let options = DedupConfig {
                comparison: ComparisonConfig::by_similarity(bin.from),
                ..DedupConfig::default()
            };
            let run =
                simstore_dedup::run(&options, &inputs::numbered(&texts), Outputs::default(), &()).unwrap();
            let removed = (texts.len() - run.summary().kept) as u64;
            assert!(removed <= bin.removed_at_most, "{bin:?}: {removed} removed");
            // Most duplicates are similar to a document that is kept.
            assert!(removed * 2 > bin.removed_at_most, "{bin:?}: {removed} removed");
        }
    }
}

#[test]
fn questions_that_are_not_about_texts_are_refused() {
    let texts = texts(1, 3);
    let refused = |options: DedupConfig, count| match sample(&texts, &options, count) {
        Err(Error::BadArgument(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let with = |compare| DedupConfig { comparison: compare, ..DedupConfig::default() };
    refused(with(ComparisonConfig::by_distance(3)), 1);
    refused(with(ComparisonConfig::by_similarity(0.2)), 1);
    refused(
        with(ComparisonConfig::Similarity(SimilarityConfig {
            recall: Some(1.5),
            ..SimilarityConfig::default()
        })),
        1,
    );
    refused(DedupConfig { against: vec!["store".into()], ..DedupConfig::default() }, 1);
    refused(DedupConfig { keep: KeepRule::None, ..DedupConfig::default() }, 1);
    refused(DedupConfig::default(), 10_001);
}
