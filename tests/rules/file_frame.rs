//! Forged stores that break the rules for all files (`format-spec/README.md`), and the rules for files that consist of
//! chunks (`format-spec/chunked.md`).

use super::forging::{ForgedChunkedFile, SpecPage, put, seal_footer, whole_store};
use crate::support::seal::{StoreFiles, seal_file};

const CHUNKED: [&str; 4] = [".ids", ".names", ".notes", ".metadata"];

/// Returns the name of the first file whose name has this ending.
fn first(files: &StoreFiles, ending: &str) -> String {
    files.keys().find(|name| name.ends_with(ending)).unwrap_or_else(|| panic!("no {ending}")).clone()
}

fn change(files: &mut StoreFiles, ending: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let name = first(files, ending);
    change(files.get_mut(&name).unwrap());
}

pub(super) fn page() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("README.md"));
    every_file(&base, &mut page);
    reserved(&base, &mut page);
    page
}

pub(super) fn chunked_page() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("chunked.md"));
    for ending in CHUNKED {
        chunked(&base, ending, &mut page);
    }
    page
}

fn every_file(base: &StoreFiles, page: &mut SpecPage) {
    for ending in [".table", ".ids", ".names", ".notes", ".metadata", ".tombstones", "MANIFEST"] {
        page.add_named("magic", &format!("{ending}, at the start"), "another kind of file", base, |files| {
            change(files, ending, |bytes| bytes[0] ^= 1);
        });
        page.add_named(
            "magic",
            &format!("{ending}, at the end"),
            "expected the file to end",
            base,
            |files| {
                change(files, ending, |bytes| *bytes.last_mut().unwrap() ^= 1);
            },
        );
        let mut short = base.clone();
        change(&mut short, ending, |bytes| {
            let magic = bytes[..8].to_vec();
            bytes.truncate(12);
            bytes.extend(magic);
        });
        page.add("too-short", ending, "cut short", short);
    }
    for ending in [".table", ".ids", ".names", ".notes", ".metadata", ".tombstones", ".log", "MANIFEST"] {
        for version in [0, 2, 3] {
            page.add_sealed("version", &format!("{ending}, version {version}"), "version", base, |files| {
                change(files, ending, |bytes| put(bytes, 8, &[version]));
                seal_log_header(files);
            });
        }
    }
}

/// Recomputes the checksum in the header of each log of the store.
fn seal_log_header(files: &mut StoreFiles) {
    for (_, bytes) in files.iter_mut().filter(|(name, _)| name.ends_with(".log")) {
        let crc = crc32fast::hash(&bytes[..52]);
        put(bytes, 52, &crc.to_le_bytes());
    }
}

fn reserved(base: &StoreFiles, page: &mut SpecPage) {
    for (ending, at) in [
        (".table", 23),
        (".table", 28),
        (".table", 255),
        (".ids", 12),
        (".names", 15),
        (".notes", 12),
        (".metadata", 12),
        (".tombstones", 13),
        (".tombstones", 15),
        (".log", 13),
        (".log", 48),
        ("MANIFEST", 22),
        ("MANIFEST", 60),
    ] {
        page.add_sealed("reserved", &format!("{ending}, byte {at}"), "reserved is 1", base, |files| {
            change(files, ending, |bytes| bytes[at] = 1);
            seal_log_header(files);
        });
    }
    page.add_sealed("reserved", ".ids, in a chunk", "reserved is 1", base, |files| {
        change(files, ".ids", |bytes| bytes[32 + 18] = 1);
    });
}

fn chunked(base: &StoreFiles, ending: &'static str, page: &mut SpecPage) {
    let foot = |bytes: &[u8]| bytes.len() - 32;
    let entry = if ending == ".names" || ending == ".notes" { 16 } else { 8 };
    page.add_sealed("chunks-fit", ending, "chunks is", base, |files| {
        change(files, ending, |bytes| {
            let at = foot(bytes);
            put(bytes, at, &(1_u64 << 60).to_le_bytes());
        });
    });
    for (part, at, message) in [
        ("header", 8, "checksum of the header"),
        ("directory", 16, "checksum of the directory"),
        ("footer", 20, "checksum of the footer"),
    ] {
        page.add_named("frame-checksum", &format!("{ending}, {part}"), message, base, |files| {
            change(files, ending, |bytes| {
                let at = foot(bytes) + at;
                bytes[at] ^= 1;
                if part != "footer" {
                    seal_footer(bytes, 20);
                }
            });
        });
    }
    page.add_named("chunk-checksum", ending, "checksum of the chunk", base, |files| {
        change(files, ending, |bytes| {
            let start = if ending == ".ids" { 32 } else { 16 };
            bytes[start] ^= 1;
            // The checksum of all chunk checksums stays valid.
            let (at, crc) = (foot(bytes), crc32fast::hash(&bytes[start..start + 4]));
            put(bytes, at + 12, &crc.to_le_bytes());
            seal_footer(bytes, 20);
        });
    });
    page.add_named("chunks-checksum", ending, "checksum of the checksums of the chunks", base, |files| {
        change(files, ending, |bytes| {
            let at = foot(bytes) + 12;
            bytes[at] ^= 1;
            seal_footer(bytes, 20);
        });
    });
    let message = "the offsets of the directory are not ascending";
    page.add_sealed("directory", &format!("{ending}, another start"), message, base, |files| {
        change(files, ending, |bytes| {
            let at = foot(bytes) - 8 - entry;
            bytes[at] += 1;
        });
    });
    page.add_sealed("directory", &format!("{ending}, another end"), message, base, |files| {
        change(files, ending, |bytes| {
            let at = foot(bytes) - 8;
            bytes[at] -= 1;
        });
    });
    page.add_named("directory", &format!("{ending}, descending"), message, base, |files| {
        let name = first(files, ending);
        let bytes = files.get_mut(&name).unwrap();
        let mut chunked = ForgedChunkedFile::read(&name, bytes);
        let second = chunked.chunks[0].clone();
        chunked.chunks.push((second.0.map(|_| 1 << 40), second.1));
        *bytes = chunked.write();
        seal_file(&name, bytes);
        // The second chunk starts before the first.
        let (end, start) = (foot(bytes), 1_u64);
        put(bytes, end - 8 - entry, &start.to_le_bytes());
        let crc = crc32fast::hash(&bytes[end - 8 - 2 * entry..end]);
        put(bytes, end + 16, &crc.to_le_bytes());
        seal_footer(bytes, 20);
    });
    let shortest = if ending == ".ids" { 19 } else { 7 };
    page.add_sealed("short-chunk", ending, "cut short", base, |files| {
        let name = first(files, ending);
        let bytes = files.get_mut(&name).unwrap();
        let mut chunked = ForgedChunkedFile::read(&name, bytes);
        chunked.chunks[0].1.truncate(shortest);
        *bytes = chunked.write();
    });
}
