//! Precision and recall of each distance k between fingerprints, measured on labelled pairs of texts.
//!
//! A labelled pair is positive if its texts are near-duplicates. Recall is the share of the positive pairs that are within
//! distance k. Precision is the share of positive pairs among all pairs within k, and is predicted for a corpus of n
//! documents. The prediction assumes that each document of the corpus is in one labelled pair. The corpus then has n / 2
//! labelled pairs, and n(n - 1) / 2 pairs in total, which is n - 1 for each labelled pair. So precision counts n - 1
//! random pairs for each labelled pair. F1 is the harmonic mean of precision and recall.
//!
//! A random pair has two texts that are not known to be related. Texts are related if they are in the same labelled pair, if
//! their pairs have the same [path](LabelledPair::path), or through a chain of such relations. The texts of random pairs
//! within [`MAX_K`] are compared. A random pair is *alike* if the Jaccard similarity of its shingle sets is at least
//! [`EvaluateOptions::alike_from`]. An alike pair counts neither as found nor as false. All other random pairs within k are
//! false. If more than 4,096 random pairs have the same distance, only about 4,096 of them are compared, always the same
//! ones, and the number of alike pairs is scaled up.
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
//! // One random pair is not enough for a corpus of a million documents.
//! assert!(evaluation.profiles[0].recommended().is_none());
//! # Ok::<(), simstore::Error>(())
//! ```

use simstore::any::Width;
use simstore::threads::ensure_pool;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_text::Profile;

use crate::Observer;
use crate::evaluate::evaluation_data::EvaluationData;

mod curve;
mod evaluation;
mod evaluation_data;
mod labelled_pairs;
mod random_pairs;
mod shingle_sets;
mod similarity_point;
mod svg;

pub use crate::evaluate::curve::{CurvePoint, FalsePairs, MAX_K, MIN_RECOMMENDED_F1, ProfileCurve};
pub use crate::evaluate::evaluation::{Evaluation, PAPER_BITS, PAPER_K};
pub use crate::evaluate::labelled_pairs::{
    LabelledPair, LabelledPairs, PairOptions, labelled_pairs, labelled_rows,
};
pub use crate::evaluate::similarity_point::SimilarityPoint;

/// Options of [`evaluate`]: profiles and similarity thresholds to evaluate, and the corpus to predict precision for.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// Profiles, each evaluated separately. If empty, the default profile.
    pub profiles: Vec<Profile>,
    /// Width of the fingerprints, in bits: 64 or 128.
    pub bits: u32,
    /// Size of the corpus to recommend a distance for, in documents. Precision and F1 are computed for this size.
    pub documents: u64,
    /// Minimum Jaccard similarity at which two unrelated texts (a *random pair*) count as [alike](self), so that finding the
    /// pair is not an error. From 0 to 1.
    pub alike_from: f64,
    /// Thresholds of Jaccard similarity. For each threshold, the evaluation also computes the recall and precision of a search
    /// that compares texts instead of fingerprints. No threshold may be below [`alike_from`](Self::alike_from).
    pub similar: Vec<f64>,
    /// Whether malformed pairs are skipped, reported to the observer and counted. Otherwise the first malformed pair ends the
    /// evaluation with its error.
    pub skip_malformed: bool,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            profiles: Vec::new(),
            bits: 64,
            documents: 1_000_000,
            alike_from: 0.8,
            similar: Vec::new(),
            skip_malformed: false,
        }
    }
}

