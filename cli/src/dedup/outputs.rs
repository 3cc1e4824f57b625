//! The files that are written.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use simstore::Fingerprint;
use simstore_corpus::DocumentFormat;
use simstore_corpus::output::name::{self, NamedFormat};
use simstore_corpus::output::{Complete, place_of};
use simstore_corpus::rows::{self, Column, Rows};

use super::listing::Listing;
use super::similarity::Texts;
use super::tables::Found;
use super::written::{Clustered, Documents};
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;

/// The files that are asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output files (`-` is standard output; each appears when it is complete)")]
pub(super) struct OutputArgs {
    /// The input without its duplicates, in its own format, byte for byte (but UTF-16 as UTF-8, and Parquet by the
    /// types of Parquet); of text files, their paths; of fingerprints, HEX<TAB>ID. A name that ends in .gz, .zst, .bz2 or .xz is compressed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The whole input, each document with the number of its cluster: in a field or column
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// The name of that field or column
    #[arg(long, value_name = "NAME", default_value = "cluster", requires = "annotated")]
    cluster_field: String,
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

    pub(super) fn all(&self) -> impl Iterator<Item = &Path> {
        self.documents().chain(self.tables())
    }

    fn documents(&self) -> impl Iterator<Item = &Path> {
        [&self.output, &self.annotated].into_iter().flatten().map(PathBuf::as_path)
    }

    /// Warns of outputs that the next run on the same folders would read.
    pub(super) fn warn_of_folders(&self, inputs: &[PathBuf]) {
        let folders =
            inputs.iter().filter(|input| input.is_dir()).filter_map(|input| input.canonicalize().ok());
        for folder in folders {
            for output in self.all().filter(|output| place_of(output).starts_with(&folder)) {
                complain(&format!(
                    "warning: {}: is in a folder that is read, the next run reads it too; write it elsewhere",
                    output.display()
                ));
            }
        }
    }

    /// Refuses what cannot be written.
    pub(super) fn check(&self) -> Outcome {
        self.tables().try_for_each(rows::check).map_err(Failure::usage)?;
        self.documents().try_for_each(name::check).map_err(Failure::usage)?;
        let all: Vec<&Path> = self.all().collect();
        let places: Vec<PathBuf> = all.iter().map(|path| place_of(path)).collect();
        match all.iter().enumerate().find(|&(at, _)| places[..at].contains(&places[at])) {
            Some((_, path)) if path.as_os_str() == "-" => {
                Err(Failure::Usage("only one output can be standard output (`-`)".to_owned()))
            }
            Some((_, path)) => Err(Failure::Usage(format!("{}: named for two outputs", path.display()))),
            None => Ok(()),
        }
    }

