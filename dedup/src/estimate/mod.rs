//! Dry run: the documents of a run, and the memory and disk that it would take.

pub(crate) mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use simstore::{Error, Fingerprint, Result, each_width};
use simstore_text::Profile;

use crate::checkpoint::parts;
use crate::config::DedupConfig;
use crate::config::criterion::Criterion;
use crate::config::resolve::Resolved;
use crate::estimate::search::{Search, foretell};
use crate::pipeline::stored::candidate_lookup::SimilarStoreRef;
use simstore_corpus::Stage;
use simstore_corpus::report_read_diagnostics;
use simstore_corpus::spill::MemoryBudget;
use simstore_corpus::{Diagnostic, InputKind, Inputs, Observer};
use simstore_io::bytes::cannot_open;
use simstore_io::{DocumentId, InputFile};

/// Files that are looked into, evenly spread, and documents of each.
const SAMPLED_FILES: usize = 16;
const SAMPLED_DOCUMENTS: u64 = 2000;
/// Bytes of memory for a fingerprint, in its own bytes: the corpus, the same sorted, and the space of a join and of
/// clusters.
const MEMORY_OF_A_FINGERPRINT: f64 = 3.5;
/// The same of a document that has sketches.
const MEMORY_OF_SKETCHES: f64 = 144.0;
/// Bytes of memory for an id that is no position, besides its own text.
const MEMORY_OF_AN_ID: f64 = 12.0;
/// The same on disk, if they are too much for the memory: in the corpus, and twice in the join.
const DISK_OF_A_FINGERPRINT: f64 = 3.0;
/// The same of sketches, with a checksum: a row, and once more in a part of the join.
const DISK_OF_JOINED_SKETCHES: f64 = 160.0;
/// Bytes of a document in a part.
const DISK_OF_A_DOCUMENT: f64 = 32.0;
/// The same with sketches.
const DISK_OF_SKETCHES: f64 = 120.0;
/// Bytes of the first file that are fingerprinted to measure memory: a few batches.
const FINGERPRINTED_BYTES: u64 = 24 << 20;
/// Memory for the program and for reading, where the system does not report it.
const MEMORY_OF_READING: u64 = 64 << 20;

/// Result of a dry run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// Files.
    pub files: usize,
    /// Bytes of all files, as they are on disk.
    pub bytes: u64,
    /// The files by their format.
    pub formats: BTreeMap<String, FilesOfFormat>,
    /// Inputs whose size is not known before they are read.
    pub pipes: usize,
    /// Documents, by the first ones of some files.
    pub documents: u64,
    /// Bytes of all texts.
    pub text_bytes: u64,
    /// Peak memory of the whole process in bytes. Documents that are put on disk take the budget at most.
    pub memory: u64,
    /// Of that, for fingerprints and ids.
    pub memory_of_documents: u64,
    /// The criterion of near documents.
    #[serde(flatten)]
    pub criterion: Criterion,
    /// How similar texts would be found, where these are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// The memory limit of the run: [`DedupConfig::memory`], or the available memory; `None` where the system does not report it.
    pub budget: Option<u64>,
    /// The part of it for documents.
    pub budget_of_documents: Option<u64>,
    /// Whether documents are put on disk, for that is less than they take.
    pub spills: bool,
    /// Bytes of temporary files at most: of documents that are put on disk, and of listed pairs. Texts to compare are written besides.
    pub disk_of_temporary: u64,
    /// The parts of [`DedupConfig::resume`], which shards share.
    pub parts: usize,
    /// Bytes of them.
    pub disk_of_parts: u64,
    /// At most, for the input without its duplicates.
    pub disk_of_output: u64,
}

impl Estimate {
    /// Files that are looked into, at most.
    pub const SAMPLED_FILES: usize = SAMPLED_FILES;
}

/// The files of one format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FilesOfFormat {
    /// How many.
    pub files: usize,
    /// Bytes of all, as they are on disk.
    pub bytes: u64,
}

/// Counts of the sampled files.
#[derive(Default)]
struct Sample {
    documents: f64,
    text_bytes: f64,
    id_bytes: f64,
    input_bytes: f64,
}

