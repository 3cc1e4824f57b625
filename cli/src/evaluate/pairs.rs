//! Reading labelled pairs: the fingerprints of their texts, by each profile.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;
use rayon::prelude::*;
use serde_json::{Map, Value};
use simstore::{Error, Fingerprint};
use simstore_corpus::{DocumentFormat, DocumentOptions, Record, records};
use simstore_text::Profile;
use xxhash_rust::xxh3::xxh3_128;

use crate::evaluate::curve::Evaluation;
use crate::evaluate::random::{self, Grouped};
use crate::failure::{Failure, Outcome};
use crate::inputs::BadLines;
use crate::progress::Progress;

/// Texts are fingerprinted when so many bytes of them have been read.
const BATCH_BYTES: usize = 8 << 20;

/// Where in a line of JSON a pair stands.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pairs")]
pub(crate) struct PairArgs {
    /// The field that holds the first text [default: `text_a`, or else `text_old`]
    #[arg(long, value_name = "FIELD")]
    text_a: Option<String>,
    /// The field that holds the second text [default: `text_b`, or else `text_new`]
    #[arg(long, value_name = "FIELD")]
    text_b: Option<String>,
    /// The field that tells whether the pair is positive: true, false, 1 or 0, or a number with
    /// --positive-from [default: `label`; where no pair has it, every pair is positive]
    #[arg(long, value_name = "FIELD")]
    label_field: Option<String>,
    /// The label is a number, and a pair positive from this one on
    #[arg(long, value_name = "T")]
    positive_from: Option<f64>,
    /// The field that holds what the texts of a pair are versions of: pairs that have it in common give no
    /// random pair; no pair has to have it
    #[arg(long, value_name = "FIELD", default_value = "path")]
    path_field: String,
    /// Report malformed lines, count them and go on; without it the first one ends the command
    #[arg(long)]
    skip_bad: bool,
}

/// A line of the inputs.
#[derive(Debug, PartialEq)]
struct Line {
    texts: [String; 2],
    /// `None` if there is no label.
    is_positive: Option<bool>,
    path: Option<String>,
}

impl PairArgs {
    fn parse(&self, record: &Record) -> Outcome<Line> {
        // Read as JSON lines, all have bytes.
        self.parse_json(record.bytes().unwrap_or_default()).map_err(|reason| {
            let (path, line) = (record.path().to_path_buf(), record.line());
            Failure::Engine(Error::BadInput { path, line, reason })
        })
    }

    /// Parses a line; a reason if it is malformed.
    fn parse_json(&self, line: &[u8]) -> Result<Line, String> {
        let mut fields: Map<String, Value> = serde_json::from_slice(line).map_err(|error| {
            let message = error.to_string();
            // The parser sees one line only.
            let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
            format!("no pair in a JSON object: {message} at column {}", error.column())
        })?;
        let texts = [
            text(&mut fields, self.text_a.as_deref(), ["text_a", "text_old"], "--text-a")?,
            text(&mut fields, self.text_b.as_deref(), ["text_b", "text_new"], "--text-b")?,
        ];
        let path = match fields.remove(&self.path_field) {
            Some(Value::String(path)) => Some(path),
            Some(Value::Number(number)) => Some(number.to_string()),
            None | Some(Value::Null) => None,
            Some(_) => return Err(format!("the field `{}` is neither text nor a number", self.path_field)),
        };
        Ok(Line { texts, is_positive: self.label(&fields)?, path })
    }

