//! Writes the input documents without duplicates, or all input documents annotated with cluster numbers.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use crate::documents::rereader::DocumentRereader;
use crate::pipeline::clusters::ClusterStatus;
use crate::report::outputs::check_format;
use crate::report::run_results::RunResults;
use simstore_corpus::{Inputs, Observer, Stage};
use simstore_io::output::{CompleteOutput, Output, OutputFolder};
use simstore_io::reading::glob_base;
use simstore_io::{ClusterAnnotation, DocumentFormat, DocumentWriter, Record};

/// Writes the kept fingerprints. If `are_annotated` is set, writes all fingerprints with their cluster numbers
/// instead.
pub(crate) fn write_fingerprints(
    results: &RunResults,
    mut output: Output,
    are_annotated: bool,
    observer: &dyn Observer,
) -> Result<CompleteOutput> {
    let (corpus, mut cluster_cursor) = (&results.corpus, results.cluster_cursor()?);
    corpus.scan(observer, "fingerprints written", |document| {
        let ClusterStatus { cluster, is_kept } = cluster_cursor.status(document.number)?;
        let hex = corpus.to_hex(document.fingerprint().unwrap_or_default());
        let id = document.id().escaped_text();
        match (are_annotated, is_kept) {
            (true, _) if cluster == 0 => output.write_line(format_args!("{hex}\t{id}\t")),
            (true, _) => output.write_line(format_args!("{hex}\t{id}\t{cluster}")),
            (false, true) => output.write_line(format_args!("{hex}\t{id}")),
            (false, false) => Ok(()),
        }
    })?;
    output.complete()
}

/// Writes documents of the inputs. For this, reads the inputs a second time.
pub(crate) struct DocumentOutputs<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) results: &'a RunResults,
    pub(crate) observer: &'a dyn Observer,
}

impl DocumentOutputs<'_> {
    /// Copies the kept text files to a folder. A file keeps its path relative to the inputs, as [`CopyPaths`]
    /// computes it.
    pub(crate) fn write_copies(&self, mut folder: OutputFolder) -> Result<CompleteOutput> {
        let copy_paths = CopyPaths::new(self.inputs.paths());
        self.read_again(false, |record, _| {
            let path = record.path();
            // The formats of archive members are unknown until they are read.
            if record.format() != DocumentFormat::Text || !path.is_file() {
                return Err(Error::Refused(format!(
                    "{}: only text files outside archives can be copied to a directory: give a file as output",
                    path.display()
                )));
            }
            folder.copy(path, copy_paths.relative_path(path))
        })?;
        folder.complete()
    }

    /// Writes the kept documents unchanged. If `field` is set, writes all documents instead, with their cluster
    /// numbers in this field. If the documents are text files, writes their paths; if `null` is set, each path
    /// ends in a zero byte.
    pub(crate) fn write(
        &self,
        path: &Path,
        output: Output,
        null: bool,
        field: Option<&str>,
    ) -> Result<CompleteOutput> {
        let mut writer = DocumentWriter::new(output).with_path(path).with_null_terminators(null);
        let mut is_first = true;
        self.read_again(field.is_some(), |record, cluster| {
            // The formats of archive members are unknown until they are read.
            if std::mem::take(&mut is_first) {
                check_format(path, Some(Some(record.format())))?;
            }
            let cluster = (cluster > 0).then_some(cluster.into());
            let annotation = field.map(|field| ClusterAnnotation { field, cluster });
            writer.write(record, annotation.as_ref()).map_err(|error| match error {
                // The error is about the content of the inputs, not about an option.
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

    /// Reads the kept documents, or all documents if `all` is set, a second time in input order. `write` gets each
    /// document and the number of its cluster; the number is 0 for a document in no cluster.
    fn read_again(&self, all: bool, mut write: impl FnMut(&Record, u32) -> Result<()>) -> Result<()> {
        let RunResults { corpus, workspace, .. } = self.results;
        let mut cluster_cursor = self.results.cluster_cursor()?;
        let mut reread = DocumentRereader::new(corpus, self.inputs, workspace);
        let stage = Stage::new(self.observer, "documents written")
            .with_read_progress(reread.progress(), || self.inputs.total_bytes());
        stage.add(0)?;
        for number in 0..corpus.len() {
            let ClusterStatus { cluster, is_kept } = cluster_cursor.status(number)?;
            if all || is_kept {
                write(&reread.record(number)?, cluster)?;
                stage.add(1)?;
            }
        }
        reread.finish()
    }
}

/// Computes the paths of copied files in the output folder. A file from an input folder keeps its path relative
/// to this folder; if there are several inputs, the path starts with the name of the folder. A file from a glob
/// keeps its path relative to the fixed part of the glob. For a file given as input, the path is the file name.
struct CopyPaths {
    /// Folders that are removed from the start of paths. If several match a path, the longest one is removed.
    prefixes: Vec<PathBuf>,
}

impl CopyPaths {
    fn new(inputs: &[PathBuf]) -> CopyPaths {
        let prefix = |input: &PathBuf| {
            let parent = || input.parent().map(Path::to_path_buf).unwrap_or_default();
            match glob_base(input) {
                Some(base) => base,
                None if inputs.len() == 1 && input.is_dir() => input.clone(),
                None => parent(),
            }
        };
        CopyPaths { prefixes: inputs.iter().map(prefix).collect() }
    }

    fn relative_path<'p>(&self, path: &'p Path) -> &'p Path {
        let left = self.prefixes.iter().filter_map(|base| path.strip_prefix(base).ok());
        left.max_by_key(|left| left.components().count()).unwrap_or(path)
    }
}
