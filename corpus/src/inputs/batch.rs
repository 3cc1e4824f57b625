//! Documents to fingerprints, on all cores.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::inputs::item::Item;
use simstore::threads::ensure_pool;
use simstore::{Fingerprint, Result};
use simstore_io::Record;
use simstore_io::formats::Parsed;
use simstore_io::{DocumentOptions, ReadNote, ReadProgress};
use simstore_io::{Records, records};
use simstore_text::{Profile, Sketcher};

/// A batch is full with this many bytes of records, or this many records.
const BATCH_BYTES: usize = 8 << 20;
const BATCH_RECORDS: usize = 1 << 16;

/// The fingerprints of the documents of files and folders, in order.
///
/// Parsing and fingerprinting run on all threads of the current rayon pool, a batch of some 8 MiB
/// at a time, while the next batch is read.
///
/// # Errors
/// As [`documents`](simstore_io::documents).
pub fn fingerprint_documents<F: Fingerprint>(
    paths: &[PathBuf],
    options: &DocumentOptions,
    profile: &Profile,
) -> FingerprintedDocuments<F> {
    FingerprintedDocuments::new(records(paths, options), options, profile)
}

/// An iterator over the fingerprints of documents: see [`fingerprint_documents`].
#[derive(Debug)]
pub struct FingerprintedDocuments<F> {
    records: Records,
    options: DocumentOptions,
    profile: Profile,
    with_texts: bool,
    sketcher: Option<Sketcher>,
    wanted: Wanted,
    /// The position of the first record of `read`.
    ordinal: u64,
    /// The batch that was read last.
    read: Vec<Result<Record>>,
    /// Documents of the previous batch that are still to be returned.
    done: std::vec::IntoIter<Result<Item<F>>>,
}

/// Whether a document is wanted, by path and line.
type IsWanted = dyn Fn(&Path, u64) -> bool + Send + Sync;

/// Which documents get fingerprints; `None`: all.
struct Wanted(Option<Arc<IsWanted>>);

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some" } else { "all" })
    }
}

impl<F> FingerprintedDocuments<F> {
    pub(crate) fn new(records: Records, options: &DocumentOptions, profile: &Profile) -> Self {
        FingerprintedDocuments {
            records: records.projected(true),
            options: options.clone(),
            profile: profile.clone(),
            with_texts: false,
            sketcher: None,
            wanted: Wanted(None),
            ordinal: 0,
            read: Vec::new(),
            done: Vec::new().into_iter(),
        }
    }

    /// Returns the text of each document too.
    #[must_use]
    pub fn with_texts(self) -> Self {
        FingerprintedDocuments { with_texts: true, ..self }
    }

    /// Makes sketches too. The first sketch becomes the fingerprint.
    #[must_use]
    pub fn with_sketches(self, sketcher: &Sketcher) -> Self {
        FingerprintedDocuments { sketcher: Some(sketcher.clone()), ..self }
    }

    /// Makes fingerprints only of the documents that are wanted, by path and [line](Record::line): for callers that
    /// already have the other fingerprints.
    #[must_use]
    pub fn only(self, wanted: impl Fn(&Path, u64) -> bool + Send + Sync + 'static) -> Self {
        FingerprintedDocuments { wanted: Wanted(Some(Arc::new(wanted))), ..self }
    }

    /// Progress of the reading. Reading is a few batches ahead of the returned documents.
    pub fn progress(&self) -> Arc<ReadProgress> {
        self.records.progress()
    }
}

fn read_batch(records: &mut Records) -> Vec<Result<Record>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while bytes < BATCH_BYTES && batch.len() < BATCH_RECORDS {
        let Some(record) = records.next() else { break };
        bytes += record.as_ref().map_or(0, Record::size);
        batch.push(record);
    }
    batch
}

impl<F: Fingerprint> FingerprintedDocuments<F> {
    /// The next document. All threads call `go_on` before each document of a batch.
    pub(crate) fn next_while(&mut self, go_on: impl Fn() -> Result<()> + Sync) -> Option<Result<Item<F>>> {
        if let Some(document) = self.done.next() {
            return Some(document);
        }
        if let Err(error) = ensure_pool() {
            return Some(Err(error));
        }
        let mut batch = std::mem::take(&mut self.read);
        if batch.is_empty() {
            batch = read_batch(&mut self.records);
        }
        let (first, length) = (self.ordinal, batch.len() as u64);
        let progress = self.records.progress();
        let (options, profile, records) = (&self.options, &self.profile, &mut self.records);
        let (with_texts, wanted, sketcher) = (self.with_texts, &self.wanted, self.sketcher.as_ref());
        let fingerprint = |(at, record): (usize, Result<Record>)| {
            go_on()?;
            let record = record?;
            let (position, checksum) = (first + at as u64, record.checksum(options));
            let is_wanted = wanted.0.as_ref().is_none_or(|wanted| wanted(record.path(), record.line()));
            let Parsed { id, text, replaced, extra, is_placed, guessed } = record.parse(options)?;
            if let Some(encoding) = guessed {
                progress.note(ReadNote::Encoding(encoding.name()));
            }
            let (sketched, (simhash, lost_most)) = match sketcher {
                _ if !is_wanted => (None, (None, false)),
                Some(sketcher) => {
                    let (sketched, lost_most) = sketcher.sketch_and_check(&text);
                    (sketched, (sketched.map(|sketched| sketched.first()), lost_most))
                }
                None => (None, profile.fingerprint_and_check(&text)),
            };
            if lost_most {
                progress.note(ReadNote::LostWords);
            }
            Ok(Item {
                id,
                fingerprint: simhash.map(|simhash| simhash.fingerprint),
                features: simhash.map(|simhash| simhash.features),
                sketched,
                text_bytes: text.len() as u64,
                text: with_texts.then(|| text.into_owned()),
                replaced,
                extra,
                position,
                path: Arc::clone(record.shared_path()),
                line: record.line(),
                checksum,
                has_id: true,
                is_placed,
            })
        };
        let (done, read) = rayon::join(
            || batch.into_par_iter().enumerate().map(fingerprint).collect::<Vec<_>>(),
            || if length == 0 { Vec::new() } else { read_batch(records) },
        );
        self.ordinal += length;
        self.read = read;
        self.done = done.into_iter();
        self.done.next()
    }
}

impl<F: Fingerprint> Iterator for FingerprintedDocuments<F> {
    type Item = Result<Item<F>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_while(|| Ok(()))
    }
}