    fn label(&self, fields: &Map<String, Value>) -> Result<Option<bool>, String> {
        let field = self.label_field.as_deref().unwrap_or("label");
        let Some(value) = fields.get(field) else {
            if self.label_field.is_some() || self.positive_from.is_some() {
                return Err(format!("no label field `{field}`; --label-field names another"));
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
                None => "expected true, false, 1 or 0; for other numbers give --positive-from",
            };
            let value: String = value.to_string().chars().take(50).collect();
            format!("the label field `{field}` is {value}: {expected}")
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
        Some((name, _)) => Err(format!("the text field `{name}` is not a string")),
        None => Err(format!("no text field `{}`; {option} names another", names.join("`, `"))),
    }
}

/// Two texts and their label.
#[derive(Debug)]
struct Pair {
    texts: [usize; 2],
    is_positive: bool,
}

/// The labelled pairs of all inputs.
#[derive(Debug)]
pub(crate) struct Pairs<F> {
    pairs: Vec<Pair>,
    /// For each profile, the fingerprint of each distinct text; `None` for a text without features.
    fingerprints: Vec<Vec<Option<F>>>,
    groups: Groups,
    /// Malformed lines skipped.
    pub(crate) bad: u64,
}

impl<F: Fingerprint> Pairs<F> {
    /// Reads all pairs, and fingerprints each text once by each profile.
    pub(crate) fn read(
        inputs: &[PathBuf],
        args: &PairArgs,
        profiles: &[Profile],
        progress: &Progress,
    ) -> Outcome<Pairs<F>> {
        let mut counter = progress.counter("pairs");
        let mut bad = BadLines::new(args.skip_bad);
        let fingerprints = profiles.iter().map(|_| Vec::new()).collect();
        let mut pairs = Pairs { pairs: Vec::new(), fingerprints, groups: Groups::default(), bad: 0 };
        let mut unread = Texts::default();
        let mut are_labelled = None;
        let (format, text_fields) = (Some(DocumentFormat::Jsonl), Vec::new());
        let encoding = "utf-8".parse()?;
        let options = DocumentOptions { format, text_fields, encoding, ..DocumentOptions::default() };
        for record in records(inputs, &options) {
            let line = record.map_err(Failure::from).and_then(|record| {
                let line = args.parse(&record)?;
                let is_labelled = line.is_positive.is_some();
                if *are_labelled.get_or_insert(is_labelled) == is_labelled {
                    return Ok(line);
                }
                let reason = "some pairs have a label and some have none: either all must have one, or none";
                let (path, line) = (record.path().to_path_buf(), record.line());
                Err(Failure::Engine(Error::BadInput { path, line, reason: reason.to_owned() }))
            });
            match line {
                Ok(line) => pairs.push(line, &mut unread),
                Err(failure) => bad.take(failure)?,
            }
            if unread.bytes >= BATCH_BYTES {
                pairs.fingerprint(&mut unread, profiles);
            }
            counter.add(1);
        }
        pairs.fingerprint(&mut unread, profiles);
        pairs.bad = bad.count();
        Ok(pairs)
    }

    fn push(&mut self, line: Line, unread: &mut Texts) {
        let texts = line.texts.map(|text| self.groups.text(text, unread));
        self.groups.join(texts[0], texts[1]);
        if let Some(path) = line.path {
            let first = *self.groups.by_path.entry(path).or_insert(texts[0]);
            self.groups.join(first, texts[0]);
        }
        self.pairs.push(Pair { texts, is_positive: line.is_positive.unwrap_or(true) });
    }

    fn fingerprint(&mut self, unread: &mut Texts, profiles: &[Profile]) {
        for (profile, fingerprints) in profiles.iter().zip(&mut self.fingerprints) {
            let of_text = |text: &String| profile.fingerprint::<F>(text).map(|simhash| simhash.fingerprint);
            fingerprints.par_extend(unread.texts.par_iter().map(of_text));
        }
        *unread = Texts::default();
    }

    /// Number of labelled pairs, and of positive ones.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let positives = self.pairs.iter().filter(|pair| pair.is_positive).count();
        (self.pairs.len() as u64, positives as u64)
    }

    /// Compares all labelled pairs, and random ones, by the profile of this number.
    pub(crate) fn evaluate(&mut self, profile: usize) -> Evaluation {
        let mut evaluation = Evaluation::default();
        let fingerprints = &self.fingerprints[profile];
        for pair in &self.pairs {
            let [Some(a), Some(b)] = pair.texts.map(|text| fingerprints[text]) else {
                evaluation.excluded += 1;
                continue;
            };
            let counts = if pair.is_positive { &mut evaluation.positives } else { &mut evaluation.negatives };
            counts.add(a.distance(b));
        }
        let mut texts: Vec<Grouped<F>> = Vec::with_capacity(fingerprints.len());
        for (text, fingerprint) in fingerprints.iter().enumerate() {
            match fingerprint {
                Some(fingerprint) => texts.push((*fingerprint, self.groups.of(text))),
                None => evaluation.empty += 1,
            }
        }
        evaluation.random = random::distances(&texts, random::MAX_PAIRS);
        evaluation
    }
}

/// Texts that have no fingerprint yet.
#[derive(Debug, Default)]
struct Texts {
    texts: Vec<String>,
    bytes: usize,
}

