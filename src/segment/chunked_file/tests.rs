use super::*;
use crate::segment::tests::every_damage_is_found;

const MAGIC: [u8; 8] = *b"testfile";

fn header() -> Vec<u8> {
    [&MAGIC[..], &format::VERSION.to_le_bytes(), &[0; 4]].concat()
}

/// Encodes a chunked file. Each chunk is a checksum and one of `contents`. If the file is keyed, the key of a chunk is the
/// length of its content.
fn encoded(contents: &[&[u8]], keyed: bool) -> Vec<u8> {
    let mut writer = ChunkedFileWriter::new(Vec::new(), Path::new("c"), &header()).unwrap();
    for content in contents {
        let key = keyed.then_some(content.len() as u64);
        writer.write(&mut [&[0; 4], *content].concat(), key).unwrap();
    }
    writer.finish().unwrap()
}

fn open(bytes: &[u8], keyed: bool) -> Result<ChunkedFile> {
    ChunkedFile::open(Path::new("c"), bytes.to_vec().into(), MAGIC, 16, keyed)
}

fn damage_of(error: Error) -> (u64, Damage) {
    match error {
        Error::Corrupt { offset, damage, .. } => (offset, damage),
        other => panic!("{other}"),
    }
}

/// Recomputes the checksums of the directory and the footer. `directory` is the offset of the directory.
fn sealed(mut bytes: Vec<u8>, directory: usize) -> Vec<u8> {
    let foot = bytes.len() - footer::LEN;
    let crc = crc32fast::hash(&bytes[directory..foot]);
    LittleEndian::write_u32(&mut bytes[foot + footer::DIRECTORY_CRC..], crc);
    let crc = crc32fast::hash(&bytes[foot..foot + footer::FOOTER_CRC]);
    LittleEndian::write_u32(&mut bytes[foot + footer::FOOTER_CRC..], crc);
    bytes
}

#[test]
fn chunks_come_back() {
    let contents: [&[u8]; 3] = [b"one", b"", b"three"];
    for keyed in [false, true] {
        for len in 0..=contents.len() {
            let chunks = open(&encoded(&contents[..len], keyed), keyed).unwrap();
            assert_eq!((chunks.len(), chunks.header()), (len, &header()[..]));
            for (i, content) in contents[..len].iter().enumerate() {
                assert_eq!(&chunks.get(i, 4).unwrap()[4..], *content);
                assert!(!keyed || chunks.key(i) == content.len() as u64);
            }
            chunks.verify().unwrap();
        }
    }
    // A file with keys cannot be opened as a file without keys.
    assert!(open(&encoded(&contents, true), false).is_err());
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let bytes = encoded(&[b"one", b"two"], true);
    let read = |bytes: &[u8]| {
        let chunks = open(bytes, true)?;
        (0..chunks.len()).try_for_each(|chunk| chunks.get(chunk, 4).map(drop))?;
        chunks.verify()
    };
    every_damage_is_found(bytes, read);
}

/// Asserts that damage of one chunk is reported with its offset, and that the other chunks stay readable.
#[test]
fn a_chunk_is_checked_by_itself() {
    let mut bytes = encoded(&[b"first", b"other"], false);
    let second = 16 + 9;
    bytes[second + 4] ^= 1;
    let chunks = open(&bytes, false).unwrap();
    chunks.get(0, 4).unwrap();
    let (offset, damage) = damage_of(chunks.get(1, 4).unwrap_err());
    assert!(offset == second as u64 && matches!(damage, Damage::Checksum { part: "chunk", .. }));
    // The chunk is shorter than the required header.
    let (offset, damage) = damage_of(chunks.get(0, 10).unwrap_err());
    assert_eq!((offset, damage), (16, Damage::Truncated { expected: 10, found: 9 }));
}

