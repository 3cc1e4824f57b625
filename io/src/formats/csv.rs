//! Reads tables of text: CSV and TSV.

use simstore::error::did_you_mean;
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use xxhash_rust::xxh3::xxh3_64;

use crate::bytes::encoding::{self, DecodedText, Encoding};
use crate::bytes::input::Input;
use crate::bytes::length_limit::LengthLimit;
use crate::formats::fields::{MAX_COLUMNS, ParsedDocument, RequestedFields, format_names, name_taken_reason};
use crate::numbers::format_count;
use crate::{DocumentId, DocumentOptions, ReadDiagnostic};
use simstore::Result;
use simstore::error::excerpt;

/// Maximum length of a table's header, in bytes.
const MAX_HEADER_BYTES: usize = 16 << 20;

/// Delimiters that are tried if the options give none.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// The first row of a table, which names the columns.
#[derive(Clone, Debug)]
pub(crate) struct CsvHeader {
    pub(crate) delimiter: u8,
    pub(crate) encoding: Encoding,
    /// Bytes of the row as in the file.
    pub(crate) row: Vec<u8>,
    pub(crate) columns: Vec<String>,
    /// For each column name, the index of the first column with this name, and the number of such columns.
    positions: HashMap<String, (usize, usize)>,
    /// xxh3 of the bytes in `row`.
    pub(crate) checksum: u64,
    /// Byte order mark before the row; empty if there is none. It is also written to outputs, because some programs
    /// need it to recognize UTF-8.
    pub(crate) mark: &'static [u8],
}

impl PartialEq for CsvHeader {
    fn eq(&self, other: &Self) -> bool {
        (self.delimiter, self.encoding, &self.row) == (other.delimiter, other.encoding, &other.row)
    }
}

impl CsvHeader {
    fn new(
        row: Vec<u8>,
        delimiter: u8,
        encoding: Encoding,
        mark: &'static [u8],
    ) -> Result<CsvHeader, String> {
        check_quotes(&row, delimiter, 1)?;
        let delimiters = row.iter().filter(|&&byte| byte == delimiter).count();
        let cells = CsvCells::parse(&row, delimiter, (delimiters + 1).min(MAX_COLUMNS)).map_err(|_| {
            format!(
                "the header has more than {} columns, the maximum of a table",
                format_count(MAX_COLUMNS as u64)
            )
        })?;
        let columns: Vec<String> =
            (0..cells.ends.len()).map(|at| cells.decoded(at, encoding).0.into_owned()).collect();
        let mut positions: HashMap<String, (usize, usize)> = HashMap::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            positions.entry(column.clone()).or_insert((at, 0)).1 += 1;
        }
        Ok(CsvHeader { delimiter, encoding, checksum: xxh3_64(&row), row, columns, positions, mark })
    }

    pub(crate) fn column(&self, name: &str) -> Option<usize> {
        self.positions.get(name).map(|&(first, _)| first)
    }

    /// Encodes the name of an additional column, to be appended to the header. Returns the reason if a column has this
    /// name, or if the encoding of the file lacks a character of the name.
    pub(crate) fn new_column(&self, name: &str) -> Result<Vec<u8>, String> {
        if self.column(name).is_some() {
            return Err(name_taken_reason("column", name));
        }
        let special = ['"', ',', '\t', '\r', '\n', char::from(self.delimiter)];
        let quoted = if name.contains(special) {
            format!("\"{}\"", name.replace('"', "\"\""))
        } else {
            name.to_owned()
        };
        encoding::encode_line(&quoted, self.encoding)
            .ok_or_else(|| format!("the name `{}` cannot be written in {}", excerpt(name), self.encoding))
    }

    /// Returns the reason if the id column or all text columns of the options are missing, or if the name of a
    /// requested column occurs twice.
    fn check(&self, options: &DocumentOptions) -> Result<(), String> {
        let suggestion = |name: &str| {
            format!("{}; the columns are {}", did_you_mean(name, &self.columns), format_names(&self.columns))
        };
        if let Some(name) = options.id_field.as_ref().filter(|name| self.column(name).is_none()) {
            return Err(format!("no id column `{}`{}", excerpt(name), suggestion(name)));
        }
        let names = &options.text_fields;
        if let Some(first) = names.first()
            && names.iter().all(|name| self.column(name).is_none())
        {
            return Err(format!("no text column {}{}", format_names(names), suggestion(first)));
        }
        let wanted = options.text_fields.iter().map(|name| &**name).chain([options.id_name()]);
        for name in wanted.chain(options.extra_field.as_deref()) {
            if self.positions.get(name).is_some_and(|&(_, count)| count > 1) {
                return Err(format!("two columns are named `{}`", excerpt(name)));
            }
        }
        Ok(())
    }

    /// Parses a row that starts on `line`. Returns the reason if the row is malformed. A document without an id
    /// gets the id that `position` returns.
    pub(crate) fn parse(
        &self,
        row: &[u8],
        line: u64,
        options: &DocumentOptions,
        position: impl FnOnce() -> String,
    ) -> Result<ParsedDocument<'static>, String> {
        self.check(options)?;
        check_quotes(row, self.delimiter, line)?;
        let with_lines = |reason| match count_newlines(row) {
            0 => reason,
            more => format!("{reason}; the row covers {}", format_lines(line, line + more)),
        };
        let cells = CsvCells::parse(row, self.delimiter, self.columns.len()).map_err(with_lines)?;
        if cells.ends.len() < self.columns.len() {
            let (found, expected) = (cells.ends.len(), self.columns.len());
            return Err(with_lines(format!("a row of {found} fields, but the header has {expected}")));
        }
        let mut replaced = 0;
        let mut value = |name: &str| {
            let (text, more) = cells.decoded(self.column(name)?, self.encoding);
            replaced += more;
            Some(Cow::Owned(text.into_owned()))
        };
        let id = value(options.id_name()).map(|id| DocumentId::from_text(&id)).transpose()?;
        let texts = options.text_fields.iter().map(|name| value(name)).collect();
        let extra = options.extra_field.as_deref().and_then(&mut value).map(Cow::into_owned);
        RequestedFields { id, texts, extra }.into_document(options, "column", replaced, position)
    }
}

