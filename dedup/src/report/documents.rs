//! The input without its duplicates, or with the numbers of its clusters.

use std::path::{Path, PathBuf};

use simstore::{Error, Result};

use crate::corpus::reread::Reread;
use crate::pipeline::clusters::ClusterStatus;
use crate::report::outputs::check_format;
use crate::report::run_results::Job;
use simstore_corpus::{Inputs, Observer, Stage};
use simstore_io::output::{CompleteOutput, Output, OutputFolder};
use simstore_io::reading::glob_base;
use simstore_io::{ClusterAnnotation, DocumentFormat, DocumentWriter, Record};

/// Writes the fingerprints that are kept; or all fingerprints, with their clusters.
pub(crate) fn write_fingerprints(
    job: &Job,
    mut output: Output,
    are_annotated: bool,
    observer: &dyn Observer,
) -> Result<CompleteOutput> {
    let (corpus, mut clustered) = (&job.corpus, job.clustered()?);
    corpus.scan(observer, "fingerprints written", |document| {
        let ClusterStatus { cluster, is_kept } = clustered.status(document.number)?;
        let hex = corpus.hex_of(document.fingerprint().unwrap_or_default());
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

/// The documents of the inputs, to be read again.
pub(crate) struct Documents<'a> {
    pub(crate) inputs: &'a Inputs,
    pub(crate) job: &'a Job,
    pub(crate) observer: &'a dyn Observer,
}

impl Documents<'_> {
    /// Copies the text files that are left to a folder, under the names that they have in the inputs.
    pub(crate) fn write_copies(&self, mut folder: OutputFolder) -> Result<CompleteOutput> {
        let places = Places::new(self.inputs.paths());
        self.read_again(false, |record, _| {
            let path = record.path();
            // The formats of members of archives are known only now.
            if record.format() != DocumentFormat::Text || !path.is_file() {
                return Err(Error::Refused(format!(
                    "{}: only text files outside archives can be copied to a directory: give a file as output",
                    path.display()
                )));
            }
            folder.copy(path, places.of(path))
        })?;
        folder.complete()
    }

    /// Writes the kept documents as they stand; or all documents, with their clusters in a field.
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
            // The formats of members of archives are known only now.
            if std::mem::take(&mut is_first) {
                check_format(path, Some(Some(record.format())))?;
            }
            let cluster = (cluster > 0).then_some(cluster.into());
            let annotation = field.map(|field| ClusterAnnotation { field, cluster });
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

    /// Reads the kept documents or all documents once more, in order, each with the number of its cluster.
    fn read_again(&self, all: bool, mut write: impl FnMut(&Record, u32) -> Result<()>) -> Result<()> {
        let Job { corpus, workspace, .. } = self.job;
        let mut clustered = self.job.clustered()?;
        let mut reread = Reread::new(corpus, self.inputs, workspace);
        let stage = Stage::new(self.observer, "documents written")
            .with_read_progress(reread.progress(), || self.inputs.total_bytes());
        stage.add(0)?;
        for number in 0..corpus.len() {
            let ClusterStatus { cluster, is_kept } = clustered.status(number)?;
            if all || is_kept {
                write(&reread.record(number)?, cluster)?;
                stage.add(1)?;
            }
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
            match glob_base(input) {
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
