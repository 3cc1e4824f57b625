//! Which document of a cluster is kept.

use simstore::error::did_you_mean;
use std::cmp::Ordering;
use std::str::FromStr;

use simstore::{Error, Result};

use crate::corpus::ids::{Names, Strings};
use crate::corpus::keep_value::{
    Number, compare_moments, compare_numbers, moment_key, number_key, says_moment,
};
use simstore_corpus::spill::{SpillReader, SpillWriter};
use simstore_io::IdRef;

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
    /// The one with the largest number in this field; a document without a number there comes last.
    Largest(String),
    /// The one with the smallest number in this field; a document without a number there comes last.
    Smallest(String),
    /// None of them: all members of a cluster are removed, and only documents without a near duplicate are kept. The
    /// representative of the cluster is still the first in order of input.
    None,
}

impl Keep {
    /// The field that the rule looks at.
    pub fn field(&self) -> Option<&str> {
        match self {
            Keep::Newest(field) | Keep::Largest(field) | Keep::Smallest(field) => Some(field),
            Keep::First | Keep::Longest | Keep::SmallestId | Keep::None => None,
        }
    }

    fn is_smallest(&self) -> bool {
        matches!(self, Keep::Smallest(_))
    }

    /// Whether the rule compares numbers alone.
    pub(crate) fn takes_numbers(&self) -> bool {
        matches!(self, Keep::Largest(_) | Keep::Smallest(_))
    }
}

/// Makes a rule of a field.
type OfField = fn(String) -> Keep;

/// The rules that name a field, as they begin.
const OF_FIELD: [(&str, OfField); 3] =
    [("newest:", Keep::Newest), ("largest:", Keep::Largest), ("smallest:", Keep::Smallest)];

/// The names of all rules, with the field of one.
fn rules_like(rule: &str) -> Vec<String> {
    let field = rule.split_once(':').map(|(_, field)| field).filter(|field| !field.is_empty());
    let of_field = OF_FIELD.iter().map(|(begin, _)| format!("{begin}{}", field.unwrap_or("FIELD")));
    let others = ["first", "longest", "smallest-id", "none"].map(str::to_owned);
    of_field.filter(|_| field.is_some()).chain(others).collect()
}

impl FromStr for Keep {
    type Err = Error;

    fn from_str(rule: &str) -> Result<Self> {
        match rule {
            "first" => return Ok(Keep::First),
            "longest" => return Ok(Keep::Longest),
            "smallest-id" => return Ok(Keep::SmallestId),
            "none" => return Ok(Keep::None),
            _ => {}
        }
        let of_field = OF_FIELD.iter().find_map(|(begin, keep)| Some((rule.strip_prefix(begin)?, keep)));
        match of_field {
            Some((field, keep)) if !field.is_empty() => Ok(keep(field.to_owned())),
            _ => Err(Error::BadArgument(format!(
                "unknown rule{}: expected first, longest, smallest-id, newest:FIELD, largest:FIELD, smallest:FIELD or none",
                did_you_mean(rule, rules_like(rule))
            ))),
        }
    }
}

/// The values of documents that the rule compares.
#[derive(Debug)]
pub(crate) enum Values {
    None,
    /// Bytes of the text.
    Lengths(Vec<u64>),
    /// Dates or numbers; empty for a document without one.
    Moments(Strings),
    /// Numbers; empty for a document without one.
    Numbers(Strings),
}

/// Kinds of values on disk.
const NONE: u64 = 0;
const LENGTHS: u64 = 1;
const MOMENTS: u64 = 2;
const NUMBERS: u64 = 3;

impl Values {
    pub(crate) fn new(keep: &Keep) -> Values {
        match keep {
            Keep::First | Keep::SmallestId | Keep::None => Values::None,
            Keep::Longest => Values::Lengths(Vec::new()),
            Keep::Newest(_) => Values::Moments(Strings::default()),
            Keep::Largest(_) | Keep::Smallest(_) => Values::Numbers(Strings::default()),
        }
    }

    /// None yet, of the same kind.
    pub(crate) fn like(&self) -> Values {
        match self {
            Values::None => Values::None,
            Values::Lengths(_) => Values::Lengths(Vec::new()),
            Values::Moments(_) => Values::Moments(Strings::default()),
            Values::Numbers(_) => Values::Numbers(Strings::default()),
        }
    }

    pub(crate) fn memory(&self) -> u64 {
        match self {
            Values::None => 0,
            Values::Lengths(lengths) => (lengths.len() * size_of::<u64>()) as u64,
            Values::Moments(fields) | Values::Numbers(fields) => fields.memory(),
        }
    }