/// The cells of a row, without their quotes.
struct CsvCells {
    bytes: Vec<u8>,
    /// For each cell, the offset in `bytes` at which it ends.
    ends: Vec<usize>,
}

impl CsvCells {
    fn parse(row: &[u8], delimiter: u8, max_cells: usize) -> Result<CsvCells, String> {
        let mut parser = ReaderBuilder::new().delimiter(delimiter).build();
        let (mut bytes, mut ends) = (vec![0; row.len() + 1], vec![0; max_cells + 1]);
        let (mut read, mut written, mut ended) = (0, 0, 0);
        loop {
            let (result, more_read, more_written, more_ended) =
                parser.read_record(&row[read..], &mut bytes[written..], &mut ends[ended..]);
            read += more_read;
            written += more_written;
            ended += more_ended;
            match result {
                ReadRecordResult::InputEmpty | ReadRecordResult::OutputFull => {}
                ReadRecordResult::OutputEndsFull | ReadRecordResult::Record | ReadRecordResult::End => break,
            }
        }
        if ended > max_cells {
            return Err(format!("a row of more than {max_cells} fields, but the header has {max_cells}"));
        }
        ends.truncate(ended);
        Ok(CsvCells { bytes, ends })
    }

    fn decoded(&self, at: usize, encoding: Encoding) -> DecodedText<'_> {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        encoding::decode_line(&self.bytes[start..self.ends[at]], encoding)
    }
}

/// Reader of the rows of a table.
#[derive(Debug)]
pub(crate) struct CsvRows {
    input: Input,
    header: Arc<CsvHeader>,
    splitter: RowSplitter,
}

impl CsvRows {
    /// Reads the header of a table; returns `None` if the input is empty. If the options give no delimiter, and
    /// `default_delimiter` does not yield the requested columns, other delimiters are tried.
    ///
    /// # Errors
    /// [`Error::BadInput`](simstore::Error::BadInput) for a header without the requested columns.
    pub(crate) fn open(
        mut input: Input,
        default_delimiter: u8,
        options: &DocumentOptions,
    ) -> Result<Option<CsvRows>> {
        let default_delimiter = options.delimiter.unwrap_or(default_delimiter);
        let reader = |delimiter| ReaderBuilder::new().delimiter(delimiter).build();
        let limit = options.length_limit();
        let header_limit = limit.with_header_limit(MAX_HEADER_BYTES);
        let mut splitter = RowSplitter { reader: reader(default_delimiter), lines: 0, limit: header_limit };
        let mut row = Vec::new();
        if !splitter.read(&mut input, &mut row)? {
            return Ok(None);
        }
        splitter.limit = limit;
        let header = |delimiter| {
            let header = CsvHeader::new(row.clone(), delimiter, input.encoding(), input.byte_order_mark())?;
            header.check(options).map(|()| header)
        };
        let header = header(default_delimiter).or_else(|reason| {
            if options.delimiter.is_some() {
                return Err(reason);
            }
            // If no delimiter gives the requested columns, the error lists the columns of the most frequent one.
            let mut others =
                DELIMITERS.map(|other| (row.iter().filter(|&&byte| byte == other).count(), other));
            others.sort_by_key(|&(count, other)| (std::cmp::Reverse(count), other != default_delimiter));
            let mut headers = others.into_iter().map(|(_, other)| header(other));
            let first = headers.next().unwrap_or(Err(reason));
            first.or_else(|reason| headers.find_map(Result::ok).ok_or(reason))
        });
        let header = header.map_err(|reason| input.line_error(reason))?;
        if header.delimiter != default_delimiter {
            splitter.reader = reader(header.delimiter);
            input.add_diagnostic(ReadDiagnostic::DetectedDelimiter(header.delimiter.into()));
        }
        Ok(Some(CsvRows { input, header: Arc::new(header), splitter }))
    }

