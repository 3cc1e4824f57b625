//! Documents and fingerprints from the inputs of a command, as one stream.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use simstore::corpus::{
    self, DocumentFormat, DocumentId, DocumentOptions, Encoding, InputKind, Record, fingerprint_documents,
};
use simstore::text::Profile;
use simstore::{Error, Fingerprint};

use crate::failure::{Failure, Outcome, complain};
use crate::numbers::{grouped, parse_bytes};
use crate::progress::Progress;

/// Malformed lines that are printed one by one under `--skip-bad`.
const BAD_LINES_SHOWN: u64 = 10;

/// What inputs are, for the long help of commands that read documents and fingerprints.
pub(crate) const INPUTS_HELP: &str = "\
Inputs are documents (.jsonl, .ndjson, .json: one JSON object a line; .csv, .tsv: tables whose first row names the \
columns; .parquet; .warc, .wet: web archives; .txt, .md, .html: one text each; folders of these, hidden files left \
out, links followed; patterns like 'corpus/**/*.csv') or fingerprints (.hex, .tsv: lines HEX or HEX<TAB>ID; .u64, \
.u128: raw, little-endian), not both at once. .gz, .zst, .bz2 and .xz are decompressed. `-` is standard input; it \
and other files are judged by their first bytes.";

/// Which parts of which documents are read, and how they become fingerprints.
#[derive(Debug, Args)]
#[command(next_help_heading = "Documents")]
pub(crate) struct DocumentArgs {
    /// How a text becomes features: auto, words-N, chars-N or jieba-N; then, after commas,
    /// strip-markup or keep-front-matter [default: auto]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<Profile>,
    /// The field or column that holds a document's id [default: `id`, or FILE:LINE where there is none]
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// The field or column that holds the text; repeatable, fields are joined [default: `text`]
    #[arg(long = "text-field", value_name = "FIELD")]
    text_fields: Vec<String>,
    /// Read all files as jsonl, csv, tsv, parquet, warc or text, whatever they are called; of folders, all
    /// files that are not hidden [default: by name and content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<DocumentFormat>,
    /// The encoding of texts: utf-8, gb18030, big5, ...; auto is UTF-8, and texts and web pages that are not
    /// nearly that are judged by what they declare and hold. What is malformed is replaced
    #[arg(long, value_name = "NAME", default_value = "auto")]
    encoding: Encoding,
    /// The longest document that is read: a line, a row, a text
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = parse_bytes)]
    max_document: u64,
    /// Report malformed documents and files that cannot be read, count them and go on; without it the first
    /// one ends the command
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

impl DocumentArgs {
    pub(crate) fn options(&self) -> DocumentOptions {
        let mut options = DocumentOptions {
            id_field: self.id_field.clone(),
            format: self.format,
            encoding: self.encoding,
            max_bytes: usize::try_from(self.max_document).unwrap_or(usize::MAX),
            ..DocumentOptions::default()
        };
        if !self.text_fields.is_empty() {
            options.text_fields.clone_from(&self.text_fields);
        }
        options
    }

    pub(crate) fn profile(&self) -> Profile {
        self.profile.unwrap_or_default()
    }

    /// What all inputs hold: documents, where their format is given.
    pub(crate) fn kind(&self, inputs: &[PathBuf]) -> Outcome<InputKind> {
        if self.format.is_some() {
            return check_read_once(inputs).map(|()| InputKind::Documents);
        }
        detect_kind(inputs)
    }
}

