//! Divides large files into sections that can be read independently.

use std::path::Path;
use std::sync::Arc;

use crate::bytes::input::Input;
use crate::bytes::read_once::ReadOnceInputs;
use crate::bytes::section::{Section, section_boundaries};
use crate::formats::json_objects::JsonObjects;
#[cfg(feature = "parquet")]
use crate::formats::parquet;
use crate::{Compression, DocumentFormat, DocumentOptions, InputFile};

/// Divides a file into sections of about `bytes` bytes on disk.
///
/// Returns fewer than two sections if the file must be read as a whole: it is not larger than `bytes`, or its format
/// can be read only from the start. The division depends only on the file, not on the machine.
///
/// JSON is divided if it is in lines, in an ASCII-compatible encoding, and either uncompressed or in gzip
/// members or zstd frames. For a file that cannot be opened, no sections are returned; the error is reported when the
/// file is read.
pub fn split_into_sections(
    file: &InputFile,
    options: &DocumentOptions,
    bytes: u64,
    read_once: &ReadOnceInputs,
) -> Vec<Section> {
    let Some(size) = file.bytes.filter(|&size| size > bytes) else { return Vec::new() };
    let count = size.div_ceil(bytes.max(1));
    match file.format {
        DocumentFormat::Jsonl => {
            line_sections(&file.path, file.compression, size, count, options, read_once).unwrap_or_default()
        }
        #[cfg(feature = "parquet")]
        DocumentFormat::Parquet => parquet::ParquetRows::split_into_sections(&file.path, options, count),
        _ => Vec::new(),
    }
}

fn line_sections(
    path: &Path,
    compression: Compression,
    size: u64,
    count: u64,
    options: &DocumentOptions,
    read_once: &ReadOnceInputs,
) -> Option<Vec<Section>> {
    if !matches!(compression, Compression::None | Compression::Gzip | Compression::Zstd) {
        return None;
    }
    let progress = Arc::default();
    let memory = options.decompression_memory();
    let whole = Input::open(path, compression, memory, &progress, read_once).ok()?;
    let line_format = JsonObjects::open(whole, options).ok()?.line_format()?;
    let boundaries = section_boundaries(path, compression, size, count).ok()?;
    let starts = std::iter::once(0).chain(boundaries.iter().copied());
    let ends = boundaries.iter().copied().chain([size]);
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
            line_format: Some(line_format),
            outcome: Arc::default(),
        })
        .collect();
    Some(sections)
}
