//! Forged stores that break the format's rules for tables. Most tables here have a Huffman code with one symbol, whose
//! code word is the bit 0. So a block of such a table is mostly zeros.

use simstore::Codec;

use super::forging::{
    ForgedTable, SpecPage, file_mut, one_table, put, put_segment, seal_footer, whole_store, with_table,
};
use crate::support::seal::{StoreFiles, update_manifest};

/// Four fingerprints with gaps of 16, 16 and 24. The code of each gap is the symbol 4 (the position of the gap's top
/// bit), followed by the 4 bits below the top bit.
const FINGERPRINTS: [u64; 4] = [0x10, 0x20, 0x30, 0x48];
// Byte offsets in the header of a table.
const FINGERPRINTS_OFFSET: usize = 32;
const PERMUTATION_OFFSET: usize = 48;
const CODE_LENGTHS_OFFSET: usize = 48 + 64;
// Byte offsets in a block.
const COUNT_OFFSET: usize = 4;
const FIRST_OFFSET: usize = 8;

/// Returns a copy of the store `base`, after `change` has changed the footer of its only table. The checksums of the
/// footer and of the manifest are recomputed.
fn with_footer(base: &StoreFiles, change: impl FnOnce(&mut [u8])) -> StoreFiles {
    let mut files = base.clone();
    let bytes = file_mut(&mut files, ".table");
    let foot = bytes.len() - 52;
    change(&mut bytes[foot..]);
    seal_footer(bytes, 40);
    update_manifest(&mut files);
    files
}

pub(super) fn page() -> SpecPage {
    let mut page = SpecPage::new("table.md");
    opening(&mut page);
    parts(&mut page);
    checking(&mut page);
    page
}

fn opening(page: &mut SpecPage) {
    let [gap, elias_fano] = [Codec::Gap, Codec::EliasFano].map(|codec| one_table(codec, None, &FINGERPRINTS));
    for (variant, at, value, message) in [
        ("bits 128", 12, &[128][..], "bits is 128"),
        ("codec 5", 13, &[5], "codec"),
        ("65 prefix bits", 14, &[65], "prefix bits is 65"),
        ("17 flips", 15, &[17], "flips is 17"),
        ("block size 128", 16, &[128, 0, 0, 0], "block size is 128"),
        ("block size 300", 16, &[0x2c, 1, 0, 0], "block size is 300"),
        ("span 0", 20, &[0, 0], "span is 0"),
        ("span 257", 20, &[1, 1], "span is 257"),
        ("blocks offset 255", 24, &[255, 0, 0, 0], "blocks offset is 255"),
        ("blocks offset 4097", 24, &[1, 16, 0, 0], "blocks offset is 4097"),
        ("key bits without prefix lines", 22, &[8], "key bits is 8"),
        ("lines without prefix lines", 40, &[1], "lines is 1"),
    ] {
        page.add("field", variant, message, with_table(&gap, |table| put(&mut table.header, at, value)));
    }
    page.add(
        "field",
        "a span of elias-fano",
        "span is 1",
        with_table(&elias_fano, |table| table.header[20] = 1),
    );
    let empty = one_table(Codec::PrefixLines, None, &[]);
    page.add(
        "field",
        "a line without fingerprints",
        "lines is 1",
        with_table(&empty, |table| table.header[40] = 1),
    );
    page.add(
        "field",
        "dividing lines without prefix lines",
        "dividing lines is 1",
        with_footer(&gap, |foot| foot[16] = 1),
    );
    page.add(
        "permutation",
        "bit 1 twice",
        "permutation is 1",
        with_table(&gap, |table| table.header[PERMUTATION_OFFSET] = 1),
    );
    page.add(
        "permutation",
        "bit 64",
        "permutation is 64",
        with_table(&gap, |table| table.header[PERMUTATION_OFFSET] = 64),
    );
    // Only symbol 4 has a code word, of one bit.
    for (variant, lengths) in [("one of two bits", [2]), ("three of one bit", [0x11]), ("13 bits", [13])] {
        page.add(
            "code",
            variant,
            "code",
            with_table(&gap, |table| {
                put(&mut table.header, CODE_LENGTHS_OFFSET + 2, &lengths);
                table.header[CODE_LENGTHS_OFFSET] = u8::from(variant == "three of one bit");
            }),
        );
    }
    for codec in [Codec::Gap, Codec::FirstDifference, Codec::AllDifferences] {
        let several = one_table(codec, None, &FINGERPRINTS);
        let without = with_table(&several, |table| table.header[CODE_LENGTHS_OFFSET..].fill(0));
        page.add("words", &format!("none, {codec}"), "expected a code", without);
        for fingerprints in [&FINGERPRINTS[..0], &FINGERPRINTS[..1]] {
            let few = one_table(codec, None, fingerprints);
            let with = with_table(&few, |table| table.header[CODE_LENGTHS_OFFSET] = 1);
            page.add(
                "words",
                &format!("for {} fingerprints, {codec}", fingerprints.len()),
                "code lengths",
                with,
            );
        }
    }
    page.add(
        "words",
        "in elias-fano",
        "code lengths",
        with_table(&elias_fano, |table| table.header[CODE_LENGTHS_OFFSET] = 1),
    );
}

