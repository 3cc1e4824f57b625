//! Work that is kept: the fingerprints of finished files, so that a run can be carried on and shared between machines.
//!
//! The files are specified in `format-spec/part.md`.

use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use simstore::corpus::{DocumentId, DocumentOptions, InputFile, input_files};
use simstore::text::Profile;
use simstore::{Error, Fingerprint};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use crate::failure::{Failure, Outcome, complain};
use crate::inputs::{self, Counts, Item, is_read_once};
use crate::output::Output;
use crate::progress::Progress;

const VERSION: u32 = 1;
/// Smaller files are taken together, up to this many: a folder of pages makes few parts.
const LARGE_FILE_BYTES: u64 = 1 << 20;
const PART_FILES: usize = 4096;
/// Bytes at the start and at the end of a file by which it is known again.
const CHECKED_BYTES: u64 = 1 << 16;

/// One of several machines, or runs, that share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    number: usize,
    of: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shard = text.split_once('/').and_then(|(number, of)| {
            let shard = Shard { number: number.parse().ok()?, of: of.parse().ok()? };
            (1..=shard.of).contains(&shard.number).then_some(shard)
        });
        shard.ok_or_else(|| "expected a shard and the number of shards, like 1/4".to_owned())
    }
}

/// What a part holds: which files, and how they were read.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Header {
    /// Version of the format.
    part: u32,
    bits: u32,
    profile: String,
    id_field: Option<String>,
    text_fields: Vec<String>,
    extra_field: Option<String>,
    format: Option<String>,
    encoding: String,
    max_bytes: usize,
    skip_bad: bool,
    files: Vec<PartFile>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PartFile {
    path: String,
    bytes: u64,
    /// xxh3 of the first and the last 64 KiB, hexadecimal.
    check: String,
}

/// A document of a part; `null` stands for a malformed one.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    /// The place of its file in the header.
    file: usize,
    line: u64,
    #[serde(borrow)]
    id: LineId<'a>,
    fingerprint: Option<String>,
    features: Option<u32>,
    text_bytes: u64,
    replaced: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    extra: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum LineId<'a> {
    Number(u64),
    #[serde(borrow)]
    Name(Cow<'a, str>),
}

/// The last line: nothing is missing before it.
#[derive(Serialize, Deserialize)]
struct End {
    end: u64,
}

/// A folder of parts.
pub(crate) struct Parts<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) shard: Option<Shard>,
    pub(crate) options: &'a DocumentOptions,
    pub(crate) profile: &'a Profile,
    pub(crate) skip_bad: bool,
}

/// How many parts were there, were made, and are left to others.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) found: u64,
    pub(crate) made: u64,
    pub(crate) left: u64,
}

