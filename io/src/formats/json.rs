//! Extracts the fields of a document (its id, its text, and an extra field if requested) from a JSON object.

/// Defines several `visit_` methods of a serde visitor. The methods have the same body, and differ only in the type
/// of the visited value.
macro_rules! visits {
    ($($visit:ident($value:ty)),+; $self:ident, $argument:pat => $result:expr) => {$(
        fn $visit<E: serde::de::Error>($self, $argument: $value) -> Result<Self::Value, E> {
            $result
        }
    )+};
}

mod compact;
mod field_names;
mod field_values;
mod line;

use std::borrow::Cow;

use simstore::error::did_you_mean;

pub(crate) use self::field_names::{field_names, has_fields, nested_field_names};
use self::field_values::{FieldRequest, FieldValue, ObjectVisitor, ValueKind};
use self::line::parse_line;
use crate::bytes::encoding::{self, Encoding};
use crate::formats::fields::{ParsedDocument, RequestedFields, format_names};
use crate::{DocumentId, DocumentOptions};
use simstore::error::excerpt;

/// Parses the document in a line of JSON. Returns the reason if the line is malformed. A document without an id
/// gets the id that `position` returns.
pub(crate) fn parse<'l>(
    line: &'l [u8],
    encoding: Encoding,
    options: &DocumentOptions,
    position: impl FnOnce() -> String,
) -> Result<ParsedDocument<'l>, String> {
    match encoding::decode_line(line, encoding) {
        (Cow::Borrowed(line), replaced) => parse_text(line, replaced, options, position),
        (Cow::Owned(line), replaced) => {
            let parsed = parse_text(&line, replaced, options, position)?;
            Ok(ParsedDocument { text: parsed.text.into_owned().into(), ..parsed })
        }
    }
}

fn parse_text<'l>(
    line: &'l str,
    replaced: u64,
    options: &DocumentOptions,
    position: impl FnOnce() -> String,
) -> Result<ParsedDocument<'l>, String> {
    let (fields, has_text) = extract_fields(line, options)?;
    if let (None, Some(name)) = (&fields.id, &options.id_field) {
        return Err(missing_field_reason("id", std::slice::from_ref(name), line));
    }
    if !has_text {
        return Err(missing_field_reason("text", &options.text_fields, line));
    }
    fields.into_document(options, "field", replaced, position)
}

/// Returns the error message for a document that has none of the requested `fields`. `kind` is `id` or `text`.
fn missing_field_reason(kind: &str, fields: &[String], line: &str) -> String {
    let names = nested_field_names(line);
    let meant = did_you_mean(&fields[0], &names);
    let there = if names.is_empty() { "no fields".to_owned() } else { format_names(&names) };
    format!(
        "no {kind} field {}{meant}; the document has {there}: select another with option `{kind}_field`",
        format_names(fields)
    )
}

/// Returns the requested fields of an object, and whether the object has any of the text fields. A text field with
/// the value `null` counts as present.
fn extract_fields<'l>(
    line: &'l str,
    options: &DocumentOptions,
) -> Result<(RequestedFields<'l>, bool), String> {
    let id_name = options.id_name();
    let scalars = options.text_fields.iter().map(|name| &**name).chain([id_name]);
    let mut wanted: Vec<_> = scalars.map(|name| FieldRequest { name, kind: ValueKind::Scalar }).collect();
    wanted.extend(options.extra_field.as_deref().map(|name| FieldRequest { name, kind: ValueKind::Any }));
    let found = parse_line(line, ObjectVisitor(&wanted))?;
    let mut found = found.into_iter();
    let texts = found.by_ref().take(options.text_fields.len()).zip(&options.text_fields);
    let mut has_text = options.text_fields.is_empty();
    let text = |(found, name): (Option<FieldValue<'l>>, &String)| match found.inspect(|_| has_text = true) {
        Some(FieldValue::Text(text)) => Ok(Some(text)),
        Some(FieldValue::Null) | None => Ok(None),
        Some(_) => Err(format!("the text field `{}` is not a string", excerpt(name))),
    };
    let texts = texts.map(text).collect::<Vec<Result<_, _>>>();
    let id = match found.next().flatten() {
        None => None,
        Some(FieldValue::Text(name)) => {
            Some(DocumentId::from_name(name.into_owned()).map_err(|reason| format!("is {reason}")))
        }
        Some(FieldValue::Number(number)) => Some(Ok(DocumentId::Number(number))),
        Some(_) => Some(Err("is neither a string nor an integer from 0 to 2^64 - 1".to_owned())),
    };
    let id = id.transpose().map_err(|what| format!("the id field `{}` {what}", excerpt(id_name)))?;
    let extra = match found.next().flatten() {
        Some(FieldValue::Text(text)) => Some(text.into_owned()),
        Some(FieldValue::Number(number)) => Some(number.to_string()),
        Some(FieldValue::Other(json)) => json,
        Some(FieldValue::Null) | None => None,
    };
    Ok((RequestedFields { id, texts: texts.into_iter().collect::<Result<_, _>>()?, extra }, has_text))
}

/// Returns an error message with advice if `first`, the first line of a file, begins an object that covers several
/// lines.
pub(crate) fn multiline_object_reason(first: &[u8]) -> Option<&'static str> {
    let is_open = first.trim_ascii() == b"{";
    is_open
        .then_some("a JSON object over several lines, expected one object a line; convert it with `jq -c .`")
}

