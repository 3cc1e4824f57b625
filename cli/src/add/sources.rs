//! The files that are added from, and what of each was read before.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use simstore::{Fingerprint, Snapshot};
use simstore_corpus::{DocumentOptions, InputKind, Inputs, fingerprints, records};
use xxhash_rust::xxh3::xxh3_128;

use super::AddArgs;
use super::trail::{Point, Trail};
use crate::failure::{Failure, Outcome};
use crate::inputs::BadLines;
use crate::progress::Progress;

/// The longest path that is kept as it is; of a longer one, and one that is no Unicode, a hash is.
const LONGEST_PATH: usize = 4000;

/// A file that documents are added from.
#[derive(Clone, Debug)]
pub(super) struct Source {
    pub(super) path: PathBuf,
    /// Under which it is kept how far the file has been read; none for what can be read only once.
    pub(super) key: Option<String>,
    /// What was read before and is still the same: nothing of it is added again.
    pub(super) start: Point,
    /// Whether other documents stand where some were read before.
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
    /// Files in which other documents stand where some were read before.
    pub(super) changed: u64,
}

impl Source {
    /// Compares what stands in the file with what was read before; how many documents that are, if there is nothing
    /// else in it.
    fn compare<F: Fingerprint>(
        mut self,
        before: &Trail,
        kind: InputKind,
        options: &DocumentOptions,
    ) -> (Source, Option<u64>) {
        let (mut now, mut has_more) = (Trail::default(), false);
        let mut start = Point::default();
        let mut take = |document: Option<(u64, u64)>| {
            // What is malformed is told by reading it once more.
            let Some((line, checksum)) = document else {
                has_more = true;
                return true;
            };
            if now.end.documents == before.end.documents {
                has_more = true;
                return false;
            }
            now.push(line, checksum);
            if now.end == before.before_last {
                start = now.end;
            }
            true
        };
        let path = std::slice::from_ref(&self.path);
        match kind {
            InputKind::Documents => {
                let mut records = records(path, options);
                records.all(|record| {
                    let document = record.and_then(|record| {
                        let (line, checksum) = (record.line(), record.checksum(options));
                        record.document(options).map(|_| (line, checksum))
                    });
                    take(document.ok())
                });
            }
            InputKind::Fingerprints => {
                let mut records = fingerprints::<F>(path);
                records.all(|record| take(record.ok().map(|record| (record.line, record.checksum()))));
            }
        }
        if now.end == before.end {
            self.start = now.end;
            return (self, (!has_more).then_some(now.end.documents));
        }
        self.start = start;
        self.has_changed = true;
        (self, None)
    }

    /// The failure when the file is no more what it was a moment ago.
    pub(super) fn changed_meanwhile(&self) -> Failure {
        Failure::Failed(format!(
            "{}: has changed while it was read; what was added stays, run this again when nothing writes to the file",
            self.path.display()
        ))
    }
}

/// The key under which it is kept how far a file has been read.
fn key_of(path: &Path) -> Option<String> {
    if path.as_os_str() == "-" || path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return None;
    }
    let path = path.canonicalize().ok()?;
    Some(match path.to_str() {
        Some(path) if path.len() <= LONGEST_PATH => format!("add {path}"),
        _ => format!("add #{:032x}", xxh3_128(path.as_os_str().as_encoded_bytes())),
    })
}

impl Sources {
    /// Finds the files of the inputs, and reads those that were read before as far as they were. What is no more the
    /// same is read from its start; where only the last document is another, from that one.
    pub(super) fn find<F: Fingerprint>(
        args: &AddArgs,
        inputs: &Inputs,
        store: &Snapshot<F>,
        bad: &mut BadLines<'_>,
        progress: &Progress,
    ) -> Outcome<Sources> {
        let (kind, options) = (inputs.kind()?, inputs.options());
        let paths = match kind {
            InputKind::Fingerprints => inputs.files_of_fingerprints()?,
            InputKind::Documents => {
                let mut paths = Vec::new();
                let mut files = inputs.files();
                for file in files.by_ref() {
                    match file {
                        Ok(file) => paths.push(file.path),
                        Err(error) => bad.take(error.into())?,
                    }
                }
                progress.note(&files.progress());
                paths
            }
        };
        let trail_of = |key: &Option<String>| -> Outcome<Option<Trail>> {
            let key = key.as_deref().filter(|_| !args.again);
            let bytes = key.map_or(Ok(None), |key| store.mark(key))?;
            Ok(bytes.and_then(|bytes| Trail::from_bytes(&bytes)))
        };
        let compared: Vec<(Source, Option<u64>)> = paths
            .into_par_iter()
            .map(|path| {
                let source = Source { key: key_of(&path), path, start: Point::default(), has_changed: false };
                Ok(match trail_of(&source.key)? {
                    Some(trail) => source.compare::<F>(&trail, kind, options),
                    None => (source, None),
                })
            })
            .collect::<Outcome<_>>()?;
        let mut sources = Sources::default();
        for (source, all_read) in compared {
            sources.changed += u64::from(source.has_changed);
            match all_read {
                Some(documents) => sources.read_before += documents,
                // A file that is named twice is read once.
                None if sources.places.contains_key(&source.path) => {}
                None => {
                    sources.places.insert(source.path.clone(), sources.to_read.len());
                    sources.to_read.push(source);
                }
            }
        }
        Ok(sources)
    }

    /// The line in a file up to which its documents were read before; none for what lies in an archive.
    pub(super) fn start_line(&self, path: &Path) -> Option<u64> {
        self.places.get(path).map(|&place| self.to_read[place].start.line)
    }

    /// The place of the source that a document comes from: its file, or the archive that this lies in.
    pub(super) fn place_of(&self, path: &Path) -> Option<usize> {
        path.ancestors().find_map(|path| self.places.get(path).copied())
    }
}
