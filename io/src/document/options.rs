//! Options for reading documents.

use simstore::error::did_you_mean;
use std::fmt;
use std::str::FromStr;

use crate::bytes::encoding::Encoding;
use crate::bytes::length_limit::{self, LengthLimit};
use simstore::error::excerpt;
use simstore::{Error, Result};

/// Format of a file of documents, after decompression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// One JSON object per line, or one array of objects.
    Jsonl,
    /// Fields separated by commas, and quoted where necessary. The first row names the columns.
    Csv,
    /// Like CSV, with tabs instead of commas.
    Tsv,
    /// Apache Parquet; needs the feature `parquet`.
    Parquet,
    /// A web archive: the pages in its HTTP responses, or the texts in its conversion records (WET).
    Warc,
    /// A whole file as one document: plain text, Markdown, HTML.
    Text,
    /// A tar or zip file. Its members are read like the files of a folder.
    Archive,
}

impl DocumentFormat {
    /// All formats, in the order in which error messages list them.
    pub const ALL: [DocumentFormat; 7] = [
        DocumentFormat::Jsonl,
        DocumentFormat::Csv,
        DocumentFormat::Tsv,
        DocumentFormat::Parquet,
        DocumentFormat::Warc,
        DocumentFormat::Text,
        DocumentFormat::Archive,
    ];

    /// Name of the format in options: `jsonl`, `csv`, `tsv`, `parquet`, `warc`, `text`, or `archive`.
    pub fn name(self) -> &'static str {
        match self {
            DocumentFormat::Jsonl => "jsonl",
            DocumentFormat::Csv => "csv",
            DocumentFormat::Tsv => "tsv",
            DocumentFormat::Parquet => "parquet",
            DocumentFormat::Warc => "warc",
            DocumentFormat::Text => "text",
            DocumentFormat::Archive => "archive",
        }
    }
}

impl fmt::Display for DocumentFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for DocumentFormat {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        DocumentFormat::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = DocumentFormat::ALL.map(DocumentFormat::name).join(", ");
            let meant = did_you_mean(name, DocumentFormat::ALL.map(DocumentFormat::name));
            Error::BadArgument(format!("unknown format `{}`{meant}: expected one of {names}", excerpt(name)))
        })
    }
}

/// Options for reading documents.
///
/// A *field* is a field of a JSON object, a column of a table, or a header of a WARC record. Text files have
/// no fields. The name `a.b` means the field `b` of the JSON object or Parquet struct `a`, unless there is a
/// field named `a.b`.
///
/// ```
/// use simstore_io::DocumentOptions;
///
/// let options = DocumentOptions { id_field: Some("url".into()), ..DocumentOptions::default() };
/// assert_eq!(options.text_fields, ["text"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentOptions {
    /// Name of the field that holds the id, a string or an unsigned integer of 64 bits. Each document must have this
    /// field, except text files, whose id is their path.
    ///
    /// Default: `None`. Then the id is the value of the field `id` or, without such a field, `PATH:LINE`; the id of a
    /// WARC record is the value of its header `WARC-Target-URI`.
    pub id_field: Option<String>,
    /// Names of the fields that hold the text. The values of several fields are joined by newlines; a null value counts
    /// as empty. A JSON object with none of these fields is malformed, and so is a table with none of these
    /// columns. If the list is empty, the text of every JSON object and of every row is empty.
    ///
    /// Default: `text`. WARC records and text files have one text, and do not use this option.
    pub text_fields: Vec<String>,
    /// Name of a further field, whose value is returned with each document.
    pub extra_field: Option<String>,
    /// Format of all files and of all members of archives. `None`: detected by name and content.
    pub format: Option<DocumentFormat>,
    /// Field separator of CSV and TSV, an ASCII character. `None`: a comma in CSV, a tab in TSV. If the header then
    /// lacks the text or id columns, a comma, a semicolon, a tab, and a vertical bar are tried.
    pub delimiter: Option<u8>,
    /// Encoding of the input.
    pub encoding: Encoding,
    /// Maximum length in bytes of a document, which is a line, a row, a WARC record, or a text file. Default:
    /// 1 GiB.
    pub max_bytes: usize,
    /// Memory budget in bytes. `None`, the default, means no limit.
    ///
    /// A document may be as long as one sixteenth of the budget, or 1 MiB if that is more. Decompressing a
    /// file may take one quarter of the budget, or 16 MiB if that is more. A longer document is refused, and so is a
    /// file whose decompression needs more memory.
    pub memory: Option<u64>,
}

impl DocumentOptions {
    /// Returns the length limit of a document: [`max_bytes`](Self::max_bytes), or a share of [`memory`](Self::memory)
    /// if that is smaller.
    pub(crate) fn length_limit(&self) -> LengthLimit {
        LengthLimit::from_options(self.max_bytes, self.memory)
    }

    /// Returns the limit in bytes on the memory to decompress one file; `None` for no limit.
    pub(crate) fn decompression_memory(&self) -> Option<u64> {
        self.memory.map(length_limit::decompression_memory)
    }
}

impl Default for DocumentOptions {
    fn default() -> Self {
        DocumentOptions {
            id_field: None,
            text_fields: vec!["text".to_owned()],
            extra_field: None,
            format: None,
            delimiter: None,
            encoding: Encoding::AUTO,
            max_bytes: 1 << 30,
            memory: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_formats() {
        for format in DocumentFormat::ALL {
            assert_eq!(format.to_string().parse::<DocumentFormat>().unwrap(), format);
        }
        let error = "xml".parse::<DocumentFormat>().unwrap_err().to_string();
        assert!(error.ends_with("expected one of jsonl, csv, tsv, parquet, warc, text, archive"), "{error}");
    }
}