/// The distinct texts, in groups of those that pairs or paths connect: what is drawn from different groups is not known
/// to have anything in common.
#[derive(Debug, Default)]
struct Groups {
    /// By a hash of 128 bits, which no two texts share.
    by_hash: HashMap<u128, usize>,
    by_path: HashMap<String, usize>,
    /// Another text of the same group, or the text itself if it stands for the group.
    parents: Vec<usize>,
}

impl Groups {
    /// The number of a text; a new one is put where it will be fingerprinted.
    fn text(&mut self, text: String, unread: &mut Texts) -> usize {
        let number = self.parents.len();
        let found = *self.by_hash.entry(xxh3_128(text.as_bytes())).or_insert(number);
        if found == number {
            self.parents.push(number);
            unread.bytes += text.len();
            unread.texts.push(text);
        }
        found
    }

    /// The text that stands for the group of a text.
    fn of(&mut self, mut text: usize) -> usize {
        while self.parents[text] != text {
            self.parents[text] = self.parents[self.parents[text]];
            text = self.parents[text];
        }
        text
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.of(a), self.of(b));
        self.parents[a.max(b)] = a.min(b);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> PairArgs {
        PairArgs {
            text_a: None,
            text_b: None,
            label_field: None,
            positive_from: None,
            path_field: "path".to_owned(),
            skip_bad: false,
        }
    }

    #[test]
    fn fields() {
        let parse = |line: &str| args().parse_json(line.as_bytes()).unwrap();
        let line = |a: &str, b: &str, is_positive, path: Option<&str>| Line {
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
        let args = PairArgs {
            text_a: Some("x".to_owned()),
            text_b: Some("y".to_owned()),
            label_field: Some("z".to_owned()),
            positive_from: Some(0.5),
            ..args()
        };
        for (z, is_positive) in [("0.5", true), ("0.49", false), ("3", true), ("-1", false)] {
            let json = format!(r#"{{"text_a": "no", "x": "a", "y": "b", "z": {z}}}"#);
            let line = args.parse_json(json.as_bytes()).unwrap();
            assert_eq!((&*line.texts[0], line.is_positive), ("a", Some(is_positive)));
        }
        let error = |json: &str| args.parse_json(json.as_bytes()).unwrap_err();
        assert!(error(r#"{"x": "a", "y": "b"}"#).contains("no label field `z`"));
        assert!(error(r#"{"x": "a", "y": "b", "z": true}"#).contains("`z` is true: expected a number"));
        assert!(error(r#"{"y": "b", "z": 1}"#).contains("no text field `x`; --text-a"));
    }

    #[test]
    fn malformed() {
        for (json, reason) in [
            ("[]", "JSON object"),
            ("{", "EOF while parsing an object at column 1"),
            ("{\"text_a\": \"\u{fffd}", "at column"),
            (r#"{"text_a": "a"}"#, "no text field `text_b`, `text_new`; --text-b"),
            (r#"{"text_a": "a", "text_b": null}"#, "`text_b` is not a string"),
            (r#"{"text_a": "a", "text_b": "b", "label": 0.5}"#, "is 0.5: expected true"),
            (r#"{"text_a": "a", "text_b": "b", "label": "1"}"#, "is \"1\": expected true"),
            (r#"{"text_a": "a", "text_b": "b", "label": null}"#, "is null: expected true"),
            (r#"{"text_a": "a", "text_b": "b", "path": []}"#, "`path` is neither"),
        ] {
            let error = args().parse_json(json.as_bytes()).unwrap_err();
            assert!(error.contains(reason), "{json}: {error}");
        }
        assert!(args().parse_json(b"{\"text_a\": \"\xff\"}").unwrap_err().contains("at column"));
    }

    #[test]
    fn groups_are_what_is_connected() {
        let (mut groups, mut unread) = (Groups::default(), Texts::default());
        let numbers: Vec<usize> =
            ["a", "b", "c", "a", "d", "b"].map(|text| groups.text(text.to_owned(), &mut unread)).to_vec();
        assert_eq!(numbers, [0, 1, 2, 0, 3, 1]);
        assert_eq!((unread.texts.len(), unread.bytes), (4, 4));
        for (a, b) in [(3, 2), (1, 3)] {
            groups.join(a, b);
        }
        assert_eq!((0..4).map(|text| groups.of(text)).collect::<Vec<_>>(), [0, 1, 1, 1]);
    }
}
