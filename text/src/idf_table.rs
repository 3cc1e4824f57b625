//! Tables of inverse document frequencies.

use std::collections::HashMap;

use crate::resources::Resource;
use simstore::Result;

/// The integer weight of a feature whose IDF is 1. So weights are in units of 2^-24.
pub(crate) const IDF_UNIT: f64 = (1 << 24) as f64;

/// Maximum IDF in a table. As an integer in units of 2^-24, it fits a `u32`.
const MAX_IDF: f64 = 255.0;

/// A table of inverse document frequencies (IDF).
///
/// A feature missing from the table has the lower median of the table's IDFs, as in jieba. The table's largest IDF would be the
/// better estimate, since missing features are rare. But rare features are often misspelt words, numbers and names, in which
/// near-duplicates often differ. They should not outweigh the features that near-duplicates share.
#[derive(Debug)]
pub(crate) struct IdfTable {
    features: HashMap<Box<str>, f64>,
    median: f64,
}

impl IdfTable {
    /// Parses a table with one feature a line: `feature<TAB>idf`, or `word idf` with white space instead of the tab. Returns an
    /// error for a malformed line and for an empty table.
    pub(crate) fn parse(table: &Resource) -> Result<Self> {
        let mut features = HashMap::new();
        let mut all = Vec::new();
        for (number, line) in table.lines() {
            let fields = line.rsplit_once('\t').or_else(|| line.trim_end().rsplit_once(char::is_whitespace));
            let idf = fields.and_then(|(feature, idf)| {
                let idf = idf.trim().parse().ok().filter(|idf| (0.0..=MAX_IDF).contains(idf))?;
                Some((feature, idf))
            });
            let Some((feature, idf)) = idf else {
                let reason = "invalid line of an IDF table: expected `feature<TAB>idf` or `word idf`, with an IDF from 0 to 255";
                return Err(table.line_error(number, reason.to_owned()));
            };
            features.insert(feature.into(), idf);
            all.push(idf);
        }
        if all.is_empty() {
            return Err(table.line_error(1, "the IDF table is empty".to_owned()));
        }
        let middle = (all.len() - 1) / 2;
        let (_, &mut median, _) = all.select_nth_unstable_by(middle, f64::total_cmp);
        Ok(IdfTable { features, median })
    }

    /// Returns the IDF of a feature in units of 2^-24. If the table does not contain the feature, returns the table's median.
    pub(crate) fn units(&self, feature: &str) -> u32 {
        (self.features.get(feature).unwrap_or(&self.median) * IDF_UNIT).round() as u32
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = (&str, f64)> {
        self.features.iter().map(|(feature, &idf)| (&**feature, idf))
    }

    pub(crate) fn median(&self) -> f64 {
        self.median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(text: &str) -> Result<IdfTable> {
        IdfTable::parse(&Resource::new("idf.tsv", text))
    }

    #[test]
    fn both_forms_of_lines() {
        let read = table("\u{feff}to be\t1.5\r\n\n a\t2\n数据 13.900677652 \nx y 3\n").unwrap();
        let idf = |feature: &str| f64::from(read.units(feature)) / IDF_UNIT;
        assert_eq!((idf("to be"), idf(" a"), idf("x y")), (1.5, 2.0, 3.0));
        assert!((idf("数据") - 13.900677652).abs() < 1e-6);
        assert_eq!((idf("unknown"), read.median()), (2.0, 2.0));
        assert_eq!(table("a 255").unwrap().units("a"), 255 << 24);
    }

    #[test]
    fn malformed_tables() {
        for (text, line) in [
            ("", 1),
            ("\n\n", 1),
            ("a", 1),
            ("a 1\nb\t-1", 2),
            ("a 256", 1),
            ("a nan", 1),
            ("a\tinf", 1),
            ("1.5", 1),
        ] {
            let error = table(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("idf.tsv:{line}: ")), "{text:?}: {error}");
        }
    }
}
