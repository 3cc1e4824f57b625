//! The files that are written, from when they are open until they are complete.

use simstore::{Fingerprint, Result};

use super::files::Files;
use super::tables::Results;
use super::written::Documents;
use simstore_corpus::Watch;
use simstore_io::output::{Complete, Output};
use simstore_io::output::{OutputFolder, names_folder};
use simstore_io::rows::{Column, Rows};
use std::path::PathBuf;

/// The open files.
#[derive(Debug)]
pub(super) struct Outputs {
    files: Files,
    output: Option<Output>,
    folder: Option<OutputFolder>,
    annotated: Option<Output>,
    clusters: Option<Output>,
    pairs: Option<Output>,
    keep_list: Option<Output>,
    remove_list: Option<Output>,
}

impl Outputs {
    /// Opens all files.
    pub(super) fn create(mut files: Files) -> Result<Self> {
        let (mut stdout, unfinished) = (files.stdout.take(), files.unfinished.clone());
        let mut create = |path: &Option<PathBuf>| match path.as_deref() {
            Some(path) if path.as_os_str() == "-" => {
                let stdout = stdout.take().unwrap_or_else(|| Box::new(std::io::stdout()));
                Ok(Some(Output::of_writer(path, stdout)))
            }
            Some(path) => Output::create(path, &unfinished).map(Some),
            None => Ok(None),
        };
        let (folder, output) = match files.output.clone() {
            Some(path) if names_folder(&path) => {
                (Some(OutputFolder::create(&path, &files.unfinished)?), None)
            }
            path => (None, path),
        };
        Ok(Outputs {
            output: create(&output)?,
            folder,
            annotated: create(&files.annotated)?,
            clusters: create(&files.clusters)?,
            pairs: create(&files.pairs)?,
            keep_list: create(&files.keep_list)?,
            remove_list: create(&files.remove_list)?,
            files,
        })
    }

    /// The files as they were asked for.
    pub(super) fn files(&self) -> &Files {
        &self.files
    }

    /// Writes all files, which are complete then but for their names.
    pub(super) fn write<F: Fingerprint>(
        &mut self,
        found: &Results<'_, F>,
        documents: Option<&Documents<'_>>,
        watch: &dyn Watch,
    ) -> Result<Vec<Complete>> {
        let json = self.files.json;
        let rows_of = |path: &Option<PathBuf>, output: Option<Output>, columns: &[Column]| {
            path.as_deref()
                .zip(output)
                .map(|(path, output)| Rows::new(path, output, columns, json))
                .transpose()
        };
        let mut complete = Vec::new();
        for (output, keeps) in [(&mut self.keep_list, true), (&mut self.remove_list, false)] {
            if let Some(output) = output.take_if(|_| self.files.null) {
                complete.push(found.write_ids(output, keeps, watch)?);
            }
        }
        if let Some(mut rows) = rows_of(&self.files.keep_list, self.keep_list.take(), &found.list_columns())?
        {
            found.write_list(&mut rows, true, watch)?;
            complete.push(rows.complete()?);
        }
        let columns = if self.files.reasons { found.reason_columns() } else { found.list_columns() };
        if let Some(mut rows) = rows_of(&self.files.remove_list, self.remove_list.take(), &columns)? {
            if self.files.reasons {
                found.write_reasons(&mut rows, watch)?;
            } else {
                found.write_list(&mut rows, false, watch)?;
            }
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = rows_of(&self.files.pairs, self.pairs.take(), &found.pair_columns())? {
            found.write_pairs(&mut rows, watch)?;
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = rows_of(&self.files.clusters, self.clusters.take(), &found.cluster_columns())?
        {
            found.write_clusters(&mut rows, watch)?;
            complete.push(rows.complete()?);
        }
        if let Some((folder, documents)) = self.folder.take().zip(documents) {
            complete.push(documents.write_copies(folder, found.corpus, &mut found.clustered()?)?);
        }
        if let Some((path, output)) = self.files.output.as_deref().zip(self.output.take()) {
            complete.push(match documents {
                Some(documents) => documents.write_kept(
                    path,
                    output,
                    self.files.null,
                    found.corpus,
                    &mut found.clustered()?,
                )?,
                None => found.clustered()?.write_kept_fingerprints(output, found.corpus, watch)?,
            });
        }
        if let Some((path, output)) = self.files.annotated.as_deref().zip(self.annotated.take()) {
            let field = self.files.cluster_field.as_deref().unwrap_or("cluster");
            complete.push(match documents {
                Some(documents) => documents.write_annotated(
                    path,
                    output,
                    self.files.null,
                    found.corpus,
                    &mut found.clustered()?,
                    field,
                )?,
                None => found.clustered()?.write_annotated_fingerprints(output, found.corpus, watch)?,
            });
        }
        Ok(complete)
    }
}
