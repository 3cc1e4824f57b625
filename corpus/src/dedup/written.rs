//! The input without its duplicates, or with the numbers of its clusters.

use std::path::{Path, PathBuf};

use rayon::prelude::*;
use simstore::{Error, Fingerprint, Result};

use super::clusters::Cluster;
use super::corpus::Corpus;
use super::files::check_format;
use super::listing::changed;
use crate::output::folder::OutputFolder;
use crate::output::{Complete, Output};
use crate::reading::files::pattern_base;
use crate::watch::Step;
use crate::{Annotation, DocumentFormat, DocumentWriter, Inputs, Record, Watch};

/// Which documents are in clusters: 16 bytes for each of them.
#[derive(Debug)]
pub(super) struct Clustered(Vec<(usize, InCluster)>);

/// What becomes of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct InCluster {
    /// The number of its cluster, from 1; 0 for a document that is in none.
    pub(super) cluster: u32,
    /// Whether it is left when duplicates are taken out.
    pub(super) is_kept: bool,
}

impl Clustered {
    pub(super) fn new<F: Fingerprint>(clusters: &[Cluster<F>]) -> Self {
        let mut all: Vec<(usize, InCluster)> = Vec::new();
        for (number, cluster) in (1..).zip(clusters) {
            let of = |member| InCluster { cluster: number, is_kept: cluster.keeps(member) };
            all.extend(cluster.members.iter().map(|&member| (member, of(member))));
        }
        all.par_sort_unstable_by_key(|&(document, _)| document);
        Clustered(all)
    }

    /// What becomes of a document, when they are asked for in order: `next` is 0 for the first.
    pub(super) fn of(&self, document: usize, next: &mut usize) -> InCluster {
        match self.0.get(*next) {
            Some(&(other, of)) if other == document => {
                *next += 1;
                of
            }
            _ => InCluster { cluster: 0, is_kept: true },
        }
    }

    /// The documents that are taken out, ascending.
    pub(super) fn removed(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().filter(|(_, of)| !of.is_kept).map(|&(document, _)| document)
    }

    /// Writes the fingerprints that are left.
    pub(super) fn write_kept_fingerprints<F: Fingerprint>(
        &self,
        mut output: Output,
        corpus: &Corpus<F>,
        watch: &dyn Watch,
    ) -> Result<Complete> {
        let mut next = 0;
        corpus.scan(watch, "fingerprints written", |document| {
            if !self.of(document.number, &mut next).is_kept {
                return Ok(());
            }
            let hex = document.fingerprint().unwrap_or_default().to_hex();
            output.line(format_args!("{hex}\t{}", document.id().text()))
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
        let mut next = 0;
        corpus.scan(watch, "fingerprints written", |document| {
            let InCluster { cluster, .. } = self.of(document.number, &mut next);
            let hex = document.fingerprint().unwrap_or_default().to_hex();
            let cluster = if cluster == 0 { String::new() } else { cluster.to_string() };
            output.line(format_args!("{hex}\t{}\t{cluster}", document.id().text()))
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
        null: bool,
        corpus: &Corpus<F>,
        clustered: &Clustered,
    ) -> Result<Complete> {
        let mut next = 0;
        self.write(path, output, null, corpus, |document| {
            clustered.of(document, &mut next).is_kept.then_some(None)
        })
    }

    /// Writes all documents with their clusters.
    pub(super) fn write_annotated<F: Fingerprint>(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        corpus: &Corpus<F>,
        clustered: &Clustered,
        field: &str,
    ) -> Result<Complete> {
        let mut next = 0;
        self.write(path, output, null, corpus, |document| {
            let InCluster { cluster, .. } = clustered.of(document, &mut next);
            Some(Some(Annotation { field, cluster: (cluster > 0).then_some(cluster.into()) }))
        })
    }

    /// Copies the text files that are left to a folder, under the names that they have in the inputs.
    pub(super) fn write_copies<F: Fingerprint>(
        &self,
        mut folder: OutputFolder,
        corpus: &Corpus<F>,
        clustered: &Clustered,
    ) -> Result<Complete> {
        let mut next = 0;
        let places = Places::new(self.inputs.paths());
        self.read_again(
            corpus,
            |document| clustered.of(document, &mut next).is_kept.then_some(()),
            |record, ()| {
                let path = record.path();
                // What is in an archive is known only now.
                if record.format() != DocumentFormat::Text || !path.is_file() {
                    return Err(Error::Refused(format!(
                        "{}: a folder is written of text files alone, which this is not: name a file for what is left",
                        path.display()
                    )));
                }
                folder.copy(path, places.of(path))
            },
        )?;
        folder.complete()
    }

    /// Writes the documents that are wanted, each as it stands, or with an annotation.
    fn write<'f, F: Fingerprint>(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        corpus: &Corpus<F>,
        wanted: impl FnMut(usize) -> Option<Option<Annotation<'f>>>,
    ) -> Result<Complete> {
        let mut writer = DocumentWriter::new(output).with_path(path).with_null(null);
        let mut is_first = true;
        self.read_again(corpus, wanted, |record, annotation| {
            // What is in an archive is known only now.
            if std::mem::take(&mut is_first) {
                check_format(path, Some(Some(record.format())))?;
            }
            writer.write(record, annotation.as_ref()).map_err(|error| match error {
                // The inputs are as they are.
                Error::BadArgument(reason) => Error::Refused(reason),
                error => error,
            })?;
            if record.format() == DocumentFormat::Warc
                && let Some(output) = writer.get_mut()
            {
                output.end_member()?;
            }
            Ok(())
        })?;
        writer.finish()?.complete()
    }

    /// Reads the documents that are wanted once more, in order, as they were.
    fn read_again<F: Fingerprint, T>(
        &self,
        corpus: &Corpus<F>,
        mut wanted: impl FnMut(usize) -> Option<T>,
        mut write: impl FnMut(&Record, T) -> Result<()>,
    ) -> Result<()> {
        let (records, options) = (self.inputs.records(), self.inputs.options());
        let step = Step::new(self.watch, "documents written")
            .reading(records.progress(), || self.inputs.total_bytes());
        step.add(0)?;
        let mut records = (0..).zip(records);
        corpus.visit(|document| {
            let Some(how) = wanted(document.number) else { return Ok(()) };
            let position = document.position();
            let Some((_, record)) = records.find(|(at, _)| *at == position) else {
                return Err(changed(&document.place()));
            };
            let record = record?;
            document.check_unchanged(&record, options)?;
            write(&record, how)?;
            step.add(1)
        })
    }
}

/// Where the files of inputs stand in a folder that is written: under the names that they have in the folder that was read, or
/// matched; where there are several inputs, of a folder also its own name. Other files by their names.
struct Places {
    /// What is left out of a path that begins so.
    left_out: Vec<PathBuf>,
}

impl Places {
    fn new(inputs: &[PathBuf]) -> Places {
        let of_input = |input: &PathBuf| {
            let parent = || input.parent().map(Path::to_path_buf).unwrap_or_default();
            match pattern_base(input) {
                Some(base) => base,
                None if inputs.len() == 1 && input.is_dir() => input.clone(),
                None => parent(),
            }
        };
        Places { left_out: inputs.iter().map(of_input).collect() }
    }

    fn of<'p>(&self, path: &'p Path) -> &'p Path {
        let left = self.left_out.iter().filter_map(|base| path.strip_prefix(base).ok());
        left.max_by_key(|left| left.components().count()).unwrap_or(path)
    }
}
