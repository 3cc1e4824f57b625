//! Which document of a cluster is kept.

use simstore::error::did_you_mean;
use std::str::FromStr;

use simstore::{Error, Result};

use crate::corpus::keep_value::{moment_key, number_key};

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

    /// Whether the rule compares numbers alone.
    pub(crate) fn takes_numbers(&self) -> bool {
        matches!(self, Keep::Largest(_) | Keep::Smallest(_))
    }

    /// Bytes of the value that the rule compares, in the order of preference. Without a value it is one byte. `None` for rules that
    /// compare no value.
    pub(crate) fn key(&self, text_bytes: u64, field: Option<&str>) -> Option<Vec<u8>> {
        let field = field.unwrap_or_default();
        match self {
            Keep::Longest => Some((!text_bytes).to_be_bytes().to_vec()),
            Keep::Newest(_) => Some(moment_key(field)),
            Keep::Largest(_) => Some(number_key(field, false)),
            Keep::Smallest(_) => Some(number_key(field, true)),
            Keep::First | Keep::SmallestId | Keep::None => None,
        }
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
