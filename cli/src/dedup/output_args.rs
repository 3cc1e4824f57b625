//! Options of `simstore dedup` that name output files.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::Args;
use simstore_dedup::Outputs;

use crate::output::{ClosableStdout, UNFINISHED_OUTPUTS};

/// Heading in the help for the options that name less common output files.
pub(super) const RESULT_FILES_HEADING: &str =
    "Results in files (`-` is standard output; a file appears when it is complete)";

/// Options that name output files.
#[derive(Debug, Args)]
#[command(next_help_heading = RESULT_FILES_HEADING)]
pub(super) struct OutputArgs {
    /// Write the kept documents, unchanged. For text files: write a list of their paths, or copies of the files if FILE ends in /
    #[arg(long, short, value_name = "FILE", help_heading = None::<&str>)]
    output: Option<PathBuf>,
    /// Write a table of clusters: id, cluster, representative (the kept document), similarity
    #[arg(long, value_name = "FILE", help_heading = None::<&str>)]
    clusters: Option<PathBuf>,
    /// Write a table of all similar pairs: a, b, similarity
    #[arg(long, value_name = "FILE", help_heading = None::<&str>)]
    pairs: Option<PathBuf>,
    /// Write a page to look at: similarities, clusters, differences
    #[arg(long, value_name = "FILE", help_heading = None::<&str>)]
    report: Option<PathBuf>,
    /// Write the whole input, with a cluster number in each document
    #[arg(long, value_name = "FILE")]
    annotated: Option<PathBuf>,
    /// Name of the field or column of --annotated
    #[arg(long, value_name = "NAME", default_value = "cluster", requires = "annotated")]
    cluster_field: String,
    /// Write the ids of kept documents, one a line
    #[arg(long, value_name = "FILE")]
    keep_list: Option<PathBuf>,
    /// Write the ids of removed documents, one a line
    #[arg(long, value_name = "FILE")]
    remove_list: Option<PathBuf>,
    /// Write --remove-list as a table: each removed document, the most similar kept one, similarity
    #[arg(long, requires = "remove_list")]
    reasons: bool,
    /// Allow --output or --annotated to overwrite an input
    #[arg(long)]
    force: bool,
    /// Succeed without documents, and write empty outputs
    #[arg(long)]
    allow_empty: bool,
}

impl OutputArgs {
    /// Returns the requested outputs. `add` says whether the run adds documents to a store. If the reader of standard output
    /// closes it, a run with a single output and without `add` stops. Other runs continue, and set `is_stdout_closed`.
    pub(super) fn outputs(
        &self,
        json: bool,
        null: bool,
        is_stdout_closed: &Arc<AtomicBool>,
        add: bool,
    ) -> Outputs {
        let mut outputs = self.named_outputs(json, null);
        if add || outputs.paths().count() > 1 {
            outputs.stdout = Some(Box::new(ClosableStdout::new(is_stdout_closed)));
        }
        outputs
    }

    fn named_outputs(&self, json: bool, null: bool) -> Outputs {
        Outputs {
            output: self.output.clone(),
            annotated: self.annotated.clone(),
            cluster_field: Some(self.cluster_field.clone()),
            clusters: self.clusters.clone(),
            pairs: self.pairs.clone(),
            keep_list: self.keep_list.clone(),
            remove_list: self.remove_list.clone(),
            report: self.report.clone(),
            reasons: self.reasons,
            force: self.force,
            allow_empty: self.allow_empty,
            null,
            json,
            stdout: None,
            unfinished: UNFINISHED_OUTPUTS.clone(),
        }
    }
}
