//! A run, from a configuration to a report.

use std::time::Instant;

use simstore::error::{did_you_mean, excerpt};
use simstore::{Error, Result};
use simstore_corpus::{Diagnostic, InputCounts, Inputs, Observer};
use simstore_io::formats::format_names;
use simstore_io::numbers::format_count_of;
use simstore_io::output::resolve_path;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::checkpoint::stage_results::StageCheckpoints;
use crate::config::DedupConfig;
use crate::config::criterion::Criterion;
use crate::config::resolve::ResolvedConfig;
use crate::documents::Corpus;
use crate::documents::keep_rule::KeepRule;
use crate::documents::text_starts::TextStarts;
use crate::pipeline::read_corpus::read_corpus;
use crate::pipeline::stages::Pipeline;
use crate::report::Report;
use crate::report::open_outputs::OpenOutputs;
use crate::report::outputs::Outputs;
use crate::report::page::warning_recorder::WarningRecorder;
use crate::report::run_results::{RunResults, StoreAddition};
use crate::workspace::Workspace;

/// Receives the progress and the results of [`run`]. Each [`Observer`] also implements this trait; as a
/// `RunObserver`, it ignores the results.
pub trait RunObserver {
    /// Returns the observer of progress and messages. It can cancel the run.
    fn observer(&self) -> &dyn Observer;

    /// Called after all near-duplicates are found, before any output is written.
    ///
    /// # Errors
    /// An error ends the run. Nothing is written.
    fn before_writing(&self, report: &Report) -> Result<()> {
        let _ = report;
        Ok(())
    }

    /// Called after all output files are complete, before they are renamed to their final names and before the store
    /// changes.
    ///
    /// # Errors
    /// An error ends the run. The output files are removed.
    fn before_publishing(&self, report: &Report) -> Result<()> {
        let _ = report;
        Ok(())
    }
}

impl<W: Observer> RunObserver for W {
    fn observer(&self) -> &dyn Observer {
        self
    }
}

/// Reads all inputs, finds near-duplicates and writes the outputs. If [`DedupConfig::add`] is set, adds the
/// kept documents to a store. At the end, the store changes and the output files are renamed to their final names, in
/// one step. If the process is killed during this step, the next run that adds to the store completes it.
///
/// # Errors
/// After an error, nothing is written or added, unless its message says otherwise.
/// - [`Error::BadArgument`] if options or outputs are invalid, or do not apply to the inputs.
/// - [`Error::Refused`] if an input changes during the run, if the memory limit is too low, or if a store is
///   missing.
/// - [`Error::Cancelled`] if the observer cancels the run.
/// - [`Error::BadInput`] for a malformed document, unless malformed documents are
///   [skipped](Inputs::skip_malformed).
/// - Errors of the run observer, of reading, of writing, and of the store.
pub fn run(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    run_observer: &dyn RunObserver,
) -> Result<Report> {
    let (started, observer) = (Instant::now(), run_observer.observer());
    let mut report = find_duplicates(config, inputs, outputs, observer)?;
    if report.added_before().is_some() {
        return Ok(report);
    }
    run_observer.before_writing(&report)?;
    report.write(observer)?;
    report.set_seconds(started.elapsed().as_secs_f64());
    run_observer.before_publishing(&report)?;
    report.publish(observer)?;
    Ok(report)
}

