//! Which distance finds the near-duplicates, and what else it finds: measured on pairs of texts of which that is known.
//!
//! Recall is the share of the positive pairs that are within k. Precision is the share of positive pairs among all that are
//! within k: the labelled pairs, and so many random ones for each. Random pairs are texts of different documents, of no
//! common pair, path or text; they are taken to be no duplicates. F1 is the harmonic mean of both.
//!
//! ```
//! use simstore_corpus::evaluate::{EvaluateOptions, LabelledPair, evaluate};
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
//! # Ok::<(), simstore::Error>(())
//! ```

use std::io::{self, Write};

use simstore::threads::ensure_pool;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;

use crate::Watch;
use crate::evaluate::compared::Pairs;
use crate::watch::Step;

mod compared;
mod curve;
mod pairs;
mod random;
mod svg;

pub use crate::evaluate::curve::{FalsePairs, MAX_K, Point, ProfileCurve};
pub use crate::evaluate::pairs::{LabelledPair, LabelledPairs, PairOptions, labelled_pairs};

/// The distance of Manku, Jain and Das Sarma, for fingerprints of [`PAPER_BITS`].
pub const PAPER_K: u32 = 3;
/// The width of their fingerprints, in bits.
pub const PAPER_BITS: u32 = 64;

/// How pairs are evaluated.
#[derive(Clone, Debug)]
pub struct EvaluateOptions {
    /// How texts become features: each is evaluated by itself. None: the default profile.
    pub profiles: Vec<Profile>,
    /// The width of fingerprints, in bits: 64 or 128.
    pub bits: u32,
    /// Random pairs for each labelled one, in precision and F1.
    pub random_each: u64,
    /// The size of the corpus of which is told what it would be like.
    pub documents: u64,
    /// Whether malformed pairs are skipped, told to the watch and counted. Else the first one is an error.
    pub skip_bad: bool,
}

impl Default for EvaluateOptions {
    fn default() -> Self {
        EvaluateOptions {
            profiles: Vec::new(),
            bits: 64,
            random_each: 100,
            documents: 1_000_000,
            skip_bad: false,
        }
    }
}

/// What the profiles make of the pairs.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// One for each profile, in their order.
    pub profiles: Vec<ProfileCurve>,
    /// The width of the fingerprints, in bits.
    pub bits: u32,
    /// Labelled pairs.
    pub pairs: u64,
    /// How many of them are positive.
    pub positives: u64,
    /// Malformed pairs skipped.
    pub bad: u64,
    /// Random pairs for each labelled one.
    pub random_each: u64,
    /// The size of the corpus.
    pub documents: u64,
}

impl Evaluation {
    /// Whether the fingerprints are as wide as the paper's: then [`PAPER_K`] is its distance.
    pub fn has_paper(&self) -> bool {
        self.bits == PAPER_BITS
    }

    /// Draws precision, recall and F1 against k as SVG, a panel for each profile.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn draw_svg(&self, out: &mut dyn Write) -> io::Result<()> {
        svg::draw(out, self)
    }
}

/// Finds out what each distance finds among labelled pairs, and among random ones of their texts: all there are, up to
/// 2^28. Texts are not kept, only their fingerprints.
///
/// # Errors
/// Those of the pairs, malformed ones only if they are not skipped; [`Error::BadArgument`] for a width that there is not, or
/// that is not a profile's, and where no pair is positive, or none by a profile; [`Error::Cancelled`].
pub fn evaluate(
    pairs: impl IntoIterator<Item = Result<LabelledPair>>,
    options: &EvaluateOptions,
    watch: &dyn Watch,
) -> Result<Evaluation> {
    ensure_pool()?;
    if options.documents == 0 {
        return Err(Error::BadArgument(
            "a corpus has one document or more: option `documents` is 0".to_owned(),
        ));
    }
    let by_default = [Profile::default()];
    let profiles = if options.profiles.is_empty() { &by_default[..] } else { &options.profiles };
    profiles.iter().try_for_each(|profile| profile.check_bits(options.bits))?;
    let pairs = &mut pairs.into_iter();
    match options.bits {
        64 => evaluate_by::<u64>(pairs, profiles, options, watch),
        128 => evaluate_by::<u128>(pairs, profiles, options, watch),
        bits => {
            Err(Error::BadArgument(format!("there are no fingerprints of {bits} bits: they have 64 or 128")))
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
        return Err(Error::BadArgument(format!(
            "{count} read, none of them positive: there is nothing to find"
        )));
    }
    let step = Step::new(watch, "random pairs");
    let curve = |(at, profile): (usize, &Profile)| {
        let compared = pairs.compare(at, &step)?;
        if compared.positives.all == 0 {
            return Err(Error::BadArgument(format!(
                "{profile}: no positive pair has features in both texts, so there is nothing to find; give another profile \
                 or other pairs"
            )));
        }
        Ok(ProfileCurve::new(profile.to_string(), &compared, options.random_each, options.documents))
    };
    Ok(Evaluation {
        profiles: profiles.iter().enumerate().map(curve).collect::<Result<_>>()?,
        bits: F::BITS,
        pairs: count,
        positives,
        bad: pairs.bad,
        random_each: options.random_each,
        documents: options.documents,
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

    /// Counts what it is told, and stops the step that it is to stop.
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
            // Of one, two, three and four all pairs but that of two and three.
            assert_eq!((words.random, words.recommended, words.best().recall), (5, 0, 1.0));
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
        for step in ["pairs", "random pairs"] {
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
        let nothing = vec![pair("?!", "?!", true)];
        let preset = vec!["string-hash-128".parse().unwrap()];
        for (pairs, options, expected) in [
            (Vec::new(), options(), "0 pairs read, none of them positive"),
            (vec![pair("a", "a", false)], options(), "1 pair read, none of them positive"),
            (nothing, options(), "words-1: no positive pair has features"),
            (pairs(), EvaluateOptions { bits: 32, ..options() }, "no fingerprints of 32 bits"),
            (pairs(), EvaluateOptions { documents: 0, ..options() }, "option `documents` is 0"),
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
