//! Precision and recall of each distance, measured on labelled pairs of texts.
//!
//! Recall is the share of the positive pairs that are within distance k. Precision is the share of positive pairs among all
//! pairs within k, in a corpus of a given size. Each document of this corpus is in one labelled pair, so every labelled pair
//! meets as many random pairs as the corpus has other documents. F1 is the harmonic mean of precision and recall.
//!
//! Random pairs are texts of different documents, of no common pair, path or text. Those within [`MAX_K`] have their texts
//! compared: from a Jaccard similarity of their shingle sets on ([`EvaluateOptions::alike_from`]) they are *alike*, which is
//! neither found nor false; the others are false. Where very many are at one distance, a fixed sample of about 4,096 is
//! compared, and the count is scaled up.
//!
//! ```
//! use simstore_corpus::evaluate::{evaluate, EvaluateOptions, LabelledPair};
//!
//! let pair = |a: &str, b: &str, is_positive| {
//!     Ok(LabelledPair { texts: [a.to_owned(), b.to_owned()], is_positive, path: None })
//! };
//! let pairs = [
//!     pair("To be, or not to be, that is the question", "To be or not to be: that is the question!", true),
//!     pair("Whether 'tis nobler in the mind to suffer", "The slings and arrows of outrageous fortune", false),
//! ];
//! let evaluation = evaluate(pairs, &EvaluateOptions::default(), &())?;
//! let best = evaluation.profiles[0].best();
//! assert_eq!((best.k, best.recall), (0, 1.0));
//! // One random pair says nothing of a million documents.
//! assert!(evaluation.profiles[0].recommended().is_none());
//! # Ok::<(), simstore::Error>(())
//! ```

use simstore::any::Width;
use simstore::threads::ensure_pool;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_text::Profile;

use crate::Watch;
use crate::evaluate::compared::Pairs;

mod compared;
mod curve;
mod evaluation;
mod pairs;
mod random;
mod shingles;
mod similar;
mod svg;

pub use crate::evaluate::curve::{FalsePairs, GOOD_F1, MAX_K, Point, ProfileCurve};
pub use crate::evaluate::evaluation::{Evaluation, PAPER_BITS, PAPER_K};
pub use crate::evaluate::pairs::{LabelledPair, LabelledPairs, PairOptions, labelled_pairs, labelled_rows};
pub use crate::evaluate::similar::SimilarPoint;

/// How pairs are evaluated.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// How texts become features: each is evaluated by itself. None: the default profile.
    pub profiles: Vec<Profile>,
    /// The width of fingerprints, in bits: 64 or 128.
    pub bits: u32,
    /// The size, in documents, of the corpus to recommend a distance for; precision and F1 are computed for this size.
    pub documents: u64,
    /// From this similarity on, 0 to 1, the texts of a random pair are alike.
    pub alike_from: f64,
    /// Least similarities to compare with the distances, none of them below `alike_from`.
    pub similar: Vec<f64>,
    /// Whether malformed pairs are skipped, told to the watch and counted. Else the first one is an error.
    pub skip_bad: bool,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            profiles: Vec::new(),
            bits: 64,
            documents: 1_000_000,
            alike_from: 0.8,
            similar: Vec::new(),
            skip_bad: false,
        }
    }
}

/// Finds out what each distance finds among labelled pairs, and among random ones of their texts: all there are, up to
/// 2^28. Texts are not kept, but their fingerprints in memory, and their shingles in a temporary file, 8 bytes each: about
/// as much as the texts take.
///
/// # Errors
/// The errors of the pairs; malformed pairs are no error if they are skipped. [`Error::BadArgument`] for an unknown width, or
/// one that a profile does not have, and for similarities out of range; also if no pair is positive, or if by a profile no
/// positive pair has features in both texts. [`Error::Refused`] for a temporary file that cannot be kept; [`Error::Cancelled`].
pub fn evaluate(
    pairs: impl IntoIterator<Item = Result<LabelledPair>>,
    options: &EvaluateOptions,
    watch: &dyn Watch,
) -> Result<Evaluation> {
    ensure_pool()?;
    if options.documents == 0 {
        return Err(Error::BadArgument("option `documents` is 0: expected 1 or more".to_owned()));
    }
    options.check_similarities()?;
    let by_default = [Profile::default()];
    let profiles = if options.profiles.is_empty() { &by_default[..] } else { &options.profiles };
    profiles.iter().try_for_each(|profile| profile.check_bits(options.bits))?;
    let pairs = &mut pairs.into_iter();
    each_width!(Width::of(options.bits)?, type F => evaluate_by::<F>(pairs, profiles, options, watch))
}

