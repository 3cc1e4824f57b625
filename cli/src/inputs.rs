//! Inputs of a command: options for reading documents, and lists of paths and ids.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use simstore::{Fingerprint, Result};
use simstore_corpus::{InputCounts, InputKind, Inputs, Item};
use simstore_io::escape::parse_listed_path;
use simstore_io::{DocumentFormat, DocumentOptions, Encoding};
use simstore_text::Profile;

use crate::command_error::{CommandError, CommandResult};
use crate::numbers::parse_bytes;
use crate::profile_args::{ProfileArgs, check_bits};
use crate::progress::ProgressDisplay;

/// Help text about input formats, for the long help of commands that read documents or fingerprints.
pub(crate) const INPUTS_HELP: &str = "\
Input formats, by extension; other files and standard input (`-`) by their first bytes:
  .jsonl .ndjson .json   documents: one JSON object a line, or one array of objects
  .csv .tsv              documents: a table; the first row names the columns
  .parquet               documents: a table
  .warc .wet             documents: a web archive
  .txt .md .html         one document
  .hex .tsv              fingerprints: lines HEX or HEX<TAB>ID
  .u64 .u128             fingerprints: raw little-endian integers
Archives (.zip, .tar, .tar.gz) and directories may hold any of the document formats; directories are read recursively, without \
hidden files. Links are followed; each file is read once. Globs such as 'corpus/**/*.csv' are expanded. .gz, .zst, .bz2 and .xz \
are decompressed. The inputs must be all documents or all fingerprints. Binary files, such as PDF, are an error.";

/// Options for reading documents and making fingerprints.
#[derive(Debug, Args)]
#[command(next_help_heading = "Reading documents")]
pub(crate) struct DocumentArgs {
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// Field or column with the document's id [default: `id`, else FILE:LINE]
    ///
    /// a.b means field b of the object (in Parquet, of the struct) a, unless a field is named a.b. The fields of a web archive record are
    /// its headers: WARC-Target-URI (the default), WARC-Record-ID, WARC-Date, WARC-Payload-Digest, WARC-IP-Address and others. A text
    /// file has its path as id; an archive member has both paths: pages.zip/a/b.txt. Each byte of a path that is not UTF-8 is shown as
    /// \xHH.
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// Field or column with the text; repeat to join several fields [default: `text`]
    ///
    /// A null field is an empty text. A document without the field is invalid, and so is a table without the column; the message lists
    /// the fields that exist. a.b works as in --id-field.
    #[arg(long = "text-field", value_name = "FIELD")]
    text_fields: Vec<String>,
    /// Read every file as jsonl, csv, tsv, parquet, warc or text [default: detected for each file]
    ///
    /// Directories and archives are then read with files of unknown extensions.
    #[arg(long, value_name = "FORMAT")]
    format: Option<DocumentFormat>,
    /// Field separator of .csv and .tsv: one character, or `tab` [default: detected]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// Text encoding: utf-8, gb18030, big5, ...; auto: UTF-8, else detected. Invalid characters are replaced
    ///
    /// With auto, a text file or web page that is mostly not UTF-8 is read in its declared encoding, else in a detected encoding, and a
    /// note names it. A few invalid bytes are replaced and counted. Lines and tables that are mostly not UTF-8 are an error that names
    /// the detected encoding. A byte order mark takes precedence.
    #[arg(long, value_name = "NAME", default_value = "auto")]
    encoding: Encoding,
    /// Maximum size of a document; a longer one is invalid
    ///
    /// A document is a line, a row or a text.
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    max_document: u64,
    /// Read more input paths from this file, one a line; `-` is standard input
    ///
    /// Paths are escaped as in --keep-list; with --null, unescaped.
    #[arg(long, value_name = "FILE")]
    files_from: Option<PathBuf>,
    /// End paths and ids in lists with a zero byte instead of a newline, without escapes, like `find -print0`
    #[arg(long)]
    pub(crate) null: bool,
    /// Skip, report and count invalid documents and unreadable files [default: the first one ends the command]
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// With --skip-bad: write a table of invalid documents: file, line, reason
    ///
    /// Line 0 is the whole file. The extension sets the format: .csv, .jsonl and others.
    #[arg(long, value_name = "FILE", requires = "skip_bad")]
    bad: Option<PathBuf>,
}

impl DocumentArgs {
    pub(crate) fn options(&self) -> DocumentOptions {
        let mut options = DocumentOptions {
            id_field: self.id_field.clone(),
            format: self.format,
            delimiter: self.delimiter,
            encoding: self.encoding,
            max_bytes: usize::try_from(self.max_document).unwrap_or(usize::MAX),
            ..DocumentOptions::default()
        };
        if !self.text_fields.is_empty() {
            options.text_fields.clone_from(&self.text_fields);
        }
        options
    }

