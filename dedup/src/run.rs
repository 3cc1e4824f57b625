//! One run, from a configuration to a report. The functions come in the order in which they are called.

use std::time::Instant;

use simstore::error::{did_you_mean, excerpt};
use simstore::{Error, Result};
use simstore_corpus::{Diagnostic, InputCounts, Inputs, Observer};
use simstore_io::formats::format_names;
use simstore_io::numbers::format_count_of;
use simstore_io::output::resolve_path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::checkpoint::stage_results::Keeping;
use crate::config::DedupConfig;
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::keep_rule::Keep;
use crate::pipeline::read_corpus::read_corpus;
use crate::pipeline::stages::Pipeline;
use crate::report::Report;
use crate::report::open_outputs::OpenOutputs;
use crate::report::outputs::Outputs;
use crate::report::run_results::{AddedTo, Job};
use crate::workspace::Workspace;

/// Receives the progress and the results of [`run`]. Each [`Observer`] is an observer that ignores the results.
pub trait RunObserver {
    /// Receives progress and messages, and can stop the run.
    fn observer(&self) -> &dyn Observer;

    /// Is called when all near-duplicates are known, and nothing is written yet.
    ///
    /// # Errors
    /// An error ends the run, and nothing is written.
    fn compared(&self, report: &Report) -> Result<()> {
        let _ = report;
        Ok(())
    }

    /// Is called when all output files are complete, before they get their names, and before the store changes.
    ///
    /// # Errors
    /// An error ends the run, and the files are removed.
    fn written(&self, report: &Report) -> Result<()> {
        let _ = report;
        Ok(())
    }
}

impl<W: Observer> RunObserver for W {
    fn observer(&self) -> &dyn Observer {
        self
    }
}

/// Reads all inputs, finds the near-duplicates, writes the outputs, and adds the kept documents to a store if the configuration says
/// so. Output files and store change in one step at the end. If the process is killed during this step, an identical run completes it.
///
/// # Errors
/// Nothing is written or added after an error, except as its message says.
/// - [`Error::BadArgument`] if options or outputs are invalid, or do not apply to the input.
/// - [`Error::Refused`] if an input changes during the run, if the memory limit is too low, or if a store is missing.
/// - [`Error::Cancelled`] if the observer cancels the run, and errors of the run observer.
/// - [`Error::BadInput`] for a malformed document, unless malformed documents are [skipped](Inputs::skip_malformed).
/// - Errors of reading, of writing, and of the store.
pub fn run(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    run_observer: &dyn RunObserver,
) -> Result<Report> {
    let (started, observer) = (Instant::now(), run_observer.observer());
    let mut report = compare(config, inputs, outputs, observer)?;
    if report.added_before().is_some() {
        return Ok(report);
    }
    run_observer.compared(&report)?;
    report.write(observer)?;
    report.set_seconds(started.elapsed().as_secs_f64());
    run_observer.written(&report)?;
    report.publish(observer)?;
    Ok(report)
}

