//! Reads the objects of a JSON file: one per line, or the elements of one array.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::encoding::Encoding;
use crate::bytes::input::Input;
use crate::bytes::section::{self, Section};
use crate::formats::json;
use crate::{DocumentOptions, ReadProgress};
use simstore::Result;

/// Reader of the objects in a JSON file.
#[derive(Debug)]
pub(crate) struct JsonObjects {
    input: Input,
    layout: ObjectsLayout,
    options: DocumentOptions,
}

/// Layout of a JSON file, and the position in it.
#[derive(Debug)]
enum ObjectsLayout {
    Lines {
        is_first: bool,
    },
    /// The file is one array, whose elements are the objects.
    Array {
        /// Number of elements read so far.
        elements: u64,
    },
    Ended,
}

/// State of a scan for the end of an array element.
#[derive(Debug, Default)]
struct ElementScanner {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    /// Whether the last scanned byte was a newline between two tokens, or a blank after such a newline. All of these
    /// are omitted from the element.
    is_indented: bool,
}

impl JsonObjects {
    /// Starts to read a JSON file, and detects whether it is one array or has an object per line.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an unreadable file.
    pub(crate) fn open(input: Input, options: &DocumentOptions) -> Result<JsonObjects> {
        let mut input = input.into_lines(options.encoding)?;
        let mut layout = ObjectsLayout::Lines { is_first: true };
        if input.fill()?.trim_ascii_start().first() == Some(&b'[') {
            // The scanner finds elements by brackets, which may be second bytes of characters in other encodings.
            input = input.into_utf8();
            layout = ObjectsLayout::Array { elements: 0 };
        }
        Ok(JsonObjects { input, layout, options: options.clone() })
    }

    /// Opens a section of a file of JSON lines.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an unreadable file.
    pub(crate) fn from_section(
        section: &Section,
        options: &DocumentOptions,
        progress: &Arc<ReadProgress>,
    ) -> Result<JsonObjects> {
        let is_first = section.from == 0;
        let input = Input::from_section(section, progress)?;
        Ok(JsonObjects { input, layout: ObjectsLayout::Lines { is_first }, options: options.clone() })
    }

    /// Properties of the file that readers of its [sections](section) need; `None` if the file must be read from its
    /// start.
    pub(crate) fn line_format(&self) -> Option<section::LineFormat> {
        self.input.line_format().filter(|_| matches!(self.layout, ObjectsLayout::Lines { .. }))
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.input.encoding()
    }

