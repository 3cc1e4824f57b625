//! Files that documents are added from, and how far earlier jobs have read them.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::read_position::{ReadCheckpoint, ReadPosition};
use crate::inputs::item::MalformedHandler;
use crate::inputs::visit::report_read_diagnostics;
use crate::observer::Stage;
use crate::{InputCounts, InputKind, Inputs, Observer};
use simstore::{Error, Fingerprint, Result, Snapshot};
use simstore_io::ReadProgress;

/// Length of the longest path that is used as a key of the store's metadata, in bytes. A longer path, or a path that is not
/// UTF-8, is replaced by its hash.
const MAX_KEY_PATH_BYTES: usize = 4000;

/// A file that documents are added from.
#[derive(Clone, Debug)]
pub(super) struct SourceFile {
    pub(super) path: PathBuf,
    /// Key of the store's metadata that records how far the file has been read. `None` for a source that can be read only
    /// once, such as a pipe.
    pub(super) key: Option<String>,
    /// End of the unchanged documents that an earlier job has read. They are not added again.
    pub(super) start: ReadPosition,
    /// Whether documents in the file have changed since an earlier job read them.
    pub(super) has_changed: bool,
}

/// All files that a job adds documents from.
#[derive(Debug, Default)]
pub(super) struct SourceFiles {
    /// Files that may have new documents.
    pub(super) to_read: Vec<SourceFile>,
    /// Index of each file in [`to_read`](Self::to_read), keyed by path.
    indices: HashMap<PathBuf, usize>,
    /// Number of documents in the files that are not in [`to_read`](Self::to_read), because they have no new documents.
    pub(super) read_before: u64,
    /// Number of files in which documents have changed since an earlier job read them.
    pub(super) changed: u64,
    /// Counts of files skipped while listing the inputs.
    pub(super) listed: InputCounts,
}

/// Compares the current documents of a file with the documents that an earlier job has read from it.
struct FileComparison<'a> {
    before: &'a ReadCheckpoint,
    now: ReadCheckpoint,
    /// End of the unchanged documents, which need not be added again.
    start: ReadPosition,
    /// Whether the file has a document or a malformed record that was not read before.
    has_more: bool,
}

impl FileComparison<'_> {
    /// Takes the next record of the file: the line and the checksum of a document, or `None` for a malformed record. Returns
    /// [`ControlFlow::Break`] if the document follows all documents that the earlier job has read.
    fn take(&mut self, document: Option<(u64, u64)>) -> ControlFlow<()> {
        // A malformed document is reported when the file is read again.
        let Some((line, checksum)) = document else {
            self.has_more = true;
            return ControlFlow::Continue(());
        };
        if self.now.end.documents == self.before.end.documents {
            self.has_more = true;
            return ControlFlow::Break(());
        }
        self.now.push(line, checksum);
        if self.now.end == self.before.before_last {
            self.start = self.now.end;
        }
        ControlFlow::Continue(())
    }
}

impl SourceFile {
    /// Compares the file with the checkpoint of an earlier job, and sets the fields `start` and `has_changed`. Also
    /// returns the number of documents in the file, or `None` if the file may have new documents.
    fn compare<F: Fingerprint>(
        mut self,
        before: &ReadCheckpoint,
        inputs: &Inputs,
        stage: &Stage<'_>,
    ) -> Result<(SourceFile, Option<u64>)> {
        let mut comparison = FileComparison {
            before,
            now: ReadCheckpoint::default(),
            start: ReadPosition::default(),
            has_more: false,
        };
        let file = inputs.with_paths(vec![self.path.clone()]);
        match inputs.kind()? {
            InputKind::Documents => {
                for record in file.records() {
                    stage.add(1)?;
                    let document = record.and_then(|record| {
                        let (line, checksum) = (record.line(), record.checksum(inputs.options()));
                        record.into_document(inputs.options()).map(|_| (line, checksum))
                    });
                    if comparison.take(document.ok()).is_break() {
                        break;
                    }
                }
            }
            InputKind::Fingerprints => {
                for record in file.fingerprints::<F>() {
                    stage.add(1)?;
                    if comparison
                        .take(record.ok().map(|item| (item.line, item.checksum_of_fingerprint())))
                        .is_break()
                    {
                        break;
                    }
                }
            }
        }
        let FileComparison { now, start, has_more, .. } = comparison;
        if now.end == before.end {
            self.start = now.end;
            return Ok((self, (!has_more).then_some(now.end.documents)));
        }
        self.start = start;
        self.has_changed = true;
        Ok((self, None))
    }