impl EvaluateOptions {
    fn check_similarities(&self) -> Result<()> {
        let bad = |reason| Err(Error::BadArgument(reason));
        for (option, &value) in
            std::iter::repeat("similar").zip(&self.similar).chain([("alike_from", &self.alike_from)])
        {
            if !(0.0..=1.0).contains(&value) {
                return bad(format!("option `{option}` is {value}: expected 0 to 1"));
            }
        }
        let least = self.alike_from;
        match self.similar.iter().find(|&&similar| similar < least) {
            Some(similar) => bad(format!(
                "option `similar` {similar} is below option `alike_from` {least}: its pairs would count as false; give option \
                 `alike_from` {similar} too"
            )),
            None => Ok(()),
        }
    }
}

fn evaluate_by<F: Fingerprint>(
    pairs: &mut dyn Iterator<Item = Result<LabelledPair>>,
    profiles: &[Profile],
    options: &EvaluateOptions,
    watch: &dyn Watch,
) -> Result<Evaluation> {
    let mut pairs = Pairs::<F>::read(pairs, profiles, options.skip_bad, watch)?;
    let (count, positives) = pairs.counts();
    if positives == 0 {
        let count = if count == 1 { "1 pair".to_owned() } else { format!("{count} pairs") };
        return Err(Error::BadArgument(format!("{count} read, but none is positive: nothing to measure")));
    }
    let mut similar = Vec::new();
    if !options.similar.is_empty() {
        let (similarities, excluded) = pairs.similarities(watch)?;
        for &least in &options.similar {
            similar.push(SimilarPoint::new(least, &similarities, excluded)?);
        }
    }
    let curve = |(at, profile): (usize, &Profile)| {
        let compared = pairs.compare(at, options.alike_from, watch)?;
        if compared.positives.all == 0 {
            return Err(Error::BadArgument(format!(
                "{profile}: no positive pair has features in both texts, so there is nothing to measure; use another profile or other \
                 pairs"
            )));
        }
        Ok(ProfileCurve::new(profile.to_string(), &compared, options.documents))
    };
    Ok(Evaluation {
        profiles: profiles.iter().enumerate().map(curve).collect::<Result<_>>()?,
        similar,
        bits: F::BITS,
        pairs: count,
        positives,
        bad: pairs.bad,
        documents: options.documents,
        alike_from: options.alike_from,
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;
    use std::path::PathBuf;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::{Notice, Progress};

    fn pair(a: &str, b: &str, is_positive: bool) -> Result<LabelledPair> {
        Ok(LabelledPair { texts: [a.to_owned(), b.to_owned()], is_positive, path: None })
    }

    fn bad() -> Result<LabelledPair> {
        Err(Error::BadInput { path: PathBuf::from("pairs"), line: 2, reason: "no pair".to_owned() })
    }

    fn pairs() -> Vec<Result<LabelledPair>> {
        vec![pair("one", "one", true), pair("two", "three", false), pair("four", "?!", true)]
    }

    fn options() -> EvaluateOptions {
        EvaluateOptions { profiles: vec!["words-1".parse().unwrap()], ..EvaluateOptions::default() }
    }

    /// Counts notices, and stops the step named in `stops`.
    #[derive(Default)]
    struct Told {
        malformed: AtomicU64,
        skipped: AtomicU64,
        stops: Option<&'static str>,
    }

    impl Watch for Told {
        fn progress(&self, progress: &Progress) -> ControlFlow<()> {
            if self.stops == Some(progress.what) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        }

        fn notice(&self, notice: &Notice<'_>) {
            match notice {
                Notice::Malformed(_) => self.malformed.fetch_add(1, Ordering::Relaxed),
                Notice::Skipped(count) => self.skipped.fetch_add(*count, Ordering::Relaxed),
                _ => panic!("{notice:?}"),
            };
        }
    }

    #[test]
    fn both_widths_and_several_profiles() {
        for bits in [64, 128] {
            let profiles = ["words-1", "chars-4"].map(|name| name.parse().unwrap()).to_vec();
            let options = EvaluateOptions { profiles, bits, ..options() };
            let evaluation = evaluate(pairs(), &options, &()).unwrap();
            assert_eq!((evaluation.bits, evaluation.has_paper()), (bits, bits == 64));
            assert_eq!((evaluation.pairs, evaluation.positives, evaluation.bad), (3, 2, 0));
            let [words, chars] = &evaluation.profiles[..] else { panic!("{evaluation:?}") };
            assert_eq!((&*words.profile, &*chars.profile), ("words-1", "chars-4"));
            assert_eq!((words.positives, words.negatives, words.excluded, words.empty), (1, 1, 1, 1));
            // All pairs of one, two, three and four except the labelled pair (two, three).
            assert_eq!((words.random, words.best, words.best().recall), (5, 0, 1.0));
        }
    }

    /// Pages of one template; `moved` is page 1 with another last word.
    #[test]
    fn random_pairs_are_looked_at_by_their_texts() {
        let page = |number: u32| {
            let words: Vec<String> =
                (0..40).map(|word| format!("w{word}x{}", if word < 4 { number } else { 0 })).collect();
            words.join(" ")
        };
        let moved = page(1).replace("w39x0", "end");
        let pairs = || {
            vec![pair(&page(1), &page(1), true), pair(&moved, &moved, true), pair(&page(2), &page(2), true)]
        };
        // 38 shingles a page: of these, `moved` has 37 of page 1, page 2 has 34 of it.
        for (alike_from, alike) in [(0.99, 0), (0.9, 1), (0.75, 3)] {
            let options = EvaluateOptions { alike_from, similar: vec![1.0], documents: 2, ..options() };
            let evaluation = evaluate(pairs(), &options, &()).unwrap();
            let curve = &evaluation.profiles[0];
            let last = &curve.points[MAX_K as usize];
            assert_eq!(
                (curve.random, curve.looked_at, last.random, last.alike),
                (3, 3, 3, alike),
                "{alike_from}"
            );
            assert_eq!(last.false_share, Some((3 - alike) as f64 / 3.0));
            assert_eq!((evaluation.alike_from, evaluation.similar[0].recall), (alike_from, 1.0));
        }
    }

    #[test]
    fn malformed_pairs_end_it_or_are_told_and_counted() {
        let some = || pairs().into_iter().chain([bad(), bad()]);
        assert!(matches!(evaluate(some(), &options(), &()), Err(Error::BadInput { line: 2, .. })));
        let told = Told::default();
        let evaluation = evaluate(some(), &EvaluateOptions { skip_bad: true, ..options() }, &told).unwrap();
        assert_eq!((evaluation.pairs, evaluation.bad), (3, 2));
        assert_eq!((told.malformed.into_inner(), told.skipped.into_inner()), (2, 2));
    }

    #[test]
    fn each_step_can_be_stopped() {
        for step in ["pairs", "random pairs", "texts compared"] {
            let told = Told { stops: Some(step), ..Told::default() };
            assert!(matches!(evaluate(pairs(), &options(), &told), Err(Error::Cancelled)), "{step}");
        }
    }

    #[test]
    fn what_cannot_be_evaluated_says_why() {
        let reason = |pairs: Vec<_>, options| match evaluate(pairs, &options, &()) {
            Err(Error::BadArgument(reason)) => reason,
            other => panic!("{other:?}"),
        };
        let nothing = vec![pair("", " ", true)];
        let preset = vec!["string-hash-128".parse().unwrap()];
        for (pairs, options, expected) in [
            (Vec::new(), options(), "0 pairs read, but none is positive"),
            (vec![pair("a", "a", false)], options(), "1 pair read, but none is positive"),
            (nothing, options(), "words-1: no positive pair has features"),
            (pairs(), EvaluateOptions { bits: 32, ..options() }, "option `bits` is 32: expected 64 or 128"),
            (pairs(), EvaluateOptions { documents: 0, ..options() }, "option `documents` is 0"),
            (pairs(), EvaluateOptions { alike_from: 1.5, ..options() }, "option `alike_from` is 1.5"),
            (pairs(), EvaluateOptions { similar: vec![f64::NAN], ..options() }, "option `similar` is NaN"),
            (
                pairs(),
                EvaluateOptions { similar: vec![0.9, 0.7], ..options() },
                "option `similar` 0.7 is below option `alike_from` 0.8: its pairs would count as false",
            ),
            (
                pairs(),
                EvaluateOptions { profiles: preset, ..options() },
                "128 bits, not 64: give option `bits` 128",
            ),
        ] {
            let reason = reason(pairs, options);
            assert!(reason.contains(expected), "{reason}");
        }
    }
}