/// Resolves the configuration, reads all inputs, and finds the near-duplicates.
pub(crate) fn compare(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    observer: &dyn Observer,
) -> Result<Report> {
    let resolved = config.resolve(inputs, Some(&outputs), observer)?;
    let is_in_memory = inputs.is_in_memory();
    let workspace = Workspace::new(config, &outputs.unfinished, observer)?;
    // Outputs are opened before the work starts, so that a missing folder is reported at once.
    let outputs = OpenOutputs::create(outputs)?;
    if resolved.reads_twice && resolved.file_list.is_some() {
        // Pipes and iterators can be read only once, so their content is put aside for the second reading.
        let parent = workspace.temporary.parent();
        resolved.inputs.spool_in(parent).map_err(|error| workspace.temporary.explain(error))?;
    }
    let (mut corpus, counts) =
        read_corpus(config, &resolved, &outputs.requested.unfinished, &workspace, observer)
            .map_err(|error| workspace.temporary.explain(error))?;
    check_keep_field(&resolved.keep, &corpus, &resolved.inputs, observer)?;
    if counts.read == 0 && !outputs.requested.allow_empty && !is_in_memory {
        return Err(nothing_read(&counts));
    }
    let sketches = corpus.take_sketches()?;
    let run = run_of(config, &resolved, &corpus)?;
    if let Some(added) = resolved.last_run.has_added(&run, config, &outputs.requested)? {
        return Ok(Report::of_added_before(resolved.criterion, counts, added));
    }
    let stages = Pipeline {
        resolved: &resolved,
        with_pairs: config.pairs || outputs.requested.write_pairs(),
        corpus: &corpus,
        signatures: sketches.as_ref(),
        keeping: config.resume.as_ref().map(|resume| Keeping {
            folder: &resume.folder,
            unfinished: &outputs.requested.unfinished,
            observer,
        }),
        workspace: &workspace,
        observer,
    };
    let outcome = stages.run()?;
    let added_to = config.add.is_some().then(|| AddedTo::new(&resolved, run, sketches));
    Report::new(Job { resolved, corpus, outcome, workspace, added_to }, counts, outputs)
}

/// Identifies a run: a hash of its documents and options. Stores keep the hash, so its input format must not change.
fn run_of(config: &DedupConfig, resolved: &Resolved, corpus: &Corpus) -> Result<String> {
    if config.add.is_none() {
        return Ok(String::new());
    }
    let Resolved { criterion, recall, cluster_by, keep, profile, .. } = resolved;
    let near = match criterion {
        Criterion::Distance(distance) => distance.to_string(),
        Criterion::Similarity(least) => format!("similar {least} {recall}"),
    };
    let mut how = format!("{} {near} {cluster_by:?} {keep:?} {profile}", corpus.width().bits());
    // The contents of the other stores affect the result too.
    for store in config.against.iter().skip(1) {
        how += &format!(" {}", resolve_path(store).display());
    }
    Ok(format!("{:016x}", xxh3_64_with_seed(how.as_bytes(), corpus.checksum()?)))
}

/// The error of a run that has read no document.
fn nothing_read(counts: &InputCounts) -> Error {
    let skipped = [
        (counts.malformed, "invalid document or unreadable file", "invalid documents or unreadable files"),
        (counts.skipped_files, "file of another kind", "files of other kinds"),
    ];
    let skipped: String = skipped
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(|(count, one, more)| format!(", {count} {} skipped", if *count == 1 { one } else { more }))
        .collect();
    Error::Refused(format!(
        "no documents were read{skipped}; outputs and stores are unchanged (option `allow_empty` writes empty outputs)"
    ))
}

/// Reports documents that have no value of the field of `keep`; fails if none has one.
fn check_keep_field(keep: &Keep, corpus: &Corpus, inputs: &Inputs, observer: &dyn Observer) -> Result<()> {
    let (Some(field), missing @ 1..) = (keep.field(), corpus.missing) else { return Ok(()) };
    let takes_numbers = keep.takes_numbers();
    if missing < corpus.len() {
        observer.diagnostic(&Diagnostic::Warning(&format!(
            "{} without {}`{}`: such a document is kept only if all documents of its cluster lack it",
            format_count_of(missing as u64, "document"),
            if takes_numbers { "a number in " } else { "" },
            excerpt(field)
        )));
        return Ok(());
    }
    // A pipe cannot be read twice.
    let first = match inputs.read_once_paths().next() {
        Some(_) => None,
        None => inputs.records().find_map(Result::ok),
    };
    let there = match first.map(|record| record.field_names()) {
        Some(names) if !names.is_empty() => {
            format!("{}; the first has {}", did_you_mean(field, &names), format_names(&names))
        }
        _ => String::new(),
    };
    let wanted = if takes_numbers { "number in a " } else { "" };
    Err(Error::Refused(format!("option `keep`: no document has a {wanted}field `{}`{there}", excerpt(field))))
}
