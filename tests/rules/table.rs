//! Forged stores that break the format's rules for tables. Most tables here have a Huffman code with one symbol, whose
//! code word is the bit 0. So a block of such a table is mostly zeros.

use simstore::Codec;

use super::forging::{
    ForgedTable, SpecPage, file_mut, one_table, put, put_bits, put_segment, seal_footer, whole_store,
    with_table,
};
use crate::support::seal::{StoreFiles, update_manifest};

/// Four fingerprints with gaps of 16, 16 and 24. The code of each gap is the symbol 4 (the position of the gap's top
/// bit), followed by the 4 bits below the top bit.
const FINGERPRINTS: [u64; 4] = [0x10, 0x20, 0x30, 0x48];
// Byte offsets in the header of a table.
const FINGERPRINTS_OFFSET: usize = 28;
const PERMUTATION_OFFSET: usize = 36;
const CODE_LENGTHS_OFFSET: usize = 36 + 64;
// Byte offsets in a block.
const COUNT_OFFSET: usize = 4;
const WIDTH_OFFSET: usize = 6;
const FIRST_OFFSET: usize = 8;
/// Bit offset, in a block, of the fields that follow the first fingerprint.
const FIELDS_BIT_OFFSET: usize = 128;

/// Returns a copy of the store `base`, after `change` has changed the footer of its only table. The checksums of the
/// footer and of the manifest are recomputed.
fn with_footer(base: &StoreFiles, change: impl FnOnce(&mut [u8])) -> StoreFiles {
    let mut files = base.clone();
    let bytes = file_mut(&mut files, ".table");
    let foot = bytes.len() - 40;
    change(&mut bytes[foot..]);
    seal_footer(bytes, 28);
    update_manifest(&mut files);
    files
}

pub(super) fn page() -> SpecPage {
    let mut page = SpecPage::new("table.md");
    opening(&mut page);
    parts(&mut page);
    super::blocks::reading(&mut page);
    checking(&mut page);
    super::blocks::coding(&mut page);
    super::blocks::suffixes(&mut page);
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
    ] {
        page.add("field", variant, message, with_table(&gap, |table| put(&mut table.header, at, value)));
    }
    page.add(
        "field",
        "a span of elias-fano",
        "span is 1",
        with_table(&elias_fano, |table| table.header[20] = 1),
    );
    let version = |codec, version| {
        with_table(&one_table(codec, None, &FINGERPRINTS), |table| table.header[8] = version)
    };
    page.add("codec-version", "5 for gap", "version is 5", version(Codec::Gap, 5));
    page.add("codec-version", "3 for prefix-lines", "version is 3", version(Codec::PrefixLines, 3));
    page.add("codec-version", "3 for all-differences", "version is 3", version(Codec::AllDifferences, 3));
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
    page.add(
        "no-words",
        "a word",
        "code",
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
    page.add("blocks", "more than fingerprints", message, fingerprints(0));
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
    for (part, at) in [("header", 16), ("block index", 24)] {
        let message = ["checksum of the header", "checksum of the block index"][usize::from(at == 24)];
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
    let mut wrong = base.clone();
    let bytes = file_mut(&mut wrong, ".table");
    bytes[256] ^= 1;
    // The checksum of all block checksums stays valid.
    let (foot, crc) = (bytes.len() - 40, crc32fast::hash(&bytes[256..260]));
    put(bytes, foot + 20, &crc.to_le_bytes());
    seal_footer(bytes, 28);
    update_manifest(&mut wrong);
    page.add("block-checksum", "of the only block", "checksum of the block", wrong);
}

/// Adds forged stores that break rules that only a full check of a store verifies. The rules of the coding of blocks are
/// left out: `blocks.rs` tests them.
fn checking(page: &mut SpecPage) {
    let base = one_table(Codec::Gap, Some(1), &FINGERPRINTS);
    let message = "the fingerprints of a block are not ascending";
    // With spans of one fingerprint, each fingerprint is a restart point. A restart point is at most 0x38 above the first
    // fingerprint, so it takes 6 bits. A position takes 11 bits.
    page.add(
        "order",
        "restart points that descend",
        message,
        with_table(&base, |table| {
            put_bits(&mut table.blocks[0], FIELDS_BIT_OFFSET, 6, 0x20);
            put_bits(&mut table.blocks[0], FIELDS_BIT_OFFSET + 17, 6, 0x10);
        }),
    );
    let gap = one_table(Codec::Gap, None, &FINGERPRINTS[..2]);
    page.add(
        "order",
        "a block that starts before the end of the one before",
        message,
        with_table(&gap, |table| {
            // Each block has two fingerprints. The padding is between code words and tails.
            let mut second = table.blocks[0].clone();
            put(&mut second, FIRST_OFFSET, &0x18_u64.to_le_bytes());
            table.blocks[0].resize(256, 0);
            table.blocks.push(second);
            table.index.push(0x28);
            put(&mut table.header, FINGERPRINTS_OFFSET, &4_u64.to_le_bytes());
        }),
    );
    let last = page.cases.last_mut().unwrap();
    put_segment(&mut last.files, 0, 8, &4_u64.to_le_bytes());
    update_manifest(&mut last.files);

    let top = [u64::MAX - 19, u64::MAX - 3];
    let wrapped = 11_u64;
    for (codec, span, variant) in [
        (Codec::Gap, None, "a gap"),
        (Codec::Gap, Some(1), "a restart point"),
        (Codec::EliasFano, None, "elias-fano"),
    ] {
        let base = one_table(codec, span, &top);
        page.add(
            "large-sum",
            variant,
            message,
            with_table(&base, |table| {
                let end = table.blocks[0].len() * 8;
                match (codec, span) {
                    (Codec::Gap, None) => put_bits(&mut table.blocks[0], end - 4, 4, 15),
                    (Codec::Gap, _) => put_bits(&mut table.blocks[0], FIELDS_BIT_OFFSET, 5, 31),
                    _ => {
                        let width = usize::from(table.blocks[0][WIDTH_OFFSET]);
                        put_bits(&mut table.blocks[0], end - width, width, u64::MAX >> (64 - width));
                    }
                }
                table.index[0] = wrapped;
            }),
        );
    }
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
            foot[20] ^= 1;
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
