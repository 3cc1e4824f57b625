//! A value of JSON as it is written without blanks, made while it is read.

use std::fmt;

use serde::Serialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// Appends a value to a text.
pub(super) struct Written<'t>(pub(super) &'t mut String);

impl Written<'_> {
    fn push<E: Error>(self, value: &impl Serialize) -> Result<(), E> {
        self.0.push_str(&serde_json::to_string(value).map_err(E::custom)?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Written<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Written<'_> {
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
        let Written(text) = self;
        text.push('[');
        let start = text.len();
        while values.next_element_seed(Written(&mut *text))?.is_some() {
            text.push(',');
        }
        end(text, start, ']');
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Written(text) = self;
        text.push('{');
        let start = text.len();
        while map.next_key_seed(Written(&mut *text))?.is_some() {
            text.push(':');
            map.next_value_seed(Written(&mut *text))?;
            text.push(',');
        }
        end(text, start, '}');
        Ok(())
    }
}

/// Ends an array or object that starts at a place; there is a comma after its last value.
fn end(text: &mut String, start: usize, bracket: char) {
    if text.len() > start {
        text.pop();
    }
    text.push(bracket);
}
