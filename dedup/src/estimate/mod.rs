//! Dry run: estimates the number of documents of a run, and its memory and disk space, from a sample of the
//! inputs.

pub(crate) mod search_estimate;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_text::Profile;

use crate::checkpoint::parts;
use crate::config::DedupConfig;
use crate::config::criterion::Criterion;
use crate::config::resolve::ResolvedConfig;
use crate::estimate::search_estimate::{SearchEstimate, estimate_search};
use crate::pipeline::stored::candidate_lookup::SimilarStoreRef;
use simstore_corpus::Stage;
use simstore_corpus::report_read_diagnostics;
use simstore_corpus::spill::MemoryBudget;
use simstore_corpus::{Diagnostic, InputKind, Inputs, Observer};
use simstore_io::bytes::cannot_open;
use simstore_io::{DocumentId, InputFile};

/// Maximum number of files that are sampled. The sampled files are spread evenly over all files.
const SAMPLED_FILES: usize = 16;
/// Number of documents that are read from each sampled file. If the read buffer holds the whole file, more
/// documents are read.
const SAMPLED_DOCUMENTS_PER_FILE: u64 = 2000;
/// Memory per fingerprint during a run, as a multiple of the size of the fingerprint. It covers the corpus, the
/// sorted list of fingerprints, the search for near pairs, and the clusters.
const FINGERPRINT_MEMORY_FACTOR: f64 = 3.5;
/// Memory per document during a run that compares MinHash signatures, in bytes, besides the id of the document.
const SIGNATURE_MEMORY_BYTES: f64 = 144.0;
/// Memory for an id of a document, in bytes, besides the text of the id. Ids that equal the position of the
/// document in the input take no memory.
const ID_MEMORY_BYTES: f64 = 12.0;
/// Space in temporary files per fingerprint, as a multiple of the size of the fingerprint, if documents spill to
/// disk. A fingerprint is written once with the corpus, and twice for the search for near pairs.
const FINGERPRINT_DISK_FACTOR: f64 = 3.0;
/// Space in temporary files for a MinHash signature and the checksum of its document, in bytes. A signature is
/// written twice: when its document is read, and before the search for pairs of documents with similar bands.
const JOINED_SIGNATURE_DISK_BYTES: f64 = 160.0;
/// Size in bytes that a document takes in a part file. Part files keep the fingerprints of documents, so that an
/// interrupted run can [resume](DedupConfig::resume).
const PART_DOCUMENT_BYTES: f64 = 32.0;
/// Size in bytes that a document takes in a part file if documents have MinHash signatures. Part files keep these
/// signatures, so that an interrupted run can [resume](DedupConfig::resume).
const PART_SIGNATURE_BYTES: f64 = 120.0;
/// Size in bytes of the text that a dry run fingerprints, to measure how much memory reading takes. The text is
/// the start of the first file, and fills a few batches of documents.
const MEASURED_TEXT_BYTES: u64 = 24 << 20;
/// Assumed peak memory of the program while it reads inputs, in bytes. Used if the system does not report the peak
/// memory of the process.
const DEFAULT_READING_MEMORY_BYTES: u64 = 64 << 20;

/// Result of a dry run: the estimated number of documents, memory and disk space of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of input files.
    pub files: usize,
    /// Total size of all input files on disk, in bytes.
    pub bytes: u64,
    /// Number and size of the files of each format, by the name of the format.
    pub formats: BTreeMap<String, FormatTotals>,
    /// Number of pipes and other inputs whose size is unknown until they are read.
    pub pipes: usize,
    /// Estimated number of documents, extrapolated from the first documents of the sampled files.
    pub documents: u64,
    /// Estimated size of all texts in bytes; 0 if the inputs are files of fingerprints.
    pub text_bytes: u64,
    /// Estimated peak memory of the process in bytes. The memory for documents is limited to
    /// [`budget_of_documents`](Self::budget_of_documents), because documents beyond this limit spill to disk.
    pub memory: u64,
    /// Memory that the fingerprints or signatures and the ids of all documents would take without a memory limit,
    /// in bytes.
    pub memory_of_documents: u64,
    /// Minimum similarity or maximum distance of near-duplicates.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Estimate of the search for similar texts; `None` if documents are compared by distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchEstimate>,
    /// Memory limit of the run in bytes: [`DedupConfig::memory`] if it is set, else the available memory. `None` if
    /// the system does not report the available memory.
    pub budget: Option<u64>,
    /// Part of the memory limit that documents may take, in bytes; `None` if there is no limit.
    pub budget_of_documents: Option<u64>,
    /// Whether documents spill to disk, because [`memory_of_documents`](Self::memory_of_documents) exceeds
    /// [`budget_of_documents`](Self::budget_of_documents).
    pub spills: bool,
    /// Estimated maximum size of the temporary files for spilled documents and listed pairs, in bytes. The
    /// temporary files with the features of the compared texts are not included.
    pub disk_of_temporary: u64,
    /// Number of part files that a run with [`DedupConfig::resume`] would write. If the run is divided into
    /// shards, each shard writes some of these files.
    pub parts: usize,
    /// Estimated size in bytes of the part files, in which a run with [`DedupConfig::resume`] saves the fingerprints or
    /// signatures of its documents.
    pub disk_of_parts: u64,
    /// Estimated maximum size of the output file with the kept documents, in bytes.
    pub disk_of_output: u64,
}

