//! Inputs of a job, with iterators over their documents and fingerprints.

pub(crate) mod default_profile;
pub(crate) mod fingerprint_iter;
pub(crate) mod fingerprinted_documents;
pub(crate) mod item;
mod memory_fingerprints;
pub(crate) mod visit;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::inputs::fingerprint_iter::FingerprintIter;
use crate::inputs::fingerprinted_documents::FingerprintedDocuments;
use crate::inputs::item::InputKind;
use crate::inputs::memory_fingerprints::MemoryFingerprints;
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result};
use simstore_io::InputFiles;
use simstore_io::Records;
use simstore_io::bytes::Section;
use simstore_io::bytes::is_folder;
use simstore_io::bytes::{ReadOnceInputs, is_read_once, is_stdin};
use simstore_io::document::STREAM_NAME;
use simstore_io::formats::{Format, detect};
use simstore_io::reading::DocumentStream;
use simstore_io::reading::expand_glob;
use simstore_io::reading::sections;
use simstore_io::reading::{PathExpander, contains_file};
use simstore_io::{Document, DocumentFormat, DocumentId, DocumentOptions, Encoding, InputFile, ReadProgress};
use simstore_text::Profile;

/// Maximum length of an input path, in bytes. The limit is longer than any path that an operating system can open.
const MAX_PATH_BYTES: usize = 1 << 16;

/// Inputs of a job: files of documents or of fingerprints, or documents or fingerprints in memory.
///
/// An `Inputs` value owns two kinds of data: the bytes that were read from pipes and standard input to detect the format, and
/// [spooled](Inputs::spool) data. Both are removed when the value and all of its readers are dropped. Two values created by
/// [`Inputs::new`] share no data, even if they name the same file.
///
/// ```
/// use simstore_corpus::{InputKind, Inputs};
/// use simstore_io::DocumentOptions;
/// use simstore_text::Profile;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\nno JSON\n").unwrap();
/// let inputs = Inputs::new(&[path], DocumentOptions::default())?.skip_malformed(true);
/// assert_eq!(inputs.kind()?, InputKind::Documents);
/// let mut fingerprints = Vec::new();
/// let counts = inputs.visit::<u64>(&Profile::default(), &(), |item| {
///     fingerprints.extend(item.fingerprint);
///     Ok(())
/// })?;
/// assert_eq!((fingerprints.len(), counts.read, counts.malformed), (1, 1, 1));
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Debug)]
pub struct Inputs {
    paths: Vec<PathBuf>,
    options: DocumentOptions,
    skip_malformed: bool,
    kind: OnceLock<InputKind>,
    read_once: Arc<ReadOnceInputs>,
    /// Part of the file in `paths` that is read; `None` to read whole files.
    section: Option<Box<Section>>,
    /// Documents in memory, read instead of files. The field `paths` then has only the name that messages give them.
    documents: Option<DocumentStream>,
    /// Fingerprints in memory, read instead of files. The field `paths` then has only the name that messages give them.
    in_memory: Option<MemoryFingerprints>,
}

impl Inputs {
    /// Makes inputs of files, folders and globs. `-` is standard input. Opens nothing yet.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if a pipe or standard input is named twice, or if a path is longer than any operating system
    /// allows.
    pub fn new(paths: &[PathBuf], options: DocumentOptions) -> Result<Inputs> {
        if let Some(path) = paths.iter().find(|path| path.as_os_str().len() > MAX_PATH_BYTES) {
            let (start, bytes) = (path.to_string_lossy(), path.as_os_str().len());
            return Err(Error::BadArgument(format!(
                "`{}` is not a path: it has {bytes} bytes, and a path has at most {MAX_PATH_BYTES}",
                excerpt(&start)
            )));
        }
        for (at, path) in paths.iter().enumerate() {
            if is_pipe(path) && paths[..at].contains(path) {
                let name =
                    if is_stdin(path) { "standard input (`-`)".into() } else { path.to_string_lossy() };
                return Err(Error::BadArgument(format!("{name} can be read only once")));
            }
        }
        Ok(Inputs::from_paths(paths.to_vec(), options))
    }

    fn from_paths(paths: Vec<PathBuf>, options: DocumentOptions) -> Inputs {
        Inputs {
            paths,
            options,
            skip_malformed: false,
            kind: OnceLock::new(),
            read_once: Arc::default(),
            section: None,
            documents: None,
            in_memory: None,
        }
    }

