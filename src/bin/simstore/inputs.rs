//! Documents and fingerprints from the inputs of a command, as one stream.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use simstore::corpus::{self, DocumentId, DocumentOptions, InputKind, Record, fingerprint_documents};
use simstore::text::Profile;
use simstore::{Error, Fingerprint};

use crate::failure::{Failure, Outcome, complain};
use crate::numbers::grouped;
use crate::profile::ProfileArgs;
use crate::progress::Progress;

/// Malformed lines that are printed one by one under `--skip-bad`.
const BAD_LINES_SHOWN: u64 = 10;

/// What inputs are, for the long help of commands that read documents and fingerprints.
pub(crate) const INPUTS_HELP: &str = "\
Inputs are documents (.jsonl, .ndjson, .json: one JSON object a line; .txt, .md, .html: one text each; folders \
of these) or fingerprints (.hex, .tsv: lines HEX or HEX<TAB>ID; .u64, .u128: raw, little-endian), not both at \
once. .gz and .zst are decompressed. `-` is standard input; it and other files are judged by their first bytes.";

/// Which parts of which documents are read, and how they become fingerprints.
#[derive(Debug, Args)]
#[command(next_help_heading = "Documents")]
pub(crate) struct DocumentArgs {
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// The JSON field that holds a document's id [default: `id`, or FILE:LINE where there is none]
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// The JSON field that holds the text; repeatable, fields are joined [default: `text`]
    #[arg(long = "text-field", value_name = "FIELD")]
    text_fields: Vec<String>,
    /// Report malformed lines, count them and go on; without it the first one ends the command
    #[arg(long)]
    pub(crate) skip_bad: bool,
}

impl DocumentArgs {
    pub(crate) fn options(&self) -> DocumentOptions {
        let mut options = DocumentOptions { id_field: self.id_field.clone(), ..DocumentOptions::default() };
        if !self.text_fields.is_empty() {
            options.text_fields.clone_from(&self.text_fields);
        }
        options
    }
}

/// Whether an input is standard input, a pipe or a device.
pub(crate) fn is_read_once(input: &Path) -> bool {
    input.as_os_str() == "-"
        || input.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// What all inputs hold.
pub(crate) fn detect_kind(inputs: &[PathBuf]) -> Outcome<InputKind> {
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
    let mut first: Option<(&Path, InputKind)> = None;
    for input in inputs {
        let kind = InputKind::detect(input)?;
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
        Item { id, fingerprint, features: None, position, record: None, path, line: position + 1 }
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
}

impl Counts {
    /// Says what a person should know about the texts.
    pub(crate) fn warn(&self, kind: InputKind, progress: &Progress) {
        if self.bad > 0 {
            complain(&format!("warning: {} malformed, skipped", count_of(self.bad, "line")));
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
    skip: bool,
    count: u64,
}

impl BadLines {
    pub(crate) fn new(skip: bool) -> Self {
        BadLines { skip, count: 0 }
    }

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

/// Visits all items of the inputs in order, documents with fingerprints by a profile. A visitor may find one to be malformed by [`Item::bad`].
pub(crate) fn visit<F: Fingerprint>(
    inputs: &[PathBuf],
    kind: InputKind,
    args: &DocumentArgs,
    profile: &Profile,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    match kind {
        InputKind::Documents => visit_documents(inputs, args, profile, false, progress, visitor),
        InputKind::Fingerprints => visit_fingerprints(inputs, args.skip_bad, progress, visitor),
    }
}

/// As [`visit`], for documents, with each as it stands in its file if `with_records` is set.
pub(crate) fn visit_documents<F: Fingerprint>(
    inputs: &[PathBuf],
    args: &DocumentArgs,
    profile: &Profile,
    with_records: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let mut documents = fingerprint_documents::<F>(inputs, &args.options(), profile);
    if with_records {
        documents = documents.with_records();
    }
    visit_each(documents, "documents", args.skip_bad, progress, visitor, |_, document| Item {
        id: document.id,
        fingerprint: document.simhash.map(|simhash| simhash.fingerprint),
        features: document.simhash.map(|simhash| simhash.features),
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
    let mut bad = BadLines::new(skip_bad);
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
    let mut bad = BadLines::new(skip_bad);
    let mut counts = Counts::default();
    for (position, record) in (0..).zip(records) {
        let visited = record.map_err(Failure::from).and_then(|record| {
            let item = item(position, record);
            let (empty, features) = (item.fingerprint.is_none(), item.features);
            visitor(item)?;
            counts.read += 1;
            counts.empty += u64::from(empty);
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
