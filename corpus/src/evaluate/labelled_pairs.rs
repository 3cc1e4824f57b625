//! Reads labelled pairs from JSON lines.

use std::path::PathBuf;

use serde_json::{Map, Value};
use simstore::error::excerpt;
use simstore::{Error, Result};

use simstore_io::formats::shorten_quote;
use simstore_io::{DocumentFormat, DocumentOptions, Encoding, Record, Records, records};

/// Two texts, and whether they are near-duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledPair {
    /// The two texts.
    pub texts: [String; 2],
    /// Whether the two texts are near-duplicates.
    pub is_positive: bool,
    /// Path of the document that both texts are versions of. Texts of pairs with the same path count as related, so
    /// [`evaluate`](crate::evaluate::evaluate) never pairs them at random.
    pub path: Option<String>,
}

/// Names of the fields of a pair in a JSON line.
#[derive(Clone, Debug, PartialEq)]
pub struct PairOptions {
    /// Field of the first text. By default `text_a`, or else `text_old`.
    pub text_a: Option<String>,
    /// Field of the second text. By default `text_b`, or else `text_new`.
    pub text_b: Option<String>,
    /// Field of the label, by default `label`. The label is true, false, 1 or 0 or, with
    /// [`positive_from`](PairOptions::positive_from), any number. If no pair has the default field, every pair is positive.
    pub label_field: Option<String>,
    /// Smallest label of a positive pair, if labels are numbers.
    pub positive_from: Option<f64>,
    /// Field of the path: see [`LabelledPair::path`]. A pair may lack this field.
    pub path_field: String,
}

impl Default for PairOptions {
    fn default() -> Self {
        PairOptions {
            text_a: None,
            text_b: None,
            label_field: None,
            positive_from: None,
            path_field: "path".to_owned(),
        }
    }
}

/// Reads the labelled pairs of JSON lines files, in order. `-` is standard input.
///
/// # Errors
/// If a pair is malformed, its item is [`Error::BadInput`], and the iteration continues. Either all pairs must have labels, or
/// none: if the first pair has a label, a pair without one is malformed, and vice versa. Other errors are the errors of
/// [`documents`](simstore_io::documents).
pub fn labelled_pairs(paths: &[PathBuf], options: &PairOptions) -> LabelledPairs {
    let document_options = DocumentOptions {
        format: Some(DocumentFormat::Jsonl),
        text_fields: Vec::new(),
        encoding: Encoding::UTF_8,
        ..DocumentOptions::default()
    };
    LabelledPairs { records: records(paths, &document_options), options: options.clone(), are_labelled: None }
}

/// Iterator over labelled pairs. See [`labelled_pairs`].
#[derive(Debug)]
pub struct LabelledPairs {
    records: Records,
    options: PairOptions,
    /// Whether all pairs must have labels, or none: the first pair decides. `None` before the first pair.
    are_labelled: Option<bool>,
}

impl Iterator for LabelledPairs {
    type Item = Result<LabelledPair>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.records.next()?.and_then(|record| self.pair(&record)))
    }
}

impl LabelledPairs {
    fn pair(&mut self, record: &Record) -> Result<LabelledPair> {
        let bad = |reason| Error::BadInput { path: record.path().to_path_buf(), line: record.line(), reason };
        // Records of JSON lines always have bytes.
        let line = self.options.parse(record.bytes().unwrap_or_default()).map_err(bad)?;
        with_label(line, &mut self.are_labelled).map_err(bad)
    }
}

/// Reads labelled pairs from rows, in order. A row has the fields of a JSON line.
///
/// # Errors
/// An error that `rows` yields. Errors of [`labelled_pairs`] for malformed rows, with the number of the row from 1 as the line.
pub fn labelled_rows(
    rows: impl Iterator<Item = Result<Map<String, Value>>>,
    options: &PairOptions,
) -> impl Iterator<Item = Result<LabelledPair>> {
    let options = options.clone();
    let mut are_labelled = None;
    (1..).zip(rows).map(move |(line, fields)| {
        let pair = options.parse_fields(fields?).and_then(|pair| with_label(pair, &mut are_labelled));
        pair.map_err(|reason| Error::BadInput { path: PathBuf::from("-"), line, reason })
    })
}

