//! The id and the text of a document in a JSON object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::corpus::encoding::{self, Encoding};
use crate::corpus::fields::{Fields, Parsed};
use crate::corpus::{DocumentId, DocumentOptions};

/// Parses a line of JSON; a reason if it is malformed. `position` names a document that has no id.
pub(crate) fn parse(
    line: Vec<u8>,
    encoding: Encoding,
    options: &DocumentOptions,
    position: impl FnOnce() -> String,
) -> Result<Parsed, String> {
    let (line, replaced) = encoding::decode_line(line, encoding);
    let mut json = serde_json::Deserializer::from_str(&line);
    let fields = FieldsOf(options)
        .deserialize(&mut json)
        .and_then(|fields| json.end().map(|()| fields))
        .map_err(|error| reason(&error))?;
    fields.document(options, "field", replaced, position)
}

/// Why the first line of a file tells that it holds JSON, but not one object a line; and what to do.
pub(crate) fn is_no_line(first: &[u8]) -> Option<&'static str> {
    match first.trim_ascii() {
        [b'[', ..] => Some(
            "a JSON array, expected one JSON object on each line; `jq -c '.[]'` makes lines of an array of objects",
        ),
        b"{" => Some(
            "a JSON object over several lines, expected one on each line; `jq -c .` brings an object onto one line",
        ),
        _ => None,
    }
}

/// A string in quotes, in ASCII and so the same in every encoding of lines.
pub(crate) fn ascii_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\') => {
                quoted.push(byte.into());
            }
            _ => quoted.push_str(&format!("\\u{unit:04x}")),
        }
    }
    quoted + "\""
}

/// The names of the fields of an object.
pub(crate) fn names(line: &str) -> Result<Vec<String>, String> {
    let object: std::collections::BTreeMap<String, IgnoredAny> =
        serde_json::from_str(line).map_err(|error| reason(&error))?;
    Ok(object.into_keys().collect())
}

/// The message of a JSON error, without the line number: the parser sees one line only.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = match message.strip_suffix(&position) {
        Some(message) => format!("{message} at column {}", error.column()),
        None => message,
    };
    if error.is_eof() {
        return format!("{message}; expected a whole JSON object on each line");
    }
    message
}

/// What is wanted of a JSON object; other fields are skipped without being stored.
struct FieldsOf<'o>(&'o DocumentOptions);

impl<'de> DeserializeSeed<'de> for FieldsOf<'_> {
    type Value = Fields;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Fields, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldsOf<'_> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a JSON object on one line")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let FieldsOf(options) = self;
        let id_field = options.id_name();
        let mut fields = Fields { texts: vec![None; options.text_fields.len()], ..Fields::default() };
        let mut seen = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let text = options.text_fields.iter().position(|field| *field == key);
            // One field may be several of these.
            let (is_id, is_extra) = (key == id_field, options.extra_field.as_ref() == Some(&key));
            if text.is_none() && !is_id && !is_extra {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("the field `{key}` comes twice")));
            }
            let value = map.next_value::<Value>()?;
            if is_id {
                fields.id = Some(
                    id(&value)
                        .map_err(|what| A::Error::custom(format_args!("the id field `{key}` {what}")))?,
                );
            }
            if is_extra {
                fields.extra = extra(&value);
            }
            if let Some(text) = text {
                fields.texts[text] = match value {
                    Value::String(text) => Some(text),
                    Value::Null => None,
                    _ => {
                        return Err(A::Error::custom(format_args!("the text field `{key}` is not a string")));
                    }
                };
            }
            seen.push(key);
        }
        Ok(fields)
    }
}

fn id(value: &Value) -> Result<DocumentId, String> {
    match value {
        Value::String(name) => DocumentId::name(name.clone()).map_err(|reason| format!("is {reason}")),
        value => value
            .as_u64()
            .map(DocumentId::Number)
            .ok_or_else(|| "is neither a string nor an integer from 0 to 2^64 - 1".to_owned()),
    }
}

