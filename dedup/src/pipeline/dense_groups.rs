//! Search for similar documents within dense groups, by prefix filtering: similar members share a rare feature. In a
//! *dense group*, each document (*member*) is near many others.
//!
//! The features of all members are counted, and the features of each member are sorted by these counts,
//! rarest first. Two members with a and b features and similarity t share at least o = ceil(t (a + b) / (1 +
//! t)) features. So one of the first a - o + 1 features of one member is among the first b - o + 1 features
//! of the other (S. Chaudhuri, V. Ganti, R. Kaushik, ICDE 2006; R. Bayardo, Y. Ma, R. Srikant, WWW 2007; C.
//! Xiao, W. Wang, X. Lin, J. Yu, WWW 2008). These first features of a member are its *prefix*. Each feature has a
//! posting list, which holds the members that have the feature in their prefix.
//!
//! Two members in the same posting list are compared in three steps, until one step rejects them: by their MinHash
//! signatures, by *long signatures* of four times the length, and by their features.

use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;
use simstore::Result;
use simstore_text::{BANDS, Signature};

use crate::pipeline::bit_set::AtomicBitSet;
use crate::pipeline::candidate_rule::{CandidateRule, may_be_similar};
use crate::pipeline::counter::SaturatingCounter;
use crate::pipeline::verify::Verifier;
use crate::rows::{PairScore, SignatureRow};
use crate::workspace::Workspace;
use simstore_corpus::Stage;
use simstore_corpus::spill::Rows;

/// Number of 64-bit words in a long signature, which consists of four MinHash signatures.
pub(crate) const LONG_SIGNATURE_WORDS: usize = 4 * BANDS;
/// Number of standard deviations by which the Hamming distance of two long signatures may exceed its expected value.
/// A similar pair exceeds this limit with a probability below one in a million.
const DEVIATIONS: f64 = 5.0;
/// Number of documents whose features are read and counted at the same time, on all cores.
const COUNT_BATCH: usize = 1024;

/// Comparison of documents within *dense groups*. In a dense group, each document (*member*) is near many others.
pub(crate) struct DenseGroups<'a> {
    pub(crate) verifier: &'a Verifier<'a>,
    /// Signatures of all documents, in document order.
    pub(crate) signatures: &'a Rows<SignatureRow>,
    pub(crate) rule: CandidateRule,
    counts: FeatureCounts,
    /// Maximum Hamming distance of the long signatures of similar members, in bits.
    max_long_signature_distance: u32,
    /// Maximum memory of one inverted index of members, in bytes.
    pub(crate) memory: u64,
    /// Number of pairs of members whose signatures were compared so far.
    pub(crate) pairs_tested: AtomicU64,
}

/// A counter for each feature: the number of documents in [dense groups](DenseGroups) that have the feature, up to
/// 65,535. Features whose hashes collide share a counter, so a count may be too high.
struct FeatureCounts(Vec<SaturatingCounter>);

impl FeatureCounts {
    /// Creates counters for the features of `uniques` documents. The counters take at most `memory` bytes, or 8 KiB
    /// if `memory` is less.
    fn new(uniques: usize, memory: u64) -> FeatureCounts {
        let max_counters = (memory / 2).min(uniques as u64 * 256).clamp(1 << 12, 1 << 25);
        FeatureCounts((0..1_u64 << max_counters.ilog2()).map(|_| SaturatingCounter::default()).collect())
    }

    fn of(&self, feature: u64) -> &SaturatingCounter {
        &self.0[(hash_feature(feature, 0) as usize) & (self.0.len() - 1)]
    }

    fn add(&self, feature: u64) {
        self.of(feature).add(u16::MAX);
    }

    /// Returns `features` sorted by their counts, the rarest first.
    fn ordered(&self, features: &[u64]) -> Vec<u64> {
        let key = |&feature: &u64| (self.of(feature).get(), feature);
        let mut ordered = features.to_vec();
        ordered.sort_unstable_by_key(key);
        ordered
    }
}

