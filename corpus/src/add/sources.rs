//! The files that documents are added from, and how far each was read before.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rayon::prelude::*;
use xxhash_rust::xxh3::xxh3_128;

use super::read_position::{Point, Trail};
use crate::inputs::item::Malformed;
use crate::inputs::visit::tell_notes;
use crate::watch::Step;
use crate::{Counts, InputKind, Inputs, Watch};
use simstore::{Error, Fingerprint, Result, Snapshot};
use simstore_io::ReadProgress;

/// The longest path that is kept as it is; of a longer one, and one that is no Unicode, a hash is.
const LONGEST_PATH: usize = 4000;

/// A file that documents are added from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Key of the mark that records how far the file has been read; `None` for a source that can be read only once.
    pub(super) key: Option<String>,
    /// End of the part that was read before and is unchanged: its documents are not added again.
    pub(super) start: Point,
    /// Whether documents that were read before have changed.
    pub(super) has_changed: bool,
}

/// The files of a run.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// Those that have something new, or may have.
    pub(super) to_read: Vec<Source>,
    /// By path, the places of these.
    places: HashMap<PathBuf, usize>,
    /// Documents of the others.
    pub(super) read_before: u64,
    /// Files where documents that were read before have changed.
    pub(super) changed: u64,
    /// Files skipped when the inputs were listed.
    pub(super) listed: Counts,
}

/// Compares the documents read from a file before with its documents now.
struct Comparison<'a> {
    before: &'a Trail,
    now: Trail,
    /// End of the unchanged part, which need not be added again.
    start: Point,
    /// Whether there is something that was not read before.
    has_more: bool,
}

impl Comparison<'_> {
    /// Takes the line and the checksum of the next document, or something malformed.
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

impl Source {
    /// Compares the file with the documents read from it before. Returns their number if the file holds nothing else.
    fn compare<F: Fingerprint>(
        mut self,
        before: &Trail,
        inputs: &Inputs,
        step: &Step<'_>,
    ) -> Result<(Source, Option<u64>)> {
        let mut comparison =
            Comparison { before, now: Trail::default(), start: Point::default(), has_more: false };
        let file = inputs.of_files(vec![self.path.clone()]);
        match inputs.kind()? {
            InputKind::Documents => {
                for record in file.records() {
                    step.add(1)?;
                    let document = record.and_then(|record| {
                        let (line, checksum) = (record.line(), record.checksum(inputs.options()));
                        record.document(inputs.options()).map(|_| (line, checksum))
                    });
                    if comparison.take(document.ok()).is_break() {
                        break;
                    }
                }
            }
            InputKind::Fingerprints => {
                for record in file.fingerprints::<F>() {
                    step.add(1)?;
                    if comparison
                        .take(record.ok().map(|item| (item.line, item.checksum_of_fingerprint())))
                        .is_break()
                    {
                        break;
                    }
                }
            }
        }
        let Comparison { now, start, has_more, .. } = comparison;
        if now.end == before.end {
            self.start = now.end;
            return Ok((self, (!has_more).then_some(now.end.documents)));
        }
        self.start = start;
        self.has_changed = true;
        Ok((self, None))
    }

    /// The error when the file is no more what it was a moment ago.
    pub(super) fn changed_meanwhile(&self) -> Error {
        Error::Refused(format!(
            "{}: changed while it was read; added documents stay. Run this again when nothing writes to the file",
            self.path.display()
        ))
    }
}

/// The key under which it is kept how far a file has been read.
fn key_of(path: &Path, inputs: &Inputs) -> Result<Option<String>> {
    if !inputs.is_file(path)? {
        return Ok(None);
    }
    let path = path.canonicalize().map_err(Error::io(path, "find"))?;
    Ok(Some(match path.to_str() {
        Some(path) if path.len() <= LONGEST_PATH => format!("add {path}"),
        _ => format!("add #{:032x}", xxh3_128(path.as_os_str().as_encoded_bytes())),
    }))
}

impl Sources {
    /// Finds the files of the inputs. Compares each file that was read before with its recorded checksum, unless all are read
    /// `again`. A changed file is read from its start, or from its last recorded document if only that one has changed.
    pub(super) fn find<F: Fingerprint>(
        inputs: &Inputs,
        store: &Snapshot<F>,
        again: bool,
        malformed: &mut Malformed<'_>,
        watch: &dyn Watch,
    ) -> Result<Sources> {
        let mut sources = Sources::default();
        let paths = match inputs.kind()? {
            InputKind::Fingerprints => {
                let progress = Arc::default();
                let paths = inputs.named_files(&progress)?;
                sources.take_notes(&progress, watch);
                paths
            }
            InputKind::Documents => {
                let mut paths = Vec::new();
                let mut files = inputs.files();
                for file in files.by_ref() {
                    match file {
                        Ok(file) => paths.push(file.path),
                        Err(error) => malformed.take(error)?,
                    }
                }
                sources.take_notes(&files.progress(), watch);
                paths
            }
        };
        let trail_of = |key: &Option<String>| -> Result<Option<Trail>> {
            let key = key.as_deref().filter(|_| !again);
            let bytes = key.map_or(Ok(None), |key| store.mark(key))?;
            Ok(bytes.and_then(|bytes| Trail::from_bytes(&bytes)))
        };
        let step = Step::new(watch, "documents compared");
        let compared: Vec<(Source, Option<u64>)> = paths
            .into_par_iter()
            .map(|path| {
                // A file that cannot be examined is reported when it is read.
                let key = match key_of(&path, inputs) {
                    Err(Error::BadInput { .. }) => None,
                    key => key?,
                };
                let source = Source { key, path, start: Point::default(), has_changed: false };
                Ok(match trail_of(&source.key)? {
                    Some(trail) => source.compare::<F>(&trail, inputs, &step)?,
                    None => (source, None),
                })
            })
            .collect::<Result<_>>()?;
        for (source, all_read) in compared {
            sources.changed += u64::from(source.has_changed);
            match all_read {
                Some(documents) => sources.read_before += documents,
                None => {
                    sources.places.insert(source.path.clone(), sources.to_read.len());
                    sources.to_read.push(source);
                }
            }
        }
        Ok(sources)
    }

    fn take_notes(&mut self, listed: &ReadProgress, watch: &dyn Watch) {
        self.listed.count_files(listed);
        tell_notes(listed, watch);
    }

    /// The last line of a file's documents that were read before; `None` for a member of an archive.
    pub(super) fn start_line(&self, path: &Path) -> Option<u64> {
        self.places.get(path).map(|&place| self.to_read[place].start.line)
    }

    /// The place of the source that a document comes from: its file, or the archive that this lies in.
    pub(super) fn place_of(&self, path: &Path) -> Option<usize> {
        path.ancestors().find_map(|path| self.places.get(path).copied())
    }
}
