//! The objects of a file of JSON: one on each line, or the elements of one array.

use simstore_text::did_you_mean;
use std::path::Path;
use std::sync::Arc;

use crate::bytes::encoding::Encoding;
use crate::bytes::input::Input;
use crate::bytes::section::{self, Section};
use crate::formats::fields::listed;
use crate::formats::json;
use crate::{DocumentOptions, ReadProgress};
use simstore::Result;

/// Objects in which a text field is looked for before a file is given up.
const SEARCHED_OBJECTS: u64 = 1000;

/// The objects of a file, one after the other.
#[derive(Debug)]
pub(crate) struct Objects {
    input: Input,
    form: Form,
    options: DocumentOptions,
    /// Objects at the start of the file that have none of the text fields; `None` when one has been seen.
    without_text: Option<WithoutText>,
}

/// How objects stand in a file.
#[derive(Debug)]
enum Form {
    Lines {
        is_first: bool,
    },
    /// In an array, of which so many elements have been read.
    Array {
        elements: u64,
    },
    Ended,
}

#[derive(Debug, Default)]
struct WithoutText {
    objects: u64,
    /// Where the first stands, and what fields it has.
    line: u64,
    names: Vec<String>,
}

/// Where the scanner is in an element.
#[derive(Debug, Default)]
struct Scan {
    depth: u64,
    in_string: bool,
    is_escaped: bool,
    /// A newline has been left out, and what is blank after it goes too.
    is_indented: bool,
}

impl Objects {
    /// Looks whether the input begins an array.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for what cannot be read.
    pub(crate) fn open(input: Input, options: &DocumentOptions) -> Result<Objects> {
        let mut input = input.into_lines(options.encoding)?;
        let mut form = Form::Lines { is_first: true };
        if input.fill()?.trim_ascii_start().first() == Some(&b'[') {
            // In lines, brackets may be the second bytes of characters; elements are told by them.
            input = input.into_utf8();
            form = Form::Array { elements: 0 };
        }
        // Without a name of one, nothing is missed.
        let without_text = (!options.text_fields.is_empty()).then(WithoutText::default);
        Ok(Objects { input, form, options: options.clone(), without_text })
    }

    /// The objects of a section of a file of lines.
    ///
    /// # Errors
    /// [`BadInput`](simstore::Error::BadInput) for what cannot be read.
    pub(crate) fn of_section(
        section: &Section,
        options: &DocumentOptions,
        progress: &Arc<ReadProgress>,
    ) -> Result<Objects> {
        let is_first = section.from == 0;
        // A file is divided only if one has been seen in the first section.
        let without_text = (is_first && !options.text_fields.is_empty()).then(WithoutText::default);
        let input = Input::of_section(section, progress)?;
        Ok(Objects { input, form: Form::Lines { is_first }, options: options.clone(), without_text })
    }

    /// How sections of the file are read; `None` if it can be read only as a whole.
    pub(crate) fn in_sections(&self) -> Option<section::Lines> {
        self.input.in_sections().filter(|_| matches!(self.form, Form::Lines { .. }))
    }

    /// Whether objects may have no text from here on: one that has a text field has been read.
    pub(crate) fn has_text(&self) -> bool {
        self.without_text.is_none()
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
    /// [`BadInput`](simstore::Error::BadInput) for an object that is too long, for what cannot be read, for an array that
    /// is none; and, at the end of it, for a file without any of the text fields.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        if self.without_text.as_ref().is_some_and(|without| without.objects == SEARCHED_OBJECTS) {
            self.input.end();
            self.form = Form::Ended;
        }
        let mut object = Vec::new();
        let is_there = match &mut self.form {
            Form::Lines { is_first } => {
                let is_first = std::mem::take(is_first);
                let is_there = self.input.read_line(&mut object, self.options.longest())?;
                if let Some(reason) = json::is_no_line(&object).filter(|_| is_first) {
                    self.input.end();
                    return Err(self.input.bad(reason.to_owned()));
                }
                is_there
            }
            Form::Array { .. } => self.read_element(&mut object)?,
            Form::Ended => false,
        };
        if is_there {
            self.look_for_text(&object);
            return Ok(Some((self.input.line(), object)));
        }
        match self.without_text.take().filter(|without| without.objects > 0) {
            Some(without) => Err(self.without_text(&without)),
            None => Ok(None),
        }
    }

    fn look_for_text(&mut self, object: &[u8]) {
        let (encoding, line) = (self.input.encoding(), self.input.line());
        let Some(without) = &mut self.without_text else { return };
        match json::has_text(object, encoding, &self.options) {
            Ok(true) => self.without_text = None,
            Ok(false) => {
                if without.objects == 0 {
                    without.line = line;
                    without.names = json::names_below(&String::from_utf8_lossy(object));
                }
                without.objects += 1;
            }
            // It is told where it is parsed.
            Err(_) => {}
        }
    }

    fn without_text(&mut self, without: &WithoutText) -> simstore::Error {
        self.input.set_line(without.line);
        let fields = self.options.text_fields.join("`, `");
        let of = if without.objects == SEARCHED_OBJECTS { "first " } else { "" };
        let rest = if of.is_empty() { "" } else { "; the rest of the file is left out" };
        let there = match &*without.names {
            [] => "no fields".to_owned(),
            names => listed(names),
        };
        self.input.bad(format!(
            "no text field `{fields}`{} in the {of}{} of the file; this one has {there}: option `text_field` names one{rest}",
            did_you_mean(&self.options.text_fields[0], &without.names),
            if without.objects == 1 { "one document".to_owned() } else { format!("{} documents", without.objects) },
        ))
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
            return Err(
                self.broken("there is more after the end of the array; expected one array in the file")
            );
        }
        Ok(false)
    }

    /// The error of an array in which the next element cannot be found.
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
                // Of a number or a word: what follows is no part of it.
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
