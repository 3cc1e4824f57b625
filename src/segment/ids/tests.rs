use super::*;
use crate::segment::chunked_file::ChunkedFileWriter;
use crate::segment::tests::every_damage_is_found;

/// Ids of each fingerprint of each block.
type BlockIds = Vec<Vec<Vec<u64>>>;

fn encoded(blocks: &BlockIds) -> Vec<u8> {
    let fingerprints: usize = blocks.iter().map(Vec::len).sum();
    let ids: usize = blocks.iter().flatten().map(Vec::len).sum();
    let mut writer = IdFileWriter::new(Vec::new(), Path::new("i"), fingerprints as u64, ids as u64).unwrap();
    // As in a builder, the first ids of the next block may have been pushed when a block is closed.
    let mut open = blocks.iter();
    for block in blocks {
        for ids in block {
            ids.iter().enumerate().for_each(|(i, &id)| writer.push(id, i == 0));
        }
        if writer.pending.len() > 7
            && let Some(block) = open.next()
        {
            writer.close_chunk(block.len()).unwrap();
        }
    }
    open.for_each(|block| writer.close_chunk(block.len()).unwrap());
    writer.finish().unwrap()
}

fn open(bytes: &[u8], blocks: &BlockIds) -> Result<IdFile> {
    let fingerprints: usize = blocks.iter().map(Vec::len).sum();
    let ids: usize = blocks.iter().flatten().map(Vec::len).sum();
    IdFile::open(Path::new("i"), bytes.to_vec().into(), [fingerprints as u64, ids as u64], blocks.len())
}

fn example() -> BlockIds {
    vec![
        // One equal id for each fingerprint: the packed ids take no bits.
        vec![vec![7], vec![7], vec![7]],
        // Ids of the maximum width, and a fingerprint with several ids.
        vec![vec![0], vec![3, 9, u64::MAX], vec![5]],
        vec![vec![u64::MAX]],
        vec![vec![1, 2]],
        (0..300).map(|i| vec![i * 3]).collect(),
    ]
}

#[test]
fn ids_come_back() {
    let blocks = example();
    let ids = open(&encoded(&blocks), &blocks).unwrap();
    assert_eq!((ids.len(), ids.fingerprints()), (3 + 5 + 1 + 2 + 300, 3 + 3 + 1 + 1 + 300));
    for (number, block) in blocks.iter().enumerate() {
        for (position, expected) in block.iter().enumerate() {
            let mut found = Vec::new();
            ids.visit(number, position, |id| found.push(id)).unwrap();
            assert_eq!(found, *expected, "block {number}, fingerprint {position}");
        }
        let error = ids.visit(number, block.len(), |_| ()).unwrap_err();
        assert!(matches!(error, Error::Corrupt { damage: Damage::Mismatch { .. }, .. }), "{error}");
        let fingerprints: Vec<usize> = (0..block.len()).collect();
        let mut pairs = Vec::new();
        ids.pairs(number, &fingerprints, &mut pairs).unwrap();
        let expected = block.iter().enumerate().flat_map(|(i, ids)| ids.iter().map(move |&id| (i, id)));
        assert_eq!(pairs, expected.collect::<Vec<_>>());
        assert!(ids.pairs(number, &fingerprints[1..], &mut pairs).is_err());
        assert!(ids.pairs(number, &[&fingerprints[..], &[9]].concat(), &mut pairs).is_err());
    }
}

#[test]
fn ids_of_another_table_are_refused() {
    let blocks = example();
    let bytes = encoded(&blocks);
    let opened = |expected, blocks| {
        let error = IdFile::open(Path::new("i"), bytes.clone().into(), expected, blocks).unwrap_err();
        error.to_string()
    };
    assert!(opened([307, 311], 5).contains("the numbers of fingerprints of the ids and of the first table"));
    assert!(opened([308, 311], 4).contains("the chunks of ids and the blocks of the first table"));
    assert!(opened([308, 312], 5).contains("the number of ids and the manifest"));
}

#[test]
fn every_flipped_bit_and_every_truncation_is_found() {
    let blocks = example()[..4].to_vec();
    let bytes = encoded(&blocks);
    let read = |bytes: &[u8]| {
        let ids = open(bytes, &blocks)?;
        (0..blocks.len()).try_for_each(|block| ids.chunk(block).map(drop))?;
        ids.chunks.verify()
    };
    every_damage_is_found(bytes, read);
}

