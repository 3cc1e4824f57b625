//! What a job reads, as one value; and its documents and fingerprints, one after the other.

pub(crate) mod batch;
pub(crate) mod code;
pub(crate) mod fingerprints;
mod given;
pub(crate) mod item;
pub(crate) mod visit;

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::bytes::opening::is_folder;
use crate::bytes::pipes::{Pipes, is_read_once, is_stdin};
use crate::bytes::section::Section;
use crate::document::GIVEN;
use crate::formats::detect::{self, Format};
use crate::inputs::batch::FingerprintedDocuments;
use crate::inputs::fingerprints::Fingerprints;
use crate::inputs::given::GivenFingerprints;
use crate::reading::files::named::{Named, has_file};
use crate::reading::files::{InputFiles, matches_of};
use crate::reading::given::GivenDocuments;
use crate::reading::records::Records;
use crate::reading::sections;
use crate::{Document, DocumentFormat, DocumentId, DocumentOptions, Encoding, InputFile, ReadProgress};
use simstore::error::excerpt;
use simstore::{Error, Fingerprint, Result};
use simstore_text::Profile;

/// No system opens a longer path.
const MAX_PATH_BYTES: usize = 1 << 16;

/// What inputs hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// Documents.
    Documents,
    /// Fingerprints.
    Fingerprints,
}

/// What a job reads: files of documents or of fingerprints, or either of them given in memory.
///
/// It owns what is read of pipes and standard input before their turn, to tell what they hold, and what is
/// [put aside](Inputs::put_aside) of them; that is gone when the value and its readers are dropped. Two values know nothing of
/// each other, also if they name the same file.
///
/// ```
/// use simstore_corpus::{DocumentOptions, InputKind, Inputs};
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
    /// A section, if only that is read of the one path.
    section: Option<Box<Section>>,
    /// Documents or fingerprints in memory, for which the one path stands.
    documents: Option<GivenDocuments>,
    given: Option<GivenFingerprints>,
}

