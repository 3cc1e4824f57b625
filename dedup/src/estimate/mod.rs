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

/// Maximum number of files in the sample, evenly spread over all files.
const SAMPLED_FILES: usize = 16;
/// Number of documents that are read from each sampled file. More are read if the read buffer holds the whole
/// file.
const SAMPLED_DOCUMENTS_PER_FILE: u64 = 2000;
/// Memory for a fingerprint as a multiple of its size. It covers the corpus, the sorted list, the join and the
/// clusters.
const FINGERPRINT_MEMORY_FACTOR: f64 = 3.5;
/// Memory for a document with a MinHash signature, in bytes.
const SIGNATURE_MEMORY_BYTES: f64 = 144.0;
/// Memory for an id that differs from the input position, in bytes, besides its text.
const ID_MEMORY_BYTES: f64 = 12.0;
/// Space in temporary files for a fingerprint as a multiple of its size, if documents spill to disk. A
/// fingerprint is written once in the corpus, and twice in the join.
const FINGERPRINT_DISK_FACTOR: f64 = 3.0;
/// Space in temporary files for a MinHash signature and the checksum of its document, in bytes. The signature is
/// written once with the corpus, and its bands once more in the files in which near bands are searched.
const JOINED_SIGNATURE_DISK_BYTES: f64 = 160.0;
/// Size of a document in a part file, in bytes.
const PART_DOCUMENT_BYTES: f64 = 32.0;
/// Size of a document with a MinHash signature in a part file, in bytes.
const PART_SIGNATURE_BYTES: f64 = 120.0;
/// Size of the text that is fingerprinted to measure the memory of reading, in bytes. It comes from the start
/// of the first file, and fills a few batches.
const MEASURED_TEXT_BYTES: u64 = 24 << 20;
/// Assumed memory of the program and of reading in bytes. Used if the system does not report the peak memory of
/// the process.
const DEFAULT_READING_MEMORY_BYTES: u64 = 64 << 20;

/// Result of a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of input files.
    pub files: usize,
    /// Size of all files on disk in bytes.
    pub bytes: u64,
    /// Number and size of the files of each format, by the name of the format.
    pub formats: BTreeMap<String, FormatTotals>,
    /// Number of pipes and other inputs whose size is unknown until they are read.
    pub pipes: usize,
    /// Estimated number of documents. It follows from the first documents of the sampled files.
    pub documents: u64,
    /// Estimated size of all texts in bytes; 0 for fingerprints.
    pub text_bytes: u64,
    /// Estimated peak memory of the process in bytes. If documents spill to disk, they take no more memory than
    /// `budget_of_documents`.
    pub memory: u64,
    /// Memory that fingerprints and ids would take without a memory limit, in bytes.
    pub memory_of_documents: u64,
    /// Threshold for near-duplicates.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// Estimate of the search for similar texts; `None` if documents are compared by distance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<SearchEstimate>,
    /// Memory limit of the run in bytes: [`DedupConfig::memory`], else the available memory; `None` if the
    /// system does not report it.
    pub budget: Option<u64>,
    /// Share of the memory limit that is for documents, in bytes.
    pub budget_of_documents: Option<u64>,
    /// Whether documents spill to disk, because they need more than their share of the memory limit.
    pub spills: bool,
    /// Estimated maximum size of the temporary files for spilled documents and listed pairs, in bytes. The
    /// features of the texts that are compared take additional space.
    pub disk_of_temporary: u64,
    /// Number of part files that [`DedupConfig::resume`] would make. Shards divide these parts among them.
    pub parts: usize,
    /// Estimated size of the part files in bytes.
    pub disk_of_parts: u64,
    /// Estimated maximum size of the output of kept documents in bytes.
    pub disk_of_output: u64,
}

impl Estimate {
    /// Maximum number of files in the sample.
    pub const SAMPLED_FILES: usize = SAMPLED_FILES;
}

/// Number and size of the files of one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FormatTotals {
    /// Number of files.
    pub files: usize,
    /// Size of the files on disk in bytes.
    pub bytes: u64,
}

/// Totals over the sampled documents. `input_bytes` is the number of bytes in the files that these documents take.
#[derive(Default)]
struct FileSample {
    documents: f64,
    text_bytes: f64,
    id_bytes: f64,
    input_bytes: f64,
}

impl FileSample {
    /// Reads the first documents of a file, and adds them to the totals.
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

    /// Creates an estimate from the totals of all documents, not only of a sample. Leaves the fields for texts,
    /// part files and outputs empty. A document takes `memory` bytes of memory or, if documents spill, `disk`
    /// bytes of temporary files, besides its id.
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

/// Returns `Ok` for the error of a malformed input that the run would skip; returns any other error.
fn ignore_skipped_error(error: Error, inputs: &Inputs) -> Result<()> {
    match error {
        Error::BadInput { .. } if inputs.skips_malformed() => Ok(()),
        error => Err(error),
    }
}

/// Measures the peak memory of the program while it reads, in bytes. For that, fingerprints the start of a file as
/// a run does. So the result includes dictionaries, and the batches of documents on all cores.
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
/// some files. For compressed files of fingerprints, the estimate is too low.
///
/// # Errors
/// - [`Error::Cancelled`] if the observer cancels.
/// - [`Error::BadInput`] for a malformed document in the sample, unless malformed documents are
///   [skipped](Inputs::skip_malformed).
/// - Errors of invalid options, and of listing the files.
pub fn estimate(config: &DedupConfig, inputs: &Inputs, observer: &dyn Observer) -> Result<Estimate> {
    let resolved = config.resolve(inputs, None, observer)?;
    match resolved.kind {
        InputKind::Fingerprints => {
            each_width!(resolved.width, type F => estimate_fingerprints::<F>(&resolved, config, observer))
        }
        InputKind::Documents => estimate_documents(&resolved, config, observer),
    }
}

/// Estimates a run on files of fingerprints. The number of fingerprints in a raw file follows from its size. In a
/// file with one fingerprint per line, the number of fingerprints is estimated from the first lines.
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

/// Estimates a run on files of documents.
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