    /// Returns the next row, and the number of its first line; `None` at the end of the file. The row is as in the
    /// file, without the newline at its end.
    ///
    /// # Errors
    /// [`Error::BadInput`](simstore::Error::BadInput) for unreadable bytes, for quotes that are not closed before the end
    /// of the file, and for a row that is too long. After a row that is too long, the next call continues with the next row.
    pub(crate) fn read(&mut self) -> Result<Option<(u64, Vec<u8>)>> {
        let mut row = Vec::new();
        let has_row = self.splitter.read(&mut self.input, &mut row)?;
        Ok(has_row.then(|| (self.input.line(), row)))
    }

    pub(crate) fn path(&self) -> &Arc<Path> {
        self.input.path()
    }

    pub(crate) fn header(&self) -> &Arc<CsvHeader> {
        &self.header
    }
}

/// Finds the ends of rows in a table, whose quoted fields may contain newlines.
#[derive(Debug)]
struct RowSplitter {
    reader: Reader,
    /// Number of newlines read so far.
    lines: u64,
    limit: LengthLimit,
}

impl RowSplitter {
    fn read(&mut self, input: &mut Input, row: &mut Vec<u8>) -> Result<bool> {
        // Skip blank lines. Also skip the newline after a carriage return that ended the last row.
        loop {
            input.set_line(self.lines);
            let bytes = input.fill()?;
            let blank = bytes.iter().take_while(|&byte| matches!(byte, b'\n' | b'\r')).count();
            if blank == 0 {
                break;
            }
            self.lines += count_newlines(&bytes[..blank]);
            input.consume(blank);
        }
        let first_line = self.lines + 1;
        // The contents of the fields are not used.
        let (mut fields, mut ends) = ([0; 1 << 14], [0; 256]);
        let mut length = 0;
        let mut is_ended = false;
        loop {
            input.set_line(self.lines);
            let bytes = input.fill()?;
            if bytes.is_empty() {
                if length == 0 {
                    return Ok(false);
                }
                input.set_line(first_line);
                // A newline ends a row, except within quotes.
                let (result, ..) = self.reader.read_record(b"\n", &mut fields, &mut ends);
                if result != ReadRecordResult::Record {
                    self.reader.reset();
                    let last_line = self.lines + u64::from(!is_ended);
                    return Err(input.line_error(format!(
                        "the file ends within quotes that this row opens; the row covers {} up to the end: close \
                         its quotes, and {QUOTE_ADVICE}",
                        format_lines(first_line, last_line)
                    )));
                }
                break;
            }
            let (result, read, ..) = self.reader.read_record(bytes, &mut fields, &mut ends);
            self.lines += count_newlines(&bytes[..read]);
            length += read;
            is_ended = bytes[..read].last() == Some(&b'\n');
            // The line end may have two more bytes.
            if length <= self.limit.bytes.saturating_add(2) {
                row.extend_from_slice(&bytes[..read]);
            }
            input.consume(read);
            if result == ReadRecordResult::Record {
                break;
            }
        }
        input.set_line(first_line);
        if row.last() == Some(&b'\n') {
            row.pop();
            length -= 1;
        }
        if length > self.limit.bytes {
            let last_line = self.lines + u64::from(!is_ended);
            return Err(match last_line > first_line {
                true => input.line_error(format!(
                    "a row that covers {} is {}; its quotes may not be closed",
                    format_lines(first_line, last_line),
                    self.limit
                )),
                false => input.too_long(self.limit),
            });
        }
        Ok(true)
    }
}

const QUOTE_ADVICE: &str = "write each quote within quotes twice";

/// Returns the reason if text follows a closing quote, which RFC 4180 forbids. The usual cause is a stray
/// quote some rows before, which makes several rows look like one.
fn check_quotes(row: &[u8], delimiter: u8, first_line: u64) -> Result<(), String> {
    let after =
        |at: usize, wanted: u8| row[at..].iter().position(|&byte| byte == wanted).map(|found| at + found + 1);
    let mut field = Some(0);
    while let Some(mut at) = field {
        if row.get(at) == Some(&b'"') {
            loop {
                // Two quotes are an escaped quote.
                let Some(closed) = after(at + 1, b'"') else { return Ok(()) };
                at = closed;
                if row.get(at) != Some(&b'"') {
                    break;
                }
            }
            if row.get(at).is_some_and(|&byte| byte != delimiter && !matches!(byte, b'\r' | b'\n')) {
                let (line, last) =
                    (first_line + count_newlines(&row[..at]), first_line + count_newlines(row));
                return Err(format!(
                    "text after a closing quote on line {line}; the row covers {}: {QUOTE_ADVICE}",
                    format_lines(first_line, last)
                ));
            }
        }
        field = after(at, delimiter);
    }
    Ok(())
}

/// Formats a range of lines for a message: `line 3`, or `lines 3 to 5 (3 lines)`.
fn format_lines(first: u64, last: u64) -> String {
    match last.saturating_sub(first) {
        0 => format!("line {first}"),
        more => format!("lines {first} to {last} ({} lines)", more + 1),
    }
}

fn count_newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|&&byte| byte == b'\n').count() as u64
}
