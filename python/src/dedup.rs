//! The function `dedup`.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBool;
use serde_json::json;
use simstore::each_width;
use simstore::error::excerpt;
use simstore_corpus::{Diagnostic, InputKind, Inputs, Observer};
use simstore_dedup::{
    AddConfig, ClusterBy, ComparisonConfig, ComparisonOptions, Criterion, DedupConfig, DistanceConfig,
    Outputs, Report, ResumeConfig, RunObserver, WorkShard,
};
use simstore_io::DocumentOptions;
use simstore_io::numbers::format_count_of;
use simstore_text::Resources;

use crate::call::{self, Call};
use crate::deduplication::PyDeduplication;
use crate::documents::{DocumentIter, FieldNames, MalformedRows};
use crate::html::escape;
use crate::number_arguments::{self, read_bytes};
use crate::profile::PyProfile;
use crate::reference_input::ReferenceInput;
use crate::result_tables::{Results, RowMapping};
use crate::source::{Source, text_at};
use crate::summary::PySummary;

/// Finds near-duplicate documents, and writes the input without them.
///
/// Parameters
/// ----------
/// source : path, list of paths, texts, frame, dataset, table, or array
///     The documents. Files: paths, directories, archives and globs such as ``"crawl/*.warc.gz"``, as for the command line. Texts: a list,
///     set, generator, series or array of str; ``{"text": [...]}``. Tables: a frame of pandas or Polars (also lazy), Arrow data (tables,
///     streams, lists of record batches, DuckDB), datasets of pyarrow and Hugging Face, dicts of datasets; read in batches if the source
///     has batches. Dicts: an iterable of them. Fingerprints: numpy uint64, Arrow uint64 or fixed_size_binary[16], a list of ints.
///
///     A single string is a path. A list of strings is a list of paths if all of them exist; otherwise they are texts.
/// similar : float, optional
///     The threshold: the smallest Jaccard similarity of the shingles of two near-duplicates, up to 1. 0.8 by default. At least 0.43
///     with the default ``recall``; lower values need a smaller ``recall``.
/// exact : bool, default False
///     Find equal texts only: equal bytes in Unicode's normalisation form NFC.
/// recall : float, optional
///     The smallest probability of finding a pair exactly at the threshold, 0.95 by default. More similar pairs are found more often.
/// distance : int, optional
///     Compare fingerprints instead of texts: find fingerprints that differ in at most this many bits. If the
///     source has fingerprints, the default is 3, or the store's distance. If it has documents, the default is to
///     compare texts. But if ``profile``, ``bits`` or ``verify_text`` is given without ``similar``, fingerprints
///     are compared at distance 3, and a warning reports it.
/// bits : {64, 128}, optional
///     Width of fingerprints: 64, or the width of the store or the profile.
/// profile : Profile or str, optional
///     The profile that turns texts into fingerprints. With ``similar``, the same as ``verify_profile``.
/// verify_text : float, optional
///     With ``distance``, report only pairs whose texts have at least this similarity.
/// verify_profile : Profile or str, optional
///     The profile for comparing texts, instead of shingles: ``"code"`` for source code (the default for source files), ``"main-text"`` for
///     web pages without their navigation.
/// cluster_by : {"stars", "components"}, optional
///     "stars": every duplicate is directly similar to the kept document. "components": chains of similar documents form a cluster. The
///     default is "stars" for texts, and "components" for fingerprints.
/// keep : str
///     Which document of a cluster to keep: "first", "longest", "smallest-id", "newest:FIELD" (dates or numbers), "largest:FIELD" or
///     "smallest:FIELD" (numbers only), or "none" (no document of a cluster is kept). A document without a value comes last. Among
///     documents with equal values, the first is kept.
/// against : stores, or anything that ``source`` may be, optional
///     Also remove near-duplicates of these documents, such as a test set. In the table ``removed``, the column
///     ``stored`` is True for the near-duplicates of these documents. Paths name stores, or files of documents.
///     With a store of fingerprints, a source of documents needs ``distance``. If the store keeps no texts, the
///     similarity to stored documents is an estimate. Then a document whose similarity is close to the threshold
///     may be removed or kept wrongly.
/// add, again : bool
///     ``add``: whether to add the kept documents to the first store, which is created if it is missing. ``again``: add even if an
///     identical run has already added them. Store and files change together.
/// with_texts : bool
///     Whether a store of similar documents made by ``add`` keeps the texts. With texts, later comparisons are exact.
/// resume : path, optional
///     A directory for finished work, so that the next call continues an interrupted run.
/// shard : str, optional
///     Process only this shard, such as "1/4", into the directory ``resume``. A run without ``shard`` then joins all shards.
/// memory : int or str, optional
///     Memory limit, in bytes, or as "8G": 64 KiB or more. If more is needed, documents are compared on disk, in the directory
///     ``temporary``.
/// temporary : path, optional
///     A directory for temporary files, instead of the system's.
/// text : str or list of str
///     The field or column of the text, "text" by default. The texts of several fields are joined by newlines.
/// id : str, optional
///     The field or column of the id. By default "id" if it exists, otherwise the row number, or FILE:LINE.
/// format, delimiter, encoding, max_document : optional
///     Settings for reading files, like the options of the command line, such as "jsonl", ";", "gb18030" and "1G".
/// skip_bad : bool
///     Whether invalid documents are skipped and counted, with a warning for each, instead of ending the call.
/// output, annotated : path, optional
///     Files to write, if the source is files. ``output``: the input without duplicates, otherwise unchanged byte for byte. ``annotated``:
///     the whole input, with the cluster number of each document in the field ``cluster_field``.
/// clusters, keep_list, remove_list : path, optional
///     Tables to write, in the format of the file's name. With ``reasons``, ``remove_list`` has the most similar kept document for each
///     duplicate (with keep="none", the most similar document).
/// pairs : bool or path
///     Whether the result keeps all pairs; or a path to write the table of pairs.
/// report : bool or path
///     Whether the result has a page to look at in a browser (`Deduplication.report` writes it); or a path to write it. It shows
///     similarities, clusters, and removed documents beside the kept ones, word by word. The source is read once more.
/// force : bool
///     Whether ``output`` and ``annotated`` may replace an input.
/// allow_empty : bool
///     Whether a call succeeds, and writes empty outputs, if the files have no documents. By default such a call raises an exception, and
///     leaves outputs and stores unchanged. Sources other than paths may always be empty.
/// progress : callable or bool, optional
///     A callable receives a `Progress` from time to time; True shows bars of tqdm.
///
/// Returns
/// -------
/// Deduplication
///
/// Raises
/// ------
/// FileNotFoundError
///     If a path does not exist.
/// ValueError
///     If options contradict each other, columns are missing, or (as `simstore.errors.BadInputError`) documents are invalid.
///
/// Notes
/// -----
/// All files and the changes of the store become visible together at the end. Ctrl-C leaves no files.
///
/// Examples
/// --------
/// >>> import simstore
/// >>> text = "to be or not to be that is the question"
/// >>> result = simstore.dedup([{"text": text}, {"text": text + " "}, {"text": "something else altogether"}])
/// >>> result.is_kept
/// array([ True, False,  True])
/// >>> result.summary["duplicates"]
/// 1
#[pyfunction]
#[pyo3(signature = (
    source, *, similar=None, exact=false, recall=None, distance=None, bits=None, profile=None, verify_text=None, verify_profile=None,
    cluster_by=None, keep="first", against=None, add=false, again=false, with_texts=false, resume=None, shard=None, memory=None, temporary=None,
    text=None, id=None, format=None, delimiter=None, encoding="auto", max_document=None, skip_bad=false, output=None,
    annotated=None, cluster_field="cluster", clusters=None, pairs=None, keep_list=None, remove_list=None, reasons=false, report=None,
    force=false, allow_empty=false, progress=None,
))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "they are the options of the command line"
)]
pub(crate) fn dedup(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    similar: Option<f64>,
    exact: bool,
    recall: Option<f64>,
    #[pyo3(from_py_with = number_arguments::distance)] distance: Option<u32>,
    #[pyo3(from_py_with = number_arguments::bits)] bits: Option<u32>,
    profile: Option<&Bound<'_, PyAny>>,
    verify_text: Option<f64>,
    verify_profile: Option<&Bound<'_, PyAny>>,
    cluster_by: Option<&str>,
    keep: &str,
    against: Option<&Bound<'_, PyAny>>,
    add: bool,
    again: bool,
    with_texts: bool,
    resume: Option<PathBuf>,
    shard: Option<&str>,
    #[pyo3(from_py_with = number_arguments::memory)] memory: Option<u64>,
    temporary: Option<PathBuf>,
    text: Option<&Bound<'_, PyAny>>,
    id: Option<String>,
    format: Option<&str>,
    delimiter: Option<&str>,
    encoding: &str,
    max_document: Option<&Bound<'_, PyAny>>,
    skip_bad: bool,
    output: Option<PathBuf>,
    annotated: Option<PathBuf>,
    cluster_field: &str,
    clusters: Option<PathBuf>,
    pairs: Option<&Bound<'_, PyAny>>,
    keep_list: Option<PathBuf>,
    remove_list: Option<PathBuf>,
    reasons: bool,
    report: Option<&Bound<'_, PyAny>>,
    force: bool,
    allow_empty: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyDeduplication> {
    let (keeps_pairs, pairs) = flag_or_path(pairs)?;
    let (keeps_report, report) = flag_or_path(report)?;
    let mut comparison = ComparisonOptions {
        similar,
        exact,
        recall,
        distance,
        bits,
        verify_text,
        ..ComparisonOptions::default()
    };
    let resources = set_profiles(&mut comparison, profile, verify_profile)?;
    let mut config = DedupConfig {
        resources,
        cluster_by: cluster_by.map(parse_cluster_by).transpose()?,
        keep: keep.parse().map_err(|error| argument_error("keep", keep, &error))?,
        add: AddConfig::from_options(add, with_texts, again)
            .map_err(|error| crate::errors::exception(py, error))?,
        resume: resume.map(ResumeConfig::from),
        pairs: keeps_pairs,
        report: keeps_report,
        memory,
        temporary_folder: temporary,
        ..DedupConfig::default()
    };
    let keep_field = config.keep.field().map(str::to_owned);
    let texts = text.map(one_or_many::<String>).transpose()?.unwrap_or_else(|| vec!["text".to_owned()]);
    if texts.is_empty() {
        return Err(PyValueError::new_err("option `text` names no field"));
    }
    let names = FieldNames { texts, id, extra: keep_field };
    let reading = DocumentOptions {
        text_fields: names.texts.clone(),
        id_field: names.id.clone(),
        format: format.map(str::parse).transpose().map_err(|error| crate::errors::exception(py, error))?,
        delimiter: delimiter.map(parse_delimiter).transpose()?,
        encoding: encoding.parse().map_err(|error| crate::errors::exception(py, error))?,
        ..DocumentOptions::default()
    };
    let max_bytes = max_document.map(|bytes| read_bytes("max_document", bytes)).transpose()?;
    let max_bytes = max_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
    let reading = DocumentOptions { max_bytes: max_bytes.unwrap_or(reading.max_bytes), ..reading };
    let outputs = Outputs {
        output,
        annotated,
        cluster_field: Some(cluster_field.to_owned()),
        clusters,
        pairs,
        keep_list,
        remove_list,
        reasons,
        report,
        force,
        allow_empty,
        ..Outputs::default()
    };
    if outputs.uses_stdout() {
        return Err(PyValueError::new_err(
            "`-` is no file: standard output is that of the whole process here",
        ));
    }
    let shard = shard.map(str::parse).transpose().map_err(|error| crate::errors::exception(py, error))?;
    let against = ReferenceInput::read(against, &names, add, comparison.bits)?;
    let input = Source::read(source, &names, comparison.bits)?;
    if let Source::Fingerprints(values) = &input
        && values.bits() == 128
    {
        comparison.bits = Some(128);
    }
    let has_documents = matches!(input, Source::Documents(_));
    let (mut results, summary) = call::with_progress(py, progress, |call| {
        config.comparison = comparison.into_config(&config.resources, &**call)?;
        let has_fingerprints = matches!(input, Source::Fingerprints(_));
        let _temporary_folder =
            against.set_stores(&mut config, &reading, skip_bad, has_fingerprints, call)?;
        let (inputs, malformed) = inputs_of(input, reading, call)?;
        run(&inputs.skip_malformed(skip_bad), malformed, &config, outputs, shard, call)
    })?;
    for large in
        results.iter_mut().filter(|_| has_documents).flat_map(|results| &mut results.row_labels.largest)
    {
        large.text = large.row.and_then(|row| text_at(source, &names, row)).map(|text| escape(&text));
    }
    Ok(PyDeduplication::new(results, Py::new(py, summary)?))
}

/// Reads an option that is a bool or a path. Returns whether it is `True`, and the path.
fn flag_or_path(option: Option<&Bound<'_, PyAny>>) -> PyResult<(bool, Option<PathBuf>)> {
    let Some(option) = option.filter(|option| !option.is_none()) else { return Ok((false, None)) };
    match option.cast::<PyBool>() {
        Ok(flag) => Ok((flag.is_true(), None)),
        Err(_) => Ok((false, Some(option.extract()?))),
    }
}

/// Returns the inputs. If the source is an iterable of documents, also returns the list of malformed rows, which is filled during reading.
fn inputs_of(
    input: Source,
    reading: DocumentOptions,
    call: &Arc<Call>,
) -> simstore::Result<(Inputs, Option<MalformedRows>)> {
    Ok(match input {
        Source::Paths(paths) => (Inputs::new(&paths, reading)?, None),
        Source::Fingerprints(values) => {
            (each_width!(values, values => Inputs::from_fingerprints(values, None))?, None)
        }
        Source::Documents(documents) => {
            let (handed, malformed) = DocumentIter::new(documents, call);
            (Inputs::from_documents(handed), Some(malformed))
        }
    })
}

/// Collects the results during a run.
struct ResultCollector<'a> {
    call: &'a Arc<Call>,
    kind: InputKind,
    malformed: Option<MalformedRows>,
    /// Whether all pairs are part of the results.
    pairs: bool,
    /// Whether the report page is part of the results.
    report: bool,
    results: Mutex<Option<Results>>,
}

