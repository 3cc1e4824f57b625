//! A line of JSON, parsed as a whole.

use serde::de::DeserializeSeed;

/// What a seed makes of a whole line.
pub(super) fn parsed<'l, S: DeserializeSeed<'l>>(line: &'l str, seed: S) -> serde_json::Result<S::Value> {
    let mut json = serde_json::Deserializer::from_str(line);
    let value = seed.deserialize(&mut json)?;
    json.end().map(|()| value)
}

/// The message of a JSON error, without the line number: the parser sees one line only.
pub(super) fn reason(error: &serde_json::Error) -> String {
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
