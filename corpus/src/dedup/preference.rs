//! Which document of a cluster is kept.

use std::cmp::Ordering;
use std::str::FromStr;

use simstore::{Error, Result};

use super::names::{Names, Strings};
use crate::spill::{SpillReader, SpillWriter};

/// Which document of a cluster is kept; where the rule does not tell, the first in order of input.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// The first in order of input.
    #[default]
    First,
    /// The one with the longest text.
    Longest,
    /// The one with the smallest id; numbers come before names.
    SmallestId,
    /// The one with the greatest value of this field: numbers by value, texts as ISO 8601 dates of one time zone are in order.
    Newest(String),
    /// None of them: what has a near duplicate goes with it, and only what is alone is left. The first in order of input stands for
    /// the cluster all the same.
    None,
}

impl Keep {
    /// The field that the rule looks at.
    pub(super) fn field(&self) -> Option<&str> {
        match self {
            Keep::Newest(field) => Some(field),
            _ => None,
        }
    }
}

impl FromStr for Keep {
    type Err = Error;

    fn from_str(rule: &str) -> Result<Self> {
        match rule {
            "first" => Ok(Keep::First),
            "longest" => Ok(Keep::Longest),
            "smallest-id" => Ok(Keep::SmallestId),
            "none" => Ok(Keep::None),
            _ => match rule.strip_prefix("newest:") {
                Some(field) if !field.is_empty() => Ok(Keep::Newest(field.to_owned())),
                _ => Err(Error::BadArgument(
                    "expected first, longest, smallest-id, newest:FIELD or none".to_owned(),
                )),
            },
        }
    }
}

/// What the rule looks at, of documents.
#[derive(Debug)]
pub(super) enum Values {
    None,
    /// Bytes of the text.
    Lengths(Vec<u64>),
    /// Empty for a document without the field.
    Fields(Strings),
}

/// Kinds of values on disk.
const NONE: u64 = 0;
const LENGTHS: u64 = 1;
const FIELDS: u64 = 2;

impl Values {
    pub(super) fn new(keep: &Keep) -> Values {
        match keep {
            Keep::First | Keep::SmallestId | Keep::None => Values::None,
            Keep::Longest => Values::Lengths(Vec::new()),
            Keep::Newest(_) => Values::Fields(Strings::default()),
        }
    }

    /// None yet, of the same kind.
    pub(super) fn like(&self) -> Values {
        match self {
            Values::None => Values::None,
            Values::Lengths(_) => Values::Lengths(Vec::new()),
            Values::Fields(_) => Values::Fields(Strings::default()),
        }
    }

    pub(super) fn memory(&self) -> u64 {
        match self {
            Values::None => 0,
            Values::Lengths(lengths) => (lengths.len() * size_of::<u64>()) as u64,
            Values::Fields(fields) => fields.memory(),
        }
    }

    /// Adds those of a document.
    pub(super) fn push(&mut self, text_bytes: u64, field: Option<&str>) {
        match self {
            Values::None => {}
            Values::Lengths(lengths) => lengths.push(text_bytes),
            Values::Fields(fields) => fields.push(field.unwrap_or_default()),
        }
    }

    /// Adds that of one of other documents, which are of the same kind.
    pub(super) fn push_of(&mut self, other: &Values, at: usize) {
        match other {
            Values::None => {}
            Values::Lengths(lengths) => self.push(lengths[at], None),
            Values::Fields(fields) => self.push(0, Some(fields.get(at))),
        }
    }

    /// Writes all, to be read by [`Values::read`].
    pub(super) fn write(&self, file: &mut SpillWriter) -> Result<()> {
        match self {
            Values::None => file.push_records([NONE].into_iter()),
            Values::Lengths(lengths) => {
                file.push_records([LENGTHS].into_iter())?;
                file.push_records(lengths.iter().copied())
            }
            Values::Fields(fields) => {
                file.push_records([FIELDS].into_iter())?;
                fields.write(file)
            }
        }
    }

    /// Reads those of so many documents.
    pub(super) fn read(file: &mut SpillReader, count: usize) -> Result<Values> {
        match file.records::<u64>()?[..] {
            [NONE] => Ok(Values::None),
            [LENGTHS] => match file.records()? {
                lengths if lengths.len() == count => Ok(Values::Lengths(lengths)),
                _ => Err(file.changed()),
            },
            [FIELDS] => Ok(Values::Fields(Strings::read(file, count)?)),
            _ => Err(file.changed()),
        }
    }
}

/// The order in which documents are preferred.
#[derive(Debug)]
pub(super) struct Preference<'a> {
    pub(super) keep: &'a Keep,
    pub(super) values: &'a Values,
    pub(super) names: &'a Names,
    /// The documents that these are of, ascending, if not all.
    pub(super) told: Option<&'a [usize]>,
}

