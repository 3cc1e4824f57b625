//! What `simstore dedup --keep` writes: the input without its duplicates.

use std::borrow::Cow;
use std::path::PathBuf;

use bitvec::vec::BitVec;
use simstore::Fingerprint;
use simstore::corpus::{DocumentFormat, DocumentOptions, Record, records};

use crate::corpus::Corpus;
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::spool::Spool;

/// Which documents are kept: all but those that are in a cluster and not its first.
#[derive(Debug)]
pub(crate) struct Kept(BitVec);

/// The line that stands for a document: its own line, or the path of a text file.
pub(crate) fn line(record: &Record) -> Cow<'_, [u8]> {
    match record.bytes() {
        Some(bytes) if record.format() != DocumentFormat::Text => bytes.into(),
        _ => record.path().to_string_lossy().into_owned().into_bytes().into(),
    }
}

impl Kept {
    pub(crate) fn new(documents: usize, clusters: &[Vec<usize>]) -> Self {
        let mut kept = BitVec::repeat(true, documents);
        for document in clusters.iter().flat_map(|cluster| &cluster[1..]) {
            kept.set(*document, false);
        }
        Kept(kept)
    }

    fn documents(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter_ones()
    }

    /// Writes the fingerprints.
    pub(crate) fn write_fingerprints<F: Fingerprint>(
        &self,
        mut output: Output,
        corpus: &Corpus<F>,
    ) -> Outcome {
        for document in self.documents() {
            let hex = corpus.fingerprints[document].to_hex();
            output.line(format_args!("{hex}\t{}", corpus.names.text(document)))?;
        }
        output.finish()
    }

    /// Writes the documents, reading them again.
    pub(crate) fn write_documents<F>(
        &self,
        mut output: Output,
        corpus: &Corpus<F>,
        inputs: &[PathBuf],
        options: &DocumentOptions,
    ) -> Outcome {
        let mut wanted = self.documents().map(|document| corpus.names.position(document));
        let mut next = wanted.next();
        for (position, record) in (0..).zip(records(inputs, options)) {
            if next == Some(position) {
                output.write(&line(&record?))?;
                output.write(b"\n")?;
                next = wanted.next();
            }
        }
        if next.is_some() {
            return Err(Failure::Failed("the documents have changed while they were read".to_owned()));
        }
        output.finish()
    }

    /// Writes the documents, whose lines have been put aside.
    pub(crate) fn write_spooled(&self, mut output: Output, spool: &mut Spool) -> Outcome {
        let mut kept = self.0.iter().by_vals();
        spool.visit(|line| {
            if kept.next() == Some(true) {
                output.write(line)?;
                output.write(b"\n")?;
            }
            Ok(())
        })?;
        output.finish()
    }
}
