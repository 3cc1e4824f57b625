//! Which question is asked: how similar texts are, or in how many bits their fingerprints differ.

use serde::Serialize;

use crate::{Notice, Watch};

/// What near means. It is serialized as a field `similar` or `distance`, as the options are called that ask it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Question {
    /// Texts of at least this similarity, from 0 to 1.
    #[serde(rename = "similar")]
    Similarity(f64),
    /// Fingerprints that differ in at most so many bits.
    Distance(u32),
}

/// A question, and what a user might not expect of it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) question: Question,
    /// Of an option that asks for nothing, but has made it another question than that of similar texts.
    pub(super) warning: Option<String>,
}

impl Asked {
    pub(super) fn plainly(question: Question) -> Asked {
        Asked { question, warning: None }
    }

    /// Says what a user might not expect. Returns the question.
    pub(super) fn told(self, watch: &dyn Watch) -> Question {
        self.warning.iter().for_each(|warning| watch.notice(&Notice::Warning(warning)));
        self.question
    }
}
