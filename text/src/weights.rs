//! Weighting of the features of a text.

use std::collections::BTreeMap;

/// How a profile weights the features of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Weighting {
    /// The weight that the tokenizer gives: TF-IDF for keywords, and usually the number of occurrences for other features.
    #[default]
    ByTokenizer,
    /// The number of occurrences times the feature's inverse document frequency in the profile's IDF table.
    Idf,
    /// A level from 0 to 5, relative to the largest weight in the text: see [`WeightLevels`].
    Levels,
    /// Weight 1 for every distinct feature.
    Uniform,
}

const LEVEL_COUNT: u64 = 5;

/// Sums the weights of each feature, and converts each sum w to the level ceil(5 w / max), where max is the largest sum.
#[derive(Default)]
pub(crate) struct WeightLevels {
    weights: BTreeMap<String, u64>,
}

impl WeightLevels {
    /// Adds `weight` to the sum of a feature's weights.
    pub(crate) fn add(&mut self, feature: &str, weight: u32) {
        match self.weights.get_mut(feature) {
            Some(sum) => *sum += u64::from(weight),
            None => drop(self.weights.insert(feature.to_owned(), u64::from(weight))),
        }
    }

    /// Visits each feature once, with its level from 0 (no weight) to 5.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&str, u32)) {
        let max = self.weights.values().copied().max().unwrap_or(0).max(1);
        for (feature, weight) in &self.weights {
            visit(feature, (LEVEL_COUNT * weight).div_ceil(max) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_relative_to_the_largest() {
        let mut levels = WeightLevels::default();
        for (feature, weight) in [("a", 6), ("b", 1), ("c", 2), ("d", 0), ("e", 10), ("a", 1), ("f", 3)] {
            levels.add(feature, weight);
        }
        let mut found = Vec::new();
        levels.visit(|feature, level| found.push((feature.to_owned(), level)));
        let expected = [("a", 4), ("b", 1), ("c", 1), ("d", 0), ("e", 5), ("f", 2)];
        assert_eq!(found, expected.map(|(feature, level)| (feature.to_owned(), level)));
    }

    #[test]
    fn nothing_and_no_weight() {
        WeightLevels::default().visit(|feature, _| panic!("{feature}"));
        let mut levels = WeightLevels::default();
        levels.add("a", 0);
        levels.visit(|feature, level| assert_eq!((feature, level), ("a", 0)));
        levels.add("b", u32::MAX);
        levels.add("b", u32::MAX);
        levels.visit(|feature, level| assert_eq!(level, if feature == "b" { 5 } else { 0 }));
    }
}
