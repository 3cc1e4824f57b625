//! The rule that chooses the kept document of a cluster.

use simstore::error::did_you_mean;
use std::str::FromStr;

use simstore::{Error, Result};

use crate::documents::field_keys::{moment_key, number_key};

/// Rule that chooses the kept document of a cluster. Ties go to the first document in input order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum KeepRule {
    /// The first document in input order.
    #[default]
    First,
    /// The document with the longest text.
    Longest,
    /// The document with the smallest id. Ids that are numbers are smaller than names.
    SmallestId,
    /// The document with the greatest value in this field. Numbers compare by value, and texts bytewise,
    /// which is the order of ISO 8601 dates in one time zone. Texts are greater than numbers.
    Newest(String),
    /// The document with the largest number in this field. Documents without a number in the field come last.
    Largest(String),
    /// The document with the smallest number in this field. Documents without a number in the field come last.
    Smallest(String),
    /// No document: all members of a cluster are removed, and only documents without a near-duplicate are
    /// kept. The representative of a cluster is still its first document in input order.
    None,
}

impl KeepRule {
    /// Name of the field that the rule compares, if any.
    pub fn field(&self) -> Option<&str> {
        match self {
            KeepRule::Newest(field) | KeepRule::Largest(field) | KeepRule::Smallest(field) => Some(field),
            KeepRule::First | KeepRule::Longest | KeepRule::SmallestId | KeepRule::None => None,
        }
    }

    /// Returns a description of the kept document, such as "the longest".
    pub(crate) fn description(&self) -> String {
        match self {
            KeepRule::First => "the first in the input".to_owned(),
            KeepRule::Longest => "the longest".to_owned(),
            KeepRule::SmallestId => "the one with the smallest id".to_owned(),
            KeepRule::Newest(field) => format!("the newest by the field {field}"),
            KeepRule::Largest(field) => format!("the one with the largest number in the field {field}"),
            KeepRule::Smallest(field) => format!("the one with the smallest number in the field {field}"),
            KeepRule::None => "none: all documents of a cluster are removed".to_owned(),
        }
    }

    /// Whether the rule compares values as numbers: `Largest` and `Smallest`.
    pub(crate) fn compares_numbers(&self) -> bool {
        matches!(self, KeepRule::Largest(_) | KeepRule::Smallest(_))
    }

    /// Returns the sort key of a document, from the size of its text in bytes, or from `field`, its value in the
    /// field that the rule compares. A preferred document has a smaller key. A document without a value has a key
    /// of one byte. Returns `None` if the rule compares neither text sizes nor a field.
    pub(crate) fn sort_key(&self, text_bytes: u64, field: Option<&str>) -> Option<Vec<u8>> {
        let field = field.unwrap_or_default();
        match self {
            KeepRule::Longest => Some((!text_bytes).to_be_bytes().to_vec()),
            KeepRule::Newest(_) => Some(moment_key(field)),
            KeepRule::Largest(_) => Some(number_key(field, false)),
            KeepRule::Smallest(_) => Some(number_key(field, true)),
            KeepRule::First | KeepRule::SmallestId | KeepRule::None => None,
        }
    }
}

/// Creates a keep rule from the name of the field that it compares.
type FieldRule = fn(String) -> KeepRule;

/// Keep rules that compare a field: the prefix before the name of the field, and the constructor of the rule.
const FIELD_RULES: [(&str, FieldRule); 3] =
    [("newest:", KeepRule::Newest), ("largest:", KeepRule::Largest), ("smallest:", KeepRule::Smallest)];

/// Returns the names of rules, as suggestions for the misspelled name `rule`. If `rule` ends in a colon and a field,
/// the suggestions include the rules that compare a field, with this field.
fn rule_names(rule: &str) -> Vec<String> {
    let field = rule.split_once(':').map(|(_, field)| field).filter(|field| !field.is_empty());
    let field_rule = FIELD_RULES.iter().map(|(begin, _)| format!("{begin}{}", field.unwrap_or("FIELD")));
    let others = ["first", "longest", "smallest-id", "none"].map(str::to_owned);
    field_rule.filter(|_| field.is_some()).chain(others).collect()
}

impl FromStr for KeepRule {
    type Err = Error;

    fn from_str(rule: &str) -> Result<Self> {
        match rule {
            "first" => return Ok(KeepRule::First),
            "longest" => return Ok(KeepRule::Longest),
            "smallest-id" => return Ok(KeepRule::SmallestId),
            "none" => return Ok(KeepRule::None),
            _ => {}
        }
        let field_rule = FIELD_RULES.iter().find_map(|(begin, keep)| Some((rule.strip_prefix(begin)?, keep)));
        match field_rule {
            Some((field, keep)) if !field.is_empty() => Ok(keep(field.to_owned())),
            _ => Err(Error::BadArgument(format!(
                "unknown rule{}: expected first, longest, smallest-id, newest:FIELD, largest:FIELD, smallest:FIELD or none",
                did_you_mean(rule, rule_names(rule))
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_by_name() {
        assert_eq!("newest:date".parse::<KeepRule>().unwrap(), KeepRule::Newest("date".to_owned()));
        assert_eq!("largest:a.b".parse::<KeepRule>().unwrap(), KeepRule::Largest("a.b".to_owned()));
        assert_eq!("smallest:newest:".parse::<KeepRule>().unwrap(), KeepRule::Smallest("newest:".to_owned()));
        for bad in ["", "last", "newest", "newest:", "largest", "largest:", "smallest:", "First"] {
            assert!(bad.parse::<KeepRule>().is_err(), "{bad}");
        }
    }
}
