//! The field names of JSON objects.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::line::parse_line;
use crate::formats::fields::MAX_COLUMNS;

/// Returns the field names of the object in a line: at most the first [`MAX_COLUMNS`]. Returns the reason if the line
/// is malformed.
pub(crate) fn field_names(line: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let push = |key: &str| {
        if names.len() < MAX_COLUMNS {
            names.push(key.to_owned());
        }
    };
    parse_line(line, KeysVisitor(push))?;
    Ok(names)
}

/// Returns the sorted field names of the object in a line, for a message. A field `b` of an inner object `a` is named
/// `a.b`. Returns no names if the line is malformed.
pub(crate) fn nested_field_names(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    if parse_line(line, NestedNames { path: "", names: &mut names }).is_err() {
        return Vec::new();
    }
    names.sort();
    names
}

/// Returns two flags: whether the object in a line has any field, and whether it has a field called `name`.
pub(crate) fn has_fields(line: &str, name: &str) -> Result<(bool, bool), String> {
    let (mut has_any, mut has_this) = (false, false);
    parse_line(line, KeysVisitor(|key: &str| (has_any, has_this) = (true, has_this || key == name)))?;
    Ok((has_any, has_this))
}

/// A serde visitor of one key of an object. It passes the key to a function, and returns the function's result.
pub(super) struct KeyVisitor<F>(pub(super) F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for KeyVisitor<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for KeyVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E>(self, key: &str) -> Result<T, E> {
        Ok(self.0(key))
    }
}

/// A serde visitor of an object. It passes each key to a function, and skips the values.
struct KeysVisitor<F>(F);

impl<'de, F: FnMut(&str)> DeserializeSeed<'de> for KeysVisitor<F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, F: FnMut(&str)> Visitor<'de> for KeysVisitor<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while map.next_key_seed(KeyVisitor(&mut self.0))?.is_some() {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

/// A serde visitor that collects the field names of a value and of its inner objects.
struct NestedNames<'n> {
    /// Name of the visited value, such as `a.b`; empty for the outermost object.
    path: &'n str,
    names: &'n mut Vec<String>,
}

impl NestedNames<'_> {
    /// Ends the visit of a value that has no fields, by adding the value's path to the names.
    fn end<E>(self) -> Result<(), E> {
        if !self.path.is_empty() && self.names.len() < MAX_COLUMNS {
            self.names.push(self.path.to_owned());
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for NestedNames<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.path.is_empty() {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for NestedNames<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut is_empty = true;
        while self.names.len() < MAX_COLUMNS {
            let Some(key) = map.next_key::<String>()? else { break };
            is_empty = false;
            let name = if self.path.is_empty() { key } else { format!("{}.{key}", self.path) };
            map.next_value_seed(NestedNames { path: &name, names: &mut *self.names })?;
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        if is_empty { self.end() } else { Ok(()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        self.end()
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.end()
    }

    visits!(visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str);
        self, _ => self.end());
}