impl Preference<'_> {
    /// Less is preferred.
    pub(super) fn compare(&self, a: usize, b: usize) -> Ordering {
        let at = |document: usize| match self.told {
            Some(told) => told.partition_point(|&other| other < document),
            None => document,
        };
        let by_rule = match self.values {
            Values::Lengths(lengths) => lengths[at(b)].cmp(&lengths[at(a)]),
            Values::Fields(fields) => compare_moments(fields.get(at(b)), fields.get(at(a))),
            Values::None if *self.keep == Keep::SmallestId => self.names.id(at(a)).cmp(&self.names.id(at(b))),
            Values::None => Ordering::Equal,
        };
        by_rule.then(a.cmp(&b))
    }

    /// The one that is kept of several documents.
    pub(super) fn best(&self, documents: &[usize]) -> Option<usize> {
        documents.iter().copied().min_by(|&a, &b| self.compare(a, b))
    }
}

/// The order of two moments: none first, then numbers by value, then texts, as ISO 8601 dates of one time zone are in
/// order.
fn compare_moments(a: &str, b: &str) -> Ordering {
    let key = |text: &str| {
        let number = text.parse::<f64>().ok();
        let rank = match number {
            _ if text.is_empty() => 0,
            // What is no number is no moment either.
            Some(number) if number.is_nan() => 0,
            Some(number) if number.is_finite() => 1,
            _ => 2,
        };
        (rank, number.filter(|_| rank == 1))
    };
    let ((rank_a, number_a), (rank_b, number_b)) = (key(a), key(b));
    // Integers that are equal as floats need not be equal.
    let integer = |text: &str| text.parse::<i128>().ok();
    rank_a.cmp(&rank_b).then_with(|| match (number_a, number_b) {
        (Some(x), Some(y)) => x.total_cmp(&y).then_with(|| integer(a).cmp(&integer(b))),
        _ if rank_a == 0 => Ordering::Equal,
        _ => a.cmp(b),
    })
}

/// Bytes whose order is that of moments, the newest first, as [`Keep::Newest`] prefers them: for those who sort by them elsewhere.
///
/// ```
/// use simstore_corpus::dedup::moment_key;
///
/// let mut moments = ["2007-05-08", "", "10", "9", "2026-01-01"];
/// moments.sort_by_key(|moment| moment_key(moment));
/// assert_eq!(moments, ["2026-01-01", "2007-05-08", "10", "9", ""]);
/// ```
pub fn moment_key(moment: &str) -> Vec<u8> {
    // All bytes but those of the rank are turned round, so that a greater moment is less.
    match moment.parse::<f64>() {
        _ if moment.is_empty() => vec![2],
        Ok(number) if number.is_nan() => vec![2],
        Ok(number) if number.is_finite() => {
            let bits = number.to_bits();
            let ascending = if bits >> 63 == 1 { !bits } else { bits | 1 << 63 };
            let mut key = vec![1];
            key.extend((!ascending).to_be_bytes());
            match moment.parse::<i128>() {
                Ok(integer) => key.extend((!(integer as u128 ^ 1 << 127)).to_be_bytes()),
                // Comes after all that are integers.
                Err(_) => key.extend([u8::MAX; 17]),
            }
            key
        }
        // No byte of UTF-8 is above 0xf4; what ends comes after what goes on.
        _ => {
            let turned = moment.bytes().map(|byte| 0xf5 - byte);
            [0].into_iter().chain(turned).chain([u8::MAX]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn keys_are_in_the_order_of_moments(a in "-?[0-9]{0,40}(\\.[0-9])?|[0-9-]{0,12}|\\PC{0,3}|\u{0}{0,3}", b in "-?[0-9]{0,40}|[0-9-]{0,12}|\\PC{0,3}|\u{0}{0,3}") {
            prop_assert_eq!(moment_key(&a).cmp(&moment_key(&b)), compare_moments(&b, &a));
        }
    }

    #[test]
    fn moments_are_in_order() {
        let ascending = [
            "",
            "-5",
            "9",
            "10",
            "1e3",
            "1234567890123456788",
            "1234567890123456789",
            "2007-05-08",
            "2007-05-08T10:00:00Z",
            "2026-01-01",
            "soon",
        ];
        for (i, a) in ascending.iter().enumerate() {
            for (j, b) in ascending.iter().enumerate() {
                assert_eq!(compare_moments(a, b), i.cmp(&j), "{a} {b}");
                assert_eq!(moment_key(b).cmp(&moment_key(a)), i.cmp(&j), "{a} {b}");
            }
        }
        assert_eq!(compare_moments("NaN", ""), Ordering::Equal);
    }

    #[test]
    fn rules_by_name() {
        assert_eq!("newest:date".parse::<Keep>().unwrap(), Keep::Newest("date".to_owned()));
        for bad in ["", "last", "newest", "newest:", "First"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }
}
