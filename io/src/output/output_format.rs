//! Determines the format of an output file by its name.

use std::path::Path;

use simstore::{Error, Result};

use crate::formats::detect::{self, Format, extension};
use crate::{Compression, DocumentFormat};

/// Extensions of formats and compressions that simstore cannot write. Output names with them are refused.
const UNSUPPORTED_EXTENSIONS: [&str; 26] = [
    "7z", "arrow", "avro", "br", "db", "doc", "docx", "duckdb", "feather", "ipc", "lz", "lz4", "lzma", "ods",
    "orc", "pdf", "pkl", "rar", "sqlite", "sz", "tar", "tgz", "xls", "xlsx", "z", "zip",
];

/// Returns the format that the name of an output implies, not counting the extension of a compression. Returns `None`
/// for an unknown extension, an archive, and standard output.
pub fn format_from_name(path: &Path) -> Option<Format> {
    detect::format_from_name(path).filter(|format| *format != Format::Documents(DocumentFormat::Archive))
}

/// Checks that the name of an output implies no format or compression that cannot be written.
///
/// # Errors
/// [`Error::BadArgument`] if the name implies one; the message says what can be written instead.
pub fn check_name(path: &Path) -> Result<()> {
    let refused = |reason: &str| Err(Error::BadArgument(format!("{}: {reason}", path.display())));
    if format_from_name(path) == Some(Format::Documents(DocumentFormat::Parquet)) {
        if Compression::from_name(path) != Compression::None {
            return refused("Parquet is compressed inside; name it .parquet");
        }
        if cfg!(not(feature = "parquet")) {
            return refused(
                "this simstore was built without Parquet; build it with the feature `parquet`, or write .csv or .jsonl",
            );
        }
    }
    match extension(path).filter(|extension| UNSUPPORTED_EXTENSIONS.contains(&&**extension)) {
        Some(extension) => refused(&format!(
            "cannot write .{extension} files; supported compressions are .gz, .zst, .bz2 and .xz"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ask_for_formats() {
        let documents = |format| Some(Format::Documents(format));
        for (name, expected) in [
            ("a.jsonl", documents(DocumentFormat::Jsonl)),
            ("b/a.JSON.gz", documents(DocumentFormat::Jsonl)),
            ("a.x.csv.zst", documents(DocumentFormat::Csv)),
            ("a.tsv", documents(DocumentFormat::Tsv)),
            ("a.wet.xz", documents(DocumentFormat::Warc)),
            ("a.txt", documents(DocumentFormat::Text)),
            ("a.hex.bz2", Some(Format::HexLines)),
            ("a.u128", Some(Format::Raw { bits: 128 })),
            ("jsonl", None),
            ("a.gz", None),
            ("a.2026", None),
            ("a.tgz", None),
            ("a.tbz2", None),
            ("-", None),
        ] {
            assert_eq!(format_from_name(Path::new(name)), expected, "{name}");
        }
        for name in ["a.xlsx", "a.csv.lz4", "a.zip", "a.tar.gz", "a.parquet.gz", "A.TGZ"] {
            assert!(check_name(Path::new(name)).is_err(), "{name}");
        }
        for name in ["-", "a", "a.csv", "a.csv.gz", "a.txt", ".gz"] {
            assert!(check_name(Path::new(name)).is_ok(), "{name}");
        }
    }
}
