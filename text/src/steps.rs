//! The steps from a text to its signature, one by one: for benches.

use crate::clean::Buffers;
use crate::distinct::Distinct;
use crate::{Profile, Sketched};

/// Runs the steps from texts to signatures. Each method takes all steps up to its own.
#[derive(Default)]
pub struct Steps {
    buffers: Buffers,
    words: Vec<u64>,
    features: Vec<u64>,
    distinct: Distinct,
}

impl Steps {
    /// Returns the length of the cleaned text in bytes.
    pub fn clean(&mut self, profile: &Profile, text: &str) -> usize {
        profile.cleaned(text, &mut self.buffers).text.len()
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
        self.distinct.keep_first(&mut self.features);
        self.features.len()
    }

    /// Returns the signature.
    pub fn sign(&mut self, profile: &Profile, text: &str) -> Option<Sketched> {
        self.distinct(profile, text);
        Sketched::new(&self.features)
    }
}
