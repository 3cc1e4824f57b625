//! The rule that selects pairs of sets for a comparison of features, by sketches and sizes.

use simstore_text::{SKETCHES, SketchSearch};

use crate::rows::SketchRow;

/// Condition on the sketches of two sets for a comparison of their features.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) search: SketchSearch,
    /// Least similarity of near sets.
    pub(crate) least: f64,
}

impl Rule {
    /// Whether a pair that `sketch` has brought together is compared, and no earlier sketch has brought it together.
    #[inline]
    pub(crate) fn is_new(&self, a: &SketchRow, b: &SketchRow, sketch: usize) -> bool {
        are_brought_together(&self.search, &a.words, &b.words, sketch)
            && may_be_similar(a.features, b.features, self.least)
    }

    /// Whether two sets are near in one of the joined sketches, and near enough in all sketches together.
    #[inline(always)]
    pub(crate) fn holds(&self, a: &[u64; SKETCHES], b: &[u64; SKETCHES]) -> bool {
        let distance = |at: usize| (a[at] ^ b[at]).count_ones();
        (0..SKETCHES).map(distance).sum::<u32>() <= self.search.total
            && (0..self.search.joined).any(|sketch| distance(sketch) <= self.search.distance)
    }
}

/// Whether two sets are near in no sketch before `sketch`, and near enough in all sketches together.
#[inline]
pub(crate) fn are_brought_together(
    search: &SketchSearch,
    x: &[u64; SKETCHES],
    y: &[u64; SKETCHES],
    sketch: usize,
) -> bool {
    let distance = |at: usize| (x[at] ^ y[at]).count_ones();
    (0..sketch).all(|earlier| distance(earlier) > search.distance)
        && (0..SKETCHES).map(distance).sum::<u32>() <= search.total
}

/// Whether sets of `a` and `b` features can have similarity `least`. They share at most all features of the smaller set.
#[inline]
pub(crate) fn may_be_similar(a: u32, b: u32, least: f64) -> bool {
    f64::from(a.min(b)) >= f64::from(a.max(b)) * least - 1e-9
}