impl Estimate {
    /// Maximum number of files that a dry run samples to estimate the number of documents.
    pub const SAMPLED_FILES: usize = SAMPLED_FILES;
}

/// Number and size of the input files of one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FormatTotals {
    /// Number of input files of the format.
    pub files: usize,
    /// Total size of the input files of the format on disk, in bytes.
    pub bytes: u64,
}

/// Totals over the sampled documents. `input_bytes` is the size of the documents in their (maybe compressed) files.
#[derive(Default)]
struct FileSample {
    documents: f64,
    text_bytes: f64,
    id_bytes: f64,
    input_bytes: f64,
}

impl FileSample {
    /// Reads the first documents of `file`, and adds these documents to the totals.
    fn add(&mut self, file: &InputFile, inputs: &Inputs, stage: &Stage<'_>) -> Result<()> {
        let (mut reader, options) = (inputs.with_paths(vec![file.path.clone()]).records(), inputs.options());
        let progress = reader.progress();
        let mut seen = 0;
        let mut is_whole = true;
        // Malformed documents count too.
        for record in reader.by_ref() {
            seen += 1;
            stage.add(1)?;
            match record.and_then(|record| record.into_document(options)) {
                Ok(document) => {
                    self.text_bytes += document.text.len() as f64;
                    if let DocumentId::Name(name) = &document.id {
                        self.id_bytes += name.len() as f64 + ID_MEMORY_BYTES;
                    }
                }
                Err(error) => ignore_skipped_error(error, inputs)?,
            }
            // A small file is in the read buffer as a whole, so all of its documents are counted, up to 100
            // times the usual number.
            let is_much =
                progress.bytes() < file.bytes.unwrap_or_default() || seen == 100 * SAMPLED_DOCUMENTS_PER_FILE;
            if seen >= SAMPLED_DOCUMENTS_PER_FILE && is_much {
                is_whole = false;
                break;
            }
        }
        self.documents += seen as f64;
        let size = file.bytes.unwrap_or_default();
        self.input_bytes += if is_whole { size } else { progress.bytes().min(size) } as f64;
        Ok(())
    }

    /// Creates an estimate from `self`, which must have the totals of all documents, not only of a sample. Besides
    /// its id, a document takes `memory` bytes of memory and, if documents spill, `disk` bytes in temporary files.
    /// The caller sets the fields for texts, the search, part files and outputs.
    fn estimate(
        &self,
        config: &DedupConfig,
        criterion: Criterion,
        formats: BTreeMap<String, FormatTotals>,
        pipes: usize,
        [memory, disk]: [f64; 2],
        reading_memory: u64,
    ) -> Estimate {
        let budget = MemoryBudget::new(config.memory);
        let has_limit = budget.total < u64::MAX;
        let memory_of_documents = (self.documents * memory + self.id_bytes) as u64;
        let spills = memory_of_documents > budget.bytes;
        Estimate {
            files: formats.values().map(|format| format.files).sum(),
            bytes: formats.values().map(|format| format.bytes).sum(),
            formats,
            pipes,
            documents: self.documents.round() as u64,
            text_bytes: 0,
            memory: memory_of_documents.min(budget.bytes) + reading_memory,
            memory_of_documents,
            criterion,
            search: None,
            budget: has_limit.then_some(budget.total),
            budget_of_documents: has_limit.then_some(budget.bytes),
            spills,
            disk_of_temporary: if spills { (self.documents * disk + self.id_bytes) as u64 } else { 0 },
            parts: 0,
            disk_of_parts: 0,
            disk_of_output: 0,
        }
    }
}

/// Returns `Ok` if `error` is about a malformed document that the run would skip; otherwise returns `error`.
fn ignore_skipped_error(error: Error, inputs: &Inputs) -> Result<()> {
    match error {
        Error::BadInput { .. } if inputs.skips_malformed() => Ok(()),
        error => Err(error),
    }
}