    /// Makes inputs of documents from an iterator, with their ids, texts and [extra fields](Document::extra). Like a pipe,
    /// they can be read only once, unless they are [spooled](Inputs::spool). In messages, their file name is `documents`.
    /// A job over these inputs cannot write outputs that copy input records unchanged.
    ///
    /// If an item is [`Error::BadInput`], it is a malformed document. Any other error ends the reading.
    ///
    /// ```
    /// use simstore_corpus::Inputs;
    /// use simstore_io::{DocumentId, Document};
    ///
    /// let texts = ["To be", "or not to be"].map(str::to_owned);
    /// let documents = (0..).zip(texts).map(|(i, text)| Ok(Document::new(DocumentId::Number(i), text)));
    /// let inputs = Inputs::from_documents(documents);
    /// assert_eq!(inputs.documents().nth(1).unwrap()?.text, "or not to be");
    /// # Ok::<(), simstore::Error>(())
    /// ```
    pub fn from_documents(
        documents: impl IntoIterator<Item = Result<Document>, IntoIter: Send + 'static>,
    ) -> Inputs {
        // There are no bytes to detect a format by.
        let options = DocumentOptions { format: Some(DocumentFormat::Jsonl), ..DocumentOptions::default() };
        Inputs {
            kind: OnceLock::from(InputKind::Documents),
            read_once: Arc::new(ReadOnceInputs::with_document_stream(STREAM_NAME)),
            documents: Some(DocumentStream::new(documents.into_iter())),
            ..Inputs::from_paths(vec![PathBuf::from(STREAM_NAME)], options)
        }
    }

    /// Makes inputs of fingerprints with their ids, or with their positions from 0 as ids. In messages, their file name is
    /// `fingerprints`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the numbers of ids and fingerprints differ.
    pub fn from_fingerprints<F: Fingerprint>(
        fingerprints: Vec<F>,
        ids: Option<Vec<DocumentId>>,
    ) -> Result<Inputs> {
        let in_memory = MemoryFingerprints::new(fingerprints, ids)?;
        let inputs = Inputs::from_paths(vec![in_memory.path()], DocumentOptions::default());
        Ok(Inputs { kind: OnceLock::from(InputKind::Fingerprints), in_memory: Some(in_memory), ..inputs })
    }

    /// Sets whether visits skip malformed records and unreadable files. If so, each one is reported to the observer and
    /// counted. Otherwise the first one ends the visit. Iterators return their errors in both cases.
    #[must_use]
    pub fn skip_malformed(self, skip_malformed: bool) -> Inputs {
        Inputs { skip_malformed, ..self }
    }

    /// Makes inputs of other paths, such as some of the files, with the same settings. The new inputs share with these inputs
    /// the bytes already read from pipes, and [spooled](Inputs::spool) data.
    pub fn with_paths(&self, paths: Vec<PathBuf>) -> Inputs {
        Inputs {
            paths,
            options: self.options.clone(),
            skip_malformed: self.skip_malformed,
            kind: self.kind.clone(),
            read_once: Arc::clone(&self.read_once),
            section: self.section.clone(),
            documents: self.documents.clone(),
            in_memory: self.in_memory.clone(),
        }
    }

    /// Whether the documents or fingerprints come from memory, not from files.
    pub fn is_in_memory(&self) -> bool {
        self.documents.is_some() || self.in_memory.is_some()
    }

    /// Makes inputs that read one section of a file, with the same settings. The line numbers of items count from the start of
    /// the section. A reader of the new inputs updates the counters in [`Section::outcome`] of `section`.
    pub fn with_section(&self, section: &Section) -> Inputs {
        let paths = vec![section.path.to_path_buf()];
        Inputs { section: Some(Box::new(section.clone())), ..self.with_paths(paths) }
    }

    /// Splits a file of these inputs into sections (parts that can be read independently) of about `bytes` bytes. See
    /// [`sections`](sections::split_into_sections).
    pub fn sections(&self, file: &InputFile, bytes: u64) -> Vec<Section> {
        sections::split_into_sections(file, &self.options, bytes, &self.read_once)
    }

    /// Returns the same inputs with another extra field, or none. See [`DocumentOptions::extra_field`].
    pub fn with_extra_field(&self, field: Option<&str>) -> Inputs {
        let mut inputs = self.with_paths(self.paths.clone());
        inputs.options.extra_field = field.map(str::to_owned);
        inputs
    }

    /// Returns the same inputs with another memory limit; `None` keeps the limit. See [`DocumentOptions::memory`].
    pub fn with_memory_limit(&self, memory: Option<u64>) -> Inputs {
        let mut inputs = self.with_paths(self.paths.clone());
        inputs.options.memory = memory.or(self.options.memory);
        inputs
    }