    /// Error for a file that another program changed during the job.
    pub(super) fn concurrent_change_error(&self) -> Error {
        Error::Refused(format!(
            "{}: changed while it was read; added documents stay. Run this again when nothing writes to the file",
            self.path.display()
        ))
    }
}

/// Returns the metadata key for the checkpoint of a file; `None` if the path is not a file that can be read again.
fn checkpoint_key(path: &Path, inputs: &Inputs) -> Result<Option<String>> {
    if !inputs.is_file(path)? {
        return Ok(None);
    }
    let path = path.canonicalize().map_err(Error::io(path, "find"))?;
    Ok(Some(match path.to_str() {
        Some(path) if path.len() <= MAX_KEY_PATH_BYTES => format!("add {path}"),
        _ => format!("add #{:032x}", xxh3_128(path.as_os_str().as_encoded_bytes())),
    }))
}

impl SourceFiles {
    /// Lists the files of the inputs. Unless `reread` is set, compares each file with the checkpoint that an earlier job has
    /// recorded for it, if any. A changed file is read from its start, or from its last recorded document if only this
    /// document has changed.
    pub(super) fn find<F: Fingerprint>(
        inputs: &Inputs,
        store: &Snapshot<F>,
        reread: bool,
        malformed: &mut MalformedHandler<'_>,
        observer: &dyn Observer,
    ) -> Result<SourceFiles> {
        let mut sources = SourceFiles::default();
        let paths = match inputs.kind()? {
            InputKind::Fingerprints => {
                let progress = Arc::default();
                let paths = inputs.fingerprint_files_with_progress(&progress)?;
                sources.add_read_diagnostics(&progress, observer);
                paths
            }
            InputKind::Documents => {
                let mut paths = Vec::new();
                let mut files = inputs.files();
                for file in files.by_ref() {
                    match file {
                        Ok(file) => paths.push(file.path),
                        Err(error) => malformed.handle(error)?,
                    }
                }
                sources.add_read_diagnostics(&files.progress(), observer);
                paths
            }
        };
        let checkpoint_of = |key: &Option<String>| -> Result<Option<ReadCheckpoint>> {
            let key = key.as_deref().filter(|_| !reread);
            let bytes = key.map_or(Ok(None), |key| store.metadata(key))?;
            Ok(bytes.and_then(|bytes| ReadCheckpoint::from_bytes(&bytes)))
        };
        let stage = Stage::new(observer, "documents compared");
        let compared: Vec<(SourceFile, Option<u64>)> = paths
            .into_par_iter()
            .map(|path| {
                // A file that cannot be examined is reported when it is read.
                let key = match checkpoint_key(&path, inputs) {
                    Err(Error::BadInput { .. }) => None,
                    key => key?,
                };
                let source = SourceFile { key, path, start: ReadPosition::default(), has_changed: false };
                Ok(match checkpoint_of(&source.key)? {
                    Some(checkpoint) => source.compare::<F>(&checkpoint, inputs, &stage)?,
                    None => (source, None),
                })
            })
            .collect::<Result<_>>()?;
        for (source, known_documents) in compared {
            sources.changed += u64::from(source.has_changed);
            match known_documents {
                Some(documents) => sources.read_before += documents,
                None => {
                    sources.indices.insert(source.path.clone(), sources.to_read.len());
                    sources.to_read.push(source);
                }
            }
        }
        Ok(sources)
    }

    fn add_read_diagnostics(&mut self, listed: &ReadProgress, observer: &dyn Observer) {
        self.listed.count_files(listed);
        report_read_diagnostics(listed, observer);
    }

    /// Returns the line of the last skipped document in a file. Documents are skipped if an earlier job has read them. Returns
    /// 0 if no document is skipped, and `None` for a member of an archive.
    pub(super) fn start_line(&self, path: &Path) -> Option<u64> {
        self.indices.get(path).map(|&place| self.to_read[place].start.line)
    }

    /// Index in [`to_read`](Self::to_read) of the file that has the document at `path`: the file at this path itself, or the
    /// archive that contains the path. `None` if the file is not in `to_read`.
    pub(super) fn index_of(&self, path: &Path) -> Option<usize> {
        path.ancestors().find_map(|path| self.indices.get(path).copied())
    }
}
