//! The files that are written.

use std::path::{Path, PathBuf};

use clap::Args;
use simstore::Fingerprint;

use super::similarity::Texts;
use super::tables::Found;
use super::written::{Clustered, Documents};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use crate::rows::{self, Column, Rows};

/// The files that are asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output files (`-` is standard output; each appears when it is complete)")]
pub(super) struct OutputArgs {
    /// The input without its duplicates, in its own format, byte for byte; of text files, their paths; of
    /// fingerprints, HEX<TAB>ID
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The whole input, each document with the number of its cluster: in a field or column `cluster`
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// A table of the documents in clusters: id, cluster, representative, distance (to it); with --against, whether it was
    /// stored. Where ids repeat, tables and lists also tell where a document stands: place (FILE:LINE), a_place, ...
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// A table of all pairs of documents within the distance: a, b, distance; with --against, then those with something
    /// stored (b), as the column `stored` tells
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// The ids of what is kept
    #[arg(long, value_name = "FILE")]
    keep_list: Option<PathBuf>,
    /// The ids of the duplicates
    #[arg(long, value_name = "FILE")]
    remove_list: Option<PathBuf>,
}

impl OutputArgs {
    fn tables(&self) -> impl Iterator<Item = &Path> {
        [&self.clusters, &self.pairs, &self.keep_list, &self.remove_list]
            .into_iter()
            .flatten()
            .map(PathBuf::as_path)
    }

    fn all(&self) -> impl Iterator<Item = &Path> {
        [&self.output, &self.annotated].into_iter().flatten().map(PathBuf::as_path).chain(self.tables())
    }

    /// Refuses what cannot be written.
    pub(super) fn check(&self) -> Outcome {
        self.tables().try_for_each(rows::check)?;
        let all: Vec<&Path> = self.all().collect();
        match all.iter().enumerate().find(|(at, path)| all[..*at].contains(path)) {
            Some((_, path)) if path.as_os_str() == "-" => {
                Err(Failure::Usage("only one output can be standard output (`-`)".to_owned()))
            }
            Some((_, path)) => Err(Failure::Usage(format!("{}: named for two outputs", path.display()))),
            None => Ok(()),
        }
    }

    /// Whether none is asked for.
    pub(super) fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }

    /// Whether one of them is standard output, where nothing else is printed then.
    pub(super) fn use_stdout(&self) -> bool {
        self.all().any(|path| path.as_os_str() == "-")
    }

    /// Whether the documents themselves are written, and so read again.
    pub(super) fn write_documents(&self) -> bool {
        self.output.is_some() || self.annotated.is_some()
    }

    /// Whether all pairs are to be known.
    pub(super) fn write_pairs(&self) -> bool {
        self.pairs.is_some()
    }
}

/// The open files.
pub(super) struct Outputs<'a> {
    args: &'a OutputArgs,
    output: Option<Output>,
    annotated: Option<Output>,
    clusters: Option<Output>,
    pairs: Option<Output>,
    keep_list: Option<Output>,
    remove_list: Option<Output>,
}

impl<'a> Outputs<'a> {
    /// Opens all files.
    pub(super) fn create(args: &'a OutputArgs) -> Outcome<Self> {
        let create = |path: &Option<PathBuf>| path.as_deref().map(Output::create).transpose();
        Ok(Outputs {
            args,
            output: create(&args.output)?,
            annotated: create(&args.annotated)?,
            clusters: create(&args.clusters)?,
            pairs: create(&args.pairs)?,
            keep_list: create(&args.keep_list)?,
            remove_list: create(&args.remove_list)?,
        })
    }

    /// Writes all files. Pairs are only those of similar texts, where texts are at hand.
    pub(super) fn write<F: Fingerprint>(
        self,
        found: &Found<F>,
        texts: Option<&mut Texts>,
        documents: Option<&Documents>,
        json: bool,
    ) -> Outcome {
        let clustered = Clustered::new(found.corpus.len(), found.clusters);
        let table = |path: &'a Option<PathBuf>, output: Option<Output>, columns: &[Column]| {
            path.as_deref()
                .zip(output)
                .map(|(path, output)| Rows::new(path, output, columns, json))
                .transpose()
        };
        let mut finished = Vec::new();
        if let Some(mut rows) = table(&self.args.keep_list, self.keep_list, &found.list_columns())? {
            clustered.kept().try_for_each(|document| found.write_listed(&mut rows, document))?;
            finished.push(rows);
        }
        if let Some(mut rows) = table(&self.args.remove_list, self.remove_list, &found.list_columns())? {
            clustered.removed().try_for_each(|document| found.write_listed(&mut rows, document))?;
            finished.push(rows);
        }
        if let Some(mut rows) = table(&self.args.pairs, self.pairs, &found.pair_columns())? {
            found.write_pairs(&mut rows, texts)?;
            finished.push(rows);
        }
        if let Some(mut rows) = table(&self.args.clusters, self.clusters, &found.cluster_columns())? {
            found.write_clusters(&mut rows)?;
            finished.push(rows);
        }
        if let Some((path, output)) = self.args.output.as_deref().zip(self.output) {
            match documents {
                Some(documents) => documents.write_kept(path, output, found.corpus, &clustered)?,
                None => clustered.write_kept_fingerprints(output, found.corpus)?,
            }
        }
        if let Some((path, output)) = self.args.annotated.as_deref().zip(self.annotated) {
            match documents {
                Some(documents) => documents.write_annotated(path, output, found.corpus, &clustered)?,
                None => clustered.write_annotated_fingerprints(output, found.corpus)?,
            }
        }
        finished.into_iter().try_for_each(Rows::finish)
    }
}