/// Makes a pair from its fields. Fails with a message if the pair has a label and the first pair has none, or vice versa.
fn with_label(line: PairFields, are_labelled: &mut Option<bool>) -> Result<LabelledPair, String> {
    let is_labelled = line.is_positive.is_some();
    if *are_labelled.get_or_insert(is_labelled) != is_labelled {
        return Err(
            "some pairs have a label and others have none: give all pairs a label, or none".to_owned()
        );
    }
    let PairFields { texts, is_positive, path } = line;
    Ok(LabelledPair { texts, is_positive: is_positive.unwrap_or(true), path })
}

/// Texts, label and path of a pair, parsed from a line or row.
#[derive(Debug, PartialEq)]
struct PairFields {
    texts: [String; 2],
    /// Whether the label says that the texts are near-duplicates; `None` if the pair has no label.
    is_positive: Option<bool>,
    path: Option<String>,
}

impl PairOptions {
    /// Parses a JSON line. Fails with a message if the line is malformed.
    fn parse(&self, line: &[u8]) -> Result<PairFields, String> {
        let fields = serde_json::from_slice(line).map_err(|error| {
            let message = error.to_string();
            // The parser sees one line only, so its line number says nothing.
            let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
            format!("invalid JSON object: {} at column {}", shorten_quote(message), error.column())
        })?;
        self.parse_fields(fields)
    }

    fn parse_fields(&self, mut fields: Map<String, Value>) -> Result<PairFields, String> {
        let texts = [
            text(&mut fields, self.text_a.as_deref(), ["text_a", "text_old"], "text_a")?,
            text(&mut fields, self.text_b.as_deref(), ["text_b", "text_new"], "text_b")?,
        ];
        let path = match fields.remove(&self.path_field) {
            Some(Value::String(path)) => Some(path),
            Some(Value::Number(number)) => Some(number.to_string()),
            None | Some(Value::Null) => None,
            Some(_) => {
                return Err(format!(
                    "the field `{}` is neither text nor a number",
                    excerpt(&self.path_field)
                ));
            }
        };
        Ok(PairFields { texts, is_positive: self.label(&fields)?, path })
    }

    fn label(&self, fields: &Map<String, Value>) -> Result<Option<bool>, String> {
        let field = self.label_field.as_deref().unwrap_or("label");
        let Some(value) = fields.get(field) else {
            if self.label_field.is_some() || self.positive_from.is_some() {
                return Err(format!(
                    "no label field `{}`; select another with option `label_field`",
                    excerpt(field)
                ));
            }
            return Ok(None);
        };
        let is_positive = match (value, self.positive_from) {
            (Value::Number(number), Some(least)) => number.as_f64().map(|number| number >= least),
            (_, Some(_)) => None,
            (Value::Bool(is_positive), None) => Some(*is_positive),
            (Value::Number(number), None) => match number.as_f64() {
                Some(1.0) => Some(true),
                Some(0.0) => Some(false),
                _ => None,
            },
            _ => None,
        };
        is_positive.map(Some).ok_or_else(|| {
            let expected = match self.positive_from {
                Some(_) => "expected a number",
                None => "expected true, false, 1 or 0; for other numbers give option `positive_from`",
            };
            let value = value.to_string();
            format!("the label field `{}` is {}: {expected}", excerpt(field), excerpt(&value))
        })
    }
}