impl RunObserver for ResultCollector<'_> {
    fn observer(&self) -> &dyn Observer {
        &**self.call
    }

    fn before_writing(&self, report: &Report) -> simstore::Result<()> {
        let summary = report.summary();
        self.call.push_input_diagnostics(&report.counts(), self.kind);
        if matches!(summary.criterion, Criterion::Distance(_)) {
            report
                .counts()
                .short_diagnostic()
                .iter()
                .for_each(|diagnostic| self.call.push_diagnostic(diagnostic));
        }
        if summary.repeated_ids > 0 {
            self.call.push_diagnostic(&Diagnostic::DuplicateIds(summary.repeated_ids as u64));
        }
        Ok(())
    }

    fn before_publishing(&self, report: &Report) -> simstore::Result<()> {
        let malformed = self.malformed.as_ref();
        let malformed = malformed
            .map(|malformed| malformed.lock().unwrap_or_else(PoisonError::into_inner).clone())
            .unwrap_or_default();
        let rows = RowMapping::new(&malformed);
        let mut results = Results::from_report(report, &rows, malformed.len(), self.pairs, self.call)?;
        if self.report {
            results.page = report.page(&**self.call)?;
        }
        *self.results.lock().unwrap_or_else(PoisonError::into_inner) = Some(results);
        // Warnings may be errors: raise them before anything is published.
        self.call.show_messages()
    }
}

