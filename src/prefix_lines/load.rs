//! Chooses how many keys a line has on average, by a sample of the fingerprints.

use super::shape::LineShape;
use crate::fingerprint::Fingerprint;
use crate::run_sample::RunSample;

/// Mean numbers of keys in a line that are considered. If prefixes are random, few lines with 36 keys on average are
/// divided: one in a hundred.
const MEAN_KEYS: [u64; 8] = [LineShape::MEAN_KEYS, 32, 28, 24, 20, 16, 12, 8];

impl LineShape {
    /// Chooses the shape of the main lines of a table. `sample` is a sample of all its permuted fingerprints, at least one.
    ///
    /// The shape with the fewest bytes is chosen, where the bytes count more if more keys are in divided lines: a look-up of
    /// such a key waits once more.
    pub(crate) fn for_sample<F: Fingerprint>(sample: &RunSample<F>) -> LineShape {
        let shapes = MEAN_KEYS.map(|keys| LineShape::for_table(sample.pushed(), keys, F::BITS));
        let cost = |shape: LineShape| {
            let load = LineLoad::new(shape, sample);
            load.lines * (1.0 + load.divided_share)
        };
        let costs = shapes.map(|shape| (shape, cost(shape)));
        let best = costs.into_iter().min_by(|a, b| a.1.total_cmp(&b.1));
        best.map_or(shapes[0], |(shape, _)| shape)
    }
}

impl LineShape {
    /// Estimates the number of lines of this shape in a table, with those that divide others. `sample` is a sample of its
    /// fingerprints.
    pub(crate) fn estimated_lines<F: Fingerprint>(self, sample: &RunSample<F>) -> f64 {
        LineLoad::new(self, sample).lines
    }

    /// Estimates the share of the keys that are in divided lines. `sample` is a sample of the fingerprints of the table.
    pub(crate) fn divided_share<F: Fingerprint>(self, sample: &RunSample<F>) -> f64 {
        LineLoad::new(self, sample).divided_share
    }
}

/// Estimated load of the lines of a table.
struct LineLoad {
    /// Number of lines, with those that divide others.
    lines: f64,
    /// Share of the keys that are in divided lines.
    divided_share: f64,
}

impl LineLoad {
    fn new<F: Fingerprint>(shape: LineShape, sample: &RunSample<F>) -> LineLoad {
        let line_of =
            |fingerprint: &F| shape.address((*fingerprint >> (F::BITS - shape.bucket_bits())).low_u64()).line;
        let (mut keys, mut divided_keys, mut dividing) = (0, 0, 0);
        for run in sample.runs() {
            for line in run.chunk_by(|a, b| line_of(a) == line_of(b)) {
                let count = line.len() as u64;
                keys += count;
                if count > shape.max_keys() {
                    divided_keys += count;
                    dividing += shape.to_divide(line_of(&line[0]), count).lines();
                }
            }
        }
        let scale = sample.pushed() as f64 / keys.max(1) as f64;
        LineLoad {
            lines: shape.lines() as f64 + dividing as f64 * scale,
            divided_share: divided_keys as f64 / keys.max(1) as f64,
        }
    }
}