    /// Whether a document with this in the field has no value.
    pub(crate) fn lacks(&self, field: Option<&str>) -> bool {
        let field = field.unwrap_or_default();
        match self {
            Values::None | Values::Lengths(_) => false,
            Values::Moments(_) => !says_moment(field),
            Values::Numbers(_) => Number::read(field).is_none(),
        }
    }

    /// Adds the value of a document.
    pub(crate) fn push(&mut self, text_bytes: u64, field: Option<&str>) {
        let field = field.filter(|_| !self.lacks(field)).unwrap_or_default();
        match self {
            Values::None => {}
            Values::Lengths(lengths) => lengths.push(text_bytes),
            Values::Moments(fields) | Values::Numbers(fields) => fields.push(field),
        }
    }

    /// Adds the value at an index of other values, of the same kind.
    pub(crate) fn push_of(&mut self, other: &Values, at: usize) {
        match other {
            Values::None => {}
            Values::Lengths(lengths) => self.push(lengths[at], None),
            Values::Moments(fields) | Values::Numbers(fields) => self.push(0, Some(fields.get(at))),
        }
    }

    /// Writes all, to be read by [`Values::read`].
    pub(crate) fn write(&self, file: &mut SpillWriter) -> Result<()> {
        match self {
            Values::None => file.push_records([NONE].into_iter()),
            Values::Lengths(lengths) => {
                file.push_records([LENGTHS].into_iter())?;
                file.push_records(lengths.iter().copied())
            }
            Values::Moments(fields) => {
                file.push_records([MOMENTS].into_iter())?;
                fields.write(file)
            }
            Values::Numbers(fields) => {
                file.push_records([NUMBERS].into_iter())?;
                fields.write(file)
            }
        }
    }

    /// Reads the values of `count` documents.
    pub(crate) fn read(file: &mut SpillReader, count: usize) -> Result<Values> {
        match file.records::<u64>()?[..] {
            [NONE] => Ok(Values::None),
            [LENGTHS] => match file.records()? {
                lengths if lengths.len() == count => Ok(Values::Lengths(lengths)),
                _ => Err(file.changed()),
            },
            [MOMENTS] => Ok(Values::Moments(Strings::read(file, count)?)),
            [NUMBERS] => Ok(Values::Numbers(Strings::read(file, count)?)),
            _ => Err(file.changed()),
        }
    }
}

/// Compares documents by preference.
#[derive(Debug)]
pub(crate) struct Preference<'a> {
    pub(crate) keep: &'a Keep,
    pub(crate) values: &'a Values,
    pub(crate) names: &'a Names,
}

impl Preference<'_> {
    /// Less is preferred.
    pub(crate) fn compare(&self, a: usize, b: usize) -> Ordering {
        let by_rule = match self.values {
            Values::Lengths(lengths) => lengths[b].cmp(&lengths[a]),
            Values::Moments(fields) => compare_moments(fields.get(b), fields.get(a)),
            Values::Numbers(fields) => compare_numbers(fields.get(a), fields.get(b), self.keep.is_smallest()),
            Values::None if *self.keep == Keep::SmallestId => self.names.id(a).cmp(&self.names.id(b)),
            Values::None => Ordering::Equal,
        };
        by_rule.then(a.cmp(&b))
    }

    /// Bytes of a document in the order of preference, but for those that the rule does not tell apart.
    pub(crate) fn key(&self, at: usize) -> Vec<u8> {
        match self.values {
            Values::Lengths(lengths) => (!lengths[at]).to_be_bytes().to_vec(),
            Values::Moments(fields) => moment_key(fields.get(at)),
            Values::Numbers(fields) => number_key(fields.get(at), self.keep.is_smallest()),
            Values::None if *self.keep == Keep::SmallestId => match self.names.id(at) {
                IdRef::Number(number) => [0].into_iter().chain(number.to_be_bytes()).collect(),
                IdRef::Name(name) => [1].into_iter().chain(name.bytes()).collect(),
            },
            Values::None => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_name() {
        assert_eq!("newest:date".parse::<Keep>().unwrap(), Keep::Newest("date".to_owned()));
        assert_eq!("largest:a.b".parse::<Keep>().unwrap(), Keep::Largest("a.b".to_owned()));
        assert_eq!("smallest:newest:".parse::<Keep>().unwrap(), Keep::Smallest("newest:".to_owned()));
        for bad in ["", "last", "newest", "newest:", "largest", "largest:", "smallest:", "First"] {
            assert!(bad.parse::<Keep>().is_err(), "{bad}");
        }
    }
}
