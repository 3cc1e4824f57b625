//! Forged stores that break the format's rules for blocks of tables: rules that every reader checks, and rules of the
//! coding that only a full check verifies.

use simstore::Codec;

use super::forging::{SpecPage, file_mut, one_table, put, put_bits, put_segment, seal_footer, with_table};
use crate::support::seal::{StoreFiles, update_manifest};

// Byte offsets in a block.
const COUNT_OFFSET: usize = 4;
const WIDTH_OFFSET: usize = 6;
const FIRST_OFFSET: usize = 8;
/// Bit offset, in a block, of the fields that follow the first fingerprint.
const FIELDS_BIT_OFFSET: usize = 128;
/// Byte offset, in the header of a table, of the list of code word lengths.
const CODE_LENGTHS_OFFSET: usize = 48 + 64;
/// Byte offset, in the header of a table, of the number of fingerprints.
const FINGERPRINTS_OFFSET: usize = 32;
/// Four fingerprints with gaps of 16, 16 and 24. The code of each gap is the symbol 4 (the position of the gap's top
/// bit), followed by the 4 bits below the top bit.
const FINGERPRINTS: [u64; 4] = [0x10, 0x20, 0x30, 0x48];

/// Returns a copy of the store `base`, in which `change` has changed the first block of the only table. All checksums
/// are valid.
fn block(base: &StoreFiles, change: impl FnOnce(&mut Vec<u8>)) -> StoreFiles {
    with_table(base, |table| change(&mut table.blocks[0]))
}

pub(super) fn page() -> SpecPage {
    let mut page = SpecPage::new("blocks.md");
    reading(&mut page);
    checking(&mut page);
    coding(&mut page);
    suffixes(&mut page);
    page
}

fn reading(page: &mut SpecPage) {
    let mut wrong = one_table(Codec::Gap, None, &FINGERPRINTS);
    let bytes = file_mut(&mut wrong, ".table");
    bytes[256] ^= 1;
    // The checksum of all block checksums stays valid.
    let (foot, crc) = (bytes.len() - 52, crc32fast::hash(&bytes[256..260]));
    put(bytes, foot + 28, &crc.to_le_bytes());
    seal_footer(bytes, 40);
    update_manifest(&mut wrong);
    page.add("block-checksum", "of the only block", "checksum of the block", wrong);

    let [gap, elias_fano] = [Codec::Gap, Codec::EliasFano].map(|codec| one_table(codec, None, &FINGERPRINTS));
    let spans = one_table(Codec::Gap, Some(1), &FINGERPRINTS);
    page.add("block-field", "no fingerprints", "count is 0", block(&gap, |block| block[COUNT_OFFSET] = 0));
    page.add("block-field", "more than bits", "count is 255", block(&gap, |block| block[COUNT_OFFSET] = 255));
    page.add("block-field", "width 65", "width is 65", block(&gap, |block| block[WIDTH_OFFSET] = 65));
    page.add(
        "block-field",
        "width 64 of elias-fano",
        "width is 64",
        block(&elias_fano, |block| block[WIDTH_OFFSET] = 64),
    );

    let message = "width is 64";
    page.add("layout", "restart points of 64 bits", message, block(&spans, |block| block[WIDTH_OFFSET] = 64));
    page.add("layout", "low bits", "width is 63", block(&elias_fano, |block| block[WIDTH_OFFSET] = 63));

    // A restart point takes 6 bits, a position 11 bits. All spans are empty and start at the end of the directory.
    let (message, position) =
        ("the positions of a block's spans are not ascending", |i: usize| FIELDS_BIT_OFFSET + i * 17 + 6);
    let end = (FIELDS_BIT_OFFSET + 3 * 17) as u64;
    page.add(
        "positions",
        "descending",
        message,
        block(&spans, |block| put_bits(block, position(1), 11, end + 1)),
    );
    page.add(
        "positions",
        "in the directory",
        message,
        block(&spans, |block| put_bits(block, position(0), 11, 0)),
    );
    page.add(
        "positions",
        "outside of the block",
        message,
        block(&spans, |block| put_bits(block, position(2), 11, 2047)),
    );

    let message = "invalid code word";
    page.add(
        "word",
        "of a code of one word",
        message,
        block(&gap, |block| put_bits(block, FIELDS_BIT_OFFSET, 1, 1)),
    );
    let message = "the lengths of a span's code words and tails";
    // Eleven code words of one bit and eleven tails of 4 bits take 55 bits, but the block has only 40 bits, all zero.
    let eight: Vec<u64> = (1..=8).map(|i| i * 16).collect();
    let eight = one_table(Codec::Gap, None, &eight);
    page.add("tails", "of more fingerprints", message, block(&eight, |block| block[COUNT_OFFSET] = 12));
    let message = "the number of upper bits and the block's count";
    page.add(
        "upper-bits",
        "one less",
        message,
        block(&elias_fano, |block| {
            let one = (FIELDS_BIT_OFFSET..).find(|&at| block[at / 8] >> (at % 8) & 1 == 1).unwrap();
            put_bits(block, one, 1, 0);
        }),
    );
    page.add(
        "upper-bits",
        "one more",
        message,
        block(&elias_fano, |block| {
            let zero = (FIELDS_BIT_OFFSET..).find(|&at| block[at / 8] >> (at % 8) & 1 == 0).unwrap();
            put_bits(block, zero, 1, 1);
        }),
    );
}

