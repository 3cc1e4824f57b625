//! Tools for forging stores that break one rule of the format. A file of a valid store is parsed, changed, and written
//! again with valid checksums.

use std::path::Path;

use simstore::fs::Fs;
use simstore::{BuildOptions, Builder, Codec, Durability, PlanChoice, Store, StoreOptions};

use crate::support::disk::SimulatedDisk;
use crate::support::seal::{StoreFiles, seal_file, seal_store, update_manifest};

/// A test case: a forged store, and the rule of the format that it breaks.
pub(crate) struct Case {
    pub(crate) page: &'static str,
    pub(crate) rule: &'static str,
    /// Short description of how the store breaks the rule.
    pub(crate) variant: String,
    /// Part of the expected error message of the engine, without backticks.
    pub(crate) message: &'static str,
    pub(crate) files: StoreFiles,
}

/// The forged stores that break the rules of one page of `format-spec/`.
pub(super) struct SpecPage {
    pub(super) name: &'static str,
    pub(super) cases: Vec<Case>,
}

impl SpecPage {
    pub(super) fn new(name: &'static str) -> SpecPage {
        SpecPage { name, cases: Vec::new() }
    }

    /// Adds a forged store with these files, which breaks the rule `rule`. Recomputes no checksums. `variant` and
    /// `message` are fields of [`Case`].
    pub(super) fn add(
        &mut self,
        rule: &'static str,
        variant: &str,
        message: &'static str,
        files: StoreFiles,
    ) {
        self.cases.push(Case { page: self.name, rule, variant: variant.to_owned(), message, files });
    }

    /// Adds a forged store: a copy of `base`, changed by `change`. Recomputes all checksums except those of logs. The
    /// other parameters are fields of [`Case`].
    pub(super) fn add_sealed(
        &mut self,
        rule: &'static str,
        variant: &str,
        message: &'static str,
        base: &StoreFiles,
        change: impl FnOnce(&mut StoreFiles),
    ) {
        let mut files = base.clone();
        change(&mut files);
        seal_store(&mut files);
        self.add(rule, variant, message, files);
    }

    /// Adds a forged store: a copy of `base`, changed by `change`. Copies the footer checksums of its files to the
    /// manifest, and recomputes only the manifest's checksum. The other parameters are fields of [`Case`].
    pub(super) fn add_named(
        &mut self,
        rule: &'static str,
        variant: &str,
        message: &'static str,
        base: &StoreFiles,
        change: impl FnOnce(&mut StoreFiles),
    ) {
        let mut files = base.clone();
        change(&mut files);
        update_manifest(&mut files);
        self.add(rule, variant, message, files);
    }
}

/// Returns the files of the store at path `store` on a simulated disk, without the lock file.
pub(super) fn files_of(disk: &SimulatedDisk) -> StoreFiles {
    let paths = disk.paths().into_iter().filter(|path| path != Path::new("store"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let files = paths.map(|path| (name(&path), disk.content(&path).unwrap()));
    files.filter(|(name, _)| name != "LOCK").collect()
}

/// Returns a simulated disk with a store of these files at path `store`.
pub(super) fn disk_of(files: &StoreFiles) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    disk.create_dir(Path::new("store")).unwrap();
    files.iter().for_each(|(name, bytes)| disk.write_file(&format!("store/{name}"), bytes));
    disk
}

/// Returns the name of the only file whose name has this ending.
pub(super) fn file_name(files: &StoreFiles, ending: &str) -> String {
    let names: Vec<&String> = files.keys().filter(|name| name.ends_with(ending)).collect();
    let [name] = names[..] else { panic!("{ending}: {names:?}") };
    name.clone()
}

pub(super) fn file_mut<'f>(files: &'f mut StoreFiles, ending: &str) -> &'f mut Vec<u8> {
    let name = file_name(files, ending);
    files.get_mut(&name).unwrap()
}

/// Returns the files of a valid store with two segments and a log. The first segment has ids, names, notes and
/// metadata; the second has tombstones.
pub(super) fn whole_store() -> StoreFiles {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        fs: disk.as_fs(),
        compaction: false,
        codec: Some(Codec::Gap),
        block_size: Some(256),
        plan: Some(PlanChoice::Named("probe-2".to_owned())),
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(Path::new("store"), options).unwrap();
    let mut batch = store.transaction();
    for (fingerprint, id, name) in
        [(0x10, 1, Some("a/1.html")), (0x13, 2, Some("a/2.html")), (0x13, 300, None), (0x20, 7, Some("文"))]
    {
        match name {
            Some(name) => batch.insert_named(fingerprint, id, name).unwrap(),
            None => batch.insert(fingerprint, id),
        }
    }
    batch.insert(0x21, 8);
    for id in [1, 2, 7] {
        batch.set_note(id, &[id as u8; 3]).unwrap();
    }
    batch.set_metadata("feed", &[1, 2]).unwrap();
    batch.set_metadata("文", &[]).unwrap();
    batch.commit(Durability::Os).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.delete(0x20, 7);
    batch.delete(0x21, 8);
    batch.insert(0x30, 9);
    batch.commit(Durability::Os).unwrap();
    store.flush().unwrap();
    store.insert(0x40, 10).unwrap();
    drop(store);
    files_of(&disk)
}