impl Inputs {
    /// Files, folders and patterns, and how documents are read; `-` is standard input. Nothing is opened yet.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if a pipe or standard input is named twice, or a path is longer than any file's.
    pub fn new(paths: &[PathBuf], options: DocumentOptions) -> Result<Inputs> {
        if let Some(path) = paths.iter().find(|path| path.as_os_str().len() > MAX_PATH_BYTES) {
            let (start, bytes) = (path.to_string_lossy(), path.as_os_str().len());
            return Err(Error::BadArgument(format!(
                "`{}` is no path: it has {bytes} bytes, and a path at most {MAX_PATH_BYTES}",
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
        Ok(Inputs {
            paths: paths.to_vec(),
            options,
            skip_bad: false,
            kind: OnceLock::new(),
            pipes: Arc::default(),
            section: None,
            documents: None,
            given: None,
        })
    }

    /// Documents that are given one after the other: their ids, texts and [extra fields](Document::extra) count. They are read as
    /// a pipe is, once, unless they are [put aside](Inputs::put_aside), and called `documents` where a file would be named. They
    /// cannot be written as they stood in a file.
    ///
    /// An item that is [`Error::BadInput`] is a malformed document, any other error the end of the reading.
    ///
    /// ```
    /// use simstore_corpus::{Document, DocumentId, Inputs};
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
        Inputs {
            paths: vec![PathBuf::from(GIVEN)],
            // Nothing tells a format.
            options: DocumentOptions { format: Some(DocumentFormat::Jsonl), ..DocumentOptions::default() },
            skip_bad: false,
            kind: OnceLock::from(InputKind::Documents),
            pipes: Arc::new(Pipes::of_given(GIVEN)),
            section: None,
            documents: Some(GivenDocuments::new(documents.into_iter())),
            given: None,
        }
    }

    /// Fingerprints with their ids, or numbered from 0. They are called `fingerprints` where a file would be named.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if there are more or fewer ids than fingerprints.
    pub fn of_fingerprints<F: Fingerprint>(
        fingerprints: Vec<F>,
        ids: Option<Vec<DocumentId>>,
    ) -> Result<Inputs> {
        let given = GivenFingerprints::new(fingerprints, ids)?;
        Ok(Inputs {
            paths: vec![given.path()],
            options: DocumentOptions::default(),
            skip_bad: false,
            kind: OnceLock::from(InputKind::Fingerprints),
            pipes: Arc::default(),
            section: None,
            documents: None,
            given: Some(given),
        })
    }

    /// Whether visits go on after malformed documents and files that cannot be read, which are then told to the watch and
    /// counted. Else the first one ends a visit. Readers hand them out in any case.
    #[must_use]
    pub fn skip_bad(self, skip_bad: bool) -> Inputs {
        Inputs { skip_bad, ..self }
    }

    /// Some of the files as inputs of their own, read in the same way; what is known of pipes is shared.
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

    /// Whether these are documents or fingerprints in memory.
    pub(crate) fn are_given(&self) -> bool {
        self.documents.is_some() || self.given.is_some()
    }

    /// A section of one of the files as inputs of their own, with lines counted from its start; `section` tells how far it
    /// has been read.
    pub(crate) fn of_section(&self, section: &Section) -> Inputs {
        let paths = vec![section.path.to_path_buf()];
        Inputs { section: Some(Box::new(section.clone())), ..self.of_files(paths) }
    }

    /// The sections of a file of these inputs: see [`sections`](sections::sections).
    pub(crate) fn sections(&self, file: &InputFile, bytes: u64) -> Vec<Section> {
        sections::sections(file, &self.options, bytes, &self.pipes)
    }

    /// The same inputs, of which this field is read too, if any: see [`DocumentOptions::extra_field`].
    pub(crate) fn with_extra_field(&self, field: Option<&str>) -> Inputs {
        let mut inputs = self.of_files(self.paths.clone());
        inputs.options.extra_field = field.map(str::to_owned);
        inputs
    }

    /// The same inputs, read within so much memory: see [`DocumentOptions::memory`].
    pub(crate) fn within(&self, memory: Option<u64>) -> Inputs {
        let mut inputs = self.of_files(self.paths.clone());
        inputs.options.memory = memory.or(self.options.memory);
        inputs
    }

    /// The paths, as they were given.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// How documents are read.
    pub fn options(&self) -> &DocumentOptions {
        &self.options
    }

    /// Whether malformed documents are skipped: see [`Inputs::skip_bad`].
    pub fn skips_bad(&self) -> bool {
        self.skip_bad
    }

    /// Those that can be read only once, unless they are [put aside](Inputs::put_aside): standard input, pipes, devices, documents
    /// that are given.
    pub fn pipes(&self) -> impl Iterator<Item = &Path> {
        self.paths.iter().map(|path| &**path).filter(|path| self.pipes.is_read_once(path).unwrap_or(false))
    }

    /// Whether a path of these inputs, or of a file below them, is that of a file, which can be read again by another call.
    ///
    /// # Errors
    /// Those of looking at it.
    pub(crate) fn is_file(&self, path: &Path) -> Result<bool> {
        Ok(self.given.is_none() && !self.pipes.is_read_once(path)?)
    }

    /// What all inputs hold: documents if their format is given; else it is told by their extensions, or where these do not
    /// tell, by their first bytes. What neither tells holds documents. What cannot be read has no say, as long as
    /// something else has: the reading will complain of it.
    ///
    /// # Errors
    /// [`Error::BadArgument`] if some hold documents and some fingerprints, and for a pattern that matches nothing;
    /// [`Error::Io`] for a path that does not exist, and [`Error::BadInput`] if none of them can be read, unless what is
    /// malformed is skipped.
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

    /// What a path, or all that a pattern matches, holds.
    fn kind_of(&self, path: &Path) -> Result<InputKind> {
        let Some(matches) = matches_of(path, None)? else { return self.kind_of_file(path) };
        let mut kind = None;
        for found in &matches {
            let of_this = self.kind_of_file(found)?;
            if *kind.get_or_insert(of_this) != of_this {
                return Err(Error::BadArgument(format!(
                    "{}: matches files of documents and of fingerprints; name those of one kind",
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
        // Whether it is a text is judged when it is read, by what is asked for.
        let options = DocumentOptions { encoding: Encoding::UTF_8, ..DocumentOptions::default() };
        Ok(match detect::detect(path, &options, &self.pipes)? {
            Some(Format::HexLines | Format::Raw { .. }) => InputKind::Fingerprints,
            Some(Format::Documents(_)) | None => InputKind::Documents,
        })
    }

    /// The files of documents: see [`input_files`](crate::input_files).
    pub fn files(&self) -> InputFiles {
        InputFiles::new(&self.paths, &self.options, &self.pipes)
    }

    /// The files of fingerprints, each once: the paths, with each pattern replaced by what it matches.
    ///
    /// # Errors
    /// As [`matching_paths`](crate::matching_paths).
    pub fn files_of_fingerprints(&self) -> Result<Vec<PathBuf>> {
        self.named_files(&Arc::default())
    }

    /// The same, with what is passed over counted.
    pub(crate) fn named_files(&self, progress: &Arc<ReadProgress>) -> Result<Vec<PathBuf>> {
        let mut named = Named::new(&self.paths, self.options.format.is_some(), progress, &self.pipes);
        let mut paths = Vec::new();
        while let Some((path, _)) = named.next()? {
            paths.push(path);
        }
        Ok(paths)
    }

    /// Whether a path leads to one of the files that are read, or that stand in a folder that is: what is written there would take
    /// its place. Nothing is opened.
    pub fn has_file(&self, path: &Path) -> bool {
        has_file(&self.paths, path)
    }

    /// Bytes of all files of documents as they are on disk; `None` where there is a pipe. What cannot be listed has none.
    pub fn total_bytes(&self) -> Option<u64> {
        if let Some(section) = &self.section {
            return Some(section.bytes);
        }
        self.files().filter_map(Result::ok).map(|file| file.bytes).sum()
    }

    /// Lets pipes and standard input be read again and again, by one reader at a time: they are read to their end, into
    /// temporary files, which are gone with this value and its readers. Documents that are given are put aside as they are read.
    ///
    /// # Errors
    /// [`Error::Io`] if an input cannot be read, or nothing can be written to the folder for temporary files; [`Error::Refused`] if
    /// documents that are given were read before.
    pub fn put_aside(&self) -> Result<()> {
        self.put_aside_in(&std::env::temp_dir())
    }

    /// The same, into files in this folder.
    pub(crate) fn put_aside_in(&self, folder: &Path) -> Result<()> {
        match &self.documents {
            Some(documents) => documents.put_aside(folder),
            None => self.pipes().try_for_each(|path| self.pipes.put_aside(path, folder)),
        }
    }

    /// The documents as they stand in their files: see [`records`](crate::records).
    pub fn records(&self) -> Records {
        match (&self.section, &self.documents) {
            (Some(section), _) => Records::of_section(section, &self.options, &self.pipes),
            (None, Some(documents)) if !self.paths.is_empty() => Records::of_given(documents, &self.options),
            (None, _) => Records::new(&self.paths, &self.options, &self.pipes),
        }
    }

    /// The documents: see [`documents`](crate::documents).
    pub fn documents(&self) -> impl Iterator<Item = Result<Document>> + use<> {
        let options = self.options.clone();
        self.records().projected(true).map(move |record| record?.document(&options))
    }

    /// The fingerprints of the documents: see [`fingerprint_documents`](crate::fingerprint_documents).
    pub fn fingerprint_documents<F: Fingerprint>(&self, profile: &Profile) -> FingerprintedDocuments<F> {
        FingerprintedDocuments::new(self.records(), &self.options, profile)
    }

    /// The fingerprints of files of fingerprints: see [`fingerprints`](fn@crate::fingerprints).
    pub fn fingerprints<F: Fingerprint>(&self) -> Fingerprints<F> {
        Fingerprints::new(&self.paths, &self.pipes, self.given.clone())
    }
}

/// Whether a path is standard input, a pipe or a device; one that cannot be looked at is told when it is read.
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
