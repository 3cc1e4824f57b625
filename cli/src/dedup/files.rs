//! The options that name output files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use simstore_corpus::dedup::Files;

use crate::output::{StdoutThatMayClose, UNFINISHED};

/// The files that are asked for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Output files (`-` is standard output; each appears when it is complete)")]
pub(super) struct FileArgs {
    /// The input without duplicates, in its own format, byte for byte; of texts their paths, or with FOLDER/ their copies
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The whole input, with the cluster number of each document in a field or column
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// The name of that field or column
    #[arg(long, value_name = "NAME", default_value = "cluster", requires = "annotated")]
    cluster_field: String,
    /// A table of the documents in clusters: id, cluster, representative, and similarity or distance to that
    #[arg(long, value_name = "FILE")]
    clusters: Option<PathBuf>,
    /// A table of all pairs of near documents: a, b, similarity or distance
    #[arg(long, value_name = "FILE")]
    pairs: Option<PathBuf>,
    /// The ids of kept documents
    #[arg(long, value_name = "FILE")]
    keep_list: Option<PathBuf>,
    /// The ids of the duplicates
    #[arg(long, value_name = "FILE")]
    remove_list: Option<PathBuf>,
    /// List each duplicate with the most similar kept document (with --keep none, of all documents) and the similarity
    #[arg(long, requires = "remove_list")]
    reasons: bool,
    /// Write --output or --annotated even in the place of an input
    #[arg(long)]
    force: bool,
    /// Succeed if no document was read, and write empty outputs
    #[arg(long)]
    allow_empty: bool,
}

impl FileArgs {
    /// The files; where there is more to do than to write them, standard output may be closed before all is written.
    pub(super) fn files(&self, json: bool, null: bool, is_cut_off: &Arc<AtomicBool>, add: bool) -> Files {
        let mut files = self.named(json, null);
        if add || files.all().count() > 1 {
            files.stdout = Some(Box::new(StdoutThatMayClose::new(is_cut_off)));
        }
        files
    }

    fn named(&self, json: bool, null: bool) -> Files {
        Files {
            output: self.output.clone(),
            annotated: self.annotated.clone(),
            cluster_field: Some(self.cluster_field.clone()),
            clusters: self.clusters.clone(),
            pairs: self.pairs.clone(),
            keep_list: self.keep_list.clone(),
            remove_list: self.remove_list.clone(),
            reasons: self.reasons,
            force: self.force,
            allow_empty: self.allow_empty,
            null,
            json,
            stdout: None,
            unfinished: UNFINISHED.clone(),
        }
    }
}