/// Returns the peak memory of the program while it reads inputs, in bytes. To measure this memory, the function
/// reads and fingerprints the start of `file`, as a run does. So the result includes the dictionaries for word
/// segmentation, and the batches of documents on all cores.
fn measure_reading_memory<F: Fingerprint>(
    file: Option<&InputFile>,
    inputs: &Inputs,
    profile: &Profile,
    stage: &Stage<'_>,
) -> Result<u64> {
    let mut bytes = 0;
    let first = inputs.with_paths(file.map(|file| file.path.clone()).into_iter().collect());
    for document in first.fingerprint_documents::<F>(profile) {
        stage.add(0)?;
        // Malformed documents count too, so that the loop also ends early in a file of only malformed
        // documents.
        bytes += document.map_or(1024, |document| document.text_bytes);
        if bytes > MEASURED_TEXT_BYTES {
            break;
        }
    }
    Ok(peak_memory().unwrap_or(DEFAULT_READING_MEMORY_BYTES))
}

/// Returns the peak memory of this process in bytes; `None` if the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Estimates the number of documents, the memory and the disk space of a run, from the first documents of
/// some files. For compressed files of fingerprints, the estimate is too low, because it assumes that files are
/// not compressed.
///
/// # Errors
/// - [`Error::Cancelled`] if the observer cancels.
/// - [`Error::BadInput`] for a malformed document in the sample, unless malformed documents are
///   [skipped](Inputs::skip_malformed).
/// - Other errors if options are invalid, or if the input files cannot be listed.
pub fn estimate(config: &DedupConfig, inputs: &Inputs, observer: &dyn Observer) -> Result<Estimate> {
    let resolved = config.resolve(inputs, None, observer)?;
    match resolved.kind {
        InputKind::Fingerprints => {
            each_width!(resolved.width, type F => estimate_fingerprints::<F>(&resolved, config, observer))
        }
        InputKind::Documents => estimate_documents(&resolved, config, observer),
    }
}

/// Estimates a run on files of fingerprints. The size of a raw (binary) file gives the number of its fingerprints.
/// For a file with one fingerprint per line, the number of fingerprints is estimated from the first lines.
fn estimate_fingerprints<F: Fingerprint>(
    resolved: &ResolvedConfig,
    config: &DedupConfig,
    observer: &dyn Observer,
) -> Result<Estimate> {
    let ResolvedConfig { inputs, criterion, .. } = resolved;
    let stage = Stage::new(observer, "fingerprints sampled");
    let (mut formats, mut pipes, mut all): (BTreeMap<String, FormatTotals>, _, _) =
        (BTreeMap::new(), 0, FileSample::default());
    let listed = Arc::default();
    let paths = inputs.fingerprint_files_with_progress(&listed)?;
    report_read_diagnostics(&listed, observer);
    for path in paths {
        stage.add(0)?;
        let metadata = match path.metadata().map_err(cannot_open(&path)) {
            Ok(metadata) => metadata,
            Err(error @ Error::BadInput { .. }) if inputs.skips_malformed() => {
                observer.diagnostic(&Diagnostic::Malformed(&error));
                continue;
            }
            Err(_) if path.as_os_str() == "-" => {
                pipes += 1;
                continue;
            }
            Err(error) => return Err(error),
        };
        if !metadata.is_file() {
            pipes += 1;
            continue;
        }
        let is_raw = path.extension().is_some_and(|extension| extension == "u64" || extension == "u128");
        let mut seen = FileSample::default();
        for record in
            inputs.with_paths(vec![path]).fingerprints::<F>().take(SAMPLED_DOCUMENTS_PER_FILE as usize)
        {
            seen.documents += 1.0;
            let record = match record {
                Ok(record) => Some(record),
                Err(error) => ignore_skipped_error(error, inputs).map(|()| None)?,
            };
            let id = record.filter(|record| record.has_id).map(|record| record.id);
            let name = id.as_ref().map_or(0.0, |id| id.to_string().len() as f64);
            seen.id_bytes += if id.is_some() { name + ID_MEMORY_BYTES } else { 0.0 };
            let line = F::BYTES as f64 * 2.0 + 1.0 + if id.is_some() { name + 1.0 } else { 0.0 };
            seen.input_bytes += if is_raw { F::BYTES as f64 } else { line };
        }
        let size = metadata.len();
        let scale = if seen.input_bytes > 0.0 { size as f64 / seen.input_bytes } else { 0.0 };
        all.documents += seen.documents * scale;
        all.id_bytes += seen.id_bytes * scale;
        let format = formats.entry(if is_raw { "raw" } else { "hex" }.to_owned()).or_default();
        format.files += 1;
        format.bytes += size;
    }
    let bytes = F::BYTES as f64;
    let bytes_per_document = [bytes * FINGERPRINT_MEMORY_FACTOR, bytes * FINGERPRINT_DISK_FACTOR];
    let lines = all.documents * (bytes * 2.0 + 12.0) + all.id_bytes;
    let reading_memory = peak_memory().unwrap_or(DEFAULT_READING_MEMORY_BYTES);
    let estimate = all.estimate(config, *criterion, formats, pipes, bytes_per_document, reading_memory);
    Ok(Estimate { disk_of_output: lines as u64, ..estimate })
}

