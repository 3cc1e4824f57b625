//! Which documents are near which, by the question that was asked.

use simstore::{Fingerprint, Result};

use super::groups::Groups;
use super::similar::Similar;
use super::similarity::Texts;
use crate::Watch;
use crate::watch::Step;

/// Pairs that are counted together: to count each takes time.
const PAIRS_COUNTED: u64 = 64;

/// Which documents are near which.
pub(super) enum Nearness<F> {
    /// Those whose fingerprints are within a distance and, where texts are compared, whose texts are alike.
    Distance { groups: Groups<F>, texts: Option<Texts> },
    /// Those whose texts are similar.
    Similarity(Similar),
}

/// How near two documents are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct How {
    /// Of the fingerprints, in bits.
    pub(super) distance: Option<u32>,
    /// Of the texts, from 0 to 1.
    pub(super) similarity: Option<f32>,
    /// The standard error of the similarity, where that is estimated.
    pub(super) error: Option<f32>,
}

impl<F: Fingerprint> Nearness<F> {
    /// Number of different fingerprints, or of different sets of features.
    pub(super) fn distinct(&self) -> usize {
        match self {
            Nearness::Distance { groups, .. } => groups.distinct(),
            Nearness::Similarity(similar) => similar.distinct(),
        }
    }

    /// How many pairs of texts were compared, and how many of them were not alike, where texts are compared.
    pub(super) fn compared(&self) -> Option<(u64, u64)> {
        match self {
            Nearness::Distance { texts, .. } => texts.as_ref().map(Texts::counts),
            Nearness::Similarity(similar) => Some((similar.compared, similar.unlike)),
        }
    }

    /// Visits the pairs of near documents, in order of input.
    pub(super) fn visit_pairs(
        &self,
        watch: &dyn Watch,
        mut visitor: impl FnMut(usize, usize, How) -> Result<()>,
    ) -> Result<()> {
        let step = Step::new(watch, "pairs");
        step.add(0)?;
        let mut seen: u64 = 0;
        let mut count = |is_compared: bool| {
            seen += 1;
            match is_compared {
                true => step.add(1),
                false if seen.is_multiple_of(PAIRS_COUNTED) => step.add(PAIRS_COUNTED),
                false => Ok(()),
            }
        };
        match self {
            Nearness::Similarity(similar) => similar.visit_pairs(|a, b, similarity| {
                count(false)?;
                visitor(a, b, How { similarity: Some(similarity), ..How::default() })
            }),
            Nearness::Distance { groups, texts } => {
                // All that were compared before are among these.
                texts.iter().for_each(Texts::count_anew);
                groups.visit_pairs(|a, b, distance| {
                    count(texts.is_some())?;
                    let similarity = match texts {
                        Some(texts) => match texts.alike(a, b)? {
                            Some(similarity) => Some(similarity as f32),
                            None => return Ok(()),
                        },
                        None => None,
                    };
                    visitor(a, b, How { distance: Some(distance), similarity, error: None })
                })
            }
        }
    }
}