/// Returns the files of a valid store without ids, with two segments and a log. The second segment has tombstones.
pub(super) fn without_ids() -> StoreFiles {
    let disk = SimulatedDisk::default();
    let options = StoreOptions {
        fs: disk.as_fs(),
        compaction: false,
        ids: Some(false),
        codec: Some(Codec::Gap),
        block_size: Some(256),
        plan: Some(PlanChoice::Named("probe-2".to_owned())),
        ..StoreOptions::default()
    };
    let store = Store::<u64>::open(Path::new("store"), options).unwrap();
    let mut batch = store.transaction();
    [0x10, 0x13, 0x20].into_iter().for_each(|fingerprint| batch.insert(fingerprint, 0));
    batch.commit(Durability::Os).unwrap();
    store.flush().unwrap();
    let mut batch = store.transaction();
    batch.delete(0x20, 0);
    batch.insert(0x30, 0);
    batch.commit(Durability::Os).unwrap();
    store.flush().unwrap();
    store.insert(0x40, 0).unwrap();
    drop(store);
    files_of(&disk)
}

/// Returns the files of a valid store with one segment, which has one table and no ids. `codec` and `span` are the
/// [`BuildOptions`] of these names.
pub(super) fn one_table(codec: Codec, span: Option<u16>, fingerprints: &[u64]) -> StoreFiles {
    let disk = SimulatedDisk::default();
    let options = BuildOptions {
        fs: disk.as_fs(),
        ids: false,
        codec,
        span,
        block_size: Some(256),
        plan: PlanChoice::Named("scan".to_owned()),
        ..BuildOptions::default()
    };
    let mut builder = Builder::<u64>::create(Path::new("store"), options).unwrap();
    fingerprints.iter().for_each(|&fingerprint| builder.insert(fingerprint, 0).unwrap());
    builder.finish().unwrap();
    files_of(&disk)
}

pub(super) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    bytes[at..at + field.len()].copy_from_slice(field);
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

