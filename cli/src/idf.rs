//! `simstore idf`: prints the inverse document frequency of each feature of a corpus.

use std::path::PathBuf;

use clap::Args;
use simstore_corpus::InputKind;
use simstore_corpus::idf::{IdfOptions, document_frequencies};

use crate::command_error::{CommandError, CommandResult};
use crate::input_warnings::warn_about_fingerprints;
use crate::inputs::DocumentArgs;
use crate::numbers::{format_count_of, parse_bytes};
use crate::output::{self, UNFINISHED_OUTPUTS, object};
use crate::progress::ProgressDisplay;

const EXAMPLES: &str = "\
With --json, a line is an object:
  feature      the feature
  documents    number of documents with the feature
  idf          inverse document frequency: ln(1 + N / documents) for N documents, to four decimals

Examples:
  simstore idf --profile words-2 samples/en.jsonl > en.idf
  simstore fingerprint --profile words-2,weights=idf --idf en.idf samples/en.jsonl
  simstore idf --profile jieba samples/zh.jsonl > zh.idf
  simstore fingerprint --profile jieba-20 --idf zh.idf samples/zh.jsonl";

/// Print the inverse document frequency of each corpus feature: lines FEATURE<TAB>IDF
///
/// `--idf` of other commands reads this table: for profiles with `weights=idf`, and to choose keywords. A store records its checksum.
/// In Chinese texts, each word that can be a keyword counts.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct IdfArgs {
    /// Documents: files, directories or globs; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Leave out features with fewer documents; most features are rare and need no weight
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    min_documents: u64,
    /// Memory limit, such as 8G; at least 64K. Further counts go to disk [default: the available memory]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    memory: Option<u64>,
    /// Existing directory for temporary files [default: the system's]
    #[arg(long, value_name = "DIR")]
    temporary: Option<PathBuf>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(crate) fn run(args: &IdfArgs, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_documents(&args.inputs, "this command", progress)?;
    let profile = args.documents.profile.profile(None)?;
    let options = IdfOptions {
        memory: args.memory,
        temporary: args.temporary.clone(),
        unfinished: UNFINISHED_OUTPUTS.clone(),
    };
    let (frequencies, counts) =
        document_frequencies(&inputs, &profile, &options, progress).map_err(CommandError::usage)?;
    warn_about_fingerprints(&counts, InputKind::Documents, progress);
    let documents = frequencies.documents();
    let mut output = output::stdout();
    let visited = frequencies.visit(args.min_documents, |row| {
        if args.json {
            output.write_json(&object! { feature: row.feature, documents: row.documents, idf: row.idf })
        } else {
            output.write_line(row)
        }
    })?;
    output.finish()?;
    progress.print_summary(&format!(
        "{}: {} of {} printed, {:.1} s",
        format_count_of(documents, "document"),
        visited.kept,
        format_count_of(visited.features, "feature"),
        progress.elapsed_seconds()
    ));
    Ok(())
}
