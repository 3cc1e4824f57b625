//! Opens the output files at the start of a run, and writes them at its end.

use std::path::PathBuf;

use simstore::Result;

use crate::report::document_outputs::{DocumentOutputs, write_fingerprints};
use crate::report::outputs::Outputs;
use crate::report::run_results::RunResults;
use simstore_corpus::Observer;
use simstore_io::output::{CompleteOutput, Output, OutputFolder, is_folder_path};
use simstore_io::result_table::ResultTableWriter;

/// Open outputs of a run, in writing order.
#[derive(Debug)]
pub(crate) struct OpenOutputs {
    /// Output options of the user.
    pub(crate) requested: Outputs,
    open: Vec<(OutputRole, PathBuf, OutputTarget)>,
}

/// Kinds of content of an output, in writing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum OutputRole {
    KeepList,
    RemoveList,
    Pairs,
    Clusters,
    KeptDocuments,
    AnnotatedDocuments,
    ReportPage,
}

/// Where an output is written: an open file, or a folder for copies of files.
#[derive(Debug)]
enum OutputTarget {
    File(Output),
    Folder(OutputFolder),
}

impl OpenOutputs {
    /// Opens all requested outputs for writing.
    pub(crate) fn create(mut requested: Outputs) -> Result<Self> {
        let mut stdout = requested.stdout.take();
        let paths = [
            (OutputRole::KeptDocuments, &requested.output),
            (OutputRole::AnnotatedDocuments, &requested.annotated),
            (OutputRole::Clusters, &requested.clusters),
            (OutputRole::Pairs, &requested.pairs),
            (OutputRole::KeepList, &requested.keep_list),
            (OutputRole::RemoveList, &requested.remove_list),
            (OutputRole::ReportPage, &requested.report),
        ];
        let mut open = Vec::new();
        for (role, path) in paths {
            let Some(path) = path else { continue };
            let target = if role == OutputRole::KeptDocuments && is_folder_path(path) {
                OutputTarget::Folder(OutputFolder::create(path, &requested.unfinished)?)
            } else if path.as_os_str() == "-" {
                let stdout = stdout.take().unwrap_or_else(|| Box::new(std::io::stdout()));
                OutputTarget::File(Output::from_writer(path, stdout))
            } else {
                OutputTarget::File(Output::create(path, &requested.unfinished)?)
            };
            open.push((role, path.clone(), target));
        }
        open.sort_by_key(|&(role, ..)| role);
        Ok(OpenOutputs { requested, open })
    }

    /// Writes all outputs. Returns the complete files, which the caller must rename to their final names.
    /// `make_page` returns the report page.
    pub(crate) fn write(
        self,
        results: &RunResults,
        make_page: impl Fn() -> Result<String>,
        observer: &dyn Observer,
    ) -> Result<Vec<CompleteOutput>> {
        let Outputs { json, null, reasons, cluster_field, .. } = &self.requested;
        let documents =
            results.resolved.documents().map(|inputs| DocumentOutputs { inputs, results, observer });
        let mut complete = Vec::new();
        for (role, path, target) in self.open {
            let field = (role == OutputRole::AnnotatedDocuments)
                .then(|| cluster_field.as_deref().unwrap_or("cluster"));
            complete.push(match (role, target, &documents) {
                (_, OutputTarget::Folder(folder), Some(documents)) => documents.write_copies(folder)?,
                // Unreachable: a folder as output of fingerprints was refused before.
                (_, OutputTarget::Folder(_), None) => continue,
                (
                    OutputRole::KeptDocuments | OutputRole::AnnotatedDocuments,
                    OutputTarget::File(output),
                    Some(documents),
                ) => documents.write(&path, output, *null, field)?,
                (
                    OutputRole::KeptDocuments | OutputRole::AnnotatedDocuments,
                    OutputTarget::File(output),
                    None,
                ) => write_fingerprints(results, output, field.is_some(), observer)?,
                (OutputRole::ReportPage, OutputTarget::File(mut output), _) => {
                    output.write_bytes(make_page()?.as_bytes())?;
                    output.complete()?
                }
                (OutputRole::KeepList | OutputRole::RemoveList, OutputTarget::File(output), _) if *null => {
                    results.write_ids(output, role == OutputRole::KeepList, observer)?
                }
                (_, OutputTarget::File(output), _) => {
                    let columns = match role {
                        OutputRole::Pairs => results.pair_columns(["a", "b"], ["a_place", "b_place"]),
                        OutputRole::Clusters => results.cluster_columns(),
                        OutputRole::RemoveList if *reasons => {
                            results.pair_columns(["id", "duplicate_of"], ["place", "duplicate_of_place"])
                        }
                        _ => results.list_columns(),
                    };
                    let mut rows = ResultTableWriter::new(&path, output, &columns, *json)?;
                    match role {
                        OutputRole::Pairs => results.write_pairs(&mut rows, observer)?,
                        OutputRole::Clusters => results.write_clusters(&mut rows, observer)?,
                        OutputRole::RemoveList if *reasons => results.write_reasons(&mut rows, observer)?,
                        _ => results.write_list(&mut rows, role == OutputRole::KeepList, observer)?,
                    }
                    rows.complete()?
                }
            });
        }
        Ok(complete)
    }
}