fn text(
    fields: &mut Map<String, Value>,
    named: Option<&str>,
    by_default: [&str; 2],
    option: &str,
) -> Result<String, String> {
    let names = named.as_ref().map_or(&by_default[..], std::slice::from_ref);
    match names.iter().find_map(|&name| Some((name, fields.remove(name)?))) {
        Some((_, Value::String(text))) => Ok(text),
        Some((name, _)) => Err(format!("the text field `{}` is not a string", excerpt(name))),
        None => {
            let names: Vec<_> = names.iter().map(|name| excerpt(name)).collect();
            Err(format!("no text field `{}`; select another with option `{option}`", names.join("`, `")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        let parse = |line: &str| PairOptions::default().parse(line.as_bytes()).unwrap();
        let line = |a: &str, b: &str, is_positive, path: Option<&str>| PairFields {
            texts: [a.to_owned(), b.to_owned()],
            is_positive,
            path: path.map(str::to_owned),
        };
        assert_eq!(
            parse(r#"{"text_a": "\u4e2d", "text_b": "", "label": true, "more": [1]}"#),
            line("中", "", Some(true), None)
        );
        assert_eq!(
            parse(r#"{"text_new": "n", "text_old": "o", "path": "p", "jaccard3": 0.5}"#),
            line("o", "n", None, Some("p"))
        );
        for (label, expected) in [("1", true), ("0", false), ("1.0", true), ("false", false)] {
            let json = format!(r#"{{"text_a": "a", "text_b": "b", "label": {label}, "path": 7}}"#);
            assert_eq!(parse(&json), line("a", "b", Some(expected), Some("7")));
        }
    }

    #[test]
    fn named_fields() {
        let options = PairOptions {
            text_a: Some("x".to_owned()),
            text_b: Some("y".to_owned()),
            label_field: Some("z".to_owned()),
            positive_from: Some(0.5),
            ..PairOptions::default()
        };
        for (z, is_positive) in [("0.5", true), ("0.49", false), ("3", true), ("-1", false)] {
            let json = format!(r#"{{"text_a": "no", "x": "a", "y": "b", "z": {z}}}"#);
            let line = options.parse(json.as_bytes()).unwrap();
            assert_eq!((&*line.texts[0], line.is_positive), ("a", Some(is_positive)));
        }
        let error = |json: &str| options.parse(json.as_bytes()).unwrap_err();
        assert!(error(r#"{"x": "a", "y": "b"}"#).contains("no label field `z`"));
        assert!(error(r#"{"x": "a", "y": "b", "z": true}"#).contains("`z` is true: expected a number"));
        assert!(
            error(r#"{"y": "b", "z": 1}"#).contains("no text field `x`; select another with option `text_a`")
        );
    }

    #[test]
    fn rows_are_read_as_lines_are() {
        let rows =
            [r#"{"text_a": "a", "text_b": "b", "label": 1}"#, "{}", r#"{"text_a": "a", "text_b": "b"}"#];
        let rows = rows.map(|row| Ok(serde_json::from_str(row).unwrap()));
        let pairs: Vec<_> = labelled_rows(rows.into_iter(), &PairOptions::default()).collect();
        assert!(pairs[0].as_ref().unwrap().is_positive);
        assert!(matches!(pairs[1], Err(Error::BadInput { line: 2, .. })));
        assert!(pairs[2].as_ref().unwrap_err().to_string().contains("others have none"));
    }

    #[test]
    fn malformed() {
        for (json, reason) in [
            ("[]", "JSON object"),
            ("{", "EOF while parsing an object at column 1"),
            ("{\"text_a\": \"\u{fffd}", "at column"),
            (r#"{"text_a": "a"}"#, "no text field `text_b`, `text_new`; select another with option `text_b`"),
            (r#"{"text_a": "a", "text_b": null}"#, "`text_b` is not a string"),
            (r#"{"text_a": "a", "text_b": "b", "label": 0.5}"#, "is 0.5: expected true"),
            (r#"{"text_a": "a", "text_b": "b", "label": "1"}"#, "is \"1\": expected true"),
            (r#"{"text_a": "a", "text_b": "b", "label": null}"#, "is null: expected true"),
            (r#"{"text_a": "a", "text_b": "b", "path": []}"#, "`path` is neither"),
        ] {
            let error = PairOptions::default().parse(json.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
        assert!(PairOptions::default().parse(b"{\"text_a\": \"\xff\"}").unwrap_err().contains("at column"));
    }
}