fn run(
    inputs: &Inputs,
    malformed: Option<MalformedRows>,
    config: &DedupConfig,
    outputs: Outputs,
    shard: Option<WorkShard>,
    call: &Arc<Call>,
) -> simstore::Result<(Result<Results, String>, PySummary)> {
    if let Some(shard) = shard {
        return make_shard(inputs, shard, config, &outputs, call);
    }
    let kind = inputs.kind()?;
    let collector = ResultCollector {
        call,
        kind,
        malformed,
        pairs: config.pairs,
        report: config.report,
        results: Mutex::new(None),
    };
    let report = simstore_dedup::run(config, inputs, outputs, &collector)?;
    let summary = report.summary();
    if let Some(added) = report.added_before() {
        let values = json!({"documents": summary.documents, "added": 0, "added_before": added});
        let text = format!(
            "the same run has added {} before: store and outputs are unchanged",
            format_count_of(added, "document")
        );
        let why = "the same run has added its documents to the store before, and cannot tell again which were new: \
                   again=True compares with the store as it is now";
        return Ok((Err(why.to_owned()), PySummary::new(&values, text)));
    }
    let results = collector.results.into_inner().unwrap_or_else(PoisonError::into_inner);
    let results = results.ok_or_else(|| simstore::Error::Bug("a run without results".to_owned()))?;
    // The summary has the values of its JSON form, so that similarities have the same digits.
    let values = serde_json::to_string(summary).and_then(|json| serde_json::from_str(&json));
    let values = values.map_err(|error| simstore::Error::Bug(error.to_string()))?;
    Ok((Ok(results), PySummary::new(&values, crate::errors::python_message(&summary.to_string()))))
}