    /// Returns the next object as text on one line, with its line number or, in an array, its element number, from 1.
    /// Returns `None` at the end of the file.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an object that is too long, for an unreadable file, and
    /// for a malformed array.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Bytes)>> {
        let object = match &mut self.layout {
            ObjectsLayout::Lines { is_first } => {
                let is_first = std::mem::take(is_first);
                let line = self.input.read_line(self.options.length_limit())?;
                if let Some(reason) =
                    line.as_deref().filter(|_| is_first).and_then(json::multiline_object_reason)
                {
                    self.input.skip_rest();
                    return Err(self.input.line_error(reason.to_owned()));
                }
                line
            }
            ObjectsLayout::Array { .. } => {
                let mut element = Vec::new();
                self.read_element(&mut element)?.then(|| element.into())
            }
            ObjectsLayout::Ended => None,
        };
        Ok(object.map(|object| (self.input.line(), object)))
    }

    /// Reads the next element of the array into `element`. Omits newlines between the element's tokens, and the
    /// blanks after these newlines. Returns false at the end of the array.
    fn read_element(&mut self, element: &mut Vec<u8>) -> Result<bool> {
        // After an error the input has ended.
        let ObjectsLayout::Array { elements } = std::mem::replace(&mut self.layout, ObjectsLayout::Ended)
        else {
            return Ok(false);
        };
        let number = elements + 1;
        self.input.set_line(number);
        match self.next_byte()? {
            Some(b'[') if number == 1 => {
                self.input.consume(1);
                if self.next_byte()? == Some(b']') {
                    return self.end_array();
                }
            }
            Some(b',') if number > 1 => self.input.consume(1),
            Some(b']') if number > 1 => return self.end_array(),
            Some(_) => {
                return Err(self.array_error("expected a comma or `]` after the element before this one"));
            }
            None => return Err(self.array_error("the file ends within the array")),
        }
        match self.next_byte()? {
            Some(b',' | b']') => return Err(self.array_error("expected an element of the array")),
            None => return Err(self.array_error("the file ends within the array")),
            Some(_) => {}
        }
        let limit = self.options.length_limit();
        let (mut scanner, mut length) = (ElementScanner::default(), 0);
        loop {
            let bytes = self.input.fill()?;
            if bytes.is_empty() {
                return Err(self.array_error("the file ends within this element of the array"));
            }
            let (read, is_whole) = scanner.scan(bytes, |piece| {
                length += piece.len();
                if length <= limit.bytes {
                    element.extend_from_slice(piece);
                }
            });
            self.input.consume(read);
            if is_whole {
                break;
            }
        }
        self.layout = ObjectsLayout::Array { elements: number };
        if length > limit.bytes {
            return Err(self.input.too_long(limit));
        }
        element.truncate(element.trim_ascii_end().len());
        Ok(true)
    }

    /// Skips blanks, and returns the byte after them without consuming it; `None` at the end of the file.
    fn next_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let bytes = self.input.fill()?;
            let blank = bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = bytes.get(blank).copied();
            let is_end = bytes.is_empty();
            self.input.consume(blank);
            if next.is_some() || is_end {
                return Ok(next);
            }
        }
    }

    fn end_array(&mut self) -> Result<bool> {
        self.input.consume(1);
        if self.next_byte()?.is_some() {
            return Err(self.array_error("data after the end of the array; expected one array in the file"));
        }
        Ok(false)
    }

    /// Ends the input, because after an error in the array the next element cannot be found. Returns the error with
    /// this `reason`.
    fn array_error(&mut self, reason: &str) -> simstore::Error {
        self.input.skip_rest();
        self.input.line_error(reason.to_owned())
    }
}

impl ElementScanner {
    /// Scans the next bytes of the file, at most up to the end of the current array element. Passes the element's
    /// bytes to `piece`, in several parts. The parts omit newlines between tokens, and the blanks after these
    /// newlines. Returns the number of scanned bytes, and whether the element has ended.
    fn scan(&mut self, bytes: &[u8], mut piece: impl FnMut(&[u8])) -> (usize, bool) {
        let mut start = 0;
        for (at, &byte) in bytes.iter().enumerate() {
            if self.is_indented {
                if byte.is_ascii_whitespace() {
                    start = at + 1;
                    continue;
                }
                self.is_indented = false;
            }
            if self.in_string {
                match byte {
                    _ if self.is_escaped => self.is_escaped = false,
                    b'\\' => self.is_escaped = true,
                    b'"' => self.in_string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' | b'[' => self.depth += 1,
                // The end of a number or a literal.
                b',' | b'}' | b']' if self.depth == 0 => {
                    piece(&bytes[start..at]);
                    return (at, true);
                }
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        piece(&bytes[start..=at]);
                        return (at + 1, true);
                    }
                }
                b'\n' | b'\r' => {
                    piece(&bytes[start..at]);
                    start = at + 1;
                    self.is_indented = true;
                }
                _ => {}
            }
        }
        piece(&bytes[start..]);
        (bytes.len(), false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_end_where_they_end_however_they_are_read() {
        for (text, element, rest) in [
            (r#"{"a": "}]\"\\"}, 1"#, r#"{"a": "}]\"\\"}"#, ", 1"),
            ("{\r\n  \"a\":\n\t[1,\n\n 2] }]", r#"{"a":[1,2] }"#, "]"),
            ("17 ]", "17 ", "]"),
            ("[[{}]]x", "[[{}]]", "x"),
            ("\"a,b\",c", "\"a,b\"", ",c"),
        ] {
            for step in [1, 2, 3, 100] {
                let (mut scan, mut found, mut at) = (ElementScanner::default(), Vec::new(), 0);
                loop {
                    let end = text.len().min(at + step);
                    let (read, is_whole) =
                        scan.scan(&text.as_bytes()[at..end], |piece| found.extend_from_slice(piece));
                    at += read;
                    if is_whole {
                        break;
                    }
                    assert!(at < text.len(), "{text}");
                }
                assert_eq!((found.as_slice(), &text[at..]), (element.as_bytes(), rest), "{step}");
            }
        }
    }
}
