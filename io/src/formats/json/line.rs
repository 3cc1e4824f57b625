//! Parses a line of JSON, and explains its errors.

use serde::de::DeserializeSeed;

use crate::formats::fields::shorten_quote;

/// Parses a whole line of JSON with a serde seed, and returns the seed's value. Returns the reason if the line is
/// malformed.
pub(super) fn parse_line<'l, S: DeserializeSeed<'l>>(line: &'l str, seed: S) -> Result<S::Value, String> {
    let mut json = serde_json::Deserializer::from_str(line);
    let value = seed.deserialize(&mut json).and_then(|value| json.end().map(|()| value));
    value.map_err(|error| error_reason(line, &error))
}

/// Returns the message of a JSON error, with advice for frequent mistakes. The message contains no line number,
/// because the parser sees one line only.
fn error_reason(line: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    let message = match message.strip_suffix(&position) {
        Some(message) => format!("{} at column {}", shorten_quote(message), error.column()),
        None => shorten_quote(&message),
    };
    let message = if error.is_syntax() { format!("invalid JSON: {message}") } else { message };
    if error.is_eof() {
        return format!("{message}; expected a whole JSON object on each line");
    }
    if message.contains("surrogate") || message.contains("end of hex escape") {
        return format!(
            "{message}; a lone surrogate is not a character: write both halves, such as `\\ud83d\\ude00`, or \\ufffd"
        );
    }
    // The column is at the first letter, or directly after it.
    let before = line.get(..error.column().saturating_sub(2)).unwrap_or_default();
    let at: String = line[before.len()..].chars().take(12).collect();
    let is_number = |name: &str| at.find(name).is_some_and(|start| start <= 2);
    if error.is_syntax() && (is_number("NaN") || is_number("Infinity")) {
        return format!("{message}; JSON has no NaN or Infinity: write `null` instead");
    }
    message
}