impl Sample {
    /// Reads the first documents of a file.
    fn add(&mut self, file: &InputFile, inputs: &Inputs, stage: &Stage<'_>) -> Result<()> {
        let (mut reader, options) = (inputs.with_paths(vec![file.path.clone()]).records(), inputs.options());
        let progress = reader.progress();
        let mut seen = 0;
        let mut is_whole = true;
        // Malformed documents count: they are read too.
        for record in reader.by_ref() {
            seen += 1;
            stage.add(1)?;
            match record.and_then(|record| record.into_document(options)) {
                Ok(document) => {
                    self.text_bytes += document.text.len() as f64;
                    if let DocumentId::Name(name) = &document.id {
                        self.id_bytes += name.len() as f64 + MEMORY_OF_AN_ID;
                    }
                }
                Err(error) => unless_skipped(error, inputs)?,
            }
            // Of a small file all is there already, however much is in it.
            let is_much =
                progress.bytes() < file.bytes.unwrap_or_default() || seen == 100 * SAMPLED_DOCUMENTS;
            if seen >= SAMPLED_DOCUMENTS && is_much {
                is_whole = false;
                break;
            }
        }
        self.documents += seen as f64;
        let size = file.bytes.unwrap_or_default();
        self.input_bytes += if is_whole { size } else { progress.bytes().min(size) } as f64;
        Ok(())
    }