    /// Refuses what does not go with the inputs: documents and fingerprints are written as they stand, and nothing but
    /// the input without its duplicates may take the place of an input.
    pub(super) fn check_with_inputs<'a>(
        &self,
        inputs: impl Iterator<Item = &'a Path>,
        listing: Option<&Listing>,
        add: bool,
    ) -> Outcome {
        if let Some(listing) = listing
            && self.write_documents()
            && let Some([(one, format), (other, another)]) = listing.mixed()
        {
            return Err(Failure::Usage(format!(
                "documents are written as they stand, in one format: {} holds {format}, {} {another}; take the files of \
                 each format by themselves, or ask for --keep-list or --remove-list",
                one.display(),
                other.display()
            )));
        }
        let format = listing.map(Listing::format);
        self.documents().try_for_each(|path| check_format(path, format))?;
        let inputs: BTreeSet<PathBuf> = inputs.filter(|path| path.as_os_str() != "-").map(place_of).collect();
        let is_regular = |path: &Path| path.metadata().is_ok_and(|metadata| metadata.is_file());
        for path in self.all().filter(|path| inputs.contains(&place_of(path)) && is_regular(path)) {
            let refused = |reason: &str| Err(Failure::Usage(format!("{}: {reason}", path.display())));
            if self.tables().any(|table| table == path) {
                return refused("is an input, which a table would replace");
            }
            if format == Some(Some(DocumentFormat::Text)) {
                return refused("is an input, which a list of paths would replace");
            }
            if add {
                return refused(
                    "is an input: with --add, another run would find nothing new in it, and empty it",
                );
            }
        }
        Ok(())
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

/// Refuses the name of a file of documents that says another format than these have, which is `None` for fingerprints
/// and `Some(None)` where there are no documents.
pub(super) fn check_format(path: &Path, format: Option<Option<DocumentFormat>>) -> Outcome {
    let named = name::format(path);
    let said = match (named, format) {
        (NamedFormat::None, _) | (_, Some(None)) => return Ok(()),
        (
            NamedFormat::Documents(DocumentFormat::Tsv | DocumentFormat::Text) | NamedFormat::HexLines,
            None,
        ) => {
            return Ok(());
        }
        // Of texts, the paths are written; with their clusters, a table.
        (NamedFormat::Documents(DocumentFormat::Tsv), Some(Some(DocumentFormat::Text))) => return Ok(()),
        (NamedFormat::Documents(named), Some(Some(format))) if named == format => return Ok(()),
        (_, None) => "lines HEX<TAB>ID, as in .hex and .tsv files".to_owned(),
        (_, Some(Some(DocumentFormat::Text))) => "paths of texts, as in .txt files".to_owned(),
        (_, Some(Some(format))) => format!("{format}, as the inputs are"),
    };
    Err(Failure::Usage(format!(
        "{}: what is written there is {said}: give it a name that says so, or that says nothing",
        path.display()
    )))
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
    /// Opens all files. If standard output is closed while there is more to do, the rest is done.
    pub(super) fn create(args: &'a OutputArgs, is_cut_off: Option<&Arc<AtomicBool>>) -> Outcome<Self> {
        let create = |path: &Option<PathBuf>| match path.as_deref() {
            Some(path) => match is_cut_off.filter(|_| path.as_os_str() == "-") {
                Some(is_cut_off) => Ok(Some(Output::stdout_that_may_close(is_cut_off))),
                None => Output::create(path).map(Some),
            },
            None => Ok(None),
        };
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

    /// Writes all files, which are complete then but for their names. Pairs are only those of similar texts, where texts are at hand.
    pub(super) fn write<F: Fingerprint>(
        self,
        found: &Found<F>,
        texts: Option<&mut Texts>,
        documents: Option<&Documents>,
        json: bool,
    ) -> Outcome<Vec<Complete>> {
        let clustered = Clustered::new(found.corpus.len(), found.clusters);
        let table = |path: &'a Option<PathBuf>, output: Option<Output>, columns: &[Column]| {
            path.as_deref()
                .zip(output)
                .map(|(path, output)| Rows::new(path, output.0, columns, json))
                .transpose()
        };
        let mut complete = Vec::new();
        if let Some(mut rows) = table(&self.args.keep_list, self.keep_list, &found.list_columns())? {
            clustered.kept().try_for_each(|document| found.write_listed(&mut rows, document))?;
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = table(&self.args.remove_list, self.remove_list, &found.list_columns())? {
            clustered.removed().try_for_each(|document| found.write_listed(&mut rows, document))?;
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = table(&self.args.pairs, self.pairs, &found.pair_columns())? {
            found.write_pairs(&mut rows, texts)?;
            complete.push(rows.complete()?);
        }
        if let Some(mut rows) = table(&self.args.clusters, self.clusters, &found.cluster_columns())? {
            found.write_clusters(&mut rows)?;
            complete.push(rows.complete()?);
        }
        if let Some((path, output)) = self.args.output.as_deref().zip(self.output) {
            complete.push(match documents {
                Some(documents) => documents.write_kept(path, output, found.corpus, &clustered)?,
                None => clustered.write_kept_fingerprints(output, found.corpus)?,
            });
        }
        if let Some((path, output)) = self.args.annotated.as_deref().zip(self.annotated) {
            complete.push(match documents {
                Some(documents) => documents.write_annotated(
                    path,
                    output,
                    found.corpus,
                    &clustered,
                    &self.args.cluster_field,
                )?,
                None => clustered.write_annotated_fingerprints(output, found.corpus)?,
            });
        }
        Ok(complete)
    }
}
