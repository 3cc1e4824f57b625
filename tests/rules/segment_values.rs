//! Forged stores that break the format's rules for the files of a segment with ids, names, notes, metadata and
//! tombstones.

use super::forging::{SpecPage, file_mut, put, put_chunks, put_segment, whole_store, without_ids};
use crate::support::seal::{StoreFiles, seal_store};

// Byte offsets in the manifest's entry of a segment.
const IDS_OFFSET: usize = 16;
const NAMES_OFFSET: usize = 24;
const TOMBSTONES_OFFSET: usize = 32;
const METADATA_OFFSET: usize = 40;
const NOTES_OFFSET: usize = 48;

/// Encodes a chunk of ids. `flags` has one flag for each id: 1 for the first id of a fingerprint, 0 for its other ids.
/// `ids` has the differences of the ids from `base`, which are encoded in `width` bits each.
fn ids_chunk(base: u64, width: u8, flags: &[u64], ids: &[u64]) -> Vec<u8> {
    let bits = flags.len() + ids.len() * usize::from(width);
    let mut chunk = vec![0; 20 + bits.div_ceil(8)];
    put(&mut chunk, 4, &(ids.len() as u32).to_le_bytes());
    put(&mut chunk, 8, &base.to_le_bytes());
    (chunk[16], chunk[17]) = (width, u8::from(!flags.is_empty()));
    let body = &mut chunk[20..];
    for (i, &flag) in flags.iter().enumerate() {
        super::forging::put_bits(body, i, 1, flag);
    }
    for (i, &id) in ids.iter().enumerate() {
        let at = flags.len() + i * usize::from(width);
        super::forging::put_bits(body, at, usize::from(width).min(64), id);
    }
    chunk
}

/// Replaces all chunks of ids of the first segment with this chunk. Does not recompute checksums.
fn with_ids(files: &mut StoreFiles, chunk: Vec<u8>) {
    let name = files.keys().find(|name| name.ends_with(".ids")).unwrap().clone();
    let bytes = files.get_mut(&name).unwrap();
    let mut chunked = super::forging::ForgedChunkedFile::read(&name, bytes);
    chunked.chunks = vec![(None, chunk)];
    *bytes = chunked.write();
}

/// Argument `flags` of [`ids_chunk`] for a valid chunk: four fingerprints, the second of them with two ids. The
/// argument `base` for this chunk is 1.
const FLAGS: [u64; 5] = [1, 1, 0, 1, 1];
/// Argument `ids` of [`ids_chunk`] for the same chunk as [`FLAGS`]: the differences of the ids from the base.
const DIFFERENCES: [u64; 5] = [0, 1, 299, 6, 7];

/// Returns stores with unusual ids that all readers must accept: the base of a chunk is smaller than its smallest id, and its
/// width is larger than necessary.
pub(super) fn sound() -> Vec<StoreFiles> {
    let base = whole_store();
    let with_ids = |chunk: Vec<u8>| {
        let mut files = base.clone();
        with_ids(&mut files, chunk);
        seal_store(&mut files);
        files
    };
    let loose = DIFFERENCES.map(|difference| difference + 1);
    vec![with_ids(ids_chunk(0, 9, &FLAGS, &loose)), with_ids(ids_chunk(1, 64, &FLAGS, &DIFFERENCES))]
}

