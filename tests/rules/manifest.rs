//! Forged stores that break the format's rules for the manifest.

use super::forging::{SpecPage, one_table, put, put_segment, segments, whole_store};
use crate::support::seal::StoreFiles;
use simstore::Codec;

/// Returns a function that writes `value` into the manifest of a store, at byte offset `at`.
fn bytes(at: usize, value: &[u8]) -> impl FnOnce(&mut StoreFiles) + use<> {
    let value = value.to_vec();
    move |files| put(files.get_mut("MANIFEST").unwrap(), at, &value)
}

pub(super) fn page() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("manifest.md"));
    let mut wrong = base.clone();
    let manifest = wrong.get_mut("MANIFEST").unwrap();
    let at = manifest.len() - 12;
    manifest[at] ^= 1;
    page.add("checksum", "of the file", "checksum of the manifest", wrong);

    header(&base, &mut page);
    segment(&base, &mut page);

    page.add_sealed("text", "the name of the plan", "text is", &base, bytes(68 + 4, &[0xff]));
    page.add_sealed("text", "the name of a segment's plan", "text is", &base, |files| {
        let manifest = files.get_mut("MANIFEST").unwrap();
        let at = manifest.len() - 13;
        manifest[at] = 0xff;
    });
    page.add_sealed(
        "cut-short",
        "the profile is longer than the file",
        "cut short",
        &base,
        bytes(64, &[0xff; 4]),
    );
    page.add_sealed("cut-short", "three segments", "cut short", &base, bytes(56, &[3]));
    page.add_sealed("left-over", "a byte", "bytes after the last segment is 1", &base, |files| {
        let manifest = files.get_mut("MANIFEST").unwrap();
        manifest.insert(manifest.len() - 12, 0);
    });
    let endings: Vec<String> =
        base.keys().filter(|name| *name != "MANIFEST" && !name.ends_with(".log")).cloned().collect();
    for name in &endings {
        let mut files = base.clone();
        files.remove(name);
        page.add("missing-file", name, "open", files);
        let mut files = base.clone();
        let manifest = files.get_mut("MANIFEST").unwrap();
        let bytes = &base[name];
        let footer = &bytes[bytes.len() - 12..bytes.len() - 8];
        let at = manifest.windows(4).position(|window| window == footer).unwrap();
        manifest[at] ^= 1;
        let end = manifest.len() - 12;
        let crc = crc32fast::hash(&manifest[..end]);
        put(manifest, end, &crc.to_le_bytes());
        page.add(
            "other-file",
            name,
            "the footers of this file and of the one that the manifest names",
            files,
        );
    }
    highest_id(&base, &mut page);
    let message = "the numbers of fingerprints of the table and of the manifest";
    let table = one_table(Codec::Gap, None, &[1, 2, 3]);
    page.add_sealed("other-file", "another number of fingerprints", message, &table, |files| {
        put_segment(files, 0, 8, &4_u64.to_le_bytes());
    });
    page
}

/// Returns the forged stores that break the rules of `plan.md`.
pub(super) fn plan_page() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("plan.md"));
    page.add_sealed(
        "permuted",
        "the tables change places",
        "the first table must not be permuted",
        &base,
        |files| {
            let tables: Vec<String> =
                files.keys().filter(|name| name.ends_with(".table")).take(2).cloned().collect();
            let [first, second] = [0, 1].map(|i| files[&tables[i]].clone());
            files.insert(tables[0].clone(), second);
            files.insert(tables[1].clone(), first);
        },
    );
    page.add_sealed("incomplete", "no flips", "are found by no table", &base, |files| {
        files.iter_mut().filter(|(name, _)| name.ends_with(".table")).for_each(|(_, table)| table[15] = 0);
    });
    page.add_sealed("incomplete", "a larger distance", "are found by no table", &base, bytes(13, &[4]));

    page
}

fn highest_id(base: &StoreFiles, page: &mut SpecPage) {
    let message = "highest id";
    page.add_sealed("highest-id", "299, and 300 is stored", message, base, bytes(48, &299_u64.to_le_bytes()));
    page.add_sealed("highest-id", "none", message, base, |files| {
        bytes(15, &[1])(files);
        bytes(48, &[0; 8])(files);
    });
}

