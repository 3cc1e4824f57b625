//! Rules of the blocks of tables: rules for readers, and rules for the coding.

use simstore::Codec;

use super::forging::{SpecPage, ForgedTable, file_mut, one_table, put_bits};
use crate::support::seal::{StoreFiles, update_manifest};

const COUNT: usize = 4;
const WIDTH: usize = 6;
const FIELDS: usize = 128;
const LENGTHS: usize = 36 + 64;
/// Gaps of 16, 16 and 24: symbol 4, and tails of 4 bits.
const FEW: [u64; 4] = [0x10, 0x20, 0x30, 0x48];

/// A store with a changed first block.
fn block(base: &StoreFiles, change: impl FnOnce(&mut Vec<u8>)) -> StoreFiles {
    table(base, |table| change(&mut table.blocks[0]))
}

fn table(base: &StoreFiles, change: impl FnOnce(&mut ForgedTable)) -> StoreFiles {
    let mut files = base.clone();
    let bytes = file_mut(&mut files, ".table");
    let mut table = ForgedTable::read(bytes);
    change(&mut table);
    *bytes = table.write();
    update_manifest(&mut files);
    files
}

pub(super) fn reading(page: &mut SpecPage) {
    let [gap, elias_fano] = [Codec::Gap, Codec::EliasFano].map(|codec| one_table(codec, None, &FEW));
    let spans = one_table(Codec::Gap, Some(1), &FEW);
    page.add("block-field", "no fingerprints", "count is 0", block(&gap, |block| block[COUNT] = 0));
    page.add("block-field", "more than bits", "count is 255", block(&gap, |block| block[COUNT] = 255));
    page.add("block-field", "width 65", "width is 65", block(&gap, |block| block[WIDTH] = 65));
    page.add(
        "block-field",
        "width 64 of elias-fano",
        "width is 64",
        block(&elias_fano, |block| block[WIDTH] = 64),
    );

    let says = "width is 64";
    page.add("layout", "restart points of 64 bits", says, block(&spans, |block| block[WIDTH] = 64));
    page.add("layout", "low bits", "width is 63", block(&elias_fano, |block| block[WIDTH] = 63));

    // Restart points of 6 bits, positions of 11; all spans start where the directory ends, and have no bits.
    let (says, position) =
        ("the positions of a block's spans are not ascending", |i: usize| FIELDS + i * 17 + 6);
    let end = (FIELDS + 3 * 17) as u64;
    page.add(
        "positions",
        "descending",
        says,
        block(&spans, |block| put_bits(block, position(1), 11, end + 1)),
    );
    page.add(
        "positions",
        "in the directory",
        says,
        block(&spans, |block| put_bits(block, position(0), 11, 0)),
    );
    page.add(
        "positions",
        "outside of the block",
        says,
        block(&spans, |block| put_bits(block, position(2), 11, 2047)),
    );

    let says = "invalid code word";
    page.add("word", "of a code of one word", says, block(&gap, |block| put_bits(block, FIELDS, 1, 1)));
    let says = "the lengths of a span's code words and tails";
    // Eleven words and eleven tails of 4 bits take 55 bits, and there are 40, all of them 0.
    let eight: Vec<u64> = (1..=8).map(|i| i * 16).collect();
    let eight = one_table(Codec::Gap, None, &eight);
    page.add("tails", "of more fingerprints", says, block(&eight, |block| block[COUNT] = 12));
    let says = "the number of upper bits and the block's count";
    page.add(
        "upper-bits",
        "one less",
        says,
        block(&elias_fano, |block| {
            let one = (FIELDS..).find(|&at| block[at / 8] >> (at % 8) & 1 == 1).unwrap();
            put_bits(block, one, 1, 0);
        }),
    );
    page.add(
        "upper-bits",
        "one more",
        says,
        block(&elias_fano, |block| {
            let zero = (FIELDS..).find(|&at| block[at / 8] >> (at % 8) & 1 == 0).unwrap();
            put_bits(block, zero, 1, 1);
        }),
    );
}

pub(super) fn coding(page: &mut SpecPage) {
    let says = "a block and the code of its fingerprints";
    // 0x10 and 0x3f differ first in the bit worth 2^5; 0x20 has it.
    let set_bit = one_table(Codec::FirstDifference, None, &[0x10, 0x3f]);
    page.add("set-bit", "the predecessor is changed", says, block(&set_bit, |block| block[8] = 0x20));

    // Spans of two neighbours: each has the word of symbol 0, which is the bit 0, and no tail.
    let pairs = one_table(Codec::Gap, Some(2), &[16, 17, 18, 19]);
    page.add(
        "hole",
        "a bit",
        says,
        block(&pairs, |block| {
            let (width, start) = (2, FIELDS + 2 + 11 + 1);
            assert_eq!((usize::from(block[WIDTH]), block.len() * 8), (width, start + 2));
            put_bits(block, FIELDS + width, 11, start as u64 + 1);
        }),
    );
    // Seven words of one bit and seven tails of 4 bits take 35 bits.
    let eight: Vec<u64> = (1..=8).map(|i| i * 16).collect();
    let eight = one_table(Codec::Gap, None, &eight);
    page.add(
        "overlap",
        "a byte less",
        says,
        block(&eight, |block| {
            assert_eq!(block.pop(), Some(0));
        }),
    );
    page.add("padding", "a bit", says, block(&eight, |block| put_bits(block, FIELDS + 7, 1, 1)));

    // 0 and 2^40 + 2^10 + 2^3: two positions of 6 bits.
    let near = one_table(Codec::AllDifferences, None, &[0, 1 << 40 | 1 << 10 | 1 << 3]);
    let tail = |block: &[u8]| block.len() * 8 - 12;
    page.add(
        "differing",
        "positions that descend",
        says,
        block(&near, |block| {
            let at = tail(block);
            put_bits(block, at, 12, 10 | 3 << 6);
        }),
    );
    page.add(
        "differing",
        "a position twice",
        says,
        table(&near, |table| {
            let block = &mut table.blocks[0];
            let at = tail(block);
            put_bits(block, at, 12, 3 | 3 << 6);
            table.index[0] = 1 << 40;
        }),
    );
    page.add(
        "differing",
        "a position above",
        says,
        table(&near, |table| {
            let block = &mut table.blocks[0];
            let at = tail(block);
            put_bits(block, at, 12, 3 | 50 << 6);
            table.index[0] = 1 << 50 | 1 << 40 | 1 << 3;
        }),
    );
    // 0 and 1 have a gap of 2^0; then the symbol says one bit below it, and there is no such bit.
    let one = one_table(Codec::AllDifferences, None, &[0, 1]);
    page.add(
        "differing",
        "a bit below the lowest",
        says,
        table(&one, |table| {
            let (gap, near) = (0, 2 * 64);
            for (symbol, length) in [(gap, 0), (64, 0), (near, 1)] {
                put_bits(&mut table.header, (LENGTHS * 8) + symbol * 4, 4, length);
            }
            put_bits(&mut table.blocks[0], FIELDS, 8, 0);
            table.index[0] = 1;
        }),
    );

    // The third is one bit from the first, which is one place before the second.
    let earlier = one_table(Codec::AllDifferences, None, &[1 << 20, 1 << 20 | 0x5_5555, 1 << 50 | 1 << 20]);
    for back in [0, 2, 15] {
        page.add(
            "back",
            &format!("{back}"),
            says,
            block(&earlier, |block| {
                // The tail of the last fingerprint ends with the number of places.
                let at = block.len() * 8 - 18 - 4;
                put_bits(block, at, 4, back);
            }),
        );
    }
}
