//! The objects of a file of JSON: one on each line, or the elements of one array.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::bytes::encoding::Encoding;
use crate::bytes::input::Input;
use crate::bytes::section::{self, Section};
use crate::formats::json;
use crate::{DocumentOptions, ReadProgress};
use simstore::Result;

/// The objects of a file, one after the other.
#[derive(Debug)]
pub(crate) struct Objects {
    input: Input,
    form: Form,
    options: DocumentOptions,
}

/// The form of a file of objects.
#[derive(Debug)]
enum Form {
    Lines {
        is_first: bool,
    },
    /// An array, and the number of elements that have been read.
    Array {
        elements: u64,
    },
    Ended,
}

/// Where the scanner is in an element.
#[derive(Debug, Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    /// A newline has been left out; the blanks after it are left out too.
    is_indented: bool,
}

impl Objects {
    /// Looks whether the input begins an array.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an unreadable file.
    pub(crate) fn open(input: Input, options: &DocumentOptions) -> Result<Objects> {
        let mut input = input.into_lines(options.encoding)?;
        let mut form = Form::Lines { is_first: true };
        if input.fill()?.trim_ascii_start().first() == Some(&b'[') {
            // In lines, brackets may be the second bytes of characters; elements are told by them.
            input = input.into_utf8();
            form = Form::Array { elements: 0 };
        }
        Ok(Objects { input, form, options: options.clone() })
    }

    /// The objects of a section of a file of lines.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an unreadable file.
    pub(crate) fn of_section(
        section: &Section,
        options: &DocumentOptions,
        progress: &Arc<ReadProgress>,
    ) -> Result<Objects> {
        let is_first = section.from == 0;
        let input = Input::of_section(section, progress)?;
        Ok(Objects { input, form: Form::Lines { is_first }, options: options.clone() })
    }

    /// How sections of the file are read; `None` if it can be read only as a whole.
    pub(crate) fn in_sections(&self) -> Option<section::Lines> {
        self.input.in_sections().filter(|_| matches!(self.form, Form::Lines { .. }))
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    pub(crate) fn encoding(&self) -> Encoding {
        self.input.encoding()
    }

    /// Reads the next object as it stands, on one line; with it its line, or its number in an array, from 1.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for an object that is too long, for a file that cannot be read, and for an array that
    /// is not well formed.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Bytes)>> {
        let object = match &mut self.form {
            Form::Lines { is_first } => {
                let is_first = std::mem::take(is_first);
                let line = self.input.read_line(self.options.longest())?;
                if let Some(reason) = line.as_deref().filter(|_| is_first).and_then(json::is_no_line) {
                    self.input.end();
                    return Err(self.input.bad(reason.to_owned()));
                }
                line
            }
            Form::Array { .. } => {
                let mut element = Vec::new();
                self.read_element(&mut element)?.then(|| element.into())
            }
            Form::Ended => None,
        };
        Ok(object.map(|object| (self.input.line(), object)))
    }

    /// Reads an element of the array, without the newlines between its tokens and the blanks after them.
    fn read_element(&mut self, element: &mut Vec<u8>) -> Result<bool> {
        // After an error there is no more.
        let Form::Array { elements } = std::mem::replace(&mut self.form, Form::Ended) else {
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
            Some(_) => return Err(self.broken("expected a comma or `]` after the element before this one")),
            None => return Err(self.broken("the file ends within the array")),
        }
        match self.next_byte()? {
            Some(b',' | b']') => return Err(self.broken("expected an element of the array")),
            None => return Err(self.broken("the file ends within the array")),
            Some(_) => {}
        }
        let longest = self.options.longest();
        let (mut scan, mut length) = (Scan::default(), 0);
        loop {
            let bytes = self.input.fill()?;
            if bytes.is_empty() {
                return Err(self.broken("the file ends within this element of the array"));
            }
            let (read, is_whole) = scan.visit(bytes, |piece| {
                length += piece.len();
                if length <= longest.bytes {
                    element.extend_from_slice(piece);
                }
            });
            self.input.consume(read);
            if is_whole {
                break;
            }
        }
        self.form = Form::Array { elements: number };
        if length > longest.bytes {
            return Err(self.input.too_long(longest));
        }
        element.truncate(element.trim_ascii_end().len());
        Ok(true)
    }

    /// The next byte that is not blank.
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
            return Err(self.broken("data after the end of the array; expected one array in the file"));
        }
        Ok(false)
    }

    /// The error of an array without a findable next element.
    fn broken(&mut self, reason: &str) -> simstore::Error {
        self.input.end();
        self.input.bad(reason.to_owned())
    }
}

impl Scan {
    /// Goes through bytes up to the end of the element; returns how many were read, and whether the element has ended.
    fn visit(&mut self, bytes: &[u8], mut piece: impl FnMut(&[u8])) -> (usize, bool) {
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
                // The end of a number or a word.
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
                let (mut scan, mut found, mut at) = (Scan::default(), Vec::new(), 0);
                loop {
                    let end = text.len().min(at + step);
                    let (read, is_whole) =
                        scan.visit(&text.as_bytes()[at..end], |piece| found.extend_from_slice(piece));
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
