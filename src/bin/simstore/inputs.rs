//! Documents and fingerprints from the inputs of a command, as one stream.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use simstore::corpus::{
    self, DocumentFormat, DocumentId, DocumentOptions, Encoding, FingerprintRecord, FingerprintedDocuments,
    InputKind, Records, fingerprint_documents, input_files,
};
use simstore::text::{Profile, SHORT_TEXT_FEATURES};
use simstore::{Error, Fingerprint};

use crate::failure::{Failure, Outcome, complain};
use crate::numbers::{grouped, parse_bytes};
use crate::profile::{ProfileArgs, check_bits};
use crate::progress::{Counter, Progress};

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
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
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
    /// Bytes of the text.
    pub(crate) text_bytes: u64,
    /// Characters that were not in the encoding of the file.
    pub(crate) replaced: u64,
    /// The value of the further field that was asked for.
    pub(crate) extra: Option<String>,
    /// Position among all of all inputs, malformed ones included, from 0.
    pub(crate) position: u64,
    /// The file that it came from, and where it starts there.
    pub(crate) path: Arc<Path>,
    pub(crate) line: u64,
    /// Of what stands there: see [`Record::checksum`](corpus::Record::checksum).
    pub(crate) checksum: u64,
    /// Whether the id stands there; else it is a position.
    pub(crate) has_id: bool,
}

impl<F: Fingerprint> Item<F> {
    #[cfg(test)]
    pub(crate) fn new(position: u64, fingerprint: Option<F>) -> Self {
        let path: Arc<Path> = Arc::from(Path::new("-"));
        let id = DocumentId::Number(position);
        Item {
            id,
            fingerprint,
            features: None,
            text_bytes: 0,
            replaced: 0,
            extra: None,
            position,
            path,
            line: position + 1,
            checksum: 0,
            has_id: false,
        }
    }