/// Adds forged blocks of the codec `prefix-lines`.
fn suffixes(page: &mut SpecPage) {
    let lines = one_table(Codec::PrefixLines, None, &FINGERPRINTS);
    let one = |at: usize, change: fn(u8) -> u8| block(&lines, move |block| block[at] = change(block[at]));
    page.add("suffixes", "another width", "width is", one(WIDTH_OFFSET, |width| width - 1));
    page.add("suffixes", "more than have room", "count is 5", one(COUNT_OFFSET, |count| count + 1));
    let message = "a block and the code of its fingerprints";
    page.add("first", "another suffix", message, one(8, |byte| byte ^ 1));
}

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
}

fn coding(page: &mut SpecPage) {
    let message = "a block and the code of its fingerprints";
    // The highest differing bit of 0x10 and 0x3f is bit 5, which is set in 0x20.
    let set_bit = one_table(Codec::FirstDifference, None, &[0x10, 0x3f]);
    page.add("set-bit", "the predecessor is changed", message, block(&set_bit, |block| block[8] = 0x20));

    // Spans of two consecutive fingerprints: each span has the code word of symbol 0, the bit 0, and no tail.
    let pairs = one_table(Codec::Gap, Some(2), &[16, 17, 18, 19]);
    page.add(
        "hole",
        "a bit",
        message,
        block(&pairs, |block| {
            let (width, start) = (2, FIELDS_BIT_OFFSET + 2 + 11 + 1);
            assert_eq!((usize::from(block[WIDTH_OFFSET]), block.len() * 8), (width, start + 2));
            put_bits(block, FIELDS_BIT_OFFSET + width, 11, start as u64 + 1);
        }),
    );
    // Seven code words of one bit and seven tails of 4 bits take 35 bits.
    let eight: Vec<u64> = (1..=8).map(|i| i * 16).collect();
    let eight = one_table(Codec::Gap, None, &eight);
    page.add(
        "overlap",
        "a byte less",
        message,
        block(&eight, |block| {
            assert_eq!(block.pop(), Some(0));
        }),
    );
    page.add(
        "padding",
        "a bit",
        message,
        block(&eight, |block| put_bits(block, FIELDS_BIT_OFFSET + 7, 1, 1)),
    );

    // 0 and 2^40 + 2^10 + 2^3: the tail has two bit positions of 6 bits each.
    let near = one_table(Codec::AllDifferences, None, &[0, 1 << 40 | 1 << 10 | 1 << 3]);
    let tail = |block: &[u8]| block.len() * 8 - 12;
    page.add(
        "differing",
        "positions that descend",
        message,
        block(&near, |block| {
            let at = tail(block);
            put_bits(block, at, 12, 10 | 3 << 6);
        }),
    );
    page.add(
        "differing",
        "a position twice",
        message,
        with_table(&near, |table| {
            let block = &mut table.blocks[0];
            let at = tail(block);
            put_bits(block, at, 12, 3 | 3 << 6);
            table.index[0] = 1 << 40;
        }),
    );
    page.add(
        "differing",
        "a position above",
        message,
        with_table(&near, |table| {
            let block = &mut table.blocks[0];
            let at = tail(block);
            put_bits(block, at, 12, 3 | 50 << 6);
            table.index[0] = 1 << 50 | 1 << 40 | 1 << 3;
        }),
    );
    // 0 and 1 have a gap of 2^0. The changed symbol says that one lower bit differs, too, but no lower bit exists.
    let one = one_table(Codec::AllDifferences, None, &[0, 1]);
    page.add(
        "differing",
        "a bit below the lowest",
        message,
        with_table(&one, |table| {
            let (gap, near) = (0, 2 * 64);
            for (symbol, length) in [(gap, 0), (64, 0), (near, 1)] {
                put_bits(&mut table.header, (CODE_LENGTHS_OFFSET * 8) + symbol * 4, 4, length);
            }
            put_bits(&mut table.blocks[0], FIELDS_BIT_OFFSET, 8, 0);
            table.index[0] = 1;
        }),
    );

    // The third fingerprint differs in one bit from the first one, which is one place before its predecessor.
    let earlier = one_table(Codec::AllDifferences, None, &[1 << 20, 1 << 20 | 0x5_5555, 1 << 50 | 1 << 20]);
    for back in [0, 2, 15] {
        page.add(
            "back",
            &format!("{back}"),
            message,
            block(&earlier, |block| {
                // The tail of the last fingerprint ends with the number of places back.
                let at = block.len() * 8 - 18 - 4;
                put_bits(block, at, 4, back);
            }),
        );
    }
}
