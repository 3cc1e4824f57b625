//! Computes the fingerprints of documents on all cores.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;

use crate::inputs::item::Item;
use simstore::threads::ensure_pool;
use simstore::{Fingerprint, Result};
use simstore_io::Record;
use simstore_io::formats::ParsedDocument;
use simstore_io::{DocumentOptions, ReadDiagnostic, ReadProgress};
use simstore_io::{Records, records};
use simstore_text::{MinHasher, Profile};

/// A batch is full when its records have this many bytes in total.
const BATCH_BYTES: usize = 8 << 20;
/// A batch is full when it has this many records, even if the records are short.
const BATCH_RECORDS: usize = 1 << 16;

/// Returns the documents of files and folders with their fingerprints, in order.
///
/// Parsing and fingerprinting run on all threads of the current rayon pool, on a batch of about 8 MiB, while the next batch
/// is read.
///
/// # Errors
/// Items are errors as for [`documents`](simstore_io::documents).
pub fn fingerprint_documents<F: Fingerprint>(
    paths: &[PathBuf],
    options: &DocumentOptions,
    profile: &Profile,
) -> FingerprintedDocuments<F> {
    FingerprintedDocuments::new(records(paths, options), options, profile)
}

/// Iterator over documents with their fingerprints. See [`fingerprint_documents`].
#[derive(Debug)]
pub struct FingerprintedDocuments<F> {
    records: Records,
    options: DocumentOptions,
    profile: Profile,
    with_texts: bool,
    hasher: Option<MinHasher>,
    filter: DocumentFilter,
    /// Position of the record that is parsed next (the first one in `read`) among the records of all inputs, from 0.
    ordinal: u64,
    /// Records of the batch that was read last and is not parsed yet.
    read: Vec<Result<Record>>,
    /// Documents of the previous batch that have not been returned yet.
    done: std::vec::IntoIter<Result<Item<F>>>,
}

/// Function that gets the path and line of a document, and returns whether the document gets a fingerprint.
type DocumentPredicate = dyn Fn(&Path, u64) -> bool + Send + Sync;

/// Selects the documents that get fingerprints; `None` selects all.
struct DocumentFilter(Option<Arc<DocumentPredicate>>);

impl fmt::Debug for DocumentFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "some" } else { "all" })
    }
}

impl<F> FingerprintedDocuments<F> {
    pub(crate) fn new(records: Records, options: &DocumentOptions, profile: &Profile) -> Self {
        FingerprintedDocuments {
            records: records.with_projection(true),
            options: options.clone(),
            profile: profile.clone(),
            with_texts: false,
            hasher: None,
            filter: DocumentFilter(None),
            ordinal: 0,
            read: Vec::new(),
            done: Vec::new().into_iter(),
        }
    }

    /// Makes the iterator return each document with its text, in [`Item::text`].
    #[must_use]
    pub fn with_texts(self) -> Self {
        FingerprintedDocuments { with_texts: true, ..self }
    }

    /// Makes the iterator compute MinHash signatures too. The first band of a document's signature becomes its fingerprint.
    #[must_use]
    pub fn with_signatures(self, hasher: &MinHasher) -> Self {
        FingerprintedDocuments { hasher: Some(hasher.clone()), ..self }
    }

    /// Makes fingerprints only for the documents that `is_wanted` accepts, by path and [line](Record::line). The other
    /// documents are returned without fingerprints, for callers that have these already.
    #[must_use]
    pub fn with_filter(self, is_wanted: impl Fn(&Path, u64) -> bool + Send + Sync + 'static) -> Self {
        FingerprintedDocuments { filter: DocumentFilter(Some(Arc::new(is_wanted))), ..self }
    }

    /// Counters of the bytes read and of skipped files. They are ahead of the returned documents by up to two batches, which
    /// are read in advance.
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
    /// Returns the next document. When a batch is fingerprinted, all threads call `check` before each document. If `check`
    /// fails, its error is returned in place of the document.
    pub(crate) fn next_while(&mut self, check: impl Fn() -> Result<()> + Sync) -> Option<Result<Item<F>>> {
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
        let (with_texts, filter, hasher) = (self.with_texts, &self.filter, self.hasher.as_ref());
        let fingerprint = |(at, record): (usize, Result<Record>)| {
            check()?;
            let record = record?;
            let (position, checksum) = (first + at as u64, record.checksum(options));
            let is_wanted = filter.0.as_ref().is_none_or(|accepts| accepts(record.path(), record.line()));
            let ParsedDocument { id, text, replacements, extra, has_position_id, detected_encoding } =
                record.parse(options)?;
            if let Some(encoding) = detected_encoding {
                progress.add_diagnostic(ReadDiagnostic::DetectedEncoding(encoding.name()));
            }
            let (signature, (simhash, lost_most)) = match hasher {
                _ if !is_wanted => (None, (None, false)),
                Some(hasher) => {
                    let (signature, lost_most) = hasher.signature_and_check(&text);
                    (signature, (signature.map(|signature| signature.first_band()), lost_most))
                }
                None => (None, profile.fingerprint_and_check(&text)),
            };
            if lost_most {
                progress.add_diagnostic(ReadDiagnostic::MostWordsRemoved);
            }
            Ok(Item {
                id,
                fingerprint: simhash.map(|simhash| simhash.fingerprint),
                feature_count: simhash.map(|simhash| simhash.features),
                signature,
                text_bytes: text.len() as u64,
                text: with_texts.then(|| text.into_owned()),
                replacements,
                extra,
                position,
                path: Arc::clone(record.shared_path()),
                line: record.line(),
                checksum,
                has_id: true,
                has_position_id,
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