    fn of_fingerprint(position: u64, record: FingerprintRecord<F>) -> Self {
        let checksum = record.checksum();
        Item {
            id: record.id,
            fingerprint: Some(record.fingerprint),
            features: None,
            text_bytes: 0,
            replaced: 0,
            extra: None,
            position,
            checksum,
            has_id: record.has_id,
            path: record.path,
            line: record.line,
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
    pub(crate) replaced: u64,
    pub(crate) text_bytes: u64,
}

impl Counts {
    /// Counts an item that is not malformed.
    pub(crate) fn count<F>(&mut self, item: &Item<F>) {
        self.read += 1;
        self.empty += u64::from(item.fingerprint.is_none());
        self.short += u64::from(item.features.is_some_and(|features| features < SHORT_TEXT_FEATURES));
        self.replaced += item.replaced;
        self.text_bytes += item.text_bytes;
    }

    /// Adds the counts of other items.
    pub(crate) fn add(&mut self, other: Counts) {
        self.read += other.read;
        self.empty += other.empty;
        self.short += other.short;
        self.bad += other.bad;
        self.replaced += other.replaced;
        self.text_bytes += other.text_bytes;
    }

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
        if self.replaced > 0 {
            complain(&format!(
                "warning: {} not in the encoding of the input, replaced by U+FFFD; `--encoding` names another",
                count_of(self.replaced, "character")
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

/// Lets documents be read a second time that can be read only once: they are put aside on disk.
pub(crate) fn put_aside(inputs: &[PathBuf]) -> Outcome {
    for input in inputs.iter().filter(|input| is_read_once(input)) {
        corpus::put_aside(input)?;
    }
    Ok(())
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

    /// How many were skipped.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

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

/// Visits all items of the inputs in order, documents with fingerprints by a profile. A visitor may find one to be malformed by [`Item::bad`].
pub(crate) fn visit<F: Fingerprint>(
    inputs: &[PathBuf],
    kind: InputKind,
    args: &DocumentArgs,
    profile: &Profile,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    visit_wanted(inputs, kind, args, profile, progress, |_, _| true, visitor)
}

/// As [`visit`], where fingerprints are made only of those documents that are wanted, by path and line.
pub(crate) fn visit_wanted<F: Fingerprint>(
    inputs: &[PathBuf],
    kind: InputKind,
    args: &DocumentArgs,
    profile: &Profile,
    progress: &Progress,
    wanted: impl Fn(&Path, u64) -> bool + Send + Sync + 'static,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let options = args.options();
    match kind {
        InputKind::Documents => {
            let documents = fingerprint_documents::<F>(inputs, &options, profile).only(wanted);
            visit_made(documents, inputs, &options, profile, args.skip_bad, progress, visitor)
        }
        InputKind::Fingerprints => visit_fingerprints(inputs, args.skip_bad, progress, visitor),
    }
}

/// As [`visit`], for documents.
pub(crate) fn visit_documents<F: Fingerprint>(
    inputs: &[PathBuf],
    options: &DocumentOptions,
    profile: &Profile,
    skip_bad: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let documents = fingerprint_documents::<F>(inputs, options, profile);
    visit_made(documents, inputs, options, profile, skip_bad, progress, visitor)
}

fn visit_made<F: Fingerprint>(
    documents: FingerprintedDocuments<F>,
    inputs: &[PathBuf],
    options: &DocumentOptions,
    profile: &Profile,
    skip_bad: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    check_bits::<F>(profile)?;
    let counter = progress.reading("documents", documents.progress(), || total_bytes(inputs, options));
    visit_each(documents, counter, skip_bad, visitor, |_, document| Item {
        id: document.id,
        fingerprint: document.simhash.map(|simhash| simhash.fingerprint),
        features: document.simhash.map(|simhash| simhash.features),
        text_bytes: document.text_bytes,
        replaced: document.replaced,
        extra: document.extra,
        position: document.ordinal,
        path: document.path,
        line: document.line,
        checksum: document.checksum,
        has_id: true,
    })
}

/// Shows how far documents have been read once more.
pub(crate) fn reading(
    what: &'static str,
    inputs: &[PathBuf],
    options: &DocumentOptions,
    records: &Records,
    progress: &Progress,
) -> Counter {
    progress.reading(what, records.progress(), || total_bytes(inputs, options))
}

/// Bytes of all inputs as they are on disk, if they are known.
fn total_bytes(inputs: &[PathBuf], options: &DocumentOptions) -> Option<u64> {
    // What cannot be listed is told when it is read.
    input_files(inputs, options).filter_map(Result::ok).map(|file| file.bytes).sum()
}

/// As [`visit`], for inputs that can only be fingerprints.
pub(crate) fn visit_fingerprints<F: Fingerprint>(
    inputs: &[PathBuf],
    skip_bad: bool,
    progress: &Progress,
    visitor: impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let records = corpus::fingerprints::<F>(inputs);
    visit_each(records, progress.counter("fingerprints"), skip_bad, visitor, Item::of_fingerprint)
}

/// What is read of fingerprints at a time.
pub(crate) enum Read<'a, F> {
    One(Item<F>),
    /// A block of a raw file: the position of its first, which is its id, and where that stands; the others count on.
    Block {
        fingerprints: &'a [F],
        position: u64,
        path: &'a Arc<Path>,
        line: u64,
    },
}

/// As [`visit_fingerprints`], with those of a raw file by the block, which is much faster.
pub(crate) fn read_fingerprints<F: Fingerprint>(
    inputs: &[PathBuf],
    skip_bad: bool,
    progress: &Progress,
    mut visitor: impl FnMut(Read<F>) -> Outcome,
) -> Outcome<Counts> {
    let mut counter = progress.counter("fingerprints");
    let mut bad = BadLines::new(skip_bad);
    let mut records = corpus::fingerprints::<F>(inputs);
    let (mut block, mut position) = (Vec::new(), 0);
    loop {
        block.clear();
        let count = records.read_block(&mut block)?;
        if count > 0 {
            let Some((path, last)) = records.place() else { break };
            visitor(Read::Block { fingerprints: &block, position, path, line: last + 1 - count })?;
            position += count;
            counter.add(count);
            continue;
        }
        let Some(record) = records.next() else { break };
        let visited = record
            .map_err(Failure::from)
            .and_then(|record| visitor(Read::One(Item::of_fingerprint(position, record))));
        if let Err(failure) = visited {
            bad.take(failure)?;
        }
        position += 1;
        counter.add(1);
    }
    Ok(Counts { read: position - bad.count, bad: bad.count, ..Counts::default() })
}

fn visit_each<F: Fingerprint, R>(
    records: impl Iterator<Item = simstore::Result<R>>,
    mut counter: Counter,
    skip_bad: bool,
    mut visitor: impl FnMut(Item<F>) -> Outcome,
    item: impl Fn(u64, R) -> Item<F>,
) -> Outcome<Counts> {
    let mut bad = BadLines::new(skip_bad);
    let mut counts = Counts::default();
    for (position, record) in (0..).zip(records) {
        let visited = record.map_err(Failure::from).and_then(|record| {
            let item = item(position, record);
            let mut counted = counts;
            counted.count(&item);
            visitor(item)?;
            counts = counted;
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