/// A file of one chunk with these fields and this body, and valid checksums.
fn file_of(count: u32, width: u8, grouped: u8, reserved: u8, body: &[u8]) -> IdFile {
    let mut chunk = vec![0; field::LEN];
    LittleEndian::write_u32(&mut chunk[field::COUNT..], count);
    (chunk[field::WIDTH], chunk[field::GROUPED], chunk[field::RESERVED]) = (width, grouped, reserved);
    chunk.extend_from_slice(body);
    let sound = IdFileWriter::new(Vec::new(), Path::new("i"), 1, 1).unwrap().finish().unwrap();
    let mut writer = ChunkedFileWriter::new(Vec::new(), Path::new("i"), &sound[..header::LEN]).unwrap();
    writer.write(&mut chunk, None).unwrap();
    IdFile::open(Path::new("i"), writer.finish().unwrap().into(), [1, 1], 1).unwrap()
}

#[test]
fn hostile_chunks_are_refused() {
    file_of(1, 8, 0, 0, &[5]).chunk(0).unwrap();
    file_of(7, 0, 1, 0, &[1]).chunk(0).unwrap();
    file_of(65535, 0, 0, 0, &[]).chunk(0).unwrap();
    let cases = [
        ("width", file_of(1, 65, 0, 0, &[0; 9])),
        ("width", file_of(1, 8, 0, 0, &[5, 0])),
        ("width", file_of(2, 8, 0, 0, &[5])),
        ("width", file_of(9, 0, 1, 0, &[1])),
        ("width", file_of(u32::MAX, 64, 1, 0, &[1])),
        ("grouped", file_of(1, 0, 2, 0, &[1])),
        ("grouped", file_of(65536, 0, 0, 0, &[])),
        ("reserved", file_of(1, 8, 0, 1, &[5])),
    ];
    for (field, ids) in cases {
        let error = ids.chunk(0).map(drop).unwrap_err();
        let Error::Corrupt { damage: Damage::Field { name, .. }, .. } = error else { panic!("{error}") };
        assert_eq!(name, field);
    }
    // The first id is not flagged as the first id of a fingerprint.
    let ids = file_of(2, 0, 1, 0, &[0b10]);
    assert!(ids.pairs(0, &["x"], &mut Vec::new()).is_err());
    // Base 0 with the maximum difference: the largest possible id.
    let ids = file_of(1, 64, 0, 0, &[0xff; 8]);
    let mut all = Vec::new();
    ids.visit_all(0, |id, first| {
        all.push((id, first));
        true
    })
    .unwrap();
    assert_eq!(all, [(u64::MAX, true)]);
}

/// Asserts that the sound chunks before the first damaged chunk and after the last one are returned with their positions,
/// but those in between are not.
#[test]
fn places_of_chunks_beside_damaged_ones() {
    let blocks: BlockIds = [2, 3, 1, 4, 2].map(|len| (0..len).map(|i| vec![i]).collect()).to_vec();
    let sound = encoded(&blocks);
    let places = |damaged: &[usize], count: u64| {
        let mut bytes = sound.clone();
        let ids = open(&sound, &blocks).unwrap();
        for &chunk in damaged {
            let Error::Corrupt { offset, .. } = ids.chunks.damaged(chunk, Damage::IncompleteCode) else {
                panic!()
            };
            bytes[offset as usize + field::LEN - 1] ^= 1;
        }
        let mut errors = 0;
        let found = open(&bytes, &blocks).unwrap().chunks_by_position(count, &mut |_| errors += 1);
        (found, errors)
    };
    assert_eq!(places(&[], 12).0, [(0, 0..2), (1, 2..5), (2, 5..6), (3, 6..10), (4, 10..12)]);
    assert_eq!(places(&[2], 12), (vec![(0, 0..2), (1, 2..5), (3, 6..10), (4, 10..12)], 1));
    assert_eq!(places(&[1, 3], 12), (vec![(0, 0..2), (4, 10..12)], 2));
    assert_eq!(places(&[0], 12), (vec![(1, 2..5), (2, 5..6), (3, 6..10), (4, 10..12)], 1));
    assert_eq!(places(&[2], 11), (vec![], 0));
}