    /// Paths as the caller gave them.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Options for reading documents.
    pub fn options(&self) -> &DocumentOptions {
        &self.options
    }

    /// Whether visits skip malformed records. See [`Inputs::skip_malformed`].
    pub fn skips_malformed(&self) -> bool {
        self.skip_malformed
    }

    /// Paths of the inputs that can be read only once: standard input, pipes, devices, and documents from an iterator.
    /// Includes inputs that have been [spooled](Inputs::spool), although these can be read again.
    pub fn read_once_paths(&self) -> impl Iterator<Item = &Path> {
        self.paths
            .iter()
            .map(|path| &**path)
            .filter(|path| self.read_once.is_read_once(path).unwrap_or(false))
    }

    /// Whether a path is a file that a later job can read again, not a pipe or device. The path must be one of the inputs,
    /// or be in an input folder.
    ///
    /// # Errors
    /// Errors of examining the path.
    pub(crate) fn is_file(&self, path: &Path) -> Result<bool> {
        Ok(self.in_memory.is_none() && !self.read_once.is_read_once(path)?)
    }

    /// Returns the kind of all inputs. If the options specify a format of documents, the kind is documents. Otherwise the
    /// kind is detected by file extension or, if the extension is unknown, by the first bytes of the file. Inputs that are
    /// not recognized are documents. If some inputs are readable, unreadable ones are ignored, because reading reports
    /// them later.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if some inputs hold documents and others fingerprints, or if a glob has no matches.
    /// [`Error::Io`] if a path does not exist. [`Error::BadInput`] if no input can be read, unless malformed records are
    /// skipped.
    pub fn kind(&self) -> Result<InputKind> {
        if let Some(&kind) = self.kind.get() {
            return Ok(kind);
        }
        let kind = if self.options.format.is_some() { InputKind::Documents } else { self.detect_kind()? };
        Ok(*self.kind.get_or_init(|| kind))
    }

    fn detect_kind(&self) -> Result<InputKind> {
        let mut first: Option<(&Path, InputKind)> = None;
        let mut unread = None;
        for path in &self.paths {
            let kind = match self.path_kind(path) {
                Err(error @ Error::BadInput { .. }) => {
                    unread.get_or_insert(error);
                    continue;
                }
                kind => kind?,
            };
            match first {
                None => first = Some((path, kind)),
                Some((_, other)) if other == kind => {}
                Some((other, _)) => {
                    let (documents, fingerprints) = match kind {
                        InputKind::Documents => (path.as_path(), other),
                        InputKind::Fingerprints => (other, path.as_path()),
                    };
                    return Err(Error::BadArgument(format!(
                        "inputs must all be documents or all be fingerprints: {} holds documents, {} fingerprints",
                        documents.display(),
                        fingerprints.display()
                    )));
                }
            }
        }
        match (first, unread) {
            (Some((_, kind)), _) => Ok(kind),
            (None, Some(error)) if !self.skip_malformed => Err(error),
            (None, _) => Ok(InputKind::Documents),
        }
    }

    /// Returns whether a path, or each match of a glob, holds documents or fingerprints.
    fn path_kind(&self, path: &Path) -> Result<InputKind> {
        let Some(matches) = expand_glob(path, None)? else { return self.file_kind(path) };
        let mut kind = None;
        for found in &matches {
            let found_kind = self.file_kind(found)?;
            if *kind.get_or_insert(found_kind) != found_kind {
                return Err(Error::BadArgument(format!(
                    "{}: matches documents and fingerprints; use a glob for one kind",
                    path.display()
                )));
            }
        }
        Ok(kind.unwrap_or(InputKind::Documents))
    }

    fn file_kind(&self, path: &Path) -> Result<InputKind> {
        if !is_stdin(path) && is_folder(path)? {
            return Ok(InputKind::Documents);
        }
        // Detection skips the encoding checks. Reading checks with the configured encoding that the input is text.
        let options = DocumentOptions { encoding: Encoding::UTF_8, ..DocumentOptions::default() };
        Ok(match detect::detect(path, true, &options, &self.read_once)? {
            Some(Format::HexLines | Format::Raw { .. }) => InputKind::Fingerprints,
            Some(Format::Documents(_)) | None => InputKind::Documents,
        })
    }

    /// Lists the files of documents. See [`input_files`](simstore_io::input_files).
    pub fn files(&self) -> InputFiles {
        InputFiles::new(&self.paths, &self.options, &self.read_once)
    }