/// Whether an input is standard input, a pipe or a device.
pub(crate) fn is_read_once(input: &Path) -> bool {
    input.as_os_str() == "-"
        || input.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Checks that no pipe is named twice.
fn check_read_once(inputs: &[PathBuf]) -> Outcome {
    for (at, input) in inputs.iter().enumerate() {
        if is_read_once(input) && inputs[..at].contains(input) {
            let name = if input.as_os_str() == "-" {
                "standard input (`-`)".into()
            } else {
                input.to_string_lossy()
            };
            return Err(Failure::Usage(format!("{name} can be read only once")));
        }
    }
    Ok(())
}

/// What all inputs hold. What cannot be opened has no say; the reading will complain of it.
fn detect_kind(inputs: &[PathBuf]) -> Outcome<InputKind> {
    check_read_once(inputs)?;
    let mut first: Option<(&Path, InputKind)> = None;
    for input in inputs {
        let kind = match InputKind::detect(input) {
            Err(Error::BadInput { .. }) => continue,
            kind => kind?,
        };
        match first {
            None => first = Some((input, kind)),
            Some((_, other)) if other == kind => {}
            Some((other, _)) => {
                let (documents, fingerprints) = if kind == InputKind::Documents {
                    (input.as_path(), other)
                } else {
                    (other, input.as_path())
                };
                return Err(Failure::Usage(format!(
                    "inputs must all be documents or all be fingerprints: {} holds documents, {} fingerprints",
                    documents.display(),
                    fingerprints.display()
                )));
            }
        }
    }
    Ok(first.map_or(InputKind::Documents, |(_, kind)| kind))
}

/// A document or a fingerprint of an input.
#[derive(Debug)]
pub(crate) struct Item<F> {
    pub(crate) id: DocumentId,
    /// `None`: an empty text.
    pub(crate) fingerprint: Option<F>,
    /// Distinct features of the text.
    pub(crate) features: Option<u32>,
    /// Malformed sequences of bytes in the document that became U+FFFD.
    pub(crate) replaced: u64,
    /// Position among all of all inputs, malformed ones included, from 0.
    pub(crate) position: u64,
    /// The document as it stands, if [`visit_documents`] was to keep it.
    pub(crate) record: Option<Record>,
    path: Arc<Path>,
    line: u64,
}

impl<F> Item<F> {
    #[cfg(test)]
    pub(crate) fn new(position: u64, fingerprint: Option<F>) -> Self {
        let path: Arc<Path> = Arc::from(Path::new("-"));
        let id = DocumentId::Number(position);
        Item {
            id,
            fingerprint,
            features: None,
            replaced: 0,
            position,
            record: None,
            path,
            line: position + 1,
        }
    }

    /// The failure of a visitor that finds the item to be malformed.
    pub(crate) fn bad(&self, reason: String) -> Failure {
        Failure::Engine(Error::BadInput { path: self.path.to_path_buf(), line: self.line, reason })
    }
}

/// How many items of which kind were read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// All that were not malformed.
    pub(crate) read: u64,
    pub(crate) empty: u64,
    pub(crate) short: u64,
    pub(crate) bad: u64,
    /// Documents in which something was replaced.
    pub(crate) replaced: u64,
}

impl Counts {
    /// Says what a person should know about the texts.
    pub(crate) fn warn(&self, kind: InputKind, progress: &Progress) {
        if self.bad > 0 {
            complain(&format!("warning: {} malformed, skipped", count_of(self.bad, "line")));
        }
        if self.replaced > 0 {
            complain(&format!(
                "warning: {} with characters that are malformed, and were replaced; does --encoding fit?",
                count_of(self.replaced, "document")
            ));
        }
        if kind == InputKind::Documents && self.empty > 0 {
            progress.say(&format!(
                "{} without text: they get no fingerprint and match nothing",
                count_of(self.empty, "document")
            ));
        }
        if self.short > 0 {
            complain(&format!(
                "warning: {} so short that the fingerprints are unreliable",
                count_of(self.short, "document")
            ));
        }
    }
}

/// A count and what is counted: `1 line`, `2 lines`.
pub(crate) fn count_of(count: u64, what: &str) -> String {
    format!("{} {what}{}", grouped(count), if count == 1 { "" } else { "s" })
}

/// Malformed lines: the first one ends the command, or all are counted.
#[derive(Debug)]
pub(crate) struct BadLines {
    pub(crate) skip: bool,
    pub(crate) count: u64,
}

impl BadLines {
    /// Counts a malformed line if these are skipped; else, and for other failures, hands the failure back.
    pub(crate) fn take(&mut self, failure: Failure) -> Outcome {
        match failure {
            Failure::Engine(error @ Error::BadInput { .. }) if self.skip => {
                self.count += 1;
                if self.count <= BAD_LINES_SHOWN {
                    complain(&error.to_string());
                }
                if self.count == BAD_LINES_SHOWN + 1 {
                    complain("more malformed lines follow, they are only counted");
                }
                Ok(())
            }
            other => Err(other),
        }
    }
}

