//! One run, from a configuration to a report. The functions come in the order in which they are called.

use std::time::Instant;

use simstore::error::{did_you_mean, excerpt};
use simstore::{Error, Result};
use simstore_corpus::{Counts, Inputs, Notice, Watch};
use simstore_io::formats::listed;
use simstore_io::numbers::count_of;
use simstore_io::output::place_of;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::checkpoint::stage_results::Keeping;
use crate::config::DedupConfig;
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::corpus::Corpus;
use crate::corpus::keep_rule::Keep;
use crate::pipeline::reading::read;
use crate::pipeline::stages::Stages;
use crate::report::Report;
use crate::report::open_outputs::OpenOutputs;
use crate::report::outputs::Outputs;
use crate::report::run_results::{AddedTo, Job};
use crate::workspace::Workspace;

/// Receives the progress and the results of [`run`]. Each [`Watch`] is an observer that ignores the results.
pub trait Observer {
    /// Receives progress and messages, and can stop the run.
    fn watch(&self) -> &dyn Watch;

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

impl<W: Watch> Observer for W {
    fn watch(&self) -> &dyn Watch {
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
/// - [`Error::Cancelled`] if the observer's watch says so, and the errors of the observer.
/// - [`Error::BadInput`] for a malformed document, unless malformed documents are [skipped](Inputs::skip_bad).
/// - Errors of reading, of writing, and of the store.
pub fn run(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    observer: &dyn Observer,
) -> Result<Report> {
    let (started, watch) = (Instant::now(), observer.watch());
    let mut report = compare(config, inputs, outputs, watch)?;
    if report.added_before().is_some() {
        return Ok(report);
    }
    observer.compared(&report)?;
    report.write(watch)?;
    report.set_seconds(started.elapsed().as_secs_f64());
    observer.written(&report)?;
    report.publish(watch)?;
    Ok(report)
}

/// Resolves the configuration, reads all inputs, and finds the near-duplicates.
pub(crate) fn compare(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    watch: &dyn Watch,
) -> Result<Report> {
    let resolved = config.resolve(inputs, Some(&outputs), watch)?;
    let is_in_memory = inputs.are_given();
    let workspace = Workspace::new(config, &outputs.unfinished, watch)?;
    // Outputs are opened before the work starts, so that a missing folder is reported at once.
    let outputs = OpenOutputs::create(outputs)?;
    if resolved.reads_twice && resolved.file_list.is_some() {
        // Pipes and iterators can be read only once, so their content is put aside for the second reading.
        let parent = workspace.temporary.parent();
        resolved.inputs.put_aside_in(parent).map_err(|error| workspace.temporary.explain(error))?;
    }
    let (mut corpus, counts) = read(config, &resolved, &outputs.requested.unfinished, &workspace, watch)
        .map_err(|error| workspace.temporary.explain(error))?;
    check_keep_field(&resolved.keep, &corpus, &resolved.inputs, watch)?;
    if counts.read == 0 && !outputs.requested.allow_empty && !is_in_memory {
        return Err(nothing_read(&counts));
    }
    let sketches = corpus.take_sketches()?;
    let run = run_of(config, &resolved, &corpus)?;
    if let Some(added) = resolved.last_run.has_added(&run, config, &outputs.requested)? {
        return Ok(Report::of_added_before(resolved.criterion, counts, added));
    }
    let stages = Stages {
        resolved: &resolved,
        pairs: config.pairs || outputs.requested.write_pairs(),
        corpus: &corpus,
        sketches: sketches.as_ref(),
        keeping: config.resume.as_ref().map(|resume| Keeping {
            folder: &resume.folder,
            unfinished: &outputs.requested.unfinished,
            watch,
        }),
        workspace: &workspace,
        watch,
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
        how += &format!(" {}", place_of(store).display());
    }
    Ok(format!("{:016x}", xxh3_64_with_seed(how.as_bytes(), corpus.checksum()?)))
}

/// The error of a run that has read no document.
fn nothing_read(counts: &Counts) -> Error {
    let skipped = [
        (counts.bad, "invalid document or unreadable file", "invalid documents or unreadable files"),
        (counts.passed_over, "file of another kind", "files of other kinds"),
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
fn check_keep_field(keep: &Keep, corpus: &Corpus, inputs: &Inputs, watch: &dyn Watch) -> Result<()> {
    let (Some(field), missing @ 1..) = (keep.field(), corpus.missing) else { return Ok(()) };
    let takes_numbers = keep.takes_numbers();
    if missing < corpus.len() {
        watch.notice(&Notice::Warning(&format!(
            "{} without {}`{}`: such a document is kept only if all documents of its cluster lack it",
            count_of(missing as u64, "document"),
            if takes_numbers { "a number in " } else { "" },
            excerpt(field)
        )));
        return Ok(());
    }
    // A pipe cannot be read twice.
    let first = match inputs.pipes().next() {
        Some(_) => None,
        None => inputs.records().find_map(Result::ok),
    };
    let there = match first.map(|record| record.field_names()) {
        Some(names) if !names.is_empty() => {
            format!("{}; the first has {}", did_you_mean(field, &names), listed(&names))
        }
        _ => String::new(),
    };
    let wanted = if takes_numbers { "number in a " } else { "" };
    Err(Error::Refused(format!("option `keep`: no document has a {wanted}field `{}`{there}", excerpt(field))))
}