/// Processes the parts of the work that belong to one shard, and writes them to the directory of option `resume`.
/// A later run without option `shard` joins the parts of all shards and finds the near-duplicates.
fn make_shard(
    inputs: &Inputs,
    shard: WorkShard,
    config: &DedupConfig,
    outputs: &Outputs,
    call: &Arc<Call>,
) -> simstore::Result<(Result<Results, String>, PySummary)> {
    let bad = |reason: &str| Err(simstore::Error::BadArgument(reason.to_owned()));
    if !outputs.is_empty()
        || !config.against.is_empty()
        || has_text_verification(&config.comparison)
        || config.pairs
        || config.report
    {
        return bad(
            "option `shard` makes parts alone: files, stores, pairs, reports and option `verify_text` are for the run that joins them",
        );
    }
    let (counts, tally) = simstore_dedup::make_shard(config, inputs, shard, &outputs.unfinished, &**call)?;
    // If all files were left to other shards or reused, nothing was read and there is nothing to report.
    if tally.reused + tally.left_to_others == 0 || counts.read + counts.malformed > 0 {
        call.push_input_diagnostics(&counts, InputKind::Documents);
    }
    let values = json!({"documents": counts.read, "found": tally.reused, "made": tally.made, "left": tally.left_to_others});
    let text = format!(
        "{} processed, {} reused, {} left to other shards; when all are in one directory, run this without option `shard`",
        format_count_of(tally.made, "part"),
        tally.reused,
        tally.left_to_others
    );
    Ok((
        Err("only the parts of a shard were made: without `shard`, all of them are joined".to_owned()),
        PySummary::new(&values, text),
    ))
}

