//! Which sets are to be compared by their features, as far as sketches and sizes tell.

use simstore_text::{SKETCHES, SketchSearch};

use super::super::model::SketchRow;

/// What two sets must be like, by their sketches, for their features to be compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) search: SketchSearch,
    /// The similarity that is asked for.
    pub(crate) least: f64,
}

impl Rule {
    /// Whether two sets are to be compared that a sketch has brought together, and none of those before it.
    #[inline]
    pub(crate) fn is_new(&self, a: &SketchRow, b: &SketchRow, sketch: usize) -> bool {
        are_brought_together(&self.search, &a.words, &b.words, sketch)
            && may_be_similar(a.features, b.features, self.least)
    }

    /// Whether two sets are to be compared: some sketch brings them together.
    #[inline(always)]
    pub(crate) fn holds(&self, a: &[u64; SKETCHES], b: &[u64; SKETCHES]) -> bool {
        brings_together(&self.search, a, b)
    }
}

/// Whether one of the joined sketches brings two sets together, and all are near enough.
#[inline(always)]
pub(crate) fn brings_together(search: &SketchSearch, a: &[u64; SKETCHES], b: &[u64; SKETCHES]) -> bool {
    let distance = |at: usize| (a[at] ^ b[at]).count_ones();
    (0..SKETCHES).map(distance).sum::<u32>() <= search.total
        && (0..search.joined).any(|sketch| distance(sketch) <= search.distance)
}

/// Whether none of the sketches before one brings two sets together, and all are near enough.
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

/// Whether sets of so many features can have a similarity: what is in both is at most the smaller of them.
#[inline]
pub(crate) fn may_be_similar(a: u32, b: u32, least: f64) -> bool {
    f64::from(a.min(b)) >= f64::from(a.max(b)) * least - 1e-9
}