fn u32_at(bytes: &[u8], at: usize) -> usize {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Writes the low `width` bits of `value` to `bytes` at bit offset `at`, the lowest bit first.
pub(super) fn put_bits(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    for bit in 0..width {
        let (byte, mask) = ((at + bit) / 8, 1 << ((at + bit) % 8));
        bytes[byte] = if value >> bit & 1 == 1 { bytes[byte] | mask } else { bytes[byte] & !mask };
    }
}

/// Finds the entries for segments in a manifest. Returns the byte offset of each entry.
pub(super) fn segments(manifest: &[u8]) -> Vec<usize> {
    let mut at = 68 + u32_at(manifest, 64);
    at += 4 + u32_at(manifest, at);
    let mut found = Vec::new();
    for _ in 0..u32_at(manifest, 56) {
        found.push(at);
        let files = u32_at(manifest, at + 56) + u32_at(manifest, at + 60).count_ones() as usize;
        at += 64 + 4 * files;
        at += 4 + u32_at(manifest, at);
    }
    found
}

/// Changes the manifest's entry for the segment with index `segment`: writes `value` at byte offset `field` of the
/// entry.
pub(super) fn put_segment(files: &mut StoreFiles, segment: usize, field: usize, value: &[u8]) {
    let manifest = files.get_mut("MANIFEST").unwrap();
    let at = segments(manifest)[segment];
    put(manifest, at + field, value);
}

/// Recomputes the footer checksum of a file, which covers the `covered` bytes before the checksum.
pub(super) fn seal_footer(bytes: &mut [u8], covered: usize) {
    let at = bytes.len() - 12;
    let crc = crc32fast::hash(&bytes[at - covered..at]);
    put(bytes, at, &crc.to_le_bytes());
}

/// A parsed file that consists of chunks, such as ids, names or notes.
pub(super) struct ForgedChunkedFile {
    header: Vec<u8>,
    /// Key and bytes of each chunk. The key is `None` if this kind of file has no keys in its directory of chunks.
    pub(super) chunks: Vec<(Option<u64>, Vec<u8>)>,
    magic: Vec<u8>,
}

impl ForgedChunkedFile {
    pub(super) fn read(name: &str, bytes: &[u8]) -> ForgedChunkedFile {
        let (header, entry) = match name.rsplit('.').next().unwrap() {
            "ids" => (32, 8),
            "metadata" => (16, 8),
            _ => (16, 16),
        };
        let foot = bytes.len() - 32;
        let count = u64_at(bytes, foot) as usize;
        let directory = foot - 8 - count * entry;
        let chunk = |i: usize| {
            let at = directory + i * entry;
            let (start, end) = (u64_at(bytes, at) as usize, u64_at(bytes, at + entry) as usize);
            ((entry == 16).then(|| u64_at(bytes, at + 8)), bytes[start..end].to_vec())
        };
        ForgedChunkedFile {
            header: bytes[..header].to_vec(),
            chunks: (0..count).map(chunk).collect(),
            magic: bytes[bytes.len() - 8..].to_vec(),
        }
    }

    /// Encodes the file. Its checksums are not valid until they are recomputed.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        let mut directory = Vec::new();
        for (key, chunk) in &self.chunks {
            directory.extend((bytes.len() as u64).to_le_bytes());
            directory.extend(key.iter().flat_map(|key| key.to_le_bytes()));
            bytes.extend(chunk);
        }
        directory.extend((bytes.len() as u64).to_le_bytes());
        bytes.extend(directory);
        bytes.extend((self.chunks.len() as u64).to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(&self.magic);
        bytes
    }
}

/// Replaces the chunks of the only file whose name has this ending, and recomputes the checksums of this file.
pub(super) fn put_chunks(files: &mut StoreFiles, ending: &str, chunks: Vec<(Option<u64>, Vec<u8>)>) {
    let name = file_name(files, ending);
    let bytes = files.get_mut(&name).unwrap();
    let mut chunked = ForgedChunkedFile::read(&name, bytes);
    chunked.chunks = chunks;
    *bytes = chunked.write();
    seal_file(&name, bytes);
}

/// Returns a copy of the store `base`, after `change` has changed its only table. All checksums are valid.
pub(super) fn with_table(base: &StoreFiles, change: impl FnOnce(&mut ForgedTable)) -> StoreFiles {
    let mut files = base.clone();
    let bytes = file_mut(&mut files, ".table");
    let mut table = ForgedTable::read(bytes);
    change(&mut table);
    *bytes = table.write();
    update_manifest(&mut files);
    files
}

/// The parts of a table file. A test can change them and encode the file again.
pub(super) struct ForgedTable {
    pub(super) header: Vec<u8>,
    pub(super) blocks: Vec<Vec<u8>>,
    pub(super) index: Vec<u64>,
    /// The prefix lines, if the table has any, with those that divide others.
    pub(super) lines: Vec<[u8; 64]>,
    /// Number of lines that divide others.
    pub(super) dividing: u64,
}

impl ForgedTable {
    pub(super) fn read(bytes: &[u8]) -> ForgedTable {
        let foot = bytes.len() - 52;
        let start = u32_at(bytes, 24);
        let index = start + u64_at(bytes, foot + 8) as usize;
        let index_end = index + u64_at(bytes, foot) as usize * 8;
        let dividing = u64_at(bytes, foot + 16);
        let count = (u64_at(bytes, 40) + dividing) as usize;
        let lines = if count > 0 { index_end.next_multiple_of(64) } else { index_end };
        ForgedTable {
            header: bytes[..start].to_vec(),
            blocks: bytes[start..index].chunks(u32_at(bytes, 16)).map(<[u8]>::to_vec).collect(),
            index: bytes[index..index_end].chunks(8).map(|field| u64_at(field, 0)).collect(),
            lines: bytes[lines..lines + count * 64].as_chunks().0.to_vec(),
            dividing,
        }
    }

    /// Encodes the file with valid checksums.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        self.blocks.iter().for_each(|block| bytes.extend(block));
        let length = (bytes.len() - self.header.len()) as u64;
        self.index.iter().for_each(|last| bytes.extend(last.to_le_bytes()));
        if !self.lines.is_empty() {
            bytes.resize(bytes.len().next_multiple_of(64), 0);
            self.lines.iter().for_each(|line| bytes.extend(line));
            bytes.resize(bytes.len() + self.lines.len().div_ceil(64) * 4, 0);
        }
        for field in [self.index.len() as u64, length, self.dividing] {
            bytes.extend(field.to_le_bytes());
        }
        bytes.extend([0; 20]);
        bytes.extend(b"simtable");
        seal_file(".table", &mut bytes);
        bytes
    }
}
