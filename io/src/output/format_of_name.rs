//! The format that the name of an output file asks for.

use std::path::Path;

use simstore::{Error, Result};

use crate::{Compression, DocumentFormat};

/// The format that a name asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFormat {
    /// Documents, or a table of results in this format.
    Documents(DocumentFormat),
    /// Lines of fingerprints.
    HexLines,
    /// Raw fingerprints.
    Raw,
    /// The name does not say.
    None,
}

/// Extensions of formats and compressions that are never written.
const FOREIGN: [&str; 26] = [
    "7z", "arrow", "avro", "br", "db", "doc", "docx", "duckdb", "feather", "ipc", "lz", "lz4", "lzma", "ods",
    "orc", "pdf", "pkl", "rar", "sqlite", "sz", "tar", "tgz", "xls", "xlsx", "z", "zip",
];

fn extension(path: &Path) -> Option<String> {
    path.extension().map(|extension| extension.to_string_lossy().to_lowercase())
}

/// The format that a name asks for, without its extension of compression; `None` for standard output.
pub fn format(path: &Path) -> NamedFormat {
    let inner = match Compression::of_name(path) {
        Compression::None => path,
        _ => Path::new(path.file_stem().unwrap_or_default()),
    };
    match extension(inner).as_deref() {
        Some("jsonl" | "ndjson" | "json") => NamedFormat::Documents(DocumentFormat::Jsonl),
        Some("csv") => NamedFormat::Documents(DocumentFormat::Csv),
        Some("tsv") => NamedFormat::Documents(DocumentFormat::Tsv),
        Some("parquet") => NamedFormat::Documents(DocumentFormat::Parquet),
        Some("warc" | "wet") => NamedFormat::Documents(DocumentFormat::Warc),
        Some("txt" | "text" | "md" | "markdown" | "htm" | "html") => {
            NamedFormat::Documents(DocumentFormat::Text)
        }
        Some("hex") => NamedFormat::HexLines,
        Some("u64" | "u128") => NamedFormat::Raw,
        _ => NamedFormat::None,
    }
}

/// Refuses a name that asks for an unsupported format.
///
/// # Errors
/// [`Error::BadArgument`], which names the supported outputs.
pub fn check(path: &Path) -> Result<()> {
    let refused = |reason: &str| Err(Error::BadArgument(format!("{}: {reason}", path.display())));
    let compression = Compression::of_name(path);
    if format(path) == NamedFormat::Documents(DocumentFormat::Parquet) {
        if compression != Compression::None {
            return refused("Parquet is compressed inside; name it .parquet");
        }
        if cfg!(not(feature = "parquet")) {
            return refused(
                "this simstore was built without Parquet; build it with the feature `parquet`, or write .csv or .jsonl",
            );
        }
    }
    let inner = Path::new(path.file_stem().unwrap_or_default());
    let inner = if compression == Compression::None { None } else { extension(inner) };
    for extension in [extension(path), inner].into_iter().flatten() {
        if FOREIGN.contains(&extension.as_str()) {
            return refused(&format!(
                "cannot write .{extension} files; supported compressions are .gz, .zst, .bz2 and .xz"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_ask_for_formats() {
        let documents = NamedFormat::Documents;
        for (name, expected) in [
            ("a.jsonl", documents(DocumentFormat::Jsonl)),
            ("b/a.JSON.gz", documents(DocumentFormat::Jsonl)),
            ("a.x.csv.zst", documents(DocumentFormat::Csv)),
            ("a.tsv", documents(DocumentFormat::Tsv)),
            ("a.wet.xz", documents(DocumentFormat::Warc)),
            ("a.txt", documents(DocumentFormat::Text)),
            ("a.hex.bz2", NamedFormat::HexLines),
            ("a.u128", NamedFormat::Raw),
            ("jsonl", NamedFormat::None),
            ("a.gz", NamedFormat::None),
            ("a.2026", NamedFormat::None),
            ("-", NamedFormat::None),
        ] {
            assert_eq!(format(Path::new(name)), expected, "{name}");
        }
        for name in ["a.xlsx", "a.csv.lz4", "a.zip", "a.tar.gz", "a.parquet.gz", "A.TGZ"] {
            assert!(check(Path::new(name)).is_err(), "{name}");
        }
        for name in ["-", "a", "a.csv", "a.csv.gz", "a.txt", ".gz"] {
            assert!(check(Path::new(name)).is_ok(), "{name}");
        }
    }
}