/// Estimates a run on files of documents, from the first documents of some files.
fn estimate_documents(
    resolved: &ResolvedConfig,
    config: &DedupConfig,
    observer: &dyn Observer,
) -> Result<Estimate> {
    let ResolvedConfig { inputs, criterion, profile, references, .. } = resolved;
    let stage = Stage::new(observer, "documents sampled");
    stage.add(0)?;
    let mut files: Vec<InputFile> = Vec::new();
    let mut listed = inputs.files();
    for file in listed.by_ref() {
        match file {
            Ok(file) => files.push(file),
            Err(error @ Error::BadInput { .. }) if inputs.skips_malformed() => {
                observer.diagnostic(&Diagnostic::Malformed(&error));
            }
            Err(error) => return Err(error),
        }
    }
    report_read_diagnostics(&listed.progress(), observer);
    let mut formats: BTreeMap<String, FormatTotals> = BTreeMap::new();
    for file in &files {
        let format = formats.entry(file.format.to_string()).or_default();
        format.files += 1;
        format.bytes += file.bytes.unwrap_or_default();
    }
    let sized: Vec<&InputFile> =
        files.iter().filter(|file| file.bytes.is_some_and(|bytes| bytes > 0)).collect();
    let mut sample = FileSample::default();
    for i in 0..sized.len().min(SAMPLED_FILES) {
        sample.add(sized[i * sized.len() / sized.len().min(SAMPLED_FILES)], inputs, &stage)?;
    }
    let parts =
        parts::part_count(inputs, files.iter().filter(|file| file.bytes.is_some()), config.section_bytes());
    let total: u64 = files.iter().filter_map(|file| file.bytes).sum();
    let scale = if sample.input_bytes > 0.0 { total as f64 / sample.input_bytes } else { 0.0 };
    let count = sample.documents * scale;
    // This comes before the search of a sample, while the peak memory is the memory of reading.
    let first = sized.first().copied();
    let reading_memory = each_width!(resolved.width, type F => {
        measure_reading_memory::<F>(first, inputs, profile, &stage)
    })?;
    let fingerprint_bytes = f64::from(resolved.width.bits() / 8);
    drop(stage);
    let (found, bytes_per_document) = match *criterion {
        Criterion::Similarity(least) => {
            let texts = references.text_comparers(profile)?;
            let stores: Vec<SimilarStoreRef<'_>> =
                references.with_width().map(|(_, snapshot)| snapshot).zip(&texts).collect();
            let found = estimate_search(least, resolved, config, &stores, &sized, count, observer)?;
            (Some(found), [SIGNATURE_MEMORY_BYTES, fingerprint_bytes + JOINED_SIGNATURE_DISK_BYTES])
        }
        Criterion::Distance(_) => {
            let memory = fingerprint_bytes * FINGERPRINT_MEMORY_FACTOR;
            // Plus 4 bytes for a checksum.
            (None, [memory, fingerprint_bytes * FINGERPRINT_DISK_FACTOR + 4.0])
        }
    };
    let (search, disk_of_pairs) = found.unzip();
    let all = FileSample { documents: count, id_bytes: sample.id_bytes * scale, ..FileSample::default() };
    let pipes = files.iter().filter(|file| file.bytes.is_none()).count();
    let estimate = all.estimate(config, *criterion, formats, pipes, bytes_per_document, reading_memory);
    Ok(Estimate {
        documents: count as u64,
        text_bytes: (sample.text_bytes * scale) as u64,
        disk_of_temporary: estimate.disk_of_temporary + disk_of_pairs.unwrap_or_default(),
        parts,
        disk_of_parts: (count * if search.is_some() { PART_SIGNATURE_BYTES } else { PART_DOCUMENT_BYTES })
            as u64,
        disk_of_output: (sample.text_bytes * scale * 1.1) as u64,
        search,
        ..estimate
    })
}