/// Visits all items of the inputs in order. A visitor may find one to be malformed by [`Item::bad`].
pub(crate) fn visit<F: Fingerprint>(
    inputs: &[PathBuf],
    kind: InputKind,
    args: &DocumentArgs,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    match kind {
        InputKind::Documents => visit_documents(inputs, args, false, progress, visitor),
        InputKind::Fingerprints => visit_fingerprints(inputs, args.skip_bad, progress, visitor),
    }
}

/// As [`visit`], for documents, with each as it stands in its file if `with_records` is set.
pub(crate) fn visit_documents<F: Fingerprint>(
    inputs: &[PathBuf],
    args: &DocumentArgs,
    with_records: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let mut documents = fingerprint_documents::<F>(inputs, &args.options(), &args.profile());
    if with_records {
        documents = documents.with_records();
    }
    visit_each(documents, "documents", args.skip_bad, progress, visitor, |_, document| Item {
        id: document.id,
        fingerprint: document.simhash.map(|simhash| simhash.fingerprint),
        features: document.simhash.map(|simhash| simhash.features),
        replaced: document.replaced,
        position: document.ordinal,
        record: document.record,
        path: document.path,
        line: document.line,
    })
}

/// As [`visit`], for inputs that can only be fingerprints.
pub(crate) fn visit_fingerprints<F: Fingerprint>(
    inputs: &[PathBuf],
    skip_bad: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let records = corpus::fingerprints::<F>(inputs);
    visit_each(records, "fingerprints", skip_bad, progress, visitor, |position, record| Item {
        id: record.id,
        fingerprint: Some(record.fingerprint),
        features: None,
        replaced: 0,
        position,
        record: None,
        path: record.path,
        line: record.line,
    })
}

/// Reads all fingerprints of inputs that can only be fingerprints, and visits the ids: positions among all, malformed
/// ones included, and the id of the first of them, from which the others are numbered. So those of a raw file
/// come by the block.
pub(crate) fn read_fingerprints<F: Fingerprint>(
    inputs: &[PathBuf],
    skip_bad: bool,
    progress: &Progress,
    fingerprints: &mut Vec<F>,
    mut visitor: impl FnMut(Range<u64>, DocumentId),
) -> Outcome<Counts> {
    let mut counter = progress.counter("fingerprints");
    let mut bad = BadLines { skip: skip_bad, count: 0 };
    let mut records = corpus::fingerprints::<F>(inputs);
    let mut position = 0;
    loop {
        let block = records.read_block(fingerprints)?;
        if block > 0 {
            visitor(position..position + block, DocumentId::Number(position));
            position += block;
            counter.add(block);
            continue;
        }
        match records.next() {
            None => break,
            Some(Ok(record)) => {
                fingerprints.push(record.fingerprint);
                visitor(position..position + 1, record.id);
            }
            Some(Err(error)) => bad.take(error.into())?,
        }
        position += 1;
        counter.add(1);
    }
    Ok(Counts { read: position - bad.count, bad: bad.count, ..Counts::default() })
}

fn visit_each<F: Fingerprint, R>(
    records: impl Iterator<Item = simstore::Result<R>>,
    what: &'static str,
    skip_bad: bool,
    progress: &Progress,
    mut visitor: impl FnMut(Item<F>) -> Outcome,
    item: impl Fn(u64, R) -> Item<F>,
) -> Outcome<Counts> {
    let mut counter = progress.counter(what);
    let mut bad = BadLines { skip: skip_bad, count: 0 };
    let mut counts = Counts::default();
    for (position, record) in (0..).zip(records) {
        let visited = record.map_err(Failure::from).and_then(|record| {
            let item = item(position, record);
            let (empty, features, replaced) = (item.fingerprint.is_none(), item.features, item.replaced);
            visitor(item)?;
            counts.read += 1;
            counts.empty += u64::from(empty);
            counts.replaced += u64::from(replaced > 0);
            counts.short += u64::from(features.is_some_and(|n| n < simstore::text::SHORT_TEXT_FEATURES));
            Ok(())
        });
        if let Err(failure) = visited {
            bad.take(failure)?;
        }
        counter.add(1);
    }
    counts.bad = bad.count;
    Ok(counts)
}
