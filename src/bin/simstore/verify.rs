//! `simstore verify`: is a store intact.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::{Error, Fingerprint, Snapshot, Stats};

use crate::failure::{Failure, Outcome};
use crate::inputs::count_of;
use crate::output::Output;
use crate::width::{Bits, by_width};

const EXAMPLES: &str = "\
With --json, a line is an object: one for each problem, then a summary.
  problem       what is wrong
  file, offset  where; null where it is no matter of a place in a file
and in the summary
  ok            true or false
  problems      their number
  fingerprints, ids, tables   what the store holds; null where it cannot be opened

Example:
  simstore verify en.simstore && echo intact";

/// Read a whole store and check that it is intact
///
/// Every checksum, every order, every table against the others, ids and names. The exit code is 1 if anything
/// is damaged.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The store
    store: PathBuf,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Problem {
    problem: String,
    file: Option<String>,
    offset: Option<u64>,
}

impl From<&Error> for Problem {
    fn from(error: &Error) -> Self {
        let (file, offset) = match error {
            Error::Corrupt { path, offset, .. } => (Some(path), Some(*offset)),
            Error::Io { path, .. } | Error::UnsupportedVersion { path, .. } => (Some(path), None),
            _ => (None, None),
        };
        let file = file.map(|path| path.to_string_lossy().into_owned());
        Problem { problem: error.to_string(), file, offset }
    }
}

#[derive(Serialize)]
struct Summary {
    ok: bool,
    problems: u64,
    fingerprints: Option<u64>,
    ids: Option<u64>,
    tables: Option<usize>,
}

pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    let verified = Bits::of_store(&args.store).and_then(|bits| by_width!(bits, verify(args)));
    match verified {
        // So damaged that it cannot be opened: the one problem that can be told.
        Err(Failure::Engine(error @ Error::Corrupt { .. })) => {
            let mut output = Output::stdout();
            print(&mut output, &error, args.json)?;
            report(args, output, 1, None)
        }
        other => other,
    }
}

fn verify<F: Fingerprint>(args: &VerifyArgs) -> Outcome {
    let store = Snapshot::<F>::open(&args.store)?;
    let mut output = Output::stdout();
    let mut printed = Ok(());
    let problems = store.verify(|error| {
        if printed.is_ok() {
            printed = print(&mut output, &error, args.json);
        }
    });
    printed?;
    report(args, output, problems, Some(store.stats()))
}

fn print(output: &mut Output, error: &Error, json: bool) -> Outcome {
    if json { output.json(&Problem::from(error)) } else { output.line(error) }
}

/// Prints the summary; `stats` of a store that could be opened.
fn report(args: &VerifyArgs, mut output: Output, problems: u64, stats: Option<Stats>) -> Outcome {
    let ok = problems == 0;
    if args.json {
        output.json(&Summary {
            ok,
            problems,
            fingerprints: stats.map(|stats| stats.fingerprints),
            ids: stats.map(|stats| stats.ids),
            tables: stats.map(|stats| stats.tables),
        })?;
    } else if let (true, Some(stats)) = (ok, stats) {
        output.line(format_args!(
            "ok: {} in {}, {}",
            count_of(stats.fingerprints, "fingerprint"),
            count_of(stats.tables as u64, "table"),
            count_of(stats.ids, "id")
        ))?;
    }
    output.finish()?;
    if ok {
        return Ok(());
    }
    Err(Failure::Failed(format!("{}: {} found", args.store.display(), count_of(problems, "problem"))))
}
