//! Forged stores that break the format's rules for prefix lines.

use simstore::Codec;

use super::forging::{ForgedTable, SpecPage, file_mut, one_table, put, seal_footer, with_table};
use crate::support::seal::{StoreFiles, update_manifest};

/// Byte offset, in the header of a table, of the number of main lines.
const LINES_OFFSET: usize = 40;
/// Byte offset, in the header of a table, of the key bits.
const KEY_BITS_OFFSET: usize = 22;
// Byte offsets in a line.
const LOW_BITS: usize = 1;
const LINES: usize = 4;
const RANK: usize = 8;
const KEYS: usize = 13;
const NUMBER: usize = 16;
const RUN_KEYS: usize = 24;

/// A fingerprint that a run of the forged stores contains.
pub(super) const IN_A_RUN: u64 = 7 << 56 | 5;

/// Returns a copy of the store `base`, after `change` has changed the line with this number. All checksums are valid.
fn line(base: &StoreFiles, number: usize, change: impl FnOnce(&mut [u8; 64])) -> StoreFiles {
    with_table(base, |table| change(&mut table.lines[number]))
}

/// Returns the index of the first line of this kind: 1 for divided lines, 3 for runs.
fn number_of(base: &StoreFiles, kind: u8) -> usize {
    let mut files = base.clone();
    let table = ForgedTable::read(file_mut(&mut files, ".table"));
    let mut numbers = (0..table.lines.len()).filter(|&number| table.lines[number][0] == kind);
    numbers.next().unwrap()
}

pub(super) fn page() -> SpecPage {
    let mut page = SpecPage::new("prefix-lines.md");
    // A hundred fingerprints, spread evenly: three lines of keys.
    let spread: Vec<u64> = (0..100).map(|i| i << 57 | i).collect();
    let spread = one_table(Codec::PrefixLines, None, &spread);
    // A line with a hundred equal keys is a run; one with a hundred different ones is divided.
    let mut dense: Vec<u64> = (0..100).map(|i| IN_A_RUN & !0xff | i).collect();
    dense.extend((0..100).map(|i| 0xb0 << 56 | i << 52));
    let dense = one_table(Codec::PrefixLines, None, &dense);
    opening(&mut page, &spread);
    reading(&mut page, &spread, &dense);
    checking(&mut page, &spread, &dense);
    page
}

fn opening(page: &mut SpecPage, spread: &StoreFiles) {
    let message = "key bits is";
    for bits in [7, 41] {
        let files = with_table(spread, |table| table.header[KEY_BITS_OFFSET] = bits);
        page.add("key-bits", &format!("{bits} bits"), message, files);
    }
    let message = "lines is";
    let lines =
        |count: u64| with_table(spread, |table| put(&mut table.header, LINES_OFFSET, &count.to_le_bytes()));
    page.add("lines", "none with fingerprints", message, lines(0));
    page.add("lines", "more than buckets", message, lines(1 << 20));
    let many_slots = with_table(spread, |table| table.header[KEY_BITS_OFFSET] = 8 + 8);
    page.add("lines", "more than 32 slots", message, many_slots);
    let mut files = spread.clone();
    let bytes = file_mut(&mut files, ".table");
    let at = bytes.len() - 52 + 36;
    bytes[at] ^= 1;
    seal_footer(bytes, 40);
    update_manifest(&mut files);
    page.add("pages-checksum", "another", "checksum of the checksums of the prefix lines", files);
}

fn reading(page: &mut SpecPage, spread: &StoreFiles, dense: &StoreFiles) {
    let mut files = spread.clone();
    let bytes = file_mut(&mut files, ".table");
    // The last line is followed by one checksum and the footer.
    let at = bytes.len() - 52 - 4 - 1;
    bytes[at] ^= 1;
    update_manifest(&mut files);
    page.add("page-checksum", "of the last line", "checksum of the prefix lines from byte", files);

    page.add("kind", "5", "kind of a line is 5", line(spread, 0, |line| line[0] = 5));
    let message = "counts is";
    page.add(
        "slots",
        "52 ones",
        message,
        line(spread, 0, |line| put(line, 0, &((1_u64 << 53) - 2).to_le_bytes())),
    );
    page.add("slots", "a key in slot 62", message, line(spread, 0, |line| line[7] |= 0x80));

    let divided = number_of(dense, 1);
    let message = "low bits is 9";
    page.add("division", "9 low bits", message, line(dense, divided, |line| line[LOW_BITS] = 9));
    let message = "lines is";
    page.add("division", "one line", message, line(dense, divided, |line| line[LINES] = 1));
    page.add(
        "division",
        "more lines than buckets",
        message,
        line(dense, divided, |line| line[LINES + 3] = 1),
    );
    let message = "first line is";
    page.add("division", "by a main line", message, line(dense, divided, |line| line[NUMBER] = 0));
    page.add(
        "division",
        "by lines behind the last",
        message,
        line(dense, divided, |line| line[NUMBER + 2] = 1),
    );
    let message = "the fingerprints of a block and the keys of the prefix lines";
    // The last line with keys has one less: its highest one.
    let last = |line: &mut [u8; 64]| {
        let counts = u64::from_le_bytes(line[..8].try_into().unwrap());
        let top = 63 - counts.leading_zeros();
        put(line, 0, &(counts ^ 1 << top).to_le_bytes());
        line[KEYS + counts.count_ones() as usize - 1] = 0;
    };
    page.add(
        "line-keys",
        "a key less",
        message,
        with_table(spread, |table| last(table.lines.last_mut().unwrap())),
    );
}