pub(super) fn ids() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("ids.md"));
    let header = |field: usize, value: u64| {
        move |files: &mut StoreFiles| {
            let name = files.keys().find(|name| name.ends_with(".ids")).unwrap().clone();
            put(files.get_mut(&name).unwrap(), field, &value.to_le_bytes());
        }
    };
    page.add_sealed(
        "fingerprints",
        "5 in the header",
        "the numbers of fingerprints of",
        &base,
        header(16, 5),
    );
    page.add_sealed("chunks", "one more", "the chunks of ids and the blocks", &base, |files| {
        let name = files.keys().find(|name| name.ends_with(".ids")).unwrap().clone();
        let bytes = files.get_mut(&name).unwrap();
        let mut chunked = super::forging::ForgedChunkedFile::read(&name, bytes);
        chunked.chunks.push((None, ids_chunk(0, 0, &[], &[])));
        *bytes = chunked.write();
    });
    let mut chunk = |rule, variant: &str, message, chunk: Vec<u8>| {
        page.add_sealed(rule, variant, message, &base, |files| with_ids(files, chunk));
    };
    chunk("width", "65", "width is 65", ids_chunk(1, 65, &FLAGS, &DIFFERENCES));
    let mut grouped = ids_chunk(1, 9, &FLAGS, &DIFFERENCES);
    grouped[17] = 2;
    chunk("grouped", "2", "grouped is 2", grouped);
    chunk("grouped", "70,000 ids of no bits", "grouped is 0", {
        let mut chunk = ids_chunk(1, 0, &[], &[]);
        put(&mut chunk, 4, &70_000_u32.to_le_bytes());
        chunk
    });
    chunk("body", "a byte more", "width is 9", {
        let mut chunk = ids_chunk(1, 9, &FLAGS, &DIFFERENCES);
        chunk.push(0);
        chunk
    });
    let message = "the number of fingerprints of a chunk of ids and of its block";
    chunk("groups", "five", message, ids_chunk(1, 9, &[1; 5], &DIFFERENCES));
    chunk("groups", "three", message, ids_chunk(1, 9, &[1, 1, 0, 1, 0], &DIFFERENCES));
    chunk("groups", "five without flags", message, ids_chunk(1, 9, &[], &DIFFERENCES));
    chunk("groups", "the first flag is 0", message, ids_chunk(1, 9, &[0, 1, 1, 1, 1], &DIFFERENCES));
    let message = "base is 18446744073709551516";
    chunk(
        "large-id",
        "base plus difference wraps",
        message,
        ids_chunk(u64::MAX - 99, 9, &FLAGS, &DIFFERENCES),
    );
    let mut padded = ids_chunk(1, 9, &FLAGS, &DIFFERENCES);
    *padded.last_mut().unwrap() |= 0x80;
    chunk("padding", "its last bit", "padding is 1", padded);
    let message = "the ids of a fingerprint are not ascending";
    chunk("order", "descending", message, ids_chunk(1, 9, &FLAGS, &[0, 299, 1, 6, 7]));
    chunk("order", "one twice", message, ids_chunk(1, 9, &FLAGS, &[0, 299, 299, 6, 7]));
    let message = "the number of ids and the manifest";
    page.add_sealed("ids", "6 in the header", message, &base, header(24, 6));
    page.add_sealed("ids", "6 in the manifest", message, &base, |files| {
        put_segment(files, 0, IDS_OFFSET, &6_u64.to_le_bytes());
    });
    let message = "the number of ids, the header and the manifest";
    page.add_sealed("count", "6 in both", message, &base, |files| {
        header(24, 6)(files);
        put_segment(files, 0, IDS_OFFSET, &6_u64.to_le_bytes());
    });
    page
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 128 {
        bytes.push(value as u8 | 128);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// Encodes a chunk of a name file or note file. Its header says that it has `count` entries, which may be wrong.
fn chunk(count: u32, entries: &[Vec<u8>]) -> Vec<u8> {
    [&[0; 4][..], &count.to_le_bytes(), &entries.concat()].concat()
}

/// Properties of a name file or a note file. Tests for both kinds of files use the same code with different properties.
struct ValueFile {
    extension: &'static str,
    /// Byte offset of the number of values (names or notes), in the manifest's entry for a segment.
    count: usize,
    has_shared_prefixes: bool,
    max_value_bytes: usize,
    max_chunk_bytes: usize,
    too_long_message: &'static str,
    malformed_message: &'static str,
}

impl ValueFile {
    fn entry(&self, delta: u64, value: &[u8]) -> Vec<u8> {
        let shared: &[u8] = if self.has_shared_prefixes { &[0] } else { &[] };
        [&varint(delta), shared, &varint(value.len() as u64), value].concat()
    }

    fn case(
        &self,
        page: &mut SpecPage,
        rule: &'static str,
        variant: &str,
        message: &'static str,
        chunks: Chunks,
    ) {
        let count: u64 = chunks.iter().map(|(_, chunk)| u64::from(chunk[4])).sum();
        page.add_sealed(rule, variant, message, &whole_store(), |files| {
            put_chunks(files, self.extension, chunks);
            put_segment(files, 0, self.count, &count.to_le_bytes());
        });
    }

    fn page(&self, mut page: SpecPage) -> SpecPage {
        let one = |entries: &[Vec<u8>]| vec![(Some(1), chunk(entries.len() as u32, entries))];
        let malformed_message = self.malformed_message;
        let first_ids = if self.has_shared_prefixes {
            "the first ids of the chunks of names are not ascending"
        } else {
            "the first ids of the chunks of notes are not ascending"
        };
        for key in [5, 4] {
            let two = vec![
                (Some(5), chunk(1, &[self.entry(0, b"a")])),
                (Some(key), chunk(1, &[self.entry(0, b"b")])),
            ];
            self.case(&mut page, "keys", &format!("5, then {key}"), first_ids, two);
        }
        let value = vec![b'a'; self.max_value_bytes / 2 + 100];
        let long = (0..=self.max_chunk_bytes / value.len()).map(|i| self.entry(u64::from(i > 0), &value));
        self.case(
            &mut page,
            "long-chunk",
            "several long values",
            self.too_long_message,
            one(&long.collect::<Vec<_>>()),
        );
        self.case(
            &mut page,
            "empty-chunk",
            "between others",
            malformed_message,
            vec![
                (Some(1), chunk(1, &[self.entry(0, b"a")])),
                (Some(2), chunk(0, &[])),
                (Some(3), chunk(1, &[self.entry(0, b"b")])),
            ],
        );
        let overlong = [vec![0xff; 9], vec![2]].concat();
        self.case(&mut page, "varint", "2^64", malformed_message, one(&[self.entry(0, b"a"), overlong]));
        self.case(
            &mut page,
            "varint",
            "eleven bytes",
            malformed_message,
            one(&[self.entry(0, b"a"), vec![0x80; 11]]),
        );
        let overlong = [vec![0x81, 0], self.entry(0, b"b")[1..].to_vec()].concat();
        self.case(
            &mut page,
            "varint",
            "1 in two bytes",
            malformed_message,
            one(&[self.entry(0, b"a"), overlong]),
        );
        self.case(&mut page, "varint", "cut off", malformed_message, one(&[self.entry(0, b"a"), vec![0x81]]));
        self.case(
            &mut page,
            "difference",
            "0",
            malformed_message,
            one(&[self.entry(0, b"a"), self.entry(0, b"b")]),
        );
        self.case(&mut page, "difference", "1 for the first", malformed_message, one(&[self.entry(1, b"a")]));
        let large = one(&[self.entry(0, b"a"), self.entry(u64::MAX, b"b")]);
        self.case(&mut page, "difference", "to 2^64", malformed_message, large);
        let left_over = vec![(Some(1), chunk(1, &[self.entry(0, b"a"), vec![0]]))];
        self.case(&mut page, "left-over", "a byte", malformed_message, left_over);
        for next in [3, 2] {
            let two = vec![
                (Some(1), chunk(2, &[self.entry(0, b"a"), self.entry(2, b"b")])),
                (Some(next), chunk(1, &[self.entry(0, b"c")])),
            ];
            self.case(&mut page, "next-key", &format!("3, then {next}"), malformed_message, two);
        }
        let message = if self.has_shared_prefixes {
            "the number of names and the manifest"
        } else {
            "the number of notes and the manifest"
        };
        page.add_sealed("count", "one more", message, &whole_store(), |files| {
            put_segment(files, 0, self.count, &4_u64.to_le_bytes());
        });
        page
    }
}

type Chunks = Vec<(Option<u64>, Vec<u8>)>;

pub(super) fn names() -> SpecPage {
    let kind = ValueFile {
        extension: ".names",
        count: NAMES_OFFSET,
        has_shared_prefixes: true,
        max_value_bytes: 1 << 16,
        max_chunk_bytes: 1 << 17,
        too_long_message: "at most 131072 bytes",
        malformed_message: "the entries of a chunk of names are not ascending",
    };
    let mut page = kind.page(SpecPage::new("names.md"));
    let one = |entries: &[Vec<u8>]| vec![(Some(1), chunk(entries.len() as u32, entries))];
    let first = kind.entry(0, b"ab");
    let shared =
        |a: u64, rest: &[u8]| [varint(1), varint(a), varint(rest.len() as u64), rest.to_vec()].concat();
    kind.case(
        &mut page,
        "shared",
        "3 of 2 bytes",
        kind.malformed_message,
        one(&[first.clone(), shared(3, b"c")]),
    );
    let long = kind.entry(0, &vec![b'a'; (1 << 16) + 1]);
    kind.case(&mut page, "long-name", "65537 bytes", kind.malformed_message, one(&[long]));
    let long = [kind.entry(0, &vec![b'a'; 1 << 16]), shared(1 << 16, b"b")];
    kind.case(&mut page, "long-name", "65537 bytes, most of them shared", kind.malformed_message, one(&long));
    let beyond = [vec![0, 0], varint(9), b"a".to_vec()].concat();
    kind.case(&mut page, "long-name", "longer than its chunk", kind.malformed_message, one(&[beyond]));
    kind.case(&mut page, "utf-8", "a byte of none", kind.malformed_message, one(&[kind.entry(0, b"\xff")]));
    let cut = [kind.entry(0, "文".as_bytes()), shared(1, b"a")];
    kind.case(&mut page, "utf-8", "a shared start inside a character", kind.malformed_message, one(&cut));
    page
}

pub(super) fn notes() -> SpecPage {
    let kind = ValueFile {
        extension: ".notes",
        count: NOTES_OFFSET,
        has_shared_prefixes: false,
        max_value_bytes: 1 << 24,
        max_chunk_bytes: (1 << 24) + (1 << 16),
        too_long_message: "at most 16842752 bytes",
        malformed_message: "the entries of a chunk of notes are not ascending",
    };
    let mut page = kind.page(SpecPage::new("notes.md"));
    let one = |entries: &[Vec<u8>]| vec![(Some(1), chunk(entries.len() as u32, entries))];
    let long = kind.entry(0, &vec![1; (1 << 24) + 1]);
    kind.case(&mut page, "long-note", "16777217 bytes", kind.malformed_message, one(&[long]));
    let beyond = [vec![0], varint(9), vec![1]].concat();
    kind.case(&mut page, "long-note", "longer than its chunk", kind.malformed_message, one(&[beyond]));
    page
}

pub(super) fn metadata() -> SpecPage {
    let mut page = SpecPage::new("metadata.md");
    let entry = |key: &[u8], value: &[u8]| {
        [&(key.len() as u16).to_le_bytes(), &(value.len() as u16).to_le_bytes()[..], key, value].concat()
    };
    let mut case = |rule, variant: &str, message, chunks: Vec<Vec<u8>>| {
        let count: u64 = chunks.iter().map(|chunk| u64::from(chunk[4])).sum();
        page.add_sealed(rule, variant, message, &whole_store(), |files| {
            put_chunks(files, ".metadata", chunks.into_iter().map(|chunk| (None, chunk)).collect());
            put_segment(files, 0, METADATA_OFFSET, &count.to_le_bytes());
        });
    };
    let malformed_message = "the entries of a chunk of metadata are not ascending";
    let long = |first: &str| {
        let keys = (0..5).map(|i| entry(format!("{first}{i}").as_bytes(), &[7; 4000]));
        keys.collect::<Vec<_>>()
    };
    case("long-chunk", "20,000 bytes", "at most 16384 bytes", vec![chunk(5, &long("a"))]);
    case(
        "empty-chunk",
        "after another",
        malformed_message,
        vec![chunk(1, &[entry(b"a", b"")]), chunk(0, &[])],
    );
    case(
        "long-value",
        "a key of 4097 bytes",
        malformed_message,
        vec![chunk(1, &[entry(&[b'a'; 4097], b"")])],
    );
    case(
        "long-value",
        "a value of 4097 bytes",
        malformed_message,
        vec![chunk(1, &[entry(b"a", &[1; 4097])])],
    );
    let beyond = [9, 0, 0, 0, b'a'].to_vec();
    case("long-value", "longer than its chunk", malformed_message, vec![chunk(1, &[beyond])]);
    case("left-over", "a byte", malformed_message, vec![chunk(1, &[entry(b"a", b""), vec![0]])]);
    case("utf-8", "a byte of none", malformed_message, vec![chunk(1, &[entry(b"\xff", b"")])]);
    case("order", "descending", malformed_message, vec![chunk(2, &[entry(b"b", b""), entry(b"a", b"")])]);
    case("order", "one twice", malformed_message, vec![chunk(2, &[entry(b"b", b""), entry(b"b", b"")])]);
    for second in [b"a", b"b"] {
        let chunks = vec![chunk(1, &[entry(b"b", b"")]), chunk(1, &[entry(second, b"")])];
        case("next-chunk", &format!("b, then {}", second[0] as char), malformed_message, chunks);
    }
    page.add_sealed(
        "count",
        "one more",
        "the number of metadata values and the manifest",
        &whole_store(),
        |files| {
            put_segment(files, 0, METADATA_OFFSET, &3_u64.to_le_bytes());
        },
    );
    page
}

pub(super) fn tombstones() -> SpecPage {
    let (base, mut page) = (whole_store(), SpecPage::new("tombstones.md"));
    page.add_named("checksum", "of the file", "checksum of the tombstones", &base, |files| {
        let bytes = file_mut(files, ".tombstones");
        let at = bytes.len() - 12;
        bytes[at] ^= 1;
    });
    page.add_sealed("length", "one pair more", "count is 3", &base, |files| {
        file_mut(files, ".tombstones")[16] = 3;
    });
    page.add_sealed("length", "a byte more", "count is 2", &base, |files| {
        file_mut(files, ".tombstones").insert(24, 0);
    });
    page.add_sealed("bits", "128", "128", &base, |files| file_mut(files, ".tombstones")[12] = 128);
    page.add_sealed(
        "count",
        "3 in the manifest",
        "the number of tombstones and the manifest",
        &base,
        |files| {
            put_segment(files, 1, TOMBSTONES_OFFSET, &3_u64.to_le_bytes());
        },
    );
    page.add_sealed("id", "7 in a store without ids", "id is 7", &without_ids(), |files| {
        let bytes = file_mut(files, ".tombstones");
        bytes[24 + 8] = 7;
    });
    page.add_sealed("order", "descending", "tombstones are not ascending", &base, |files| {
        file_mut(files, ".tombstones")[24..56].rotate_left(16);
    });
    page.add_sealed("order", "one twice", "tombstones are not ascending", &base, |files| {
        file_mut(files, ".tombstones").copy_within(24..40, 40);
    });
    page
}