    /// Opens the inputs of a command: `paths`, then the paths in the file of `--files-from`. With `--bad`, also creates the
    /// table of invalid documents.
    pub(crate) fn open_inputs(&self, paths: &[PathBuf], progress: &ProgressDisplay) -> CommandResult<Inputs> {
        self.bad.as_deref().map_or(Ok(()), |path| progress.create_malformed_list(path))?;
        let Some(list) = &self.files_from else { return open(paths, self.options(), self.skip_bad) };
        if is_stdin(list) && paths.iter().any(|path| is_stdin(path)) {
            return Err(CommandError::Usage("standard input (`-`) can be read only once".to_owned()));
        }
        let path_of = |(number, entry): (usize, Vec<u8>)| {
            parse_listed_path(&entry, self.null).map_err(|reason| list_entry_error(list, number, &reason))
        };
        let listed = read_list(list, self.null)?.into_iter().map(path_of);
        let paths: Vec<PathBuf> =
            paths.iter().cloned().map(Ok).chain(listed).collect::<CommandResult<_>>()?;
        open(&paths, self.options(), self.skip_bad)
    }

    /// Opens inputs that must be documents. `needed_by` is the command or option that requires documents, for the error message.
    pub(crate) fn open_documents(
        &self,
        paths: &[PathBuf],
        needed_by: &str,
        progress: &ProgressDisplay,
    ) -> CommandResult<Inputs> {
        let inputs = self.open_inputs(paths, progress)?;
        match kind(&inputs)? {
            InputKind::Documents => Ok(inputs),
            InputKind::Fingerprints => Err(CommandError::Usage(format!(
                "{needed_by} needs documents, but the inputs are fingerprints"
            ))),
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Reads the entries of a list file; `-` is standard input. Entries end in a line break, or with `null` in a zero byte.
/// Returns the entries that are not empty, each with its position in the list, such as a line number, counted from 1.
pub(crate) fn read_list(list: &Path, null: bool) -> CommandResult<Vec<(usize, Vec<u8>)>> {
    let mut bytes = Vec::new();
    let read = if is_stdin(list) {
        std::io::stdin().lock().read_to_end(&mut bytes).map(drop)
    } else {
        std::fs::read(list).map(|read| bytes = read)
    };
    read.map_err(|error| CommandError::Failed(format!("{}: cannot read: {error}", list.display())))?;
    let end = if null { b'\0' } else { b'\n' };
    let entries = bytes.split(|&byte| byte == end).map(|entry| match entry {
        [line @ .., b'\r'] if !null => line,
        entry => entry,
    });
    Ok((1..).zip(entries.map(<[u8]>::to_vec)).filter(|(_, entry)| !entry.is_empty()).collect())
}

/// Returns the error for an invalid entry of a list. `number` is the position of the entry in the list, counted from 1.
pub(crate) fn list_entry_error(list: &Path, number: usize, reason: &str) -> CommandError {
    CommandError::Failed(format!(
        "{}:{number}: {reason}; use --null for a list of unescaped names that end in zero bytes",
        list.display()
    ))
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte == b'\t' || byte.is_ascii_punctuation() && byte != b'"' || byte == b' ' => Ok(byte),
        _ => Err("expected one ASCII character, such as `;` or `|`, or `tab`".to_owned()),
    }
}

/// Opens inputs with these options. With `skip_bad`, malformed documents are skipped and counted.
pub(crate) fn open(paths: &[PathBuf], options: DocumentOptions, skip_bad: bool) -> CommandResult<Inputs> {
    Ok(Inputs::new(paths, options).map_err(CommandError::usage)?.skip_malformed(skip_bad))
}

/// Returns whether the inputs are documents or fingerprints; a mix of both is a usage error.
pub(crate) fn kind(inputs: &Inputs) -> CommandResult<InputKind> {
    // If the files cannot be listed, as for a glob without matches, the error is not one of usage, because files come and go.
    inputs.kind().map_err(|error| {
        if inputs.fingerprint_files().is_ok() { CommandError::usage(error) } else { error.into() }
    })
}

/// Passes each document or fingerprint of the inputs to `visitor`, in order. `profile` makes the fingerprints of documents;
/// it must support the width `F`. For an invalid item, `visitor` may return the error [`Item::malformed`].
pub(crate) fn visit<F: Fingerprint>(
    inputs: &Inputs,
    profile: &Profile,
    progress: &ProgressDisplay,
    visitor: impl FnMut(Item<F>) -> Result<()>,
) -> CommandResult<InputCounts> {
    if inputs.kind()? == InputKind::Documents {
        check_bits::<F>(profile)?;
    }
    Ok(inputs.visit(profile, progress, visitor)?)
}
