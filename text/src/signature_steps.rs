//! The steps from a text to its signature, callable one by one for benchmarks.

use crate::clean::CleaningBuffers;
use crate::hash_deduplicator::HashDeduplicator;
use crate::{Profile, Signature};

/// Computes the signature of a text in four steps: cleaning, hashing of features, removal of repeated features, signature. Each
/// method starts from the text, and runs all steps up to the step that it is named after.
#[derive(Default)]
pub struct SignatureSteps {
    buffers: CleaningBuffers,
    words: Vec<u64>,
    features: Vec<u64>,
    deduplicator: HashDeduplicator,
}

impl SignatureSteps {
    /// Cleans a text. Returns the length of the cleaned text in bytes.
    pub fn clean(&mut self, profile: &Profile, text: &str) -> usize {
        profile.clean(text, &mut self.buffers).text.len()
    }

    /// Cleans a text and hashes its features. Returns the number of features, counting repeated ones.
    pub fn shingle(&mut self, profile: &Profile, text: &str) -> usize {
        self.features.clear();
        profile.push_features(text, &mut self.buffers, &mut self.words, &mut self.features);
        self.features.len()
    }

    /// Cleans a text, hashes its features and removes repeated ones. Returns the number of distinct features.
    pub fn distinct(&mut self, profile: &Profile, text: &str) -> usize {
        self.shingle(profile, text);
        self.deduplicator.keep_first(&mut self.features);
        self.features.len()
    }

    /// Computes the signature of a text, in all steps. Returns `None` if the text has no features.
    pub fn signature(&mut self, profile: &Profile, text: &str) -> Option<Signature> {
        self.distinct(profile, text);
        Signature::new(&self.features)
    }
}