impl Parts<'_> {
    /// Visits the documents of all inputs in order: from parts where they are there, and else from the files, whose
    /// parts are then kept. Of a shard, only its parts are made, and nothing is visited.
    pub(crate) fn visit<F: Fingerprint>(
        &self,
        inputs: &[PathBuf],
        progress: &Progress,
        mut visitor: impl FnMut(Item<F>) -> Outcome,
    ) -> Outcome<(Counts, Tally)> {
        if let Some(input) = inputs.iter().find(|input| is_read_once(input)) {
            let message = "only files can be read in parts, and carried on with";
            return Err(Failure::Usage(format!("{}: {message}", input.display())));
        }
        std::fs::create_dir_all(self.folder).map_err(Failure::write(self.folder))?;
        let (mut counts, mut tally) = (Counts::default(), Tally::default());
        let mut position = 0;
        let units = units(input_files(inputs, self.options));
        for (number, files) in units.into_iter().enumerate() {
            let files = match files {
                Ok(files) => files,
                Err(error @ Error::BadInput { .. }) if self.skip_bad => {
                    complain(&error.to_string());
                    position += 1;
                    counts.bad += 1;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let header = self.header::<F>(&files)?;
            let path = self.path(&header)?;
            if path.exists() {
                tally.found += 1;
                if self.shard.is_none() {
                    let part = read(&path, &header, position, &mut visitor)?;
                    position += part.read + part.bad;
                    counts.add(part);
                }
                continue;
            }
            if self.shard.is_some_and(|shard| number % shard.of + 1 != shard.number) {
                tally.left += 1;
                continue;
            }
            let part = self.make(&path, &header, &files, position, progress, &mut visitor)?;
            position += part.read + part.bad;
            counts.add(part);
            tally.made += 1;
        }
        Ok((counts, tally))
    }

    fn header<F: Fingerprint>(&self, files: &[InputFile]) -> Outcome<Header> {
        let file = |file: &InputFile| {
            Ok(PartFile {
                path: file.path.to_string_lossy().replace(std::path::MAIN_SEPARATOR_STR, "/"),
                bytes: file.bytes.unwrap_or_default(),
                check: check(&file.path)?,
            })
        };
        Ok(Header {
            part: VERSION,
            bits: F::BITS,
            profile: self.profile.to_string(),
            id_field: self.options.id_field.clone(),
            text_fields: self.options.text_fields.clone(),
            extra_field: self.options.extra_field.clone(),
            format: self.options.format.map(|format| format.to_string()),
            encoding: self.options.encoding.to_string(),
            max_bytes: self.options.max_bytes,
            skip_bad: self.skip_bad,
            files: files.iter().map(file).collect::<Outcome<_>>()?,
        })
    }

    /// A part is found by what it holds: of other files, or read in another way, it has another name.
    fn path(&self, header: &Header) -> Outcome<PathBuf> {
        let header = serde_json::to_vec(header).map_err(|error| Failure::Failed(error.to_string()))?;
        Ok(self.folder.join(format!("{:016x}.part.zst", xxh3_64(&header))))
    }

    fn make<F: Fingerprint>(
        &self,
        path: &Path,
        header: &Header,
        files: &[InputFile],
        first: u64,
        progress: &Progress,
        visitor: &mut impl FnMut(Item<F>) -> Outcome,
    ) -> Outcome<Counts> {
        let failed = Failure::write(path);
        let mut writer = zstd::Encoder::new(Output::create(path)?, 1).map_err(&failed)?;
        let mut push =
            |line: &[u8]| writer.write_all(line).and_then(|()| writer.write_all(b"\n")).map_err(&failed);
        push(&json(header)?)?;
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        let (mut next, mut file) = (0, 0);
        let counts = inputs::visit_documents(
            &paths,
            self.options,
            self.profile,
            self.skip_bad,
            progress,
            |mut item: Item<F>| {
                for _ in next..item.position {
                    push(b"null")?;
                }
                next = item.position + 1;
                // Documents come in the order of their files.
                file += paths[file..].iter().position(|path| **path == *item.path).unwrap_or_default();
                push(&json(&line(&item, file))?)?;
                item.position += first;
                if self.shard.is_some() { Ok(()) } else { visitor(item) }
            },
        )?;
        for _ in next..counts.read + counts.bad {
            push(b"null")?;
        }
        push(&json(&End { end: counts.read + counts.bad })?)?;
        writer.finish().map_err(&failed)?.finish()?;
        Ok(counts)
    }
}

fn json(value: &impl Serialize) -> Outcome<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Failure::Failed(error.to_string()))
}

fn line<F: Fingerprint>(item: &Item<F>, file: usize) -> Line<'_> {
    Line {
        file,
        line: item.line,
        id: match &item.id {
            DocumentId::Number(number) => LineId::Number(*number),
            DocumentId::Name(name) => LineId::Name(name.into()),
        },
        fingerprint: item.fingerprint.map(|fingerprint| fingerprint.to_hex()),
        features: item.features,
        text_bytes: item.text_bytes,
        replaced: item.replaced,
        extra: item.extra.clone(),
    }
}

