//! `simstore verify`: is a store intact.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use simstore::{Error, Fingerprint, Store};

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
  fingerprints, ids, tables   what the store holds

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
    fingerprints: u64,
    ids: u64,
    tables: usize,
}

pub(crate) fn run(args: &VerifyArgs) -> Outcome {
    by_width!(Bits::of_store(&args.store)?, verify(args))
}

fn verify<F: Fingerprint>(args: &VerifyArgs) -> Outcome {
    let store = Store::<F>::open(&args.store)?;
    let mut output = Output::stdout();
    let mut printed = Ok(());
    let problems = store.verify(|error| {
        if printed.is_ok() {
            printed = if args.json { output.json(&Problem::from(&error)) } else { output.line(&error) };
        }
    });
    printed?;
    let stats = store.stats();
    let ok = problems == 0;
    if args.json {
        let (fingerprints, ids, tables) = (stats.fingerprints, stats.ids, stats.tables);
        output.json(&Summary { ok, problems, fingerprints, ids, tables })?;
    } else if ok {
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