/// Formats a text as a JSON string with ASCII characters only, so that its bytes are the same in every
/// ASCII-compatible encoding.
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
        let parsed = super::parse(line.as_bytes(), Encoding::AUTO, &options, || "file:1".to_owned())?;
        Ok((parsed.id, parsed.text.into_owned()))
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
        assert_eq!(
            parse(r#"{"text": "", "o": {"a": 1, "b": {}}}"#, Some("id"), &["text"]),
            Err("no id field `id`; the document has `o.a`, `o.b`, `text`: select another with option `id_field`"
                .to_owned())
        );
    }

    #[test]
    fn texts() {
        let text = |line: &str| parse(line, None, &["title", "text"]).map(|(_, text)| text);
        assert_eq!(text(r#"{"text": "b\u4e2d", "title": "a"}"#).unwrap(), "a\nb中");
        assert_eq!(text(r#"{"text": "b", "title": null}"#).unwrap(), "b");
        assert_eq!(text(r#"{"title": "a"}"#).unwrap(), "a");
        assert_eq!(text(r#"{"text": null}"#), Ok(String::new()));
        assert_eq!(
            text(r#"{"txet": 1, "a": "b"}"#),
            Err("no text field `title`, `text`; the document has `a`, `txet`: select another with option `text_field`".to_owned())
        );
        assert!(text("{}").unwrap_err().contains("the document has no fields"));
        assert!(text(r#"{"text": 1}"#).unwrap_err().contains("`text` is not a string"));
        assert_eq!(parse(r#"{"url": "u"}"#, Some("url"), &["url"]), Ok((name("u"), "u".to_owned())));
    }

    #[test]
    fn fields_of_objects() {
        let text =
            |line: &str| parse(line, Some("meta.id"), &["a.b.c"]).map(|(id, text)| (id.to_string(), text));
        let found = |id: &str, text: &str| Ok((id.to_owned(), text.to_owned()));
        assert_eq!(text(r#"{"a": {"b": {"c": "t", "d": 1}}, "meta": {"id": 7}}"#), found("7", "t"));
        // A field with the full name takes precedence, at any position.
        assert_eq!(text(r#"{"a.b.c": "own", "a": {"b": {"c": "t"}}, "meta": {"id": 7}}"#), found("7", "own"));
        assert_eq!(text(r#"{"a": {"b": {"c": "t"}}, "a.b.c": "own", "meta": {"id": 7}}"#), found("7", "own"));
        assert_eq!(text(r#"{"a.b": {"c": "t"}, "meta": {"id": "x"}}"#), found("x", "t"));
        assert_eq!(text(r#"{"a": {"b.c": "t"}, "meta": {"id": "x"}}"#), found("x", "t"));
        assert_eq!(text(r#"{"a": null, "meta": {"id": "x"}}"#), found("x", ""));
        let error = text(r#"{"a": {"b": {"c": 1}}, "meta": {"id": "x"}}"#).unwrap_err();
        assert!(error.contains("the text field `a.b.c` is not a string"), "{error}");
        let has = |line: &str| match parse(line, None, &["a.b"]) {
            Ok(_) => true,
            Err(reason) => !reason.contains("no text field `a.b`"),
        };
        assert!(has(r#"{"a": {"b": null}}"#) && has(r#"{"a": null}"#) && has(r#"{"a.b": ""}"#));
        assert!(!has(r#"{"a": {"c": "x"}}"#) && !has(r#"{"b": "x"}"#) && !has(r#"{"a": "x"}"#));
    }

    #[test]
    fn malformed() {
        let error = |line: &str| parse(line, None, &["text"]).unwrap_err();
        assert!(error(r#"{"text": "a", "text": "b"}"#).contains("two fields are named `text`"));
        assert!(error(r#"{"id": 1, "text": "a", "id": 2}"#).contains("two fields are named `id`"));
        assert!(error("[1]").contains("expected a JSON object on one line"));
        assert_eq!(
            error(r#"{"text": "a""#),
            "EOF while parsing an object at column 12; expected a whole JSON object on each line"
        );
        assert!(error(r#"{"text": "a"} {}"#).contains("trailing characters"));
        for line in [r#"{"text": "\ud800"}"#, r#"{"text": "\ud800x"}"#, r#"{"text": "\udc00"}"#] {
            let error = error(line);
            assert!(
                error.contains("column") && error.ends_with(r"such as `\ud83d\ude00`, or \ufffd"),
                "{error}"
            );
        }
        for value in ["NaN", "-NaN", "Infinity", "-Infinity", "[1, NaN]"] {
            let error = error(&format!(r#"{{"x": {value}, "text": "a"}}"#));
            assert!(error.ends_with("no NaN or Infinity: write `null` instead"), "{value}: {error}");
        }
        assert!(!error(r#"{"text": "NaN" x}"#).contains("no NaN"));
        for value in ["x", "\u{e9}", "\\n"] {
            let error = error(&format!("\"{}\"", value.repeat(100_000)));
            assert!(error.len() < 600 && error.contains("a JSON object on one line"), "{error}");
        }
    }

    #[test]
    fn extra_values() {
        let extra = |line: &str, field: &str| {
            let options =
                DocumentOptions { extra_field: Some(field.to_owned()), ..DocumentOptions::default() };
            super::parse(line.as_bytes(), Encoding::AUTO, &options, String::new).unwrap().extra
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
        let line = b"{\"text\": \"a\xffb\", \"id\": \"\xe4\xb8\"}";
        let parsed = super::parse(line, Encoding::AUTO, &DocumentOptions::default(), String::new).unwrap();
        assert_eq!((&*parsed.text, parsed.replacements), ("a\u{fffd}b", 2));
    }

    #[test]
    fn files_that_are_no_lines() {
        assert!(multiline_object_reason(b"{ \r").is_some_and(|reason| reason.contains("jq -c .")));
        assert_eq!(multiline_object_reason(b"{}"), None);
    }
}