/// Asserts that swapped chunks are found, because the checksum of a chunk also covers the chunk's number in the
/// file.
#[test]
fn swapped_chunks_are_found() {
    let mut bytes = encoded(&[b"first", b"other"], false);
    let (first, second) = (bytes[16..25].to_vec(), bytes[25..34].to_vec());
    bytes[16..34].copy_from_slice(&[second, first].concat());
    let chunks = open(&bytes, false).unwrap();
    assert!(chunks.get(0, 4).is_err() && chunks.get(1, 4).is_err());
}

/// Asserts that a sound chunk of another file is found: it passes its own checksum, but not the footer's.
#[test]
fn the_footer_vouches_for_all_chunks_together() {
    let (bytes, other) = (encoded(&[b"first", b"other"], false), encoded(&[b"first", b"alien"], false));
    let mixed = [&bytes[..25], &other[25..34], &bytes[34..]].concat();
    let chunks = open(&mixed, false).unwrap();
    assert_eq!(&chunks.get(1, 4).unwrap()[4..], b"alien");
    let (_, damage) = damage_of(chunks.verify().unwrap_err());
    assert!(matches!(damage, Damage::Checksum { part: "checksums of the chunks", .. }), "{damage}");
}

#[test]
fn hostile_directories_with_right_checksums() {
    let bytes = encoded(&[b"first", b"other"], false);
    let directory = 16 + 2 * 9;
    open(&sealed(bytes.clone(), directory), false).unwrap();
    // Wrong offsets of the start of the first chunk, its end, and the end of the last chunk.
    for (entry, offset) in [(0, 15), (0, 17), (1, 15), (1, u64::MAX), (1, 35), (2, 33), (2, 35)] {
        let mut bytes = bytes.clone();
        LittleEndian::write_u64(&mut bytes[directory + entry * 8..], offset);
        let (_, damage) = damage_of(open(&sealed(bytes, directory), false).unwrap_err());
        assert_eq!(damage, Damage::Order { what: "the offsets of the directory" }, "{entry} {offset}");
    }
    for count in [5, u64::MAX / 8, u64::MAX] {
        let mut bytes = bytes.clone();
        let at = bytes.len() - footer::LEN + footer::CHUNKS;
        LittleEndian::write_u64(&mut bytes[at..], count);
        let (offset, damage) = damage_of(open(&sealed(bytes, directory), false).unwrap_err());
        assert!(matches!(damage, Damage::Field { name: "chunks", found, .. } if found == count));
        assert_eq!(offset, at as u64);
    }
}

const KIND: EntryFormat = EntryFormat {
    magic: MAGIC,
    keyed: true,
    close_bytes: 20,
    max_bytes: (30, "at most 30 bytes"),
    name: "entries",
};

#[test]
fn entries_fill_chunks() {
    let mut writer = EntryFileWriter::new(Vec::new(), Path::new("e"), &KIND).unwrap();
    // Sizes of the entries in bytes. A chunk starts with 8 bytes and is closed at 20.
    for (key, len) in [11, 1, 12, 3, 22].into_iter().enumerate() {
        assert_eq!(writer.starts_chunk(), [0, 2, 3].contains(&key));
        writer.push(Some(key as u64), |chunk| chunk.resize(chunk.len() + len, key as u8)).unwrap();
    }
    let chunks = ChunkedFile::open_entries(Path::new("e"), writer.finish().unwrap().into(), &KIND).unwrap();
    assert_eq!((0..chunks.len()).map(|chunk| chunks.key(chunk)).collect::<Vec<_>>(), [0, 2, 3]);
    assert_eq!(chunks.entries(0, &KIND).unwrap(), (2, &[&[0; 11][..], &[1]].concat()[..]));
    assert_eq!(chunks.entries(1, &KIND).unwrap(), (1, &[2; 12][..]));
    // The last chunk exceeds the maximum size.
    let (_, damage) = damage_of(chunks.entries(2, &KIND).unwrap_err());
    assert_eq!(damage, Damage::Field { name: "chunk", found: 33, expected: "at most 30 bytes" });
    assert_eq!(damage_of(chunks.malformed(1, &KIND)).0, chunks.offset(1));
}
