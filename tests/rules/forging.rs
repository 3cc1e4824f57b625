//! Files of a store taken apart, changed, and put together again with the right checksums.

use std::path::Path;

use simstore::fs::Fs;
use simstore::{BuildOptions, Builder, Codec, Durability, PlanChoice, Store, StoreOptions};

use crate::support::disk::SimulatedDisk;
use crate::support::seal::{StoreFiles, update_manifest, seal_file, seal_store};

/// A forged store, and the rule that it breaks.
pub(super) struct Case {
    pub(super) page: &'static str,
    pub(super) rule: &'static str,
    /// How the rule is broken.
    pub(super) how: String,
    /// A part of the crate's message.
    pub(super) says: &'static str,
    pub(super) files: StoreFiles,
}

/// The cases of one page.
pub(super) struct SpecPage {
    pub(super) name: &'static str,
    pub(super) cases: Vec<Case>,
}

impl SpecPage {
    pub(super) fn new(name: &'static str) -> SpecPage {
        SpecPage { name, cases: Vec::new() }
    }

    /// Adds a case whose checksums are as they should be or as the case wants them.
    pub(super) fn add(&mut self, rule: &'static str, how: &str, says: &'static str, files: StoreFiles) {
        self.cases.push(Case { page: self.name, rule, how: how.to_owned(), says, files });
    }

    /// Adds a case of a changed store, with the right checksums.
    pub(super) fn add_sealed(
        &mut self,
        rule: &'static str,
        how: &str,
        says: &'static str,
        base: &StoreFiles,
        change: impl FnOnce(&mut StoreFiles),
    ) {
        let mut files = base.clone();
        change(&mut files);
        seal_store(&mut files);
        self.add(rule, how, says, files);
    }

    /// Adds a case of a changed store whose manifest names the changed files; their checksums are left as they are.
    pub(super) fn add_named(
        &mut self,
        rule: &'static str,
        how: &str,
        says: &'static str,
        base: &StoreFiles,
        change: impl FnOnce(&mut StoreFiles),
    ) {
        let mut files = base.clone();
        change(&mut files);
        update_manifest(&mut files);
        self.add(rule, how, says, files);
    }
}

/// The files on a simulated disk with one store, `store`.
pub(super) fn files_of(disk: &SimulatedDisk) -> StoreFiles {
    let paths = disk.paths().into_iter().filter(|path| path != Path::new("store"));
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let files = paths.map(|path| (name(&path), disk.content(&path).unwrap()));
    files.filter(|(name, _)| name != "LOCK").collect()
}

/// A simulated disk with these files.
pub(super) fn disk_of(files: &StoreFiles) -> SimulatedDisk {
    let disk = SimulatedDisk::default();
    disk.create_dir(Path::new("store")).unwrap();
    files.iter().for_each(|(name, bytes)| disk.write_file(&format!("store/{name}"), bytes));
    disk
}

/// The name of the only file with this ending.
pub(super) fn file_name(files: &StoreFiles, ending: &str) -> String {
    let names: Vec<&String> = files.keys().filter(|name| name.ends_with(ending)).collect();
    let [name] = names[..] else { panic!("{ending}: {names:?}") };
    name.clone()
}

pub(super) fn file_mut<'f>(files: &'f mut StoreFiles, ending: &str) -> &'f mut Vec<u8> {
    let name = file_name(files, ending);
    files.get_mut(&name).unwrap()
}

/// Two segments, the second with tombstones, and a log. The first has ids, names, notes and marks.
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

/// One segment of one table without ids.
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

/// Writes a field of bits.
pub(super) fn put_bits(bytes: &mut [u8], at: usize, width: usize, value: u64) {
    for bit in 0..width {
        let (byte, mask) = ((at + bit) / 8, 1 << ((at + bit) % 8));
        bytes[byte] = if value >> bit & 1 == 1 { bytes[byte] | mask } else { bytes[byte] & !mask };
    }
}

/// Where the segments of a manifest start.
pub(super) fn segments(manifest: &[u8]) -> Vec<usize> {
    let mut at = 68 + u32_at(manifest, 64);
    at += 4 + u32_at(manifest, at);
    let mut found = Vec::new();
    for _ in 0..u32_at(manifest, 56) {
        found.push(at);
        let files = u32_at(manifest, at + 48) + u32_at(manifest, at + 52).count_ones() as usize;
        at += if u32_at(manifest, 8) < 4 { 56 } else { 64 } + 4 * files;
        at += 4 + u32_at(manifest, at);
    }
    found
}

/// Changes a field of a segment in the manifest, by its offset in the entry.
pub(super) fn put_segment(files: &mut StoreFiles, segment: usize, field: usize, value: &[u8]) {
    let manifest = files.get_mut("MANIFEST").unwrap();
    let at = segments(manifest)[segment];
    put(manifest, at + field, value);
}

/// Makes the checksum of the last `covered` bytes before the footer's own right.
pub(super) fn seal_footer(bytes: &mut [u8], covered: usize) {
    let at = bytes.len() - 12;
    let crc = crc32fast::hash(&bytes[at - covered..at]);
    put(bytes, at, &crc.to_le_bytes());
}

/// A chunked file.
pub(super) struct ForgedChunkedFile {
    header: Vec<u8>,
    /// Of each chunk the key, if the directory has keys, and the bytes.
    pub(super) chunks: Vec<(Option<u64>, Vec<u8>)>,
    magic: Vec<u8>,
}

impl ForgedChunkedFile {
    pub(super) fn read(name: &str, bytes: &[u8]) -> ForgedChunkedFile {
        let (header, entry) = match name.rsplit('.').next().unwrap() {
            "ids" => (32, 8),
            "marks" => (16, 8),
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

    /// The bytes of the file; its checksums are sealed later.
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

/// Gives the only file with this ending other chunks.
pub(super) fn put_chunks(files: &mut StoreFiles, ending: &str, chunks: Vec<(Option<u64>, Vec<u8>)>) {
    let name = file_name(files, ending);
    let bytes = files.get_mut(&name).unwrap();
    let mut chunked = ForgedChunkedFile::read(&name, bytes);
    chunked.chunks = chunks;
    *bytes = chunked.write();
    seal_file(&name, bytes);
}

/// A table file.
pub(super) struct ForgedTable {
    pub(super) header: Vec<u8>,
    pub(super) blocks: Vec<Vec<u8>>,
    pub(super) index: Vec<u64>,
}

impl ForgedTable {
    pub(super) fn read(bytes: &[u8]) -> ForgedTable {
        let foot = bytes.len() - 40;
        let start = u32_at(bytes, 24);
        let index = start + u64_at(bytes, foot + 8) as usize;
        ForgedTable {
            header: bytes[..start].to_vec(),
            blocks: bytes[start..index].chunks(u32_at(bytes, 16)).map(<[u8]>::to_vec).collect(),
            index: bytes[index..foot].chunks(8).map(|field| u64_at(field, 0)).collect(),
        }
    }

    /// The bytes of the file with the right checksums.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut bytes = self.header.clone();
        self.blocks.iter().for_each(|block| bytes.extend(block));
        let length = (bytes.len() - self.header.len()) as u64;
        self.index.iter().for_each(|last| bytes.extend(last.to_le_bytes()));
        bytes.extend((self.index.len() as u64).to_le_bytes());
        bytes.extend(length.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(b"simtable");
        seal_file(".table", &mut bytes);
        bytes
    }
}
