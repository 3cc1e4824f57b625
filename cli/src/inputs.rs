//! Documents and fingerprints from the inputs of a command, as one stream.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use simstore::{Error, Fingerprint};
use simstore_corpus::{
    self, DocumentFormat, DocumentId, DocumentOptions, Encoding, FingerprintRecord, FingerprintedDocuments,
    InputKind, Records, fingerprint_documents, input_files,
};
use simstore_text::Profile;

pub(crate) use crate::counts::{Counts, count_of};
use crate::failure::{Failure, Outcome, complain};
use crate::numbers::parse_bytes;
use crate::profile::{ProfileArgs, check_bits};
use crate::progress::{Counter, Progress};

/// Malformed lines that are printed one by one under `--skip-bad`.
const BAD_LINES_SHOWN: u64 = 10;

/// What inputs are, for the long help of commands that read documents and fingerprints.
pub(crate) const INPUTS_HELP: &str = "\
Inputs are documents (.jsonl, .ndjson, .json: one JSON object a line, or one array of objects; .csv, .tsv: tables whose \
first row names the columns; .parquet; .warc, .wet: web archives; .txt, .md, .html: one text each; .zip, .tar, also \
.tar.gz and the like: archives of these; folders of these, hidden files left out, links followed; patterns like \
'corpus/**/*.csv') or fingerprints (.hex, .tsv: lines HEX or HEX<TAB>ID; .u64, .u128: raw, little-endian), not both at \
once. .gz, .zst, .bz2 and .xz are decompressed. `-` is standard input; it and other files are judged by their first \
bytes. What is no text, such as PDF, is refused, whatever it is called. Documents are written again, as by `dedup \
--output`, as they stand; the elements of a JSON array as lines of JSON.";

/// Which parts of which documents are read, and how they become fingerprints.
#[derive(Debug, Args)]
#[command(next_help_heading = "Documents")]
pub(crate) struct DocumentArgs {
    #[command(flatten)]
    pub(crate) profile: ProfileArgs,
    /// The field or column that holds a document's id [default: `id`, or FILE:LINE where there is none]
    ///
    /// a.b is the field b of the object, or of the struct of Parquet, a, unless there is a field of the name a.b. Of a
    /// record of a web archive, fields are its headers: WARC-Target-URI, the default, WARC-Record-ID, WARC-Date,
    /// WARC-Payload-Digest, WARC-IP-Address and what else stands there. The id of a text file is its path, of a member of an
    /// archive that of the archive and its own: pages.zip/a/b.txt.
    #[arg(long, value_name = "FIELD")]
    id_field: Option<String>,
    /// The field or column that holds the text; repeatable, fields are joined [default: `text`]
    ///
    /// A document in which it is null or missing has an empty text. A file in which no document has it is an error that
    /// says which fields there are. a.b is as in --id-field.
    #[arg(long = "text-field", value_name = "FIELD")]
    text_fields: Vec<String>,
    /// Read all files as jsonl, csv, tsv, parquet, warc or text, whatever they are called; of folders and archives, all
    /// files that are not hidden [default: by name and content]
    #[arg(long, value_name = "FORMAT")]
    format: Option<DocumentFormat>,
    /// What stands between the fields of .csv and .tsv: one character, or tab [default: a comma or a tab; or what else gives
    /// the columns that are asked for]
    #[arg(long, value_name = "CHAR", value_parser = parse_delimiter)]
    delimiter: Option<u8>,
    /// The encoding of texts: utf-8, gb18030, big5, ...; auto is UTF-8. What is malformed is replaced
    ///
    /// With auto, texts and web pages that are not nearly UTF-8 are read as what they declare, or else as what they look
    /// like, which is told. Lines and tables that are not nearly UTF-8 are an error, that names the encoding that they look
    /// like. A byte order mark comes before all.
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

    /// What all inputs hold: documents, where their format is given.
    pub(crate) fn kind(&self, inputs: &[PathBuf]) -> Outcome<InputKind> {
        if self.format.is_some() {
            return check_read_once(inputs).map(|()| InputKind::Documents);
        }
        detect_kind(inputs, self.skip_bad)
    }
}

fn parse_delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"tab" | b"\\t" => Ok(b'\t'),
        &[byte] if byte == b'\t' || byte.is_ascii_punctuation() && byte != b'"' || byte == b' ' => Ok(byte),
        _ => Err("expected one character of ASCII, such as `;` or `|`, or tab".to_owned()),
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

/// What all inputs hold. What cannot be read has no say, as long as something else has; the reading will complain of it.
fn detect_kind(inputs: &[PathBuf], skip_bad: bool) -> Outcome<InputKind> {
    check_read_once(inputs)?;
    let mut first: Option<(&Path, InputKind)> = None;
    let mut unread = None;
    for input in inputs {
        let kind = match InputKind::detect(input) {
            Err(error @ Error::BadInput { .. }) => {
                unread.get_or_insert(error);
                continue;
            }
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
    match (first, unread) {
        (Some((_, kind)), _) => Ok(kind),
        (None, Some(error)) if !skip_bad => Err(error.into()),
        (None, _) => Ok(InputKind::Documents),
    }
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

/// Lets documents be read a second time that can be read only once: they are put aside on disk.
pub(crate) fn put_aside(inputs: &[PathBuf]) -> Outcome {
    for input in inputs.iter().filter(|input| is_read_once(input)) {
        simstore_corpus::put_aside(input)?;
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
                    complain("more that is malformed follows, it is only counted");
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
    let read = documents.progress();
    let counter = progress.reading("documents", Arc::clone(&read), || total_bytes(inputs, options));
    let counts = visit_each(documents, counter, skip_bad, visitor, |_, document| Item {
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
    })?;
    progress.note(&read);
    Ok(counts)
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
    let records = simstore_corpus::fingerprints::<F>(inputs);
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
    let mut records = simstore_corpus::fingerprints::<F>(inputs);
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
