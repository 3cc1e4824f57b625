//! Serializes a JSON value without blanks while it is parsed.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A serde visitor that appends the visited value to a text, as JSON without blanks.
pub(super) struct CompactJson<'t>(pub(super) &'t mut String);

impl CompactJson<'_> {
    fn push<E: Error>(self, value: &impl Serialize) -> Result<(), E> {
        self.0.push_str(&serde_json::to_string(value).map_err(E::custom)?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for CompactJson<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CompactJson<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.push(&())
    }

    visits!(visit_bool(bool), visit_u64(u64), visit_i64(i64), visit_f64(f64), visit_str(&str);
        self, value => self.push(&value));

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<(), A::Error> {
        let CompactJson(text) = self;
        text.push('[');
        let start = text.len();
        while values.next_element_seed(CompactJson(&mut *text))?.is_some() {
            text.push(',');
        }
        close_bracket(text, start, ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let CompactJson(text) = self;
        text.push('{');
        let start = text.len();
        while map.next_key_seed(CompactJson(&mut *text))?.is_some() {
            text.push(':');
            map.next_value_seed(CompactJson(&mut *text))?;
            text.push(',');
        }
        close_bracket(text, start, '}');
        Ok(())
    }
}

/// Removes the comma after the last value of an array or object, if it has values, and appends the closing bracket.
/// `start` is the offset in `text` directly after the opening bracket.
fn close_bracket(text: &mut String, start: usize, bracket: char) {
    if text.len() > start {
        text.pop();
    }
    text.push(bracket);
}