    /// Estimate for documents without texts. Besides its id, each takes so many bytes of memory, or of temporary files.
    fn estimate(
        &self,
        config: &DedupConfig,
        criterion: Criterion,
        formats: BTreeMap<String, FilesOfFormat>,
        pipes: usize,
        [memory, disk]: [f64; 2],
        memory_of_reading: u64,
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
            memory: memory_of_documents.min(budget.bytes) + memory_of_reading,
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

/// Fails as the run would fail: for each error, except for malformed input that the run skips.
fn unless_skipped(error: Error, inputs: &Inputs) -> Result<()> {
    match error {
        Error::BadInput { .. } if inputs.skips_malformed() => Ok(()),
        error => Err(error),
    }
}

/// The memory that reading takes for any number of documents: batches on all cores, and dictionaries. The beginning
/// is read and fingerprinted as the run would do it.
fn memory_of_reading<F: Fingerprint>(
    file: Option<&InputFile>,
    inputs: &Inputs,
    profile: &Profile,
    stage: &Stage<'_>,
) -> Result<u64> {
    let mut bytes = 0;
    let first = inputs.with_paths(file.map(|file| file.path.clone()).into_iter().collect());
    for document in first.fingerprint_documents::<F>(profile) {
        stage.add(0)?;
        // Malformed documents count too, so that a file of them ends.
        bytes += document.map_or(1024, |document| document.text_bytes);
        if bytes > FINGERPRINTED_BYTES {
            break;
        }
    }
    Ok(peak_memory().unwrap_or(MEMORY_OF_READING))
}

/// The most memory that this process has taken, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    peak.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Estimates the documents, the memory and the disk space of a run, from the first documents of some files. The estimate for compressed
/// files of fingerprints is too low.
///
/// # Errors
/// [`Error::Cancelled`] if the observer says so, the errors of contradictory options and of listing the files, and [`Error::BadInput`] for
/// a malformed document in the sample, unless malformed documents are [skipped](Inputs::skip_malformed).
pub fn estimate(config: &DedupConfig, inputs: &Inputs, observer: &dyn Observer) -> Result<Estimate> {
    let resolved = config.resolve(inputs, None, observer)?;
    match resolved.kind {
        InputKind::Fingerprints => {
            each_width!(resolved.width, type F => fingerprints::<F>(&resolved, config, observer))
        }
        InputKind::Documents => documents(&resolved, config, observer),
    }
}

/// The same for files of fingerprints: of raw ones the lengths tell how many they hold, of lines the first ones.
fn fingerprints<F: Fingerprint>(
    resolved: &Resolved,
    config: &DedupConfig,
    observer: &dyn Observer,
) -> Result<Estimate> {
    let Resolved { inputs, criterion, .. } = resolved;
    let stage = Stage::new(observer, "fingerprints sampled");
    let (mut formats, mut pipes, mut all): (BTreeMap<String, FilesOfFormat>, _, _) =
        (BTreeMap::new(), 0, Sample::default());
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
        let mut seen = Sample::default();
        for record in inputs.with_paths(vec![path]).fingerprints::<F>().take(SAMPLED_DOCUMENTS as usize) {
            seen.documents += 1.0;
            let record = match record {
                Ok(record) => Some(record),
                Err(error) => unless_skipped(error, inputs).map(|()| None)?,
            };
            let id = record.filter(|record| record.has_id).map(|record| record.id);
            let name = id.as_ref().map_or(0.0, |id| id.to_string().len() as f64);
            seen.id_bytes += if id.is_some() { name + MEMORY_OF_AN_ID } else { 0.0 };
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
    let of_one = [bytes * MEMORY_OF_A_FINGERPRINT, bytes * DISK_OF_A_FINGERPRINT];
    let lines = all.documents * (bytes * 2.0 + 12.0) + all.id_bytes;
    let memory_of_reading = peak_memory().unwrap_or(MEMORY_OF_READING);
    let estimate = all.estimate(config, *criterion, formats, pipes, of_one, memory_of_reading);
    Ok(Estimate { disk_of_output: lines as u64, ..estimate })
}

fn documents(resolved: &Resolved, config: &DedupConfig, observer: &dyn Observer) -> Result<Estimate> {
    let Resolved { inputs, criterion, profile, references, .. } = resolved;
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
    let mut formats: BTreeMap<String, FilesOfFormat> = BTreeMap::new();
    for file in &files {
        let format = formats.entry(file.format.to_string()).or_default();
        format.files += 1;
        format.bytes += file.bytes.unwrap_or_default();
    }
    let sized: Vec<&InputFile> =
        files.iter().filter(|file| file.bytes.is_some_and(|bytes| bytes > 0)).collect();
    let mut sample = Sample::default();
    for i in 0..sized.len().min(SAMPLED_FILES) {
        sample.add(sized[i * sized.len() / sized.len().min(SAMPLED_FILES)], inputs, &stage)?;
    }
    let parts = parts::count(inputs, files.iter().filter(|file| file.bytes.is_some()), config.section());
    let total: u64 = files.iter().filter_map(|file| file.bytes).sum();
    let scale = if sample.input_bytes > 0.0 { total as f64 / sample.input_bytes } else { 0.0 };
    let count = sample.documents * scale;
    // First: the peak so far is the memory of reading.
    let first = sized.first().copied();
    let memory_of_reading = each_width!(resolved.width, type F => {
        memory_of_reading::<F>(first, inputs, profile, &stage)
    })?;
    let bytes_of_a_fingerprint = f64::from(resolved.width.bits() / 8);
    drop(stage);
    let (found, of_one) = match *criterion {
        Criterion::Similarity(least) => {
            let texts = references.texts(profile)?;
            let stores: Vec<SimilarStoreRef<'_>> =
                references.of_width().map(|(_, snapshot)| snapshot).zip(&texts).collect();
            let found = foretell(least, resolved, config, &stores, &sized, count, observer)?;
            (Some(found), [MEMORY_OF_SKETCHES, bytes_of_a_fingerprint + DISK_OF_JOINED_SKETCHES])
        }
        Criterion::Distance(_) => {
            let memory = bytes_of_a_fingerprint * MEMORY_OF_A_FINGERPRINT;
            // A checksum, too.
            (None, [memory, bytes_of_a_fingerprint * DISK_OF_A_FINGERPRINT + 4.0])
        }
    };
    let (search, disk_of_pairs) = found.unzip();
    let all = Sample { documents: count, id_bytes: sample.id_bytes * scale, ..Sample::default() };
    let pipes = files.iter().filter(|file| file.bytes.is_none()).count();
    let estimate = all.estimate(config, *criterion, formats, pipes, of_one, memory_of_reading);
    Ok(Estimate {
        documents: count as u64,
        text_bytes: (sample.text_bytes * scale) as u64,
        disk_of_temporary: estimate.disk_of_temporary + disk_of_pairs.unwrap_or_default(),
        parts,
        disk_of_parts: (count * if search.is_some() { DISK_OF_SKETCHES } else { DISK_OF_A_DOCUMENT }) as u64,
        disk_of_output: (sample.text_bytes * scale * 1.1) as u64,
        search,
        ..estimate
    })
}