/// A string as it is, other values as JSON.
fn extra(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        value => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(
        line: &str,
        id_field: Option<&str>,
        text_fields: &[&str],
    ) -> Result<(DocumentId, String), String> {
        let options = DocumentOptions {
            id_field: id_field.map(str::to_owned),
            text_fields: text_fields.iter().map(|&field| field.to_owned()).collect(),
            ..DocumentOptions::default()
        };
        let parsed = super::parse(line.into(), Encoding::AUTO, &options, || "file:1".to_owned())?;
        Ok((parsed.id, parsed.text))
    }

    fn name(name: &str) -> DocumentId {
        DocumentId::Name(name.to_owned())
    }

    #[test]
    fn ids() {
        let id = |line: &str| parse(line, None, &["text"]).unwrap().0;
        assert_eq!(id(r#"{"id": 18446744073709551615, "text": ""}"#), DocumentId::Number(u64::MAX));
        assert_eq!(id(r#"{"text": "", "id": "7"}"#), name("7"));
        assert_eq!(id(r#"{"text": "", "other": [{"id": 1}]}"#), name("file:1"));
        assert_eq!(
            parse(r#"{"url": "u", "text": ""}"#, Some("url"), &["text"]),
            Ok((name("u"), String::new()))
        );
        for line in [
            r#"{"id": -1, "text": ""}"#,
            r#"{"id": 1.5, "text": ""}"#,
            r#"{"id": 18446744073709551616, "text": ""}"#,
            r#"{"id": null, "text": ""}"#,
            r#"{"id": [1], "text": ""}"#,
        ] {
            assert!(parse(line, None, &["text"]).unwrap_err().contains("neither a string"), "{line}");
        }
        assert_eq!(parse(r#"{"text": ""}"#, Some("id"), &["text"]), Err("no id field `id`".to_owned()));
    }

    #[test]
    fn texts() {
        let text = |line: &str| parse(line, None, &["title", "text"]).map(|(_, text)| text);
        assert_eq!(text(r#"{"text": "b\u4e2d", "title": "a"}"#).unwrap(), "a\nb中");
        assert_eq!(text(r#"{"text": "b", "title": null}"#).unwrap(), "b");
        assert_eq!(text(r#"{"title": "a"}"#).unwrap(), "a");
        assert_eq!(text("{}"), Err("no text field `title`, `text`".to_owned()));
        assert!(text(r#"{"text": 1}"#).unwrap_err().contains("`text` is not a string"));
        assert_eq!(parse(r#"{"url": "u"}"#, Some("url"), &["url"]), Ok((name("u"), "u".to_owned())));
    }

    #[test]
    fn malformed() {
        let error = |line: &str| parse(line, None, &["text"]).unwrap_err();
        assert!(error(r#"{"text": "a", "text": "b"}"#).contains("`text` comes twice"));
        assert!(error(r#"{"id": 1, "text": "a", "id": 2}"#).contains("`id` comes twice"));
        assert!(error("[1]").contains("expected a JSON object on one line"));
        assert_eq!(
            error(r#"{"text": "a""#),
            "EOF while parsing an object at column 12; expected a whole JSON object on each line"
        );
        assert!(error(r#"{"text": "a"} {}"#).contains("trailing characters"));
        assert!(error(r#"{"text": "\ud800"}"#).contains("column"));
    }

    #[test]
    fn extra_values() {
        let extra = |line: &str, field: &str| {
            let options =
                DocumentOptions { extra_field: Some(field.to_owned()), ..DocumentOptions::default() };
            super::parse(line.into(), Encoding::AUTO, &options, String::new).unwrap().extra
        };
        let line = r#"{"id": 7, "text": "t", "date": "2024-05-01", "n": -1.5, "flag": true, "none": null, "l": [1, 2]}"#;
        for (field, expected) in [
            ("date", Some("2024-05-01")),
            ("n", Some("-1.5")),
            ("flag", Some("true")),
            ("l", Some("[1,2]")),
            ("id", Some("7")),
            ("text", Some("t")),
            ("none", None),
            ("missing", None),
        ] {
            assert_eq!(extra(line, field).as_deref(), expected, "{field}");
        }
    }

    #[test]
    fn malformed_utf8_is_replaced() {
        let line = b"{\"text\": \"a\xffb\", \"id\": \"\xe4\xb8\"}".to_vec();
        let parsed = super::parse(line, Encoding::AUTO, &DocumentOptions::default(), String::new).unwrap();
        assert_eq!((&*parsed.text, parsed.replaced), ("a\u{fffd}b", 2));
    }

    #[test]
    fn files_that_are_no_lines() {
        assert!(is_no_line(b"  [").is_some_and(|reason| reason.contains("jq -c '.[]'")));
        assert!(is_no_line(b"{ \r").is_some_and(|reason| reason.contains("jq -c .")));
        assert_eq!(is_no_line(b"{}"), None);
    }
}
