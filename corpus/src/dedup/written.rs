//! The input without its duplicates, or with the numbers of its clusters.

use std::path::Path;

use bitvec::vec::BitVec;
use simstore::{Error, Fingerprint, Result};

use super::clusters::Cluster;
use super::corpus::Corpus;
use super::files::check_format;
use super::listing::changed;
use crate::output::{Complete, Output};
use crate::watch::{Step, each};
use crate::{Annotation, DocumentFormat, DocumentWriter, Inputs, Watch};

/// What each document is in.
#[derive(Debug)]
pub(super) struct Clustered {
    /// The number of the cluster, from 1; 0 for a document that is in none.
    clusters: Vec<u32>,
    /// Whether it is left when duplicates are taken out.
    kept: BitVec,
}

impl Clustered {
    pub(super) fn new<F: Fingerprint>(documents: usize, clusters: &[Cluster<F>]) -> Self {
        let mut clustered = Clustered { clusters: vec![0; documents], kept: BitVec::repeat(true, documents) };
        for (number, cluster) in (1..).zip(clusters) {
            cluster.members.iter().for_each(|&member| clustered.clusters[member] = number);
            cluster.removed().for_each(|member| clustered.kept.set(member, false));
        }
        clustered
    }

    /// The documents that are left, ascending.
    pub(super) fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter_ones()
    }

    /// The documents that are taken out, ascending.
    pub(super) fn removed(&self) -> impl Iterator<Item = usize> + '_ {
        self.kept.iter_zeros()
    }
}

impl Clustered {
    /// Writes the fingerprints that are left.
    pub(super) fn write_kept_fingerprints<F: Fingerprint>(
        &self,
        mut output: Output,
        corpus: &Corpus<F>,
        watch: &dyn Watch,
    ) -> Result<Complete> {
        each(watch, "fingerprints written", self.kept(), |document| {
            let hex = corpus.fingerprints[document].to_hex();
            output.line(format_args!("{hex}\t{}", corpus.names.text(document)))
        })?;
        output.complete()
    }

    /// Writes all fingerprints with their clusters.
    pub(super) fn write_annotated_fingerprints<F: Fingerprint>(
        &self,
        mut output: Output,
        corpus: &Corpus<F>,
        watch: &dyn Watch,
    ) -> Result<Complete> {
        each(watch, "fingerprints written", self.clusters.iter().enumerate(), |(document, &cluster)| {
            let (hex, id) = (corpus.fingerprints[document].to_hex(), corpus.names.text(document));
            let cluster = if cluster == 0 { String::new() } else { cluster.to_string() };
            output.line(format_args!("{hex}\t{id}\t{cluster}"))
        })?;
        output.complete()
    }
}

/// The documents of the inputs, to be read again.
pub(super) struct Documents<'a> {
    pub(super) inputs: &'a Inputs,
    pub(super) watch: &'a dyn Watch,
}

impl Documents<'_> {
    /// Writes the documents that are left.
    pub(super) fn write_kept<F: Fingerprint>(
        &self,
        path: &Path,
        output: Output,
        corpus: &Corpus<F>,
        clustered: &Clustered,
    ) -> Result<Complete> {
        self.write(path, output, corpus, clustered.kept().map(|document| (document, None)))
    }

    /// Writes all documents with their clusters.
    pub(super) fn write_annotated<F: Fingerprint>(
        &self,
        path: &Path,
        output: Output,
        corpus: &Corpus<F>,
        clustered: &Clustered,
        field: &str,
    ) -> Result<Complete> {
        let annotation =
            |&cluster: &u32| Some(Annotation { field, cluster: (cluster > 0).then_some(cluster.into()) });
        self.write(path, output, corpus, clustered.clusters.iter().map(annotation).enumerate())
    }

    fn write<'f, F: Fingerprint>(
        &self,
        path: &Path,
        output: Output,
        corpus: &Corpus<F>,
        documents: impl Iterator<Item = (usize, Option<Annotation<'f>>)>,
    ) -> Result<Complete> {
        let mut writer = DocumentWriter::new(output).with_path(path);
        let (records, options) = (self.inputs.records(), self.inputs.options());
        let step = Step::new(self.watch, "documents written")
            .reading(records.progress(), || self.inputs.total_bytes());
        step.add(0)?;
        let mut records = (0..).zip(records);
        let mut is_first = true;
        for (document, annotation) in documents {
            let position = corpus.names.position(document);
            let Some((_, record)) = records.find(|(at, _)| *at == position) else {
                return Err(changed(&corpus.names.place(document)));
            };
            let record = record?;
            // What is in an archive is known only now.
            if std::mem::take(&mut is_first) {
                check_format(path, Some(Some(record.format())))?;
            }
            corpus.check_unchanged(document, &record, options)?;
            writer.write(&record, annotation.as_ref()).map_err(|error| match error {
                // The inputs are as they are.
                Error::BadArgument(reason) => Error::Refused(reason),
                error => error,
            })?;
            if record.format() == DocumentFormat::Warc
                && let Some(output) = writer.get_mut()
            {
                output.end_member()?;
            }
            step.add(1)?;
        }
        writer.finish()?.complete()
    }
}