/// Hashes a feature with one of several hash functions, which `number` selects. Each of them is the finalizer of
/// SplitMix64 with another offset (G. Steele, D. Lea, C. Flood, OOPSLA 2014).
fn hash_feature(feature: u64, number: u64) -> u64 {
    let mut hash = feature.wrapping_add((number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

/// Computes the long signature of a feature set: four MinHash signatures one after the other, each with another
/// hash function.
fn long_signature(features: &[u64]) -> [u64; LONG_SIGNATURE_WORDS] {
    let mut long = [0; LONG_SIGNATURE_WORDS];
    let mut hashed = Vec::with_capacity(features.len());
    for (number, bands) in (1..).zip(long.as_chunks_mut::<BANDS>().0) {
        hashed.clear();
        hashed.extend(features.iter().map(|&feature| hash_feature(feature, number)));
        hashed.sort_unstable();
        *bands = Signature::new(&hashed).map_or([0; BANDS], |signature| signature.bands);
    }
    long
}

/// Document of a [dense group](DenseGroups), with its signatures and features.
pub(crate) struct DenseMember {
    pub(crate) unique: u32,
    pub(crate) bands: [u64; BANDS],
    pub(crate) long_signature: [u64; LONG_SIGNATURE_WORDS],
    /// Features sorted by their [counts](FeatureCounts), the rarest first.
    pub(crate) ordered: Vec<u64>,
    /// Features in ascending order.
    pub(crate) features: Vec<u64>,
}

impl DenseMember {
    /// Number of features of the document.
    pub(crate) fn size(&self) -> u32 {
        self.features.len() as u32
    }
}

/// Hamming distance of two arrays of words, in bits.
#[inline(always)]
pub(crate) fn hamming_distance<const N: usize>(a: &[u64; N], b: &[u64; N]) -> u32 {
    (0..N).map(|at| (a[at] ^ b[at]).count_ones()).sum()
}

impl<'a> DenseGroups<'a> {
    /// Prepares the comparison of the documents in `dense_members`: counts how many of them have each feature.
    pub(crate) fn new(
        verifier: &'a Verifier<'a>,
        signatures: &'a Rows<SignatureRow>,
        rule: CandidateRule,
        dense_members: &AtomicBitSet,
        workspace: &Workspace,
        stage: &Stage<'_>,
    ) -> Result<Self> {
        let counts = FeatureCounts::new(dense_members.count(), workspace.share());
        for batch in batches(dense_members.ones(), COUNT_BATCH, stage) {
            batch?.into_par_iter().try_for_each(|unique| {
                verifier.features(unique)?.into_iter().for_each(|feature| counts.add(feature));
                Ok::<_, simstore::Error>(())
            })?;
        }
        let bits = (64 * LONG_SIGNATURE_WORDS) as f64;
        let differing = (1.0 - rule.min_similarity) / 2.0;
        let max_long_distance = bits * differing + DEVIATIONS * (bits * differing * (1.0 - differing)).sqrt();
        Ok(DenseGroups {
            verifier,
            signatures,
            rule,
            counts,
            max_long_signature_distance: max_long_distance.ceil() as u32,
            memory: workspace.share(),
            pairs_tested: AtomicU64::new(0),
        })
    }

    /// Number of pairs of members whose signatures were compared so far.
    pub(crate) fn pairs_tested(&self) -> u64 {
        self.pairs_tested.load(Ordering::Relaxed)
    }

    /// Reads the features of a member, sorts them, and computes the long signature of the member.
    pub(crate) fn read_member(&self, unique: u32) -> Result<DenseMember> {
        let features = self.verifier.features(unique)?;
        let bands = self.signatures.get(self.verifier.uniques.best_document(unique)? as usize)?.bands;
        Ok(DenseMember {
            unique,
            bands,
            long_signature: long_signature(&features),
            ordered: self.counts.ordered(&features),
            features,
        })
    }

    /// Whether two members may be similar, judged by their signatures: `a` and `b` are pairs of a MinHash
    /// signature and a long signature.
    #[inline(always)]
    pub(crate) fn may_be_similar(
        &self,
        a: (&[u64; BANDS], &[u64; LONG_SIGNATURE_WORDS]),
        b: (&[u64; BANDS], &[u64; LONG_SIGNATURE_WORDS]),
    ) -> bool {
        hamming_distance(a.0, b.0) <= self.rule.search.signature_distance
            && hamming_distance(a.1, b.1) <= self.max_long_signature_distance
            && self.rule.accepts(a.0, b.0)
    }

    /// Compares two members. Returns their score, or `None` if they are not similar enough.
    pub(crate) fn verify(&self, a: &DenseMember, b: &DenseMember) -> Option<PairScore> {
        let is_possible = may_be_similar(a.size(), b.size(), self.rule.min_similarity)
            && self.may_be_similar((&a.bands, &a.long_signature), (&b.bands, &b.long_signature));
        if is_possible { self.verifier.verify_features(&a.features, &b.features) } else { None }
    }
}

/// Splits `items` into batches of `count` items; the last batch may be smaller. Returns an error instead of a
/// batch if the run is cancelled.
pub(crate) fn batches<T>(
    mut items: impl Iterator<Item = T>,
    count: usize,
    stage: &Stage<'_>,
) -> impl Iterator<Item = Result<Vec<T>>> {
    std::iter::from_fn(move || {
        let batch: Vec<T> = items.by_ref().take(count).collect();
        if batch.is_empty() { None } else { Some(stage.add(0).map(|()| batch)) }
    })
}
