//! From what features weigh in a text to what they weigh in its fingerprint.

use std::collections::BTreeMap;

/// How features are weighted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Weights {
    /// As the tokenizer does: keywords by TF-IDF, others by how often they come.
    #[default]
    Own,
    /// By how often they come, times the inverse document frequency of a table.
    Idf,
    /// In five levels.
    Levels,
    /// All the same.
    None,
}

const LEVELS: u64 = 5;

/// Features by the level of their weight w relative to the largest: ceil(5 w / max).
#[derive(Default)]
pub(crate) struct Levels {
    weights: BTreeMap<String, u64>,
}

impl Levels {
    /// Adds a feature; one that comes again weighs more.
    pub(crate) fn add(&mut self, feature: &str, weight: u32) {
        match self.weights.get_mut(feature) {
            Some(sum) => *sum += u64::from(weight),
            None => drop(self.weights.insert(feature.to_owned(), u64::from(weight))),
        }
    }

    /// Visits each feature once, with its level from 0, for no weight, to 5.
    pub(crate) fn visit(&self, mut visit: impl FnMut(&str, u32)) {
        let max = self.weights.values().copied().max().unwrap_or(0).max(1);
        for (feature, weight) in &self.weights {
            visit(feature, (LEVELS * weight).div_ceil(max) as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_relative_to_the_largest() {
        let mut levels = Levels::default();
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
        Levels::default().visit(|feature, _| panic!("{feature}"));
        let mut levels = Levels::default();
        levels.add("a", 0);
        levels.visit(|feature, level| assert_eq!((feature, level), ("a", 0)));
        levels.add("b", u32::MAX);
        levels.add("b", u32::MAX);
        levels.visit(|feature, level| assert_eq!(level, if feature == "b" { 5 } else { 0 }));
    }
}
