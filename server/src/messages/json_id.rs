//! Ids and fingerprints in JSON. Numbers that JSON libraries round are refused.

use std::fmt;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use simstore_io::{DocumentId, MAX_NAME_BYTES};
use utoipa::openapi::schema::{OneOfBuilder, Type};
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Greatest integer that every JSON library reads exactly: 2^53 - 1.
pub(crate) const GREATEST_EXACT_INTEGER: u64 = (1 << 53) - 1;

/// Id of a document in a request: a number or a text. The store decides whether a text is a number or a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonId {
    Number(u64),
    Text(String),
}

impl JsonId {
    /// Returns the id for an answer about a document that is not stored.
    pub(crate) fn to_answer(&self) -> AnswerId {
        AnswerId(match self {
            JsonId::Number(number) => DocumentId::Number(*number),
            JsonId::Text(text) => DocumentId::Name(text.clone()),
        })
    }
}

impl fmt::Display for JsonId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JsonId::Number(number) => number.fmt(f),
            JsonId::Text(text) => f.write_str(text),
        }
    }
}

struct IdVisitor;

impl Visitor<'_> for IdVisitor {
    type Value = JsonId;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an id: an integer from 0 on, or a string")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<JsonId, E> {
        if number > GREATEST_EXACT_INTEGER {
            return Err(E::custom(format!(
                "the id {number} is above 2^53 - 1, so JSON libraries may round it: send it as a string"
            )));
        }
        Ok(JsonId::Number(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<JsonId, E> {
        Err(E::custom(format!(
            "the id {number} is not an integer from 0 to 2^53 - 1: send a greater integer as a string"
        )))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<JsonId, E> {
        if text.len() > MAX_NAME_BYTES {
            return Err(E::custom(format!(
                "an id of {} bytes: at most {MAX_NAME_BYTES} are allowed",
                text.len()
            )));
        }
        Ok(JsonId::Text(text.to_owned()))
    }
}

impl<'de> Deserialize<'de> for JsonId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IdVisitor)
    }
}

/// Schema of an id in requests and answers: an integer or a string.
fn id_schema() -> RefOr<Schema> {
    let number = ObjectBuilder::new()
        .schema_type(Type::Integer)
        .minimum(Some(0))
        .maximum(Some(GREATEST_EXACT_INTEGER as f64));
    let text = ObjectBuilder::new().schema_type(Type::String).max_length(Some(MAX_NAME_BYTES));
    let description = "A number or a name. A number above 2^53 - 1 is a string of its digits.";
    OneOfBuilder::new().item(number).item(text).description(Some(description)).into()
}

impl PartialSchema for JsonId {
    fn schema() -> RefOr<Schema> {
        id_schema()
    }
}

impl ToSchema for JsonId {}

/// Id of a document in an answer. A number above 2^53 - 1 is written as a string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AnswerId(pub(crate) DocumentId);

impl Serialize for AnswerId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            DocumentId::Number(number) if *number <= GREATEST_EXACT_INTEGER => {
                serializer.serialize_u64(*number)
            }
            id => serializer.collect_str(id),
        }
    }
}

impl PartialSchema for AnswerId {
    fn schema() -> RefOr<Schema> {
        id_schema()
    }
}

impl ToSchema for AnswerId {}

/// A fingerprint in a request, as hexadecimal digits. The store checks the number of digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HexDigits(pub(crate) String);

struct HexVisitor;

impl Visitor<'_> for HexVisitor {
    type Value = HexDigits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fingerprint: a string of 16 or 32 hexadecimal digits")
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<HexDigits, E> {
        Err(number_error())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<HexDigits, E> {
        Err(number_error())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<HexDigits, E> {
        Err(number_error())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<HexDigits, E> {
        if !matches!(text.len(), 16 | 32) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(E::custom("a fingerprint is a string of 16 or 32 hexadecimal digits"));
        }
        Ok(HexDigits(text.to_owned()))
    }
}

fn number_error<E: Error>() -> E {
    E::custom(
        "a fingerprint is a number here, and JSON libraries round numbers: send a string of 16 or 32 hexadecimal digits",
    )
}

impl<'de> Deserialize<'de> for HexDigits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HexVisitor)
    }
}

impl PartialSchema for HexDigits {
    fn schema() -> RefOr<Schema> {
        let description = "A fingerprint: 16 hexadecimal digits for 64 bits, 32 for 128 bits";
        ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^([0-9a-fA-F]{16}|[0-9a-fA-F]{32})$"))
            .description(Some(description))
            .into()
    }
}

impl ToSchema for HexDigits {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_exact_integers_or_texts() {
        let parse = |json: &str| serde_json::from_str::<JsonId>(json).map_err(|error| error.to_string());
        assert_eq!(parse("9007199254740991"), Ok(JsonId::Number(GREATEST_EXACT_INTEGER)));
        assert_eq!(parse(r#""9007199254740993""#), Ok(JsonId::Text("9007199254740993".into())));
        assert_eq!(parse(r#""""#), Ok(JsonId::Text(String::new())));
        for refused in ["9007199254740992", "18446744073709551615", "18446744073709551616", "1.0", "1e3"] {
            assert!(parse(refused).unwrap_err().contains("as a string"), "{refused}");
        }
        for refused in ["-1", "null", "[]", "true"] {
            assert!(parse(refused).unwrap_err().contains("an id"), "{refused}");
        }
        assert!(parse(&format!("\"{}\"", "x".repeat(MAX_NAME_BYTES + 1))).unwrap_err().contains("65536"));
    }

    #[test]
    fn great_numbers_are_answered_as_strings() {
        let json = |id| serde_json::to_string(&AnswerId(id)).unwrap();
        assert_eq!(json(DocumentId::Number(GREATEST_EXACT_INTEGER)), "9007199254740991");
        assert_eq!(json(DocumentId::Number(u64::MAX)), "\"18446744073709551615\"");
        assert_eq!(json(DocumentId::Name("7".into())), "\"7\"");
    }

    #[test]
    fn fingerprints_are_hexadecimal_strings() {
        let parse = |json: &str| serde_json::from_str::<HexDigits>(json).map_err(|error| error.to_string());
        assert!(parse("\"0123456789abcdeF\"").is_ok() && parse(&format!("\"{}\"", "0".repeat(32))).is_ok());
        for refused in ["81985529216486895", "-1", "1e300", "0.5"] {
            assert!(parse(refused).unwrap_err().contains("round numbers"), "{refused}");
        }
        for refused in
            ["\"\"", "\"0123456789abcde\"", "\"0123456789abcdeg\"", "\"0123456789abcdef0\"", "null"]
        {
            assert!(parse(refused).unwrap_err().contains("hexadecimal"), "{refused}");
        }
    }
}
