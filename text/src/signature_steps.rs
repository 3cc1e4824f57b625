//! The steps from a text to its signature, callable one by one for benchmarks.

use crate::clean::CleaningBuffers;
use crate::hash_deduplicator::HashDeduplicator;
use crate::{Profile, Signature};

/// Runs the steps from a text to its signature. Each method runs all steps up to its own.
#[derive(Default)]
pub struct SignatureSteps {
    buffers: CleaningBuffers,
    words: Vec<u64>,
    features: Vec<u64>,
    deduplicator: HashDeduplicator,
}

impl SignatureSteps {
    /// Returns the length of the cleaned text in bytes.
    pub fn clean(&mut self, profile: &Profile, text: &str) -> usize {
        profile.clean(text, &mut self.buffers).text.len()
    }

    /// Returns the number of features, which may occur several times.
    pub fn shingle(&mut self, profile: &Profile, text: &str) -> usize {
        self.features.clear();
        profile.push_features(text, &mut self.buffers, &mut self.words, &mut self.features);
        self.features.len()
    }

    /// Returns the number of distinct features.
    pub fn distinct(&mut self, profile: &Profile, text: &str) -> usize {
        self.shingle(profile, text);
        self.deduplicator.keep_first(&mut self.features);
        self.features.len()
    }

    /// Returns the signature.
    pub fn signature(&mut self, profile: &Profile, text: &str) -> Option<Signature> {
        self.distinct(profile, text);
        Signature::new(&self.features)
    }
}