fn checking(page: &mut SpecPage, spread: &StoreFiles, dense: &StoreFiles) {
    let message = "the rank of a prefix line and the keys before it";
    // Found by readers too: the ranks of the block's fingerprints have a gap.
    page.add("ranks", "one more", message, line(spread, 1, |line| line[RANK] += 1));
    // An empty line: nothing reads its rank.
    let ends = one_table(Codec::PrefixLines, None, &{
        let mut ends: Vec<u64> = (0..40).collect();
        ends.extend((0..60).map(|i| u64::MAX - i));
        ends
    });
    let empty = {
        let mut files = ends.clone();
        let table = ForgedTable::read(file_mut(&mut files, ".table"));
        (0..table.lines.len()).find(|&number| table.lines[number][..8] == [0; 8]).unwrap()
    };
    page.add("ranks", "of a line without keys", message, line(&ends, empty, |line| line[RANK] += 1));
    let run = number_of(dense, 3);
    for keys in [101, 1 << 40, 1 << 63, u64::MAX] {
        let files = line(dense, run, |line| put(line, RUN_KEYS, &keys.to_le_bytes()));
        page.add("ranks", &format!("a run of {keys} keys"), message, files);
    }

    let message = "the keys of a prefix line";
    page.add("outside", "a run outside of its line", message, line(dense, run, |line| line[NUMBER + 5] = 1));
    page.add("outside", "a key outside of the divided line", message, outside_of_a_divided_line());
    page.add("empty-slot", "the last of three", message, in_an_empty_slot());
    let wide = line(dense, dividing_line(dense), |line| line[KEYS] |= 0x80);
    page.add("low-bits", "of a dividing line", message, wide);
    let swapped = line(dense, dividing_line(dense), |line| line.swap(KEYS, KEYS + 1));
    page.add("order", "two keys of a slot", message, swapped);
    let message = "a prefix line and the code of its keys";
    page.add("unused", "a low byte", message, line(spread, 0, |line| line[63] = 1));
    page.add("unused", "a byte of a run", message, line(dense, run, |line| line[40] = 1));
    page.add(
        "division-order",
        "a line that nothing uses",
        "the number of prefix lines and those that divide others",
        with_table(dense, |table| {
            table.lines.push([0; 64]);
            table.dividing += 1;
        }),
    );
}

/// Returns a store with one fingerprint, with keys of 11 bits, these prefix lines, and this number of dividing lines at their
/// end.
fn three_main_lines(fingerprint: u64, lines: Vec<[u8; 64]>, dividing: u64) -> StoreFiles {
    with_table(&one_table(Codec::PrefixLines, None, &[fingerprint]), |table| {
        table.header[KEY_BITS_OFFSET] = 11;
        put(&mut table.header, LINES_OFFSET, &3_u64.to_le_bytes());
        let mut block = vec![0; 16 + 7];
        (block[4], block[6]) = (1, 53);
        put(&mut block, 8, &fingerprint.to_le_bytes());
        (table.blocks, table.index) = (vec![block], vec![fingerprint]);
        (table.lines, table.dividing) = (lines, dividing);
    })
}

/// Returns a store whose key 800 is in bucket 3 of 8, which belongs to main line 1. But the key is in a line that divides main
/// line 0, whose buckets are 0 to 2: the two lines of the group have four buckets.
fn outside_of_a_divided_line() -> StoreFiles {
    let mut lines = vec![[0; 64]; 5];
    (lines[0][0], lines[0][LOW_BITS], lines[0][LINES], lines[0][NUMBER]) = (1, 8, 2, 3);
    (lines[1][RANK], lines[2][RANK]) = (1, 1);
    // Slot 1 of the second dividing line has one key.
    (lines[4][0], lines[4][KEYS]) = (0b100, (800 & 0xff) as u8);
    three_main_lines(800 << 53, lines, 2)
}

/// Returns a store whose key is in slot 2 of main line 2. This line has the buckets 6 and 7, in the slots 0 and 1.
fn in_an_empty_slot() -> StoreFiles {
    let mut lines = vec![[0; 64]; 3];
    lines[2][0] = 0b1000;
    three_main_lines(7 << 61, lines, 0)
}

/// Returns the number of a line with keys that divides another.
fn dividing_line(base: &StoreFiles) -> usize {
    let mut files = base.clone();
    let table = ForgedTable::read(file_mut(&mut files, ".table"));
    let main = table.lines.len() - table.dividing as usize;
    (main..table.lines.len())
        .find(|&number| table.lines[number][0] & 1 == 0 && table.lines[number][..8] != [0; 8])
        .unwrap()
}