/// Measures recall, precision and F1 of each distance, on labelled pairs and on random pairs of their texts. If more than
/// 2^28 random pairs are possible, about 2^28 of them are drawn.
///
/// Memory holds the fingerprints of the texts, and a temporary file holds their shingles, 8 bytes each. The file is about as
/// large as the texts, which are not kept.
///
/// # Errors
/// - An error that `pairs` yields, except for a malformed pair if [such pairs are skipped](EvaluateOptions::skip_malformed).
/// - [`Error::BadArgument`] if the width is unknown or does not fit a profile, or a similarity is out of range.
/// - [`Error::BadArgument`] if no pair is positive, or if for some profile each positive pair has a text without features.
/// - [`Error::Refused`] if the temporary file cannot be written.
/// - [`Error::Cancelled`] if the observer cancels.
pub fn evaluate(
    pairs: impl IntoIterator<Item = Result<LabelledPair>>,
    options: &EvaluateOptions,
    observer: &dyn Observer,
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
    each_width!(Width::from_bits(options.bits)?, type F => evaluate_width::<F>(pairs, profiles, options, observer))
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

fn evaluate_width<F: Fingerprint>(
    pairs: &mut dyn Iterator<Item = Result<LabelledPair>>,
    profiles: &[Profile],
    options: &EvaluateOptions,
    observer: &dyn Observer,
) -> Result<Evaluation> {
    let mut pairs = EvaluationData::<F>::read(pairs, profiles, options.skip_malformed, observer)?;
    let (count, positives) = pairs.counts();
    if positives == 0 {
        let count = if count == 1 { "1 pair".to_owned() } else { format!("{count} pairs") };
        return Err(Error::BadArgument(format!("{count} read, but none is positive: nothing to measure")));
    }
    let mut similar = Vec::new();
    if !options.similar.is_empty() {
        let (similarities, excluded) = pairs.similarities(observer)?;
        for &least in &options.similar {
            similar.push(SimilarityPoint::new(least, &similarities, excluded)?);
        }
    }
    let curve = |(at, profile): (usize, &Profile)| {
        let compared = pairs.compare(at, options.alike_from, observer)?;
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
        malformed: pairs.malformed,
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
    use crate::{Diagnostic, StageProgress};

    fn pair(a: &str, b: &str, is_positive: bool) -> Result<LabelledPair> {
        Ok(LabelledPair { texts: [a.to_owned(), b.to_owned()], is_positive, path: None })
    }

    fn malformed() -> Result<LabelledPair> {
        Err(Error::BadInput { path: PathBuf::from("pairs"), line: 2, reason: "no pair".to_owned() })
    }

    fn pairs() -> Vec<Result<LabelledPair>> {
        vec![pair("one", "one", true), pair("two", "three", false), pair("four", "?!", true)]
    }

    fn options() -> EvaluateOptions {
        EvaluateOptions { profiles: vec!["words-1".parse().unwrap()], ..EvaluateOptions::default() }
    }

    /// Counts diagnostics, and cancels the job in the stage whose name is `stops`.
    #[derive(Default)]
    struct CountingObserver {
        malformed: AtomicU64,
        skipped: AtomicU64,
        stops: Option<&'static str>,
    }

    impl Observer for CountingObserver {
        fn progress(&self, progress: &StageProgress) -> ControlFlow<()> {
            if self.stops == Some(progress.stage) {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        }

        fn diagnostic(&self, diagnostic: &Diagnostic<'_>) {
            match diagnostic {
                Diagnostic::Malformed(_) => self.malformed.fetch_add(1, Ordering::Relaxed),
                Diagnostic::SkippedLines(count) => self.skipped.fetch_add(*count, Ordering::Relaxed),
                _ => panic!("{diagnostic:?}"),
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
            assert_eq!((evaluation.pairs, evaluation.positives, evaluation.malformed), (3, 2, 0));
            let [words, chars] = &evaluation.profiles[..] else { panic!("{evaluation:?}") };
            assert_eq!((&*words.profile, &*chars.profile), ("words-1", "chars-4"));
            assert_eq!((words.positives, words.negatives, words.excluded, words.empty), (1, 1, 1, 1));
            // All pairs of one, two, three and four except the labelled pair (two, three).
            assert_eq!((words.random, words.best, words.best().recall), (5, 0, 1.0));
        }
    }

    /// A random pair counts as alike if the Jaccard similarity of its texts is at least `alike_from`.
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
        // A page has 38 shingles. `moved` shares 37 with page 1, and page 2 shares 34 with page 1.
        for (alike_from, alike) in [(0.99, 0), (0.9, 1), (0.75, 3)] {
            let options = EvaluateOptions { alike_from, similar: vec![1.0], documents: 2, ..options() };
            let evaluation = evaluate(pairs(), &options, &()).unwrap();
            let curve = &evaluation.profiles[0];
            let last = &curve.points[MAX_K as usize];
            assert_eq!(
                (curve.random, curve.verified, last.random, last.alike),
                (3, 3, 3, alike),
                "{alike_from}"
            );
            assert_eq!(last.false_share, Some((3 - alike) as f64 / 3.0));
            assert_eq!((evaluation.alike_from, evaluation.similar[0].recall), (alike_from, 1.0));
        }
    }

    #[test]
    fn malformed_pairs_end_the_run_or_are_reported_and_counted() {
        let some = || pairs().into_iter().chain([malformed(), malformed()]);
        assert!(matches!(evaluate(some(), &options(), &()), Err(Error::BadInput { line: 2, .. })));
        let counting = CountingObserver::default();
        let evaluation =
            evaluate(some(), &EvaluateOptions { skip_malformed: true, ..options() }, &counting).unwrap();
        assert_eq!((evaluation.pairs, evaluation.malformed), (3, 2));
        assert_eq!((counting.malformed.into_inner(), counting.skipped.into_inner()), (2, 2));
    }

    #[test]
    fn each_step_can_be_stopped() {
        for stage in ["pairs", "random pairs", "texts compared"] {
            let counting = CountingObserver { stops: Some(stage), ..CountingObserver::default() };
            assert!(matches!(evaluate(pairs(), &options(), &counting), Err(Error::Cancelled)), "{stage}");
        }
    }

    #[test]
    fn impossible_evaluations_say_why() {
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
