//! Sections of large files.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::input::Input;
use crate::bytes::pipes::Pipes;
use crate::bytes::section::{Section, borders};
use crate::formats::objects::Objects;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::{Compression, DocumentFormat, DocumentOptions, InputFile};

/// The sections of a file, about `bytes` each on disk; fewer than two if the file is read as a whole: if it is no larger, or
/// records of its format cannot be found from the middle. The same file has the same sections on every machine.
///
/// JSON is divided if it is in lines, in an encoding that contains ASCII, and not compressed or in members that can be found. Files that
/// cannot be read are reported when they are read.
pub fn sections(file: &InputFile, options: &DocumentOptions, bytes: u64, pipes: &Pipes) -> Vec<Section> {
    let Some(size) = file.bytes.filter(|&size| size > bytes) else { return Vec::new() };
    let count = size.div_ceil(bytes.max(1));
    match file.format {
        DocumentFormat::Jsonl => {
            of_lines(&file.path, file.compression, size, count, options, pipes).unwrap_or_default()
        }
        #[cfg(feature = "parquet")]
        DocumentFormat::Parquet => parquet::Rows::sections(&file.path, options, count),
        _ => Vec::new(),
    }
}

fn of_lines(
    path: &Path,
    compression: Compression,
    size: u64,
    count: u64,
    options: &DocumentOptions,
    pipes: &Pipes,
) -> Option<Vec<Section>> {
    if !matches!(compression, Compression::None | Compression::Gzip | Compression::Zstd) {
        return None;
    }
    let progress = Arc::default();
    let memory = options.memory_of_unpacking();
    let whole = Input::open(path, compression, memory, &progress, pipes).ok()?;
    let lines = Objects::open(whole, options).ok()?.in_sections()?;
    let borders = borders(path, compression, size, count).ok()?;
    let starts = std::iter::once(0).chain(borders.iter().copied());
    let ends = borders.iter().copied().chain([size]);
    let path: Arc<Path> = path.into();
    let sections = starts
        .zip(ends)
        .map(|(from, to)| Section {
            path: Arc::clone(&path),
            compression,
            memory,
            from,
            to,
            bytes: to - from,
            is_last: to == size,
            lines: Some(lines),
            reached: Arc::default(),
        })
        .collect();
    Some(sections)
}
