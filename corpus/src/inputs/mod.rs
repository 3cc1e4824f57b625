//! The inputs of a job as one value, with iterators over their documents and fingerprints.

pub(crate) mod batch;
pub(crate) mod code;
pub(crate) mod fingerprints;
mod in_memory;
pub(crate) mod item;
pub(crate) mod visit;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::inputs::batch::FingerprintedDocuments;
use crate::inputs::fingerprints::Fingerprints;
use crate::inputs::in_memory::GivenFingerprints;
use crate::inputs::item::InputKind;
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result};
use simstore_io::InputFiles;
use simstore_io::Records;
use simstore_io::bytes::Section;
use simstore_io::bytes::is_folder;
use simstore_io::bytes::{Pipes, is_read_once, is_stdin};
use simstore_io::document::GIVEN;
use simstore_io::formats::{Format, detect};
use simstore_io::reading::GivenDocuments;
use simstore_io::reading::matches_of;
use simstore_io::reading::sections;
use simstore_io::reading::{Named, has_file};
use simstore_io::{Document, DocumentFormat, DocumentId, DocumentOptions, Encoding, InputFile, ReadProgress};
use simstore_text::Profile;

/// Longer than any path that a system can open.
const MAX_PATH_BYTES: usize = 1 << 16;

/// Inputs of a job: files of documents or of fingerprints, or documents or fingerprints in memory.
///
/// Inputs own the bytes read ahead from pipes and standard input to detect their format, and the data that was [put
/// aside](Inputs::put_aside). Both are removed when the value and its readers are dropped. Two values share nothing,
/// even if they name the same file.
///
/// ```
/// use simstore_corpus::{InputKind, Inputs};
/// use simstore_io::DocumentOptions;
/// use simstore_text::Profile;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("pages.jsonl");
/// std::fs::write(&path, "{\"id\": 7, \"text\": \"To be, or not to be\"}\nno JSON\n").unwrap();
/// let inputs = Inputs::new(&[path], DocumentOptions::default())?.skip_bad(true);
/// assert_eq!(inputs.kind()?, InputKind::Documents);
/// let mut fingerprints = Vec::new();
/// let counts = inputs.visit::<u64>(&Profile::default(), &(), |item| {
///     fingerprints.extend(item.fingerprint);
///     Ok(())
/// })?;
/// assert_eq!((fingerprints.len(), counts.read, counts.bad), (1, 1, 1));
/// # Ok::<(), simstore::Error>(())
/// ```
#[derive(Debug)]
pub struct Inputs {
    paths: Vec<PathBuf>,
    options: DocumentOptions,
    skip_bad: bool,
    kind: OnceLock<InputKind>,
    pipes: Arc<Pipes>,
    /// A section of the only path, if no more than that is read.
    section: Option<Box<Section>>,
    /// Documents or fingerprints in memory. The only path is their name.
    documents: Option<GivenDocuments>,
    given: Option<GivenFingerprints>,
}