fn header(base: &StoreFiles, page: &mut SpecPage) {
    for (variant, at, value, message) in [
        ("bits 32", 12, &[32][..], "bits is 32"),
        ("distance 17", 13, &[17], "distance is 17"),
        ("codec 5", 14, &[5], "codec"),
        ("flags 7", 15, &[7], "flags is 7"),
        ("block size 300", 16, &[0x2c, 1, 0, 0], "block size is 300"),
        ("block size 128", 16, &[128, 0, 0, 0], "block size is 128"),
        ("span 257", 20, &[1, 1], "span is 257"),
        ("next number 0", 24, &[0; 8], "next number is 0"),
        ("next number above 2^48", 24, &[1, 0, 0, 0, 0, 0, 1, 0], "next number is"),
        ("sequence above 2^63", 40, &[1, 0, 0, 0, 0, 0, 0, 0x80], "sequence is"),
        ("first log not below the next number", 32, &[0xff], "first log is 255"),
    ] {
        page.add_sealed("field", variant, message, base, bytes(at, value));
    }
    page.add_sealed(
        "field",
        "a highest id, and the flag says that there is none",
        "highest id is",
        base,
        bytes(15, &[1]),
    );
    let without_ids = one_table(Codec::Gap, None, &[1, 2, 3]);
    page.add_sealed("field", "next number of a segment", "number is 1", &without_ids, bytes(24, &[1]));
    page.add_sealed("field", "a highest id without ids", "flags is 2", &without_ids, bytes(15, &[2]));
}

fn segment(base: &StoreFiles, page: &mut SpecPage) {
    let number = |value: u64| value.to_le_bytes().to_vec();
    for (variant, field, value, message) in [
        ("number above the next", 0, number(99), "number is 99"),
        ("fewer ids than fingerprints", 16, number(3), "ids is 3"),
        ("no names, and a name file", 24, number(0), "names is 0"),
        ("tombstones without a file", 32, number(1), "tombstones is 1"),
        ("no metadata, and a metadata file", 40, number(0), "metadata is 0"),
        ("no notes, and a note file", 48, number(0), "notes is 0"),
        ("no tables", 56, vec![0; 4], "tables is 0"),
        ("65 tables", 56, vec![65, 0, 0, 0], "tables is 65"),
        ("flags above 31", 60, vec![32 + 27, 0, 0, 0], "flags is 59"),
        ("no id file, and the store keeps ids", 60, vec![26, 0, 0, 0], "ids is 5"),
    ] {
        page.add_sealed("segment-field", variant, message, base, |files| {
            put_segment(files, 0, field, &value);
        });
    }
    page.add_sealed("segment-field", "the number of another segment", "number is", base, |files| {
        let manifest = &files["MANIFEST"];
        let first = manifest[segments(manifest)[0]];
        put_segment(files, 1, 0, &[first]);
    });
    let without_ids = one_table(Codec::Gap, None, &[1, 2, 3]);
    page.add_sealed("segment-field", "ids without a file", "ids is 1", &without_ids, |files| {
        put_segment(files, 0, 16, &number(1));
    });
    for (field, flag, extension, message) in
        [(24, 2, "names", "0 in a store without ids"), (48, 16, "notes", "0 in a store without ids")]
    {
        page.add_sealed(
            "segment-field",
            &format!("{extension} without ids"),
            message,
            &without_ids,
            |files| {
                let [name, given] = [1, 3].map(|number| format!("{number:06}.{extension}"));
                let given = base.get(&given).unwrap_or_else(|| &base[&name]);
                files.insert(name, given.clone());
                put_segment(files, 0, field, &number(3));
                put_segment(files, 0, 60, &[flag, 0, 0, 0]);
                let manifest = files.get_mut("MANIFEST").unwrap();
                // Adds a footer checksum after the one of the only table.
                let at = segments(manifest)[0] + 64 + 4;
                manifest.splice(at..at, [0; 4]);
            },
        );
    }
}
