//! How documents are read.

use simstore::error::did_you_mean;
use std::fmt;
use std::str::FromStr;

use crate::bytes::encoding::Encoding;
use crate::bytes::limit::{self, Longest};
use simstore::error::excerpt;
use simstore::{Error, Result};

/// The format of a file of documents, below its compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentFormat {
    /// One JSON object a line.
    Jsonl,
    /// Fields between commas, quoted where needed; the first row names the columns.
    Csv,
    /// The same between tabs.
    Tsv,
    /// Apache Parquet; needs the feature `parquet`.
    Parquet,
    /// A web archive: the pages of its responses, or the texts of its conversions (WET).
    Warc,
    /// The whole file is one document: plain text, Markdown, HTML.
    Text,
    /// A tar or zip file, whose members are read as the files of a folder are.
    Archive,
}

impl DocumentFormat {
    /// All formats.
    pub const ALL: [DocumentFormat; 7] = [
        DocumentFormat::Jsonl,
        DocumentFormat::Csv,
        DocumentFormat::Tsv,
        DocumentFormat::Parquet,
        DocumentFormat::Warc,
        DocumentFormat::Text,
        DocumentFormat::Archive,
    ];

    /// Its name: `jsonl`, `csv`, `tsv`, `parquet`, `warc`, `text` or `archive`.
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

/// How documents are read.
///
/// A field is a field of a JSON object, a column of a table, or a header of a WARC record; text files have none. `a.b` is
/// the field `b` of the object, or of the struct of Parquet, `a`, unless there is a field `a.b`.
///
/// ```
/// use simstore_io::DocumentOptions;
///
/// let options = DocumentOptions { id_field: Some("url".into()), ..DocumentOptions::default() };
/// assert_eq!(options.text_fields, ["text"]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentOptions {
    /// The field that holds the id, a string or an integer of 64 bits. Documents must have it if it
    /// is named here. `None`: the field `id`, and documents without it are called `file:line`; of a WARC
    /// record, `WARC-Target-URI`.
    pub id_field: Option<String>,
    /// The fields that hold the text; several are joined by newlines. If they are null, the text is empty. A document without
    /// any of them is malformed, if one is named, and so is a table without these columns. Default: `text`. WARC records and
    /// text files have one text and need no field.
    pub text_fields: Vec<String>,
    /// A further field, whose value is handed out with each document.
    pub extra_field: Option<String>,
    /// The format of all files and of all members of archives. `None`: by name and by content.
    pub format: Option<DocumentFormat>,
    /// The field separator of CSV and TSV, an ASCII character. `None`: a comma or a tab; or, if the first row has the text and
    /// id columns only so, a semicolon, a tab, a bar or a comma.
    pub delimiter: Option<u8>,
    /// How bytes become text.
    pub encoding: Encoding,
    /// The longest document that is read, in bytes: a line, a row, a WARC record or a text file. Default: 1 GiB.
    pub max_bytes: usize,
    /// The memory that the work may take, in bytes; `None`, the default, for no limit. A document longer than both a sixteenth
    /// of it and 1 MiB is refused. So is a compressed file that takes more than both a quarter of it and 16 MiB to unpack.
    pub memory: Option<u64>,
}

impl DocumentOptions {
    /// The longest document that is read.
    pub(crate) fn longest(&self) -> Longest {
        Longest::of_document(self.max_bytes, self.memory)
    }

    /// The most memory that unpacking a file may take.
    pub(crate) fn memory_of_unpacking(&self) -> Option<u64> {
        self.memory.map(limit::memory_of_unpacking)
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
