//! `simstore fingerprint`: prints the fingerprint of each document.

use std::path::PathBuf;

use clap::Args;
use simstore::any::Width;
use simstore::{Fingerprint, each_width};
use simstore_corpus::{InputKind, Inputs};

use crate::command_error::CommandResult;
use crate::input_warnings::warn_about_fingerprints;
use crate::inputs::{self, DocumentArgs};
use crate::numbers::format_count_of;
use crate::output::{self, object};
use crate::progress::ProgressDisplay;
use crate::width::width_parser;
use simstore_io::IdRef;

const EXAMPLES: &str = "\
In ids, a backslash is escaped as \\\\, a tab as \\t, a line break as \\n or \\r, another control character as \\u{HEX}, the empty \
id as \\e. --json does not escape ids.

With --json, a line is an object:
  fingerprint  hexadecimal
  id           number or text
  features     number of distinct features of the text; below 32, the fingerprint is unreliable

Examples:
  simstore fingerprint samples/en.jsonl
  simstore fingerprint --profile chars-4,plain-text samples/zh.jsonl > zh.hex
  simstore fingerprint samples/en.jsonl | simstore build new.simstore -";

/// Print the fingerprint of each document: lines HEX<TAB>ID
///
/// Documents without text have no fingerprint. The same text has the same fingerprint on every machine and in every version. `build`,
/// `dedup`, `query` and `compression` read these lines.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct FingerprintArgs {
    /// Documents: files, directories or globs; `-` is standard input
    #[arg(required_unless_present = "files_from", value_name = "INPUT")]
    inputs: Vec<PathBuf>,
    /// Width of fingerprints, in bits
    #[arg(long, value_parser = width_parser(), default_value = "64")]
    bits: Width,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    documents: DocumentArgs,
}

pub(crate) fn run(args: &FingerprintArgs, progress: &ProgressDisplay) -> CommandResult {
    let inputs = args.documents.open_documents(&args.inputs, "this command", progress)?;
    each_width!(args.bits, type F => print::<F>(args, &inputs, progress))
}

fn print<F: Fingerprint>(
    args: &FingerprintArgs,
    inputs: &Inputs,
    progress: &ProgressDisplay,
) -> CommandResult {
    let mut output = output::stdout();
    let profile = args.documents.profile.profile(None)?;
    let counts = inputs::visit::<F>(inputs, &profile, progress, |item| {
        let Some(fingerprint) = item.fingerprint else { return Ok(()) };
        if args.json {
            let (fingerprint, id) = (fingerprint.to_hex(), IdRef::from(&item.id));
            return output.write_json(&object! { fingerprint, id, features: item.feature_count });
        }
        output.write_line(format_args!("{}\t{}", fingerprint.to_hex(), IdRef::from(&item.id).escaped_text()))
    })?;
    output.finish()?;
    warn_about_fingerprints(&counts, InputKind::Documents, progress);
    progress.print_summary(&format!(
        "{}, {} in {:.1} s",
        format_count_of(counts.read, "document"),
        format_count_of(counts.read - counts.empty, "fingerprint"),
        progress.elapsed_seconds()
    ));
    Ok(())
}
