//! The field names of JSON objects.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::line::parsed;
use crate::formats::fields::MAX_COLUMNS;

/// Returns the field names of an object: at most the first [`MAX_COLUMNS`].
pub(crate) fn names(line: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    parsed(line, NamesOf { before: "", is_deep: false, names: &mut names })?;
    Ok(names)
}

/// Returns the field names of an object, for a message. Fields of inner objects are named `a.b`.
pub(crate) fn names_below(line: &str) -> Vec<String> {
    let mut names = Vec::new();
    if parsed(line, NamesOf { before: "", is_deep: true, names: &mut names }).is_err() {
        return Vec::new();
    }
    names.sort();
    names
}

/// Returns whether an object has any field, and whether it has a field of this name.
pub(crate) fn has_fields(line: &str, name: &str) -> Result<(bool, bool), String> {
    parsed(line, HasFields(name))
}

/// Collects names. A value that is not an object has no names of its own.
struct NamesOf<'n> {
    before: &'n str,
    is_deep: bool,
    names: &'n mut Vec<String>,
}

impl NamesOf<'_> {
    /// A value without fields has the name of the path to it.
    fn end(self) {
        if !self.before.is_empty() && self.names.len() < MAX_COLUMNS {
            self.names.push(self.before.to_owned());
        }
    }
}

impl<'de> DeserializeSeed<'de> for NamesOf<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.before.is_empty() {
            deserializer.deserialize_map(self)
        } else {
            deserializer.deserialize_any(self)
        }
    }
}

impl<'de> Visitor<'de> for NamesOf<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut is_empty = true;
        while self.names.len() < MAX_COLUMNS {
            let Some(key) = map.next_key::<String>()? else { break };
            is_empty = false;
            let name = if self.before.is_empty() { key } else { format!("{}.{key}", self.before) };
            if self.is_deep {
                let inner = NamesOf { before: &name, is_deep: true, names: &mut *self.names };
                map.next_value_seed(inner)?;
            } else {
                map.next_value::<IgnoredAny>()?;
                self.names.push(name);
            }
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        if is_empty {
            self.end();
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        while values.next_element::<IgnoredAny>()?.is_some() {}
        self.end();
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.end();
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.end();
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        self.end();
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        self.end();
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        self.end();
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        self.end();
        Ok(())
    }
}

struct HasFields<'n>(&'n str);

impl<'de> DeserializeSeed<'de> for HasFields<'_> {
    type Value = (bool, bool);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(bool, bool), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for HasFields<'_> {
    type Value = (bool, bool);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(bool, bool), A::Error> {
        let (mut has_any, mut has_this) = (false, false);
        while let Some(key) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            map.next_value::<IgnoredAny>()?;
            has_any = true;
            has_this |= key == self.0;
        }
        Ok((has_any, has_this))
    }
}