/// Visits the documents of a part.
fn read<F: Fingerprint>(
    path: &Path,
    expected: &Header,
    first: u64,
    visitor: &mut impl FnMut(Item<F>) -> Outcome,
) -> Outcome<Counts> {
    let failed = |reason: String| {
        Failure::Failed(format!("{}: {reason}; remove this file, and it is made again", path.display()))
    };
    let reader = File::open(path)
        .and_then(zstd::Decoder::new)
        .map_err(|error| failed(format!("cannot read: {error}")))?;
    let mut lines = BufReader::new(reader).lines();
    let mut next = || match lines.next() {
        Some(Ok(line)) => Ok(line),
        Some(Err(error)) => Err(failed(format!("cannot read: {error}"))),
        None => Err(failed("the end is missing".to_owned())),
    };
    let header: Header = serde_json::from_str(&next()?)
        .map_err(|error| failed(format!("line 1: no header of a part: {error}")))?;
    if header != *expected {
        return Err(failed("not the part that its name tells".to_owned()));
    }
    let mut counts = Counts::default();
    let files: Vec<std::sync::Arc<Path>> =
        header.files.iter().map(|file| Path::new(&file.path).into()).collect();
    for number in 0.. {
        let text = next()?;
        if text == "null" {
            counts.bad += 1;
            continue;
        }
        let bad = |reason: String| failed(format!("line {}: {reason}", number + 2));
        if let Ok(End { end }) = serde_json::from_str(&text) {
            if end != number {
                return Err(bad(format!("the end of {end} documents after {number}")));
            }
            return Ok(counts);
        }
        let line: Line = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
        let fingerprint = line.fingerprint.as_deref().map(F::parse_hex).transpose();
        let item = Item {
            id: match line.id {
                LineId::Number(number) => DocumentId::Number(number),
                LineId::Name(name) => DocumentId::Name(name.into_owned()),
            },
            fingerprint: fingerprint.map_err(|error| bad(error.to_string()))?,
            features: line.features,
            text_bytes: line.text_bytes,
            replaced: line.replaced,
            extra: line.extra,
            position: first + number,
            path: files.get(line.file).cloned().ok_or_else(|| bad("no such file".to_owned()))?,
            line: line.line,
            checksum: 0,
            has_id: true,
        };
        counts.count(&item);
        visitor(item)?;
    }
    Ok(counts)
}

/// Files that make a part together: a large one alone, small ones that follow each other. What cannot be listed stands
/// by itself.
fn units(files: impl Iterator<Item = simstore::Result<InputFile>>) -> Vec<simstore::Result<Vec<InputFile>>> {
    let is_small = |file: &InputFile| file.bytes.is_some_and(|bytes| bytes < LARGE_FILE_BYTES);
    let mut units: Vec<simstore::Result<Vec<InputFile>>> = Vec::new();
    for file in files {
        match (units.last_mut(), file) {
            (Some(Ok(unit)), Ok(file))
                if is_small(&file) && is_small(&unit[0]) && unit.len() < PART_FILES =>
            {
                unit.push(file);
            }
            (_, file) => units.push(file.map(|file| vec![file])),
        }
    }
    units
}

fn check(path: &Path) -> Outcome<String> {
    let mut hash = Xxh3::new();
    let mut update = || {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut buffer = Vec::new();
        for start in [0, length.saturating_sub(CHECKED_BYTES)] {
            buffer.clear();
            file.seek(SeekFrom::Start(start))?;
            (&mut file).take(CHECKED_BYTES).read_to_end(&mut buffer)?;
            hash.update(&buffer);
        }
        Ok(())
    };
    update().map_err(|error: std::io::Error| {
        Failure::Failed(format!("{}: cannot read: {error}", path.display()))
    })?;
    Ok(format!("{:016x}", hash.digest()))
}
