//! Recomputes the checksums of changed files, so that tests reach the code that runs after the checks of checksums.
//!
//! Any bytes are accepted as a file. If a file is too short to have a checksum field, this checksum is not written.

use std::collections::BTreeMap;

/// Contents of the files of a store. The key is the name of the file.
pub(crate) type StoreFiles = BTreeMap<String, Vec<u8>>;

fn u32_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 4).map_or(0, |field| u32::from_le_bytes(field.try_into().unwrap()) as usize)
}

fn u64_at(bytes: &[u8], at: usize) -> usize {
    let field = bytes.get(at..).and_then(|rest| rest.get(..8));
    field.map_or(0, |field| u64::from_le_bytes(field.try_into().unwrap()).min(1 << 60) as usize)
}

fn put_crc(bytes: &mut [u8], at: usize, crc: u32) {
    if let Some(field) = bytes.get_mut(at..at + 4) {
        field.copy_from_slice(&crc.to_le_bytes());
    }
}

/// Recomputes the checksum of a block or chunk: `part` has its bytes, `number` is its index in the file. Also feeds the
/// checksum to `all`, the hasher for all checksums of blocks or chunks of the file.
fn seal_block(number: usize, part: &mut [u8], all: &mut crc32fast::Hasher) {
    if part.len() < 4 {
        return;
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&(number as u64).to_le_bytes());
    crc.update(&part[4..]);
    put_crc(part, 0, crc.finalize());
    all.update(&part[..4]);
}

fn seal_table(bytes: &mut [u8]) {
    let Some(foot) = bytes.len().checked_sub(52) else { return };
    let blocks = u32_at(bytes, 24).min(foot);
    let block_size = u32_at(bytes, 16).max(4);
    let index = (blocks + u64_at(bytes, foot + 8)).min(foot);
    let mut all = crc32fast::Hasher::new();
    for (number, block) in bytes[blocks..index].chunks_mut(block_size).enumerate() {
        seal_block(number, block, &mut all);
    }
    let width = bytes.get(12).map_or(8, |bits| usize::from(bits / 8).max(1));
    let index_len = u64_at(bytes, foot).saturating_mul(width);
    let index_end = index.saturating_add(index_len).clamp(index, foot);
    let crcs = [crc32fast::hash(&bytes[..blocks]), all.finalize(), crc32fast::hash(&bytes[index..index_end])];
    for (i, crc) in crcs.into_iter().enumerate() {
        put_crc(bytes, foot + 24 + 4 * i, crc);
    }
    seal_lines(bytes, blocks, index_end, foot);
    let crc = crc32fast::hash(&bytes[foot..foot + 40]);
    put_crc(bytes, foot + 40, crc);
}

/// Recomputes the checksums of the pages of a table's prefix lines, and the checksum of these. `foot` is the offset of the
/// footer.
fn seal_lines(bytes: &mut [u8], blocks: usize, index_end: usize, foot: usize) {
    let lines = u64_at(bytes, 40).saturating_add(u64_at(bytes, foot + 16));
    let start = match lines {
        0 => index_end,
        _ => index_end.next_multiple_of(if blocks == 4096 { 4096 } else { 64 }),
    };
    let pages = lines.div_ceil(64);
    let Some(end) = lines.checked_mul(64).and_then(|len| start.checked_add(len)) else { return };
    let Some(crcs_end) = end.checked_add(pages * 4).filter(|&crcs_end| crcs_end <= foot) else { return };
    for page in 0..pages {
        let first = start + page * 4096;
        let mut crc = crc32fast::Hasher::new();
        crc.update(&(page as u64).to_le_bytes());
        crc.update(&bytes[first..(first + 4096).min(end)]);
        put_crc(bytes, end + page * 4, crc.finalize());
    }
    let crc = crc32fast::hash(&bytes[end..crcs_end]);
    put_crc(bytes, foot + 36, crc);
}