    /// Lists the files of fingerprints: the paths of the inputs, and all matches of globs. Lists each file once.
    ///
    /// # Errors
    /// Errors of [`expand_globs`](simstore_io::expand_globs).
    pub fn fingerprint_files(&self) -> Result<Vec<PathBuf>> {
        self.fingerprint_files_with_progress(&Arc::default())
    }

    /// Like [`fingerprint_files`](Self::fingerprint_files), but also counts skipped files in `progress`.
    ///
    /// # Errors
    /// Errors of [`expand_globs`](simstore_io::expand_globs).
    pub fn fingerprint_files_with_progress(&self, progress: &Arc<ReadProgress>) -> Result<Vec<PathBuf>> {
        let mut named =
            PathExpander::new(&self.paths, self.options.format.is_some(), progress, &self.read_once);
        let mut paths = Vec::new();
        while let Some((path, _)) = named.next_file()? {
            paths.push(path);
        }
        Ok(paths)
    }

    /// Whether a path is one of the input files, or is in an input folder, so that an output file at this path might
    /// replace an input. Opens no file.
    pub fn contains_path(&self, path: &Path) -> bool {
        contains_file(&self.paths, path)
    }

    /// Total size of all document files on disk, in bytes; `None` if one of the inputs is a pipe. Does not count files that
    /// cannot be listed.
    pub fn total_bytes(&self) -> Option<u64> {
        if let Some(section) = &self.section {
            return Some(section.bytes);
        }
        self.files().filter_map(Result::ok).map(|file| file.bytes).sum()
    }

    /// Copies pipes and standard input to temporary files, so that they can be read any number of times, by one reader at a
    /// time. The files are removed when this value and its readers are dropped. Documents from an iterator are copied while
    /// they are read for the first time.
    ///
    /// # Errors
    /// [`Error::Io`] if an input cannot be read, or the folder for temporary files cannot be written to. [`Error::Refused`]
    /// if documents from an iterator have been read before.
    pub fn spool(&self) -> Result<()> {
        self.spool_in(&std::env::temp_dir())
    }

    /// Like [`spool`](Self::spool), with temporary files in `folder`.
    ///
    /// # Errors
    /// Errors of [`spool`](Self::spool).
    pub fn spool_in(&self, folder: &Path) -> Result<()> {
        match &self.documents {
            Some(documents) => documents.spool_to(folder),
            None => self.read_once_paths().try_for_each(|path| self.read_once.spool_to(path, folder)),
        }
    }

    /// Returns an iterator over the unparsed records of documents, as they are in the files. See
    /// [`records`](simstore_io::records).
    pub fn records(&self) -> Records {
        match (&self.section, &self.documents) {
            (Some(section), _) => Records::from_section(section, &self.options, &self.read_once),
            (None, Some(documents)) if !self.paths.is_empty() => {
                Records::from_stream(documents, &self.options)
            }
            (None, _) => Records::new(&self.paths, &self.options, &self.read_once),
        }
    }

    /// Returns an iterator over the documents. See [`documents`](simstore_io::documents).
    pub fn documents(&self) -> impl Iterator<Item = Result<Document>> + use<> {
        let options = self.options.clone();
        self.records().with_projection(true).map(move |record| record?.into_document(&options))
    }

    /// Returns an iterator over the documents with their fingerprints. See
    /// [`fingerprint_documents`](crate::fingerprint_documents).
    pub fn fingerprint_documents<F: Fingerprint>(&self, profile: &Profile) -> FingerprintedDocuments<F> {
        FingerprintedDocuments::new(self.records(), &self.options, profile)
    }

    /// Returns an iterator over fingerprints from files of fingerprints, or from memory. See
    /// [`fingerprints`](fn@crate::fingerprints).
    pub fn fingerprints<F: Fingerprint>(&self) -> FingerprintIter<F> {
        FingerprintIter::new(&self.paths, &self.read_once, self.in_memory.clone())
    }
}

/// Whether a path is standard input, a pipe or a device. Returns false for a path that cannot be examined, because reading the
/// path reports the error.
fn is_pipe(path: &Path) -> bool {
    is_read_once(path).unwrap_or(false)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn spooled_pipes_are_removed_with_inputs_and_readers() {
        let inputs = Inputs::new(&[PathBuf::from("/dev/null")], DocumentOptions::default()).unwrap();
        inputs.kind().unwrap();
        let held = Arc::downgrade(&inputs.read_once);
        let part = inputs.with_paths(Vec::new());
        let records = inputs.records();
        drop(inputs);
        drop(part);
        assert!(held.upgrade().is_some());
        drop(records);
        assert!(held.upgrade().is_none());
    }
}