fn has_text_verification(compare: &ComparisonConfig) -> bool {
    matches!(compare, ComparisonConfig::Distance(DistanceConfig { verify: Some(_), .. }))
}

fn parse_cluster_by(name: &str) -> PyResult<ClusterBy> {
    match name {
        "components" => Ok(ClusterBy::Components),
        "stars" => Ok(ClusterBy::Stars),
        _ => Err(PyValueError::new_err(format!(
            "cluster_by is '{}': expected 'stars' or 'components'",
            excerpt(name)
        ))),
    }
}

fn argument_error(argument: &str, value: &str, error: &simstore::Error) -> PyErr {
    PyValueError::new_err(format!("{argument} is '{}': {error}", excerpt(value)))
}

/// Reads a single value or a list of values.
pub(crate) fn one_or_many<'py, T: for<'a> FromPyObject<'a, 'py, Error = PyErr>>(
    object: &Bound<'py, PyAny>,
) -> PyResult<Vec<T>> {
    match object.extract::<T>() {
        Ok(one) => Ok(vec![one]),
        Err(_) => object.try_iter()?.map(|one| one?.extract()).collect(),
    }
}

fn parse_delimiter(delimiter: &str) -> PyResult<u8> {
    match delimiter.as_bytes() {
        b"tab" => Ok(b'\t'),
        &[byte] if byte.is_ascii_punctuation() && byte != b'"' || b"\t ".contains(&byte) => Ok(byte),
        _ => Err(PyValueError::new_err(format!(
            "delimiter is {:?}: expected one character of ASCII, such as ';' or '|', or 'tab'",
            excerpt(delimiter)
        ))),
    }
}

/// Sets the profiles in `options`. An argument is a profile's name or a Python `Profile`. Returns the resource
/// files of all profiles.
fn set_profiles(
    options: &mut ComparisonOptions,
    profile: Option<&Bound<'_, PyAny>>,
    verify_profile: Option<&Bound<'_, PyAny>>,
) -> PyResult<Resources> {
    let mut resources = Resources::default();
    let mut name_of = |object: &Bound<'_, PyAny>| -> PyResult<(String, Option<u32>)> {
        if let Ok(name) = object.extract::<String>() {
            return Ok((name, None));
        }
        let Ok(profile) = object.cast::<PyProfile>() else {
            let found = object.get_type().name()?;
            return Err(PyTypeError::new_err(format!(
                "expected a simstore.Profile or its name, found {found}"
            )));
        };
        let profile = profile.get();
        let files = &profile.resources;
        for (all, files) in [
            (&mut resources.dictionary, &files.dictionary),
            (&mut resources.stop_words, &files.stop_words),
            (&mut resources.idf, &files.idf),
        ] {
            if all.is_none() {
                all.clone_from(files);
            }
        }
        Ok((profile.inner.to_string(), Some(profile.bits())))
    };
    if let Some(profile) = profile.filter(|profile| !profile.is_none()) {
        let (name, bits) = name_of(profile)?;
        options.profile = Some(name);
        // A width of 64 bits is the default, so a store may override it.
        options.bits = options.bits.or(bits.filter(|&bits| bits == 128));
    }
    if let Some(profile) = verify_profile.filter(|profile| !profile.is_none()) {
        options.verify_profile = Some(name_of(profile)?.0);
    }
    Ok(resources)
}