impl Inputs {
    /// Makes inputs of files, folders and patterns; `-` is standard input. Nothing is opened yet.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if a pipe or standard input is named twice, or a path is longer than a system allows.
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
        Ok(Inputs::of_paths(paths.to_vec(), options))
    }

    fn of_paths(paths: Vec<PathBuf>, options: DocumentOptions) -> Inputs {
        Inputs {
            paths,
            options,
            skip_bad: false,
            kind: OnceLock::new(),
            pipes: Arc::default(),
            section: None,
            documents: None,
            given: None,
        }
    }

    /// Makes inputs of documents from an iterator: their ids, texts and [extra fields](Document::extra). As with a
    /// pipe, they are read once, unless they are [put aside](Inputs::put_aside). In place of a file name, they are
    /// called `documents`. They cannot be written out unchanged, as records of a file can.
    ///
    /// An item that is [`Error::BadInput`] is a malformed document. Any other error ends the reading.
    ///
    /// ```
    /// use simstore_corpus::Inputs;
    /// use simstore_io::{DocumentId, Document};
    ///
    /// let texts = ["To be", "or not to be"].map(str::to_owned);
    /// let documents = (0..).zip(texts).map(|(i, text)| Ok(Document::new(DocumentId::Number(i), text)));
    /// let inputs = Inputs::of_documents(documents);
    /// assert_eq!(inputs.documents().nth(1).unwrap()?.text, "or not to be");
    /// # Ok::<(), simstore::Error>(())
    /// ```
    pub fn of_documents(
        documents: impl IntoIterator<Item = Result<Document>, IntoIter: Send + 'static>,
    ) -> Inputs {
        // There are no bytes to detect a format by.
        let options = DocumentOptions { format: Some(DocumentFormat::Jsonl), ..DocumentOptions::default() };
        Inputs {
            kind: OnceLock::from(InputKind::Documents),
            pipes: Arc::new(Pipes::of_given(GIVEN)),
            documents: Some(GivenDocuments::new(documents.into_iter())),
            ..Inputs::of_paths(vec![PathBuf::from(GIVEN)], options)
        }
    }

    /// Makes inputs of fingerprints with their ids, or numbered from 0. In place of a file name, they are called
    /// `fingerprints`.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if the numbers of ids and fingerprints differ.
    pub fn of_fingerprints<F: Fingerprint>(
        fingerprints: Vec<F>,
        ids: Option<Vec<DocumentId>>,
    ) -> Result<Inputs> {
        let given = GivenFingerprints::new(fingerprints, ids)?;
        let inputs = Inputs::of_paths(vec![given.path()], DocumentOptions::default());
        Ok(Inputs { kind: OnceLock::from(InputKind::Fingerprints), given: Some(given), ..inputs })
    }

    /// Sets whether visits skip malformed documents and unreadable files. If so, each is reported to the watch and
    /// counted; otherwise the first one ends the visit. Readers return their errors in any case.
    #[must_use]
    pub fn skip_bad(self, skip_bad: bool) -> Inputs {
        Inputs { skip_bad, ..self }
    }

    /// Makes inputs of some of the files, read in the same way. They share the state of pipes.
    pub fn of_files(&self, paths: Vec<PathBuf>) -> Inputs {
        Inputs {
            paths,
            options: self.options.clone(),
            skip_bad: self.skip_bad,
            kind: self.kind.clone(),
            pipes: Arc::clone(&self.pipes),
            section: self.section.clone(),
            documents: self.documents.clone(),
            given: self.given.clone(),
        }
    }

    /// Whether the documents or fingerprints are in memory.
    pub fn are_given(&self) -> bool {
        self.documents.is_some() || self.given.is_some()
    }

    /// Makes inputs of a section of one of the files. Lines are counted from the start of the section; `section` knows
    /// how far it has been read.
    pub fn of_section(&self, section: &Section) -> Inputs {
        let paths = vec![section.path.to_path_buf()];
        Inputs { section: Some(Box::new(section.clone())), ..self.of_files(paths) }
    }

    /// Splits a file of these inputs into sections. See [`sections`](sections::sections).
    pub fn sections(&self, file: &InputFile, bytes: u64) -> Vec<Section> {
        sections::sections(file, &self.options, bytes, &self.pipes)
    }

    /// Returns the same inputs with an additional field to read, if any. See [`DocumentOptions::extra_field`].
    pub fn with_extra_field(&self, field: Option<&str>) -> Inputs {
        let mut inputs = self.of_files(self.paths.clone());
        inputs.options.extra_field = field.map(str::to_owned);
        inputs
    }

    /// Returns the same inputs with a memory limit. See [`DocumentOptions::memory`].
    pub fn within(&self, memory: Option<u64>) -> Inputs {
        let mut inputs = self.of_files(self.paths.clone());
        inputs.options.memory = memory.or(self.options.memory);
        inputs
    }

    /// Paths as given by the caller.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Options for reading documents.
    pub fn options(&self) -> &DocumentOptions {
        &self.options
    }

    /// Whether malformed documents are skipped. See [`Inputs::skip_bad`].
    pub fn skips_bad(&self) -> bool {
        self.skip_bad
    }

    /// Inputs that can be read only once, unless they are [put aside](Inputs::put_aside): standard input, pipes,
    /// devices, and documents from an iterator.
    pub fn pipes(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| &**path).filter(|path| self.pipes.is_read_once(path).unwrap_or(false))
    }

    /// Whether a path of these inputs, or of a file below them, is a file that another call can read again.
    ///
    /// # Errors
    /// Errors of examining the path.
    pub(crate) fn is_file(&self, path: &Path) -> Result<bool> {
        Ok(self.given.is_none() && !self.pipes.is_read_once(path)?)
    }

    /// Returns the kind of all inputs. If the format of documents is given, the kind is documents. Otherwise it is
    /// detected by the extensions or, for other extensions, by the first bytes; inputs not recognised are documents.
    /// Unreadable inputs do not count, unless there are no others: reading reports them.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if some inputs hold documents and some fingerprints, and for a pattern without matches;
    /// [`Error::Io`] for a path that does not exist; [`Error::BadInput`] if no input can be read, unless malformed
    /// inputs are skipped.
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
            let kind = match self.kind_of(path) {
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
            (None, Some(error)) if !self.skip_bad => Err(error),
            (None, _) => Ok(InputKind::Documents),
        }
    }

    /// Returns the kind of a path, or of all matches of a pattern.
    fn kind_of(&self, path: &Path) -> Result<InputKind> {
        let Some(matches) = matches_of(path, None)? else { return self.kind_of_file(path) };
        let mut kind = None;
        for found in &matches {
            let of_this = self.kind_of_file(found)?;
            if *kind.get_or_insert(of_this) != of_this {
                return Err(Error::BadArgument(format!(
                    "{}: matches documents and fingerprints; use a glob for one kind",
                    path.display()
                )));
            }
        }
        Ok(kind.unwrap_or(InputKind::Documents))
    }

    fn kind_of_file(&self, path: &Path) -> Result<InputKind> {
        if !is_stdin(path) && is_folder(path)? {
            return Ok(InputKind::Documents);
        }
        // Reading checks whether the input is text, with the encoding from the options.
        let options = DocumentOptions { encoding: Encoding::UTF_8, ..DocumentOptions::default() };
        Ok(match detect::detect(path, true, &options, &self.pipes)? {
            Some(Format::HexLines | Format::Raw { .. }) => InputKind::Fingerprints,
            Some(Format::Documents(_)) | None => InputKind::Documents,
        })
    }

    /// Lists the files of documents. See [`input_files`](simstore_io::input_files).
    pub fn files(&self) -> InputFiles {
        InputFiles::new(&self.paths, &self.options, &self.pipes)
    }

    /// Lists the files of fingerprints, each once: the paths and all matches of patterns.
    ///
    /// # Errors
    /// As [`matching_paths`](simstore_io::matching_paths).
    pub fn files_of_fingerprints(&self) -> Result<Vec<PathBuf>> {
        self.named_files(&Arc::default())
    }

    /// Like [`files_of_fingerprints`](Self::files_of_fingerprints), and counts skipped files in `progress`.
    pub fn named_files(&self, progress: &Arc<ReadProgress>) -> Result<Vec<PathBuf>> {
        let mut named = Named::new(&self.paths, self.options.format.is_some(), progress, &self.pipes);
        let mut paths = Vec::new();
        while let Some((path, _)) = named.next_file()? {
            paths.push(path);
        }
        Ok(paths)
    }

    /// Whether a path is one of the input files, or lies in an input folder: an output there would replace an input.
    /// Nothing is opened.
    pub fn has_file(&self, path: &Path) -> bool {
        has_file(&self.paths, path)
    }

    /// Total size of all document files on disk, in bytes; `None` if one is a pipe. Files that cannot be listed do not
    /// count.
    pub fn total_bytes(&self) -> Option<u64> {
        if let Some(section) = &self.section {
            return Some(section.bytes);
        }
        self.files().filter_map(Result::ok).map(|file| file.bytes).sum()
    }

    /// Reads pipes and standard input to their end, into temporary files. Then they can be read any number of times, by
    /// one reader at a time. The files are removed with this value and its readers. Documents from an iterator are put
    /// aside while they are read.
    ///
    /// # Errors
    /// [`Error::Io`] if an input cannot be read, or the folder for temporary files cannot be written to;
    /// [`Error::Refused`] if documents from an iterator have been read before.
    pub fn put_aside(&self) -> Result<()> {
        self.put_aside_in(&std::env::temp_dir())
    }

    /// Like [`put_aside`](Self::put_aside), with files in this folder.
    pub fn put_aside_in(&self, folder: &Path) -> Result<()> {
        match &self.documents {
            Some(documents) => documents.put_aside(folder),
            None => self.pipes().try_for_each(|path| self.pipes.put_aside(path, folder)),
        }
    }

    /// Reads the documents unparsed, as in their files. See [`records`](simstore_io::records).
    pub fn records(&self) -> Records {
        match (&self.section, &self.documents) {
            (Some(section), _) => Records::of_section(section, &self.options, &self.pipes),
            (None, Some(documents)) if !self.paths.is_empty() => Records::of_given(documents, &self.options),
            (None, _) => Records::new(&self.paths, &self.options, &self.pipes),
        }
    }

    /// Reads the documents. See [`documents`](simstore_io::documents).
    pub fn documents(&self) -> impl Iterator<Item = Result<Document>> + use<> {
        let options = self.options.clone();
        self.records().projected(true).map(move |record| record?.document(&options))
    }

    /// Reads the documents and fingerprints them. See [`fingerprint_documents`](crate::fingerprint_documents).
    pub fn fingerprint_documents<F: Fingerprint>(&self, profile: &Profile) -> FingerprintedDocuments<F> {
        FingerprintedDocuments::new(self.records(), &self.options, profile)
    }

    /// Reads fingerprints from their files. See [`fingerprints`](fn@crate::fingerprints).
    pub fn fingerprints<F: Fingerprint>(&self) -> Fingerprints<F> {
        Fingerprints::new(&self.paths, &self.pipes, self.given.clone())
    }
}

/// Whether a path is standard input, a pipe or a device. False if it cannot be examined: reading reports that.
fn is_pipe(path: &Path) -> bool {
    is_read_once(path).unwrap_or(false)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_of_pipes_is_gone_with_inputs_and_readers() {
        let inputs = Inputs::new(&[PathBuf::from("/dev/null")], DocumentOptions::default()).unwrap();
        inputs.kind().unwrap();
        let held = Arc::downgrade(&inputs.pipes);
        let part = inputs.of_files(Vec::new());
        let records = inputs.records();
        drop(inputs);
        drop(part);
        assert!(held.upgrade().is_some());
        drop(records);
        assert!(held.upgrade().is_none());
    }
}
