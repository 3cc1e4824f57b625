//! The files that are written, from when they are open until they are complete.

use std::path::PathBuf;

use simstore::Result;

use crate::report::documents::{Documents, write_fingerprints};
use crate::report::outputs::Outputs;
use crate::report::run_results::Job;
use simstore_corpus::Observer;
use simstore_io::output::{CompleteOutput, Output, OutputFolder, is_folder_path};
use simstore_io::result_table::ResultTableWriter;

/// Open outputs of a run, in writing order.
#[derive(Debug)]
pub(crate) struct OpenOutputs {
    /// The outputs as they were requested.
    pub(crate) requested: Outputs,
    open: Vec<(Role, PathBuf, Target)>,
}

/// Content of an output, in writing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    KeepList,
    RemoveList,
    Pairs,
    Clusters,
    Kept,
    Annotated,
}

/// Open file, or folder of copies.
#[derive(Debug)]
enum Target {
    File(Output),
    Folder(OutputFolder),
}

impl OpenOutputs {
    /// Opens all requested.
    pub(crate) fn create(mut requested: Outputs) -> Result<Self> {
        let mut stdout = requested.stdout.take();
        let paths = [
            (Role::Kept, &requested.output),
            (Role::Annotated, &requested.annotated),
            (Role::Clusters, &requested.clusters),
            (Role::Pairs, &requested.pairs),
            (Role::KeepList, &requested.keep_list),
            (Role::RemoveList, &requested.remove_list),
        ];
        let mut open = Vec::new();
        for (role, path) in paths {
            let Some(path) = path else { continue };
            let target = if role == Role::Kept && is_folder_path(path) {
                Target::Folder(OutputFolder::create(path, &requested.unfinished)?)
            } else if path.as_os_str() == "-" {
                let stdout = stdout.take().unwrap_or_else(|| Box::new(std::io::stdout()));
                Target::File(Output::from_writer(path, stdout))
            } else {
                Target::File(Output::create(path, &requested.unfinished)?)
            };
            open.push((role, path.clone(), target));
        }
        open.sort_by_key(|&(role, ..)| role);
        Ok(OpenOutputs { requested, open })
    }

    /// Writes all files, which are complete then but for their names.
    pub(crate) fn write(self, job: &Job, observer: &dyn Observer) -> Result<Vec<CompleteOutput>> {
        let Outputs { json, null, reasons, cluster_field, .. } = &self.requested;
        let documents = job.resolved.documents().map(|inputs| Documents { inputs, job, observer });
        let mut complete = Vec::new();
        for (role, path, target) in self.open {
            let field = (role == Role::Annotated).then(|| cluster_field.as_deref().unwrap_or("cluster"));
            complete.push(match (role, target, &documents) {
                (_, Target::Folder(folder), Some(documents)) => documents.write_copies(folder)?,
                // Copies of fingerprints were refused.
                (_, Target::Folder(_), None) => continue,
                (Role::Kept | Role::Annotated, Target::File(output), Some(documents)) => {
                    documents.write(&path, output, *null, field)?
                }
                (Role::Kept | Role::Annotated, Target::File(output), None) => {
                    write_fingerprints(job, output, field.is_some(), observer)?
                }
                (Role::KeepList | Role::RemoveList, Target::File(output), _) if *null => {
                    job.write_ids(output, role == Role::KeepList, observer)?
                }
                (_, Target::File(output), _) => {
                    let columns = match role {
                        Role::Pairs => job.pair_columns(["a", "b"], ["a_place", "b_place"]),
                        Role::Clusters => job.cluster_columns(),
                        Role::RemoveList if *reasons => {
                            job.pair_columns(["id", "duplicate_of"], ["place", "duplicate_of_place"])
                        }
                        _ => job.list_columns(),
                    };
                    let mut rows = ResultTableWriter::new(&path, output, &columns, *json)?;
                    match role {
                        Role::Pairs => job.write_pairs(&mut rows, observer)?,
                        Role::Clusters => job.write_clusters(&mut rows, observer)?,
                        Role::RemoveList if *reasons => job.write_reasons(&mut rows, observer)?,
                        _ => job.write_list(&mut rows, role == Role::KeepList, observer)?,
                    }
                    rows.complete()?
                }
            });
        }
        Ok(complete)
    }
}
