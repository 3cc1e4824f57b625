//! The input without its duplicates, or with the numbers of its clusters.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use crate::corpus::Corpus;
use crate::corpus::reread::Reread;
use crate::pipeline::cluster_of_document::{Clustered, InCluster};
use crate::report::output_format::check_format;
use crate::workspace::Workspace;
use simstore_corpus::Step;
use simstore_corpus::{Inputs, Watch};
use simstore_io::output::OutputFolder;
use simstore_io::output::{Complete, Output};
use simstore_io::reading::pattern_base;
use simstore_io::{Annotation, DocumentFormat, DocumentWriter, Record};

/// Writes the fingerprints that are kept; or all fingerprints, with their clusters.
pub(crate) fn write_fingerprints(
    clustered: &mut Clustered<'_>,
    mut output: Output,
    corpus: &Corpus,
    are_annotated: bool,
    watch: &dyn Watch,
) -> Result<Complete> {
    corpus.scan(watch, "fingerprints written", |document| {
        let InCluster { cluster, is_kept } = clustered.of(document.number)?;
        let hex = corpus.hex_of(document.fingerprint().unwrap_or_default());
        let id = document.id().column();
        match (are_annotated, is_kept) {
            (true, _) if cluster == 0 => output.line(format_args!("{hex}\t{id}\t")),
            (true, _) => output.line(format_args!("{hex}\t{id}\t{cluster}")),
            (false, true) => output.line(format_args!("{hex}\t{id}")),
            (false, false) => Ok(()),
        }
    })?;
    output.complete()
}

/// The documents of the inputs, to be read again.
pub(crate) struct Documents<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) workspace: &'a Workspace,
    pub(crate) watch: &'a dyn Watch,
}

impl Documents<'_> {
    /// Writes the documents that are left.
    pub(crate) fn write_kept(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        corpus: &Corpus,
        clustered: &mut Clustered<'_>,
    ) -> Result<Complete> {
        self.write(path, output, null, corpus, |document| Ok(clustered.of(document)?.is_kept.then_some(None)))
    }

    /// Writes all documents with their clusters.
    pub(crate) fn write_annotated(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        corpus: &Corpus,
        clustered: &mut Clustered<'_>,
        field: &str,
    ) -> Result<Complete> {
        self.write(path, output, null, corpus, |document| {
            let InCluster { cluster, .. } = clustered.of(document)?;
            Ok(Some(Some(Annotation { field, cluster: (cluster > 0).then_some(cluster.into()) })))
        })
    }

    /// Copies the text files that are left to a folder, under the names that they have in the inputs.
    pub(crate) fn write_copies(
        &self,
        mut folder: OutputFolder,
        corpus: &Corpus,
        clustered: &mut Clustered<'_>,
    ) -> Result<Complete> {
        let places = Places::new(self.inputs.paths());
        self.read_again(
            corpus,
            |document| Ok(clustered.of(document)?.is_kept.then_some(())),
            |record, ()| {
                let path = record.path();
                // The formats of members of archives are known only now.
                if record.format() != DocumentFormat::Text || !path.is_file() {
                    return Err(Error::Refused(format!(
                        "{}: only text files outside archives can be copied to a directory: give a file as output",
                        path.display()
                    )));
                }
                folder.copy(path, places.of(path))
            },
        )?;
        folder.complete()
    }

    /// Writes the documents that are wanted, each as it stands, or with an annotation.
    fn write<'f>(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        corpus: &Corpus,
        wanted: impl FnMut(usize) -> Result<Option<Option<Annotation<'f>>>>,
    ) -> Result<Complete> {
        let mut writer = DocumentWriter::new(output).with_path(path).with_null(null);
        let mut is_first = true;
        self.read_again(corpus, wanted, |record, annotation| {
            // The formats of members of archives are known only now.
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
    fn read_again<T>(
        &self,
        corpus: &Corpus,
        mut wanted: impl FnMut(usize) -> Result<Option<T>>,
        mut write: impl FnMut(&Record, T) -> Result<()>,
    ) -> Result<()> {
        let mut reread = Reread::new(corpus, self.inputs, self.workspace);
        let step = Step::new(self.watch, "documents written")
            .reading(reread.progress(), || self.inputs.total_bytes());
        step.add(0)?;
        for number in 0..corpus.len() {
            let Some(how) = wanted(number)? else { continue };
            write(&reread.record(number)?, how)?;
            step.add(1)?;
        }
        reread.finish()
    }
}

/// The paths of copies in an output folder: relative to the folder that was read, or to the fixed part of a pattern; with
/// several inputs, each folder keeps its own name, too. Other files by their names.
struct Places {
    /// Prefixes that are left out of paths.
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
