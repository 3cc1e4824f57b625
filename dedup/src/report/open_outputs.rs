//! The files that are written, from when they are open until they are complete.

use simstore::Result;

use crate::report::documents::{Documents, write_fingerprints};
use crate::report::outputs::Outputs;
use crate::report::tables::Results;
use simstore_corpus::Watch;
use simstore_io::output::{Complete, Output};
use simstore_io::output::{OutputFolder, names_folder};
use simstore_io::rows::{Column, Rows};
use std::path::PathBuf;

/// The open requested.
#[derive(Debug)]
pub(crate) struct OpenOutputs {
    requested: Outputs,
    output: Option<Output>,
    folder: Option<OutputFolder>,
    annotated: Option<Output>,
    clusters: Option<Output>,
    pairs: Option<Output>,
    keep_list: Option<Output>,
    remove_list: Option<Output>,
}

impl OpenOutputs {
    /// Opens all requested.
    pub(crate) fn create(mut requested: Outputs) -> Result<Self> {
        let (mut stdout, unfinished) = (requested.stdout.take(), requested.unfinished.clone());
        let mut create = |path: &Option<PathBuf>| match path.as_deref() {
            Some(path) if path.as_os_str() == "-" => {
                let stdout = stdout.take().unwrap_or_else(|| Box::new(std::io::stdout()));
                Ok(Some(Output::of_writer(path, stdout)))
            }
            Some(path) => Output::create(path, &unfinished).map(Some),
            None => Ok(None),
        };
        let (folder, output) = match requested.output.clone() {
            Some(path) if names_folder(&path) => {
                (Some(OutputFolder::create(&path, &requested.unfinished)?), None)
            }
            path => (None, path),
        };
        Ok(OpenOutputs {
            output: create(&output)?,
            folder,
            annotated: create(&requested.annotated)?,
            clusters: create(&requested.clusters)?,
            pairs: create(&requested.pairs)?,
            keep_list: create(&requested.keep_list)?,
            remove_list: create(&requested.remove_list)?,
            requested,
        })
    }

    /// The outputs as they were requested.
    pub(crate) fn requested(&self) -> &Outputs {
        &self.requested
    }

    /// Writes all files, which are complete then but for their names.
    pub(crate) fn write(
        &mut self,
        found: &Results<'_>,
        documents: Option<&Documents<'_>>,
        watch: &dyn Watch,
    ) -> Result<Vec<Complete>> {
        let json = self.requested.json;
        let rows_of = |path: &Option<PathBuf>, output: Option<Output>, columns: &[Column]| {
            path.as_deref()
                .zip(output)
                .map(|(path, output)| Rows::new(path, output, columns, json))
                .transpose()
        };
        let mut complete = Vec::new();
        for (output, keeps) in [(&mut self.keep_list, true), (&mut self.remove_list, false)] {
            if let Some(output) = output.take_if(|_| self.requested.null) {
                complete.push(found.write_ids(output, keeps, watch)?);
            }
        }
        if let Some(mut rows) =
            rows_of(&self.requested.keep_list, self.keep_list.take(), &found.list_columns())?
        {
            found.write_list(&mut rows, true, watch)?;
            complete.push(rows.complete()?);
        }
        let columns = if self.requested.reasons { found.reason_columns() } else { found.list_columns() };
        if let Some(mut rows) = rows_of(&self.requested.remove_list, self.remove_list.take(), &columns)? {
            if self.requested.reasons {
                found.write_reasons(&mut rows, watch)?;
            } else {
                found.write_list(&mut rows, false, watch)?;
            }
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = rows_of(&self.requested.pairs, self.pairs.take(), &found.pair_columns())? {
            found.write_pairs(&mut rows, watch)?;
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) =
            rows_of(&self.requested.clusters, self.clusters.take(), &found.cluster_columns())?
        {
            found.write_clusters(&mut rows, watch)?;
            complete.push(rows.complete()?);
        }
        if let Some((folder, documents)) = self.folder.take().zip(documents) {
            complete.push(documents.write_copies(folder, found.corpus, &mut found.clustered()?)?);
        }
        if let Some((path, output)) = self.requested.output.as_deref().zip(self.output.take()) {
            complete.push(match documents {
                Some(documents) => documents.write_kept(
                    path,
                    output,
                    self.requested.null,
                    found.corpus,
                    &mut found.clustered()?,
                )?,
                None => write_fingerprints(&mut found.clustered()?, output, found.corpus, false, watch)?,
            });
        }
        if let Some((path, output)) = self.requested.annotated.as_deref().zip(self.annotated.take()) {
            let field = self.requested.cluster_field.as_deref().unwrap_or("cluster");
            complete.push(match documents {
                Some(documents) => documents.write_annotated(
                    path,
                    output,
                    self.requested.null,
                    found.corpus,
                    &mut found.clustered()?,
                    field,
                )?,
                None => write_fingerprints(&mut found.clustered()?, output, found.corpus, true, watch)?,
            });
        }
        Ok(complete)
    }
}