fn parts(page: &mut SpecPage) {
    let base = one_table(Codec::Gap, None, &FINGERPRINTS);
    let message = "cut short";
    page.add("parts", "longer blocks", message, with_footer(&base, |foot| foot[8] += 1));
    page.add("parts", "one block more", message, with_footer(&base, |foot| foot[0] += 1));
    let message = "blocks is";
    page.add(
        "blocks",
        "an entry of the index more",
        message,
        with_table(&base, |table| table.index.push(0x100)),
    );
    let fingerprints = |count: u64| {
        with_table(&base, |table| put(&mut table.header, FINGERPRINTS_OFFSET, &count.to_le_bytes()))
    };
    let elias_fano = one_table(Codec::EliasFano, None, &FINGERPRINTS);
    let none = with_table(&elias_fano, |table| put(&mut table.header, FINGERPRINTS_OFFSET, &[0; 8]));
    page.add("blocks", "more than fingerprints", message, none);
    page.add("blocks", "too many fingerprints in each", message, fingerprints(65_536));
    page.add(
        "last-block",
        "8 bytes",
        message,
        with_table(&base, |table| {
            table.blocks[0].resize(256, 0);
            table.blocks.push(vec![0; 8]);
            table.index.push(0x100);
        }),
    );
    for (part, at) in [("header", 24), ("block index", 32)] {
        let message = ["checksum of the header", "checksum of the block index"][usize::from(at == 32)];
        page.add("checksum", part, message, with_footer(&base, |foot| foot[at] ^= 1));
    }
    page.add_named("checksum", "footer", "checksum of the footer", &base, |files| {
        let bytes = file_mut(files, ".table");
        let at = bytes.len() - 12;
        bytes[at] ^= 1;
    });
    let message = "the fingerprints of the block index are not ascending";
    for second in [0x48, 0x47] {
        page.add(
            "index-order",
            &format!("72, then {second}"),
            message,
            with_table(&base, |table| {
                table.blocks[0].resize(256, 0);
                table.blocks.push(table.blocks[0][..20].to_vec());
                table.index.push(second);
            }),
        );
    }
}

/// Adds forged stores that break rules that only a full check of a store verifies.
fn checking(page: &mut SpecPage) {
    let base = one_table(Codec::Gap, Some(1), &FINGERPRINTS);
    page.add(
        "last",
        "the index says one more",
        "a block's last fingerprint and the block index",
        with_table(&base, |table| {
            table.index[0] += 1;
        }),
    );
    page.add(
        "count",
        "one more in the header",
        "the number of fingerprints in the blocks and in the header",
        {
            let mut files = with_table(&base, |table| table.header[FINGERPRINTS_OFFSET] += 1);
            put_segment(&mut files, 0, 8, &5_u64.to_le_bytes());
            update_manifest(&mut files);
            files
        },
    );
    page.add(
        "blocks-checksum",
        "another",
        "checksum of the checksums of the blocks",
        with_footer(&base, |foot| {
            foot[28] ^= 1;
        }),
    );
    let message = "the fingerprints of the first table and of this one";
    page.add_sealed(
        "same-set",
        "another fingerprint in the second table",
        message,
        &whole_store(),
        |files| {
            let name = files.keys().find(|name| name.ends_with("-01.table")).unwrap().clone();
            let mut table = ForgedTable::read(&files[&name]);
            assert_eq!((table.blocks.len(), usize::from(table.blocks[0][COUNT_OFFSET])), (1, 4));
            // Flips one bit of the first fingerprint, and so of all fingerprints in the block.
            table.blocks[0][FIRST_OFFSET + 7] ^= 0x80;
            table.index[0] ^= 1 << 63;
            files.insert(name, table.write());
        },
    );
}