fn seal_chunked(bytes: &mut [u8], header: usize, entry: usize) {
    let Some(foot) = bytes.len().checked_sub(32).filter(|&foot| foot >= header) else { return };
    let chunks = u64_at(bytes, foot).min(bytes.len());
    let directory = foot.saturating_sub(chunks * entry + 8).max(header);
    let mut all = crc32fast::Hasher::new();
    for chunk in 0..chunks {
        let at = directory + chunk * entry;
        let (start, end) = (u64_at(bytes, at), u64_at(bytes, at + entry));
        if let Some(chunk_bytes) = bytes.get_mut(start..end) {
            seal_block(chunk, chunk_bytes, &mut all);
        }
    }
    let crcs = [crc32fast::hash(&bytes[..header]), all.finalize(), crc32fast::hash(&bytes[directory..foot])];
    for (i, crc) in crcs.into_iter().enumerate() {
        put_crc(bytes, foot + 8 + 4 * i, crc);
    }
    let crc = crc32fast::hash(&bytes[foot..foot + 20]);
    put_crc(bytes, foot + 20, crc);
}

fn seal_manifest(bytes: &mut [u8]) {
    let Some(foot) = bytes.len().checked_sub(12) else { return };
    let crc = crc32fast::hash(&bytes[..foot]);
    put_crc(bytes, foot, crc);
}

/// Recomputes the checksums of a file. The extension of `name` tells the kind of file. A log stays unchanged.
pub(crate) fn seal_file(name: &str, bytes: &mut [u8]) {
    match name {
        _ if name.ends_with(".table") => seal_table(bytes),
        _ if name.ends_with(".ids") => seal_chunked(bytes, 32, 8),
        _ if name.ends_with(".names") || name.ends_with(".notes") => seal_chunked(bytes, 16, 16),
        _ if name.ends_with(".metadata") => seal_chunked(bytes, 16, 8),
        // A log has no checksum of the whole file.
        _ if name.ends_with(".log") => {}
        _ => seal_manifest(bytes),
    }
}

/// Recomputes the checksums of all files of a store except logs, and copies the footer checksums of the files to the
/// manifest.
pub(crate) fn seal_store(files: &mut StoreFiles) {
    files.iter_mut().for_each(|(name, bytes)| seal_file(name, bytes));
    update_manifest(files);
}

/// Copies the footer checksums of the files of a store to its manifest, and recomputes the manifest's checksum.
pub(crate) fn update_manifest(files: &mut StoreFiles) {
    let Some(mut manifest) = files.remove("MANIFEST") else { return };
    // Skips the names of the profile and the plan.
    let mut at = 68 + u32_at(&manifest, 64);
    at += 4 + u32_at(&manifest, at);
    for _ in 0..u32_at(&manifest, 56) {
        if at >= manifest.len() {
            break;
        }
        let (number, tables, flags) =
            (u64_at(&manifest, at), u32_at(&manifest, at + 56), u32_at(&manifest, at + 60));
        at += 64;
        let mut names: Vec<String> =
            (0..tables.min(64)).map(|table| format!("{number:06}-{table:02}.table")).collect();
        names.extend((flags & 1 > 0).then(|| format!("{number:06}.ids")));
        names.extend((flags & 2 > 0).then(|| format!("{number:06}.names")));
        names.extend((flags & 4 > 0).then(|| format!("{number:06}.tombstones")));
        names.extend((flags & 8 > 0).then(|| format!("{number:06}.metadata")));
        names.extend((flags & 16 > 0).then(|| format!("{number:06}.notes")));
        for name in names {
            if let Some(file) = files.get(&name) {
                put_crc(&mut manifest, at, u32_at(file, file.len().saturating_sub(12)) as u32);
            }
            at += 4;
        }
        at += 4 + u32_at(&manifest, at);
    }
    seal_manifest(&mut manifest);
    files.insert("MANIFEST".to_string(), manifest);
}