/// Resolves the configuration, opens the outputs, reads all inputs, and finds near-duplicates.
pub(crate) fn find_duplicates(
    config: &DedupConfig,
    inputs: &Inputs,
    outputs: Outputs,
    observer: &dyn Observer,
) -> Result<Report> {
    let recorder = WarningRecorder::new(observer);
    let observer: &dyn Observer = &recorder;
    let resolved = config.resolve(inputs, Some(&outputs), observer)?;
    let is_in_memory = inputs.is_in_memory();
    let workspace = Workspace::new(config, &outputs.unfinished, observer)?;
    // Outputs are opened first, so that a missing folder is reported before the work starts.
    let outputs = OpenOutputs::create(outputs)?;
    if resolved.reads_twice && resolved.file_list.is_some() {
        // Pipes and iterators can be read only once, so their content is copied to a temporary file for the
        // second reading.
        let parent = workspace.temporary.parent();
        resolved.inputs.spool_in(parent).map_err(|error| workspace.temporary.explain(error))?;
    }
    let (mut corpus, counts) =
        read_corpus(config, &resolved, &outputs.requested.unfinished, &workspace, observer)
            .map_err(|error| workspace.temporary.explain(error))?;
    check_keep_field(&resolved.keep, &corpus, &resolved.inputs, observer)?;
    if counts.read == 0 && !outputs.requested.allow_empty && !is_in_memory {
        return Err(no_documents_error(&counts));
    }
    let signatures = corpus.take_signatures()?;
    let run = run_hash(config, &resolved, &corpus)?;
    if let Some(added) = resolved.last_run.added_by_same_run(&run, config, &outputs.requested)? {
        return Ok(Report::for_repeated_run(resolved.criterion, counts, added));
    }
    let texts = match resolved.has_report {
        true => Some(TextStarts::new(&workspace.temporary)?),
        false => None,
    };
    let stages = Pipeline {
        resolved: &resolved,
        with_pairs: config.pairs || outputs.requested.needs_pairs(),
        with_histogram: resolved.has_report,
        texts: texts.as_ref(),
        corpus: &corpus,
        signatures: signatures.as_ref(),
        checkpoints: config.resume.as_ref().map(|resume| StageCheckpoints {
            folder: &resume.folder,
            unfinished: &outputs.requested.unfinished,
            observer,
        }),
        workspace: &workspace,
        observer,
    };
    let outcome = stages.run()?;
    let addition = config.add.is_some().then(|| StoreAddition::new(&resolved, run, signatures));
    Report::new(
        RunResults { resolved, corpus, outcome, texts, workspace, addition },
        counts,
        outputs,
        recorder,
    )
}

/// Returns a hash of the documents and options, which identifies the run. Stores keep this hash, so later
/// versions must compute the same one.
fn run_hash(config: &DedupConfig, resolved: &ResolvedConfig, corpus: &Corpus) -> Result<String> {
    if config.add.is_none() {
        return Ok(String::new());
    }
    let ResolvedConfig { criterion, recall, cluster_by, keep, profile, .. } = resolved;
    let criterion_text = match criterion {
        Criterion::Distance(distance) => distance.to_string(),
        Criterion::Similarity(least) => format!("similar {least} {recall}"),
    };
    let mut parameters =
        format!("{} {criterion_text} {cluster_by:?} {keep:?} {profile}", corpus.width().bits());
    // The other stores affect the result too.
    for store in config.against.iter().skip(1) {
        parameters += &format!(" {}", resolve_path(store).display());
    }
    Ok(format!("{:016x}", xxh3_64_with_seed(parameters.as_bytes(), corpus.checksum()?)))
}

/// Returns the error for a run whose inputs have no documents.
fn no_documents_error(counts: &InputCounts) -> Error {
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

/// Warns if some documents lack the field that the keep rule compares. Fails if all documents lack this field.
fn check_keep_field(
    keep: &KeepRule,
    corpus: &Corpus,
    inputs: &Inputs,
    observer: &dyn Observer,
) -> Result<()> {
    let (Some(field), missing @ 1..) = (keep.field(), corpus.missing_values) else { return Ok(()) };
    let compares_numbers = keep.compares_numbers();
    if missing < corpus.len() {
        observer.diagnostic(&Diagnostic::Warning(&format!(
            "{} without {}`{}`: such a document is kept only if all documents of its cluster lack it",
            format_count_of(missing as u64, "document"),
            if compares_numbers { "a number in " } else { "" },
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
    let wanted = if compares_numbers { "number in a " } else { "" };
    Err(Error::Refused(format!("option `keep`: no document has a {wanted}field `{}`{there}", excerpt(field))))
}
