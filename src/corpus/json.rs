//! The id and the text of a document in a JSON object.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::corpus::{DocumentId, DocumentOptions};

/// Parses one JSON object; a reason if it is malformed. `position` names a document that has no
/// id.
pub(crate) fn parse(
    line: &str,
    options: &DocumentOptions,
    position: impl FnOnce() -> String,
) -> Result<(DocumentId, String), String> {
    let id_field = options.id_field.as_deref().unwrap_or("id");
    let mut json = serde_json::Deserializer::from_str(line);
    let fields = FieldsOf { id_field, text_fields: &options.text_fields }
        .deserialize(&mut json)
        .and_then(|fields| json.end().map(|()| fields))
        .map_err(|error| reason(&error))?;

    let id = match fields.id {
        Some(Value::String(name)) => DocumentId::name(name)?,
        Some(value) => value.as_u64().map(DocumentId::Number).ok_or_else(|| {
            format!("the id field `{id_field}` is neither a string nor an integer from 0 to 2^64 - 1")
        })?,
        None if options.id_field.is_some() => return Err(format!("no id field `{id_field}`")),
        None => DocumentId::name(position())?,
    };
    let mut texts = fields.texts.into_iter().flatten();
    let Some(mut text) = texts.next() else {
        return Err(format!("no text field `{}`", options.text_fields.join("`, `")));
    };
    for more in texts {
        text.push('\n');
        text.push_str(&more);
    }
    Ok((id, text))
}

/// The message of a JSON error, without the line number: the parser sees one line only.
fn reason(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    match message.strip_suffix(&position) {
        Some(message) => format!("{message} at column {}", error.column()),
        None => message,
    }
}

/// What is wanted of a JSON object; other fields are skipped without being stored.
struct FieldsOf<'o> {
    id_field: &'o str,
    text_fields: &'o [String],
}

struct Fields {
    id: Option<Value>,
    /// By the order of the options.
    texts: Vec<Option<String>>,
}

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
        let mut fields = Fields { id: None, texts: vec![None; self.text_fields.len()] };
        let mut seen = Vec::new();
        while let Some(key) = map.next_key::<String>()? {
            let text = self.text_fields.iter().position(|field| *field == key);
            if text.is_none() && key != self.id_field {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("the field `{key}` comes twice")));
            }
            let mut value = map.next_value::<Value>()?;
            if key == self.id_field {
                // One field may be both.
                let id = if text.is_some() { value.clone() } else { value.take() };
                fields.id = Some(id);
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
        super::parse(line, &options, || "file:1".to_owned())
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
        assert_eq!(error(r#"{"text": "a""#), "EOF while parsing an object at column 12");
        assert!(error(r#"{"text": "a"} {}"#).contains("trailing characters"));
        assert!(error(r#"{"text": "\ud800"}"#).contains("column"));
    }
}
